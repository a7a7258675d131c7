// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FORMATS_WINDOWS_TO_PANELS_HPP
#define TESSERA_FORMATS_WINDOWS_TO_PANELS_HPP

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "Tessera_Options.hpp"
#include "formats/windows/Tessera_Panels.hpp"
#include "formats/windows/Tessera_RowsApart.hpp"
#include "formats/windows/Tessera_WindowUnion.hpp"

namespace Tessera {
namespace Impl {

template <class Csr>
struct PanelFunctors {
  using Base = typename WindowFunctors<Csr>::Base;
  using Memory = typename Csr::memory_space;
  template <class T>
  using View = typename WindowFunctors<Csr>::template View<T>;

  /// What all kernels share. Bit i * depth + k stands for row i and column k of a block; those of a row are in one
  /// word.
  struct Slots : Base {
    template <class T>
    using View = typename WindowFunctors<Csr>::template View<T>;
    View<std::uint32_t> packets;
    int packet_words, bitmap_at, prefix_at, begin_at, count_at, unit;
    ApartBefore<Memory> apart;
    std::uint32_t first_apart = 0;  ///< of the numbers of rows apart
    Slots(const Base& b, const PanelGeometry& g, const View<std::uint32_t>& packets_)
        : Base(b),
          packets(packets_),
          packet_words(g.packet_words()),
          bitmap_at(g.bitmap_at()),
          prefix_at(g.prefix_at()),
          begin_at(g.begin_at()),
          count_at(g.count_at()),
          unit(static_cast<int>(g.stored_values(1))) {}

    KOKKOS_INLINE_FUNCTION std::uint32_t block_of(std::int64_t p) const {
      return this->column_vector(this->leader(p)) / this->depth;
    }
    /// Where the packet of the entry's block is, the entry's row in the window, and its bit.
    KOKKOS_INLINE_FUNCTION std::int64_t packet_of(std::int64_t p, int& row, int& bit) const {
      const std::uint32_t vector = this->column_vector(this->leader(p)), block = vector / this->depth;
      row = static_cast<int>(static_cast<std::uint32_t>(this->row(p)) % this->height);
      bit = row * static_cast<int>(this->depth) + static_cast<int>(vector - block * this->depth);
      return std::int64_t{block} * packet_words;
    }
    /// The bits of a row; its first one is bit 0.
    KOKKOS_INLINE_FUNCTION std::uint32_t row_bits(std::int64_t packet, int row) const {
      const int bit = row * static_cast<int>(this->depth);
      const std::uint32_t all = this->depth == 32 ? ~std::uint32_t{0} : (std::uint32_t{1} << this->depth) - 1;
      return packets(packet + bitmap_at + bit / 32) >> bit % 32 & all;
    }
    /// Place of an entry among those of all rows apart, of which its row is one.
    KOKKOS_INLINE_FUNCTION std::uint32_t place_apart(std::int64_t p) const {
      const std::int32_t r = this->row(p);
      return apart.entries(r) + (static_cast<std::uint32_t>(p) - this->begin(r));
    }
    /// Place of an entry's number.
    KOKKOS_INLINE_FUNCTION std::uint32_t value_of(std::int64_t p) const {
      if (apart.is(this->row(p))) return first_apart + place_apart(p);
      int row = 0, bit = 0;
      const std::int64_t packet = packet_of(p, row, bit);
      const int k = bit - row * static_cast<int>(this->depth);
      return packets(packet + begin_at) + (packets(packet + prefix_at + row / 4) >> row % 4 * 8 & 0xffu) +
             bit_count(row_bits(packet, row) & ((std::uint32_t{1} << k) - 1));
    }
  };

  /// No columns, no entries.
  struct Clear : Slots {
    explicit Clear(const Slots& s) : Slots(s) {}
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
      this->packets(i) = i % this->packet_words < std::int64_t{this->depth} ? ~std::uint32_t{0} : std::uint32_t{0};
    }
  };

  /// The order in which bits are set does not matter, and no slot has two entries.
  struct Bits : Slots {
    explicit Bits(const Slots& s) : Slots(s) {}
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t p) const {
      int row = 0, bit = 0;
      const std::int64_t packet = this->packet_of(p, row, bit);
      Kokkos::atomic_fetch_or(&this->packets(packet + this->bitmap_at + bit / 32), std::uint32_t{1} << bit % 32);
    }
  };

  /// How many entries stand before each row of a block, where its values begin, and how many there are.
  struct Begins : Slots {
    using value_type = std::uint32_t;
    explicit Begins(const Slots& s) : Slots(s) {}
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t block, std::uint32_t& sum, const bool final) const {
      const std::int64_t packet = block * this->packet_words;
      const int rows = static_cast<int>(this->height);
      std::uint32_t count = 0, prefix = 0;
      for (int row = 0; row < rows; ++row) {
        prefix |= count << row % 4 * 8;
        count += bit_count(this->row_bits(packet, row));
        if (row % 4 != 3) continue;
        if (final) this->packets(packet + this->prefix_at + row / 4) = prefix;
        prefix = 0;
      }
      if (final) {
        this->packets(packet + this->begin_at) = sum;
        this->packets(packet + this->count_at) = count;
      }
      const auto width = static_cast<std::uint32_t>(this->unit);
      sum += (count + width - 1) / width * width;
    }
  };
};

/// Values in the order of bits, then those of rows apart.
template <class Slots, class Values, class Origin>
struct PanelFillFunctor : Slots {
  template <class T>
  using View = typename Slots::template View<T>;
  Values from;
  Origin origin;                   ///< empty: the same
  View<std::uint32_t> entry_slot;  ///< empty: not wanted
  SpmmValueStore store;
  explicit PanelFillFunctor(const Slots& s) : Slots(s) {}
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t p) const {
    const std::uint32_t slot = this->value_of(p);
    const auto entry = origin.extent(0) > 0 ? static_cast<std::int64_t>(origin(p)) : p;
    store(static_cast<std::int64_t>(slot), from(entry));
    if (entry_slot.extent(0) > 0) entry_slot(entry) = slot;
  }
};

/// A geometry must be one, and for values of this precision.
inline void check_panel_geometry(const PanelGeometry& g, Precision precision) {
  // Bits of a row lie in one word, and numbers of entries before a row in a byte.
  constexpr int most = 256;
  const bool good = (g.depth == 8 || g.depth == 16 || g.depth == 32) && g.rows > 0 && g.rows % 4 == 0 &&
                    g.rows <= most && g.rows * g.depth <= most && (g.part_columns == 0 || g.part_step > 0);
  require<InvalidArgument>(good, [&] {
    return "panel geometry '" + std::string(g.atom) + "': " + std::to_string(g.rows) + " x " + std::to_string(g.depth) +
           " slots; rows must be a multiple of 4, columns 8, 16 or 32, slots at most " + std::to_string(most);
  });
  require<InvalidArgument>(g.value_bytes == bytes_of(precision), [&] {
    return "panel geometry '" + std::string(g.atom) + "': values of " + std::to_string(g.value_bytes) +
           " bytes for precision " + to_string(precision);
  });
}

/// A format without its numbers, and what their fill needs.
template <class Pattern>
struct PanelPattern {
  Experimental::Panels<typename Pattern::memory_space> format;
  std::optional<WindowUnion<Pattern>> windows;  ///< none where there are no entries
  std::optional<typename PanelFunctors<Pattern>::Slots> slots;
  std::shared_ptr<void> temporary;  ///< of slots, where there are rows apart
};

/// Everything of the conversion but the numbers.
template <class Pattern, class Exec>
class PanelConversion {
 public:
  using Memory = typename Pattern::memory_space;
  using Order = typename WindowFunctors<Pattern>::Order;

  PanelConversion(const Exec& space, const Pattern& A, const PanelGeometry& geometry, Precision precision,
                  const KernelTable* backend, const Order& order)
      : space_(space), A_(A), geometry_(geometry), backend_(backend), order_(order), f_(result_.format) {
    f_.geometry = geometry;
    f_.precision = precision;
    f_.rows = static_cast<std::int64_t>(A.rows());
    f_.cols = static_cast<std::int64_t>(A.cols());
    f_.nnz = static_cast<std::int64_t>(A.nnz());
    f_.windows = (f_.rows + geometry.rows - 1) / geometry.rows;
  }

  PanelPattern<Pattern> run(int max_blocks, bool updatable) {
    if (f_.nnz == 0) {
      f_.structure_storage = Arena::make(space_, backend_, "Tessera::panels", Lifetime::Plan, [&](Arena& arena) {
        f_.block_ptr = arena.template take<std::uint32_t>(static_cast<std::size_t>(f_.windows) + 1);
        f_.row_order = arena.template take<std::int32_t>(order_.extent(0));
      });
      Kokkos::deep_copy(space_, f_.block_ptr, 0u);
      copy_order();
      return std::move(result_);
    }
    result_.windows.emplace(space_, A_, geometry_.rows, geometry_.depth, true, max_blocks, order_, backend_);
    allocate(*result_.windows, updatable);
    copy_order();
    write(*result_.windows);
    return std::move(result_);
  }

 private:
  using Arena = Impl::Arena<Memory>;
  using F = WindowFunctors<Pattern>;
  using P = PanelFunctors<Pattern>;
  using Union = WindowUnion<Pattern>;

  void copy_order() {
    if (f_.row_order.extent(0) == 0) return;
    Kokkos::parallel_for("Tessera::convert[panels] order", Union::range(space_, f_.rows),
                         typename F::CopyOrder{order_, f_.row_order});
  }

  void allocate(const Union& u, bool updatable) {
    f_.column_vectors = u.column_vectors();
    f_.blocks = u.blocks();
    f_.partial_count = u.sizes.split.parts();
    const std::int64_t padded = f_.blocks * geometry_.depth;
    // How much padding the values of blocks get is known when their bits are; room for the most saves a wait.
    // Those of rows apart are not padded, and end the room: it is rounded up for them.
    const std::int64_t unit = geometry_.stored_values(1), end = geometry_.part_columns != 0 ? unit - 1 : 0;
    const std::int64_t stored = (f_.nnz + f_.blocks * (unit - 1) + end) / unit * unit;
    constexpr std::int64_t words = std::numeric_limits<std::uint32_t>::max();
    require<NotSupported>(
        f_.column_vectors <= std::numeric_limits<std::int32_t>::max() && padded <= words && stored <= words, [&] {
          return "panels: at most 2^31 - 1 distinct columns of windows, 2^32 - 1 in whole blocks and 2^32 - 1 stored " +
                 std::string("values are supported, this matrix needs ") + std::to_string(f_.column_vectors) + ", " +
                 std::to_string(padded) + " and " + std::to_string(stored) + "; split it by rows, or use GeSpmm or Csr";
        });
    packet_words_ = static_cast<std::size_t>(f_.blocks) * static_cast<std::size_t>(geometry_.packet_words());
    f_.structure_storage = Arena::make(space_, backend_, "Tessera::panels", Lifetime::Plan, [&](Arena& arena) {
      f_.block_ptr = arena.template take<std::uint32_t>(static_cast<std::size_t>(f_.windows) + 1);
      f_.packets = arena.template take<std::uint32_t>(packet_words_);
      f_.row_order = arena.template take<std::int32_t>(order_.extent(0));
      f_.parts = arena.template take<SpmmPart>(u.parts());
      f_.splits = arena.template take<SpmmSplit>(u.splits());
      f_.entry_slot = arena.template take<std::uint32_t>(updatable ? A_.nnz() : 0);
    });
    f_.value_storage = Arena::make(space_, backend_, "Tessera::panels::values", Lifetime::Plan, [&](Arena& arena) {
      f_.values = arena.template take<std::uint64_t>(static_cast<std::size_t>(stored / unit) * 2);
    });
  }

  void write(const Union& u) {
    result_.slots.emplace(u.base, geometry_, f_.packets);
    typename P::Slots& slots = *result_.slots;
    Kokkos::parallel_for("Tessera::convert[panels] clear",
                         Union::range(space_, static_cast<std::int64_t>(packet_words_)), typename P::Clear(slots));
    Kokkos::deep_copy(space_, f_.values, std::uint64_t{0});
    Kokkos::parallel_for("Tessera::convert[panels] block_ptr", Union::range(space_, f_.windows + 1),
                         typename F::FirstBlocks{u.base.first_block, f_.block_ptr});
    using Columns = typename P::template View<std::int32_t>;
    u.write_columns(space_, Columns(reinterpret_cast<std::int32_t*>(f_.packets.data()), packet_words_),
                    geometry_.packet_words());
    u.write_parts(space_, false, f_.parts, f_.splits);
    Kokkos::parallel_for("Tessera::convert[panels] bits", Union::range(space_, f_.nnz), typename P::Bits(slots));
    if (geometry_.part_columns != 0) {
      result_.temporary = take_rows_apart(space_, geometry_, backend_, order_, slots, f_.apart,
                                          static_cast<std::int64_t>(f_.values.extent(0)) * 8 / geometry_.value_bytes);
    }
    Kokkos::parallel_scan("Tessera::convert[panels] begins", Union::range(space_, f_.blocks),
                          typename P::Begins(slots));
  }

  const Exec& space_;
  const Pattern& A_;
  const PanelGeometry& geometry_;
  const KernelTable* backend_;
  const Order& order_;
  PanelPattern<Pattern> result_;
  Experimental::Panels<Memory>& f_;
  std::size_t packet_words_ = 0;
};

template <class Pattern, class Exec>
PanelPattern<Pattern> panel_pattern(const Exec& space, const Pattern& A, const PanelGeometry& geometry,
                                    Precision precision, int max_blocks, bool updatable, const KernelTable* backend,
                                    const typename WindowFunctors<Pattern>::Order& order) {
  return PanelConversion<Pattern, Exec>(space, A, geometry, precision, backend, order).run(max_blocks, updatable);
}

}  // namespace Impl

namespace Experimental {

/// Converts A, which is not changed and not kept, to panels. Columns of rows may be unsorted and may repeat; column
/// vectors ascend by column in each window, copies of a column in the order in which rows repeat it (the m-th entry of
/// a column in a row stands in the m-th copy).
///
/// Bytes: see Panels; map of an updatable format: 4 nnz. Work O(nnz geometry.rows log(longest row)), one thread per
/// entry; 12.25 nnz bytes of temporary memory, 28 nnz more where rows are unsorted or reordered; one wait, further ones
/// for unsorted rows; 16 bytes per row and another wait where instructions multiply in parts. Deterministic. A is
/// trusted: run validate() on matrices from outside first. The last kernels may still be in flight on `space`.
/// @param geometry  KernelTable::panel_geometry
/// @param precision  of stored values, each rounded once; TF32: floats, which the kernel rounds
/// @param updatable  keep the map that update_panels needs
/// @param backend  whose memory pool to use, and for whose device windows are split; may be null
/// @param row_order  row at each place in the windows: a permutation (trusted); empty: natural order
/// @throw InvalidArgument  options out of range, a geometry that is none or does not fit the precision
/// @throw DimensionMismatch  an order of another length
/// @throw NotSupported  2^32 - 1 entries or more, more than 2^31 - 1 column vectors, or more than 2^32 - 1 with the
///        padding of blocks or values with theirs
/// @throw DeviceError  out of device memory
template <class Csr, class Exec>
Panels<typename Csr::memory_space> to_panels(
    const Exec& space, const Csr& A, const PanelGeometry& geometry, Precision precision,
    const PanelOptions& options = {}, bool updatable = true, const KernelTable* backend = nullptr,
    const typename Impl::WindowFunctors<Csr>::Order& row_order = typename Impl::WindowFunctors<Csr>::Order()) {
  const Compat::ScopedRegion region("Tessera::convert[panels]");
  Impl::check_panel_geometry(geometry, precision);
  Impl::require<InvalidArgument>(options.max_blocks >= 0, [&] {
    return "PanelOptions::max_blocks must not be negative, is " + std::to_string(options.max_blocks);
  });
  Impl::spmm_check_sizes(A, row_order, "panels");
  const auto made = Impl::panel_pattern(space, Impl::pattern_of(A), geometry, precision, options.max_blocks, updatable,
                                        backend, row_order);
  if (!made.windows) return made.format;
  using Slots = std::decay_t<decltype(*made.slots)>;
  using Origin = std::decay_t<decltype(made.windows->origin)>;
  Impl::PanelFillFunctor<Slots, Impl::ValuesOf<Csr>, Origin> fill(*made.slots);
  fill.from = A.values();
  fill.origin = made.windows->origin;
  fill.entry_slot = made.format.entry_slot;
  fill.store = {made.format.values.data(), precision};
  Kokkos::parallel_for("Tessera::convert[panels] fill",
                       Impl::WindowUnion<Impl::PatternOf<Csr>>::range(space, made.format.nnz), fill);
  return made.format;
}

/// New numbers for the same pattern. One kernel, nnz (4 + source + v) bytes, no allocation, no wait.
/// @param A  the matrix that was converted, or one of the same pattern: only its sizes are looked at
/// @param values  nnz numbers in CSR order
/// @throw DimensionMismatch  other sizes
/// @throw NotSupported  the format was built without its map
template <class Exec, class Memory, class Csr, class Values>
void update_panels(const Exec& space, const Panels<Memory>& f, const Csr& A, const Values& values) {
  Impl::spmm_update(space, f, A, values, "update_panels");
}

}  // namespace Experimental
}  // namespace Tessera

#endif
