// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FORMATS_PACKED_TO_CELLS_HPP
#define TESSERA_FORMATS_PACKED_TO_CELLS_HPP

#include <cstdint>
#include <string>

#include "core/Tessera_Arena.hpp"
#include "formats/packed/Tessera_CellsOrder.hpp"
#include "formats/packed/Tessera_CellsRules.hpp"
#include "formats/packed/Tessera_PackedValues.hpp"

/// \file
/// CSR to packed slices in cells on the execution space of the matrix. Bytes moved, ideally: columns twice, values
/// once, the format once; per row and column block 2 bytes (its length) written once and read three times, and 2 (its
/// position) written once and read twice; 4 bytes per entry (where its number lies) written and read.

namespace Tessera {
namespace Impl {

/// Where pieces lie.
template <class Csr>
struct CellsPlaces {
  template <class T>
  using View = typename PackedTypesOf<Csr>::template View<T>;
  CellsShape shape;
  View<std::uint16_t> position;
  View<std::uint32_t> units, slice_at;
  unsigned char* packets;
  int value_bytes;

  struct Slice {
    unsigned char* packet;
    int steps;
    KOKKOS_INLINE_FUNCTION std::uint16_t* places() const { return reinterpret_cast<std::uint16_t*>(packet); }
    KOKKOS_INLINE_FUNCTION std::uint16_t* column(int step, int piece) const {
      return places() + (1 + step) * CellsLayout::pieces + piece;
    }
    /// Bytes from the packet to a value.
    KOKKOS_INLINE_FUNCTION int value(int step, int piece, int bytes) const {
      return CellsLayout::pieces * (2 * (1 + steps) + step * bytes) + piece * bytes;
    }
  };
  KOKKOS_INLINE_FUNCTION Slice slice(std::int64_t cell, int s) const {
    const std::uint32_t at = slice_at(cell * shape.slices() + s);
    return {packets + (std::size_t{units(cell)} + (at >> 6)) * CellsLayout::unit, static_cast<int>(at & 63u)};
  }
  /// What is no entry: steps [first, end) of a piece.
  KOKKOS_INLINE_FUNCTION void pad(const Slice& slice, int piece, int first) const {
    for (int step = first; step < slice.steps; ++step) {
      *slice.column(step, piece) = static_cast<std::uint16_t>(shape.block_columns);
      unsigned char* const value = slice.packet + slice.value(step, piece, value_bytes);
      if (value_bytes == 2) {
        *reinterpret_cast<std::uint16_t*>(value) = 0;
      } else {
        for (int w = 0; w < value_bytes / 4; ++w) reinterpret_cast<std::uint32_t*>(value)[w] = 0;
      }
    }
  }
};

/// Places and padding of a cell, for which a team of Kokkos is.
template <class Csr>
struct CellsFrameFunctor : CellsRows<Csr> {
  using member = typename PackedTypesOf<Csr>::member;
  CellsPlaces<Csr> to;
  typename PackedTypesOf<Csr>::template View<std::uint32_t> counts;

  KOKKOS_INLINE_FUNCTION void operator()(const member& team) const {
    constexpr int pieces = CellsLayout::pieces;
    const std::int64_t cell = team.league_rank();
    const int block = static_cast<int>(cell / this->shape.column_blocks);
    const int column_block = static_cast<int>(cell % this->shape.column_blocks);
    const int count = this->shape.row_places() + static_cast<int>(this->cut_places(block));
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, count), [&](const int v) {
      const int at = to.position(cell * this->shape.places() + v);
      if (at == 0xffff) return;
      const auto slice = to.slice(cell, at / pieces);
      slice.places()[at % pieces] = static_cast<std::uint16_t>(v);
      to.pad(slice, at % pieces, this->length(block, column_block, v));
    });
    const int found = static_cast<int>(counts(cell)), all = (found + pieces - 1) / pieces * pieces;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, all - found), [&](const int i) {
      const int at = found + i;
      const auto slice = to.slice(cell, at / pieces);
      slice.places()[at % pieces] = static_cast<std::uint16_t>(this->shape.places());
      to.pad(slice, at % pieces, 0);
    });
  }
};

/// Columns of 32 rows, and where their numbers go, in numbers.
template <class Csr>
struct CellsColumnFunctor : CellsGroup<Csr> {
  using Base = CellsGroup<Csr>;
  using member = typename Base::member;
  CellsPlaces<Csr> to;
  typename PackedTypesOf<Csr>::template View<std::uint32_t> slots;

  KOKKOS_INLINE_FUNCTION void operator()(const member& team) const {
    constexpr int rows = Base::rows, pieces = CellsLayout::pieces;
    std::int64_t first = 0, count = 0;
    bool ascend = true;
    const auto table = this->make_table(team, first, count, ascend);
    const std::int64_t place = std::int64_t{team.league_rank()} * rows;
    const std::int64_t block = place / this->shape.row_places(), own = place - block * this->shape.row_places();
    this->each_entry(team, first, count, [&](std::uint32_t i, std::uint32_t column, std::uint32_t) {
      const int r = table.row_of(i), column_block = this->block_of(column);
      const int in_piece = static_cast<int>(i - table.row(r) - table.block(r, column_block));
      const int part = in_piece / this->shape.max_steps, step = in_piece % this->shape.max_steps;
      const std::int64_t v = part == 0 ? own + r : std::int64_t{this->cut_first(place + r)} + part - 1;
      const std::int64_t cell = block * this->shape.column_blocks + column_block;
      const int at = to.position(cell * this->shape.places() + v);
      const auto slice = to.slice(cell, at / pieces);
      *slice.column(step, at % pieces) = static_cast<std::uint16_t>(
          column - static_cast<std::uint32_t>(column_block) * static_cast<std::uint32_t>(this->shape.block_columns));
      const auto offset = static_cast<std::size_t>(slice.packet - to.packets) +
                          static_cast<std::size_t>(slice.value(step, at % pieces, to.value_bytes));
      slots(first + i) = static_cast<std::uint32_t>(offset / static_cast<std::size_t>(to.value_bytes));
    });
  }
};

template <class Pattern, class Exec>
class CellsConversion {
 public:
  using Memory = typename Pattern::memory_space;
  using Format = Experimental::PackedCells<Memory>;
  template <class T>
  using View = typename Format::template View<T>;

  CellsConversion(const Exec& space, const Pattern& A, const PackedNumbers<Memory>& numbers, const KernelTable* backend,
                  Format& p)
      : space_(space), A_(A), numbers_(numbers), backend_(backend), p_(p), s_(p.shape) {}

  void run(bool updatable) {
    make_room();
    deal();
    count();
    Reply<CellsTotals> reply(backend_);
    sort(reply.ask(answer_));
    p_.totals = reply.receive(space_, "Tessera::convert[cells] totals", answer_);
    const std::int64_t units = p_.totals.units;
    // Slots are numbers of values.
    const bool small = units * CellsLayout::unit / bytes_of(p_.precision) < (std::int64_t{1} << 32);
    p_.made = p_.totals.descends == 0 && p_.totals.too_many_cuts == 0 && small;
    if (!p_.made) return;
    fill(updatable);
  }

 private:
  static constexpr bool host = Compat::is_host_v<Exec>;

  void make_room() {
    const auto cells = static_cast<std::size_t>(s_.cells()), places = static_cast<std::size_t>(s_.all_places());
    const auto blocks = static_cast<std::size_t>(s_.row_blocks), cuts = blocks * static_cast<std::size_t>(s_.cuts);
    const auto columns = static_cast<std::size_t>(s_.column_blocks);
    const std::size_t groups = places / CellsLayout::row_group;
    p_.structure_storage =
        Arena<Memory>::make(space_, backend_, "Tessera::cells::structure", Lifetime::Plan, [&](Arena<Memory>& arena) {
          p_.runs = arena.template take<std::uint32_t>(cells * CellsLayout::runs);
          p_.units = arena.template take<std::uint32_t>(cells);
          p_.row_groups = arena.template take<std::uint32_t>(groups);
          p_.cuts = arena.template take<CellsCut>(cuts);
          p_.cut_counts = arena.template take<std::uint32_t>(blocks);
          p_.share_first = arena.template take<std::uint32_t>(static_cast<std::size_t>(s_.shares) + 1);
        });
    std::size_t zeroed = 0;
    scratch_ = Arena<Memory>::make(
        space_, backend_, "Tessera::cells::scratch", Lifetime::Temporary, [&](Arena<Memory>& arena) {
          totals_ = arena.template take<CellsTotals>(1);
          arrived_ = arena.template take<std::uint32_t>(1);
          zeroed = arena.bytes();
          answer_ = arena.template take<CellsTotals>(1);
          lengths_ = arena.template take<std::uint16_t>(columns * places);
          parts_ = arena.template take<std::uint16_t>(places);
          cut_first_ = arena.template take<std::uint16_t>(places);
          cut_of_ = arena.template take<std::uint32_t>(cuts);
          cut_places_ = arena.template take<std::uint32_t>(blocks);
          position_ = arena.template take<std::uint16_t>(cells * static_cast<std::size_t>(s_.places()));
          sizes_ = arena.template take<std::uint32_t>(cells);
          counts_ = arena.template take<std::uint32_t>(cells + columns);
          slice_at_ = arena.template take<std::uint32_t>(cells * static_cast<std::size_t>(s_.slices()));
          weights_ = arena.template take<std::uint32_t>(row_groups());
          ranks_ = arena.template take<std::uint32_t>(row_groups());
          use_ = arena.template take<ColumnUse>(1);
        });
    Kokkos::deep_copy(space_, View<char>(static_cast<char*>(scratch_.get()), zeroed), char(0));
    Kokkos::deep_copy(space_, p_.row_groups, CellsLayout::none);
  }
  std::size_t row_groups() const {
    return static_cast<std::size_t>((s_.rows + CellsLayout::row_group - 1) / CellsLayout::row_group);
  }

  template <class F>
  void take_rows(F& f) const {
    f.shape = s_;
    f.row_map = A_.row_map();
    f.columns = A_.entries();
    f.row_groups = p_.row_groups;
    f.lengths = lengths_;
    f.cut_first = cut_first_;
    f.cut_of = cut_of_;
    f.cut_places = cut_places_;
  }

  void deal() {
    const auto groups = static_cast<std::int64_t>(row_groups());
    CellsWeightFunctor<Pattern> weigh;
    weigh.row_map = A_.row_map();
    weigh.weights = weights_;
    weigh.rows = s_.rows;
    weigh.scale = 64.0 * static_cast<double>(groups) / static_cast<double>(p_.nnz);
    Kokkos::parallel_for("Tessera::convert[cells] weights", Kokkos::RangePolicy<Exec>(space_, 0, groups), weigh);
    ColumnRankFunctor<Pattern> rank;
    rank.uses = weights_;
    rank.place = ranks_;
    rank.found = use_;
    constexpr std::int64_t each = ColumnRankFunctor<Pattern>::columns_of_item;
    Kokkos::parallel_scan("Tessera::convert[cells] ranks",
                          Kokkos::RangePolicy<Exec>(space_, 0, (groups + each - 1) / each), rank);
    CellsDealFunctor<Pattern> deal;
    deal.weights = weights_;
    deal.place = ranks_;
    deal.row_groups = p_.row_groups;
    deal.found = use_;
    deal.shape = s_;
    Kokkos::parallel_for("Tessera::convert[cells] row groups", Kokkos::RangePolicy<Exec>(space_, 0, groups), deal);
  }

  /// A team of Kokkos per 32 rows.
  template <class F>
  void each_group(const char* label, F& f) const {
    using Policy = Kokkos::TeamPolicy<Exec, Compat::LightWeight, Kokkos::LaunchBounds<F::threads, 6>>;
    const auto teams = static_cast<int>(s_.all_places() / CellsLayout::row_group);
    f.level = Compat::large_scratch_level<Exec>;
    Kokkos::parallel_for(label,
                         Policy(space_, teams, Compat::team_size<Exec>(F::threads))
                             .set_scratch_size(f.level, Kokkos::PerTeam(f.scratch_bytes())),
                         f);
  }

  void count() {
    CellsCountFunctor<Pattern> f;
    take_rows(f);
    f.parts = parts_;
    f.totals = totals_;
    each_group("Tessera::convert[cells] pieces", f);
    CellsCutFunctor<Pattern> cut;
    take_rows(cut);
    cut.parts = parts_;
    cut.cuts = p_.cuts;
    cut.cut_counts = p_.cut_counts;
    cut.totals = totals_;
    Kokkos::parallel_for(
        "Tessera::convert[cells] cut rows",
        Kokkos::TeamPolicy<Exec, Compat::LightWeight>(space_, s_.row_blocks, Compat::team_size<Exec>(512)), cut);
  }

  void sort(const ReplyPlace<CellsTotals>& reply) {
    constexpr int threads = Compat::team_size<Exec>(512), lanes = host ? 1 : 32;
    CellsSortFunctor<Pattern> f;
    take_rows(f);
    f.position = position_;
    f.runs = p_.runs;
    f.units = p_.units;
    f.sizes = sizes_;
    f.slice_at = slice_at_;
    f.counts = counts_;
    f.share_first = p_.share_first;
    f.totals = totals_;
    f.arrived = arrived_.data();
    f.reply = reply;
    f.value_bytes = bytes_of(p_.precision);
    f.lanes = lanes;
    using Policy = Kokkos::TeamPolicy<Exec, Compat::LightWeight, Kokkos::LaunchBounds<512, 2>>;
    Kokkos::parallel_for("Tessera::convert[cells] order",
                         Policy(space_, static_cast<int>(s_.cells()), threads)
                             .set_scratch_size(0, Kokkos::PerTeam(f.scratch_bytes(threads, lanes))),
                         f);
  }

  CellsPlaces<Pattern> places() const {
    return {s_,
            position_,
            p_.units,
            slice_at_,
            reinterpret_cast<unsigned char*>(p_.packets.data()),
            bytes_of(p_.precision)};
  }

  void fill(bool updatable) {
    const auto words = static_cast<std::size_t>(p_.totals.units) * (CellsLayout::unit / 8);
    p_.packet_storage =
        Arena<Memory>::make(space_, backend_, "Tessera::cells::packets", Lifetime::Plan,
                            [&](Arena<Memory>& arena) { p_.packets = arena.template take<std::uint64_t>(words); });
    p_.slot_storage = Arena<Memory>::make(
        space_, backend_, "Tessera::cells::slots", updatable ? Lifetime::Plan : Lifetime::Temporary,
        [&](Arena<Memory>& arena) { p_.slots = arena.template take<std::uint32_t>(static_cast<std::size_t>(p_.nnz)); });
    CellsFrameFunctor<Pattern> frame;
    take_rows(frame);
    frame.to = places();
    frame.counts = counts_;
    Kokkos::parallel_for("Tessera::convert[cells] padding",
                         Kokkos::TeamPolicy<Exec, Compat::LightWeight>(space_, static_cast<int>(s_.cells()),
                                                                       Compat::team_size<Exec>(512)),
                         frame);
    CellsColumnFunctor<Pattern> columns;
    take_rows(columns);
    columns.to = places();
    columns.slots = p_.slots;
    each_group("Tessera::convert[cells] columns", columns);
    numbers_.scatter(p_);
    if (updatable) return;
    p_.slots = {};
    p_.slot_storage.reset();
  }

  const Exec& space_;
  const Pattern& A_;
  const PackedNumbers<Memory>& numbers_;
  const KernelTable* backend_;
  Format& p_;
  const CellsShape s_;
  std::shared_ptr<void> scratch_;
  View<CellsTotals> totals_, answer_;
  View<std::uint32_t> arrived_, cut_of_, cut_places_, sizes_, counts_, slice_at_, weights_, ranks_;
  View<std::uint16_t> lengths_, parts_, cut_first_, position_;
  View<ColumnUse> use_;
};

/// Compiled once per type of offsets.
template <class Pattern, class Exec>
void cells_pattern(const Exec& space, const Pattern& A, const PackedNumbers<typename Pattern::memory_space>& numbers,
                   bool updatable, const KernelTable* backend,
                   Experimental::PackedCells<typename Pattern::memory_space>& p) {
  CellsConversion<Pattern, Exec>(space, A, numbers, backend, p).run(updatable);
}

}  // namespace Impl

namespace Experimental {

/// Converts A to cells of the given shape; they are not made (`made`) where columns descend inside rows, or more rows
/// have long pieces than there is room for. The order of a row's products is that of its columns inside a column block,
/// and column blocks follow each other. One wait. Peak extra memory: 4 bytes per entry, 4 per row and column block.
/// @param updatable  keep what cells_update needs: 4 bytes per entry
/// @param backend  whose memory pool to use, if it has one; null: Kokkos allocations
template <class Csr, class Exec>
PackedCells<typename Csr::memory_space> to_cells(const Exec& space, const Csr& A, Precision precision,
                                                 const Impl::CellsShape& shape, bool updatable = true,
                                                 const KernelTable* backend = nullptr) {
  const Compat::ScopedRegion region("Tessera::convert[cells]");
  PackedCells<typename Csr::memory_space> p;
  p.shape = shape;
  p.precision = precision;
  p.rows = static_cast<std::int64_t>(A.rows());
  p.cols = static_cast<std::int64_t>(A.cols());
  p.nnz = static_cast<std::int64_t>(A.nnz());
  const Impl::PackedNumbersOf<Exec, Impl::ValuesOf<Csr>> numbers(space, A.values());
  Impl::cells_pattern(space, Impl::pattern_of(A), numbers, updatable, backend, p);
  return p;
}

/// New numbers for the same pattern: one kernel, no wait.
template <class Csr, class Exec>
void cells_update(const Exec& space, const PackedCells<typename Csr::memory_space>& p,
                  const typename Csr::values_type& values) {
  Impl::cells_scatter(space, p, Impl::ValuesOf<Csr>(values));
}

}  // namespace Experimental
}  // namespace Tessera

#endif
