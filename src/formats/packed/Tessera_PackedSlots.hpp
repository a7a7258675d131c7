// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FORMATS_PACKED_PACKED_SLOTS_HPP
#define TESSERA_FORMATS_PACKED_PACKED_SLOTS_HPP

#include <cstdint>
#include <type_traits>

#include "core/Tessera_Pattern.hpp"
#include "formats/packed/Tessera_PackedFill.hpp"

/// \file
/// Indices and values of a conversion in one kernel.

namespace Tessera {
namespace Impl {

/// Writes what PackedIndexFunctor and then PackedValueFunctor would, of numbers in full: a lane looks up its row once,
/// and waits once for columns and numbers. One thread per lane of a slice.
template <class Index, class Values>
struct PackedSlotFunctor {
  using Number = typename Values::non_const_value_type;
  using Types = PackedTypes<Number, PackedStorage::Full>;
  Index index;
  PackedValueFunctor<Values, Types> numbers;

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
    const int lane = static_cast<int>(i & (index.shape.lanes - 1));
    std::int64_t at = i >> index.shape.log_wave;
    const auto most = static_cast<std::int64_t>(index.slices.extent(0));
    do {
      const PackedSlice s = index.slices(at);  // does not wait for the gate
      if (index.gate.closed(at)) return;
      write(at, s, lane);
      at += index.gate.threads;
    } while (index.gate.totals != nullptr && at < most);
  }

  KOKKOS_INLINE_FUNCTION void write(std::int64_t at, PackedSlice s, int lane) const {
    s.packet = index.places.packet(at);
    if (lane == 0) index.slices(at).packet = s.packet;
    const PackedPacket packet(index.shape.lanes, Types::value_bytes);
    unsigned char* const base = index.packets + static_cast<std::size_t>(s.packet) * packed_unit;
    if (s.index() == PackedEmpty) return index.empty_ids(at, s, lane, packet, base);
    Number* const out = reinterpret_cast<Number*>(base);
    const int log = s.log_lanes(), q = lane >> log, t = lane & ((1 << log) - 1);
    std::int64_t row = 0, begin = 0, length = 0;
    if (q < s.rows()) {
      row = index.row(at, s, q);
      begin = index.map.begin(row);
      length = index.map.length(row);
    }
    if (s.index() == PackedIndexFree) {
      const std::uint32_t mask = index.offsets(at, lane, s, packet, base);
      if (s.masked()) {
        numbers.by_mask(s, begin, mask, lane, out);
      } else {
        numbers.in_order(s, begin, static_cast<int>(length), 0, lane, out);
      }
      return;
    }
    const PackedEntries e(s, index.parts.data(), index.shape.part_length(), begin, length);
    if (s.has_ids() && q < s.rows() && t == 0) {
      reinterpret_cast<std::uint16_t*>(base + packet.row_ids(s))[q] = static_cast<std::uint16_t>(row - s.row);
    }
    in_order(s, e.begin, static_cast<int>(e.length), packet, lane, base);
    for (int plane = 1; plane < s.group(); ++plane) {  // the rows of a group follow each other and are equally long
      numbers.in_order(s, e.begin + plane * length, static_cast<int>(e.length), plane, lane, out);
    }
  }

  /// Indices, and the values of the first row of a group; see store_packed_chunks and PackedValueFunctor::in_order.
  KOKKOS_INLINE_FUNCTION void in_order(const PackedSlice& s, std::int64_t entries, int length,
                                       const PackedPacket& packet, int lane, unsigned char* base) const {
    constexpr int batch = 8, size = PackedPacket::chunk_of(Types::value_bytes);
    unsigned char *const low = base + packet.indices(s), *const high = base + packet.high(s);
    Number* const out = reinterpret_cast<Number*>(base);
    const int log = s.log_lanes(), t = lane & ((1 << log) - 1), name = s.index();
    for (int first = 0; first < s.steps(); first += batch) {
      std::uint32_t column[batch];
      Number number[batch];
      for (int n = 0; n < batch; ++n) {
        const int k = ((first + n) << log) + t;
        column[n] = k < length ? static_cast<std::uint32_t>(index.columns(entries + k)) : ~0u;
        number[n] = k < length ? numbers.values(entries + k) : Number{};
      }
      for (int n = 0; n < batch; ++n) {
        if (column[n] != ~0u) column[n] = index.hubs > 0 ? index.hub_place(column[n]) : column[n] - s.column;
      }
      for (int c = 0; c < batch; c += size) {  // the last chunks are smaller, see PackedPacket
        const int step = first + c, left = s.steps() - step;
        if (left >= size) {
          put<size>(s, name, packet.lanes, step, lane, column + c, number + c, low, high, out);
        } else if (left > 0) {
          if constexpr (size == 4) {
            if ((left & 2) != 0) put<2>(s, name, packet.lanes, step, lane, column + c, number + c, low, high, out);
            if (left == 3) {
              put<1>(s, name, packet.lanes, step + 2, lane, column + c + 2, number + c + 2, low, high, out);
            }
          }
          if (left == 1) put<1>(s, name, packet.lanes, step, lane, column + c, number + c, low, high, out);
        }
      }
    }
  }
  template <int Size>
  KOKKOS_INLINE_FUNCTION void put(const PackedSlice& s, int name, int lanes, int step, int lane,
                                  const std::uint32_t* column, const Number* number, unsigned char* low,
                                  unsigned char* high, Number* out) const {
    numbers.template put<Size>(out, step, s.group(), 0, lane, number);
    store_packed_chunk<Size>(name, step * lanes + lane * Size, column, low, high);
  }
};

/// The pattern that a fill sees, whatever offsets the matrix has.
template <class Memory>
using PackedPlainPattern = CsrPattern<int, int, typename Memory::device_type>;

/// Writes indices and values of numbers in full. One kernel, no wait. Compiled once per type of numbers.
template <class Exec, class Memory, class Values>
void packed_fill_slots(const Exec& space, const Experimental::PackedSlices<Memory>& p, const Values& values,
                       const PackedIndexFunctor<PackedPlainPattern<Memory>>& index) {
  const auto slices = index.gate.totals != nullptr ? index.gate.threads : static_cast<std::int64_t>(p.slices.extent(0));
  if (slices == 0) return;
  PackedSlotFunctor<PackedIndexFunctor<PackedPlainPattern<Memory>>, Values> f;
  f.index = index;
  f.numbers.values = values;
  f.numbers.lanes = p.lanes;
  // Of numbers only chunks are put; nothing else of them is used.
  f.numbers.packets = nullptr;
  f.numbers.encode = {nullptr, 0};
  f.numbers.log_wave = 0;
  f.numbers.part_length = 0;
  Kokkos::parallel_for("Tessera::convert[packed] slots",
                       Kokkos::RangePolicy<Exec, Compat::LightWeight>(space, 0, slices * p.lanes), f);
}

}  // namespace Impl
}  // namespace Tessera

#endif
