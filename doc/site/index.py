# SPDX-License-Identifier: BSD-3-Clause
"""Write the tables of contents of the site in place of @toctrees@ in the standard input, and api.md."""

import copy
import pathlib
import sys
import xml.etree.ElementTree

SECTIONS = {
    "Start": [
        "README",
        "doc/install",
        "doc/tutorial",
        "examples/apps/README",
        "python/README",
        "doc/training",
    ],
    "How to": ["doc/how-to/is-my-data-sparse", "doc/how-to/*", "doc/cluster", "doc/measuring"],
    "Reference": ["api", "doc/faq", "doc/limits", "doc/glossary", "doc/formats"],
    "Manual pages": ["man/*"],
    "Explanation": ["doc/design", "doc/*-design", "doc/model", "doc/gpu", "doc/dgc", "doc/comparison"],
    "Figures": ["doc/performance", "doc/evaluation", "doc/evaluation/*", "doc/notebook"],
    "Project": ["NEWS", "CONTRIBUTING", "*"],
}


def pages_of(source, pattern, seen):
    found = sorted(str(path.relative_to(source).with_suffix("")) for path in source.glob(pattern + ".md"))
    return [page for page in found if page not in seen and page != "index"]


def toctrees(source):
    seen = set()
    for caption, patterns in SECTIONS.items():
        pages = []
        for pattern in patterns:
            new = pages_of(source, pattern, seen)
            seen.update(new)
            pages += new
        if pages:
            yield "\n".join(
                ["```{toctree}", ":hidden:", f":caption: {caption}", ":maxdepth: 1", "", *pages, "```", ""]
            )


def split_parameters(file):
    """Give each parameter an entry of its own where several share one; Breathe takes no lists."""
    tree = xml.etree.ElementTree.parse(file)
    for entries in tree.iter("parameterlist"):
        for item in entries.findall("parameteritem"):
            names = item.findall("parameternamelist/parametername")
            at = list(entries).index(item)
            for k, name in enumerate(names[1:], 1):
                other = copy.deepcopy(item)
                listed = other.find("parameternamelist")
                for each in list(listed):
                    listed.remove(each)
                listed.append(copy.deepcopy(name))
                entries.insert(at + k, other)
            for name in names[1:]:
                item.find("parameternamelist").remove(name)
    tree.write(file, encoding="utf-8", xml_declaration=True)


def api(xml_folder):
    """A section for each group of the headers, in their order, but allreduce first."""
    index = xml.etree.ElementTree.parse(xml_folder / "index.xml").getroot()
    lines = ["# Interface", "", "From the comments of the public headers.", ""]
    names = [group.findtext("name") for group in index.iter("compound") if group.get("kind") == "group"]
    for name in sorted(names, key=lambda name: name != "allreduce"):
        lines += [f"```{{doxygengroup}} {name}", ":members:", "```", ""]
    return "\n".join(lines)


def main():
    source, xml_folder = map(pathlib.Path, sys.argv[1:])
    for file in xml_folder.glob("group__*.xml"):
        split_parameters(file)
    (source / "api.md").write_text(api(xml_folder))
    sys.stdout.write(sys.stdin.read().replace("@toctrees@", "\n".join(toctrees(source))))


main()
