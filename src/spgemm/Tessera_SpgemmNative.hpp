// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPGEMM_SPGEMM_NATIVE_HPP
#define TESSERA_SPGEMM_SPGEMM_NATIVE_HPP

#include <algorithm>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "core/Tessera_Arena.hpp"
#include "core/Tessera_Mailbox.hpp"
#include "core/Tessera_Profile.hpp"
#include "spgemm/Tessera_SpgemmRules.hpp"

/// \file
/// SpgemmAlgorithm::Binned by the kernels of a backend: rows of C by size. Columns are found once, in room for as many
/// as the rows' bounds add up to, and go from there to C, once it is known where; without that room they are counted
/// first and found again in place. Where not even the lists of rows may be in memory at once, each phase goes through
/// the rows in batches.

namespace Tessera {
namespace Impl {

template <class Csr>
class SpgemmNative {
 public:
  using Exec = typename Csr::execution_space;
  using Scalar = typename Csr::value_type;
  using Offset = typename Csr::size_type;
  using Space = typename Csr::memory_space;
  /// What the kernels know.
  static constexpr bool possible = std::is_same_v<typename Csr::ordinal_type, int>;

  SpgemmNative() = default;
  /// Looks at A and B. @param most  bytes of lists of rows and of columns that are found, at most, unless a batch of
  /// 256 rows needs more; 0: as many as lists take, and a 32nd of the device's memory, what a backend's pool keeps
  /// @param lifetime  Temporary: everything happens on this instance, nothing after it is gone
  SpgemmNative(const Exec& space, const KernelTable& backend, const Csr& A, const Csr& B, std::size_t most,
               SpgemmTiles tiles, Lifetime lifetime)
      : backend_(&backend),
        most_(most),
        tiles_(tiles),
        lifetime_(lifetime),
        mail_(Mailbox<SpgemmAnswer>::open(backend)) {
    set(A, B);
    rows_ = batch_rows_ = args_.A.rows;
    args_.fp64 = sizeof(Scalar) == 8;
    args_.wide = sizeof(Offset) == 8;
    args_.long_rows = args_.B.nnz >= spgemm_long_row * args_.B.rows;
    args_.window_rule = spgemm_window_rule(tiles);
    backend_->spgemm.deal(args_);
    if (most_ > 0) {
      while (batch_rows_ > spgemm_least_batch && list_bytes(batch_rows_) > most_) batch_rows_ = half_of(batch_rows_);
    }
    make_lists(space);
    if (!batched()) look(space, 0, rows_);
    if (!batched() && most_ > 0 && rows_ > 1 && bytes_ + parts_bytes() > most_) batch_rows_ = whole_windows(rows_ - 1);
    if (!batched()) {
      products_ = kinds_.products;
      disorder_ = kinds_.disorder;
      by_bits_ = rows_by_bits();
      make_parts_small();
      return;
    }
    each_batch(space, [&](std::int64_t) {
      products_ += kinds_.products;
      disorder_ = kinds_.disorder;
      most_entries_ += kinds_.entries;
      most_parts_bytes_ = std::max(most_parts_bytes_, parts_bytes());
      by_bits_ += rows_by_bits();
    });
  }

  std::int64_t products() const { return products_; }
  /// Columns of every row of B ascend, without copies: else nothing of this can be used.
  bool ordered() const { return disorder_ == 0; }
  /// Entries of pieces that rows of A should be cut into (SpgemmLongRows); 0: they should not. @param cols  of C
  std::int64_t wanted_piece(std::int64_t cols) const {
    return batched() || !ordered() ? 0 : spgemm_piece_of_long_rows(kinds_, rows_, args_.A.nnz, cols);
  }
  /// Whether phases go through the rows in batches.
  bool batched() const { return batch_rows_ < rows_; }
  /// Most of lists of rows, of parts and of columns that were there at once.
  std::size_t peak_bytes() const { return peak_; }
  /// Of so many rows, and entries of B.
  std::size_t list_bytes(std::int64_t rows) const { return list_bytes(rows, args_.B.nnz); }
  std::size_t list_bytes(std::int64_t rows, std::int64_t entries_of_b) const {
    SpgemmArgs args = args_;
    args.A.rows = rows;
    args.B.nnz = entries_of_b;
    backend_->spgemm.deal(args);
    Arena<Space> count;
    typename Arena<Space>::template View<SpgemmAnswer> none;
    lay_out(count, args, static_cast<std::size_t>(rows), none);
    return count.bytes();
  }
  /// What peak_bytes() never exceeds, from the look on. @param once  as find() will be told
  std::size_t most_bytes(bool once) const {
    if (backend_ == nullptr) return 0;
    if (batched()) return std::max(peak_, bytes_ + most_parts_bytes_);
    const std::size_t parts = parts_bytes(), held = sums_by_tables(once) ? 0 : parts;
    // Without memory for columns there are parts alone.
    return std::max({peak_, bytes_ + parts, bytes_ + held + room(once, held).bytes});
  }
  int launches() const {
    int n = static_cast<int>(sizes_.parts > 0) + static_cast<int>(sizes_.rows[SpgemmRowSizes::small_window] > 0) +
            static_cast<int>(sizes_.rows[SpgemmRowSizes::large_window] > 0);
    for (int size = 0; size < SpgemmRowSizes::whole; ++size) n += sizes_.rows[size] > 0;
    return n;
  }

  /// Enqueues the search for columns, unless it is done in batches. @param once  the one numeric() that follows takes
  /// the numbers as they are now, and no update() comes
  void find(const Exec& space, bool once) {
    if (batched()) return;
    forget_parts();  // of an earlier search: never in memory beside those of this one
    forget_columns();
    const bool by_tables = sums_by_tables(once);
    if (!by_tables) make_parts(space);
    make_room(space, once);
    if (by_tables && !args_.once) make_parts(space);  // there was no memory for numbers
    args_.place = {args_.at, true};
    find_columns(space, args_);
    started_ = true;
  }
  /// Entries of C; the row map, unless that many do not fit. After find(), or with it.
  std::int64_t symbolic(const Exec& space, Offset* row_map) {
    if (batched()) return count_batches(space, row_map);
    if (!started_) find(space, false);
    started_ = false;
    args_.row_map = row_map;
    mark_windows(space);
    ask(space, "offsets", backend_->spgemm.offsets);
    sizes_ = answer(space);
    return sizes_.entries;
  }
  /// Windows of rows that are summed on FP64 matrix units, of what was last counted.
  std::int64_t windows() const {
    return sizes_.rows[SpgemmRowSizes::small_window] + sizes_.rows[SpgemmRowSizes::large_window];
  }
  /// Entries that C has at most.
  std::int64_t most_entries() const { return kinds_.entries; }
  /// Both phases after find(), into arrays for most_entries(), which offsets of this type count. Waits once where every
  /// row was summed in a table, else in between as well.
  std::int64_t finish(const Exec& space, Offset* row_map, int* columns, Scalar* values) {
    if (!args_.once || !only_tables()) {
      symbolic(space, row_map);
      numeric(space, row_map, columns, values);
      return sizes_.entries;
    }
    started_ = false;
    args_.row_map = row_map;
    ask(space, "offsets", backend_->spgemm.offsets);
    sizes_ = {};  // no row is left to be summed
    sizes_.entries = kinds_.entries;
    args_.known = args_.found;
    numbers(space, row_map, columns, values);
    sizes_ = answer(space);
    forget_columns();
    return sizes_.entries;
  }
  void numeric(const Exec& space, const Offset* row_map, int* columns, Scalar* values) {
    if (batched()) return sum_batches(space, row_map, columns, values, true);
    const bool found = room_ != nullptr;
    if (!found) {  // by a symbolic() that had no room, or an earlier numeric()
      SpgemmArgs fill = args_;
      fill.place = {row_map, args_.wide};
      fill.found = columns;
      find_columns(space, fill);
    }
    args_.known = found ? args_.found : nullptr;
    numbers(space, row_map, columns, values);
    forget_columns();
  }
  void update(const Exec& space, const Csr& A, const Csr& B, const Offset* row_map, const int* columns,
              Scalar* values) {
    set(A, B);
    // Columns are not written.
    if (batched()) return sum_batches(space, row_map, const_cast<int*>(columns), values, false);
    numbers(space, row_map, const_cast<int*>(columns), values);
  }

 private:
  static SpgemmMatrix matrix(const Csr& M) {
    return {static_cast<std::int64_t>(M.rows()),
            static_cast<std::int64_t>(M.nnz()),
            {M.row_map().data(), sizeof(Offset) == 8},
            M.entries().data(),
            M.values().data()};
  }
  void set(const Csr& A, const Csr& B) {
    args_.A = matrix(A);
    args_.B = matrix(B);
    all_rows_ = args_.A;
  }
  /// Of rows, in one allocation.
  static void lay_out(Arena<Space>& arena, SpgemmArgs& args, std::size_t rows,
                      typename Arena<Space>::template View<SpgemmAnswer>& answer) {
    args.kind = arena.template take<std::uint8_t>(rows).data();
    for (auto** const of_rows :
         {&args.low, &args.high, &args.bound, &args.count, &args.products, &args.order, &args.sizes}) {
      *of_rows = arena.template take<std::int32_t>(rows).data();
    }
    args.at = arena.template take<std::int64_t>(rows).data();
    args.window = arena.template take<std::uint8_t>(rows / static_cast<std::size_t>(args.window_rows) + 1).data();
    args.partial = arena.template take<SpgemmTotals>(static_cast<std::size_t>(args.thread_blocks)).data();
    answer = arena.template take<SpgemmAnswer>(1);
    args.answer = answer.data();
  }
  void make_lists(const Exec& space) {
    args_.A.rows = batch_rows_;
    backend_->spgemm.deal(args_);
    storage_ = Arena<Space>::make(space, backend_, "Tessera::spgemm rows", lifetime_, [&](Arena<Space>& arena) {
      lay_out(arena, args_, static_cast<std::size_t>(batch_rows_), answer_view_);
      bytes_ = arena.bytes();
    });
    window_ = std::exchange(args_.window, nullptr);
    note_peak();
  }
  /// At rows [first, first + rows).
  void look(const Exec& space, std::int64_t first, std::int64_t rows) {
    args_.A = all_rows_;
    args_.A.rows = rows;
    args_.A.row_map.of = static_cast<const Offset*>(all_rows_.row_map.of) + first;
    // Dealt out as by make_lists(): fewer rows may be dealt to more thread blocks than there are totals for.
    ask(space, "look", backend_->spgemm.look);
    kinds_ = answer(space);
  }
  /// f(first row) after a look at each batch, whose parts fit as well, unless it is the least.
  template <class F>
  void each_batch(const Exec& space, const F& f) {
    std::int64_t first = 0;
    do {
      std::int64_t rows = rows_ - first < batch_rows_ ? rows_ - first : batch_rows_;
      look(space, first, rows);
      while (rows > args_.window_rows && batch_rows_ > spgemm_least_batch && bytes_ + parts_bytes() > most_) {
        rows = half_of(rows);
        look(space, first, rows);
      }
      f(first);
      first += rows;
    } while (first < rows_);
  }
  /// Columns are found, counted and forgotten. Twice where only the count says whether offsets are wide enough.
  std::int64_t count_batches(const Exec& space, Offset* row_map) {
    const bool may_overflow = !args_.wide && most_entries_ > INT32_MAX;
    args_.sized = false;  // as sum_batches() left them if something threw
    args_.window = nullptr;
    for (Offset* const to : {may_overflow ? nullptr : row_map, row_map}) {
      args_.before = 0;
      args_.found = nullptr;
      each_batch(space, [&](std::int64_t first) {
        find_columns(space, args_);
        args_.row_map = to != nullptr ? to + first : nullptr;
        args_.part = nullptr;
        ask(space, "offsets", backend_->spgemm.offsets);
        args_.before += answer(space).entries;
      });
      if (to != nullptr || (!args_.wide && args_.before > INT32_MAX)) break;
    }
    return args_.before;
  }
  /// @param find  columns are found in their places; else they are there
  void sum_batches(const Exec& space, const Offset* row_map, int* columns, Scalar* values, bool find) {
    args_.sized = true;
    each_batch(space, [&](std::int64_t first) {
      const Offset* const own = row_map + first;
      if (find) {
        args_.place = {own, args_.wide};
        args_.found = columns;
        find_columns(space, args_);
        args_.found = nullptr;
      }
      make_parts(space);
      args_.row_map = const_cast<Offset*>(own);  // which is read
      mark_windows(space);
      ask(space, "offsets", backend_->spgemm.offsets);
      sizes_ = answer(space);
      numbers(space, own, columns, values);
      forget_parts();  // waits
    });
    args_.sized = false;
    args_.window = nullptr;
  }
  /// Rows of a batch are whole windows, so that windows are the same in batches of any size.
  std::int64_t whole_windows(std::int64_t rows) const {
    return rows < args_.window_rows ? rows_ : rows / args_.window_rows * args_.window_rows;
  }
  std::int64_t half_of(std::int64_t rows) const {
    return ((rows + 1) / 2 + args_.window_rows - 1) / args_.window_rows * args_.window_rows;
  }
  std::int64_t rows_by_bits() const {
    return kinds_.rows[SpgemmRowKinds::narrow] + kinds_.rows[SpgemmRowKinds::wide] + kinds_.rows[SpgemmRowKinds::vast];
  }
  /// Enqueues the look for windows that matrix units sum, where there may be enough of them. Facts of all rows say so,
  /// not those of a batch.
  void mark_windows(const Exec& space) {
    args_.window = nullptr;
    DeviceFacts facts;
    if (!args_.fp64 || !backend_->runtime.device_facts(facts).ok()) return;
    if (!spgemm_looks_for_windows(tiles_, products_, by_bits_, rows_, rows_ / args_.window_rows, facts)) return;
    args_.window = window_;
    run_on_backend(space, name("windows"), [&](Stream stream) { return backend_->spgemm.windows(args_, stream); });
  }
  KernelName name(const char* stage) const { return {"spgemm", stage, ScalarTraits<Scalar>::precision}; }
  /// Enqueues a stage whose totals answer() has.
  void ask(const Exec& space, const char* stage, Status (*work)(const SpgemmArgs&, Stream) noexcept) {
    ++args_.question;
    if (mail_ != nullptr) args_.answer = mail_->ask();
    run_on_backend(space, name(stage), [&](Stream stream) { return work(args_, stream); });
  }
  void find_columns(const Exec& space, const SpgemmArgs& args) const {
    run_on_backend(space, name("columns"),
                   [&](Stream stream) { return backend_->spgemm.columns(args, kinds_, stream); });
  }
  void numbers(const Exec& space, const Offset* row_map, int* columns, Scalar* values) {
    args_.row_map = const_cast<Offset*>(row_map);  // which is read from now on
    args_.columns = columns;
    args_.values = values;
    if (sizes_.entries == 0) return;
    run_on_backend(space, name("numbers"),
                   [&](Stream stream) { return backend_->spgemm.numbers(args_, sizes_, stream); });
  }
  /// Where there are mailboxes, the stage may still be at work.
  SpgemmTotals answer(const Exec& space) const {
    if (mail_ != nullptr) return mail_->answer(space, args_.question).totals;
    SpgemmAnswer host;
    Impl::fetch(space, backend_, "Tessera::spgemm totals", host, answer_view_);
    return host.totals;
  }
  /// Every row is found in a table, and if `once` summed there.
  bool only_tables() const { return rows_by_bits() == 0; }
  /// Rows whose bound is above what one has that few lanes take as a whole.
  std::int64_t may_be_large() const {
    std::int64_t rows = 0;
    for (int kind = 0; kind < SpgemmRowKinds::count; ++kind) {
      if (kind >= SpgemmRowKinds::tables || SpgemmRowKinds::holds(kind) > SpgemmRowSizes::holds(1)) {
        rows += kinds_.rows[kind];
      }
    }
    return rows;
  }
  std::size_t parts_bytes() const {
    return sizeof(SpgemmRowPart) * static_cast<std::size_t>(SpgemmRowSizes::most_parts(
                                       kinds_.entries, kinds_.products, may_be_large(), args_.small_part));
  }
  /// Of few products, unless there is no room for so many. Batches have parts of the usual size.
  void make_parts_small() {
    args_.small_part = spgemm_small_part(products_);
    if (most_ > 0 && bytes_ + parts_bytes() > most_) args_.small_part = SpgemmRowSizes::part_products;
  }
  void forget_parts() {
    args_.part = nullptr;
    part_.reset();
    part_held_ = 0;
  }
  void make_parts(const Exec& space) {
    forget_parts();
    part_ = Impl::allocate<Space>(space, backend_, "Tessera::spgemm parts", parts_bytes(), lifetime_);
    part_held_ = parts_bytes();
    args_.part = static_cast<SpgemmRowPart*>(part_.get());
    note_peak();
  }
  /// For columns that are found before C is there.
  struct Room {
    std::size_t columns, bytes;  ///< none, if the lists leave too little
    bool numbers;                ///< for the numbers as well
  };
  /// @param once  one numeric() follows  @param held  bytes of parts that are there
  Room room(bool once, std::size_t held) const {
    std::size_t most = most_ > 0 ? most_ - std::min(most_, bytes_ + held) : 0;
    DeviceFacts facts;
    if (most_ == 0 && backend_->runtime.device_facts(facts).ok()) most = facts.memory_bytes / 32;
    const bool any = most_ == 0 && most == 0;
    const auto entries = static_cast<std::size_t>(kinds_.entries);
    const std::size_t columns = (entries * sizeof(int) + 255) / 256 * 256, all = columns + entries * sizeof(Scalar);
    const bool numbers = once && (any || all <= most);
    if (numbers) return {columns, all, true};
    return {columns, any || columns <= most ? columns : 0, false};
  }
  /// No row is left for numbers() to sum.
  bool sums_by_tables(bool once) const { return once && only_tables() && room(once, 0).numbers; }
  void make_room(const Exec& space, bool once) {
    const Room all = room(once, part_held_);
    args_.once = all.numbers;
    args_.found = nullptr;
    room_.reset();
    if (all.bytes == 0) return;
    try {  // numeric() may come on another instance, or never
      room_ = Impl::allocate<Space>(space, backend_, "Tessera::spgemm columns", all.bytes, lifetime_);
    } catch (const DeviceError&) {  // no memory for what can be done without
    } catch (const OutOfMemory&) {  // the same of Kokkos
    }
    if (room_ == nullptr) {
      args_.once = false;
      return;
    }
    room_bytes_ = all.bytes;
    note_peak();
    args_.found = static_cast<std::int32_t*>(room_.get());
    args_.found_values = static_cast<char*>(room_.get()) + all.columns;
  }
  /// Waits for what reads them, unless they are released in the order of the stream.
  void forget_columns() {
    args_.known = args_.found = nullptr;
    args_.once = false;
    room_.reset();
    room_bytes_ = 0;
  }
  void note_peak() { peak_ = std::max(peak_, bytes_ + part_held_ + room_bytes_); }

  const KernelTable* backend_ = nullptr;
  SpgemmArgs args_;
  SpgemmMatrix all_rows_;  ///< A; args_ has those of a batch
  std::int64_t rows_ = 0, batch_rows_ = 0, products_ = 0, disorder_ = 0, most_entries_ = 0, by_bits_ = 0;
  SpgemmTotals kinds_ = {}, sizes_ = {};
  std::size_t most_ = 0, bytes_ = 0, part_held_ = 0, room_bytes_ = 0, peak_ = 0, most_parts_bytes_ = 0;
  bool started_ = false;
  SpgemmTiles tiles_ = SpgemmTiles::Auto;
  std::uint8_t* window_ = nullptr;  ///< room for what windows() writes
  std::shared_ptr<void> storage_, part_, room_;
  Lifetime lifetime_ = Lifetime::Plan;
  std::shared_ptr<Mailbox<SpgemmAnswer>> mail_;
  typename Arena<Space>::template View<SpgemmAnswer> answer_view_;  ///< where there are no mailboxes
};

}  // namespace Impl
}  // namespace Tessera

#endif
