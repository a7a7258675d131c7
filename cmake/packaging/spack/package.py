# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

from spack.package import *


class Tessera(CMakePackage, CudaPackage, ROCmPackage):
    """Sparse matrix kernels for Kokkos applications, on matrix units where these help: SpMV, SpMM, SDDMM, SpGEMM and
    attention on sparse patterns; y in the user's order, the same bits every time."""

    # No released archive yet: `spack dev-build`, or `spack develop`, takes the sources from a checkout.
    version("main", branch="main")

    license("Apache-2.0 WITH LLVM-exception")

    variant("openmp", default=False, description="Hosts run on OpenMP's threads")
    variant("tpetra", default=False, description="Operator for Tpetra: tests, examples and benchmark")
    variant("python", default=False, description="Python package tessera")
    variant("shared", default=True, description="Shared libraries")
    variant("boost", default=True, description="Reordering by Cuthill-McKee")

    depends_on("cxx", type="build")
    depends_on("cmake@3.22:", type="build")
    depends_on("ninja", type="build")
    depends_on("zlib-api")
    depends_on("boost@1.66: +graph", when="+boost", type="build")
    depends_on("googletest", type="test")
    depends_on("nlohmann-json", type="test")

    # Device code is C++17: mdspan Views of C++20 builds differ between host and device with nvcc 13.
    depends_on("kokkos@3.4:4 +serial")
    depends_on("kokkos-kernels@3.4:4")
    depends_on("kokkos +openmp", when="+openmp")
    depends_on("kokkos +wrapper", when="+cuda")
    for arch in CudaPackage.cuda_arch_values:
        depends_on(f"kokkos +cuda cuda_arch={arch}", when=f"+cuda cuda_arch={arch}")
        depends_on(f"kokkos-kernels +cuda cuda_arch={arch}", when=f"+cuda cuda_arch={arch}")
    for target in ROCmPackage.amdgpu_targets:
        depends_on(f"kokkos +rocm amdgpu_target={target}", when=f"+rocm amdgpu_target={target}")
    depends_on("trilinos@13.2: +tpetra +belos +ifpack2", when="+tpetra")
    depends_on("mpi", when="+tpetra")
    extends("python@3.9:", when="+python")
    depends_on("py-nanobind@2:", when="+python", type="build")
    depends_on("py-numpy@1.22:", when="+python", type=("build", "run"))

    conflicts("cuda_arch=none", when="+cuda", msg="Say for which devices: cuda_arch=90")
    conflicts("+cuda +rocm", msg="One kind of device per build")
    for arch in ("50", "52", "53", "60", "61", "62", "70", "72", "75"):
        conflicts(f"cuda_arch={arch}", when="+cuda", msg="Matrix units are used from sm_80 on")

    generator("ninja")

    def cmake_args(self):
        args = [
            self.define_from_variant("BUILD_SHARED_LIBS", "shared"),
            self.define_from_variant("Tessera_ENABLE_CUDA", "cuda"),
            self.define_from_variant("Tessera_ENABLE_HIP", "rocm"),
            self.define_from_variant("Tessera_ENABLE_TPETRA", "tpetra"),
            self.define_from_variant("Tessera_ENABLE_PYTHON", "python"),
            self.define_from_variant("Tessera_ENABLE_BOOST", "boost"),
            self.define("Tessera_ENABLE_TESTS", self.run_tests),
            self.define("Tessera_ENABLE_PERF_TESTS", False),
            self.define("CMAKE_CXX_STANDARD", "17"),
            self.define("CMAKE_CXX_EXTENSIONS", False),
        ]
        if self.spec.satisfies("+cuda"):
            args.append(self.define("CMAKE_CXX_COMPILER", self["kokkos"].kokkos_cxx))
            args.append(self.define("Tessera_CUDA_ARCHITECTURES", self.spec.variants["cuda_arch"].value))
        if self.spec.satisfies("+rocm"):
            args.append(self.define("CMAKE_CXX_COMPILER", self.spec["hip"].hipcc))
            args.append(self.define("Tessera_HIP_ARCHITECTURES", self.spec.variants["amdgpu_target"].value))
        return args
