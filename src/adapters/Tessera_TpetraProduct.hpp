// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_ADAPTERS_TPETRA_PRODUCT_HPP
#define TESSERA_ADAPTERS_TPETRA_PRODUCT_HPP

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "Tessera_Spmm.hpp"
#include "Tessera_Spmv.hpp"
#include "adapters/Tessera_TpetraNarrow.hpp"

/// \file
/// A product of one part of a distributed matrix: an SpmvPlan for one column, an SpmmPlan for more, and, where the
/// operator multiplies in a narrower precision than its vectors have, the conversions around an SpmvPlan (hosts: in
/// FP32, an SpmmPlan for four columns or more).

namespace Tessera {
namespace Impl {

/// Products with one CsrView. X and Y are rank-2 Views in columns (Tpetra's multivectors).
template <class Csr>
class TpetraProduct {
 public:
  using Exec = typename Csr::execution_space;
  using Memory = typename Csr::memory_space;
  using Scalar = typename Csr::value_type;

  /// @param spmm  its prepare_transpose is that of `spmv`
  TpetraProduct(const Exec& space, const Csr& A, const SpmvOptions& spmv, const SpmmOptions& spmm)
      : csr_(A), spmm_options_(spmm), spmv_(space, A, spmv) {
    spmm_options_.prepare_transpose = spmv.prepare_transpose;
    spmm_options_.updatable = spmv.updatable;
    precision_ = precision_of(spmv.compute, ScalarTraits<Scalar>::precision);
  }

  bool narrow() const { return precision_ != ScalarTraits<Scalar>::precision; }
  const SpmvPlan<Csr>& spmv() const { return spmv_; }

  /// Y := alpha op(A) X + beta Y.
  template <class X, class Y>
  void apply(const Exec& space, Op op, double alpha, const X& x, double beta, const Y& y) const {
    if (narrow()) return apply_narrow(space, op, alpha, x, beta, y);
    if (x.extent(1) == 1) {
      spmv_.apply(space, op, alpha, Kokkos::subview(x, Kokkos::ALL(), 0), beta, Kokkos::subview(y, Kokkos::ALL(), 0));
      return;
    }
    if (!spmm_) {
      SpmmOptions options = spmm_options_;
      options.num_columns_hint = static_cast<int>(x.extent(1));
      spmm_.emplace(space, csr_, options);
    }
    spmm_->apply(space, op, alpha, x, beta, y);
  }

  void update(const Exec& space, const Csr& A) {
    csr_ = A;
    spmv_.update_values(space, A.values());
    if (spmm_) spmm_->update_values(space, A.values());
    if (floats_) floats_->update(space, A);
  }

 private:
  template <class X, class Y>
  void apply_narrow(const Exec& space, Op op, double alpha, const X& x, double beta, const Y& y) const {
    switch (precision_) {
      case Precision::FP32:
        return apply_as<float>(space, op, alpha, x, beta, y);
      case Precision::FP16:
        return apply_as<half_t>(space, op, alpha, x, beta, y);
      case Precision::BF16:
        return apply_as<bhalf_t>(space, op, alpha, x, beta, y);
      default:
        throw NotSupported("an operator of " + std::string(to_string(ScalarTraits<Scalar>::precision)) +
                           " does not multiply in " + to_string(precision_));
    }
  }

  template <class N, class X, class Y>
  void apply_as(const Exec& space, Op op, double alpha, const X& x, double beta, const Y& y) const {
    if constexpr (Compat::is_host_v<Exec>) {
      apply_on_host<N>(space, op, alpha, x, beta, y);
    } else {
      apply_on_device<N>(space, op, alpha, x, beta, y);
    }
  }

  /// Three passes around the product: largest numbers, rounding, and alpha, beta and the scale in the wide type.
  template <class N, class X, class Y>
  void apply_on_device(const Exec& space, Op op, double alpha, const X& x, double beta, const Y& y) const {
    using V = NarrowVector<Exec, N>;
    using From = Kokkos::View<N**, Kokkos::LayoutLeft, Memory, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
    using To = Kokkos::View<float**, Kokkos::LayoutLeft, Memory, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
    const std::size_t columns = x.extent(1), m = x.extent(0), n = y.extent(0);
    const std::size_t padded = (m * columns * sizeof(N) + 15) / 16 * 16;
    const std::size_t bytes = padded + n * columns * sizeof(float);
    if (scratch_.extent(0) < bytes) scratch_ = Compat::allocate<Bytes>(space, "Tessera::tpetra::narrow", bytes);
    if (largest_.extent(0) < columns) largest_ = typename V::Largest("Tessera::tpetra::largest", columns);
    const From from(reinterpret_cast<N*>(scratch_.data()), m, columns);
    const To to(reinterpret_cast<float*>(scratch_.data() + padded), n, columns);
    for (std::size_t j = 0; j < columns; ++j) {
      const Kokkos::View<double, Memory, Kokkos::MemoryTraits<Kokkos::Unmanaged>> result(largest_.data() + j);
      Kokkos::parallel_reduce("Tessera::tpetra[largest]", Kokkos::RangePolicy<Exec>(space, 0, std::int64_t(m)),
                              typename V::template Magnitude<X>{x, std::int64_t(j)},
                              Kokkos::Max<double, Memory>(result));
    }
    Kokkos::parallel_for(
        "Tessera::tpetra[round]",
        Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(space, 0, std::int64_t(m * columns)),
        typename V::template Round<X, From>{x, from, largest_, std::int64_t(m)});
    if (columns == 1) {
      spmv_.apply(space, op, 1.0, Kokkos::subview(from, Kokkos::ALL(), 0), 0.0, Kokkos::subview(to, Kokkos::ALL(), 0));
    } else {
      spmv_.apply(space, op, 1.0, from, 0.0, to);
    }
    Kokkos::parallel_for(
        "Tessera::tpetra[widen]",
        Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(space, 0, std::int64_t(n * columns)),
        typename V::template Add<To, Y>{to, y, largest_, alpha, beta, std::int64_t(n)});
  }

  /// The same with the loops of hosts. Four columns or more become rows in FP32, which SpMM reads several times faster.
  template <class N, class X, class Y>
  void apply_on_host(const Exec& space, Op op, double alpha, const X& x, double beta, const Y& y) const {
    using Unmanaged = Kokkos::MemoryTraits<Kokkos::Unmanaged>;
    const Dense<const Scalar> in = dense_of(typename X::const_type(x));
    const Dense<Scalar> out = dense_of(y);
    const bool rows = std::is_same_v<N, float> && in.columns >= 4;  // what fills a vector
    const std::int64_t row = rows ? Dense<float>::padded(in.columns) : 1;
    Dense<N> from{nullptr, in.rows, in.columns, row, rows ? 1 : in.rows};
    Dense<float> to{nullptr, out.rows, out.columns, row, rows ? 1 : out.rows};
    const std::size_t from_bytes = ScratchLayout::rounded(static_cast<std::size_t>(span_of(from)) * sizeof(N));
    const std::size_t bytes = from_bytes + static_cast<std::size_t>(span_of(to)) * sizeof(float);
    if (scratch_.extent(0) < bytes) scratch_ = Compat::allocate<Bytes>(space, "Tessera::tpetra::narrow", bytes);
    from.data = reinterpret_cast<N*>(scratch_.data());
    to.data = reinterpret_cast<float*>(scratch_.data() + from_bytes);
    const Dense<const float> sums{to.data, to.rows, to.columns, to.row_stride, to.column_stride};
    scales_.round(space, in, from);
    if constexpr (std::is_same_v<N, float>) {
      if (rows) {
        if (!floats_) floats_ = std::make_unique<FloatSpmm<Csr>>(space, csr_, spmm_options_, in.columns);
        floats_->apply(space, op, from, to);
        return scales_.widen(space, alpha, sums, beta, out);
      }
    }
    const Kokkos::View<N**, Kokkos::LayoutLeft, Memory, Unmanaged> left(from.data, x.extent(0), x.extent(1));
    const Kokkos::View<float**, Kokkos::LayoutLeft, Memory, Unmanaged> result(to.data, y.extent(0), y.extent(1));
    spmv_.apply(space, op, 1.0, left, 0.0, result);
    scales_.widen(space, alpha, sums, beta, out);
  }

  using Bytes = Kokkos::View<char*, Memory>;
  Csr csr_;
  SpmmOptions spmm_options_;
  SpmvPlan<Csr> spmv_;
  mutable std::optional<SpmmPlan<Csr>> spmm_;
  mutable std::unique_ptr<FloatSpmm<Csr>> floats_;  ///< hosts: four columns or more in FP32
  mutable HostScales<Exec> scales_;
  mutable Bytes scratch_;
  mutable Kokkos::View<double*, Memory> largest_;
  Precision precision_ = Precision::FP64;
};

}  // namespace Impl
}  // namespace Tessera

#endif
