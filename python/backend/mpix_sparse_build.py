# SPDX-License-Identifier: BSD-3-Clause
"""Builds the Python package: a PEP 517 backend on top of setuptools.

A wheel contains the C library, compiled for the MPI of this machine. A source distribution contains the
sources of both.

    MPICC           the MPI's C compiler; default: mpicc, mpicc.mpich or mpicc.openmpi on the PATH
    CFLAGS          default: -O3
    LIBMPIX_SPARSE  if set, no library is compiled: the package opens the one that this variable names

`pip install --config-settings=configure="--without-hwloc"` passes options to configure.
`python3 mpix_sparse_build.py FOLDER` writes the source distribution.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from pathlib import Path
from typing import Iterator, NoReturn

import setuptools
from setuptools import build_meta

PACKAGE = Path(__file__).resolve().parent.parent  # the folder of pyproject.toml
COMPILERS = "mpicc", "mpicc.mpich", "mpicc.openmpi"

# What configure and make need for the library; a source distribution has nothing else of a release.
LIBRARY_FILES = (
    "LICENSE Makefile.* aclocal.m4 bootstrap configure configure.ac config.h.in *.pc.in *.cmake.in"
)
LIBRARY_FOLDERS = "build-aux include m4 mpi_ext preload src"
LIBRARY_FRAGMENTS = "bench cuda doc examples packages python tests"
IGNORED = "__pycache__ *.py[co] .libs .deps .dirstamp *.o *.lo *.la *~ *.egg-info build _installed.py"

build_editable = build_meta.build_editable
prepare_metadata_for_build_editable = build_meta.prepare_metadata_for_build_editable


def _say(sentence: str) -> None:
    print(f"mpix-sparse: {sentence}", flush=True)


def _refuse(sentence: str) -> NoReturn:
    raise SystemExit(f"mpix-sparse: {sentence}")


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _copy(source: Path, target: Path) -> None:
    shutil.copytree(source, target, ignore=shutil.ignore_patterns(*IGNORED.split()))
    for path in target, *target.rglob("*"):  # the sources may be read-only
        path.chmod(path.stat().st_mode | stat.S_IWUSR)


def _sources() -> Path:
    """The folder of configure.ac: within a source distribution, or above in a release or a checkout."""
    for folder in PACKAGE / "library", PACKAGE.parent:
        if (folder / "configure.ac").exists():
            return folder
    _refuse(f"the sources of the C library are neither in {PACKAGE / 'library'} nor in {PACKAGE.parent}")


def _stage(scratch: str) -> Path:
    """Copy what setuptools packs, so that it writes nothing into the sources."""
    stage = Path(scratch) / "package"
    stage.mkdir()
    project = (PACKAGE / "pyproject.toml").read_text()
    if (
        int(setuptools.__version__.split(".")[0]) >= 77
    ):  # older ones refuse this form, newer ones the older form
        project = project.replace("[project]\n", '[project]\nlicense = "BSD-3-Clause"\n')
    (stage / "pyproject.toml").write_text(project)
    shutil.copy2(PACKAGE / "README.md", stage)
    shutil.copy2(_sources() / "LICENSE", stage)
    _copy(PACKAGE / "mpix_sparse", stage / "mpix_sparse")
    return stage


def _mpi_compiler() -> str:
    """The MPI's compiler with its arguments, as configure takes it."""
    named = os.environ.get("MPICC")
    if named:
        if shutil.which(shlex.split(named)[0]) is None:
            _refuse(f"MPICC is '{named}', and there is no such program")
        return named
    for name in COMPILERS:
        if shutil.which(name):
            return name
    _refuse(
        "there is no MPI: none of mpicc, mpicc.mpich, mpicc.openmpi is on the PATH; install an MPI with its "
        "compiler (Debian: libmpich-dev or libopenmpi-dev), or set MPICC to it"
    )


def _run(words: list[str], folder: Path, log: Path) -> None:
    """Run a command; its output goes to a file, the end of which is printed if the command fails."""
    # The variables of a make that has started this process are not for the make here.
    environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    with open(log, "w") as output:
        status = subprocess.run(words, cwd=folder, env=environment, stdout=output, stderr=output).returncode
    if status != 0:
        print("\n".join(log.read_text(errors="replace").splitlines()[-40:]), flush=True)
        _refuse(f"{shlex.join(words[:2])} has failed with status {status}; its last lines are above")


def _configure(build: Path, options: str) -> None:
    sources, compiler = _sources(), _mpi_compiler()
    make = shutil.which(os.environ.get("MAKE", "make"))
    if make is None:
        _refuse("there is no make, which compiles the C library")
    if not (sources / "configure").exists():
        _run(["sh", str(sources / "bootstrap")], sources, build / "bootstrap.log")
    _say(f"configuring the C library for {compiler}")
    # No rank is started: a machine that compiles need not be one that runs MPI programs.
    words = [
        f"MPICC={compiler}",
        f"CFLAGS={os.environ.get('CFLAGS', '-O3')}",
        "MPIEXEC=false",
        "PYTHON=false",
    ]
    words += ["--disable-fortran", "--without-cuda", "--disable-dependency-tracking"]
    words += ["--with-hwloc=auto", "--with-jansson=auto", "--with-streamvbyte=auto"]
    log = build / "configure.log"
    _run(["sh", str(sources / "configure"), *words, *shlex.split(options)], build, log)
    for line in log.read_text(errors="replace").splitlines():
        if re.match("  (MPI|hwloc|Jansson|StreamVByte|OpenMP|compiler flags)  ", line):
            print(line, flush=True)
    # Files that are unpacked in any order must not start autoconf.
    fixed = [f"{name}=:" for name in ("ACLOCAL", "AUTOCONF", "AUTOHEADER", "AUTOMAKE")]
    _say("compiling the C library, which takes about a minute")
    _run([make, f"-j{os.cpu_count() or 1}", *fixed, "src/libmpix_sparse.la"], build, build / "make.log")


def _field(file: Path, name: str) -> str:
    """The value in a line NAME=VALUE of a file that configure or libtool has written."""
    found = re.search(f"^{name}='?([^'\n]*)'?$", file.read_text(), re.MULTILINE)
    if found is None:
        _refuse(f"{file.name} has no line {name}=")
    return found[1]


def _add_library(package: Path, build: Path, options: str) -> None:
    """Compile the C library into a copy of the package."""
    build.mkdir()
    _configure(build, options)
    name = _field(build / "src/libmpix_sparse.la", "dlname")
    mpi = _field(build / "mpix-sparse.pc", "mpi")
    (package / "_lib").mkdir()
    shutil.copy2((build / "src/.libs" / name).resolve(), package / "_lib" / name)
    text = f'LIBRARY = "_lib/{name}"\nMPI = {mpi!r}\nMPICC = {_mpi_compiler()!r}\n'
    (package / "_bundled.py").write_text(text)
    _say(f"the package contains {name}, built for {mpi}")


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    settings = dict(config_settings or {})
    options = settings.pop("configure", "")
    target = os.path.abspath(wheel_directory)
    with tempfile.TemporaryDirectory() as scratch:
        stage = _stage(scratch)
        if os.environ.get("LIBMPIX_SPARSE"):
            _say("LIBMPIX_SPARSE is set: the package contains no C library")
        else:
            options = " ".join(options) if isinstance(options, list) else options
            _add_library(stage / "mpix_sparse", Path(scratch) / "build", options)
            platform = re.sub("[-.]", "_", sysconfig.get_platform())
            settings["--build-option"] = ["--plat-name", platform]
        with _inside(stage):
            return build_meta.build_wheel(target, settings)


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    target = os.path.abspath(metadata_directory)
    with tempfile.TemporaryDirectory() as scratch, _inside(_stage(scratch)):
        return build_meta.prepare_metadata_for_build_wheel(target)


def _copy_library(sources: Path, target: Path) -> None:
    if not (sources / "configure").exists():
        _refuse(f"there is no configure in {sources}: run its bootstrap first")
    target.mkdir()
    for pattern in LIBRARY_FILES.split():
        for file in sources.glob(pattern):
            shutil.copy2(file, target)
    for folder in LIBRARY_FOLDERS.split():
        _copy(sources / folder, target / folder)
    # configure runs none of these parts; Makefile.in depends on their fragments.
    fragments = [file for folder in LIBRARY_FRAGMENTS.split() for file in (sources / folder).glob("*.am")]
    templates = [file for folder in LIBRARY_FRAGMENTS.split() for file in (sources / folder).rglob("*.h.in")]
    for file in fragments + templates + [sources / "tests/run-mpi"]:
        destination = target / file.relative_to(sources)
        destination.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, destination)


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """An entry without the owner, and with the time that SOURCE_DATE_EPOCH sets."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mtime = int(os.environ.get("SOURCE_DATE_EPOCH", entry.mtime))
    entry.mode = 0o755 if entry.mode & 0o100 else 0o644
    return entry


def build_sdist(sdist_directory, config_settings=None):
    with tempfile.TemporaryDirectory() as scratch:
        stage = _stage(scratch)
        with _inside(stage), contextlib.redirect_stdout(io.StringIO()):
            information = Path(build_meta.prepare_metadata_for_build_wheel(scratch))
        text = (Path(scratch) / information / "METADATA").read_text()
        version = re.search("^Version: (.*)$", text, re.MULTILINE)[1]
        for entry in stage.glob("*.egg-info"):
            shutil.rmtree(entry)
        (stage / "PKG-INFO").write_text(text)
        shutil.copy2(PACKAGE / "pyproject.toml", stage)
        _copy(PACKAGE / "backend", stage / "backend")
        _copy_library(_sources(), stage / "library")
        name = f"mpix_sparse-{version}"
        path = Path(sdist_directory) / f"{name}.tar.gz"
        with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as archive:
            for file in sorted(stage.rglob("*")):
                if file.is_file():
                    archive.add(file, f"{name}/{file.relative_to(stage)}", filter=_plain)
        return path.name


if __name__ == "__main__":
    print(os.path.join(sys.argv[1], build_sdist(sys.argv[1])))
