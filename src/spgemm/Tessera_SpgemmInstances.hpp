// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPGEMM_SPGEMM_INSTANCES_HPP
#define TESSERA_SPGEMM_SPGEMM_INSTANCES_HPP

#include "core/Tessera_Compiled.hpp"
#include "spgemm/Tessera_SpgemmSetUp.hpp"

/// \file
/// What of SpGEMM is compiled once (core/Tessera_Compiled.hpp).

// What depends on the type of offsets alone.
#define TESSERA_SPGEMM_PATTERN(Extern, Offset)                                                             \
  Extern template SpgemmVerdict spgemm_decide(const Compiled::Exec&, const Compiled::Pattern<Offset>&,     \
                                              const Compiled::Pattern<Offset>&, std::int64_t, SpgemmModel, \
                                              const KernelTable*);
#define TESSERA_SPGEMM_double(Extern, Offset) Extern template class SpgemmBody<Compiled::Matrix<double, Offset>>;
#define TESSERA_SPGEMM_float(Extern, Offset) Extern template class SpgemmBody<Compiled::Matrix<float, Offset>>;

#ifdef TESSERA_COMPILED_SPGEMM
namespace Tessera {
namespace Impl {
// clang-format off
TESSERA_SPGEMM_PATTERN(extern, int)
TESSERA_SPGEMM_PATTERN(extern, std::size_t)
TESSERA_SPGEMM_double(extern, int)
TESSERA_SPGEMM_double(extern, std::size_t)
TESSERA_SPGEMM_float(extern, int)
TESSERA_SPGEMM_float(extern, std::size_t)
// clang-format on
}  // namespace Impl
}  // namespace Tessera
#endif

#endif
