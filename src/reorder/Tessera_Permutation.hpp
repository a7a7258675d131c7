// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_REORDER_PERMUTATION_HPP
#define TESSERA_REORDER_PERMUTATION_HPP

#include <cstdint>
#include <string>
#include <type_traits>

#include "Tessera_Compat.hpp"
#include "Tessera_Error.hpp"

/// \file
/// Permutations and what they do to vectors. A permutation is a View p of n integers; p(i) is the old place of what
/// comes to the new place i. As a matrix P it has ones at (i, p(i)), so that (P x)_i = x_p(i).

namespace Tessera {
namespace reorder {
namespace Impl {

template <class Exec>
using EntryPolicy = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;

/// Writes the inverse and counts what makes it none: numbers out of range. A repeated number leaves a hole, which Holes
/// counts.
template <class Permutation, class Inverse>
struct Invert {
  Permutation p;
  Inverse inverse;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i, std::int64_t& bad) const {
    const auto old = static_cast<std::int64_t>(p(i));
    if (old < 0 || old >= static_cast<std::int64_t>(p.extent(0))) {
      ++bad;
    } else {
      inverse(old) = static_cast<typename Inverse::non_const_value_type>(i);
    }
  }
};
/// Numbers that stand nowhere in p: the inverse has "none" there, which may be a place where integers are short.
template <class Permutation, class Inverse>
struct Holes {
  Permutation p;
  Inverse inverse;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i, std::int64_t& bad) const {
    const auto place = static_cast<std::int64_t>(inverse(i));
    if (place < 0 || place >= static_cast<std::int64_t>(p.extent(0)) || static_cast<std::int64_t>(p(place)) != i) ++bad;
  }
};

template <bool Forth, class Permutation, class From, class To>
struct Move {
  Permutation p;
  From from;
  To to;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
    const std::int64_t old = static_cast<std::int64_t>(p(i)), source = Forth ? old : i, target = Forth ? i : old;
    if constexpr (Compat::view_rank<From> == 1) {
      to(target) = from(source);
    } else {
      for (std::int64_t k = 0; k < static_cast<std::int64_t>(from.extent(1)); ++k) to(target, k) = from(source, k);
    }
  }
};

template <bool Forth, class Exec, class Permutation, class From, class To>
void move(const Exec& space, const char* name, const Permutation& p, const From& from, const To& to) {
  static_assert(Compat::is_view_v<Permutation> && Compat::is_view_v<From> && Compat::is_view_v<To>,
                "Tessera::reorder: the permutation and both vectors must be Kokkos Views");
  static_assert(Compat::view_rank<Permutation> == 1 && Compat::view_rank<From> == Compat::view_rank<To> &&
                    (Compat::view_rank<From> == 1 || Compat::view_rank<From> == 2),
                "Tessera::reorder: a permutation has rank 1; both vectors must have rank 1 or both rank 2");
  static_assert(std::is_same_v<typename From::non_const_value_type, typename To::value_type>,
                "Tessera::reorder: both vectors must have one element type, and the result must not be const");
  static_assert(Kokkos::SpaceAccessibility<Exec, typename Permutation::memory_space>::accessible &&
                    Kokkos::SpaceAccessibility<Exec, typename From::memory_space>::accessible &&
                    Kokkos::SpaceAccessibility<Exec, typename To::memory_space>::accessible,
                "Tessera::reorder: the permutation and both vectors must be accessible from the execution space");
  std::size_t from_columns = 1, to_columns = 1;
  if constexpr (Compat::view_rank<From> == 2) from_columns = from.extent(1), to_columns = to.extent(1);
  Tessera::Impl::require<DimensionMismatch>(
      from.extent(0) == p.extent(0) && to.extent(0) == p.extent(0) && from_columns == to_columns, [&] {
        return std::string(name) + ": the permutation has " + std::to_string(p.extent(0)) +
               " elements, the vectors are " + std::to_string(from.extent(0)) + " x " + std::to_string(from_columns) +
               " and " + std::to_string(to.extent(0)) + " x " + std::to_string(to_columns);
      });
  Tessera::Impl::require<InvalidArgument>(from.data() != to.data() || from.span() == 0, [&] {
    return std::string(name) + ": the two vectors must not overlap; a permutation in place does not exist here";
  });
  if (p.extent(0) == 0 || from_columns == 0) return;
  Kokkos::parallel_for(std::string("Tessera::") + name,
                       EntryPolicy<Exec>(space, 0, static_cast<std::int64_t>(p.extent(0))),
                       Move<Forth, Permutation, From, To>{p, from, to});
}

/// The inverse, or a View without elements if p is no permutation. Two kernels, two waits.
template <class Exec, class Permutation>
auto inverse_if_any(const Exec& space, const Permutation& p) {
  static_assert(Compat::is_view_v<Permutation> && Compat::view_rank<Permutation> == 1 &&
                    std::is_integral_v<typename Permutation::non_const_value_type>,
                "Tessera::reorder: a permutation is a View of integers of rank 1");
  using Integer = typename Permutation::non_const_value_type;
  using Inverse = Kokkos::View<Integer*, Kokkos::LayoutLeft, typename Permutation::device_type>;
  const auto n = static_cast<std::int64_t>(p.extent(0));
  auto inverse = Compat::allocate<Inverse>(space, "Tessera::reorder::inverse", p.extent(0));
  if (n == 0) return inverse;
  Kokkos::deep_copy(space, inverse, static_cast<Integer>(-1));
  std::int64_t out_of_range = 0, holes = 0;
  Kokkos::parallel_reduce("Tessera::reorder inverse", EntryPolicy<Exec>(space, 0, n),
                          Invert<Permutation, Inverse>{p, inverse}, out_of_range);
  Kokkos::parallel_reduce("Tessera::reorder holes", EntryPolicy<Exec>(space, 0, n),
                          Holes<Permutation, Inverse>{p, inverse}, holes);
  Compat::fence(space, "Tessera::reorder inverse");
  return out_of_range == 0 && holes == 0 ? inverse : Inverse();
}

}  // namespace Impl

/// Whether every number of 0 ... n-1 stands in p exactly once. O(n), two kernels; waits.
template <class Exec, class Permutation>
bool is_permutation(const Exec& space, const Permutation& p) {
  return Impl::inverse_if_any(space, p).extent(0) == p.extent(0);
}

/// q with q(p(i)) = i: P^T as a permutation. O(n), two kernels; waits.
/// @throw InvalidArgument  p is no permutation
template <class Exec, class Permutation>
auto inverse(const Exec& space, const Permutation& p) {
  auto q = Impl::inverse_if_any(space, p);
  Tessera::Impl::require<InvalidArgument>(q.extent(0) == p.extent(0), [&] {
    return "reorder::inverse: the " + std::to_string(p.extent(0)) +
           " numbers are no permutation of 0 ... n-1 (one is out of range or stands there twice)";
  });
  return q;
}

/// y := P x, that is y(i) = x(p(i)): from the user's order to the new one. Vectors of rank 1, or of rank 2 with a
/// vector per column; any layout. One kernel, enqueued; O(n) per column. x and y must not overlap; p must be a
/// permutation (is_permutation tells), which is not checked here.
/// @throw DimensionMismatch  the extents differ;  @throw InvalidArgument  x and y start at one address
template <class Exec, class Permutation, class X, class Y>
void permute_vector(const Exec& space, const Permutation& p, const X& x, const Y& y) {
  Impl::move<true>(space, "reorder::permute_vector", p, x, y);
}

/// x := P^T y, that is x(p(i)) = y(i): back to the user's order, the inverse of permute_vector with the same p.
/// Otherwise as permute_vector; deterministic, because a permutation writes each element once.
template <class Exec, class Permutation, class Y, class X>
void unpermute_vector(const Exec& space, const Permutation& p, const Y& y, const X& x) {
  Impl::move<false>(space, "reorder::unpermute_vector", p, y, x);
}

}  // namespace reorder
}  // namespace Tessera

#endif
