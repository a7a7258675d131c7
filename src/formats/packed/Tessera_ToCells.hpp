// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FORMATS_PACKED_TO_CELLS_HPP
#define TESSERA_FORMATS_PACKED_TO_CELLS_HPP

#include <cstdint>
#include <type_traits>

#include "core/Tessera_Arena.hpp"
#include "formats/packed/Tessera_CellsOrder.hpp"
#include "formats/packed/Tessera_CellsRules.hpp"
#include "formats/packed/Tessera_PackedValues.hpp"

/// \file
/// CSR to packed slices in cells on the execution space of the matrix. Bytes moved, ideally: columns twice, values
/// once, the format once; per row and column block 2 bytes (its length) written once and read three times, and 2 (its
/// position) written and read; if updatable, 4 bytes per entry (where its number lies) written.

namespace Tessera {
namespace Impl {

/// The kernels of a conversion and what they share. The numbers come in through PackedNumbers.
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
    p_.made = p_.totals.descends == 0 && p_.totals.no_room == 0 && small;
    if (!p_.made) return;
    fill(updatable);
  }

 private:
  static constexpr int lanes = Compat::is_host_v<Exec> ? 1 : 32;
  /// Entries of a work unit, at least, and teams that take these, at most; hosts' are few, so that small matrices have
  /// them.
  static constexpr std::int64_t least_work = Compat::is_host_v<Exec> ? 64 : 2048,
                                most_work_teams = Compat::is_host_v<Exec> ? 4 : 1024;

  void make_room() {
    const auto cells = static_cast<std::size_t>(s_.cells()), places = static_cast<std::size_t>(s_.all_places());
    const auto blocks = static_cast<std::size_t>(s_.row_blocks), cuts = blocks * static_cast<std::size_t>(s_.cuts);
    const auto columns = static_cast<std::size_t>(s_.column_blocks);
    const std::size_t groups = places / CellsLayout::row_group;
    p_.structure_storage =
        Arena<Memory>::make(space_, backend_, "Tessera::cells::structure", Lifetime::Plan, [&](Arena<Memory>& arena) {
          p_.runs = arena.template take<CellsRun>(cells * CellsLayout::runs);
          p_.units = arena.template take<std::uint32_t>(cells);
          p_.row_groups = arena.template take<std::uint32_t>(groups);
          p_.cuts = arena.template take<CellsCut>(cuts);
          p_.cut_counts = arena.template take<std::uint32_t>(blocks);
          p_.share_first = arena.template take<std::uint32_t>(static_cast<std::size_t>(s_.shares) + 1);
        });
    // A device has some 1,300 teams under way; work units below a third of what each gets would not end earlier.
    heavy_.entries = static_cast<std::uint32_t>(
        std::max({least_work, 2 * s_.mean_of_group(p_.nnz), std::min<std::int64_t>(p_.nnz / 4096, 1 << 30)}));
    const std::int64_t most_work = CellsHeavy<Memory>::most(p_.nnz, heavy_.entries);
    heavy_.teams = static_cast<int>(std::min(most_work, most_work_teams));
    std::size_t zeroed = 0;
    scratch_ = Arena<Memory>::make(
        space_, backend_, "Tessera::cells::scratch", Lifetime::Temporary, [&](Arena<Memory>& arena) {
          totals_ = arena.template take<CellsTotals>(1);
          arrived_ = arena.template take<std::uint32_t>(3);
          zeroed = arena.bytes();
          answer_ = arena.template take<CellsTotals>(1);
          lengths_ = arena.template take<std::uint16_t>(columns * places);
          parts_ = arena.template take<std::uint16_t>(places);
          cut_first_ = arena.template take<std::uint16_t>(places);
          cut_of_ = arena.template take<std::uint32_t>(cuts);
          cut_places_ = arena.template take<std::uint32_t>(blocks);
          position_ = arena.template take<std::uint16_t>(cells * static_cast<std::size_t>(s_.places()));
          sizes_ = arena.template take<std::uint32_t>(cells);
          counts_ = arena.template take<std::uint32_t>(cells * CellsLayout::widths);
          first_slice_ = arena.template take<std::uint32_t>(cells * CellsLayout::widths);
          slice_at_ = arena.template take<std::uint32_t>(static_cast<std::size_t>(s_.most_slices(p_.nnz)));
          weights_ = arena.template take<std::uint32_t>(row_groups());
          firsts_ = arena.template take<std::int64_t>(groups);
          offsets_ = arena.template take<std::uint32_t>(groups * (CellsLayout::row_group + 1));
          heavy_.work = arena.template take<std::uint64_t>(static_cast<std::size_t>(most_work));
          heavy_.place_of = arena.template take<std::uint32_t>(row_groups());
        });
    Kokkos::deep_copy(space_, View<char>(static_cast<char*>(scratch_.get()), zeroed), char(0));
    heavy_.found = arrived_.data() + 2;
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
    weigh.heavy = heavy_;
    weigh.scale = 64.0 * static_cast<double>(groups) / static_cast<double>(p_.nnz);
    Kokkos::parallel_for("Tessera::convert[cells] weights", Kokkos::RangePolicy<Exec>(space_, 0, groups), weigh);
    constexpr int threads = Compat::team_size<Exec>(1024);
    CellsDealFunctor<Pattern> deal;
    deal.weights = weights_;
    deal.row_groups = p_.row_groups;
    deal.shape = s_;
    deal.lanes = lanes;
    using Scratch = typename CellsDealFunctor<Pattern>::Scratch;
    const auto words = static_cast<std::size_t>(CellsDealFunctor<Pattern>::words(threads, lanes));
    Kokkos::parallel_for(
        "Tessera::convert[cells] row groups",
        Kokkos::TeamPolicy<Exec, Compat::LightWeight, Kokkos::LaunchBounds<1024, 1>>(space_, 1, threads)
            .set_scratch_size(0, Kokkos::PerTeam(static_cast<int>(Scratch::shmem_size(words)))),
        deal);
  }

  void count() {
    CellsCountFunctor<Pattern> f;
    take_rows(f);
    f.parts = parts_;
    f.firsts = firsts_;
    f.offsets = offsets_;
    f.totals = totals_;
    f.heavy = heavy_;
    f.block_of = CellsDivider(s_.block_columns);
    f.level = Compat::large_scratch_level<Exec>;
    using Policy = Kokkos::TeamPolicy<Exec, Compat::LightWeight, Kokkos::LaunchBounds<256, 6>>;
    const auto teams = heavy_.teams + static_cast<int>(s_.all_places() / CellsLayout::row_group);
    Kokkos::parallel_for("Tessera::convert[cells] pieces",
                         Policy(space_, teams, Compat::team_size<Exec>(threads_of_group()))
                             .set_scratch_size(f.level, Kokkos::PerTeam(f.scratch_bytes())),
                         f);
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
    constexpr int threads = Compat::team_size<Exec>(512);
    CellsSortFunctor<Pattern> f;
    take_rows(f);
    f.position = position_;
    f.runs = p_.runs;
    f.units = p_.units;
    f.sizes = sizes_;
    f.slice_at = slice_at_;
    f.first_slice = first_slice_;
    f.counts = counts_;
    f.share_first = p_.share_first;
    f.totals = totals_;
    f.arrived = arrived_.data();
    f.reply = reply;
    f.value_bytes = bytes_of(p_.precision);
    f.lanes = lanes;
    using Policy = Kokkos::TeamPolicy<Exec, Compat::LightWeight, Kokkos::LaunchBounds<512, 3>>;
    Kokkos::parallel_for("Tessera::convert[cells] order",
                         Policy(space_, static_cast<int>(s_.cells()), threads)
                             .set_scratch_size(0, Kokkos::PerTeam(f.scratch_bytes(threads))),
                         f);
  }

  /// Of a team that has 32 rows: few, so that many teams are under way.
  int threads_of_group() const { return s_.mean_of_group(p_.nnz) < 768 ? 64 : 128; }

  void fill(bool updatable) {
    const auto words = static_cast<std::size_t>(p_.totals.units) * (CellsLayout::unit / 8);
    p_.packet_storage =
        Arena<Memory>::make(space_, backend_, "Tessera::cells::packets", Lifetime::Plan,
                            [&](Arena<Memory>& arena) { p_.packets = arena.template take<std::uint64_t>(words); });
    const bool at_once = std::is_same_v<typename Pattern::ordinal_type, int> && numbers_.precision() == p_.precision;
    if (updatable || !at_once) {
      p_.slot_storage =
          Arena<Memory>::make(space_, backend_, "Tessera::cells::slots",
                              updatable ? Lifetime::Plan : Lifetime::Temporary, [&](Arena<Memory>& arena) {
                                p_.slots = arena.template take<std::uint32_t>(static_cast<std::size_t>(p_.nnz));
                              });
    }
    CellsTailFunctor<Pattern> tail;
    take_places(tail.to);
    Kokkos::parallel_for("Tessera::convert[cells] tails",
                         Kokkos::RangePolicy<Exec>(space_, 0, CellsTailFunctor<Pattern>::threads(s_)), tail);
    if constexpr (std::is_same_v<typename Pattern::ordinal_type, int>) {
      CellsPieces<PackedPlainPattern<Memory>> pieces;
      take_pieces(pieces);
      if (at_once) return numbers_.fill_cells(pieces);
    }
    CellsPieces<Pattern> pieces;
    take_pieces(pieces);
    cells_write(space_, pieces, CellsNoNumbers());
    numbers_.scatter(p_);
    if (updatable) return;
    p_.slots = {};
    p_.slot_storage.reset();
  }
  void take_places(CellsPlaces<Memory>& to) const {
    to.shape = s_;
    to.position = position_;
    to.units = p_.units;
    to.first_slice = first_slice_;
    to.counts = counts_;
    to.slice_at = slice_at_;
    to.packets = reinterpret_cast<unsigned char*>(p_.packets.data());
    to.value_bytes = bytes_of(p_.precision);
  }
  template <class P>
  void take_pieces(CellsPieces<P>& pieces) const {
    pieces.columns = typename P::entries_type(A_.entries().data(), A_.entries().extent(0));
    pieces.firsts = firsts_;
    pieces.offsets = offsets_;
    pieces.lengths = lengths_;
    pieces.parts = parts_;
    pieces.cut_first = cut_first_;
    take_places(pieces.to);
    pieces.heavy = heavy_;
    pieces.slots = p_.slots;
    pieces.threads = threads_of_group();
    pieces.room = s_.held_entries(p_.nnz, bytes_of(p_.precision));
  }

  const Exec& space_;
  const Pattern& A_;
  const PackedNumbers<Memory>& numbers_;
  const KernelTable* backend_;
  Format& p_;
  const CellsShape s_;
  std::shared_ptr<void> scratch_;
  CellsHeavy<Memory> heavy_;
  View<CellsTotals> totals_, answer_;
  View<std::uint32_t> arrived_, cut_of_, cut_places_, sizes_, counts_, first_slice_, slice_at_, weights_, offsets_;
  View<std::int64_t> firsts_;
  View<std::uint16_t> lengths_, parts_, cut_first_, position_;
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
/// and column blocks follow each other. One wait. Peak extra memory: 4 bytes per row and column block, 16 per row,
/// and 4 per entry where numbers are rounded.
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
