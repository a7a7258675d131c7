// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SDDMM_SDDMM_OPERANDS_HPP
#define TESSERA_SDDMM_SDDMM_OPERANDS_HPP

#include <cstdint>
#include <string>
#include <type_traits>

#include "backends/interface/Tessera_CompactB.hpp"
#include "backends/interface/Tessera_KernelTable.hpp"
#include "core/Tessera_DenseOperand.hpp"
#include "core/Tessera_LayoutCopy.hpp"
#include "core/Tessera_PlanScratch.hpp"
#include "core/Tessera_Profile.hpp"

/// \file
/// X, Y and P as kernels get them, whatever Views they came from; what SDDMM requires of them; copies where a backend
/// does not take them where they lie.

namespace Tessera {
namespace Impl {

template <class T>
using SddmmFactor = DenseBatch<const T>;
template <class T>
struct SddmmInput {
  SddmmFactor<T> x, y;                  ///< m x K, n x K
  std::int64_t heads = 1, y_heads = 1;  ///< of X, and of Y, which has to have as many
};
template <class T>
struct SddmmOutput {
  T* data = nullptr;
  std::int64_t nnz = 0, stride = 1, heads = 1, head_stride = 0;
  SddmmSlots slots;  ///< places of their own: one head, stride 1

  /// A row per head.
  Dense<T> matrix() const { return {data, heads, nnz, head_stride, stride}; }
};

template <class X, class Y>
SddmmInput<typename X::non_const_value_type> sddmm_input(const X& x, const Y& y, Op op_y) {
  SddmmInput<typename X::non_const_value_type> in;
  in.x = dense_batch_of(typename X::const_type(x));
  in.y = dense_batch_of(typename Y::const_type(y), op_y != Op::NoTrans);
  if (Compat::view_rank<X> == 3) {
    in.heads = static_cast<std::int64_t>(x.extent(0));
    in.y_heads = static_cast<std::int64_t>(y.extent(0));
  }
  return in;
}
template <class P>
SddmmOutput<typename P::value_type> sddmm_output(const P& p) {
  constexpr bool batch = Compat::view_rank<P> == 2;
  SddmmOutput<typename P::value_type> out;
  out.data = p.data();
  out.nnz = static_cast<std::int64_t>(p.extent(batch ? 1 : 0));
  if (out.nnz > 1) out.stride = static_cast<std::int64_t>(p.stride(batch ? 1 : 0));
  if (batch) {
    out.heads = static_cast<std::int64_t>(p.extent(0));
    out.head_stride = out.heads > 1 ? static_cast<std::int64_t>(p.stride(0)) : out.nnz;
  }
  return out;
}

template <class T>
struct ClearSlots {
  SddmmOutput<T> p;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t entry) const { p.data[p.slots(entry)] = T(0.0f); }
};
/// The results of a product of nothing, at places of their own.
template <class Exec, class T>
void clear_slots(const Exec& space, const SddmmOutput<T>& p) {
  Kokkos::parallel_for("Tessera::sddmm[clear]",
                       Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(space, 0, p.nnz), ClearSlots<T>{p});
}

template <class Csr, class X, class Y, class P>
constexpr void check_sddmm_views() {
  static_assert(Compat::is_view_v<X> && Compat::is_view_v<Y> && Compat::is_view_v<P>,
                "Tessera::sddmm: X, Y and P must be Kokkos Views");
  static_assert((Compat::view_rank<X> == 2 && Compat::view_rank<Y> == 2 && Compat::view_rank<P> == 1) ||
                    (Compat::view_rank<X> == 3 && Compat::view_rank<Y> == 3 && Compat::view_rank<P> == 2),
                "Tessera::sddmm: X and Y must have rank 2 and P rank 1, or one more each for a batch of heads");
  static_assert(std::is_same_v<typename X::non_const_value_type, typename Y::non_const_value_type>,
                "Tessera::sddmm: X and Y must have elements of one type");
  static_assert(ScalarTraits<typename X::non_const_value_type>::supported &&
                    ScalarTraits<typename P::non_const_value_type>::supported,
                "Tessera::sddmm: X, Y and P must hold double, float, Tessera::half_t or Tessera::bhalf_t");
  static_assert(!std::is_const_v<typename P::value_type>,
                "Tessera::sddmm: P is written, its elements must not be const");
  using Exec = typename Csr::execution_space;
  static_assert(Kokkos::SpaceAccessibility<Exec, typename X::memory_space>::accessible &&
                    Kokkos::SpaceAccessibility<Exec, typename Y::memory_space>::accessible &&
                    Kokkos::SpaceAccessibility<Exec, typename P::memory_space>::accessible,
                "Tessera::sddmm: X, Y and P must be accessible from the pattern's execution space");
}

/// Whether P shares elements with a factor; heads as rows of one matrix, which is exact for contiguous heads.
template <class T, class U>
bool sddmm_overlap(const SddmmFactor<T>& f, std::int64_t heads, const SddmmOutput<U>& p) {
  for (std::int64_t h = 0; h < heads; ++h) {
    if (overlap(f.head(h), p.matrix())) return true;
  }
  return false;
}

/// @throw DimensionMismatch, InvalidArgument
template <class Csr, class T, class U>
void check_sddmm_extents(const Csr& S, const SddmmInput<T>& in, const SddmmOutput<U>& out) {
  const auto rows = static_cast<std::int64_t>(S.rows()), cols = static_cast<std::int64_t>(S.cols());
  const auto nnz = static_cast<std::int64_t>(S.nnz());
  const Dense<const T>&x = in.x.matrix, &y = in.y.matrix;
  const bool fits = x.rows == rows && y.rows == cols && x.columns == y.columns && out.nnz == nnz &&
                    out.heads == in.heads && in.y_heads == in.heads;
  require<DimensionMismatch>(fits, [&] {
    const auto size = [](std::int64_t m, std::int64_t n) { return std::to_string(m) + " x " + std::to_string(n); };
    return "sddmm: the pattern is " + size(rows, cols) + " with " + std::to_string(nnz) + " entries, X is " +
           size(x.rows, x.columns) + ", Y is " + size(y.rows, y.columns) + ", P has " + std::to_string(out.nnz) +
           " numbers; " + std::to_string(in.heads) + " heads of X, " + std::to_string(in.y_heads) + " of Y, " +
           std::to_string(out.heads) + " of P";
  });
  require_memory("sddmm", "X", x.data, in.heads != 0 && span_of(x) != 0);
  require_memory("sddmm", "Y", y.data, in.heads != 0 && span_of(y) != 0);
  require_memory("sddmm", "P", out.data, in.heads != 0 && nnz != 0);
  require<InvalidArgument>(!sddmm_overlap(in.x, in.heads, out) && !sddmm_overlap(in.y, in.heads, out),
                           [] { return std::string("sddmm: P must not overlap X or Y"); });
}

/// @throw NotSupported
template <class T, class PT>
void check_sddmm_types(const char* algorithm, Precision precision) {
  check_backend_types<T, PT>("sddmm", algorithm, precision, "X and Y", "P",
                             "SddmmAlgorithm::Rows in the matrix's own precision");
}

/// The widest words, of sixteen, eight or four bytes or of an element, of which rows are whole numbers and at whose
/// multiples they begin, in every head. 0: rows are not contiguous, or lie 2^31 bytes apart.
template <class T>
int sddmm_word_bytes(const SddmmFactor<T>& f) {
  constexpr int size = static_cast<int>(sizeof(T));
  if (f.matrix.column_stride != 1 || f.matrix.row_stride * size >= (std::int64_t{1} << 31)) return 0;
  for (int bytes = 16; bytes > size; bytes /= 2) {
    const std::int64_t elements = bytes / size;
    if (reinterpret_cast<std::uintptr_t>(f.matrix.data) % static_cast<unsigned>(bytes) == 0 &&
        f.matrix.columns % elements == 0 && f.matrix.row_stride % elements == 0 && f.head_stride % elements == 0) {
      return bytes;
    }
  }
  return size;
}
/// Whether rows are whole words of sixteen bytes.
template <class T>
bool sddmm_in_place(const SddmmFactor<T>& f) {
  return sddmm_word_bytes(f) == 16;
}
/// Words of sixteen bytes of a row.
template <class T>
constexpr std::int64_t sddmm_words(std::int64_t inner) {
  return Dense<T>::padded(inner) * static_cast<std::int64_t>(sizeof(T)) / 16;
}

/// What one head needs at most for copies, whatever the layouts.
inline std::size_t sddmm_operand_bytes(Precision precision, std::int64_t rows, std::int64_t cols, std::int64_t nnz,
                                       std::int64_t inner) {
  const std::int64_t row = (inner * bytes_of(precision) + 15) / 16 * 16;
  return ScratchLayout::rounded(static_cast<std::size_t>(rows * row)) +
         ScratchLayout::rounded(static_cast<std::size_t>(cols * row)) +
         ScratchLayout::rounded(static_cast<std::size_t>(nnz * sum_bytes_of(precision)));
}

/// Enqueues the copies and launch(dense, stream), which enqueues the kernel. copy_y: the kernel gets room for a copy of
/// Y in TF32, unless a caller's workspace has none. word_bytes: contiguous rows are whole words of so many bytes, in
/// which the kernel reads them; fewer than sixteen: where they lie. @throw NotSupported, WorkspaceTooSmall, DeviceError
template <class Exec, class Memory, class T, class PT, class Launch>
void launch_sddmm(const Exec& space, const PlanScratch<Exec, Memory>& scratch, const KernelName& name, double alpha,
                  const SddmmInput<T>& in, double beta, const SddmmOutput<PT>& out, const Launch& launch,
                  bool copy_y = false, int word_bytes = 16) {
  using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const bool pack_x = sddmm_word_bytes(in.x) < word_bytes, pack_y = sddmm_word_bytes(in.y) < word_bytes;
  const bool through_sums = out.stride != 1;
  const std::int64_t ld = Dense<T>::padded(in.x.matrix.columns);
  require<NotSupported>(ld * static_cast<std::int64_t>(sizeof(T)) < std::int64_t{1} << 31, [&] {
    return "sddmm: rows of X and Y have " + std::to_string(in.x.matrix.columns) +
           " elements; backends take less than 2^31 bytes per row: use Backend::Kokkos";
  });
  T *x = nullptr, *y = nullptr;
  Dense<Sum> sums{nullptr, out.heads, out.nnz, out.nnz, 1};
  const auto lay_out = [&](ScratchLayout&& layout) {
    x = layout.take<T>(pack_x ? in.heads * in.x.matrix.rows * ld : 0);
    y = layout.take<T>(pack_y ? in.heads * in.y.matrix.rows * ld : 0);
    sums.data = layout.take<Sum>(through_sums ? out.heads * out.nnz : 0);
    return layout;
  };
  const std::size_t bytes = lay_out(ScratchLayout()).bytes();
  std::int64_t copied = copy_y ? CompactCopy::bytes(in.heads * in.y.matrix.rows, in.y.matrix.columns) : 0;
  const std::size_t more = ScratchLayout::rounded(static_cast<std::size_t>(copied));
  if (!scratch.offers(bytes + more)) copied = 0;
  ScratchLayout layout = lay_out(ScratchLayout(scratch.reserve(space, bytes + (copied > 0 ? more : 0))));
  void* const compact = layout.take<char>(copied);

  SddmmDense dense;
  const auto place = [&](const SddmmFactor<T>& f, bool pack, T* to, const char* label, const void*& data,
                         std::int64_t& row, std::int64_t& head) {
    data = f.matrix.data;
    row = f.matrix.row_stride;
    head = f.head_stride;
    if (!pack) return;
    data = to;
    row = ld;
    head = f.matrix.rows * ld;
    for (std::int64_t h = 0; h < in.heads; ++h) {
      copy_layout(space, label, f.head(h), Sum(0), Dense<T>{to + h * head, f.matrix.rows, ld, ld, 1});
    }
  };
  place(in.x, pack_x, x, "Tessera::sddmm[pack X]", dense.x, dense.ldx, dense.x_head);
  place(in.y, pack_y, y, "Tessera::sddmm[pack Y]", dense.y, dense.ldy, dense.y_head);
  dense.words = sddmm_words<T>(in.x.matrix.columns);
  if (word_bytes < 16) dense.words = in.x.matrix.columns * static_cast<std::int64_t>(sizeof(T)) / word_bytes;
  dense.word_bytes = word_bytes;
  dense.heads = in.heads;
  dense.slots = out.slots;
  dense.compact = compact;
  dense.p = through_sums ? static_cast<void*>(sums.data) : static_cast<void*>(out.data);
  dense.p_head = through_sums ? out.nnz : out.head_stride;
  dense.p_type = through_sums ? ScalarTraits<Sum>::element : ScalarTraits<PT>::element;
  dense.alpha = alpha;
  dense.beta = through_sums ? 0 : beta;
  run_on_backend(space, name, [&](Stream stream) { return launch(dense, stream); });
  if (through_sums) {
    const Dense<const Sum> from{sums.data, sums.rows, sums.columns, sums.row_stride, 1};
    copy_layout(space, "Tessera::sddmm[add to P]", from, static_cast<Sum>(beta), out.matrix());
  }
}

}  // namespace Impl
}  // namespace Tessera

#endif
