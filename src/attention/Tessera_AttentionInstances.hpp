// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_ATTENTION_ATTENTION_INSTANCES_HPP
#define TESSERA_ATTENTION_ATTENTION_INSTANCES_HPP

#include "attention/Tessera_AttentionOperation.hpp"
#include "core/Tessera_Compiled.hpp"

/// \file
/// What of attention is compiled once (core/Tessera_Compiled.hpp).

#define TESSERA_ATTENTION_BODY(Scalar, Offset) PlanBody<AttentionOperation<Compiled::Matrix<Scalar, Offset>>>
#define TESSERA_ATTENTION_PLAN(Extern, Scalar, Offset)                                                       \
  Extern template class TESSERA_ATTENTION_BODY(Scalar, Offset);                                              \
  Extern template void TESSERA_ATTENTION_BODY(Scalar, Offset)::apply(                                        \
      const Exec&, Op, double, const AttentionInput<Scalar>&, double, const AttentionOutput<Scalar>&) const; \
  Extern template class AttentionBackward<Compiled::Matrix<Scalar, Offset>>;

#define TESSERA_ATTENTION_double(Extern, Offset) TESSERA_ATTENTION_PLAN(Extern, double, Offset)
#define TESSERA_ATTENTION_float(Extern, Offset) TESSERA_ATTENTION_PLAN(Extern, float, Offset)
#define TESSERA_ATTENTION_half_t(Extern, Offset) TESSERA_ATTENTION_PLAN(Extern, half_t, Offset)
#define TESSERA_ATTENTION_bhalf_t(Extern, Offset) TESSERA_ATTENTION_PLAN(Extern, bhalf_t, Offset)

#ifdef TESSERA_COMPILED_ATTENTION
namespace Tessera {
namespace Impl {
// clang-format off
TESSERA_ATTENTION_double(extern, int)
TESSERA_ATTENTION_float(extern, int)
TESSERA_ATTENTION_half_t(extern, int)
TESSERA_ATTENTION_bhalf_t(extern, int)
// clang-format on
}  // namespace Impl
}  // namespace Tessera
#endif

#endif
