// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_HOST_HOST_CSR_ROWS_KERNEL_HPP
#define TESSERA_HOST_HOST_CSR_ROWS_KERNEL_HPP

#include <type_traits>
#include <utility>

#include "backends/host/Tessera_HostCsrRows.hpp"
#include "backends/host/Tessera_HostNumbers.hpp"
#include "backends/interface/Tessera_StoreResult.hpp"

/// \file
/// Products of rows of CRS matrices with several vectors on hosts.

// Loops of their own for the instructions of newer CPUs, chosen at run time.
#if TESSERA_HOST_VECTORS && defined(__x86_64__)
#define TESSERA_ROWS_TARGET(names) __attribute__((target(names)))
#define TESSERA_ROWS_HAS_TARGETS 1
#else
#define TESSERA_ROWS_HAS_TARGETS 0
#endif
// Always, since instructions for vectors of 32 bytes need a function with that target.
#if defined(__GNUC__)
#define TESSERA_ROWS_INLINE inline __attribute__((always_inline))
#else
#define TESSERA_ROWS_INLINE inline
#endif

namespace Tessera {
// Files may be compiled with other flags, and share no function.
namespace {

using Impl::HostVector;

/// Rows of a tile whose sums are kept until columns of y are written.
constexpr int most_rows = 16;

/// N neighbours as sums, by the instructions of CPUs with vectors of Isa bytes. (Vectors are not returned: how that is
/// done depends on the instructions of a caller.)
template <class Sum, int N, int Isa>
struct Neighbours {
#if TESSERA_HOST_VECTORS
  typedef Sum Vector __attribute__((vector_size(N * sizeof(Sum))));
#else
  struct Vector {
    Sum e[N];
    Sum& operator[](int i) { return e[i]; }
    Sum operator[](int i) const { return e[i]; }
  };
#endif

  template <class X>
  TESSERA_ROWS_INLINE static Sum one(const X& x) {
#if TESSERA_HOST_F16C
    if constexpr (Isa > 16 && std::is_same_v<X, half_t>) return Impl::f16c_widen(x);
#endif
    return Impl::host_number<Sum>(x);
  }
  template <class X>
  TESSERA_ROWS_INLINE static void load(Vector& v, const X* x) {
    if constexpr (std::is_same_v<X, Sum>) {
      std::memcpy(&v, x, sizeof(v));
    } else if constexpr (N < 4) {
      for (int i = 0; i < N; ++i) v[i] = one(x[i]);
#if TESSERA_HOST_F16C > 1
    } else if constexpr (Isa > 16) {
      if constexpr (std::is_same_v<X, half_t>) {
        Impl::F16c<N>::widen(v, x);
      } else {
        Impl::F16c<N>::widen_bhalf(v, x);
      }
#endif
    } else {
      for (int i = 0; i < N; i += 4) {
        const HostVector<float> four = four_of(x + i);
        std::memcpy(reinterpret_cast<char*>(&v) + i * sizeof(Sum), &four, sizeof(four));
      }
    }
  }
  /// half_t number by number: whether F16C is there, who has vectors of 16 bytes does not know.
  template <class X>
  TESSERA_ROWS_INLINE static HostVector<float> four_of(const X* x) {
    if constexpr (std::is_same_v<X, half_t>) {
      return HostVector<float>::make([&](int i) TESSERA_HOST_LAMBDA { return Impl::host_number<float>(x[i]); });
    } else {
      return HostVector<float>::load(x);
    }
  }
  template <class Y>
  TESSERA_ROWS_INLINE static void store(Y* y, const Vector& v) {
    if constexpr (std::is_same_v<Y, Sum>) {
      std::memcpy(y, &v, sizeof(v));
#if TESSERA_HOST_F16C > 1
    } else if constexpr (Isa > 16 && std::is_same_v<Y, half_t> && N >= 4) {
      Impl::F16c<N>::narrow(y, v);
#endif
    } else if constexpr (std::is_same_v<Y, bhalf_t> && N >= 4) {
      for (int i = 0; i < N; i += 4) {
        HostVector<float> four;
        std::memcpy(&four, reinterpret_cast<const char*>(&v) + i * sizeof(Sum), sizeof(four));
        four.store(y + i);
      }
    } else {
      for (int i = 0; i < N; ++i) y[i] = static_cast<Y>(v[i]);
    }
  }
  TESSERA_ROWS_INLINE static void add_product(Vector& sum, Sum a, const Vector& x) {
#if TESSERA_HOST_VECTORS
    sum += a * x;
#else
    for (int i = 0; i < N; ++i) sum[i] += a * x[i];
#endif
  }
  TESSERA_ROWS_INLINE static void add(Vector& sum, const Vector& x) {
#if TESSERA_HOST_VECTORS
    sum += x;
#else
    for (int i = 0; i < N; ++i) sum[i] += x[i];
#endif
  }
};

/// X: what x holds. Sums are double where x is, else float.
template <class Value, class X, class Y>
class CsrRows {
 public:
  explicit CsrRows(const HostCsrRowsArgs& args)
      : args_(args),
        values_(static_cast<const Value*>(args.values)),
        x_(static_cast<const X*>(args.x)),
        alpha_(static_cast<Sum>(args.alpha)),
        beta_(static_cast<Sum>(args.beta)) {}

  /// In the widest vectors that the CPU has and a row fills.
  void run(std::int64_t begin, std::int64_t end) const {
    const std::int64_t bytes = width() * static_cast<std::int64_t>(sizeof(Sum));
    if constexpr (apart) {
      if (args_.x_column_stride != 1) return columns_apart(begin, end);
    }
#if TESSERA_ROWS_HAS_TARGETS
    if (bytes >= 64 && has_avx512()) return run64(begin, end);
    if (has_avx2()) {
      if (bytes >= 32) return run32(begin, end);
      return bytes >= 16 ? run16(begin, end) : run8(begin, end);
    }
#endif
    if (bytes >= 16) return rows<16 / static_cast<int>(sizeof(Sum)), 16>(begin, end);
    rows<2, 16>(begin, end);  // of float
  }

 private:
  using Sum = std::conditional_t<std::is_same_v<X, double>, double, float>;
  /// Whether columns of x may lie apart.
  static constexpr bool apart = std::is_same_v<Value, Sum> && std::is_same_v<X, Sum> && std::is_same_v<Y, Sum>;

#if TESSERA_ROWS_HAS_TARGETS
  static bool has_avx2() {
    static const bool has = Impl::host_has_f16c() && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    return has;
  }
  static bool has_avx512() {
    static const bool has = has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                            __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
    return has;
  }
  TESSERA_ROWS_TARGET("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")
  void run64(std::int64_t begin, std::int64_t end) const { rows<64 / static_cast<int>(sizeof(Sum)), 64>(begin, end); }
  TESSERA_ROWS_TARGET("avx2,fma")
  void run32(std::int64_t begin, std::int64_t end) const { rows<32 / static_cast<int>(sizeof(Sum)), 32>(begin, end); }
  TESSERA_ROWS_TARGET("avx2,fma")
  void run16(std::int64_t begin, std::int64_t end) const { rows<16 / static_cast<int>(sizeof(Sum)), 32>(begin, end); }
  TESSERA_ROWS_TARGET("avx2,fma")
  void run8(std::int64_t begin, std::int64_t end) const { rows<2, 32>(begin, end); }
  TESSERA_ROWS_TARGET("avx2,fma")
  void columns32(std::int64_t begin, std::int64_t end) const { columns<32>(begin, end); }
#endif
  void columns_apart(std::int64_t begin, std::int64_t end) const {
#if TESSERA_ROWS_HAS_TARGETS
    if (has_avx2()) return columns32(begin, end);
#endif
    columns<16>(begin, end);
  }

  /// Columns of x that lie apart, up to nine at once: an entry is read once for all of them. (One alone is never left.)
  template <int Isa>
  TESSERA_ROWS_INLINE void columns(std::int64_t begin, std::int64_t end) const {
    for (std::int64_t row = begin; row < end; row += most_rows) {
      const std::int64_t last = row + most_rows < end ? row + most_rows : end;
      for (std::int64_t column = 0, width; column < args_.columns; column += width) {
        const std::int64_t left = args_.columns - column;
        width = left < 10 ? left : left < 12 ? left - 4 : 8;
        few_of<Isa>(row, last, column, width, std::make_integer_sequence<int, 8>());
      }
    }
  }
  /// Two columns to nine.
  template <int Isa, int... More>
  TESSERA_ROWS_INLINE void few_of(std::int64_t begin, std::int64_t end, std::int64_t column, std::int64_t width,
                                  std::integer_sequence<int, More...>) const {
    ((width == 2 + More ? few<Isa, 2 + More>(begin, end, column) : void()), ...);
  }
  template <int Isa, int Count>
  TESSERA_ROWS_INLINE void few(std::int64_t begin, std::int64_t end, std::int64_t column) const {
    few<Isa>(begin, end, column, std::make_integer_sequence<int, Count>());
  }
  template <int Isa, int... J>
  TESSERA_ROWS_INLINE void few(std::int64_t begin, std::int64_t end, std::int64_t column,
                               std::integer_sequence<int, J...>) const {
    using Numbers = Neighbours<Sum, 2, Isa>;
    const std::int64_t stride = args_.x_column_stride, row_stride = args_.x_stride;
    const X* const from = x_ + column * stride;
    Y* const to = static_cast<Y*>(args_.y) + column * args_.y_column_stride;
    const std::int32_t* const entries = args_.entries;
    const Value* const values = values_;
    for (std::int64_t row = begin; row < end; ++row) {
      Sum sum[sizeof...(J)] = {};
      for (std::int64_t i = first(row), last = first(row + 1); i < last; ++i) {
        const Sum a = Numbers::one(values[i]);
        const X* const x = from + entries[i] * row_stride;
        ((sum[J] += a * Numbers::one(x[J * stride])), ...);
      }
      (store_scaled(to + row * args_.y_stride + J * args_.y_column_stride, alpha_, sum[J], beta_), ...);
    }
  }

  /// Columns that are multiplied. Where those of y lie apart, they may be more than are stored.
  std::int64_t width() const {
    return args_.y_column_stride != 1 && args_.x_columns > args_.columns ? args_.x_columns : args_.columns;
  }
  /// Where a row begins. Both widths in one text: to compile it twice costs more than to ask.
  TESSERA_ROWS_INLINE std::int64_t first(std::int64_t row) const {
    return args_.offset_bytes == 4 ? static_cast<const std::uint32_t*>(args_.row_map)[row]
                                   : static_cast<const std::int64_t*>(args_.row_map)[row];
  }
  /// Tiles of up to four vectors of N numbers; where a tile is no multiple of N, its last vectors overlap. A tile of
  /// some rows at a time where columns of y lie apart, so that whole lines are written.
  template <int N, int Isa>
  TESSERA_ROWS_INLINE void rows(std::int64_t begin, std::int64_t end) const {
    const std::int64_t columns = width();
    const std::int64_t some = args_.y_column_stride != 1 || columns <= 4 * N ? most_rows : 1;
    for (std::int64_t row = begin; row < end; row += some) {
      const int count = static_cast<int>(end - row < some ? end - row : some);
      // At least N columns are left: they are so many that four vectors hold them, or five do.
      for (std::int64_t column = 0, width; column < columns; column += width) {
        const std::int64_t left = columns - column;
        width = left <= 4 * N ? left : left < 5 * N ? left - N : 4 * N;
        if (width <= N) {
          block<N, Isa, 1>(row, count, column, static_cast<int>(width));
        } else if (columns <= 2 * N) {
          block<N, Isa, 2>(row, count, column, static_cast<int>(width));
        } else {
          block<N, Isa, 4>(row, count, column, static_cast<int>(width));
        }
      }
    }
  }
  template <int N, int Isa, int Count>
  TESSERA_ROWS_INLINE void block(std::int64_t row, int count, std::int64_t column, int width) const {
    if (args_.y_column_stride == 1) {
      for (int k = 0; k < count; ++k) tile<N, Isa, Count>(row + k, column, width, nullptr);
      return;
    }
    Sum sums[most_rows * Count * N];
    for (int k = 0; k < count; ++k) tile<N, Isa, Count>(row + k, column, width, sums + k * Count * N);
    const std::int64_t left = args_.columns - column;  // what is behind are zeros of a copy of x
    const int own = left < width ? static_cast<int>(left) : width;
    for (int j = 0; j < own; ++j) {
      store_column<N, Isa>(static_cast<Y*>(args_.y) + row * args_.y_stride + (column + j) * args_.y_column_stride,
                           count, sums + j, Count * N);
    }
  }
  /// Every `step`-th of sums to neighbours in a column of y; 16-bit numbers are rounded some at a time.
  template <int N, int Isa>
  TESSERA_ROWS_INLINE void store_column(Y* y, int count, const Sum* sums, int step) const {
    const std::int64_t stride = args_.y_stride;
    int k = 0;
    if constexpr (sizeof(Y) == 2 && N >= 4) {
      using Numbers = Neighbours<Sum, N, Isa>;
      for (; stride == 1 && k + N <= count; k += N) {
        typename Numbers::Vector v{};
        for (int i = 0; i < N; ++i) v[i] = sums[(k + i) * step];
        scale<Numbers>(v, y + k);
        Numbers::store(y + k, v);
      }
    }
    if (beta_ == Sum(0)) {
      for (; k < count; ++k) y[k * stride] = static_cast<Y>(alpha_ * sums[k * step]);
    } else {
      for (; k < count; ++k) store_scaled(y + k * stride, alpha_, sums[k * step], beta_);
    }
  }
  template <int N, int Isa, int Count>
  TESSERA_ROWS_INLINE void tile(std::int64_t row, std::int64_t column, int width, Sum* out) const {
    using Numbers = Neighbours<Sum, N, Isa>;
    using Vector = typename Numbers::Vector;
    const X* const from = x_ + column;
    const int last = width - N, at1 = N < last ? N : last, at2 = 2 * N < last ? 2 * N : last;
    const std::int64_t stride = args_.x_stride;
    const std::int32_t* const entries = args_.entries;
    const Value* const values = values_;
    // Few sums would wait four cycles for each addition: two sets take turns.
    Vector s0{}, s1{}, s2{}, s3{}, t0{}, t1{}, v{};
    std::int64_t i = first(row);
    const std::int64_t end = first(row + 1);
    if constexpr (Count < 4) {
      for (; i + 1 < end; i += 2) {
        const Sum a = Numbers::one(values[i]), b = Numbers::one(values[i + 1]);
        const X* const x = from + entries[i] * stride;
        const X* const y = from + entries[i + 1] * stride;
        Numbers::load(v, x), Numbers::add_product(s0, a, v);
        if constexpr (Count > 1) Numbers::load(v, x + at1), Numbers::add_product(s1, a, v);
        Numbers::load(v, y), Numbers::add_product(t0, b, v);
        if constexpr (Count > 1) Numbers::load(v, y + at1), Numbers::add_product(t1, b, v);
      }
    }
    for (; i < end; ++i) {
      const Sum a = Numbers::one(values[i]);
      const X* const x = from + entries[i] * stride;
      Numbers::load(v, x), Numbers::add_product(s0, a, v);
      if constexpr (Count > 1) Numbers::load(v, x + at1), Numbers::add_product(s1, a, v);
      if constexpr (Count > 2) {
        Numbers::load(v, x + at2), Numbers::add_product(s2, a, v);
        Numbers::load(v, x + last), Numbers::add_product(s3, a, v);
      }
    }
    if constexpr (Count < 4) Numbers::add(s0, t0);
    if constexpr (Count == 2) Numbers::add(s1, t1);
    if (out != nullptr) {
      std::memcpy(out, &s0, sizeof(s0));
      if constexpr (Count > 1) std::memcpy(out + at1, &s1, sizeof(s1));
      if constexpr (Count > 2) std::memcpy(out + at2, &s2, sizeof(s2)), std::memcpy(out + last, &s3, sizeof(s3));
      return;
    }
    Y* const y = static_cast<Y*>(args_.y) + row * args_.y_stride + column;
    // All old numbers are read before any is written, as vectors overlap.
    scale<Numbers>(s0, y);
    if constexpr (Count > 1) scale<Numbers>(s1, y + at1);
    if constexpr (Count > 2) scale<Numbers>(s2, y + at2), scale<Numbers>(s3, y + last);
    Numbers::store(y, s0);
    if constexpr (Count > 1) Numbers::store(y + at1, s1);
    if constexpr (Count > 2) Numbers::store(y + at2, s2), Numbers::store(y + last, s3);
  }
  template <class Numbers>
  TESSERA_ROWS_INLINE void scale(typename Numbers::Vector& sum, const Y* y) const {
    typename Numbers::Vector scaled{}, old{};
    Numbers::add_product(scaled, alpha_, sum);
    sum = scaled;
    if (beta_ == Sum(0)) return;
    Numbers::load(old, y);
    Numbers::add_product(sum, beta_, old);
  }

  const HostCsrRowsArgs& args_;
  const Value* values_;
  const X* x_;
  Sum alpha_, beta_;
};

template <class Value>
void run_narrow_rows(const HostCsrRowsArgs& args, std::int64_t begin, std::int64_t end) {
  if (args.y_type == ElementType::Float) return CsrRows<Value, Value, float>(args).run(begin, end);
  CsrRows<Value, Value, Value>(args).run(begin, end);
}

}  // namespace
}  // namespace Tessera

#endif
