// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_LAUNCH_ATTENTION_SHAPES_HPP
#define TESSERA_LAUNCH_ATTENTION_SHAPES_HPP

#include <algorithm>

#include "backends/launch/Tessera_AttentionLaunchers.hpp"
#include "backends/launch/Tessera_Launch.hpp"
#include "backends/units/Tessera_AtomsAmd.hpp"
#include "backends/units/Tessera_AtomsNvidia.hpp"
#include "backends/units/Tessera_SplitUnit.hpp"

/// \file
/// Instructions of attention, and what both directions ask of their arguments.

namespace Tessera {

struct AttentionNvidia {
  using FP16 = Sm80_M16N8K16_F32_F16;
  using BF16 = Sm80_M16N8K16_F32_BF16;
  using FP32 = Sm80_M16N8K8_F32_3xTF32;
  using TF32 = Sm80_M16N8K8_F32_TF32;
};
/// FP32 has an instruction of its own here, which also answers requests for TF32.
struct AttentionAmd {
  using FP16 = Gfx90a_M16N16K16_F32_F16;
  using BF16 = Gfx90a_M16N16K16_F32_BF16;
  using FP32 = Gfx90a_M16N16K4_F32;
  using TF32 = Gfx90a_M16N16K4_F32;
};

/// The data type of an atom, as an argument.
template <class Atom>
struct AttentionAtom {
  using type = Atom;
};
/// Returns run(AttentionAtom<atom of the precision>()), or `none`.
template <class Vendor, class Result, class Run>
Result attention_with_atom(Precision precision, const Result& none, const Run& run) {
  switch (precision) {
    case Precision::FP32:
      return run(AttentionAtom<typename Vendor::FP32>());
    case Precision::TF32:
      return run(AttentionAtom<typename Vendor::TF32>());
    case Precision::FP16:
      return run(AttentionAtom<typename Vendor::FP16>());
    case Precision::BF16:
      return run(AttentionAtom<typename Vendor::BF16>());
    default:
      return none;
  }
}

namespace Launch {

/// Columns that windows of one or of two instructions may have.
template <class Atom, int Height>
constexpr int attention_most_columns = sizeof(typename Atom::Operand) == 4 && Height == 2 ? 64 : 256 / Height;
/// Rows of Q and K from which products in parts err by no more than FP32 arithmetic (perf_test/notes/precision.md).
constexpr int attention_least_inner_in_parts = 30;

template <class Device>
AttentionShape attention_shape(Precision precision) noexcept {
  using Vendor = ForFamily<Device, AttentionNvidia, AttentionAmd>;
  return attention_with_atom<Vendor>(precision, AttentionShape(), [](auto atom) {
    using Atom = typename decltype(atom)::type;
    AttentionShape shape;
    shape.rows = Atom::n;
    shape.vectors = Atom::m;
    shape.most_columns = attention_most_columns<Atom, 1>;
    shape.most_columns_of_two = attention_most_columns<Atom, 2>;
    shape.atom = Atom::name;
    shape.least_inner = in_parts<Atom> ? attention_least_inner_in_parts : 0;
    return shape;
  });
}

/// Ok, or why these arguments cannot be run.
inline Status attention_check(const AttentionArgs& args, const AttentionShape& shape) noexcept {
  if (shape.rows == 0) return {"attention: no kernel has the precision"};
  const bool two = args.window_rows == 2 * shape.rows;
  if (!two && args.window_rows != shape.rows) return {"attention: the windows were made for another instruction"};
  const AttentionDense& dense = args.dense;
  const std::int64_t most = two ? shape.most_columns_of_two : shape.most_columns;
  const std::int64_t unit = 16 / bytes_of(args.precision);
  const auto fits = [&](std::int64_t n) { return n > 0 && n % unit == 0 && n <= most; };
  if (!fits(dense.d) || !fits(dense.e)) {
    return {
        "attention: columns of Q and V must be whole words up to 256 (windows of twice the height: 128, of FP32 64), "
        "backward half of it"};
  }
  if (dense.d < shape.least_inner) return {"attention: Q has too few columns for FP32 in parts of TF32"};
  if (std::max({dense.ldq, dense.ldk, dense.ldv}) >= (std::int64_t{1} << 30)) {
    return {"attention: rows of Q, K or V lie 2^30 or more elements apart"};
  }
  return {};
}

}  // namespace Launch
}  // namespace Tessera

#endif
