# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import os

from spack.package import *

try:  # Spack 1.0 has moved the build systems to the repository of packages
    from spack_repo.builtin.build_systems.cmake import CMakePackage
    from spack_repo.builtin.build_systems.cuda import CudaPackage
    from spack_repo.builtin.build_systems.rocm import ROCmPackage
except ImportError:
    pass


class Diomp(CMakePackage, CudaPackage, ROCmPackage):
    """DiOMP: OpenMP programs on many ranks, nodes and devices in one address space. Memory that
    omp_alloc returns can be read, written, locked and reduced over by all ranks of a job."""

    # The folder that this recipe is in is part of the source: `spack develop` and
    # `spack dev-build` take the clone, as docs/install.md shows.
    homepage = "https://diomp.invalid"
    git = "https://diomp.invalid/diomp.git"

    license("Apache-2.0 WITH LLVM-exception", checked_by="diomp-developers")

    version("main", branch="main")
    version("1.0.0", tag="v1.0.0")

    variant(
        "llvm",
        default="19",
        values=("none", "19"),
        multi=False,
        description="LLVM version that libomptarget and the plugin for pragmas are built for",
    )
    variant(
        "llvm_source",
        default="release",
        values=("release", "given"),
        multi=False,
        when="llvm=19",
        description="Source of libomptarget: LLVM's release, or a folder that "
        "scripts/fetch-llvm.sh has made (DIOMP_LLVM_SOURCE, or its default)",
    )
    variant("ucx", default=True, description="Ranks on several nodes over UCX")
    variant("gasnet", default=False, description="The conduit over GASNet-EX")
    variant("gpi2", default=False, description="The conduit over GPI-2")
    variant("pmix", default=True, description="Start-up under mpirun, prterun and srun --mpi=pmix")
    variant("python", default=False, description="The package diomp for Python")
    variant("fortran", default=True, description="The Fortran module and diompfc")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("fortran", type="build", when="+fortran")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    # Scripts of the build; diomp-trace.
    depends_on("python@3.9:", type=("build", "run"))

    depends_on("cli11", type="build")
    depends_on("nlohmann-json", type="build")
    depends_on("fmt")
    depends_on("hwloc@2:")
    depends_on("libffi")
    depends_on("libseccomp")
    depends_on("libsodium@1.0.18:")
    depends_on("xxhash")

    depends_on("llvm@19 +clang+lld", when="llvm=19", type=("build", "link", "run"))
    depends_on("zlib-api", when="llvm=19")
    depends_on("zstd", when="llvm=19")
    depends_on("ucx@1.13:", when="+ucx")
    depends_on("gasnet@2023.9: conduits=smp,udp", when="+gasnet")
    depends_on("gpi-2@1.6:", when="+gpi2")
    depends_on("pmix@3:", when="+pmix")
    # The drivers' libraries are loaded at run time; the toolkits are for the kernels of programs.
    depends_on("hip", when="+rocm", type="run")

    extends("python", when="+python")
    depends_on("py-numpy@1.23:", when="+python", type=("build", "run"))
    depends_on("py-nanobind@2.4:", when="+python", type="build")

    conflicts("+cuda", when="llvm=none", msg="code for GPUs needs LLVM: llvm=19")
    conflicts("+rocm", when="llvm=none", msg="code for GPUs needs LLVM: llvm=19")
    conflicts("platform=darwin", msg="DiOMP is for Linux")
    conflicts("platform=windows", msg="DiOMP is for Linux")

    # What libomptarget is built from.
    resource(
        name="llvm-source",
        url="https://github.com/llvm/llvm-project/archive/llvmorg-19.1.7.tar.gz",
        sha256="59abea1c22e64933fad4de1671a61cdb934098793c7a31b333ff58dc41bff36c",
        placement="llvm-source",
        when="llvm=19 llvm_source=release",
    )

    generator("ninja")

    @property
    def llvm_version(self):
        """19, or None."""
        chosen = self.spec.variants["llvm"].value
        return None if chosen == "none" else chosen

    @property
    def llvm_source(self):
        """The folder of LLVM's source; empty: where scripts/fetch-llvm.sh puts it."""
        if self.spec.satisfies("llvm_source=given"):
            return os.environ.get("DIOMP_LLVM_SOURCE", "")
        return join_path(self.stage.source_path, "llvm-source")

    @run_before("cmake")
    def mark_llvm_source(self):
        # scripts/fetch-llvm.sh marks a folder that is complete in the same way.
        if self.spec.satisfies("llvm_source=release"):
            with open(join_path(self.llvm_source, "version"), "w") as file:
                file.write("19.1.7\n")

    def cmake_args(self):
        spec = self.spec
        args = [
            self.define("DIOMP_BATCH", 8),
            self.define("DIOMP_BUILD_APPS", False),
            # diomp-bench needs no peers to compare with.
            self.define("DIOMP_BUILD_BENCH", True),
            self.define("DIOMP_BUILD_TESTS", self.run_tests),
            self.define("DIOMP_BUILD_OFFLOAD", self.llvm_version is not None),
            self.define("DIOMP_SIM", False),
            self.define_from_variant("DIOMP_UCX", "ucx"),
            self.define_from_variant("DIOMP_GPI2", "gpi2"),
            self.define_from_variant("DIOMP_PMIX", "pmix"),
            self.define_from_variant("DIOMP_FORTRAN", "fortran"),
            self.define_from_variant("DIOMP_PYTHON", "python"),
            self.define("DIOMP_GASNET_CONDUIT", "udp" if spec.satisfies("+gasnet") else ""),
        ]
        gpus = spec.satisfies("+cuda") or spec.satisfies("+rocm")
        without = "AUTO" if self.llvm_version else "OFF"
        args.append(self.define("DIOMP_GPU_KERNELS", "ON" if gpus else without))
        if spec.satisfies("+rocm"):
            architectures = [a for a in spec.variants["amdgpu_target"].value if a != "none"]
            if architectures:
                args.append(self.define("DIOMP_AMD_KERNEL_ARCHS", architectures))
        if self.llvm_version:
            prefix = spec["llvm"].prefix
            # The same compiler builds libomptarget, and is what diompcc calls.
            args += [
                self.define("DIOMP_LLVM_VERSIONS", self.llvm_version),
                self.define(f"DIOMP_LLVM_{self.llvm_version}_PREFIX", prefix),
                self.define("DIOMP_LLVM_SOURCE", self.llvm_source),
                self.define("DIOMP_KERNEL_COMPILER", join_path(prefix.bin, "clang++")),
            ]
        if spec.satisfies("+python"):
            args.append(self.define("Python_EXECUTABLE", spec["python"].command.path))
            site_packages = os.path.relpath(python_platlib, self.prefix)
            args.append(self.define("DIOMP_PYTHON_INSTALL_DIR", site_packages))
        return args

    def setup_run_environment(self, env):
        env.set("DIOMP_ROOT", self.prefix)
        if self.llvm_version:
            prefix = self.spec["llvm"].prefix
            env.set("DIOMP_CC", join_path(prefix.bin, "clang"))
            env.set("DIOMP_CXX", join_path(prefix.bin, "clang++"))
        else:
            env.set("DIOMP_CC", self.compiler.cc)
            env.set("DIOMP_CXX", self.compiler.cxx)

    def compile_and_run(self, compiler, source, ranks):
        examples = join_path(self.prefix.share.doc, "DiOMP", "examples")
        program = os.path.splitext(source)[0]
        which(join_path(self.prefix.bin, compiler), required=True)(
            "-O2", join_path(examples, source), "-o", program, "-lm"
        )
        run = which(join_path(self.prefix.bin, "diomp-run"), required=True)
        return run("-n", str(ranks), join_path(".", program), output=str.split, error=str.split)

    def test_halo(self):
        """the README's example on four ranks"""
        assert "heat in the rod" in self.compile_and_run("diompcc", "halo.c", 4)

    def test_doctor(self):
        """what a job needs is there"""
        info = which(join_path(self.prefix.bin, "diomp-info"), required=True)
        assert "A job can run here" in info("--doctor", output=str.split, error=str.split)
