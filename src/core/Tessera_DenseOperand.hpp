// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CORE_DENSE_OPERAND_HPP
#define TESSERA_CORE_DENSE_OPERAND_HPP

#include <cstdint>
#include <numeric>
#include <string>
#include <type_traits>

#include "Tessera_CsrView.hpp"
#include "core/Tessera_Accumulator.hpp"

/// \file
/// Dense operands: the one form in which kernels get them, whatever Views they came from, and whether two of them
/// overlap.

namespace Tessera {
namespace Impl {

/// A dense matrix as kernels get it: a kernel is compiled once per pair of element types, not once per layout. Strides
/// that no element needs are set to what a contiguous row-major matrix has.
template <class T>
struct Dense {
  using Element = std::remove_const_t<T>;
  T* data = nullptr;
  std::int64_t rows = 0, columns = 0;
  std::int64_t row_stride = 0, column_stride = 1;

  KOKKOS_INLINE_FUNCTION T* at(std::int64_t i, std::int64_t j) const {
    return data + i * row_stride + j * column_stride;
  }
  /// Elements of a row, rounded up to 16 bytes.
  static constexpr std::int64_t padded(std::int64_t n) {
    constexpr std::int64_t unit = 16 / static_cast<std::int64_t>(sizeof(T));
    return (n + unit - 1) / unit * unit;
  }
  /// Whether rows are contiguous and start at multiples of 16 bytes.
  bool aligned() const {
    return column_stride == 1 && reinterpret_cast<std::uintptr_t>(data) % 16 == 0 &&
           row_stride * static_cast<std::int64_t>(sizeof(T)) % 16 == 0;
  }
};

/// Elements from the first to one past the last.
template <class T>
std::int64_t span_of(const Dense<T>& d) {
  if (d.rows == 0 || d.columns == 0) return 0;
  return (d.rows - 1) * d.row_stride + (d.columns - 1) * d.column_stride + 1;
}

/// @throw InvalidArgument  elements, but no memory: unmanaged Views can be made of a null pointer
inline void require_memory(const char* operation, const char* name, const void* data, bool has_elements) {
  require<InvalidArgument>(data != nullptr || !has_elements, [&] {
    return std::string(operation) + ": " + name + " has elements, but its pointer is null; give it memory";
  });
}

/// Whether kernels of backends that multiply in this precision read In and write Out.
template <class In, class Out>
constexpr bool fits_backend(Precision precision) {
  constexpr Precision own = ScalarTraits<In>::precision;
  const bool operands = precision == Precision::TF32 ? own == Precision::FP32 : own == precision;
  return operands && (std::is_same_v<In, Out> || (sizeof(In) == 2 && std::is_same_v<Out, float>));
}
/// @param in, out  names of operands  @param instead  what takes every combination  @throw NotSupported
template <class In, class Out>
void check_backend_types(const char* operation, const char* algorithm, Precision precision, const char* in,
                         const char* out, const char* instead) {
  require<NotSupported>(fits_backend<In, Out>(precision), [&] {
    const bool narrow = precision == Precision::FP16 || precision == Precision::BF16;
    const std::string operand = precision == Precision::FP64   ? "double"
                                : precision == Precision::FP16 ? "half_t"
                                : precision == Precision::BF16 ? "bhalf_t"
                                                               : "float";
    return std::string(operation) + "[" + algorithm + "] in " + to_string(precision) + " takes " + in + " of " +
           operand + " and " + out + " of " + (narrow ? "float or " + operand : operand) + ", not " + in + " of " +
           to_string(ScalarTraits<In>::element) + " and " + out + " of " + to_string(ScalarTraits<Out>::element) +
           "; " + instead + " takes every combination";
  });
}

/// A dense operand that is read, and how many elements from its first one on may be read.
template <class T>
struct DenseInput {
  Dense<const T> matrix;
  std::size_t span = 0;
};

/// Of a View of rank 2.
template <class V>
Dense<typename V::value_type> dense_of(const V& v) {
  using D = Dense<typename V::value_type>;
  D d;
  d.data = v.data();
  d.rows = static_cast<std::int64_t>(v.extent(0));
  d.columns = static_cast<std::int64_t>(v.extent(1));
  d.column_stride = d.columns > 1 ? static_cast<std::int64_t>(v.stride(1)) : 1;
  d.row_stride = d.rows > 1 ? static_cast<std::int64_t>(v.stride(0)) : D::padded(d.columns);
  return d;
}

/// A batch of matrices of one shape: the heads of attention.
template <class T>
struct DenseBatch {
  Dense<T> matrix;  ///< of the first head
  std::int64_t head_stride = 0;

  Dense<T> head(std::int64_t h) const {
    Dense<T> d = matrix;
    d.data += h * head_stride;
    return d;
  }
};

/// Of a View of rank 2, or 3 with heads first. transposed: the columns come before the rows.
template <class V>
DenseBatch<typename V::value_type> dense_batch_of(const V& v, bool transposed = false) {
  using T = typename V::value_type;
  using D = Dense<T>;
  constexpr unsigned first = Compat::view_rank<V> == 3 ? 1 : 0;
  const unsigned row = transposed ? first + 1 : first, column = transposed ? first : first + 1;
  D d;
  d.data = v.data();
  d.rows = static_cast<std::int64_t>(v.extent(row));
  d.columns = static_cast<std::int64_t>(v.extent(column));
  const auto stride = [&](unsigned r) { return static_cast<std::int64_t>(v.stride(r)); };
  d.column_stride = d.columns > 1 ? stride(column) : 1;
  d.row_stride = d.rows > 1 ? stride(row) : D::padded(d.columns);
  DenseBatch<T> f{d, 0};
  if (first == 1 && v.extent(0) > 1) f.head_stride = stride(0);
  return f;
}

/// Whether two matrices whose ranges meet are interleaved without sharing an element, as columns, rows or elements of
/// one parent are.
template <class T, class U>
bool interleaved(const Dense<T>& b, const Dense<U>& c) {
  struct Bytes {  // strides, 0 where there is one row or column; from the first row or column to the end of the last
    std::int64_t rows, columns, element, height, width;
  };
  const auto bytes = [](const auto& d, std::int64_t element) {
    const std::int64_t down = d.rows > 1 ? d.row_stride * element : 0;
    const std::int64_t along = d.columns > 1 ? d.column_stride * element : 0;
    return Bytes{down, along, element, (d.rows - 1) * down + element, (d.columns - 1) * along + element};
  };
  const Bytes x = bytes(b, sizeof(T)), y = bytes(c, sizeof(U));
  const auto distance = reinterpret_cast<std::intptr_t>(c.data) - reinterpret_cast<std::intptr_t>(b.data);
  // Strides are multiples of the parent's. [0, size) of each of its strides belongs to the one, [shift, shift + size)
  // to the other.
  const auto apart = [&](std::int64_t parent, std::int64_t size_x, std::int64_t size_y) {
    if (parent == 0) return false;
    const std::int64_t shift = (distance % parent + parent) % parent;
    return shift >= size_x && shift + size_y <= parent;
  };
  const std::int64_t rows = std::gcd(x.rows, y.rows), columns = std::gcd(x.columns, y.columns);
  return apart(rows, x.width, y.width) || apart(columns, x.height, y.height) ||
         apart(std::gcd(rows, columns), x.element, y.element);
}

/// Whether an element belongs to both.
template <class T, class U>
bool overlap(const Dense<T>& b, const Dense<U>& c) {
  if (span_of(b) == 0 || span_of(c) == 0) return false;
  const auto begin_b = reinterpret_cast<std::uintptr_t>(b.data), begin_c = reinterpret_cast<std::uintptr_t>(c.data);
  const auto end_b = begin_b + static_cast<std::uintptr_t>(span_of(b)) * sizeof(T);
  const auto end_c = begin_c + static_cast<std::uintptr_t>(span_of(c)) * sizeof(U);
  return begin_c < end_b && begin_b < end_c && !interleaved(b, c);
}

/// The widest words, of 16 bytes or of half as many again and again down to an element, in which rows of B may be read
/// where they lie: rows begin at multiples of one, and what a row's last word has beyond the row lies in the View. 0:
/// rows are not contiguous.
template <class T>
int word_bytes_in_place(const Dense<T>& b, std::size_t span_of_view) {
  constexpr int size = static_cast<int>(sizeof(T));
  if (b.column_stride != 1) return 0;
  for (int bytes = 16; bytes > size; bytes /= 2) {
    const std::int64_t columns = bytes / size, padded = (b.columns + columns - 1) / columns * columns;
    const bool aligned = reinterpret_cast<std::uintptr_t>(b.data) % static_cast<unsigned>(bytes) == 0 &&
                         b.row_stride % columns == 0 && b.row_stride >= padded;
    const bool inside =
        padded == b.columns || static_cast<std::int64_t>(span_of_view) >= (b.rows - 1) * b.row_stride + padded;
    if (aligned && inside) return bytes;
  }
  return size;
}
/// Whether a backend may read B where it lies: SpmmDense's rules.
template <class T>
bool serves_in_place(const Dense<T>& b, std::size_t span_of_view) {
  return word_bytes_in_place(b, span_of_view) == 16;
}

/// C := beta C without reading C for beta == 0 (alpha == 0, or no entries).
template <class T, class Sum>
struct ScaleDense {
  Dense<T> c;
  Sum beta;
  bool along_rows;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t n) const {
    const std::int64_t inner = along_rows ? c.rows : c.columns;
    const std::int64_t slow = n < inner ? 0 : n / inner, fast = n - slow * inner;  // a vector: no division
    T* const target = along_rows ? c.at(fast, slow) : c.at(slow, fast);
    *target = T(beta == Sum(0) ? Sum(0) : beta * widen<Sum>(*target));
  }
};
template <class Sum, class Exec, class T>
void scale_dense(const Exec& space, const char* label, double beta, const Dense<T>& c) {
  if (beta == 1 || c.rows == 0 || c.columns == 0) return;
  Kokkos::parallel_for(label, Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(space, 0, c.rows * c.columns),
                       ScaleDense<T, Sum>{c, static_cast<Sum>(beta), c.columns == 1 || c.row_stride < c.column_stride});
}

}  // namespace Impl
}  // namespace Tessera

#endif
