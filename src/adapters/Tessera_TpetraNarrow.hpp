// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_ADAPTERS_TPETRA_NARROW_HPP
#define TESSERA_ADAPTERS_TPETRA_NARROW_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "Tessera_Spmm.hpp"

/// \file
/// Vectors of an operator that multiplies in a narrower precision than theirs: scaled by a power of two per column,
/// rounded, and results brought back.

namespace Tessera {
namespace Impl {

/// Devices: x scaled by a power of two and rounded to N; and back. FP16 has few exponents: the largest number of a
/// column is brought below 2^15, so that numbers down to 2^-39 of it survive. Other types keep their scale below 1,
/// which keeps double from overflowing float.
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

/// Hosts: the same numbers, in blocks of rows, with the scale of a column as factors instead of a call per number, and
/// largest numbers of all columns found at once.
template <class Exec>
class HostScales {
 public:
  /// to := x scaled and rounded. Two passes over x.
  template <class T, class N>
  void round(const Exec& space, const Dense<const T>& x, const Dense<N>& to) {
    const std::int64_t blocks = (x.rows + block - 1) / block;
    factors_.assign(static_cast<std::size_t>(x.columns), Factors{});
    largest_.assign(static_cast<std::size_t>(blocks * x.columns), 0.0);
    if (blocks == 0) return;
    double* const largest = largest_.data();
    for_blocks("Tessera::tpetra[largest]", space, blocks, x.rows * x.columns, [=](const std::int64_t b) {
      for (std::int64_t j = 0; j < x.columns; ++j) largest[j * blocks + b] = largest_of(x, b, j);
    });
    for (std::int64_t j = 0; j < x.columns; ++j) {
      const double most = *std::max_element(largest + j * blocks, largest + (j + 1) * blocks);
      factors_[static_cast<std::size_t>(j)] = Factors(NarrowVector<Exec, N>::exponent(most));
    }
    const Factors* const factors = factors_.data();
    for_blocks("Tessera::tpetra[round]", space, blocks, x.rows * x.columns,
               [=, f16c = host_has_f16c()](const std::int64_t b) {
                 each(b, x, [&](std::int64_t i, std::int64_t j, int count) {
                   const T* const from = x.at(i, j);
                   N* const out = to.at(i, j);
                   const Factors f = factors[j];
                   if (x.row_stride == 1 && to.row_stride == 1) {
                     if (f16c) {
                       for (int k = 0; k < count; ++k) out[k] = rounded<N, 32>(f.scaled(from[k]));
                     } else {
                       for (int k = 0; k < count; ++k) out[k] = rounded<N, 16>(f.scaled(from[k]));
                     }
                   } else {
                     for (int k = 0; k < count; ++k)
                       out[k * to.row_stride] = rounded<N, 16>(f.scaled(from[k * x.row_stride]));
                   }
                 });
               });
  }

  /// y := alpha (from / scale) + beta y, in double.
  template <class T>
  void widen(const Exec& space, double alpha, const Dense<const float>& from, double beta, const Dense<T>& y) const {
    const std::int64_t blocks = (y.rows + block - 1) / block;
    if (blocks == 0) return;
    const Factors* const factors = factors_.data();
    for_blocks("Tessera::tpetra[widen]", space, blocks, y.rows * y.columns, [=](const std::int64_t b) {
      each(b, y, [&](std::int64_t i, std::int64_t j, int count) {
        const float* const sum = from.at(i, j);
        T* const to = y.at(i, j);
        const Factors f = factors[j];
        const std::int64_t step = from.row_stride, to_step = y.row_stride;
        const auto number = [&](int k) { return alpha * f.unscaled(sum[k * step]); };
        if (beta == 0) {
          for (int k = 0; k < count; ++k) to[k * to_step] = static_cast<T>(number(k));
        } else {
          for (int k = 0; k < count; ++k) {
            to[k * to_step] = static_cast<T>(number(k) + beta * static_cast<double>(to[k * to_step]));
          }
        }
      });
    });
  }

 private:
  static constexpr std::int64_t block = 2048;  ///< rows

  /// Rows at a time, whose lines of a narrow operand in rows stay in the first cache while the columns go by. Measured:
  /// with 16 columns 64 take twice the time of 16, with up to 8 columns 1.7 times less.
  static std::int64_t part_of(std::int64_t columns) { return columns <= 8 ? 64 : 16; }

  /// 2^e in two factors, since 2^e alone may be no double, and its inverse.
  struct Factors {
    double up[2] = {1, 1}, down[2] = {1, 1};
    Factors() = default;
    explicit Factors(int e)
        : up{std::ldexp(1.0, e / 2), std::ldexp(1.0, e - e / 2)},
          down{std::ldexp(1.0, -(e / 2)), std::ldexp(1.0, -(e - e / 2))} {}
    double scaled(double v) const { return v * up[0] * up[1]; }
    double unscaled(double v) const { return v * down[0] * down[1]; }
  };
  template <class N, int Bytes>
  static N rounded(double v) {
    return host_round<N, Bytes>(static_cast<float>(v));
  }
  template <class F>
  struct Blocks {
    F f;
    Shares shares;
    void operator()(const std::int64_t share) const {
      const std::int64_t last = Shares::cut(shares.items, share + 1, shares.count);
      for (std::int64_t b = Shares::cut(shares.items, share, shares.count); b < last; ++b) f(b);
    }
  };
  /// numbers: in all blocks; few are done by the calling thread.
  template <class F>
  static void for_blocks(const std::string& label, const Exec& space, std::int64_t blocks, std::int64_t numbers,
                         const F& f) {
    Shares shares = Shares::of(space, blocks, numbers, 4096, 1 << 18, 16, 8192);
    shares.count = std::min(shares.count, blocks);
    for_each_share(label, space, shares, Blocks<F>{f, shares});
  }
  /// f(row, column, rows) for parts of a block.
  template <class D, class F>
  static void each(std::int64_t b, const D& d, const F& f) {
    const std::int64_t end = std::min(d.rows, (b + 1) * block), part = part_of(d.columns);
    for (std::int64_t i = b * block; i < end; i += part) {
      const int count = static_cast<int>(std::min(part, end - i));
      for (std::int64_t j = 0; j < d.columns; ++j) f(i, j, count);
    }
  }
  /// Several maxima, since one would wait for each comparison. NaN is never the largest.
  template <class T>
  static double largest_of(const Dense<const T>& x, std::int64_t b, std::int64_t j) {
    const std::int64_t count = std::min(block, x.rows - b * block), stride = x.row_stride;
    const T* const from = x.at(b * block, j);
    T most[4] = {0, 0, 0, 0};
    const auto see = [&](int k, std::int64_t i) {
      const T v = std::fabs(from[i * stride]);
      most[k] = v > most[k] ? v : most[k];
    };
    std::int64_t i = 0;
    for (; i + 4 <= count; i += 4) {
      for (int k = 0; k < 4; ++k) see(k, i + k);
    }
    for (; i < count; ++i) see(0, i);
    return static_cast<double>(std::max(std::max(most[0], most[1]), std::max(most[2], most[3])));
  }

  std::vector<Factors> factors_;
  std::vector<double> largest_;
};

/// SpMM with the numbers of a matrix rounded to float, and its pattern.
template <class Csr>
class FloatSpmm {
 public:
  using Exec = typename Csr::execution_space;
  using Floats = CsrView<float, typename Csr::ordinal_type, typename Csr::size_type, typename Csr::device_type>;

  FloatSpmm(const Exec& space, const Csr& A, SpmmOptions options)
      : values_(Compat::allocate_view<Values>("Tessera::tpetra::floats", A.nnz())) {
    options.compute = ComputeType::Auto;
    round(space, A);
    plan_ = std::make_unique<SpmmPlan<Floats>>(space, view(A), options);
  }
  void apply(const Exec& space, Op op, const Dense<float>& b, const Dense<float>& c) const {
    plan_->apply(space, op, 1.0, rows(b), 0.0, rows(c));
  }
  void update(const Exec& space, const Csr& A) {
    round(space, A);
    plan_->update_values(space, view(A));
  }

 private:
  using Memory = typename Csr::memory_space;
  using Values = Kokkos::View<float*, Kokkos::LayoutLeft, typename Csr::device_type>;
  using Rows = Kokkos::View<float**, Kokkos::LayoutStride, Memory, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  struct Round {
    typename Csr::values_type from;
    Values to;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const { to(i) = static_cast<float>(from(i)); }
  };

  void round(const Exec& space, const Csr& A) {
    Kokkos::parallel_for("Tessera::tpetra[round matrix]",
                         Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(space, 0, std::int64_t(A.nnz())),
                         Round{A.values(), values_});
  }
  Floats view(const Csr& A) const { return Floats(A.rows(), A.cols(), A.row_map(), A.entries(), values_); }
  static Rows rows(const Dense<float>& d) {
    const auto n = static_cast<std::size_t>(d.rows), k = static_cast<std::size_t>(d.columns);
    return Rows(d.data, Kokkos::LayoutStride(n, static_cast<std::size_t>(d.row_stride), k, 1));
  }

  Values values_;
  std::unique_ptr<SpmmPlan<Floats>> plan_;
};

}  // namespace Impl
}  // namespace Tessera

#endif
