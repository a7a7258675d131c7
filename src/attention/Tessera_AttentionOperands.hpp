// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_ATTENTION_ATTENTION_OPERANDS_HPP
#define TESSERA_ATTENTION_ATTENTION_OPERANDS_HPP

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <type_traits>

#include "attention/Tessera_AttentionOptions.hpp"
#include "backends/interface/Tessera_AttentionKernels.hpp"
#include "core/Tessera_DenseOperand.hpp"
#include "core/Tessera_LayoutCopy.hpp"
#include "core/Tessera_Pattern.hpp"
#include "core/Tessera_PlanScratch.hpp"
#include "core/Tessera_RowCopies.hpp"

/// \file
/// Q, K, V, O and what belongs to their rows and entries, as kernels get them, whatever Views they came from; what
/// attention requires of them.

namespace Tessera {
namespace Impl {

/// In which type softmax and sums are.
template <class T>
using AttentionSum = AccumulatorOf<T, T, T>;

/// A number per row or entry and head.
template <class T>
struct BatchVector {
  T* data = nullptr;
  std::int64_t size = 0, stride = 1, head_stride = 0;

  KOKKOS_FORCEINLINE_FUNCTION T& operator()(std::int64_t head, std::int64_t i) const {
    return data[head * head_stride + i * stride];
  }
  /// A row per head.
  Dense<T> matrix(std::int64_t heads) const { return {data, heads, size, head_stride, stride}; }
};
/// Of a View of rank 1, or 2 with heads first.
template <class V>
BatchVector<typename V::value_type> batch_vector_of(const V& v) {
  constexpr bool batch = Compat::view_rank<V> == 2;
  BatchVector<typename V::value_type> b;
  b.data = v.data();
  b.size = static_cast<std::int64_t>(v.extent(batch ? 1 : 0));
  if (b.size > 1) b.stride = static_cast<std::int64_t>(v.stride(batch ? 1 : 0));
  if (batch && v.extent(0) > 1) b.head_stride = static_cast<std::int64_t>(v.stride(0));
  return b;
}

template <class T>
struct AttentionInput {
  DenseBatch<const T> q, k, v;  ///< m x d, n x d, n x e
  std::int64_t heads = 1;
};
template <class T>
struct AttentionOutput {
  DenseBatch<T> o;                     ///< m x e
  BatchVector<AttentionSum<T>> lse{};  ///< data null: not wanted
};
template <class T>
struct AttentionGradients {
  DenseBatch<const T> o, d_o;
  BatchVector<const AttentionSum<T>> lse;
  DenseBatch<T> d_q, d_k, d_v;
  BatchVector<T> d_values{};  ///< data null: not wanted
};

/// What a score is made of besides its inner product.
template <class T>
struct AttentionScores {
  using Sum = AttentionSum<T>;
  const T* values;
  AttentionValues kind;
  Sum scale;
  /// A score that masks. A member, since functions of numeric_limits are not for devices; read by value.
  static constexpr Sum none = -std::numeric_limits<Sum>::infinity();

  /// Nothing of a masked entry is read.
  KOKKOS_FORCEINLINE_FUNCTION bool masked(std::int64_t entry) const {
    return kind == AttentionValues::Bias && widen<Sum>(values[entry]) == none;
  }
  /// What the inner product is multiplied by.
  KOKKOS_FORCEINLINE_FUNCTION Sum factor(std::int64_t entry) const {
    return kind == AttentionValues::Scale ? scale * widen<Sum>(values[entry]) : scale;
  }
  KOKKOS_FORCEINLINE_FUNCTION Sum operator()(Sum product, std::int64_t entry) const {
    const Sum score = factor(entry) * product;
    return kind == AttentionValues::Bias ? score + widen<Sum>(values[entry]) : score;
  }
  /// Derivative by the entry's value, from that by the score.
  KOKKOS_FORCEINLINE_FUNCTION Sum by_value(Sum d_score, Sum product) const {
    return kind == AttentionValues::Scale ? d_score * scale * product : d_score;
  }
};

template <class V>
constexpr std::int64_t heads_of(const V& v) {
  return Compat::view_rank<V> == 3 ? static_cast<std::int64_t>(v.extent(0)) : 1;
}

/// Views: dense operands of one rank and type, which the matrix's space can reach.
template <class Csr, class Q, class... Views>
constexpr void check_attention_views() {
  using T = typename Csr::value_type;
  using Exec = typename Csr::execution_space;
  static_assert(Compat::is_view_v<Q> && (Compat::is_view_v<Views> && ...),
                "Tessera::attention: Q, K, V, O and their gradients must be Kokkos Views");
  static_assert((Compat::view_rank<Q> == 2 || Compat::view_rank<Q> == 3) &&
                    ((Compat::view_rank<Views> == Compat::view_rank<Q>)&&...),
                "Tessera::attention: Q, K, V, O and their gradients must have rank 2, or all rank 3, heads first");
  static_assert(std::is_same_v<typename Q::non_const_value_type, T> &&
                    (std::is_same_v<typename Views::non_const_value_type, T> && ...),
                "Tessera::attention: Q, K, V, O and their gradients must have elements of the matrix's type");
  static_assert(Kokkos::SpaceAccessibility<Exec, typename Q::memory_space>::accessible &&
                    (Kokkos::SpaceAccessibility<Exec, typename Views::memory_space>::accessible && ...),
                "Tessera::attention: Q, K, V, O and their gradients must be accessible from the matrix's space");
}
/// Vectors beside them, of T.
template <class Csr, class Q, class T, class... Vectors>
constexpr void check_attention_vectors() {
  static_assert((Compat::is_view_v<Vectors> && ...) && ((Compat::view_rank<Vectors> + 1 == Compat::view_rank<Q>)&&...),
                "Tessera::attention: numbers per row or entry must be Kokkos Views of one rank less than Q");
  static_assert((std::is_same_v<typename Vectors::non_const_value_type, T> && ...),
                "Tessera::attention: the log-sum-exp must be double if the matrix is, else float; gradients of values "
                "must have the matrix's type");
  static_assert(
      (Kokkos::SpaceAccessibility<typename Csr::execution_space, typename Vectors::memory_space>::accessible && ...),
      "Tessera::attention: numbers per row or entry must be accessible from the matrix's space");
}

inline std::string size_text(std::int64_t rows, std::int64_t columns) {
  return std::to_string(rows) + " x " + std::to_string(columns);
}
/// @throw DimensionMismatch, InvalidArgument
template <class T>
void require_size(const char* name, const DenseBatch<T>& d, std::int64_t rows, std::int64_t columns, std::int64_t heads,
                  std::int64_t wanted_heads) {
  require<DimensionMismatch>(d.matrix.rows == rows && d.matrix.columns == columns && heads == wanted_heads, [&] {
    return std::string("attention: ") + name + " is " + size_text(d.matrix.rows, d.matrix.columns) + " with " +
           std::to_string(heads) + " heads, it must be " + size_text(rows, columns) + " with " +
           std::to_string(wanted_heads);
  });
  require_memory("attention", name, d.matrix.data, heads != 0 && span_of(d.matrix) != 0);
}
template <class T>
void require_size(const char* operation, const char* name, const BatchVector<T>& v, std::int64_t size,
                  std::int64_t heads, std::int64_t wanted_heads) {
  require<DimensionMismatch>(v.size == size && heads == wanted_heads, [&] {
    return std::string(operation) + ": " + name + " has " + std::to_string(v.size) + " numbers for each of " +
           std::to_string(heads) + " heads, it must have " + std::to_string(size) + " for each of " +
           std::to_string(wanted_heads);
  });
  require_memory(operation, name, v.data, heads != 0 && size != 0);
}

/// A batch as bytes from its first to its last element.
template <class T>
struct BatchRange {
  const DenseBatch<T>& batch;
  std::int64_t heads;
  std::uintptr_t begin() const { return reinterpret_cast<std::uintptr_t>(batch.matrix.data); }
  std::uintptr_t end() const {
    const std::int64_t span = heads > 0 ? span_of(batch.matrix) : 0;
    return begin() + sizeof(T) * static_cast<std::uintptr_t>(span > 0 ? span + (heads - 1) * batch.head_stride : 0);
  }
};
/// Whether an element belongs to both. Head by head only where their ranges meet.
template <class T, class U>
bool overlap(const DenseBatch<T>& a, const DenseBatch<U>& b, std::int64_t heads) {
  const BatchRange<T> x{a, heads};
  const BatchRange<U> y{b, heads};
  if (x.end() <= y.begin() || y.end() <= x.begin()) return false;
  for (std::int64_t i = 0; i < heads; ++i) {
    for (std::int64_t j = 0; j < heads; ++j) {
      if (overlap(a.head(i), b.head(j))) return true;
    }
  }
  return false;
}
/// @throw InvalidArgument
template <class T, class U>
void require_apart(const char* names, const DenseBatch<T>& a, const DenseBatch<U>& b, std::int64_t heads) {
  require<InvalidArgument>(!overlap(a, b, heads), [&] { return std::string("attention: ") + names + " overlap"; });
}
/// A vector per head, apart from dense operands. @throw InvalidArgument
template <class T, class... Operands>
void require_apart_from(const char* name, const BatchVector<T>& v, std::int64_t heads, const Operands&... operands) {
  const Dense<T> all = v.matrix(heads);
  const auto meets = [&](const auto& d) {
    for (std::int64_t h = 0; h < heads; ++h) {
      if (overlap(d.head(h), all)) return true;
    }
    return false;
  };
  require<InvalidArgument>(!(meets(operands) || ...),
                           [&] { return std::string("attention: ") + name + " overlaps a dense operand"; });
}
/// Two vectors per head. @throw InvalidArgument
template <class T, class U>
void require_apart(const char* operation, const char* names, const BatchVector<T>& a, const BatchVector<U>& b,
                   std::int64_t heads) {
  require<InvalidArgument>(!overlap(a.matrix(heads), b.matrix(heads)),
                           [&] { return std::string(operation) + ": " + names + " overlap"; });
}
/// Whether they are one and the same.
template <class T, class U>
bool same_vectors(const BatchVector<T>& a, const BatchVector<U>& b) {
  return std::is_same_v<std::remove_const_t<T>, std::remove_const_t<U>> &&
         static_cast<const void*>(a.data) == static_cast<const void*>(b.data) && a.size == b.size &&
         a.stride == b.stride && a.head_stride == b.head_stride;
}
/// @throw InvalidArgument
template <class T>
void require_gradients_apart(const AttentionInput<T>& in, const AttentionGradients<T>& g) {
  const auto apart_from_inputs = [&](const char* name, const DenseBatch<T>& d) {
    const std::string with = std::string(name) + " and an operand that is read";
    for (const DenseBatch<const T>* read : {&in.q, &in.k, &in.v, &g.o, &g.d_o}) {
      require_apart(with.c_str(), d, *read, in.heads);
    }
    require_apart_from("the log-sum-exp", g.lse, in.heads, d);
  };
  apart_from_inputs("dQ", g.d_q);
  apart_from_inputs("dK", g.d_k);
  apart_from_inputs("dV", g.d_v);
  require_apart("dQ and dK", g.d_q, g.d_k, in.heads);
  require_apart("dQ and dV", g.d_q, g.d_v, in.heads);
  require_apart("dK and dV", g.d_k, g.d_v, in.heads);
}

/// What kernels ask of rows of dense operands: whole words of sixteen bytes, from a multiple of sixteen bytes on, or
/// nothing (unit = 1). Copies of others have zeros in what their last word has beyond the row.
struct RowsWanted {
  std::int64_t unit = 1;  ///< columns are whole multiples of it

  constexpr std::int64_t columns(std::int64_t n) const { return (n + unit - 1) / unit * unit; }
};
template <class T>
constexpr RowsWanted rows_of_whole_words{16 / static_cast<std::int64_t>(sizeof(T))};

/// Operands whose rows lie side by side: those that do, and copies in scratch of those that do not. `lay_out` is called
/// twice, as ScratchLayout is.
/// Words: rows are as `wanted` as well, and less than 2^30 elements apart (FP64: 2^29). Copies of contiguous rows are
/// made by `together`, in one launch for all operands and heads; others take one launch each and per head.
template <class T, bool Words = false>
struct ContiguousRows {
  using Element = std::remove_const_t<T>;
  static constexpr int most_copies = 5;  ///< of one launch
  using Together = RowCopies<std::is_const_v<T>, most_copies>;
  RowsWanted wanted{};
  Together together{};

  bool packs(const DenseBatch<T>& d) const {
    if (d.matrix.column_stride != 1) return true;
    if (!Words) return false;
    const auto strides = static_cast<std::uintptr_t>(d.matrix.row_stride | d.head_stride) * sizeof(T);
    const std::uintptr_t begins = reinterpret_cast<std::uintptr_t>(d.matrix.data) | strides;
    return begins % 16 != 0 || d.matrix.columns % wanted.unit != 0 ||
           d.matrix.row_stride >= std::int64_t{1} << (sizeof(T) == 8 ? 29 : 30);
  }
  /// Where the copy goes, and the copy as an operand.
  DenseBatch<Element> place(ScratchLayout& layout, const DenseBatch<T>& from, std::int64_t heads) const {
    const Dense<T>& d = from.matrix;
    const std::int64_t columns = wanted.columns(d.columns), row = Dense<T>::padded(columns);
    Element* const data = packs(from) ? layout.take<Element>(heads * d.rows * row) : nullptr;
    return {Dense<Element>{data, d.rows, columns, row, 1}, d.rows * row};
  }
  /// The operand to read: `from`, or its copy, which is there after run().
  template <class Exec>
  DenseBatch<const T> read(const Exec& space, const char* label, const DenseBatch<T>& from,
                           const DenseBatch<Element>& copy, std::int64_t heads) {
    if (!packs(from)) return {plain(from.matrix), from.head_stride};
    if (Words && from.matrix.column_stride == 1) {
      together.add(from, copy, heads);
    } else {
      for (std::int64_t h = 0; h < heads; ++h)
        copy_layout(space, label, from.head(h), AttentionSum<Element>(0), copy.head(h));
    }
    return {plain(copy.matrix), copy.head_stride};
  }
  /// The operand to write: `to`, or its copy, which `finish` and run() bring there.
  DenseBatch<T> write(const DenseBatch<T>& to, const DenseBatch<T>& copy) const { return packs(to) ? copy : to; }
  template <class Exec>
  void finish(const Exec& space, const char* label, const DenseBatch<T>& to, const DenseBatch<T>& copy,
              std::int64_t heads) {
    if (!packs(to)) return;
    if (Words && to.matrix.column_stride == 1) return together.add(to, copy, heads);
    for (std::int64_t h = 0; h < heads; ++h) {
      Dense<T> from = copy.head(h);
      from.columns = to.matrix.columns;
      copy_layout(space, label, from, AttentionSum<T>(0), to.head(h));
    }
  }
  template <class Exec>
  void run(const Exec& space, const char* label) const {
    if constexpr (Words) together.run(space, label);
  }

 private:
  template <class U>
  static Dense<const T> plain(const Dense<U>& d) {
    return {d.data, d.rows, d.columns, d.row_stride, d.column_stride};
  }
};

}  // namespace Impl
}  // namespace Tessera

#endif
