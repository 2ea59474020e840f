# SPDX-License-Identifier: BSD-3-Clause
# Copy it to packages/mpix_sparse/package.py of a Spack repository. In the folder of an unpacked release,
# `spack dev-build mpix-sparse@0.1.0` then builds and installs; Spack 0.23 or newer.
# flake8: noqa: F403,F405

from spack.package import *

try:
    from spack_repo.builtin.build_systems.autotools import AutotoolsPackage
    from spack_repo.builtin.build_systems.cuda import CudaPackage
except ImportError:  # before Spack 1.0 they are in spack.package
    pass


class MpixSparse(AutotoolsPackage, CudaPackage):
    """An MPI extension library: allreduce for vectors that are mostly zero."""

    license("BSD-3-Clause")

    version("0.1.0")

    variant("python", default=False, description="Install the Python package")
    variant("fortran", default=True, description="Build the Fortran bindings")
    variant("preload", default=True, description="Build the library for LD_PRELOAD")

    depends_on("c", type="build")
    depends_on("cxx", type="build", when="+cuda")
    depends_on("fortran", type="build", when="+fortran")
    depends_on("gmake", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("mpi@3:")
    depends_on("hwloc@2:")
    depends_on("jansson@2.11:")
    depends_on("cuda@12:", when="+cuda")
    extends("python", when="+python")
    depends_on("python@3.8:", type=("build", "run"), when="+python")
    depends_on("py-numpy", type=("build", "run"), when="+python")

    conflicts("cuda_arch=none", when="+cuda", msg="Set cuda_arch to the architectures of your devices")

    def configure_args(self):
        spec = self.spec
        # The package streamvbyte is in no repository of Spack's; without it there is no format `packed`.
        args = [f"MPICC={spec['mpi'].mpicc}", "--without-streamvbyte"]
        args += self.enable_or_disable("preload")
        if spec.satisfies("+fortran"):
            args += [f"MPIFC={spec['mpi'].mpifc}", "--enable-fortran"]
        else:
            args.append("--disable-fortran")
        if spec.satisfies("+cuda"):
            architectures = " ".join(spec.variants["cuda_arch"].value)
            args += [f"--with-cuda={spec['cuda'].prefix}", f"CUDA_ARCH={architectures}"]
        else:
            args.append("--without-cuda")
        if spec.satisfies("+python"):
            python = spec["python"]
            args += [
                f"--with-python={python.command.path}",
                f"pythondir={join_path(self.prefix, python.package.purelib)}",
            ]
        return args
