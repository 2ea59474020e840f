# SPDX-License-Identifier: BSD-3-Clause
"""The manifest of bench/results: for each file the command that made it, host, date and commit.

    PYTHONPATH=bench python3 -m evaluation.manifest FILE COMMAND...

records a file that another program than bench/evaluate has made."""

import datetime
import json
import pathlib
import platform
import shlex
import subprocess
import sys

from evaluation.figures import RESULTS, TOP, table

NAME = "manifest.jsonl"


def entries(folder=RESULTS):
    """The manifest of a folder: a record for each file, by its name."""
    file = folder / NAME
    lines = file.read_text().splitlines() if file.exists() else []
    return {record["file"]: record for record in map(json.loads, lines)}


def words_of(command):
    """A command as a shell would read it, from the top of the sources."""
    return shlex.join("mpix_sparse_perf" if word == "PERF" else word for word in command)


def host():
    """The processors of this machine, and their system."""
    try:
        lines = open("/proc/cpuinfo", encoding="utf-8").read().splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{len(models)} x {models[0]}, {platform.system()}" if models else platform.platform()


def commit():
    """The commit of the sources, with a mark if they have changed since; None without git. Results, and the
    pages that are made of them, do not count."""

    def git(*words):
        return subprocess.run(["git", *words], cwd=TOP, capture_output=True, text=True)

    found = git("describe", "--always", "--exclude", "*")
    made = [":!bench/results", ":!doc/evaluation", ":!doc/evaluation.md"]
    changed = git("status", "--porcelain", "--", ".", *made).stdout
    return found.stdout.strip() + "-dirty" * bool(changed) if found.returncode == 0 else None


def record_result(file, command):
    """Add a result of today, or replace its record."""
    found = entries(file.parent)
    found[file.name] = {
        "file": file.name,
        "command": words_of(command),
        "host": host(),
        "date": datetime.date.today().isoformat(),
        "commit": commit(),
    }
    write(found, file.parent)


def hosts_of(records):
    """The hosts of some results, shortly."""
    return ", ".join(sorted({record["host"] or "not recorded" for record in records}))


def results():
    """Families of results, by the date and the state of their sources."""
    families = {}
    for record in entries().values():
        family = record["file"].removesuffix(".json").split("-")[0]
        changed = "changed since" if record["commit"].endswith("-dirty") else "clean"
        families.setdefault((family, record["date"], changed), []).append(record)
    lines = [
        [
            *key,
            len(records),
            ", ".join(sorted({r["commit"].removesuffix("-dirty") for r in records})),
            hosts_of(records),
        ]
        for key, records in sorted(families.items())
    ]
    return table(["results", "date", "sources", "files", "commits", "host"], lines)


def write(found, folder=RESULTS):
    (folder / NAME).write_text("".join(json.dumps(found[name]) + "\n" for name in sorted(found)))


PARTS = [results]

if __name__ == "__main__":
    record_result(pathlib.Path(sys.argv[1]), sys.argv[2:])
