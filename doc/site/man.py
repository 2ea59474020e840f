# SPDX-License-Identifier: BSD-3-Clause
"""Convert the manual pages of a folder to Markdown in another one. Pandoc reads both man and mdoc."""

import pathlib
import re
import sys

import pypandoc


def convert(page, names):
    text = page.read_text()
    source = "mdoc" if re.search(r"^\.Dd ", text, re.M) else "man"
    body = pypandoc.convert_text(
        text, "gfm", format=source, extra_args=["--shift-heading-level-by=1", "--wrap=none"]
    )
    body = re.sub(r'<span class="Xr">(\w+)\((\d)\)</span>', r"**\1**(\2)", body)
    body = re.sub(
        r"\*\*(\w+)\*\*\s?\((\d)\)",
        lambda m: f"[{m[1]}({m[2]})]({m[1]}.{m[2]}.md)" if f"{m[1]}.{m[2]}" in names else m[0],
        body,
    )
    return f"# {page.stem}({page.suffix[1:]})\n\n{body}"


def main():
    pages, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    found = sorted(pages.glob("*.[1-9]"))
    names = {page.name for page in found}
    for page in found:
        (out / (page.name + ".md")).write_text(convert(page, names))


main()
