// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMM_GE_SPMM_INSTANCES_HPP
#define TESSERA_SPMM_GE_SPMM_INSTANCES_HPP

#include "core/Tessera_Compiled.hpp"
#include "spmm/Tessera_GeSpmmEngine.hpp"

/// \file
/// Products straight from compressed rows, compiled once (core/Tessera_Compiled.hpp): for SpMM, and for SpMV with
/// several vectors on hosts.

#define TESSERA_SPMM_ROWS_PATTERN(Extern, Offset)                                                                    \
  Extern template PieceTable<Compiled::Memory> cut_rows(const Compiled::Exec&, const Compiled::Pattern<Offset>&,     \
                                                        std::int64_t, std::int64_t, const KernelTable*, bool, bool); \
  Extern template PieceTable<Compiled::Memory> spread_rows(const Compiled::Exec&, const Compiled::Pattern<Offset>&,  \
                                                           const PieceBounds&, std::int64_t, const KernelTable*);

#define TESSERA_SPMM_ROWS(Extern, Scalar, Offset, B, C)                       \
  Extern template void GeSpmmEngine<Compiled::Matrix<Scalar, Offset>>::apply( \
      const Compiled::Exec&, double, Dense<const B>, std::size_t, double, const Dense<C>&) const;

#define TESSERA_SPMM_ROWS_double(Extern, Offset) TESSERA_SPMM_ROWS(Extern, double, Offset, double, double)
#define TESSERA_SPMM_ROWS_float(Extern, Offset) TESSERA_SPMM_ROWS(Extern, float, Offset, float, float)
#define TESSERA_SPMM_ROWS_half_t(Extern, Offset) TESSERA_SPMM_ROWS(Extern, half_t, Offset, half_t, half_t)
#define TESSERA_SPMM_ROWS_half_t_float(Extern, Offset) TESSERA_SPMM_ROWS(Extern, half_t, Offset, half_t, float)
#define TESSERA_SPMM_ROWS_bhalf_t(Extern, Offset) TESSERA_SPMM_ROWS(Extern, bhalf_t, Offset, bhalf_t, bhalf_t)
#define TESSERA_SPMM_ROWS_bhalf_t_float(Extern, Offset) TESSERA_SPMM_ROWS(Extern, bhalf_t, Offset, bhalf_t, float)

#ifdef TESSERA_COMPILED_SPMM
namespace Tessera {
namespace Impl {
// clang-format off
TESSERA_SPMM_ROWS_PATTERN(extern, int)
TESSERA_SPMM_ROWS_PATTERN(extern, std::size_t)
TESSERA_SPMM_ROWS_double(extern, int)
TESSERA_SPMM_ROWS_double(extern, std::size_t)
TESSERA_SPMM_ROWS_float(extern, int)
TESSERA_SPMM_ROWS_float(extern, std::size_t)
TESSERA_SPMM_ROWS_half_t(extern, int)
TESSERA_SPMM_ROWS_half_t_float(extern, int)
TESSERA_SPMM_ROWS_bhalf_t(extern, int)
TESSERA_SPMM_ROWS_bhalf_t_float(extern, int)
// clang-format on
}  // namespace Impl
}  // namespace Tessera
#endif

#endif
