// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_ADAPTERS_TPETRA_PRODUCT_HPP
#define TESSERA_ADAPTERS_TPETRA_PRODUCT_HPP

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "Tessera_Spmm.hpp"
#include "Tessera_Spmv.hpp"

/// \file
/// A product of one part of a distributed matrix: an SpmvPlan for one column, an SpmmPlan for more, and, where the
/// operator multiplies in a narrower precision than its vectors have, the conversions around an SpmvPlan.

namespace Tessera {
namespace Impl {

/// x scaled by a power of two and rounded to N; and back. FP16 has few exponents: the largest number of a column is
/// brought below 2^15, so that numbers down to 2^-39 of it survive. Other types keep their scale below 1, which keeps
/// double from overflowing float.
template <class Exec, class N>
struct NarrowVector {
  using Memory = typename Exec::memory_space;
  static constexpr int top = std::is_same_v<N, half_t> ? 15 : 0;
  using Largest = Kokkos::View<double*, Memory>;

  /// The exponent e with |largest| 2^e < 2^top; 0 for 0, infinity and NaN.
  KOKKOS_INLINE_FUNCTION static int exponent(double largest) {
    if (!(largest > 0) || largest > 1.7e308) return 0;
    int e = 0;
    frexp(largest, &e);
    return top - e;
  }
  template <class X>
  struct Magnitude {
    X x;
    std::int64_t j;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i, double& largest) const {
      const double v = fabs(static_cast<double>(x(i, j)));
      if (v > largest) largest = v;
    }
  };
  template <class X, class To>
  struct Round {
    X x;
    To to;
    Largest largest;
    std::int64_t rows;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t n) const {
      const std::int64_t j = n / rows, i = n - j * rows;
      to(i, j) = N(static_cast<float>(ldexp(static_cast<double>(x(i, j)), exponent(largest(j)))));
    }
  };
  template <class From, class Y>
  struct Add {
    From from;
    Y y;
    Largest largest;
    double alpha, beta;
    std::int64_t rows;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t n) const {
      using T = typename Y::non_const_value_type;
      const std::int64_t j = n / rows, i = n - j * rows;
      const double v = alpha * ldexp(static_cast<double>(from(i, j)), -exponent(largest(j)));
      y(i, j) = static_cast<T>(beta == 0 ? v : v + beta * static_cast<double>(y(i, j)));
    }
  };
};

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
  /// Null before the first product with several columns.
  const SpmmPlan<Csr>* spmm() const { return spmm_ ? &*spmm_ : nullptr; }

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

  /// Three passes around the product: largest numbers, rounding, and alpha, beta and the scale in the wide type.
  template <class N, class X, class Y>
  void apply_as(const Exec& space, Op op, double alpha, const X& x, double beta, const Y& y) const {
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
    Kokkos::parallel_for("Tessera::tpetra[round]", Kokkos::RangePolicy<Exec>(space, 0, std::int64_t(m * columns)),
                         typename V::template Round<X, From>{x, from, largest_, std::int64_t(m)});
    if (columns == 1) {
      spmv_.apply(space, op, 1.0, Kokkos::subview(from, Kokkos::ALL(), 0), 0.0, Kokkos::subview(to, Kokkos::ALL(), 0));
    } else {
      spmv_.apply(space, op, 1.0, from, 0.0, to);
    }
    Kokkos::parallel_for("Tessera::tpetra[widen]", Kokkos::RangePolicy<Exec>(space, 0, std::int64_t(n * columns)),
                         typename V::template Add<To, Y>{to, y, largest_, alpha, beta, std::int64_t(n)});
  }

  using Bytes = Kokkos::View<char*, Memory>;
  Csr csr_;
  SpmmOptions spmm_options_;
  SpmvPlan<Csr> spmv_;
  mutable std::optional<SpmmPlan<Csr>> spmm_;
  mutable Bytes scratch_;
  mutable Kokkos::View<double*, Memory> largest_;
  Precision precision_ = Precision::FP64;
};

}  // namespace Impl
}  // namespace Tessera

#endif
