// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMM_GE_SPMM_ENGINE_HPP
#define TESSERA_SPMM_GE_SPMM_ENGINE_HPP

#include <algorithm>
#include <memory>
#include <type_traits>

#include "Tessera_Statistics.hpp"
#include "backends/interface/Tessera_CompactB.hpp"
#include "core/Tessera_ColumnReads.hpp"
#include "core/Tessera_LayoutCopy.hpp"
#include "core/Tessera_PlanScratch.hpp"
#include "core/Tessera_Profile.hpp"
#include "spmm/Tessera_GeSpmm.hpp"
#include "spmm/Tessera_GeSpmmBlocks.hpp"
#include "spmm/Tessera_GeSpmmColumns.hpp"
#include "spmm/Tessera_GeSpmmLocal.hpp"
#include "spmm/Tessera_LengthOrder.hpp"
#include "spmm/Tessera_SpmmBlockCost.hpp"
#include "spmm/Tessera_SpmmChecks.hpp"
#include "spmm/Tessera_SpmmSpread.hpp"

namespace Tessera {
namespace Impl {

/// Devices: a row is the work of a few lanes, which wait for memory once every four entries; a wave waits for its
/// longest row (perf_test/notes/spmm-rows.md). Hosts: only rows that would keep a thread busy when all others are
/// done.
/// @param row_bytes  of a row of B
inline PieceBounds ge_spmm_piece(const GeSpmmOptions& options, bool host, std::int64_t rows, std::int64_t nnz,
                                 std::int64_t threads, std::int64_t row_bytes) {
  if (options.max_piece > 0) return {options.max_piece, options.max_piece};
  if (host) {
    const std::int64_t most = threads <= 1 ? nnz : std::max<std::int64_t>(nnz / (4 * threads), 4096);
    return {most, most};
  }
  const std::int64_t mean = rows > 0 ? nnz / rows : 0;
  // Pieces to occupy a device; of long rows half as many where all of a row of B is one tile.
  const bool longer = mean >= 200 && nnz >= 1000000 && row_bytes <= 128;
  const std::int64_t enough = std::max<std::int64_t>(longer ? 256 : 128, nnz / 8192);
  const std::int64_t most = std::clamp<std::int64_t>(rows > 0 ? 3 * nnz / rows : 0, 64, enough);
  // Rows that are all about as long end together: where they are enough, cutting them gains nothing.
  const std::int64_t even = rows >= 3000 ? std::min<std::int64_t>(mean + mean / 4, 1280) : 0;
  return {most, std::max(2 * most, even)};
}

/// The same where rows are spread (SpreadRowsKernel): what a thread block takes when each team has eight entries twice,
/// or, of so few columns that teams have one or two lanes, eight.
inline PieceBounds ge_spmm_spread_piece(std::int64_t columns, int element_bytes) {
  const std::int64_t row = columns * element_bytes, word = row % 16 == 0 ? 16 : row % 8 == 0 ? 8 : element_bytes;
  if (row > 0 && row <= 16 && row <= 2 * word) return {2048, 2048};
  return {512, 1024};
}

/// Whether B is copied into rows first: every entry of A reads a row of B, which costs most where its elements lie
/// apart; and on devices rows that are not aligned, where the backend has no kernel for these. The copy reads and
/// writes B once. (Hosts without a backend: ColumnReads.)
template <class T>
bool ge_spmm_packs(const Dense<T>& b, bool host, std::int64_t nnz) {
  if (b.columns < 2 || nnz < (b.columns < 8 ? 4 : 1) * b.rows) return false;
  return host ? b.column_stride != 1 : !b.aligned();
}

/// Whether devices copy rows of B that lie in place but are not aligned (perf_test/notes/spmm-rows.md): where a row of
/// B is used often, and the product is worth another launch. Not where rows of A are short: then C is what takes time.
/// word_bytes: in which B can be read as it is.
inline bool ge_spmm_copies_odd_rows(std::int64_t rows, std::int64_t nnz, std::int64_t b_rows, std::int64_t columns,
                                    int element_bytes, int word_bytes) {
  const std::int64_t size = nnz * columns;
  const auto used = [&](std::int64_t times) { return nnz >= times * rows && nnz >= times * b_rows; };
  if (word_bytes >= 16 || size < 10000000 || columns < 4) return false;
  if (word_bytes == 8 && element_bytes < 8) return used(80) && size >= 40000000;
  return element_bytes == 2 ? used(8) : element_bytes == 4 ? used(12) && columns >= 8 : used(80);
}

/// Columns of the copy: where columns of C lie apart, those behind B's own are multiplied and not stored.
template <class Exec, class Sum, class CT>
std::int64_t ge_spmm_packed_columns(std::int64_t columns, const Dense<CT>& c) {
  return Compat::is_host_v<Exec> && c.column_stride != 1 ? host_whole_columns<Sum>(columns) : columns;
}

/// A as it is, long rows cut. A matrix that is to be multiplied in a narrower precision than its own is rounded once,
/// into values of its own type.
template <class Csr>
class GeSpmmEngine {
 public:
  using Exec = typename Csr::execution_space;
  using Memory = typename Csr::memory_space;
  using Value = typename Csr::value_type;

  struct Round {
    typename Csr::values_type from;
    Kokkos::View<Value*, Kokkos::LayoutLeft, typename Csr::device_type> to;
    Precision precision;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
      const auto wide_value = widen<std::conditional_t<std::is_same_v<Value, double>, double, float>>(from(i));
      if (precision == Precision::FP16) {
        to(i) = Value(static_cast<float>(half_t(wide_value)));
      } else if (precision == Precision::BF16) {
        to(i) = Value(static_cast<float>(bhalf_t(wide_value)));
      } else {
        to(i) = Value(static_cast<float>(wide_value));
      }
    }
  };

  /// set_up == false (SpmmAlgorithm::Csr, one-shot products): rows are not looked at and B is read where it lies.
  /// TF32 (a matrix of floats): products in FP32; from pattern.compact_from columns on, unless that is 0, the backend
  /// multiplies a copy of B in TF32.
  GeSpmmEngine(const Exec& space, const Csr& A, Precision precision, const SpmmOptions& options, bool set_up,
               const KernelTable* backend, const GeSpmmPattern& pattern)
      : csr_(A),
        precision_(precision == Precision::TF32 ? Precision::FP32 : precision),
        set_up_(set_up),
        backend_(set_up ? backend : nullptr),
        pattern_(backend_ != nullptr && backend_->spmm.gespmm != nullptr ? pattern : GeSpmmPattern{}),
        cache_bytes_(last_cache(backend_)),
        usual_columns_(options.num_columns_hint) {
    require<InvalidArgument>(options.gespmm.max_piece >= 0 && options.gespmm.max_piece <= RowPiece::most_entries, [&] {
      return "GeSpmmOptions::max_piece must be in [0, " + std::to_string(RowPiece::most_entries) + "], not " +
             std::to_string(options.gespmm.max_piece);
    });
    scratch_.set_up(backend, options.workspace);
    if (precision_ != ScalarTraits<Value>::precision) {
      rounded_ = Compat::allocate_view<decltype(rounded_)>("Tessera::spmm::rounded values", A.nnz());
      update(space, A);
    }
    if (!set_up_) return;
    const auto nnz = static_cast<std::int64_t>(A.nnz());
    const bool host = Compat::is_host_v<Exec>;
    PieceBounds bounds =
        ge_spmm_piece(options.gespmm, host, static_cast<std::int64_t>(A.rows()), nnz,
                      static_cast<std::int64_t>(space.concurrency()), usual_columns_ * bytes_of(precision_));
    bounds.most = std::min(bounds.most, RowPiece::most_entries);
    bounds.tolerated = std::min(bounds.tolerated, RowPiece::most_entries);
    if (spreads(A)) {
      if (options.gespmm.max_piece == 0) bounds = ge_spmm_spread_piece(usual_columns_, bytes_of(precision_));
      table_ = spread_rows(space, pattern_of(A), bounds, pattern_.longest, backend);
    } else if (bounds.tolerated < nnz) {
      table_ = cut_rows(space, pattern_of(A), bounds.most, bounds.tolerated, backend, caches_b(options));
    }
  }

  std::size_t format_bytes() const {
    return table_.bytes() + sizeof(Value) * rounded_.extent(0) + (order_ ? order_->bytes() : 0) +
           (cuts_ ? cuts_->bytes() : 0);
  }
  /// Sums of split rows, at most (where an operand is double), a copy of B in the matrix's type, and, on a backend, C
  /// in rows.
  std::size_t workspace_bytes(std::int64_t columns) const {
    std::size_t bytes =
        ScratchLayout::rounded(static_cast<std::size_t>(table_.partial_count * partial_ld(columns)) * 8);
    if (set_up_) {
      const std::int64_t ld = std::max(
          Dense<Value>::padded(columns),
          Compat::is_host_v<Exec> ? host_whole_columns<AccumulatorOf<Value, Value, Value>>(columns) : std::int64_t{0});
      bytes +=
          ScratchLayout::rounded(static_cast<std::size_t>(static_cast<std::int64_t>(csr_.cols()) * ld) * sizeof(Value));
    }
    if (compacts(columns)) bytes += ScratchLayout::rounded(compact_bytes(columns));
    if (backend_ != nullptr && through_rows_pays(columns)) {
      using Sum = AccumulatorOf<Value, Value, Value>;
      const std::int64_t rows = static_cast<std::int64_t>(csr_.rows()), ld = Dense<Sum>::padded(columns);
      bytes += ScratchLayout::rounded(static_cast<std::size_t>(rows * ld) * sizeof(Sum));
    }
    return bytes;
  }

  /// alpha != 0, and there are entries. span: elements of B that may be read.
  template <class BT, class CT>
  void apply(const Exec& space, double alpha, Dense<const BT> b, std::size_t span, double beta,
             const Dense<CT>& c) const;

  /// Hosts: what B costs in columns, and copied.
  template <class BT, class CT>
  ColumnReads column_reads(const Dense<const BT>& b, const Dense<CT>& c) const {
    ColumnReads reads{static_cast<std::int64_t>(csr_.rows()),
                      static_cast<std::int64_t>(csr_.nnz()),
                      b.rows,
                      b.columns,
                      sizeof(BT),
                      c.column_stride != 1};
    if (reads.asks_nearness()) {
      if (!nearness_) nearness_ = std::make_shared<const EntryNearness>(csr_);
      reads.near = *nearness_;
    }
    return reads;
  }

  void update(const Exec& space, const Csr& A) {
    csr_ = A;
    if (rounded_.extent(0) == 0) return;
    Kokkos::parallel_for("Tessera::spmm[gespmm] round values",
                         Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(
                             space, 0, static_cast<std::int64_t>(rounded_.extent(0))),
                         Round{A.values(), rounded_, precision_});
  }

  void describe(Statistics& s) const {
    s.stored = s.nnz;
    s.format_bytes = s.csr_bytes + table_.bytes();
    s.map_bytes = 0;
    s.row_max = table_.longest;
    s.launches = 1 + (adds_partials(usual_columns_) ? 1 : 0) + (pattern_.compact_from > 0 ? 1 : 0);
    if (pattern_.compact_from > 0) s.why += "; B is copied in TF32 first";
    if (table_.partial_count > 0) {
      s.classes = {{"split rows", static_cast<long long>(table_.splits.extent(0)), 0}};
    }
  }

 private:
  /// Whether B is copied into rows first. Hosts without a backend compare both ways.
  template <class BT, class CT>
  bool copies_first(const Dense<const BT>& b, [[maybe_unused]] const Dense<CT>& c) const {
    if constexpr (Compat::is_host_v<Exec>) {
      if (backend_ == nullptr) {
        if (b.columns < 2 || b.column_stride == 1) return false;
        const ColumnReads reads = column_reads(b, c);
        return reads.copied() <= reads.in_place();
      }
    }
    return ge_spmm_packs(b, Compat::is_host_v<Exec>, static_cast<std::int64_t>(csr_.nnz()));
  }
  /// Hosts: in which order rows are multiplied, or null.
  const std::int32_t* order_of_rows([[maybe_unused]] const Exec& space, [[maybe_unused]] std::int64_t columns) const {
    if constexpr ((Compat::is_openmp_v<Exec> || Compat::is_serial_v<Exec>)&&sizeof(Value) >= 4) {
      const bool whole = set_up_ && backend_ == nullptr && table_.pieces.extent(0) == 0;
      const auto rows = static_cast<std::int64_t>(csr_.rows()), nnz = static_cast<std::int64_t>(csr_.nnz());
      if (!whole || !LengthOrder::suits(rows, nnz, columns)) return nullptr;
      if (!order_) order_ = std::make_shared<const LengthOrder>(space, csr_);
      return order_->data();
    }
    return nullptr;
  }
  /// Hosts, where rows of A use neighbouring rows of B: copies of parts of B, in no more scratch than `most` bytes.
  /// false: not done.
  template <class BT, class CT, class Sum>
  bool apply_local(const Exec& space, double alpha, const Dense<const BT>& b, double beta, const Dense<CT>& c,
                   const RowPieces<Sum>& pieces, std::int64_t columns, std::size_t most) const {
    if constexpr (Compat::is_openmp_v<Exec> || Compat::is_serial_v<Exec>) {
      const std::int64_t ld = Dense<BT>::padded(columns), row_bytes = ld * static_cast<std::int64_t>(sizeof(BT));
      const bool large = b.rows * row_bytes >= ColumnReach::least_bytes;
      if (backend_ != nullptr || pieces.table != nullptr || !large) return false;
      if (!reach_) reach_ = std::make_shared<const ColumnReach>(space, csr_);
      std::int64_t room = 0;
      const std::int64_t ranges = reach_->ranges_of_block(b.rows, row_bytes, room);
      if (ranges == 0) return false;
      const std::size_t bytes = ge_spmm_local_bytes<BT>(space.concurrency(), room, ld);
      if (bytes > most) return false;
      const CsrArrays<Csr> A(matrix());
      ge_spmm_local(space, alpha, A, b, beta, c, pieces, *reach_, ranges, room, columns,
                    scratch_.reserve(space, bytes));
      return true;
    }
    return false;
  }
  /// Hosts, where rows of A use rows of B all over, so that caches lose these: blocks of B. false: not done.
  template <class BT, class CT, class Sum>
  bool apply_blocks([[maybe_unused]] const Exec& space, [[maybe_unused]] double alpha,
                    [[maybe_unused]] const Dense<const BT>& b, [[maybe_unused]] double beta,
                    [[maybe_unused]] const Dense<CT>& c, [[maybe_unused]] const RowPieces<Sum>& pieces) const {
    // Sums of blocks meet in C, which must not round them.
    if constexpr ((Compat::is_openmp_v<Exec> || Compat::is_serial_v<Exec>)&&std::is_same_v<CT, Sum>) {
      const bool in_rows = b.column_stride == 1 && c.column_stride == 1;
      if (!set_up_ || backend_ != nullptr || pieces.table != nullptr || !in_rows) return false;
      const SpmmBlockCost cost{static_cast<std::int64_t>(csr_.rows()),
                               static_cast<std::int64_t>(csr_.nnz()),
                               b.rows,
                               b.columns * static_cast<std::int64_t>(sizeof(BT)),
                               c.columns * static_cast<std::int64_t>(sizeof(CT)),
                               std::max(1, static_cast<int>(space.concurrency()))};
      if (!cost.may_pay()) return false;
      if (!reuse_) reuse_ = std::make_shared<const ColumnReuse>(space, csr_);
      const int blocks = cost.best(*reuse_);
      if (blocks == 1) return false;
      if (!cuts_ || cuts_->blocks() < blocks) {
        cuts_ = std::make_shared<const ColumnCuts<Csr>>(space, csr_, blocks);
      }
      ge_spmm_blocks(space, alpha, matrix(), b, beta, c, pieces, *cuts_, blocks);
      return true;
    }
    return false;
  }
  /// Whether the backend's kernel is worth a copy of C into rows and back: where rows differ much in length or are
  /// long, or are wide (the portable kernel writes columns element by element).
  bool through_rows_pays(std::int64_t columns) const {
    const bool wide = columns >= 48 && columns * bytes_of(precision_) >= 240;
    return wide || table_.pieces.extent(0) > 0 ||
           static_cast<std::int64_t>(csr_.nnz()) >= 50 * static_cast<std::int64_t>(csr_.rows());
  }
  /// Whether 32 bits count the teams of items, too.
  bool spreads(const Csr& A) const {
    constexpr std::int64_t most = std::int64_t{1} << 22;
    return pattern_.spread && static_cast<std::int64_t>(A.rows()) < most && static_cast<std::int64_t>(A.nnz()) < most;
  }
  static std::int64_t last_cache(const KernelTable* backend) {
    DeviceFacts facts;
    const bool known =
        backend != nullptr && backend->runtime.device_facts != nullptr && backend->runtime.device_facts(facts).ok();
    return known ? static_cast<std::int64_t>(facts.cache_bytes) : 0;
  }
  /// Whether B takes at most half of the device's last cache. (Of large ones, half lies at the other end of the chip.)
  bool caches_b(const SpmmOptions& options) const {
    const double b =
        static_cast<double>(csr_.cols()) * static_cast<double>(options.num_columns_hint) * double{sizeof(Value)};
    return options.num_columns_hint > 0 && 2 * b <= static_cast<double>(cache_bytes_);
  }
  /// Whether another launch adds sums of split rows: where rows are spread, beyond the columns that have counters.
  bool adds_partials(std::int64_t columns) const {
    if (!table_.spread || table_.partial_count == 0) return table_.partial_count > 0;
    const int word = compacts(columns) ? CompactB::group : 16 / static_cast<int>(sizeof(Value));
    return SpmmSpread::tiles(columns, word) > table_.arrival_tiles;
  }
  static std::int64_t partial_ld(std::int64_t columns) { return (columns + 3) / 4 * 4; }
  bool compacts(std::int64_t columns) const {
    return pattern_.compact_from > 0 && columns >= pattern_.compact_from &&
           CompactB::fits(static_cast<std::int64_t>(csr_.cols()), columns);
  }
  std::size_t compact_bytes(std::int64_t columns) const {
    return static_cast<std::size_t>(CompactB::bytes(static_cast<std::int64_t>(csr_.cols()), columns));
  }

  /// Whole rows, rows that are spread over teams, and rows of next to no entries beside long ones, in pieces.
  template <class BT, class CT>
  bool serves_in_columns(const Dense<const BT>& b, const Dense<CT>& c) const {
    const bool brief = static_cast<std::int64_t>(csr_.nnz()) < 2 * static_cast<std::int64_t>(csr_.rows());
    return (table_.spread || brief || !pattern_.uneven) && ge_spmm_serves_in_columns(csr_, pattern_, b, c);
  }

  /// Whether the backend's kernel takes such operands, if rows of B and C are contiguous.
  template <class BT, class CT>
  bool takes() const {
    const bool natural = precision_ == ScalarTraits<Value>::precision && fits_backend<BT, CT>(precision_);
    return backend_ != nullptr && backend_->spmm.gespmm != nullptr && natural &&
           sizeof(typename Csr::ordinal_type) == 4;
  }
  /// false where the backend has no such kernel, or none for these operands. compact: room for a compact B, or null.
  template <class BT, class CT, class Sum>
  bool on_backend(const Exec& space, double alpha, const Dense<const BT>& b, std::size_t span, double beta,
                  const Dense<CT>& c, const RowPieces<Sum>& pieces, void* compact) const {
    const int word_bytes = word_bytes_in_place(b, span);
    const bool in_columns = c.column_stride != 1;
    if (!takes<BT, CT>() || in_columns != (word_bytes == 0) || (in_columns && !serves_in_columns(b, c))) return false;
    GeSpmmArgs args = ge_spmm_arguments(csr_, precision_, pattern_, alpha, b, beta, c);
    // The kernels' narrow words: eight bytes or an element.
    args.word_bytes = word_bytes >= 8 ? word_bytes : static_cast<int>(sizeof(BT));
    if (compact != nullptr) args.precision = Precision::TF32;
    args.compact = compact;
    args.cache_bytes = cache_bytes_;
    args.table = pieces.table;
    args.count = pieces.count;
    args.splits = pieces.splits;
    args.split_count = pieces.split_count;
    args.most_pieces = table_.most_pieces;
    args.spread = table_.spread && pieces.table != nullptr ? &table_.items : nullptr;
    args.arrivals = table_.arrivals.data();
    args.arrival_tiles = table_.arrival_tiles;
    args.partials = pieces.partials;
    args.partial_ld = pieces.partial_ld;
    run_on_backend(space, {"spmm", "gespmm", precision_},
                   [&](Stream stream) { return backend_->spmm.gespmm(args, stream); });
    return true;
  }
  Csr matrix() const {
    return rounded_.extent(0) == 0 ? csr_
                                   : Csr(csr_.rows(), csr_.cols(), csr_.row_map(), csr_.entries(),
                                         typename Csr::values_type(rounded_.data(), rounded_.extent(0)));
  }

  Csr csr_;
  Precision precision_;
  bool set_up_;
  const KernelTable* backend_;  ///< whose kernel for compressed rows is used, if it has one and takes the operands
  GeSpmmPattern pattern_;
  std::int64_t cache_bytes_;    ///< of the device's last cache, 0 if unknown
  std::int64_t usual_columns_;  ///< of B
  PieceTable<Memory> table_;
  Kokkos::View<Value*, Kokkos::LayoutLeft, typename Csr::device_type> rounded_;
  PlanScratch<Exec, Memory> scratch_;
  mutable std::shared_ptr<const ColumnReach> reach_;       ///< hosts: found when B is first to be copied
  mutable std::shared_ptr<const EntryNearness> nearness_;  ///< hosts: found when B first is large and in columns
  mutable std::shared_ptr<const LengthOrder> order_;       ///< hosts: made when B first has few columns
  mutable std::shared_ptr<const ColumnReuse> reuse_;       ///< hosts: found when B first is large
  mutable std::shared_ptr<const ColumnCuts<Csr>> cuts_;    ///< hosts: made when blocks of B first pay
};

template <class Csr>
template <class BT, class CT>
void GeSpmmEngine<Csr>::apply(const Exec& space, double alpha, Dense<const BT> b, std::size_t span, double beta,
                              const Dense<CT>& c) const {
  if (precision_ != ScalarTraits<Value>::precision) check_dense_types<BT, CT>("gespmm", precision_);
  if (b.columns == 0) return;
  using Sum = AccumulatorOf<Value, BT, CT>;
  RowPieces<Sum> pieces = whole_rows<Sum>(static_cast<std::int64_t>(csr_.rows()));
  if (table_.pieces.extent(0) > 0) {
    pieces.table = table_.pieces.data();
    pieces.count = static_cast<std::int64_t>(table_.pieces.extent(0));
    pieces.splits = table_.splits.data();
    pieces.split_count = static_cast<std::int64_t>(table_.splits.extent(0));
    pieces.partial_ld = partial_ld(b.columns);
  }
  const std::int64_t sums = table_.partial_count * partial_ld(b.columns);
  const std::int64_t columns = ge_spmm_packed_columns<Exec, Sum>(b.columns, c), ld = Dense<BT>::padded(columns);
  const std::size_t sum_bytes = ScratchLayout::rounded(static_cast<std::size_t>(sums) * sizeof(Sum));
  const std::size_t pack_bytes = ScratchLayout::rounded(static_cast<std::size_t>(b.rows * ld) * sizeof(BT));
  // A caller's workspace that has no room for the copy is no error: B is then read where it lies.
  const auto rows = static_cast<std::int64_t>(csr_.rows()), nnz = static_cast<std::int64_t>(csr_.nnz());
  const bool native = takes<BT, CT>(), worth_it = native && through_rows_pays(b.columns) && 4 * nnz >= b.rows;
  if (native && serves_in_columns(b, c)) {
    if (pattern_.uneven) pieces.partials = ScratchLayout(scratch_.reserve(space, sum_bytes)).template take<Sum>(sums);
    on_backend(space, alpha, b, span, beta, c, pattern_.uneven ? pieces : whole_rows<Sum>(c.rows), nullptr);
    return;
  }
  const bool in_rows = native && b.column_stride == 1;
  const bool odd = in_rows && !compacts(b.columns) &&
                   ge_spmm_copies_odd_rows(rows, nnz, b.rows, b.columns, sizeof(BT), word_bytes_in_place(b, span));
  const bool elsewhere = set_up_ && !in_rows && (worth_it || copies_first(b, c));
  const bool pack = (odd || elsewhere) && scratch_.offers(sum_bytes + pack_bytes);
  if (pack && apply_local(space, alpha, b, beta, c, pieces, columns, pack_bytes)) return;
  std::size_t bytes = sum_bytes + (pack ? pack_bytes : 0);
  const std::size_t more = ScratchLayout::rounded(compact_bytes(b.columns));
  const bool compact = std::is_same_v<BT, float> && std::is_same_v<CT, float> && compacts(b.columns) &&
                       scratch_.offers(bytes + more);  // as above
  if (compact) bytes += more;
  const std::int64_t ldc = Dense<Sum>::padded(c.columns);
  const std::size_t row_bytes = ScratchLayout::rounded(static_cast<std::size_t>(c.rows * ldc) * sizeof(Sum));
  const bool through_rows = native && c.column_stride != 1 && (pack || b.column_stride == 1) &&
                            through_rows_pays(c.columns) && scratch_.offers(bytes + row_bytes);  // as above
  if (through_rows) bytes += row_bytes;
  ScratchLayout scratch(scratch_.reserve(space, bytes));
  pieces.partials = scratch.take<Sum>(sums);
  if (pack) {
    const Dense<BT> packed{scratch.take<BT>(b.rows * ld), b.rows, ld, ld, 1};
    copy_layout(space, "Tessera::spmm[pack B]", b, Sum(0), packed);
    b = {packed.data, b.rows, columns, ld, 1};
    span = static_cast<std::size_t>(b.rows * ld);
  }
  void* const room = compact ? scratch.take<char>(static_cast<std::int64_t>(more)) : nullptr;
  if (through_rows) {
    const Dense<Sum> rows_of_c{scratch.take<Sum>(c.rows * ldc), c.rows, c.columns, ldc, 1};
    on_backend(space, alpha, b, span, 0, rows_of_c, pieces, room);
    return copy_layout(space, "Tessera::spmm[add to C]", rows_of_c, static_cast<Sum>(beta), c);
  }
  if (on_backend(space, alpha, b, span, beta, c, pieces, room)) return;
  if (apply_blocks(space, alpha, b, beta, c, pieces)) return;
  ge_spmm(space, alpha, matrix(), b, beta, c, pieces, order_of_rows(space, b.columns));
}

}  // namespace Impl
}  // namespace Tessera

#endif
