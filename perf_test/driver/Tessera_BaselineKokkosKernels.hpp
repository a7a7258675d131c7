// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BASELINE_KOKKOS_KERNELS_HPP
#define TESSERA_BASELINE_KOKKOS_KERNELS_HPP

#include "Tessera_Config.hpp"
#include "driver/Tessera_BenchCase.hpp"

/// \file
/// KokkosSparse::spmv on vectors and on multivectors. It is inlined for types that Kokkos Kernels was not built for, a
/// quarter of a minute for one type and layout of multivectors, so that just what is measured is compiled, in files of
/// its own.

namespace Tessera {
namespace Bench {

#if defined(TESSERA_HAVE_KOKKOSKERNELS)
/// Newer ones keep what they learn of the matrix in a handle.
#if __has_include(<KokkosSparse_spmv_handle.hpp>)
#define TESSERA_BENCH_SPMV_HANDLE 1
inline constexpr bool kokkos_kernels_has_handle = true;
#else
inline constexpr bool kokkos_kernels_has_handle = false;
#endif

/// double and float, offsets of 32 and 64 bits. @param merge  the merge path, of those with handles
System kokkos_kernels_spmv(const SpmvOperands& operands, bool merge);

/// double and float on LayoutRight, double on LayoutLeft; offsets of 32 bits; hosts only (devices have cuSPARSE).
bool kokkos_kernels_has_spmm(const SpmmOperands& operands);
System kokkos_kernels_spmm_fp64(const SpmmOperands& operands);
System kokkos_kernels_spmm_fp32(const SpmmOperands& operands);
#endif

}  // namespace Bench
}  // namespace Tessera

#endif
