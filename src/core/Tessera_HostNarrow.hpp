// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CORE_HOST_NARROW_HPP
#define TESSERA_CORE_HOST_NARROW_HPP

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/Tessera_HostLanes.hpp"

/// \file
/// Numbers of 16 bits, some at a time, on CPUs with AVX2 and F16C: one by one, each costs an instruction to move it to
/// a vector and one or two to widen it, on the one or two ports that can (perf_test/notes/hosts-16-bits.md).

namespace Tessera {
namespace Impl {

/// Whether code for CPUs with vectors of so many bytes widens numbers T by vectors.
template <class T, int Isa>
constexpr bool host_widens_vectors = host_by_f16c<T, Isa> || host_by_avx2<T, Isa>;

/// Four sums, whose total is that of A's numbers times those of x for entries [first, last) of a row, four at a time;
/// two such vectors take turns. Behind whole groups the row's last four entries are taken once more, but those that
/// were; of a row shorter than four they begin in the rows before. x: numbers lie `stride` apart.
template <int Isa, class Vector, class A, class Index, class X>
KOKKOS_FORCEINLINE_FUNCTION void host_narrow_dot(Vector& sum, const A* values, const Index* entries, const X* x,
                                                 std::int64_t stride, std::int64_t first, std::int64_t last) {
  using Lanes = HostLanes<float, 16, Isa>;
  const auto of = [&](std::int64_t i) -> const X& { return x[static_cast<std::int64_t>(entries[i]) * stride]; };
  Vector own{}, other{}, a, b;
  std::int64_t i = first;
  for (; i + 4 < last; i += 4) {
    Lanes::load(a, values + i);
    Lanes::gather(b, of(i), of(i + 1), of(i + 2), of(i + 3));
    Lanes::add_product(other, a, b);
    const Vector turn = other;
    other = own;
    own = turn;
  }
  if (i < last) {
    if (last >= 4) {
      typename Lanes::Mask mask;
      Lanes::last_lanes(mask, last - i);
      const std::int64_t k = last - 4;
      Lanes::load(a, values + k);
      Lanes::gather(b, of(k), of(k + 1), of(k + 2), of(k + 3));
      Lanes::keep(a, mask);  // both, as infinite times 0 is not 0
      Lanes::keep(b, mask);
    } else {
      float numbers[8] = {};
      for (std::int64_t k = 4 - (last - i); k < 4; ++k, ++i) {
        numbers[k] = host_widen<float, Isa>(values[i]);
        numbers[4 + k] = host_widen<float, Isa>(of(i));
      }
      Lanes::load(a, numbers);
      Lanes::load(b, numbers + 4);
    }
    Lanes::add_product(other, a, b);
  }
  Lanes::add(own, other);
  sum = own;
}

/// The sums of A's numbers times rows of two or three neighbours, for entries [first, last) of a row, whose numbers are
/// widened four at a time; zeros behind them. Rows of x begin `stride` apart.
template <int Isa, int Columns, class Vector, class A, class Index, class X>
KOKKOS_FORCEINLINE_FUNCTION void host_narrow_rows(Vector& sum, const A* values, const Index* entries, const X* x,
                                                  std::int64_t stride, std::int64_t first, std::int64_t last) {
  static_assert(Columns == 2 || Columns == 3);
  using Lanes = HostLanes<float, 16, Isa>;
  const auto of = [&](std::int64_t i) { return x + static_cast<std::int64_t>(entries[i]) * stride; };
  Vector other{}, a, b;
  sum = Vector{};
  std::int64_t i = first;
  for (; i + 4 <= last; i += 4) {
    Lanes::load(a, values + i);
    if constexpr (Columns == 2) {
      Lanes::load_pairs(b, of(i), of(i + 1));
      Lanes::add_product(sum, Vector{a[0], a[0], a[1], a[1]}, b);
      Lanes::load_pairs(b, of(i + 2), of(i + 3));
      Lanes::add_product(other, Vector{a[2], a[2], a[3], a[3]}, b);
    } else {
      Lanes::template load_first<3>(b, of(i));
      Lanes::add_product(sum, Vector{a[0], a[0], a[0], a[0]}, b);
      Lanes::template load_first<3>(b, of(i + 1));
      Lanes::add_product(other, Vector{a[1], a[1], a[1], a[1]}, b);
      Lanes::template load_first<3>(b, of(i + 2));
      Lanes::add_product(sum, Vector{a[2], a[2], a[2], a[2]}, b);
      Lanes::template load_first<3>(b, of(i + 3));
      Lanes::add_product(other, Vector{a[3], a[3], a[3], a[3]}, b);
    }
  }
  Lanes::add(sum, other);
  if constexpr (Columns == 2) sum = Vector{sum[0] + sum[2], sum[1] + sum[3], 0.0f, 0.0f};
  for (; i < last; ++i) {
    Lanes::template load_first<Columns>(b, of(i));
    Lanes::scale(b, host_widen<float, Isa>(values[i]));
    Lanes::add(sum, b);
  }
}

}  // namespace Impl
}  // namespace Tessera

#endif
