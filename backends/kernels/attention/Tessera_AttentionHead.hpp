// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_ATTENTION_ATTENTION_HEAD_HPP
#define TESSERA_KERNELS_ATTENTION_ATTENTION_HEAD_HPP

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "backends/interface/Tessera_Aligned.hpp"
#include "backends/interface/Tessera_AttentionArgs.hpp"
#include "backends/interface/Tessera_Half.hpp"
#include "backends/units/Tessera_Wave.hpp"

/// \file
/// What the kernels of attention share: operands of one head, parts of windows, loads, and how results reach O.

namespace Tessera {

/// The reference of a row without entries: below all numbers that a score may have, and finite, so that differences
/// from it are never undefined.
constexpr float attention_no_reference = -3e38f;
template <class Sum>
constexpr Sum attention_no_reference_of = static_cast<Sum>(std::is_same_v<Sum, double>
                                                               ? -1e308
                                                               : double{attention_no_reference});
constexpr float attention_no_score = -std::numeric_limits<float>::infinity();
constexpr double attention_log2_e = 1.44269504088896340736, attention_ln_2 = 0.69314718055994530942;

/// One store of 4, 8 or 16 bytes, at a multiple of so many. (nvcc wants a void pointer here.)
template <int Bytes>
TESSERA_FUNCTION void attention_store(void* to, const void* from) {
  expect_aligned(to, Bytes);
  __builtin_memcpy(__builtin_assume_aligned(to, Bytes), from, Bytes);
}

/// Rows of a dense operand of one head, less than 2^32 bytes apart.
struct AttentionRows {
  const char* first;
  std::uint32_t bytes;  ///< from row to row
  int columns;          ///< a multiple of 8
  int words;            ///< of sixteen bytes

  // One multiplication of 32 by 32 bits.
  TESSERA_FUNCTION const char* at(std::uint32_t row) const { return first + std::uint64_t{row} * bytes; }
};
template <class Operand>
TESSERA_FUNCTION AttentionRows attention_rows(const void* of, std::int64_t head, std::int64_t from_head_to_head,
                                              std::int64_t from_row_to_row, std::int64_t columns) {
  return {reinterpret_cast<const char*>(static_cast<const Operand*>(of) + head * from_head_to_head),
          static_cast<std::uint32_t>(from_row_to_row * static_cast<std::int64_t>(sizeof(Operand))),
          static_cast<int>(columns), static_cast<int>(columns) * static_cast<int>(sizeof(Operand)) / 16};
}

/// The operands of one head. Scores are binary logarithms here: 2^score is what e^score is of the caller's.
template <class Operand>
class AttentionHead {
 public:
  using Sum = std::conditional_t<std::is_same_v<Operand, double>, double, float>;
  TESSERA_FUNCTION AttentionHead(const AttentionDense& d, std::int64_t head)
      : dense_(d),
        q_(attention_rows<Operand>(d.q, head, d.q_head, d.ldq, d.d)),
        k_(attention_rows<Operand>(d.k, head, d.k_head, d.ldk, d.d)),
        v_(attention_rows<Operand>(d.v, head, d.v_head, d.ldv, d.e)),
        head_(head),
        scale_(static_cast<Sum>(d.scale * attention_log2_e)) {}

  TESSERA_FUNCTION const AttentionRows& q() const { return q_; }
  TESSERA_FUNCTION const AttentionRows& k() const { return k_; }
  TESSERA_FUNCTION const AttentionRows& v() const { return v_; }
  TESSERA_FUNCTION int e() const { return static_cast<int>(dense_.e); }
  TESSERA_FUNCTION std::int64_t index() const { return head_; }
  TESSERA_FUNCTION Sum scale() const { return scale_; }

  /// Whether numbers of the pattern enter the scores.
  TESSERA_FUNCTION bool valued() const { return dense_.bias != nullptr || dense_.factor != nullptr; }
  /// What the product of an entry is multiplied by besides scale().
  TESSERA_FUNCTION Sum factor(std::int64_t entry) const {
    return dense_.factor == nullptr ? Sum(1) : static_cast<Sum>(numbers()[entry]);
  }
  /// The numbers of the pattern's entries, where valued().
  TESSERA_FUNCTION const Operand* numbers() const {
    return static_cast<const Operand*>(dense_.factor != nullptr ? dense_.factor : dense_.bias);
  }
  /// The score of an entry, where valued().
  TESSERA_FUNCTION Sum score(Sum product, std::int64_t entry) const {
    return score_by(product, static_cast<Sum>(numbers()[entry]));
  }
  /// The same, from its number.
  TESSERA_FUNCTION Sum score_by(Sum product, Sum number) const {
    if (dense_.factor != nullptr) return product * (scale_ * number);
    const Sum score = std::fma(product, scale_, number * static_cast<Sum>(attention_log2_e));
    return number == Sum(attention_no_score) ? number : score;  // masked, whatever the product is
  }
  /// What a score's gradient is multiplied by to be that of the scaled product.
  TESSERA_FUNCTION Sum factor_by(Sum number) const { return dense_.factor == nullptr ? Sum(1) : number; }

  /// Where sums of weighted rows of V from `column` on become O.
  TESSERA_FUNCTION void* o(std::int64_t row, int column) const {
    return static_cast<Operand*>(dense_.o) + head_ * dense_.o_head + row * dense_.ldo + column;
  }
  TESSERA_FUNCTION void store_lse(std::int64_t row, Sum reference, Sum total) const {
    if (dense_.lse == nullptr) return;
    static_cast<Sum*>(dense_.lse)[head_ * dense_.lse_head + row * dense_.lse_row] =
        total == Sum(0) ? Sum(attention_no_score) : (reference + std::log2(total)) * static_cast<Sum>(attention_ln_2);
  }

 private:
  const AttentionDense& dense_;
  AttentionRows q_, k_, v_;
  std::int64_t head_;
  Sum scale_;
};

/// What all sums of a row are multiplied by. A row without entries, or with masked ones alone, gives zeros.
template <class Sum>
TESSERA_FUNCTION Sum attention_inverse(Sum total) {
  return total == Sum(0) ? Sum(0) : Sum(1) / total;
}

/// Blocks of a window that belong together.
struct AttentionPart {
  std::int32_t window;
  std::uint32_t first_block, end_block;
  std::int32_t partial;  ///< -1: it is the whole window
};
TESSERA_FUNCTION AttentionPart attention_part(const AttentionArgs& args, std::int64_t index) {
  if (args.parts == nullptr) {
    return {static_cast<std::int32_t>(index), args.first_block[index], args.first_block[index + 1], -1};
  }
  const SpmmPart part = args.parts[index];
  return {part.window, part.first_block, part.first_block + static_cast<std::uint32_t>(part.blocks), part.partial};
}

/// Bytes of a row. Exact: they are there; else zeros where `on` does not hold.
template <bool Exact, int Bytes, class Wave>
TESSERA_FUNCTION void attention_load(const char* from, bool on, std::uint32_t* to) {
  if constexpr (Exact && Bytes == 16) {
    // Loads that keep their order: all of a batch are under way before the first is waited for.
    const Word w = Wave::load_written(reinterpret_cast<const Word*>(from));
    TESSERA_UNROLL
    for (int j = 0; j < 4; ++j) to[j] = w.w[j];
  } else {
    Wave::template load_if<false, Bytes>(from, Exact || on, 0, to);
  }
}

}  // namespace Tessera

#endif
