// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FORMATS_PACKED_PACKED_FILL_HPP
#define TESSERA_FORMATS_PACKED_PACKED_FILL_HPP

#include <cstdint>
#include <cstring>

#include "core/Tessera_LaneReduce.hpp"
#include "formats/packed/Tessera_PackedOrder.hpp"

/// \file
/// Second part of the conversion to packed slices: how each slice names its columns, where its packet lies, and what
/// the packet holds. Indices and values are written by kernels of their own: update_values runs the second alone.

namespace Tessera {
namespace Impl {

/// Rows of a slice and the entries of each, before there are packets with row ids.
template <class Csr>
struct PackedRows : PackedTypesOf<Csr> {
  template <class T>
  using View = typename PackedTypesOf<Csr>::template View<T>;
  PackedShape shape;
  View<PackedSlice> slices;
  View<PackedPart> parts;
  View<std::uint32_t> order, slot;

  /// First row of unit q. @param place  in `order` of the first unit, where these do not follow each other
  KOKKOS_INLINE_FUNCTION std::int64_t row_from(std::int64_t place, const PackedSlice& s, int q) const {
    if (s.part()) return parts(s.row).row;
    if (s.contiguous()) return std::int64_t{s.row} + q * s.group();
    return std::int64_t{s.row} + (order(place + q) & (PackedShape::sort_window_keys - 1));
  }
  KOKKOS_INLINE_FUNCTION std::int64_t row(std::int64_t index, const PackedSlice& s, int q) const {
    return row_from(s.has_ids() ? std::int64_t{slot(index)} : 0, s, q);
  }
};

/// Places of a slice's entries in the matrix: entry (step, lane) of unit row.
struct PackedEntries {
  std::int64_t begin, length;  // of the row, from the slice's first entry on
  KOKKOS_INLINE_FUNCTION PackedEntries(const PackedSlice& s, const PackedPart* parts, std::int64_t part_length,
                                       std::int64_t row_begin, std::int64_t row_length)
      : begin(row_begin), length(row_length) {
    if (!s.part()) return;
    const std::int64_t skip = parts[s.row].which * part_length;
    begin += skip;
    length = row_length - skip < part_length ? row_length - skip : part_length;
  }
};

/// Chooses the index of each slice, by what its columns need.
template <class Csr>
struct PackedSpans : PackedRows<Csr> {
  using member = typename PackedTypesOf<Csr>::member;
  static constexpr int vector = Compat::is_host_v<typename PackedTypesOf<Csr>::exec> ? 1 : 32;  // lanes of a thread
  using Lanes = LaneReduce<vector>;
  template <class T>
  using View = typename PackedTypesOf<Csr>::template View<T>;

  typename PackedTypesOf<Csr>::Columns columns;
  typename PackedTypesOf<Csr>::Map map;
  bool index_free, narrow;  // switches
  double index_free_padding;
  std::int64_t hubs, cols;
  View<std::uint8_t> pattern;  // index-free slices: the unit whose columns are the slice's

  /// Completes the record of slice i; by all vector lanes of a thread. @param place  of its first row in `order`
  KOKKOS_INLINE_FUNCTION void choose_index(const member& team, std::int64_t i, PackedSlice& s,
                                           std::int64_t place) const {
    const int log = s.log_lanes(), steps = s.steps();
    int index = hubs > 0 && hubs + cols < 0xffffff ? PackedIndex24 : PackedIndex32;
    bool masked = false;
    std::uint32_t column = 0;
    if (this->shape.even_steps > 0) {
      index = PackedShape::even_index(cols);
    } else if (hubs == 0) {
      if (index_free && s.contiguous() && s.group() == 1 && log == 0 && steps > 0 && steps <= 32) {
        free_of_indices(team, i, s, index, masked);
      }
      if (narrow && index != PackedIndexFree) index = narrowest(team, place, s, column);
    }
    s.column = column;
    s.packed = PackedSlice::pack(steps, log, index, s.contiguous(), s.part(), masked, s.group(), s.rows());
    if constexpr (Compat::is_host_v<typename PackedTypesOf<Csr>::exec>) s.set_full_steps(full_steps(place, s));
  }

  /// The fewest bytes for the distances of a slice's columns from the lowest, all ones left for padding.
  KOKKOS_INLINE_FUNCTION int narrowest(const member& team, std::int64_t place, const PackedSlice& s,
                                       std::uint32_t& column) const {
    const auto range =
        Lanes::range(team, this->shape.lanes, [&](const int lane, Kokkos::MinMaxScalar<std::uint32_t>& r) {
          each_column(place, s, lane, [&](std::uint32_t c) {
            r.min_val = c < r.min_val ? c : r.min_val;
            r.max_val = c > r.max_val ? c : r.max_val;
          });
        });
    const bool empty = range.min_val > range.max_val;
    column = empty ? 0 : range.min_val;
    const std::uint32_t span = empty ? 0 : range.max_val - range.min_val;
    return span < 0xffu       ? PackedIndex8
           : span < 0xffffu   ? PackedIndex16
           : span < 0xffffffu ? PackedIndex24
                              : PackedIndex32;
  }

  /// Steps in which all lanes have an entry: hosts need not look for padding in these.
  KOKKOS_INLINE_FUNCTION int full_steps(std::int64_t place, const PackedSlice& s) const {
    const int log = s.log_lanes();
    if (s.rows() << log < this->shape.lanes || s.masked()) return 0;  // rows of masked slices have gaps anywhere
    std::int64_t least = s.steps();
    for (int q = 0; q < s.rows(); ++q) {
      const std::int64_t row = this->row_from(place, s, q);
      const PackedEntries e(s, this->parts.data(), this->shape.part_length(), map.begin(row), map.length(row));
      least = e.length >> log < least ? e.length >> log : least;
    }
    return static_cast<int>(least);
  }

  /// f(column), more than once for some.
  template <class F>
  KOKKOS_INLINE_FUNCTION void each_column(std::int64_t place, const PackedSlice& s, int lane, F&& f) const {
    const int log = s.log_lanes(), q = lane >> log, t = lane & ((1 << log) - 1);
    if (q >= s.rows()) return;
    const std::int64_t row = this->row_from(place, s, q);
    const PackedEntries e(s, this->parts.data(), this->shape.part_length(), map.begin(row), map.length(row));
    // Loads at once; beyond the row's end the first of them again.
    constexpr int batch = Compat::is_host_v<typename PackedTypesOf<Csr>::exec> ? 4 : 8;
    const auto length = static_cast<int>(e.length);  // at most that of a part
    const auto* const own = columns.data() + e.begin;
    for (int k = t; k < length; k += batch << log) {
      std::uint32_t column[batch];
      for (int n = 0; n < batch; ++n) {
        const int at = k + (n << log);
        column[n] = static_cast<std::uint32_t>(own[at < length ? at : k]);
      }
      for (int n = 0; n < batch; ++n) f(column[n]);
    }
  }

  /// Index-free if all rows take their columns, relative to themselves, from those of the longest row (the first of
  /// these), in ascending order, and few places stay empty.
  KOKKOS_INLINE_FUNCTION void free_of_indices(const member& team, std::int64_t i, const PackedSlice& s, int& index,
                                              bool& masked) const {
    const int rows = s.rows(), steps = s.steps();
    const std::int64_t first = s.row;
    const std::uint32_t longest = Lanes::least(team, rows, [&](const int q) {
      return map.length(first + q) == steps ? static_cast<std::uint32_t>(q) : static_cast<std::uint32_t>(rows);
    });
    const int unit = longest < static_cast<std::uint32_t>(rows) ? static_cast<int>(longest) : 0;
    const auto entries = static_cast<int>(map.begin(first + rows) - map.begin(first));
    const std::uint32_t misfits = Lanes::sum(team, rows, [&](const int q) {
      std::uint32_t mask = 0;
      return static_cast<std::uint32_t>(!mask_of(first + q, first + unit, steps, mask));
    });
    if (misfits > 0) return;
    if (steps * rows > index_free_padding * entries) return;
    index = PackedIndexFree;
    masked = entries < steps * rows;
    Kokkos::single(Kokkos::PerThread(team), [&]() { pattern(i) = static_cast<std::uint8_t>(unit); });
  }

  /// Which of the pattern's columns the row has; false if it has others, or not in ascending order.
  KOKKOS_INLINE_FUNCTION bool mask_of(std::int64_t row, std::int64_t unit, int steps, std::uint32_t& mask) const {
    const std::int64_t begin = map.begin(row), length = map.length(row);
    const std::int64_t pattern_begin = map.begin(unit), shift = row - unit;
    if (length == steps) {      // all or none: no step waits for the one before
      constexpr int batch = 4;  // loads at once; beyond the last step the first of them again
      int others = 0;
      for (int first = 0; first < steps; first += batch) {
        for (int n = 0; n < batch; ++n) {
          const int step = first + n < steps ? first + n : first;
          const auto wanted = static_cast<std::int64_t>(columns(pattern_begin + step)) + shift;
          others += static_cast<std::int64_t>(columns(begin + step)) != wanted;
        }
      }
      mask = steps < 32 ? (1u << steps) - 1 : ~0u;
      return others == 0;
    }
    std::int64_t k = 0;
    mask = 0;
    for (int step = 0; step < steps && k < length; ++step) {
      const auto wanted = static_cast<std::int64_t>(columns(pattern_begin + step)) + shift;
      if (static_cast<std::int64_t>(columns(begin + k)) != wanted) continue;
      mask |= 1u << step;
      ++k;
    }
    return k == length;
  }
};

/// Packets one after another, of records that are complete; the sums of all go to `total`.
template <class Csr>
struct PackedPacketScan : PackedTypesOf<Csr> {
  using value_type = PackedSizes;
  template <class T>
  using View = typename PackedTypesOf<Csr>::template View<T>;
  View<PackedSlice> slices;
  View<PackedSizes> total;
  int lanes, value_bytes;

  KOKKOS_INLINE_FUNCTION void init(PackedSizes& s) const { s = PackedSizes{}; }
  KOKKOS_INLINE_FUNCTION void join(PackedSizes& a, const PackedSizes& b) const { PackedSizes::add(a, b); }
  KOKKOS_INLINE_FUNCTION void join(volatile PackedSizes& a, const volatile PackedSizes& b) const {
    PackedSizes::add(a, b);
  }
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i, PackedSizes& sum, const bool final) const {
    const PackedPacket packet(lanes, value_bytes);
    const PackedSlice s = slices(i);
    if (final) slices(i).packet = static_cast<std::uint32_t>(sum.units);
    sum.count(packet, s);
    if (final && i + 1 == static_cast<std::int64_t>(slices.extent(0))) total(0) = sum;
  }
};

/// Where packets lie: chunks of consecutive slices one after another, and the slices of a chunk.
template <class Csr>
struct PackedPlaces {
  template <class T>
  using View = typename PackedTypesOf<Csr>::template View<T>;
  View<std::uint32_t> chunks, slices;  // both in packed_unit bytes
  int chunk = 1;                       // slices

  KOKKOS_INLINE_FUNCTION std::uint32_t packet(std::int64_t slice) const {
    return chunks(static_cast<std::uint32_t>(slice) / static_cast<std::uint32_t>(chunk)) + slices(slice);
  }
};

/// What kernels that the host has enqueued without knowing sizes go by: how many slices there are, and whether packets
/// of numbers in full fit. There are threads for as many slices as are likely, which take more than one if need be.
struct PackedGate {
  const PackedTotals* totals = nullptr;  // null: sizes are known
  std::int64_t room = 0;                 // for packets, in packed_unit bytes
  std::int64_t threads = 0;              // slices that there are threads for

  KOKKOS_INLINE_FUNCTION bool closed(std::int64_t slice) const {
    return totals != nullptr &&
           (slice >= totals->slices || totals->sizes.units > room || totals->storage != PackedStorage::Full);
  }
};

/// Of a lane, `Size` indices that follow each other.
template <class T, int Size>
struct alignas(Size * sizeof(T) < 8 ? Size * sizeof(T) : 8) PackedIndexChunk {
  T of[Size];
};
template <class T, int Size>
KOKKOS_INLINE_FUNCTION void store_packed_plane(unsigned char* plane, std::size_t at, const std::uint32_t* column,
                                               int shift) {
  PackedIndexChunk<T, Size> chunk;
  for (int n = 0; n < Size; ++n) chunk.of[n] = static_cast<T>(column[n] >> shift);
  *reinterpret_cast<PackedIndexChunk<T, Size>*>(plane + at * sizeof(T)) = chunk;
}
/// @param at  of the first, in elements
template <int Size>
KOKKOS_INLINE_FUNCTION void store_packed_chunk(int index, int at, const std::uint32_t* column, unsigned char* low,
                                               unsigned char* high) {
  const auto place = static_cast<std::size_t>(at);
  if (index == PackedIndex8) {
    store_packed_plane<std::uint8_t, Size>(low, place, column, 0);
  } else if (index == PackedIndex32) {
    store_packed_plane<std::uint32_t, Size>(low, place, column, 0);
  } else {
    store_packed_plane<std::uint16_t, Size>(low, place, column, 0);
    if (index == PackedIndex24) store_packed_plane<std::uint8_t, Size>(high, place, column, 16);
  }
}

/// The indices of one lane, in chunks of `Size` steps and smaller ones at the end, see PackedPacket. @param name  of a
/// column, what stands for it
template <int Size, class Columns, class Name>
KOKKOS_INLINE_FUNCTION void store_packed_chunks(const Columns& columns, std::int64_t begin, int length,
                                                const PackedSlice& s, const PackedPacket& packet, int lane,
                                                unsigned char* base, const Name& name) {
  unsigned char *const low = base + packet.indices(s), *const high = base + packet.high(s);
  const int log = s.log_lanes(), t = lane & ((1 << log) - 1), index = s.index();
  constexpr int batch = 8;  // loads before the first store
  for (int first = 0; first < s.steps(); first += batch) {
    std::uint32_t column[batch];
    for (int n = 0; n < batch; ++n) {
      const int k = ((first + n) << log) + t;
      column[n] = k < length ? static_cast<std::uint32_t>(columns(begin + k)) : ~0u;
    }
    for (int n = 0; n < batch; ++n) {
      if (column[n] != ~0u) column[n] = name(column[n]);
    }
    for (int c = 0; c < batch; c += Size) {
      const int step = first + c, left = s.steps() - step, at = step * packet.lanes;
      if (left >= Size) {
        store_packed_chunk<Size>(index, at + lane * Size, column + c, low, high);
      } else if (left > 0) {
        if constexpr (Size == 4) {
          if ((left & 2) != 0) store_packed_chunk<2>(index, at + lane * 2, column + c, low, high);
          if (left == 3) store_packed_chunk<1>(index, at + 2 * packet.lanes + lane, column + c + 2, low, high);
        }
        if (left == 1) store_packed_chunk<1>(index, at + lane, column + c, low, high);
      }
    }
  }
}
template <class Columns, class Name>
KOKKOS_INLINE_FUNCTION void store_packed_indices(const Columns& columns, std::int64_t begin, std::int64_t length,
                                                 const PackedSlice& s, const PackedPacket& packet, int lane,
                                                 unsigned char* base, const Name& name) {
  if (packet.chunk == 2) {
    store_packed_chunks<2>(columns, begin, static_cast<int>(length), s, packet, lane, base, name);
  } else {
    store_packed_chunks<4>(columns, begin, static_cast<int>(length), s, packet, lane, base, name);
  }
}

/// Writes row ids, indices, offsets and masks, and the packets' places; one thread per lane of a slice.
template <class Csr>
struct PackedIndexFunctor : PackedSpans<Csr> {
  template <class T>
  using View = typename PackedTypesOf<Csr>::template View<T>;
  PackedPlaces<Csr> places;
  View<std::uint32_t> hub_place;
  unsigned char* packets;
  int value_bytes;
  PackedGate gate;

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
    const int lane = static_cast<int>(i & (this->shape.lanes - 1));
    std::int64_t index = i >> this->shape.log_wave;
    const auto most = static_cast<std::int64_t>(this->slices.extent(0));
    do {
      const PackedSlice s = this->slices(index);  // does not wait for the gate
      if (gate.closed(index)) return;
      write(index, s, lane);
      index += gate.threads;
    } while (gate.totals != nullptr && index < most);
  }

  KOKKOS_INLINE_FUNCTION void write(std::int64_t index, PackedSlice s, int lane) const {
    const int lanes = this->shape.lanes;
    s.packet = places.packet(index);
    if (lane == 0) this->slices(index).packet = s.packet;
    const PackedPacket packet(lanes, value_bytes);
    unsigned char* const base = packets + static_cast<std::size_t>(s.packet) * packed_unit;
    const int log = s.log_lanes(), q = lane >> log, t = lane & ((1 << log) - 1);
    if (s.index() == PackedEmpty) return empty_ids(index, s, lane, packet, base);
    if (s.index() == PackedIndexFree) {
      offsets(index, lane, s, packet, base);
      return;
    }
    std::int64_t row = 0, begin = 0, length = 0;
    if (q < s.rows()) {
      row = this->row(index, s, q);
      begin = this->map.begin(row);
      length = this->map.length(row);
    }
    const PackedEntries e(s, this->parts.data(), this->shape.part_length(), begin, length);
    if (s.has_ids() && q < s.rows() && t == 0) {
      reinterpret_cast<std::uint16_t*>(base + packet.row_ids(s))[q] = static_cast<std::uint16_t>(row - s.row);
    }
    store_packed_indices(this->columns, e.begin, e.length, s, packet, lane, base,
                         [&](std::uint32_t column) { return this->hubs > 0 ? hub_place(column) : column - s.column; });
  }

  /// Of rows without entries, which may be more than lanes.
  KOKKOS_INLINE_FUNCTION void empty_ids(std::int64_t index, const PackedSlice& s, int lane, const PackedPacket& packet,
                                        unsigned char* base) const {
    if (!s.has_ids()) return;
    auto* const ids = reinterpret_cast<std::uint16_t*>(base + packet.row_ids(s));
    const int rows = s.rows(), stride = packet.lanes;
    for (int q = lane; q < rows; q += stride) ids[q] = static_cast<std::uint16_t>(this->row(index, s, q) - s.row);
  }

  /// @return the lane's mask
  KOKKOS_INLINE_FUNCTION std::uint32_t offsets(std::int64_t index, int lane, const PackedSlice& s,
                                               const PackedPacket& packet, unsigned char* base) const {
    const std::int64_t unit = std::int64_t{s.row} + this->pattern(index), begin = this->map.begin(unit);
    const int stride = this->shape.lanes;
    for (int step = lane; step < s.steps(); step += stride) {
      const auto offset = static_cast<std::int32_t>(static_cast<std::int64_t>(this->columns(begin + step)) - unit);
      reinterpret_cast<std::uint32_t*>(base + packet.indices(s))[step] =
          static_cast<std::uint32_t>(offset) ^ 0x80000000u;
    }
    std::uint32_t mask = 0;
    if (!s.masked()) return mask;
    if (lane < s.rows()) this->mask_of(std::int64_t{s.row} + lane, unit, s.steps(), mask);
    reinterpret_cast<std::uint32_t*>(base + packet.high(s))[lane] = mask;
    return mask;
  }
};

/// Turns numbers of the matrix into what a packet stores.
template <class Types, class Input>
struct PackedEncoder {
  using Value = typename Types::Value;
  using Stored = typename Types::Stored;
  const Value* dictionary;  // sorted by bits
  int words;

  KOKKOS_INLINE_FUNCTION Stored operator()(const Input& input) const {
    const Value value = static_cast<Value>(input);
    if constexpr (Types::storage == PackedStorage::Dictionary) {
      int low = 0, high = words - 1;
      while (low < high) {
        const int middle = (low + high) / 2;
        if (bits_of(dictionary[middle]) < bits_of(value)) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      return static_cast<Stored>(low);
    } else if constexpr (Types::storage == PackedStorage::Integer) {
      return static_cast<Stored>(static_cast<int>(static_cast<typename Types::Sum>(value)));
    } else {
      return static_cast<Stored>(value);
    }
  }
  KOKKOS_INLINE_FUNCTION static std::uint64_t bits_of(const Value& value) {
    if constexpr (sizeof(Value) == 8) {
      std::uint64_t bits;
      memcpy(&bits, &value, 8);
      return bits;
    } else if constexpr (sizeof(Value) == 4) {
      std::uint32_t bits;
      memcpy(&bits, &value, 4);
      return bits;
    } else {
      std::uint16_t bits;
      memcpy(&bits, &value, 2);
      return bits;
    }
  }
};

/// Writes the values of all slots; one thread per lane of a slice, a chunk at a time.
template <class Values, class Types>
struct PackedValueFunctor {
  using Memory = typename Values::memory_space;
  template <class T>
  using View = typename Experimental::PackedSlices<Memory>::template View<T>;
  using Stored = typename Types::Stored;

  Values values;
  PackedRowMap<Memory> map;
  View<PackedSlice> slices;
  View<PackedPart> parts;
  unsigned char* packets;
  PackedEncoder<Types, typename Values::non_const_value_type> encode;
  int lanes, log_wave;
  std::int64_t part_length;
  PackedGate gate;

  template <int Size>
  struct alignas(Size * sizeof(Stored)) Chunk {
    Stored of[Size];
  };
  /// `Size` values of a lane and plane, from `step` on.
  template <int Size>
  KOKKOS_INLINE_FUNCTION void put(Stored* out, int step, int planes, int plane, int lane, const Stored* from) const {
    Chunk<Size> chunk;
    for (int n = 0; n < Size; ++n) chunk.of[n] = from[n];
    const int at = (step * planes + plane * Size) * lanes + lane * Size;
    *reinterpret_cast<Chunk<Size>*>(out + at) = chunk;
  }

  /// Slots that follow the row's entries in their order: by eight steps, whose loads all come before the first store.
  KOKKOS_INLINE_FUNCTION void in_order(const PackedSlice& s, std::int64_t entries, int length, int plane, int lane,
                                       Stored* out) const {
    constexpr int batch = 8, size = PackedPacket::chunk_of(Types::value_bytes);
    const int log = s.log_lanes(), planes = s.group();
    const int begin = lane & ((1 << log) - 1);
    for (int first = 0; first < s.steps(); first += batch) {
      typename Values::non_const_value_type number[batch];
      for (int n = 0; n < batch; ++n) {
        const int k = begin + ((first + n) << log);
        if (k < length) number[n] = values(entries + k);
      }
      Stored stored[batch];
      for (int n = 0; n < batch; ++n) {
        const int k = begin + ((first + n) << log);
        stored[n] = k < length ? encode(number[n]) : Stored{};
      }
      for (int c = 0; c < batch; c += size) {  // the last chunks are smaller, see PackedPacket
        const int step = first + c, left = s.steps() - step;
        if (left >= size) {
          put<size>(out, step, planes, plane, lane, stored + c);
        } else if (left > 0) {
          if constexpr (size == 4) {
            if ((left & 2) != 0) put<2>(out, step, planes, plane, lane, stored + c);
            if (left == 3) put<1>(out, step + 2, planes, plane, lane, stored + c + 2);
          }
          if (left == 1) put<1>(out, step, planes, plane, lane, stored + c);
        }
      }
    }
  }

  /// Slots of an index-free slice whose rows lack entries.
  KOKKOS_INLINE_FUNCTION void by_mask(const PackedSlice& s, std::int64_t entries, std::uint32_t mask, int lane,
                                      Stored* out) const {
    const PackedPacket packet(lanes, Types::value_bytes);
    for (int step = 0; step < s.steps(); ++step) {
      const bool has = (mask >> step & 1u) != 0;
      out[packet.element(s.steps(), step, lane, 0, 1)] = has ? encode(values(entries)) : Stored{};
      entries += has;
    }
  }

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
    const int lane = static_cast<int>(i & (lanes - 1));
    std::int64_t index = i >> log_wave;
    const auto most = static_cast<std::int64_t>(slices.extent(0));
    do {
      const PackedSlice s = slices(index);  // does not wait for the gate
      if (gate.closed(index)) return;
      write(s, lane);
      index += gate.threads;
    } while (gate.totals != nullptr && index < most);
  }

  KOKKOS_INLINE_FUNCTION void write(const PackedSlice& s, int lane) const {
    if (s.index() == PackedEmpty) return;
    const int q = lane >> s.log_lanes();
    const PackedPacket packet(lanes, Types::value_bytes);
    unsigned char* const base = packets + static_cast<std::size_t>(s.packet) * packed_unit;
    Stored* const out = reinterpret_cast<Stored*>(base);
    const bool valid = q < s.rows();
    std::int64_t row = 0, begin = 0, length = 0;
    if (valid) {
      row = s.part() ? parts(s.row).row : std::int64_t{s.row} + q * s.group();
      if (s.has_ids()) row = s.row + reinterpret_cast<const std::uint16_t*>(base + packet.row_ids(s))[q];
      begin = map.begin(row);
      length = map.length(row);
    }
    if (s.masked()) {
      const std::uint32_t mask = reinterpret_cast<const std::uint32_t*>(base + packet.high(s))[lane];
      return by_mask(s, begin, valid ? mask : 0, lane, out);
    }
    if (s.index() == PackedDiagonals && length < s.steps()) {
      const std::uint32_t* const words = reinterpret_cast<const std::uint32_t*>(base + packet.indices(s));
      std::uint32_t mask = 0;
      for (int step = 0; step < s.steps(); ++step) mask |= (words[step] >> lane & 1u) << step;
      return by_mask(s, begin, mask, lane, out);
    }
    const PackedEntries e(s, parts.data(), part_length, begin, length);
    for (int plane = 0; plane < s.group(); ++plane) {  // the rows of a group follow each other and are equally long
      in_order(s, e.begin + plane * length, static_cast<int>(e.length), plane, lane, out);
    }
  }
};

}  // namespace Impl
}  // namespace Tessera

#endif
