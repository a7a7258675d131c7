// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FORMATS_WINDOWS_WINDOW_UNION_HPP
#define TESSERA_FORMATS_WINDOWS_WINDOW_UNION_HPP

#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "Tessera_CsrView.hpp"
#include "core/Tessera_Arena.hpp"
#include "core/Tessera_Pattern.hpp"
#include "core/Tessera_SegmentedSort.hpp"
#include "formats/windows/Tessera_WindowParts.hpp"

/// \file
/// The distinct columns of windows of rows, without sorting: first part of the conversion to window formats.
///
/// Let the columns of each row ascend. An entry's key is (c, m): its column, and how many entries of the same column
/// stand before it in its row (0 unless rows repeat columns). Keys ascend in a row, strictly, so the different keys of
/// the rows of a window are its column vectors. Of the entries with one key, the one in the lowest row is the *leader*:
/// a key has one leader in a window, as a row has a key at most once.
///
/// L(p) is the number of leaders before place p. Then window w has L(end of its last row) - L(begin of its first row)
/// column vectors. The entries of row r with keys below (c, m) are its first ones, up to place
/// e(r) = lower bound of c in r + min(m, copies of c in r); among them are L(e(r)) - L(begin(r)) leaders. Summed over
/// the rows of the window this counts the leaders with keys below (c, m), hence the keys: the rank of the column
/// vector.
///
/// Everything is done by one thread per entry with binary searches in rows of its window, so that long rows are no
/// different from many short ones.

namespace Tessera {
namespace Impl {

/// Sizes that the host waits for.
struct WindowSizes {
  std::uint64_t column_vectors, blocks;
  SpmmSplitCount split;
  std::uint32_t unsorted, unused;
};

KOKKOS_INLINE_FUNCTION std::uint32_t bit_count(std::uint32_t word) {
#if defined(__CUDA_ARCH__)
  return static_cast<std::uint32_t>(__popc(word));
#else
  return static_cast<std::uint32_t>(__builtin_popcount(word));
#endif
}

template <class Csr>
struct WindowFunctors {
  using Memory = typename Csr::memory_space;
  using Ordinal = typename Csr::ordinal_type;
  using Offset = typename Csr::size_type;
  using RowMap = typename Csr::row_map_type;
  using Columns = typename Csr::entries_type;
  template <class T>
  using View = typename Arena<Memory>::template View<T>;
  using Order = Kokkos::View<const std::int32_t*, Kokkos::LayoutLeft, Memory, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

  /// What all kernels share. Rows stand in the order of their places in the windows. Places of entries have 32 bits:
  /// kernels are made of searches and divisions, which take devices several times as long in 64.
  struct Base {
    RowMap row_map;
    Columns columns;
    std::int64_t rows, windows, nnz;
    std::uint32_t height, depth;
    bool whole;                         ///< windows begin at whole blocks
    View<std::int32_t> row;             ///< of each entry
    View<std::uint32_t> leader;         ///< of each entry's key
    View<std::uint32_t> column_vector;  ///< of each leader: place among the column vectors
    View<std::uint32_t> is_leader;      ///< a bit per entry, nnz / 32 + 1 words
    View<std::uint32_t> before;         ///< leaders before each of these words
    View<std::uint32_t> first_block;
    View<WindowSizes> sizes;

    KOKKOS_INLINE_FUNCTION std::uint32_t begin(std::int64_t r) const { return static_cast<std::uint32_t>(row_map(r)); }
    KOKKOS_INLINE_FUNCTION std::int64_t first_row(std::int64_t w) const { return w < windows ? w * height : rows; }
    /// Window of a row.
    KOKKOS_INLINE_FUNCTION std::uint32_t window_of(std::int32_t r) const {
      return static_cast<std::uint32_t>(r) / height;
    }
    /// L.
    KOKKOS_INLINE_FUNCTION std::uint32_t leaders(std::uint32_t p) const {
      return before(p / 32) + bit_count(is_leader(p / 32) & ((std::uint32_t{1} << p % 32) - 1));
    }
    /// The last row that begins at p or before.
    KOKKOS_INLINE_FUNCTION std::uint32_t row_of(std::uint32_t p) const {
      auto low = std::uint32_t{0}, high = static_cast<std::uint32_t>(rows);
      while (high - low > 1) {
        const std::uint32_t middle = low + (high - low) / 2;
        if (begin(middle) <= p) {
          low = middle;
        } else {
          high = middle;
        }
      }
      return low;
    }
    /// First place in [low, high) whose column is not below c.
    KOKKOS_INLINE_FUNCTION std::uint32_t lower_bound(std::uint32_t low, std::uint32_t high, Ordinal c) const {
      while (low < high) {
        const std::uint32_t middle = low + (high - low) / 2;
        if (columns(middle) < c) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      return low;
    }
    /// Copies of its column before place p in its row, which begins at b.
    KOKKOS_INLINE_FUNCTION std::uint32_t copies_before(std::uint32_t b, std::uint32_t p, Ordinal c) const {
      return p > b && columns(p - 1) == c ? p - lower_bound(b, p, c) : 0;
    }
    /// Where the copies of column c from place b on end, but not after more than m of them.
    KOKKOS_INLINE_FUNCTION std::uint32_t after_copies(std::uint32_t b, std::uint32_t end, Ordinal c,
                                                      std::uint32_t m) const {
      std::uint32_t low = b, high = m < end - b ? b + m : end;
      while (low < high) {
        const std::uint32_t middle = low + (high - low) / 2;
        if (columns(middle) == c) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      return low;
    }
    /// Column vectors (with padding, if windows begin at whole blocks) before window w.
    KOKKOS_INLINE_FUNCTION std::uint32_t first_column_vector(std::int64_t w) const {
      return whole ? first_block(w) * depth : leaders(begin(first_row(w)));
    }
  };

  struct Clear : Base {
    explicit Clear(const Base& b) : Base(b) {}
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
      this->is_leader(i) = 0;
      if (i == 0) this->sizes(0) = WindowSizes{};
    }
  };

  /// Rows and leaders of entries, and whether any row's columns descend: results are then meaningless, but all places
  /// read lie in the matrix.
  struct Leaders : Base {
    explicit Leaders(const Base& b) : Base(b) {}
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
      const auto p = static_cast<std::uint32_t>(i);
      const std::uint32_t r = this->row_of(p), b = this->begin(r);
      const Ordinal c = this->columns(p);
      if (p > b && c < this->columns(p - 1) && this->sizes(0).unsorted == 0) {
        Kokkos::atomic_fetch_or(&this->sizes(0).unsorted, std::uint32_t{1});
      }
      const std::uint32_t m = this->copies_before(b, p, c);
      std::uint32_t found = p;
      for (std::uint32_t q = r - r % this->height; q < r; ++q) {
        const std::uint32_t end = this->begin(q + 1), at = this->lower_bound(this->begin(q), end, c);
        if (m < end - at && this->columns(at + m) == c) {
          found = at + m;
          break;
        }
      }
      this->row(p) = static_cast<std::int32_t>(r);
      this->leader(p) = found;
      if (found == p) Kokkos::atomic_fetch_or(&this->is_leader(p / 32), std::uint32_t{1} << p % 32);
    }
  };

  /// Over the words of is_leader.
  struct Count : Base {
    using value_type = std::uint32_t;
    explicit Count(const Base& b) : Base(b) {}
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i, std::uint32_t& sum, const bool final) const {
      if (final) this->before(i) = sum;
      sum += bit_count(this->is_leader(i));
      if (final && i == this->nnz / 32) this->sizes(0).column_vectors = sum;
    }
  };

  /// Prefix sums of the windows' blocks. Over windows + 1.
  struct Blocks : Base {
    using value_type = std::uint32_t;
    explicit Blocks(const Base& b) : Base(b) {}
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t w, std::uint32_t& sum, const bool final) const {
      if (final) {
        this->first_block(w) = sum;
        if (w == this->windows) this->sizes(0).blocks = sum;
      }
      if (w == this->windows) return;
      const std::uint32_t column_vectors =
          this->leaders(this->begin(this->first_row(w + 1))) - this->leaders(this->begin(this->first_row(w)));
      sum += column_vectors / this->depth + (column_vectors % this->depth != 0);
    }
  };

  /// Leaders find the places of their column vectors, and write the columns.
  struct ColumnVectors : Base {
    View<std::int32_t> column_of;
    int stride = 0;  ///< from a block's columns to those of the next; 0: column vectors follow each other
    explicit ColumnVectors(const Base& b) : Base(b) {}
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
      const auto p = static_cast<std::uint32_t>(i);
      if (this->leader(p) != p) return;
      const Ordinal c = this->columns(p);
      const std::int32_t r = this->row(p);
      const std::uint32_t w = this->window_of(r), m = this->copies_before(this->begin(r), p, c);
      const auto first = static_cast<std::int32_t>(this->first_row(w)),
                 last = static_cast<std::int32_t>(this->first_row(std::int64_t{w} + 1));
      std::uint32_t at = this->first_column_vector(w);
      for (std::int32_t q = first; q < last; ++q) {
        const std::uint32_t b = this->begin(q), end = this->begin(q + 1);
        std::uint32_t e = p;
        if (q != r) {
          e = this->lower_bound(b, end, c);
          if (m > 0) e = this->after_copies(e, end, c, m);
        }
        at += this->leaders(e) - this->leaders(b);
      }
      column_of(stride > 0 ? std::int64_t{at / this->depth} * stride + at % this->depth : std::int64_t{at}) =
          static_cast<std::int32_t>(c);
      this->column_vector(p) = at;
    }
  };

  /// Where rows begin if they stand in another order. Over rows + 1.
  struct OrderedBegin {
    using value_type = Offset;
    RowMap row_map;
    Order order;
    std::int64_t rows;
    View<Offset> begin;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i, Offset& sum, const bool final) const {
      if (final) begin(i) = sum;
      if (i < rows) sum += static_cast<Offset>(row_map(order(i) + 1) - row_map(order(i)));
    }
  };
  /// Columns in that order, and the places in CSR they came from.
  struct OrderedEntries {
    RowMap row_map;
    Columns columns;
    Order order;
    std::int64_t rows;
    View<Offset> begin, origin;
    View<Ordinal> to;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t p) const {
      const std::int64_t i = segment_of(begin, rows, p);
      const Offset from = static_cast<Offset>(row_map(order(i)) + (static_cast<Offset>(p) - begin(i)));
      to(p) = columns(from);
      origin(p) = from;
    }
  };

  struct Longest {
    RowMap row_map;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t r, std::int64_t& most) const {
      const auto n = static_cast<std::int64_t>(row_map(r + 1)) - static_cast<std::int64_t>(row_map(r));
      if (n > most) most = n;
    }
  };
  template <class Sort>
  struct SortKeys {
    Columns columns;
    View<Offset> origin;  ///< empty: the same
    View<std::int32_t> row;
    typename Sort::Keys keys;
    typename Sort::Payloads payload;
    typename Sort::Segments segments;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t p) const {
      keys(p) = columns(p);
      payload(p) = origin.extent(0) > 0 ? origin(p) : static_cast<Offset>(p);
      segments(p) = row(p);
    }
  };

  struct FirstVectors : Base {
    View<std::int32_t> to;
    explicit FirstVectors(const Base& b) : Base(b) {}
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t w) const {
      to(w) = static_cast<std::int32_t>(this->first_column_vector(w));
    }
  };
  struct FirstBlocks {
    View<std::uint32_t> from, to;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t w) const { to(w) = from(w); }
  };
  struct CopyOrder {
    Order from;
    View<std::int32_t> to;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const { to(i) = from(i); }
  };
};

/// Temporary arrays from which both formats are filled, and the sizes. At least one row and one entry.
template <class Csr>
class WindowUnion {
 public:
  using F = WindowFunctors<Csr>;
  using Base = typename F::Base;
  using Memory = typename Csr::memory_space;
  using Ordinal = typename Csr::ordinal_type;
  using Offset = typename Csr::size_type;
  template <class T>
  using View = typename F::template View<T>;

  Base base;
  View<Offset> origin;  ///< CSR entry of each entry in the windows' order; empty: the same
  WindowSizes sizes{};
  bool sorted = true;  ///< the columns of every row ascended as they came

  /// 12.25 bytes per entry of temporary memory; where rows are reordered or unsorted, their indices again. Five
  /// launches and one wait; if rows turn out to be unsorted, another two waits.
  /// @param height, depth  rows of a window, column vectors of a block
  /// @param whole  windows begin at whole blocks
  template <class Exec>
  WindowUnion(const Exec& space, const Csr& A, int height, int depth, bool whole, int max_blocks,
              const typename F::Order& order, const KernelTable* backend)
      : backend_(backend), max_blocks_(max_blocks), compute_units_(spmm_compute_units(backend)) {
    base.row_map = A.row_map();
    base.columns = A.entries();
    base.rows = static_cast<std::int64_t>(A.rows());
    base.nnz = static_cast<std::int64_t>(A.nnz());
    base.windows = (base.rows + height - 1) / height;
    base.height = static_cast<std::uint32_t>(height);
    base.depth = static_cast<std::uint32_t>(depth);
    base.whole = whole;
    const auto nnz = static_cast<std::size_t>(base.nnz), windows = static_cast<std::size_t>(base.windows);
    storage_ = Arena<Memory>::make(space, backend, "Tessera::windows", Lifetime::Temporary, [&](auto& arena) {
      base.row = arena.template take<std::int32_t>(nnz);
      base.leader = arena.template take<std::uint32_t>(nnz);
      base.column_vector = arena.template take<std::uint32_t>(nnz);
      base.is_leader = arena.template take<std::uint32_t>(nnz / 32 + 1);
      base.before = arena.template take<std::uint32_t>(nnz / 32 + 1);
      base.first_block = arena.template take<std::uint32_t>(windows + 1);
      split_before_ = arena.template take<std::uint64_t>(windows + 1);
      base.sizes = arena.template take<WindowSizes>(1);
    });
    if (order.extent(0) > 0) reorder(space, A, order);
    analyse(space);
    sorted = sizes.unsorted == 0;
    if (!sorted) {
      sort(space);
      analyse(space);
    }
    require<NotSupported>(sizes.split.parts() <= std::numeric_limits<std::int32_t>::max(), [&] {
      return "windows of rows: " + std::to_string(sizes.split.parts()) +
             " parts of split windows, more than 2^31 - 1 are not supported: raise max_blocks";
    });
  }

  std::int64_t column_vectors() const { return static_cast<std::int64_t>(sizes.column_vectors); }
  std::int64_t blocks() const { return static_cast<std::int64_t>(sizes.blocks); }
  std::size_t parts() const {
    const std::int64_t split = sizes.split.windows();
    return split == 0 ? 0 : static_cast<std::size_t>(base.windows - split + sizes.split.parts());
  }
  std::size_t splits() const { return static_cast<std::size_t>(sizes.split.windows()); }

  /// Columns of the column vectors, which must be filled with the padding's -1 before; then base.column_vector is
  /// known.
  /// @param stride  from the first column of a block to that of the next one; 0: column vectors follow each other
  template <class Exec>
  void write_columns(const Exec& space, const View<std::int32_t>& column_of, int stride = 0) const {
    typename F::ColumnVectors functor(base);
    functor.column_of = column_of;
    functor.stride = stride;
    Kokkos::parallel_for("Tessera::windows column vectors", range(space, base.nnz), functor);
  }
  /// Arrays that may be empty: then nothing is done.
  template <class Exec>
  void write_parts(const Exec& space, bool inside, const View<SpmmPart>& parts, const View<SpmmSplit>& splits) const {
    if (parts.extent(0) == 0) return;
    Kokkos::parallel_for("Tessera::windows parts", range(space, static_cast<std::int64_t>(parts.extent(0))),
                         SpmmPartFunctor<Memory>{base.first_block, split_before_, base.windows, inside, parts, splits});
  }

  template <class Exec>
  static auto range(const Exec& space, std::int64_t n) {
    return Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(space, 0, n);
  }

 private:
  using Sort = SegmentedSort<typename Csr::device_type, Ordinal, Offset>;

  template <class Exec>
  void reorder(const Exec& space, const Csr& A, const typename F::Order& order) {
    View<Offset> begin;
    View<Ordinal> columns;
    ordered_ = Arena<Memory>::make(space, backend_, "Tessera::windows::ordered", Lifetime::Temporary, [&](auto& arena) {
      begin = arena.template take<Offset>(static_cast<std::size_t>(base.rows) + 1);
      columns = arena.template take<Ordinal>(static_cast<std::size_t>(base.nnz));
      origin = arena.template take<Offset>(static_cast<std::size_t>(base.nnz));
    });
    Kokkos::parallel_scan("Tessera::windows ordered rows", range(space, base.rows + 1),
                          typename F::OrderedBegin{A.row_map(), order, base.rows, begin});
    Kokkos::parallel_for(
        "Tessera::windows ordered entries", range(space, base.nnz),
        typename F::OrderedEntries{A.row_map(), A.entries(), order, base.rows, begin, origin, columns});
    base.row_map = typename F::RowMap(begin.data(), begin.extent(0));
    base.columns = typename F::Columns(columns.data(), columns.extent(0));
  }

  /// Rows are known from the first analysis.
  template <class Exec>
  void sort(const Exec& space) {
    std::int64_t longest = 0;
    Kokkos::parallel_reduce("Tessera::windows longest", range(space, base.rows), typename F::Longest{base.row_map},
                            Kokkos::Max<std::int64_t>(longest));
    sorted_ = std::make_shared<Sort>(space, base.nnz, true);
    Kokkos::parallel_for("Tessera::windows sort keys", range(space, base.nnz),
                         typename F::template SortKeys<Sort>{base.columns, origin, base.row, sorted_->keys,
                                                             sorted_->payload, sorted_->segments});
    sorted_->run(space, base.row_map, longest);
    base.columns = typename F::Columns(sorted_->keys.data(), sorted_->keys.extent(0));
    origin = View<Offset>(sorted_->payload.data(), sorted_->payload.extent(0));
  }

  template <class Exec>
  void analyse(const Exec& space) {
    const std::int64_t words = base.nnz / 32 + 1;
    Kokkos::parallel_for("Tessera::windows clear", range(space, words), typename F::Clear(base));
    Kokkos::parallel_for("Tessera::windows leaders", range(space, base.nnz), typename F::Leaders(base));
    Kokkos::parallel_scan("Tessera::windows count", range(space, words), typename F::Count(base));
    Kokkos::parallel_scan("Tessera::windows blocks", range(space, base.windows + 1), typename F::Blocks(base));
    Kokkos::parallel_scan("Tessera::windows splits", range(space, base.windows + 1),
                          SpmmSplitScan<Memory>{base.first_block, base.windows, max_blocks_, compute_units_,
                                                split_before_, &base.sizes.data()->split.both});
    fetch(space, backend_, "Tessera::windows sizes", sizes, base.sizes);
  }

  const KernelTable* backend_;
  int max_blocks_, compute_units_;
  View<std::uint64_t> split_before_;
  std::shared_ptr<void> storage_, ordered_;
  std::shared_ptr<Sort> sorted_;
};

/// Writes numbers of any type as a precision's storage type, rounded once; TF32 is stored as a float, unrounded.
/// mark_zeros: a zero is stored as -0, which tells it from a slot without entry.
struct SpmmValueStore {
  void* to = nullptr;
  Precision precision = Precision::FP16;
  bool mark_zeros = false;

  template <class T>
  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t slot, const T& value) const {
    if constexpr (sizeof(T) == 2) {
      write(slot, static_cast<float>(value));
    } else {
      write(slot, value);
    }
  }

 private:
  template <class T>
  KOKKOS_INLINE_FUNCTION void write(std::int64_t slot, const T value) const {
    switch (precision) {
      case Precision::FP64:
        return put(slot, static_cast<double>(value));
      case Precision::FP32:
      case Precision::TF32:
        return put(slot, static_cast<float>(value));
      case Precision::FP16:
        return put(slot, half_t(value));
      case Precision::BF16:
        return put(slot, bhalf_t(value));
    }
  }
  template <class Stored>
  KOKKOS_INLINE_FUNCTION void put(std::int64_t slot, const Stored value) const {
    const bool zero = mark_zeros && static_cast<double>(value) == 0.0;
    static_cast<Stored*>(to)[slot] = zero ? Stored(-0.0f) : value;
  }
};

/// New numbers into known slots.
template <class Values, class Slots>
struct SpmmUpdateFunctor {
  Values values;
  Slots slot;
  SpmmValueStore store;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
    store(static_cast<std::int64_t>(slot(i)), values(i));
  }
};

/// What updates of both formats check and do.
template <class Exec, class Format, class Csr, class Values>
void spmm_update(const Exec& space, const Format& f, const Csr& A, const Values& values, const char* name) {
  const auto given = static_cast<std::int64_t>(values.extent(0));
  require<DimensionMismatch>(
      static_cast<std::int64_t>(A.rows()) == f.rows && static_cast<std::int64_t>(A.cols()) == f.cols &&
          static_cast<std::int64_t>(A.nnz()) == f.nnz && given == f.nnz,
      [&] {
        return std::string(name) + ": the format holds " + std::to_string(f.rows) + " x " + std::to_string(f.cols) +
               " with " + std::to_string(f.nnz) + " entries; the matrix has " + std::to_string(A.rows()) + " x " +
               std::to_string(A.cols()) + " with " + std::to_string(A.nnz()) + ", and " + std::to_string(given) +
               " values were given";
      });
  if (f.nnz == 0) return;
  require<NotSupported>(f.entry_slot.extent(0) > 0, [&] {
    return std::string(name) + ": the format was built without `updatable`; convert again, or build it with it";
  });
  using Slots = std::decay_t<decltype(f.entry_slot)>;
  using From = ValuesView<typename Values::non_const_value_type, typename Values::device_type>;
  Kokkos::parallel_for(
      "Tessera::convert[windows] update", Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(space, 0, f.nnz),
      SpmmUpdateFunctor<From, Slots>{From(values), f.entry_slot, {f.values.data(), f.precision, Format::marks_zeros}});
}

/// Refuses sizes that the formats' 32-bit fields cannot hold, and orders of another length.
template <class Csr, class Order>
void spmm_check_sizes(const Csr& A, const Order& order, const char* name) {
  constexpr auto limit = static_cast<std::uint64_t>(std::numeric_limits<std::uint32_t>::max());
  require<NotSupported>(A.nnz() < limit, [&] {
    return std::string(name) + ": " + std::to_string(A.nnz()) +
           " entries, more than 2^32 - 2 are not supported; split the matrix by rows, or use GeSpmm or Csr";
  });
  require<DimensionMismatch>(order.extent(0) == 0 || order.extent(0) == static_cast<std::size_t>(A.rows()), [&] {
    return std::string(name) + ": an order of " + std::to_string(order.extent(0)) + " rows for a matrix of " +
           std::to_string(A.rows());
  });
}

}  // namespace Impl
}  // namespace Tessera

#endif
