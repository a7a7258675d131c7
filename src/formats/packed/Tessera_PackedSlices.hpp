// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FORMATS_PACKED_PACKED_SLICES_HPP
#define TESSERA_FORMATS_PACKED_PACKED_SLICES_HPP

#include <algorithm>
#include <cstdint>
#include <memory>

#include "Tessera_Compat.hpp"
#include "backends/interface/Tessera_PackedLayout.hpp"
#include "core/Tessera_Borrowed.hpp"

/// \file
/// The packed-slices format as plain Views; what lies where: backends/interface/Tessera_PackedLayout.hpp.

namespace Tessera {
namespace Impl {

/// Of a value in a packet. @param full  of one that is stored in full
KOKKOS_INLINE_FUNCTION int bytes_of_stored(PackedStorage storage, int full) {
  if (storage == PackedStorage::Constant) return 0;
  if (storage == PackedStorage::Integer || storage == PackedStorage::Dictionary) return 1;
  return storage == PackedStorage::Float ? 4 : full;
}

}  // namespace Impl

namespace Experimental {

/// What the host must know of the conversion; filled on the device.
struct PackedSummary {
  std::int64_t slices = 0, parts = 0, split_rows = 0;  ///< parts are slices, too
  std::int64_t units = 0;                              ///< of packets, in packed_unit bytes
  std::int64_t steps = 0, stored = 0;                  ///< slots of values, padding included
  std::int64_t short_slices = 0;                       ///< of at most five steps
  std::int64_t index_slots[6] = {};                    ///< value slots by PackedIndex
  std::int64_t grouped_slots = 0;                      ///< value slots in slices of grouped rows
  std::int64_t id_rows = 0;                            ///< rows that need a row id
};

/// Slices, their packets, and what the kernels need beside them. Experimental: its names may change between minor
/// versions.
template <class MemorySpace>
struct PackedSlices {
  template <class T>
  using View = Kokkos::View<T*, Kokkos::LayoutLeft, MemorySpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  using Storage = std::shared_ptr<void>;

  Storage structure_storage, packet_storage, hub_storage, map_storage;
  std::shared_ptr<Impl::Borrowed> borrowed;  ///< what the conversion's kernels use, until these are done

  int lanes = 32;
  Precision precision = Precision::FP64;
  PackedStorage storage = PackedStorage::Full;

  View<PackedSlice> slices;  ///< parts of long rows first: they start first
  View<std::uint64_t> packets;
  View<PackedPart> parts;
  View<std::int64_t> row_map;  ///< for update_values: where rows begin (of each column block); empty if not updatable
  View<std::uint64_t> dictionary;  ///< raw storage of up to 256 numbers in the precision's type
  View<std::uint32_t> hub_columns;
  View<PackedShare> shares;  ///< of column blocks; one for each thread block

  std::int64_t rows = 0, cols = 0, nnz = 0;
  PackedSummary summary;
  int max_steps = 16;    ///< rows get the fewest lanes with which they take no more; of a slice of few rows, all lanes
  int split_steps = 16;  ///< rows of more steps with a whole wave are cut
  int group = 1;         ///< rows that may share indices
  int blocks = 1;        ///< column blocks; each but the last has block_columns
  std::int64_t block_columns = 0;
  double hub_share = 0;  ///< entries in hub columns
  int dictionary_words = 0;
  PackedVariant variant = PackedVariant::General;
  bool eight_waves = false;                          ///< SpmvPackedArgs::eight_waves
  bool pairs = false;                                ///< SpmvPackedArgs::pairs
  std::uint32_t even = 0;                            ///< PackedSlice::packed of even slices; 0: slices are not
  std::int32_t offsets[packed_most_diagonals] = {};  ///< column - row of the diagonals, where these name the columns
  bool updatable = false;
  /// x at the hub columns is copied before each product, for the first-level cache to hold; else it is kept in shared
  /// memory, which is better for what the cache cannot hold (more than 64 kB) and shared memory can.
  bool copies_hubs = false;
  bool renumbered = false;  ///< hub_columns are all columns, in the order of their use

  /// After a wait for the conversion.
  void done() {
    if (borrowed) borrowed->done();
    borrowed.reset();
  }
  int value_bytes() const { return Impl::bytes_of_stored(storage, bytes_of(precision)); }
  std::size_t format_bytes() const {
    return sizeof(PackedSlice) * slices.extent(0) + 8 * packets.extent(0) + sizeof(PackedPart) * parts.extent(0) +
           8 * dictionary.extent(0) + 4 * hub_columns.extent(0) + sizeof(PackedShare) * shares.extent(0);
  }
  /// What update_values needs besides.
  std::size_t map_bytes() const { return 8 * row_map.extent(0); }
  std::size_t hub_bytes() const { return hub_columns.extent(0) * static_cast<std::size_t>(value_bytes()); }
  std::size_t hub_copy_bytes() const { return copies_hubs ? hub_bytes() : 0; }
  std::size_t partial_bytes() const { return 8 * packed_max_columns * parts.extent(0); }
  std::size_t arrival_bytes() const { return (4 * parts.extent(0) + 15) / 16 * 16; }
  /// On hosts vectors may be wider than the matrix's numbers.
  std::size_t block_sum_bytes() const {
    constexpr bool host = Kokkos::SpaceAccessibility<Kokkos::HostSpace, MemorySpace>::accessible;
    const int each = host ? 8 : sum_bytes_of(precision);
    return blocks > 1 ? static_cast<std::size_t>(blocks * rows) * static_cast<std::size_t>(each) : 0;
  }
  std::size_t workspace_bytes() const {
    return partial_bytes() + arrival_bytes() + hub_copy_bytes() + block_sum_bytes();
  }
  /// Kernels that an apply to one vector takes.
  int launches() const { return copies_hubs && hub_bytes() > 0 ? 2 : blocks > 1 ? 2 : 1; }

  /// The kernel's arguments, vectors and scratch left open.
  SpmvPackedArgs arguments() const {
    SpmvPackedArgs a;
    a.precision = precision;
    a.storage = storage;
    a.slices = slices.data();
    a.slice_count = static_cast<std::uint32_t>(slices.extent(0));
    a.packets = reinterpret_cast<const unsigned char*>(packets.data());
    a.parts = parts.data();
    a.dictionary = dictionary.data();
    a.hub_columns = hub_columns.data();
    a.hubs = static_cast<std::uint32_t>(hub_columns.extent(0));
    a.renumbered = renumbered;
    a.variant = variant;
    a.eight_waves = eight_waves;
    a.pairs = pairs;
    if (variant == PackedVariant::Even || variant == PackedVariant::Diagonals) {
      a.even_slice.packed = even;
      a.even_slice.packet = static_cast<std::uint32_t>(summary.units / summary.slices);
      a.even_slice.row = a.even_slice.rows();
    }
    std::copy(offsets, offsets + packed_most_diagonals, a.offsets);
    a.cols = cols;
    if (variant == PackedVariant::Diagonals) {
      const int steps = a.even_slice.steps();
      a.least_offset = *std::min_element(offsets, offsets + steps);
      a.greatest_offset = *std::max_element(offsets, offsets + steps);
    }
    a.blocks = blocks;
    a.rows = rows;
    a.block_columns = static_cast<std::uint32_t>(block_columns);
    a.share_count = static_cast<std::uint32_t>(shares.extent(0));
    a.shares = shares.data();
    return a;
  }
};

}  // namespace Experimental
}  // namespace Tessera

#endif
