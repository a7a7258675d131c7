// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CORE_ROW_COPIES_HPP
#define TESSERA_CORE_ROW_COPIES_HPP

#include <cstdint>
#include <type_traits>

#include "core/Tessera_DenseOperand.hpp"

/// \file
/// Rows of several batches, copied in one launch into rows of whole words of sixteen bytes, or back.

namespace Tessera {
namespace Impl {

/// One batch whose rows are contiguous, and its copy, whose rows, and heads, follow each other.
template <class T>
struct RowCopy {
  T* rows_of = nullptr;                  ///< the batch
  std::remove_const_t<T>* to = nullptr;  ///< the copy
  std::int64_t row_stride = 0, head_stride = 0;
  std::int64_t rows = 1, columns = 0;  ///< of a head of the batch
  std::int64_t words = 1;              ///< of a row of the copy
  std::int64_t begin = 0;              ///< words of the copies before this one
  int bytes = 0;                       ///< in which rows of the batch are read or written, a power of two up to 16
};

/// A thread per word of a copy. T const: batches are read, and what a copy has beyond the columns of its batch becomes
/// 0; else copies are read.
template <class T, int Most>
struct RowCopies {
  using Element = std::remove_const_t<T>;
  static constexpr bool reads = std::is_const_v<T>;
  static constexpr int width = 16 / static_cast<int>(sizeof(Element));
  RowCopy<T> copy[Most];
  int count = 0;
  std::int64_t all = 0;  ///< words

  /// to: as many rows, of whole words that follow each other, at a multiple of sixteen bytes.
  void add(const DenseBatch<T>& of, const DenseBatch<Element>& to, std::int64_t heads) {
    const Dense<T>& d = of.matrix;
    if (heads == 0 || d.rows == 0 || to.matrix.columns == 0) return;
    RowCopy<T>& one = copy[count++];
    one = {d.data, to.matrix.data, d.row_stride, of.head_stride, d.rows, d.columns, to.matrix.row_stride / width, all,
           16};
    const std::uintptr_t strides = static_cast<std::uintptr_t>(d.row_stride | of.head_stride) * sizeof(T);
    while (((reinterpret_cast<std::uintptr_t>(d.data) | strides) & static_cast<unsigned>(one.bytes - 1)) != 0)
      one.bytes /= 2;
    all += heads * d.rows * one.words;
  }
  template <class Exec>
  void run(const Exec& space, const char* label) const {
    if (all == 0) return;
    Kokkos::parallel_for(label, Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(space, 0, all), *this);
  }

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t n) const {
    RowCopy<T> one = copy[0];
    for (int i = 1; i < Most; ++i) {  // no index of what is a kernel's argument
      if (i < count && n >= copy[i].begin) one = copy[i];
    }
    const std::int64_t at = n - one.begin, from_first = divided(at, one.words), word = at - from_first * one.words;
    const std::int64_t head = from_first < one.rows ? 0 : divided(from_first, one.rows);
    T* const rows =
        one.rows_of + head * one.head_stride + (from_first - head * one.rows) * one.row_stride + word * width;
    const std::int64_t left = one.columns - word * width;
    Element* const to = one.to + at * width;
    if (left < width) return move_some(rows, to, static_cast<int>(left));
    switch (one.bytes) {
      case 16:
        return move<16>(rows, to);
      case 8:
        return move<8>(rows, to);
      case 4:
        return move<4>(rows, to);
      default:
        return move<2>(rows, to);
    }
  }

 private:
  KOKKOS_INLINE_FUNCTION static std::int64_t divided(std::int64_t n, std::int64_t by) {
    const bool few = ((n | by) >> 32) == 0;  // a short division
    return few ? static_cast<std::int64_t>(static_cast<std::uint32_t>(n) / static_cast<std::uint32_t>(by)) : n / by;
  }
  /// A word, of the rows of the batch in pieces of Bytes.
  template <int Bytes>
  KOKKOS_INLINE_FUNCTION static void move(T* rows, Element* to) {
    constexpr int piece = Bytes / static_cast<int>(sizeof(Element)) > 0 ? Bytes / static_cast<int>(sizeof(Element)) : 1;
    constexpr int bytes = piece * static_cast<int>(sizeof(Element));
    Element word[width];
    if (!reads) __builtin_memcpy(word, aligned<16>(to), 16);
    for (int i = 0; i < width; i += piece) {
      if constexpr (reads) {
        __builtin_memcpy(word + i, aligned<bytes>(rows + i), bytes);
      } else {
        __builtin_memcpy(aligned<bytes>(rows + i), word + i, bytes);
      }
    }
    if (reads) __builtin_memcpy(aligned<16>(to), word, 16);
  }
  /// A word of which the batch has `there` elements, or none. All that is read is asked for before any is written: what
  /// is not there is the last element again.
  KOKKOS_INLINE_FUNCTION static void move_some(T* rows, Element* to, int there) {
    Element word[width] = {};
    if constexpr (reads) {
      if (there > 0) {
        for (int i = 0; i < width; ++i) word[i] = rows[i < there ? i : there - 1];
      }
      for (int i = 0; i < width; ++i) word[i] = i < there ? word[i] : Element(0.0f);
      __builtin_memcpy(aligned<16>(to), word, 16);
    } else {
      __builtin_memcpy(word, aligned<16>(to), 16);
      for (int i = 0; i < width; ++i) {
        if (i < there) rows[i] = word[i];
      }
    }
  }
  /// (nvcc wants a void pointer here.)
  template <int Bytes>
  KOKKOS_INLINE_FUNCTION static void* aligned(Element* p) {
    return __builtin_assume_aligned(static_cast<void*>(p), Bytes);
  }
  template <int Bytes>
  KOKKOS_INLINE_FUNCTION static const void* aligned(const Element* p) {
    return __builtin_assume_aligned(static_cast<const void*>(p), Bytes);
  }
};

}  // namespace Impl
}  // namespace Tessera

#endif
