# SPDX-License-Identifier: BSD-3-Clause
"""Configuration of Sphinx for the site. doc/site/build lays out the sources and runs it."""

import os
import pathlib
import re

SOURCE = pathlib.Path(os.environ["SITE_SOURCE"])

project = "mpix-sparse"
author = "the mpix-sparse developers"
copyright = author
version = release = os.environ["SITE_VERSION"]

extensions = ["myst_parser", "breathe"]
source_suffix = {".md": "markdown"}
root_doc = "index"
exclude_patterns = ["_*"]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4

breathe_projects = {"mpix_sparse": os.environ["SITE_XML"]}
breathe_default_project = "mpix_sparse"
breathe_domain_by_extension = {"h": "c"}
c_id_attributes = ["MPIX_SPARSE_EXPORT"]

smartquotes = False  # options such as --help keep their hyphens
highlight_language = "text"

html_theme = "furo"
html_title = "mpix-sparse"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False

PAGES = {path.stem for path in (SOURCE / "man").glob("*.md")}
REFERENCE = re.compile(r"(?<![\w`/\[])((?:mpix_sparse|MPIX_)\w*)\((\d)\)")


def link_pages(text):
    """Link names of manual pages, as in mpix_sparse(7), outside of code."""
    pieces = re.split(r"(```.*?```|`[^`\n]*`|^    .*$)", text, flags=re.S | re.M)
    for i in range(0, len(pieces), 2):
        pieces[i] = REFERENCE.sub(
            lambda m: f"[{m[0]}](/man/{m[1]}.{m[2]}.md)" if f"{m[1]}.{m[2]}" in PAGES else m[0], pieces[i]
        )
    return "".join(pieces)


def read_source(app, name, source):
    if not name.startswith("man/"):
        source[0] = link_pages(source[0])


def setup(app):
    app.connect("source-read", read_source)
