// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CORE_ROW_COPIES_HPP
#define TESSERA_CORE_ROW_COPIES_HPP

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/Tessera_DenseOperand.hpp"

/// \file
/// Rows of several batches, copied in one launch into rows of whole words of sixteen bytes, or back: operands of
/// attention, and of SpMM and SDDMM by copy_layout. Copies that change types or add are LayoutCopy's.

namespace Tessera {
namespace Impl {

/// One batch whose rows are contiguous, and its copy, whose rows, and heads, follow each other. In bytes, so that one
/// kernel serves all elements.
struct RowCopy {
  char* batch = nullptr;
  char* copy = nullptr;
  std::int64_t row_stride = 0, head_stride = 0;  ///< of the batch
  std::int64_t rows = 1;                         ///< of a head
  std::int64_t words = 0;                        ///< of all heads
  std::int64_t begin = 0;                        ///< blocks of the copies before this one
  int row_bytes = 0, row_words = 1;              ///< of the batch; of the copy: less than 2 GB
  int piece = 16;  ///< bytes in which the batch is read or written: what all its rows begin and end at a multiple of
};

/// Reads: batches are read, and what a copy has beyond the columns of its batch becomes 0; else copies are read.
/// A thread has several units of a block, words of the copy, and asks for all of them before it writes any: with one,
/// too few bytes are under way. They are held as numbers of 32 bits: of an array of 16-bit ones, nvcc reads and writes
/// each alone. Only where a batch is written by elements of two bytes are these the units, so that those of a wave lie
/// side by side: else sectors would be written in as many parts as they have elements.
/// perf_test/notes/attention.md (any number of columns).
template <bool Reads, int Most>
struct RowCopies {
  static constexpr int block_threads = 256;
  static constexpr int unit_of(int piece) { return Reads || piece > 2 ? 16 : 2; }
  static constexpr int units_per_thread(int unit) { return unit == 16 ? 2 : 8; }
  static constexpr std::int64_t words_of_block(int piece) {
    return block_threads * units_per_thread(unit_of(piece)) * unit_of(piece) / 16;
  }
  struct OnHost {};
  struct OnDevice {};
  RowCopy copies[Most];
  int count = 0;
  std::int64_t blocks = 0;

  /// to: as many rows, of whole words that follow each other, at a multiple of sixteen bytes.
  template <class T, class Copy>
  void add(const DenseBatch<T>& of, const DenseBatch<Copy>& to, std::int64_t heads) {
    static_assert(std::is_same_v<std::remove_const_t<T>, Copy> && (Reads || !std::is_const_v<T>));
    const Dense<T>& d = of.matrix;
    if (heads == 0 || d.rows == 0 || to.matrix.row_stride == 0) return;
    constexpr std::int64_t size = sizeof(T);
    RowCopy& one = copies[count++];
    one.batch = const_cast<char*>(reinterpret_cast<const char*>(d.data));
    one.copy = reinterpret_cast<char*>(to.matrix.data);
    one.row_stride = d.row_stride * size;
    one.head_stride = of.head_stride * size;
    one.rows = d.rows;
    one.row_bytes = static_cast<int>(d.columns * size);
    one.row_words = static_cast<int>(to.matrix.row_stride * size / 16);
    one.words = heads * d.rows * one.row_words;
    one.begin = blocks;
    const auto begins_and_ends = reinterpret_cast<std::uintptr_t>(d.data) |
                                 static_cast<std::uintptr_t>(one.row_stride | one.head_stride | one.row_bytes);
    while (begins_and_ends % static_cast<unsigned>(one.piece) != 0) one.piece /= 2;
    blocks += (one.words + words_of_block(one.piece) - 1) / words_of_block(one.piece);
  }
  template <class Exec>
  void run(const Exec& space, const char* label) const {
    constexpr bool host = Compat::is_host_v<Exec>;
    using Policy =
        Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>, std::conditional_t<host, OnHost, OnDevice>>;
    if (blocks > 0) Kokkos::parallel_for(label, Policy(space, 0, blocks * (host ? 1 : block_threads)), *this);
  }

  /// A thread per block.
  void operator()(OnHost, const std::int64_t block) const {
    const RowCopy one = of_block(block);
    std::int64_t at = (block - one.begin) * words_of_block(one.piece);
    const std::int64_t end = std::min(at + words_of_block(one.piece), one.words);
    std::int64_t row = divided(at, one.row_words), word = at - row * one.row_words;
    for (; at < end; ++row, word = 0) {
      const std::int64_t words = std::min(one.row_words - word, end - at);
      const std::int64_t there = std::max<std::int64_t>(0, std::min(words * 16, one.row_bytes - word * 16));
      char *const batch = one.batch + offset(one, row) + word * 16, *const copy = one.copy + at * 16;
      if (there > 0) std::memcpy(Reads ? copy : batch, Reads ? batch : copy, static_cast<std::size_t>(there));
      if (Reads && there < words * 16) std::memset(copy + there, 0, static_cast<std::size_t>(words * 16 - there));
      at += words;
    }
  }
  KOKKOS_INLINE_FUNCTION void operator()(OnDevice, const std::int64_t n) const {
    const RowCopy one = of_block(n / block_threads);
    switch (one.piece) {
      case 16:
        return move<16>(one, n);
      case 8:
        return move<8>(one, n);
      case 4:
        return move<4>(one, n);
      default:
        return move<2>(one, n);
    }
  }

 private:
  template <int Bytes>
  struct alignas(Bytes) Part {
    std::uint32_t w[Bytes / 4];
  };

  KOKKOS_INLINE_FUNCTION RowCopy of_block(std::int64_t block) const {
    RowCopy one = copies[0];
    for (int i = 1; i < Most; ++i) {  // no index of what is a kernel's argument
      if (i < count && block >= copies[i].begin) one = copies[i];
    }
    return one;
  }
  KOKKOS_INLINE_FUNCTION static std::int64_t divided(std::int64_t n, std::int64_t by) {
    const bool few = ((n | by) >> 32) == 0;  // a short division
    return few ? static_cast<std::int64_t>(static_cast<std::uint32_t>(n) / static_cast<std::uint32_t>(by)) : n / by;
  }
  /// Of a row of the batch, counted through all heads.
  KOKKOS_INLINE_FUNCTION static std::int64_t offset(const RowCopy& one, std::int64_t row) {
    if (row < one.rows) return row * one.row_stride;
    const std::int64_t head = divided(row, one.rows);
    return head * one.head_stride + (row - head * one.rows) * one.row_stride;
  }
  /// Units of thread n, of the batch in pieces.
  template <int Piece>
  KOKKOS_INLINE_FUNCTION static void move(const RowCopy& one, std::int64_t n) {
    constexpr int bytes = unit_of(Piece), units = units_per_thread(bytes);
    using Unit = std::conditional_t<bytes == 2, std::uint16_t, Part<16>>;
    const int row_units = one.row_words * (16 / bytes);
    const int down = block_threads / row_units, along = block_threads % row_units;  // to the next unit
    const std::int64_t first = (n / block_threads - one.begin) * (block_threads * units) + n % block_threads;
    const std::int64_t left = one.words * (16 / bytes) - first;
    Unit* const copy = reinterpret_cast<Unit*>(one.copy) + first;
    std::int64_t row = divided(first, row_units);
    int in_row = static_cast<int>(first - row * row_units);
    Unit held[units];
    char* batch[units];
    int there[units];  // bytes
    for (int u = 0; u < units; ++u) {
      batch[u] = one.batch + offset(one, row) + std::int64_t{in_row} * bytes;
      there[u] = u * block_threads < left ? one.row_bytes - in_row * bytes : 0;
      held[u] = Unit{};
      if constexpr (Reads) {
        read<Piece>(held[u], batch[u], there[u]);
      } else {
        if (there[u] > 0) held[u] = copy[u * block_threads];
      }
      row += down;
      in_row += along;
      if (in_row >= row_units) {
        in_row -= row_units;
        ++row;
      }
    }
    for (int u = 0; u < units; ++u) {
      if constexpr (Reads) {
        if (u * block_threads < left) copy[u * block_threads] = held[u];
      } else {
        write<Piece>(held[u], batch[u], there[u]);
      }
    }
  }
  /// Into a word of zeros, what of it is there.
  template <int Piece>
  KOKKOS_INLINE_FUNCTION static void read(Part<16>& word, const char* batch, int there) {
    if constexpr (Piece == 2) {
      const auto* const halves = reinterpret_cast<const std::uint16_t*>(batch);
      for (int i = 0; i < 8; ++i) {
        if (2 * i < there) word.w[i / 2] |= std::uint32_t{halves[i]} << i % 2 * 16;
      }
    } else {
      for (int i = 0; i < 16; i += Piece) {
        if (i >= there) continue;
        const auto part = *reinterpret_cast<const Part<Piece>*>(batch + i);
        for (int k = 0; k < Piece / 4; ++k) word.w[i / 4 + k] = part.w[k];
      }
    }
  }
  template <int Piece, class Unit>
  KOKKOS_INLINE_FUNCTION static void write(const Unit& unit, char* batch, int there) {
    if constexpr (Piece == 2) {
      if (there > 0) *reinterpret_cast<Unit*>(batch) = unit;
    } else {
      for (int i = 0; i < 16; i += Piece) {
        if (i >= there) continue;
        Part<Piece> part;
        for (int k = 0; k < Piece / 4; ++k) part.w[k] = unit.w[i / 4 + k];
        *reinterpret_cast<Part<Piece>*>(batch + i) = part;
      }
    }
  }
};

}  // namespace Impl
}  // namespace Tessera

#endif
