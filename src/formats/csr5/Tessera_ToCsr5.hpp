// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FORMATS_CSR5_TO_CSR5_HPP
#define TESSERA_FORMATS_CSR5_TO_CSR5_HPP

#include <cstdint>
#include <string>

#include "Tessera_CsrView.hpp"
#include "core/Tessera_Arena.hpp"
#include "core/Tessera_Pattern.hpp"
#include "formats/csr5/Tessera_Csr5.hpp"

/// \file
/// CSR to CSR5 on the execution space of the matrix, with one wait for sizes. Bytes moved, ideally: CSR once, the
/// format once, the descriptors twice more, row_map twice more; a binary search in row_map per tile.

namespace Tessera {
namespace Impl {

/// Lanes of a tile: those that load together.
template <class Exec>
constexpr int csr5_omega() {
  return Compat::is_host_v<Exec> ? 8 : Compat::is_hip_v<Exec> ? 64 : 32;
}

/// The paper's parameters r, s, t, u for GPUs (section 3.2): short rows get short lanes, so that a tile does not meet
/// too many rows; very long ones as well, since their tiles have nothing to do but to be many. Fixed where lanes are
/// those of a vector register.
inline int csr5_sigma(int omega, std::int64_t rows, std::int64_t nnz) {
  if (omega < 32) return omega < 8 ? 16 : 12;
  const int longest = omega == 32 ? 32 : 7, beyond = omega == 32 ? 6 : 4;
  const std::int64_t mean = rows > 0 ? nnz / rows : 0;
  return mean <= 4 ? 4 : mean <= longest ? static_cast<int>(mean) : mean <= 256 ? longest : beyond;
}

/// What the host must know before it can allocate the last arrays and launch kernels.
struct Csr5Sizes {
  std::int64_t empty_rows, spans;
  std::uint64_t scanned;  // empty_offset elements, and long spans << 32
  std::int64_t first_tail_row, tail_rows;
};

KOKKOS_INLINE_FUNCTION int csr5_count(std::uint32_t v) {
  v = v - ((v >> 1) & 0x55555555u);
  v = (v & 0x33333333u) + ((v >> 2) & 0x33333333u);
  return static_cast<int>((((v + (v >> 4)) & 0x0f0f0f0fu) * 0x01010101u) >> 24);
}

/// Where in the tiles an entry stands.
struct Csr5Place {
  std::int64_t tile;
  int lane, slot;
  KOKKOS_INLINE_FUNCTION Csr5Place(const Experimental::Csr5Shape& s, std::int64_t entry) : tile(entry / s.tile()) {
    const auto local = static_cast<int>(entry - tile * s.tile());
    lane = local / s.sigma;
    slot = local - lane * s.sigma;
  }
  KOKKOS_INLINE_FUNCTION bool first() const { return lane == 0 && slot == 0; }
};

/// The kernels of the conversion; bits are set atomically, which is deterministic.
template <class Csr>
struct Csr5Functors {
  using Format = Experimental::Csr5Pattern<typename Csr::memory_space>;
  using RowMap = typename Csr::row_map_type;
  template <class T>
  using View = typename Format::template View<T>;

  struct Base {
    RowMap row_map;
    Experimental::Csr5Shape shape;
    std::int64_t rows, tiles, full;
    View<std::uint32_t> tile_ptr, tile_desc, empty_ptr, carry_end, long_spans;
    View<Csr5Sizes> sizes;

    KOKKOS_INLINE_FUNCTION std::int64_t begin(std::int64_t row) const {
      return static_cast<std::int64_t>(row_map(row));
    }
    KOKKOS_INLINE_FUNCTION std::int64_t row_of(std::int64_t t) const {
      return tile_ptr(t) & Experimental::Csr5Shape::row_mask;
    }
    /// Row starts of a lane, those that open a further segment: the tile's first slot is always taken for one.
    KOKKOS_INLINE_FUNCTION std::uint32_t starts(std::int64_t t, int lane) const {
      const std::uint32_t flags = shape.flags(tile_desc.data(), t, lane);
      return lane == 0 ? flags & 0x7fffffffu : flags;
    }
    /// Segment of its tile, less one, that a row opens. Needs the descriptors' y_offset.
    KOKKOS_INLINE_FUNCTION std::int64_t segment(const Csr5Place& at) const {
      const std::uint32_t before = at.slot == 0 ? 0u : starts(at.tile, at.lane) >> (32 - at.slot);
      return static_cast<std::int64_t>(shape.y_offset(tile_desc(shape.word(at.tile, 0, at.lane)))) + csr5_count(before);
    }
  };

  /// tile_ptr: the last row that begins at or before the tile's first entry.
  struct TilePointers : Base {
    explicit TilePointers(const Base& b) : Base(b) {}
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t t) const {
      std::int64_t low = 0, high = this->rows;
      if (t < this->tiles) {
        const std::int64_t entry = t * this->shape.tile();
        while (high - low > 1) {  // begin(low) <= entry < begin(high)
          const std::int64_t middle = low + (high - low) / 2;
          (this->begin(middle) <= entry ? low : high) = middle;
        }
      } else {
        low = this->rows;
      }
      this->tile_ptr(t) = static_cast<std::uint32_t>(low);
    }
  };

  /// Flags of row starts and of empty rows; counts the empty rows. An empty row r with tile_row(t) < r < tile_row(t+1)
  /// has its row_map in (t omega sigma, (t+1) omega sigma].
  struct Rows : Base {
    explicit Rows(const Base& b) : Base(b) {}
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t row, std::int64_t& empty) const {
      const std::int64_t entry = this->begin(row);
      const Experimental::Csr5Shape& s = this->shape;
      if (entry == this->begin(row + 1)) {
        ++empty;
        if (entry > 0) Kokkos::atomic_fetch_or(&this->tile_ptr((entry - 1) / s.tile()), s.empty_mask);
        return;
      }
      const Csr5Place at(s, entry);
      const bool second = at.slot >= s.first_bits;
      const int bit = second ? 31 - (at.slot - s.first_bits) : s.first_bits - 1 - at.slot;
      Kokkos::atomic_fetch_or(&this->tile_desc(s.word(at.tile, second ? 1 : 0, at.lane)), std::uint32_t{1} << bit);
    }
  };

  /// y_offset and seg_offset, and which rows go on in further tiles; counts those.
  struct Tiles : Base {
    explicit Tiles(const Base& b) : Base(b) {}
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t t, std::int64_t& spans) const {
      const Experimental::Csr5Shape& s = this->shape;
      int before = 0;
      for (int lane = 0; lane < s.omega; ++lane) {
        const int own = csr5_count(this->starts(t, lane));
        this->tile_desc(s.word(t, 0, lane)) |= static_cast<std::uint32_t>(before) << (32 - s.y_bits);
        before += own;
      }
      std::uint32_t run = 0;
      for (int lane = s.omega - 1; lane >= 0; --lane) {
        this->tile_desc(s.word(t, 0, lane)) |= run << s.first_bits;
        run = this->starts(t, lane) != 0 ? 0u : run + 1;
      }
      const bool empty = (this->tile_ptr(t) & Experimental::Csr5Shape::empty_mask) != 0;
      this->empty_ptr(t) = empty ? static_cast<std::uint32_t>(before) : 0u;
      if (t >= this->full) {
        this->sizes(0).first_tail_row = this->row_of(t);
        this->sizes(0).tail_rows = before + 1;
        return;
      }
      std::uint32_t end = 0;
      if (t + 1 < this->tiles) {
        const std::int64_t row = this->row_of(t + 1), first = this->begin(row);
        if (first >= t * s.tile() && first < (t + 1) * s.tile()) {
          end = static_cast<std::uint32_t>((this->begin(row + 1) - 1) / s.tile());
        }
      }
      this->carry_end(t) = end;
      if (end != 0) ++spans;
    }
  };

  /// Counts to first positions, for empty_offset and for the list of long spans at once: neither sum reaches 2^32.
  struct Scan : Base {
    using value_type = std::uint64_t;
    explicit Scan(const Base& b) : Base(b) {}
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t t, std::uint64_t& sum, const bool final) const {
      const bool is_long = t<this->full&& this->carry_end(t)> static_cast<std::uint64_t>(t) + Format::long_span;
      const std::uint64_t offsets = this->empty_ptr(t);
      if (final) {
        this->empty_ptr(t) = static_cast<std::uint32_t>(sum);
        if (is_long) this->long_spans(sum >> 32) = static_cast<std::uint32_t>(t);
      }
      sum += offsets + (is_long ? std::uint64_t{1} << 32 : 0);
      if (final && t + 1 == this->tiles) this->sizes(0).scanned = sum;
    }
  };

  /// The rows of the tail: its segments are those that its descriptor counts.
  struct Tail : Base {
    View<std::int32_t> tail_row;
    View<std::uint32_t> tail_begin;
    explicit Tail(const Base& b) : Base(b) {}
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t row) const {
      const std::int64_t entry = this->begin(row), base = this->full * this->shape.tile();
      if (entry == this->begin(row + 1)) return;
      const std::int64_t s = entry <= base ? 0 : this->segment(Csr5Place(this->shape, entry)) + 1;
      tail_row(s) = static_cast<std::int32_t>(row);
      tail_begin(s) = static_cast<std::uint32_t>(entry <= base ? 0 : entry - base);
    }
  };

  /// The list of empty rows, and in tiles that pass over some the displacement of each row.
  struct EmptyRows : Base {
    using value_type = std::int64_t;
    View<std::int32_t> empty_row, empty_offset;
    explicit EmptyRows(const Base& b) : Base(b) {}
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t row, std::int64_t& sum, const bool final) const {
      const std::int64_t entry = this->begin(row);
      if (entry == this->begin(row + 1)) {
        if (final) empty_row(sum) = static_cast<std::int32_t>(row);
        ++sum;
      } else if (final) {
        const Csr5Place at(this->shape, entry);
        if (at.first() || (this->tile_ptr(at.tile) & Experimental::Csr5Shape::empty_mask) == 0) return;
        empty_offset(this->empty_ptr(at.tile) + this->segment(at)) =
            static_cast<std::int32_t>(row - this->row_of(at.tile) - 1);
      }
    }
  };
};

/// Copies values, and columns if there are any, into the slots of the tiles; a Kokkos team, or a thread on hosts, a
/// tile.
template <class Exec, class Scalar, class Values, class Entries>
struct Csr5FillFunctor {
  using member = typename Kokkos::TeamPolicy<Exec>::member_type;
  Values from_values;
  Entries from_entries;
  Scalar* values;
  std::int32_t* columns;
  Experimental::Csr5Shape shape;
  std::int64_t full, nnz;

  KOKKOS_INLINE_FUNCTION void copy(std::int64_t to, std::int64_t from) const {
    values[to] = from_values(from);
    if (columns != nullptr) columns[to] = static_cast<std::int32_t>(from_entries(from));
  }
  KOKKOS_INLINE_FUNCTION void copy_slot(std::int64_t t, int slot) const {
    const std::int64_t base = t * shape.tile();
    const int j = slot >> shape.lane_bits, lane = slot & (shape.omega - 1);
    if (t < full) {
      copy(base + slot, base + lane * shape.sigma + j);
    } else if (base + slot < nnz) {
      copy(base + slot, base + slot);
    }
  }
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t t) const {
    for (int slot = 0; slot < shape.omega * shape.sigma; ++slot) copy_slot(t, slot);
  }
  KOKKOS_INLINE_FUNCTION void operator()(const member& team) const {
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, shape.omega * shape.sigma),
                         [&](const int slot) { copy_slot(team.league_rank(), slot); });
  }
};

template <class Exec, class Scalar, class Memory, class Values, class Entries>
void csr5_fill_with(const Exec& space, const Experimental::Csr5<Scalar, Memory>& f, const Values& values,
                    const Entries& entries, std::int32_t* columns) {
  if (f.nnz == 0) return;
  const Csr5FillFunctor<Exec, Scalar, Values, Entries> functor{values, entries, f.values.data(), columns, f.shape,
                                                               f.full, f.nnz};
  if constexpr (Compat::is_host_v<Exec>) {
    Kokkos::parallel_for("Tessera::convert[csr5] fill", Kokkos::RangePolicy<Exec>(space, 0, f.tiles), functor);
  } else {
    Kokkos::parallel_for("Tessera::convert[csr5] fill",
                         Kokkos::TeamPolicy<Exec>(space, static_cast<int>(f.tiles), Compat::team_size<Exec>(128)),
                         functor);
  }
}

/// Everything of the conversion but the numbers. Compiled once per type of offsets.
template <class Pattern, class Exec>
class Csr5Conversion {
 public:
  using Memory = typename Pattern::memory_space;
  using Format = Experimental::Csr5Pattern<Memory>;

  Csr5Conversion(const Exec& space, const Pattern& A, std::size_t value_bytes, const KernelTable* backend, Format& f)
      : space_(space), A_(A), value_bytes_(value_bytes), backend_(backend), f_(f) {}

  /// Returns where the numbers go.
  void* run() {
    allocate_tiles();
    describe_tiles();
    list_rows();
    if (f_.workspace_bytes() > 0) {
      f_.carry_storage =
          allocate<Memory>(space_, backend_, "Tessera::csr5::carries", f_.workspace_bytes(), Lifetime::Plan);
      f_.carries = View<double>(static_cast<double*>(f_.carry_storage.get()), f_.workspace_bytes() / sizeof(double));
    }
    return numbers_.data();
  }

 private:
  using F = Csr5Functors<Pattern>;
  using Arena = Impl::Arena<Memory>;
  using Range = Kokkos::RangePolicy<Exec>;
  template <class T>
  using View = typename Arena::template View<T>;

  /// All but what depends on the empty rows.
  void allocate_tiles() {
    const auto tiles = static_cast<std::size_t>(f_.tiles), full = static_cast<std::size_t>(f_.full);
    const auto in_tail = static_cast<std::size_t>(f_.nnz - f_.full * f_.shape.tile());
    const auto lanes = static_cast<std::size_t>(f_.shape.packets * f_.shape.omega);
    f_.storage = Arena::make(space_, backend_, "Tessera::csr5", Lifetime::Plan, [&](Arena& arena) {
      numbers_ = arena.template take<char>(static_cast<std::size_t>(f_.nnz) * value_bytes_);
      f_.columns = arena.template take<std::int32_t>(static_cast<std::size_t>(f_.nnz));
      f_.tile_ptr = arena.template take<std::uint32_t>(tiles + 1);
      f_.tile_desc = arena.template take<std::uint32_t>(tiles * lanes);
      f_.empty_ptr = arena.template take<std::uint32_t>(tiles);
      f_.carry_end = arena.template take<std::uint32_t>(full);
      f_.long_spans = arena.template take<std::uint32_t>(full / static_cast<std::size_t>(f_.long_span) + 1);
      f_.tail_row = arena.template take<std::int32_t>(in_tail);
      f_.tail_begin = arena.template take<std::uint32_t>(in_tail);
      sizes_ = arena.template take<Csr5Sizes>(1);
    });
    Kokkos::deep_copy(space_, f_.tile_desc, std::uint32_t{0});
    Kokkos::deep_copy(space_,
                      View<std::uint64_t>(reinterpret_cast<std::uint64_t*>(sizes_.data()), sizeof(Csr5Sizes) / 8),
                      std::uint64_t{0});
  }

  typename F::Base base() const {
    return {A_.row_map(), f_.shape,     f_.rows,      f_.tiles,      f_.full, f_.tile_ptr,
            f_.tile_desc, f_.empty_ptr, f_.carry_end, f_.long_spans, sizes_};
  }

  /// One wait.
  void describe_tiles() {
    using Unmanaged = Kokkos::MemoryTraits<Kokkos::Unmanaged>;
    using Sum = Kokkos::View<std::int64_t, Kokkos::LayoutLeft, Memory, Unmanaged>;
    const typename F::Base base = this->base();
    Kokkos::parallel_for("Tessera::convert[csr5] tile_ptr", Range(space_, 0, f_.tiles + 1),
                         typename F::TilePointers(base));
    Kokkos::parallel_reduce("Tessera::convert[csr5] rows", Range(space_, 0, f_.rows), typename F::Rows(base),
                            Sum(&sizes_.data()->empty_rows));
    Kokkos::parallel_reduce("Tessera::convert[csr5] tile_desc", Range(space_, 0, f_.tiles), typename F::Tiles(base),
                            Sum(&sizes_.data()->spans));
    Kokkos::parallel_scan("Tessera::convert[csr5] scan", Range(space_, 0, f_.tiles), typename F::Scan(base));
    Kokkos::deep_copy(space_, Kokkos::View<Csr5Sizes*, Kokkos::LayoutLeft, Kokkos::HostSpace, Unmanaged>(&found_, 1),
                      sizes_);
    Compat::fence(space_, "Tessera::convert[csr5] sizes");
    f_.spans = found_.spans;
    f_.long_spans = View<std::uint32_t>(f_.long_spans.data(), static_cast<std::size_t>(found_.scanned >> 32));
    f_.tail_row = View<std::int32_t>(f_.tail_row.data(), static_cast<std::size_t>(found_.tail_rows));
    f_.tail_begin = View<std::uint32_t>(f_.tail_begin.data(), static_cast<std::size_t>(found_.tail_rows));
  }

  /// Rows of the tail, and empty ones.
  void list_rows() {
    if (found_.tail_rows > 0) {
      typename F::Tail tail(base());
      tail.tail_row = f_.tail_row;
      tail.tail_begin = f_.tail_begin;
      Kokkos::parallel_for("Tessera::convert[csr5] tail", Range(space_, found_.first_tail_row, f_.rows), tail);
    }
    if (found_.empty_rows > 0) {
      f_.empty_storage = Arena::make(space_, backend_, "Tessera::csr5::empty", Lifetime::Plan, [&](Arena& arena) {
        f_.empty_row = arena.template take<std::int32_t>(static_cast<std::size_t>(found_.empty_rows));
        f_.empty_offset = arena.template take<std::int32_t>(static_cast<std::size_t>(found_.scanned & 0xffffffffu));
      });
      typename F::EmptyRows empty(base());
      empty.empty_row = f_.empty_row;
      empty.empty_offset = f_.empty_offset;
      Kokkos::parallel_scan("Tessera::convert[csr5] empty rows", Range(space_, 0, f_.rows), empty);
    }
  }

  const Exec& space_;
  const Pattern& A_;
  std::size_t value_bytes_;
  const KernelTable* backend_;
  Format& f_;
  View<char> numbers_;
  View<Csr5Sizes> sizes_;
  Csr5Sizes found_{};
};

template <class Pattern, class Exec>
void* csr5_pattern(const Exec& space, const Pattern& A, std::size_t value_bytes, const KernelTable* backend,
                   Experimental::Csr5Pattern<typename Pattern::memory_space>& f) {
  return Csr5Conversion<Pattern, Exec>(space, A, value_bytes, backend, f).run();
}

/// The conversion for any number of lanes, a power of two from 2 to 64.
template <class Csr, class Exec>
Experimental::Csr5<typename Csr::value_type, typename Csr::memory_space> csr5_build(const Exec& space, const Csr& A,
                                                                                    int omega, const Csr5Options& o,
                                                                                    const KernelTable* backend) {
  using Scalar = typename Csr::value_type;
  const Compat::ScopedRegion region("Tessera::convert[csr5]");
  require<InvalidArgument>(o.sigma >= 0 && o.sigma <= Experimental::Csr5Shape::max_sigma, [&] {
    return "Csr5Options::sigma must be 0 (by mean row length) or lie in [1, 32], is " + std::to_string(o.sigma);
  });
  require<InvalidArgument>(omega >= 2 && omega <= 64 && (omega & (omega - 1)) == 0, [&] {
    return "CSR5: the number of lanes must be a power of two from 2 to 64, is " + std::to_string(omega);
  });
  Experimental::Csr5<Scalar, typename Csr::memory_space> f;
  f.rows = static_cast<std::int64_t>(A.rows());
  f.cols = static_cast<std::int64_t>(A.cols());
  f.nnz = static_cast<std::int64_t>(A.nnz());
  f.shape = Experimental::Csr5Shape(omega, o.sigma > 0 ? o.sigma : csr5_sigma(omega, f.rows, f.nnz));
  f.full = f.nnz / f.shape.tile();
  f.tiles = (f.nnz + f.shape.tile() - 1) / f.shape.tile();
  require<NotSupported>(f.tiles < (std::int64_t{1} << 31), [&] {
    return "CSR5: " + std::to_string(f.tiles) + " tiles, fewer than 2^31 are supported: use a larger sigma, or Csr";
  });
  if (f.nnz == 0) return f;
  void* const numbers = csr5_pattern(space, pattern_of(A), sizeof(Scalar), backend, f);
  f.values = typename Arena<typename Csr::memory_space>::template View<Scalar>(static_cast<Scalar*>(numbers),
                                                                               static_cast<std::size_t>(f.nnz));
  csr5_fill_with(space, f, ValuesOf<Csr>(A.values()), typename PatternOf<Csr>::entries_type(A.entries()),
                 f.columns.data());
  return f;
}

}  // namespace Impl

namespace Experimental {

/// Converts A, which is not changed and not kept, to CSR5 with as many lanes as the execution space has in a wave
/// (CUDA 32, HIP 64) or a vector register (hosts 8). Values keep their type and bits, entries their order.
///
/// Bytes of the format: nnz (v + 4) + 4 nnz packets / sigma + 12 per tile, 4 per empty row, 4 per row in tiles that
/// pass over empty rows. Work O(nnz + rows + tiles log rows); at most three allocations, of which the last is scratch
/// of the product; one wait. Deterministic. A is trusted: run validate() on matrices from outside first. Returns when
/// all sizes are known; the last kernels may still be in flight on `space`.
/// @param updatable  has no price here: slots of entries follow from their numbers, csr5_fill needs no map
/// @param backend  whose memory pool to use, if it has one; null: Kokkos allocations
/// @throw InvalidArgument  options out of range
/// @throw NotSupported  2^31 tiles or more
/// @throw DeviceError  out of device memory
template <class Csr, class Exec>
Csr5<typename Csr::value_type, typename Csr::memory_space> to_csr5(const Exec& space, const Csr& A,
                                                                   const Csr5Options& o = {}, bool updatable = true,
                                                                   const KernelTable* backend = nullptr) {
  (void)updatable;
  return Impl::csr5_build(space, A, Impl::csr5_omega<Exec>(), o, backend);
}

/// New numbers for the same pattern. One kernel, 2 nnz v bytes, no allocation, no wait.
/// @param values  nnz numbers in CSR order
/// @throw DimensionMismatch  another number of values
template <class Exec, class Scalar, class Memory, class Values>
void csr5_fill(const Exec& space, const Csr5<Scalar, Memory>& f, const Values& values) {
  Impl::require<DimensionMismatch>(static_cast<std::int64_t>(values.extent(0)) == f.nnz, [&] {
    return "csr5_fill: the format holds " + std::to_string(f.nnz) + " values, " + std::to_string(values.extent(0)) +
           " were given";
  });
  using From = Impl::ValuesView<Scalar, typename Values::device_type>;
  using NoEntries = Kokkos::View<const std::int32_t*, Kokkos::LayoutLeft, typename Values::device_type,
                                 Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  Impl::csr5_fill_with(space, f, From(values), NoEntries(), nullptr);
}

}  // namespace Experimental
}  // namespace Tessera

#endif
