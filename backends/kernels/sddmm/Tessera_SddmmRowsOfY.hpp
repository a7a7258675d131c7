// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_SDDMM_SDDMM_ROWS_OF_Y_HPP
#define TESSERA_KERNELS_SDDMM_SDDMM_ROWS_OF_Y_HPP

#include <cstdint>

#include "backends/interface/Tessera_CompactB.hpp"
#include "backends/kernels/sddmm/Tessera_SddmmStore.hpp"
#include "backends/units/Tessera_RegisterWords.hpp"
#include "backends/units/Tessera_Wave.hpp"

/// \file
/// Rows of Y as the window kernel reads them: chunk after chunk, of which each lane has a word of sixteen bytes. Of
/// each row a lane makes one address, and all loads lie at fixed distances from it.

namespace Tessera {

/// Y as the caller has it. Chunks: that come at once.
template <class Operand, int Chunks, bool Exact>
struct SddmmRowsOfY {
  static constexpr int chunks = Chunks;
  static constexpr int registers = 4 * Chunks;  ///< per row
  using RowWord = Packed<Operand, 16 / static_cast<int>(sizeof(Operand))>;

  /// Row 0, where a lane's words of it begin.
  struct Base {
    const char* at;
    std::int32_t row_bytes;
    int first;  ///< the lane's word of a chunk
  };
  template <class Wave>
  TESSERA_FUNCTION static Base base(const SddmmDense& d, std::int64_t head, int quad) {
    constexpr auto size = static_cast<std::int64_t>(sizeof(Operand));
    const char* const y = static_cast<const char*>(d.y) + head * d.y_head * size;
    return {Wave::keep(y + quad * 16), static_cast<std::int32_t>(d.ldy * size), quad};
  }

  RowWord word[Chunks];

  /// From word `begin` of the row on, of which there are `words`.
  template <class Wave, int Quads>
  TESSERA_FUNCTION void load(const Base& base, std::int32_t row, int begin, int words) {
    const char* const from = Wave::keep(base.at + std::int64_t{row} * base.row_bytes + begin * 16);
    TESSERA_UNROLL
    for (int c = 0; c < Chunks; ++c) {
      sddmm_load<Exact, Wave>(from + c * Quads * 16, begin + c * Quads + base.first < words, word[c]);
    }
  }
  TESSERA_FUNCTION Operand get(int c, int n) const { return word[c].get(n); }
  TESSERA_FUNCTION const std::uint32_t* bits(int c) const { return word[c].w; }
};

/// The copy in TF32 (CompactCopy): two chunks of four numbers are a group. Its rows are filled up with zeros.
/// Whole: numbers are needed to the last bit, else as far as TF32 has any.
template <int Chunks, bool Whole>
struct SddmmRowsOfCompactY {
  static_assert(Chunks == 2 || Chunks == 4 || Chunks == 8, "lower bits come in one load");
  static constexpr int chunks = Chunks, across = Chunks / 2;
  static constexpr int registers = 5 * across;

  struct Base {
    const char* upper;
    const char* lower;
    std::int32_t groups;  ///< of a row
  };
  /// y_head, ldy: in groups; d.lower: bytes from the upper halves to the rest.
  template <class Wave>
  TESSERA_FUNCTION static Base base(const SddmmDense& d, std::int64_t head, int quad) {
    const char* const y = static_cast<const char*>(d.y);
    const std::int64_t group = head * d.y_head;
    return {Wave::keep(y + (group + quad) * 16), Wave::keep(y + d.lower + (group + quad * across) * 4),
            static_cast<std::int32_t>(d.ldy)};
  }

  CompactB::Group group[across];

  template <class Wave, int Quads>
  TESSERA_FUNCTION void load(const Base& base, std::int32_t row, int begin, int) {
    static_assert(Quads == 4, "groups are dealt out to four lanes");
    const std::int32_t first = row * base.groups + begin / 2;  // CompactCopy::fits: 32 bits count groups
    const char* const upper = Wave::keep(base.upper + std::int64_t{first} * 16);
    TESSERA_UNROLL
    for (int c = 0; c < across; ++c) {
      const Word w = Wave::load_written(reinterpret_cast<const Word*>(upper + c * Quads * 16));
      TESSERA_UNROLL
      for (int j = 0; j < 4; ++j) group[c].upper[j] = w.w[j];
    }
    struct alignas(4 * across) Lower {
      std::uint32_t w[across];
    };
    const Lower lower =
        Wave::template load<false>(reinterpret_cast<const Lower*>(base.lower + std::int64_t{first} * 4));
    TESSERA_UNROLL
    for (int c = 0; c < across; ++c) group[c].lower = lower.w[c];
  }
  TESSERA_FUNCTION float get(int c, int n) const { return CompactB::get<Whole>(group[c / 2], c % 2 * 4 + n); }
};

}  // namespace Tessera

#endif
