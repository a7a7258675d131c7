// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_SPMM_SPMM_STORE_HPP
#define TESSERA_KERNELS_SPMM_SPMM_STORE_HPP

#include <cstdint>
#include <type_traits>

#include "backends/interface/Tessera_Half.hpp"
#include "backends/interface/Tessera_Macros.hpp"
#include "backends/interface/Tessera_SpmmArgs.hpp"
#include "backends/interface/Tessera_StoreResult.hpp"

/// \file
/// How the wave kernels of SpMM end: C := alpha sum + beta C in C's own type, or partial sums of split windows.

namespace Tessera {
namespace Impl {

/// `value` rounded to nearest even, by the device's instruction where there is one: a 16-bit C has many of these. (A
/// NaN may lose its payload.)
template <class Element, class Sum>
TESSERA_FUNCTION Element spmm_rounded(Sum value) {
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same<Element, half_t>::value) {
    Element e;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(e.bits) : "f"(value));
    return e;
  } else if constexpr (std::is_same<Element, bhalf_t>::value) {
    Element e;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(e.bits) : "f"(value));
    return e;
  } else {
    return static_cast<Element>(value);
  }
#elif defined(__HIP_DEVICE_COMPILE__)
  if constexpr (std::is_same<Element, half_t>::value) {
    const _Float16 h = static_cast<_Float16>(value);
    Element e;
    __builtin_memcpy(&e, &h, sizeof(e));
    return e;
  } else {
    return static_cast<Element>(value);
  }
#else
  return static_cast<Element>(value);
#endif
}

/// passing: the first to leave the caches, where there is such a store.
template <class Pack>
TESSERA_FUNCTION void spmm_store_pack(void* at, const Pack& pack, bool passing) {
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(Pack) == 16) {
    if (passing) {
      std::uint32_t w[4];
      __builtin_memcpy(w, &pack, 16);
      asm volatile("st.global.cs.v4.b32 [%0], {%1, %2, %3, %4};"
                   :
                   : "l"(at), "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3])
                   : "memory");
      return;
    }
  }
#endif
  static_cast<void>(passing);
  *static_cast<Pack*>(at) = pack;
}

}  // namespace Impl

/// Where sums go: element (row, column) of c becomes alpha sum + beta c, rounded once to Element beside the arithmetic
/// in Sum; beta == 0 does not read c. Columns from `columns` on are left alone.
template <class Element, class Sum>
struct SpmmTarget {
  Element* c;
  std::int64_t ld, columns;
  Sum alpha, beta;
  bool passing = false;  ///< SpmmDense::passing

  /// Count neighbours, the first at a column that Count divides: in one access where they lie at such an address.
  template <int Count>
  TESSERA_FUNCTION void store(std::int64_t row, std::int64_t column, const Sum (&sums)[Count]) const {
    struct alignas(sizeof(Element) * Count) Pack {
      Element v[Count];
    };
    static_assert(sizeof(Pack) <= 16 && (Count & (Count - 1)) == 0, "at most 16 bytes");
    Element* at = c + (row * ld + column);
    const bool whole = column + Count <= columns && reinterpret_cast<std::uintptr_t>(at) % sizeof(Pack) == 0;
    // Without beta as a case of its own: for short rows the end is a good part of all instructions.
    if (whole && beta == Sum(0)) {
      Pack pack;
      TESSERA_UNROLL
      for (int i = 0; i < Count; ++i) pack.v[i] = Impl::spmm_rounded<Element>(alpha * sums[i]);
      Impl::spmm_store_pack(at, pack, passing);
    } else if (whole) {
      Pack pack = *reinterpret_cast<const Pack*>(at);
      TESSERA_UNROLL
      for (int i = 0; i < Count; ++i) pack.v[i] = result(sums[i], pack.v[i]);
      *reinterpret_cast<Pack*>(at) = pack;
    } else {
      TESSERA_UNROLL
      for (int i = 0; i < Count; ++i) {
        if (column + i >= columns) continue;
        at[i] = beta == Sum(0) ? Impl::spmm_rounded<Element>(alpha * sums[i]) : result(sums[i], at[i]);
      }
    }
  }
  /// Count neighbours, the first at element `first`, where these are known to lie at multiples of sixteen bytes, or of
  /// their own bytes if they have less, to be all inside, and beta to be 0.
  template <int Count>
  TESSERA_FUNCTION void store_plain(std::int64_t first, const Sum (&sums)[Count]) const {
    constexpr int most = 16 / static_cast<int>(sizeof(Element)), width = Count < most ? Count : most;
    struct alignas(sizeof(Element) * width) Pack {
      Element v[width];
    };
    TESSERA_UNROLL
    for (int i = 0; i < Count; i += width) {
      Pack pack;
      TESSERA_UNROLL
      for (int j = 0; j < width; ++j) pack.v[j] = Impl::spmm_rounded<Element>(alpha * sums[i + j]);
      Impl::spmm_store_pack(c + first + i, pack, passing);
    }
  }

 private:
  TESSERA_FUNCTION Element result(Sum sum, Element old) const {
    return Impl::spmm_rounded<Element>(scaled_sum(alpha, sum, beta, old));
  }
};

/// A zero until a number that is not finite is multiplied by it: NaN from then on. How kernels on matrix units learn
/// that a window met an infinite or undefined number: each of its rows has multiplied it, by zero where it has no
/// entry.
template <class Sum>
struct FiniteProbe {
  Sum zero = Sum(0);

  TESSERA_FUNCTION void look_at(Sum sum) { zero += sum * Sum(0); }
  TESSERA_FUNCTION bool all_finite() const { return zero == Sum(0); }
};

/// Calls store(target) with the target that C is. Value: the operands' type, which a 16-bit C shares.
template <class Value, class Sum, class Store>
TESSERA_FUNCTION void spmm_to_c(const SpmmDense& d, Store&& store) {
  const Sum alpha = static_cast<Sum>(d.alpha), beta = static_cast<Sum>(d.beta);
  if constexpr (sizeof(Sum) == 8) {
    store(SpmmTarget<double, Sum>{static_cast<double*>(d.c), d.ldc, d.columns, alpha, beta, d.passing});
  } else if constexpr (sizeof(Value) == 4) {
    store(SpmmTarget<float, Sum>{static_cast<float*>(d.c), d.ldc, d.columns, alpha, beta, d.passing});
  } else if (d.c_type == ElementType::Float) {
    store(SpmmTarget<float, Sum>{static_cast<float*>(d.c), d.ldc, d.columns, alpha, beta, d.passing});
  } else {
    store(SpmmTarget<Value, Sum>{static_cast<Value*>(d.c), d.ldc, d.columns, alpha, beta, d.passing});
  }
}

/// Sums of neighbouring columns of C, from `column` on, where columns are contiguous and d.ldc apart. A column of C is
/// a row of its transpose, of as many columns as C has rows.
template <class Value, class Sum, int Count>
TESSERA_FUNCTION void spmm_store_in_columns(const SpmmDense& d, std::int64_t rows, std::int64_t row,
                                            std::int64_t column, const Sum (&sums)[Count]) {
  SpmmDense transposed = d;
  transposed.columns = rows;
  spmm_to_c<Value, Sum>(transposed, [&](const auto& target) {
    TESSERA_UNROLL
    for (int i = 0; i < Count; ++i) {
      const Sum sum[1] = {sums[i]};
      if (column + i < d.columns) target.store(column + i, row, sum);
    }
  });
}

/// The place for the raw sums of a part; its rows are those of a window.
template <class Sum>
TESSERA_FUNCTION SpmmTarget<Sum, Sum> spmm_partials(const SpmmParts& split, std::int64_t columns, std::int64_t partial,
                                                    int window_rows) {
  Sum* first = static_cast<Sum*>(split.partials) + partial * window_rows * split.partial_ld;
  return {first, split.partial_ld, columns, Sum(1), Sum(0)};
}

/// Row of C at place `local` of a window, -1 beyond the last row. Args: rows, row_order.
template <class Args>
TESSERA_FUNCTION std::int64_t spmm_row(const Args& args, std::int64_t window, int window_rows, int local) {
  const std::int64_t place = window * window_rows + local;
  if (place >= args.rows) return -1;
  return args.row_order != nullptr ? std::int64_t{args.row_order[place]} : place;
}

}  // namespace Tessera

#endif
