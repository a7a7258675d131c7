// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FORMATS_WINDOWS_ROWS_APART_HPP
#define TESSERA_FORMATS_WINDOWS_ROWS_APART_HPP

#include <cstdint>
#include <memory>

#include "core/Tessera_Arena.hpp"
#include "formats/windows/Tessera_Panels.hpp"
#include "formats/windows/Tessera_WindowUnion.hpp"

/// \file
/// Which rows of panels are not multiplied in parts, and how they are taken out.

namespace Tessera {
namespace Impl {

/// Whether a row of `entries` might err by more than FP32 arithmetic, (entries + 2) u, if `instructions` that multiply
/// in parts hold entries of it and none more than `most`: it errs by up to (instructions + 2 most + 11.1) u
/// (perf_test/notes/precision.md). All rows of fewer than SpmmFeatures::brief entries are such rows. What a piece
/// cannot count, 2^24 entries, stays in panels: there is little between the bounds.
KOKKOS_INLINE_FUNCTION bool apart_from_panels(std::uint32_t entries, std::uint32_t instructions, std::uint32_t most) {
  return entries > 0 && entries < instructions + 2 * most + 10 &&
         entries <= static_cast<std::uint32_t>(SpmmRowPiece::most_entries);
}

/// Rows apart before each place in the windows (high half), and entries of them (low half); no Views: there are none.
template <class Memory>
struct ApartBefore {
  typename Arena<Memory>::template View<std::uint64_t> before;

  KOKKOS_INLINE_FUNCTION bool is(std::int64_t place) const {
    return before.extent(0) > 0 && before(place) != before(place + 1);
  }
  KOKKOS_INLINE_FUNCTION std::uint32_t rows(std::int64_t place) const {
    return static_cast<std::uint32_t>(before(place) >> 32);
  }
  KOKKOS_INLINE_FUNCTION std::uint32_t entries(std::int64_t place) const {
    return static_cast<std::uint32_t>(before(place) & 0xffffffffu);
  }
};

/// Slots: PanelFunctors::Slots.
template <class Slots>
struct RowsApartFunctors {
  template <class T>
  using View = typename Slots::template View<T>;

  /// For each row, how many instructions hold entries of it, and the most entries that one of them holds. The first
  /// entry of a row in a block counts for all of them.
  struct Held : Slots {
    View<std::uint32_t> instructions, most;
    std::uint32_t part_columns = 0;
    int part_step = 0;
    explicit Held(const Slots& s) : Slots(s) {}
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t p) const {
      const std::int32_t place = this->row(p);
      if (p > std::int64_t{this->begin(place)} && this->block_of(p - 1) == this->block_of(p)) return;
      int row = 0, bit = 0;
      const std::int64_t packet = this->packet_of(p, row, bit);
      std::uint32_t left = this->row_bits(packet, row), found = 0, largest = 0;
      for (std::uint32_t own = part_columns; left != 0 && own != 0; own <<= part_step) {
        const std::uint32_t n = bit_count(left & own);
        left &= ~own;
        found += n > 0 ? 1 : 0;
        largest = n > largest ? n : largest;
      }
      Kokkos::atomic_add(&instructions(place), found);
      Kokkos::atomic_fetch_max(&most(place), largest);
    }
  };

  /// Over rows + 1.
  struct Choose : Held {
    using value_type = std::uint64_t;
    View<std::uint64_t> before;
    explicit Choose(const Held& h) : Held(h) {}
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t place, std::uint64_t& sum, const bool final) const {
      if (final) before(place) = sum;
      if (place == this->rows) return;
      const std::uint32_t entries = this->begin(place + 1) - this->begin(place);
      if (apart_from_panels(entries, this->instructions(place), this->most(place))) {
        sum += std::uint64_t{1} << 32 | entries;
      }
    }
  };

  /// Over places in the windows: what is at each, and the pieces.
  template <class Order>
  struct Pieces : Slots {
    Order order;
    View<std::int32_t> row_at;
    View<SpmmRowPiece> pieces;
    explicit Pieces(const Slots& s) : Slots(s) {}
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t place) const {
      const auto row = order.extent(0) > 0 ? order(place) : static_cast<std::int32_t>(place);
      const bool own = this->apart.is(place);
      row_at(place) = own ? -1 : row;
      if (!own) return;
      const std::uint64_t first = this->apart.entries(place), length = this->begin(place + 1) - this->begin(place);
      pieces(this->apart.rows(place)) = {first << SpmmRowPiece::length_bits | length, row, -1};
    }
  };

  /// Over entries: those of rows apart lose their bits, and their columns are copied.
  struct TakeOut : Slots {
    View<std::int32_t> to;
    explicit TakeOut(const Slots& s) : Slots(s) {}
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t p) const {
      if (!this->apart.is(this->row(p))) return;
      int row = 0, bit = 0;
      const std::int64_t packet = this->packet_of(p, row, bit);
      Kokkos::atomic_fetch_and(&this->packets(packet + this->bitmap_at + bit / 32), ~(std::uint32_t{1} << bit % 32));
      to(this->place_apart(p)) = static_cast<std::int32_t>(this->columns(p));
    }
  };
};

/// Takes rows apart out of panels whose bits are set and whose values do not stand yet. Column vectors stay, also those
/// of these rows alone: what the other rows' instructions hold does not change. One wait.
/// @param room  values that there is room for, of which these rows get the last
/// @return memory of slots.apart, which must stay until the values are filled
template <class Exec, class Slots, class Order, class Memory>
std::shared_ptr<void> take_rows_apart(const Exec& space, const PanelGeometry& geometry, const KernelTable* backend,
                                      const Order& order, Slots& slots, Experimental::RowsApart<Memory>& apart,
                                      std::int64_t room) {
  using F = RowsApartFunctors<Slots>;
  using Arena = Impl::Arena<Memory>;
  const auto range = [&](std::int64_t n) {
    return Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(space, 0, n);
  };
  const auto rows = static_cast<std::size_t>(slots.rows);
  typename F::Held held(slots);
  typename F::template View<std::uint64_t> before;
  auto temporary = Arena::make(space, backend, "Tessera::panels::counts", Lifetime::Temporary, [&](Arena& arena) {
    held.instructions = arena.template take<std::uint32_t>(rows);
    held.most = arena.template take<std::uint32_t>(rows);
    before = arena.template take<std::uint64_t>(rows + 1);
  });
  held.part_columns = geometry.part_columns;
  held.part_step = geometry.part_step;
  Kokkos::deep_copy(space, held.instructions, 0u);
  Kokkos::deep_copy(space, held.most, 0u);
  Kokkos::parallel_for("Tessera::convert[panels] instructions of rows", range(slots.nnz), held);
  typename F::Choose choose(held);
  choose.before = before;
  Kokkos::parallel_scan("Tessera::convert[panels] rows apart", range(slots.rows + 1), choose);
  std::uint64_t total = 0;
  using One = typename F::template View<std::uint64_t>;
  fetch(space, backend, "Tessera::convert[panels] rows apart", total, One(before.data() + rows, 1));
  if (total == 0) return nullptr;
  slots.apart.before = before;
  const auto entries = static_cast<std::size_t>(total & 0xffffffffu);
  apart.first_value = room - static_cast<std::int64_t>(entries);
  slots.first_apart = static_cast<std::uint32_t>(apart.first_value);
  apart.storage = Arena::make(space, backend, "Tessera::panels::rows apart", Lifetime::Plan, [&](Arena& arena) {
    apart.row_at = arena.template take<std::int32_t>(rows);
    apart.columns = arena.template take<std::int32_t>(entries);
    apart.pieces = arena.template take<SpmmRowPiece>(static_cast<std::size_t>(total >> 32));
  });
  typename F::template Pieces<Order> pieces(slots);
  pieces.order = order;
  pieces.row_at = apart.row_at;
  pieces.pieces = apart.pieces;
  Kokkos::parallel_for("Tessera::convert[panels] pieces of rows apart", range(slots.rows), pieces);
  typename F::TakeOut take_out(slots);
  take_out.to = apart.columns;
  Kokkos::parallel_for("Tessera::convert[panels] take out", range(slots.nnz), take_out);
  return temporary;
}

}  // namespace Impl
}  // namespace Tessera

#endif
