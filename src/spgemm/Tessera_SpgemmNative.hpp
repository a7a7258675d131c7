// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPGEMM_SPGEMM_NATIVE_HPP
#define TESSERA_SPGEMM_SPGEMM_NATIVE_HPP

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

#include "core/Tessera_Arena.hpp"

/// \file
/// SpgemmAlgorithm::Binned by the kernels of a backend: rows of C by size. Columns are found once, in room for as many
/// as the rows' bounds add up to, and go from there to C, once it is known where; without that room they are counted
/// first and found again in place.

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
  /// Looks at A and B. @param most_room  bytes for columns that are found; 0: a 32nd of the device's memory, what a
  /// backend's pool keeps
  SpgemmNative(const Exec& space, const KernelTable& backend, const Csr& A, const Csr& B, std::size_t most_room)
      : backend_(&backend), most_room_(most_room) {
    set(A, B);
    const auto rows = static_cast<std::size_t>(A.rows());
    backend.spgemm.deal(args_);
    args_.fp64 = sizeof(Scalar) == 8;
    args_.wide = sizeof(Offset) == 8;
    args_.long_rows = args_.B.nnz >= long_row * args_.B.rows;
    storage_ = Arena<Space>::make(space, backend_, "Tessera::spgemm rows", Lifetime::Plan, [&](Arena<Space>& arena) {
      args_.kind = arena.template take<std::uint8_t>(rows).data();
      for (auto** const of_rows :
           {&args_.low, &args_.high, &args_.bound, &args_.count, &args_.products, &args_.order, &args_.sizes}) {
        *of_rows = arena.template take<std::int32_t>(rows).data();
      }
      args_.at = arena.template take<std::int64_t>(rows).data();
      args_.partial = arena.template take<SpgemmTotals>(static_cast<std::size_t>(args_.thread_blocks)).data();
      totals_view_ = arena.template take<SpgemmTotals>(1);
      args_.totals = totals_view_.data();
      bytes_ = arena.bytes();
    });
    run(space, backend.spgemm.look);
    kinds_ = totals(space);
  }

  std::int64_t products() const { return kinds_.products; }
  /// Columns of every row of B ascend, without copies: else nothing of this can be used.
  bool ordered() const { return kinds_.disorder == 0; }
  std::size_t bytes() const { return bytes_ + parts_bytes_; }
  int launches() const {
    int n = static_cast<int>(sizes_.parts > 0);
    for (int size = 0; size < SpgemmRowSizes::whole; ++size) n += sizes_.rows[size] > 0;
    return n;
  }

  /// Enqueues the search for columns. @param once  the one numeric() that follows takes the numbers as they are now,
  /// and no update() comes
  void find(const Exec& space, bool once) {
    make_room(space, once);
    args_.place = {args_.at, true};
    run_lists(space, backend_->spgemm.columns, kinds_);
    const auto parts =
        static_cast<std::size_t>(SpgemmRowSizes::most_parts(kinds_.entries, kinds_.products, may_be_large()));
    parts_bytes_ = parts * sizeof(SpgemmRowPart);
    part_ = Impl::allocate<Space>(space, backend_, "Tessera::spgemm parts", parts_bytes_, Lifetime::Plan);
    args_.part = static_cast<SpgemmRowPart*>(part_.get());
    started_ = true;
  }
  /// Entries of C; the row map, unless that many do not fit. After find(), or with it.
  std::int64_t symbolic(const Exec& space, Offset* row_map) {
    if (!started_) find(space, false);
    started_ = false;
    args_.row_map = row_map;
    run(space, backend_->spgemm.offsets);
    sizes_ = totals(space);
    return sizes_.entries;
  }
  void numeric(const Exec& space, const Offset* row_map, int* columns, Scalar* values) {
    const bool found = room_ != nullptr;
    if (!found) {  // by a symbolic() that had no room, or an earlier numeric()
      SpgemmArgs fill = args_;
      fill.place = {row_map, args_.wide};
      fill.found = columns;
      check(backend_->spgemm.columns(fill, kinds_, Compat::native_stream(space)));
    }
    args_.known = found ? args_.found : nullptr;
    numbers(space, row_map, columns, values);
    args_.known = args_.found = nullptr;
    args_.once = false;
    room_.reset();  // waits
  }
  void update(const Exec& space, const Csr& A, const Csr& B, const Offset* row_map, const int* columns,
              Scalar* values) {
    set(A, B);
    numbers(space, row_map, const_cast<int*>(columns), values);  // which are not written
  }

 private:
  /// Mean entries of B's rows from which on all lanes of a wave go through one together.
  static constexpr std::int64_t long_row = 24;

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
  }
  void check(const Status& status) const {
    if (!status.ok()) throw DeviceError(std::string("spgemm: ") + status.message);
  }
  void run(const Exec& space, Status (*work)(const SpgemmArgs&, Stream) noexcept) const {
    check(work(args_, Compat::native_stream(space)));
  }
  void run_lists(const Exec& space, Status (*work)(const SpgemmArgs&, const SpgemmTotals&, Stream) noexcept,
                 const SpgemmTotals& lists) const {
    check(work(args_, lists, Compat::native_stream(space)));
  }
  void numbers(const Exec& space, const Offset* row_map, int* columns, Scalar* values) {
    args_.row_map = const_cast<Offset*>(row_map);  // which is read from now on
    args_.columns = columns;
    args_.values = values;
    if (sizes_.entries > 0) run_lists(space, backend_->spgemm.numbers, sizes_);
  }
  SpgemmTotals totals(const Exec& space) const {
    SpgemmTotals host;
    Impl::fetch(space, backend_, "Tessera::spgemm totals", host, totals_view_);
    return host;
  }
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
  void make_room(const Exec& space, bool once) {
    std::size_t most = most_room_;
    DeviceFacts facts;
    if (most == 0 && backend_->runtime.device_facts(facts).ok()) most = facts.memory_bytes / 32;
    const auto entries = static_cast<std::size_t>(kinds_.entries);
    const std::size_t columns = (entries * sizeof(int) + 255) / 256 * 256;
    args_.once = once && (most == 0 || columns + entries * sizeof(Scalar) <= most);
    args_.found = nullptr;
    room_.reset();
    if (entries == 0) return;
    if (!args_.once && most > 0 && columns > most) return;
    const std::size_t all = columns + (args_.once ? entries * sizeof(Scalar) : 0);
    try {  // numeric() may come on another instance, or never
      room_ = Impl::allocate<Space>(space, backend_, "Tessera::spgemm columns", all, Lifetime::Plan);
    } catch (const DeviceError&) {  // no memory for what can be done without
      args_.once = false;
      return;
    }
    args_.found = static_cast<std::int32_t*>(room_.get());
    args_.found_values = static_cast<char*>(room_.get()) + columns;
  }

  const KernelTable* backend_ = nullptr;
  SpgemmArgs args_;
  SpgemmTotals kinds_ = {}, sizes_ = {};
  std::size_t most_room_ = 0, bytes_ = 0, parts_bytes_ = 0;
  bool started_ = false;
  std::shared_ptr<void> storage_, part_, room_;
  typename Arena<Space>::template View<SpgemmTotals> totals_view_;
};

}  // namespace Impl
}  // namespace Tessera

#endif
