// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_TEST_SLICES_HPP
#define TESSERA_TEST_SLICES_HPP

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "backends/interface/Tessera_PackedLayout.hpp"

/// \file
/// Packed slices that no conversion made: every width of index, number of steps, lanes per row, consecutive rows and
/// not, rows that lack entries; and what each row holds, noted as the slices are drawn. Numbers are small and whole, so
/// that every sum is exact in every type and a result is right or wrong.

namespace Tessera {
namespace Testing {

template <class Value>
struct DrawnSlices {
  struct Entry {
    std::int64_t column;
    int value;
  };
  static constexpr int value_bytes = static_cast<int>(sizeof(Value)), columns = 1 << 20;

  int lanes;
  std::mt19937 random;
  std::vector<PackedSlice> slices;
  std::vector<unsigned char> packets;
  std::vector<std::vector<Entry>> rows;

  DrawnSlices(int lanes_, unsigned seed, int count, int most_steps) : lanes(lanes_), random(seed) {
    for (int i = 0; i < count; ++i) {
      if (below(9) == 0) {
        add_empty();
      } else {
        add(1 + below(most_steps));
      }
    }
  }

  static int x(std::int64_t column) { return static_cast<int>(column * 7919 % 17) - 8; }
  std::vector<int> product() const {
    std::vector<int> y;
    for (const auto& row : rows) {
      y.push_back(std::accumulate(row.begin(), row.end(), 0,
                                  [](int sum, const Entry& e) { return sum + e.value * x(e.column); }));
    }
    return y;
  }

 private:
  int below(int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); }

  template <class T>
  void put(std::size_t at, T value) {
    std::memcpy(packets.data() + at, &value, sizeof(value));
  }

  /// Rows without entries, up to ten per lane.
  void add_empty() {
    const int count = 1 + below(10 * lanes);
    PackedSlice s{};
    s.packet = static_cast<std::uint32_t>(packets.size() / packed_unit);
    s.row = static_cast<std::int32_t>(rows.size());
    s.column = static_cast<std::uint32_t>(count);
    s.packed = PackedSlice::pack(0, 0, PackedEmpty, below(2) == 0, false, false, 1, 1);
    rows.resize(rows.size() + static_cast<std::size_t>(count));
    const std::size_t base = packets.size();
    packets.resize(base + PackedPacket(lanes, value_bytes).bytes(s), 0xff);
    for (int q = 0; s.has_ids() && q < count; ++q) {
      put(base + 2 * static_cast<std::size_t>(q), static_cast<std::uint16_t>(count - 1 - q));
    }
    slices.push_back(s);
  }

  void add(int steps) {
    const int index = below(5), most_log = lanes == 64 ? 1 : 0;
    const bool free = index == PackedIndexFree;
    // A record counts up to 64 rows.
    const int log = free ? 0 : std::max(below(4), most_log - 1), most = lanes >> log;
    const int count = below(4) != 0 ? most : 1 + below(most);
    const bool contiguous = free || below(2) == 0, masked = free && below(2) == 0;
    PackedSlice s{};
    s.packet = static_cast<std::uint32_t>(packets.size() / packed_unit);
    s.row = static_cast<std::int32_t>(rows.size());
    s.column = free ? 0 : static_cast<std::uint32_t>(below(1000));
    s.packed = PackedSlice::pack(steps, log, index, contiguous, false, masked, 1, count);
    const PackedPacket packet(lanes, value_bytes);
    const std::size_t base = packets.size();
    packets.resize(base + packet.bytes(s), 0xff);
    rows.resize(rows.size() + static_cast<std::size_t>(count));
    std::vector<int> place(static_cast<std::size_t>(count));
    std::iota(place.begin(), place.end(), 0);
    if (!contiguous) std::shuffle(place.begin(), place.end(), random);
    std::vector<int> offset(static_cast<std::size_t>(steps));
    for (int& o : offset) o = below(2000) - std::min(s.row, 2000);
    for (int t = 0; free && t < steps; ++t) {
      put(base + packet.indices(s) + 4 * static_cast<std::size_t>(t),
          static_cast<std::uint32_t>(offset[static_cast<std::size_t>(t)]) ^ 0x80000000u);
    }
    for (int lane = 0; lane < lanes; ++lane) {
      const int q = lane >> log;
      std::uint32_t mask = 0;
      for (int t = 0; t < steps; ++t) {
        const bool on = q < count && (free ? !masked || below(3) != 0 : below(5) != 0);
        const std::size_t e = packet.element(steps, t, lane, 0, 1);
        const int value = on ? below(9) - 4 : 0;
        put(base + e * value_bytes, static_cast<Value>(static_cast<float>(value)));
        if (!free) put_index(base, packet, s, e, on);
        if (!on) continue;
        mask |= 1u << t;
        const std::int64_t column = free ? s.row + q + offset[static_cast<std::size_t>(t)] : last_column_;
        rows[static_cast<std::size_t>(s.row + place[static_cast<std::size_t>(q)])].push_back({column, value});
      }
      if (masked) put(base + packet.high(s) + 4 * static_cast<std::size_t>(lane), mask);
    }
    for (int q = 0; s.has_ids() && q < count; ++q) {
      put(base + packet.row_ids(s) + 2 * static_cast<std::size_t>(q),
          static_cast<std::uint16_t>(place[static_cast<std::size_t>(q)]));
    }
    slices.push_back(s);
  }

  /// An index below all ones, or padding.
  void put_index(std::size_t base, const PackedPacket& packet, const PackedSlice& s, std::size_t e, bool on) {
    const int width = s.index();
    const std::uint32_t drawn = static_cast<std::uint32_t>(below(width == PackedIndex8    ? 255
                                                                 : width == PackedIndex16 ? 65535
                                                                                          : 900000));
    const std::uint32_t i = on ? drawn : ~0u;
    last_column_ = std::int64_t{s.column} + drawn;
    const std::size_t at = base + packet.indices(s);
    if (width == PackedIndex8) put(at + e, static_cast<std::uint8_t>(i));
    if (width == PackedIndex16 || width == PackedIndex24) put(at + 2 * e, static_cast<std::uint16_t>(i));
    if (width == PackedIndex24) put(base + packet.high(s) + e, static_cast<std::uint8_t>(i >> 16));
    if (width == PackedIndex32) put(at + 4 * e, i);
  }

  std::int64_t last_column_ = 0;
};

}  // namespace Testing
}  // namespace Tessera

#endif
