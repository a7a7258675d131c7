// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_HOST_HOST_PACKED_VECTORS_HPP
#define TESSERA_HOST_HOST_PACKED_VECTORS_HPP

#include <cstdint>

#include "backends/host/Tessera_HostPackedKernel.hpp"

/// \file
/// Packed slices on a host thread for everything but the common case: several vectors, x of any stride, hub columns.

namespace Tessera {
namespace Impl {

/// Decodes a step of a slice, then runs over the vectors. Bytes: those of the packets once for all vectors.
template <class Types, class Y, int Lanes>
class PackedHostVectors {
 public:
  using Value = typename Types::Value;
  using Sum = typename Types::Sum;
  using Values = PackedHostValues<Types>;
  using Stored = typename Values::Stored;

  explicit PackedHostVectors(const SpmvPackedArgs& args)
      : p_(args),
        x_(static_cast<const Value*>(args.x)),
        alpha_(static_cast<Sum>(args.alpha)),
        beta_(static_cast<Sum>(args.beta)),
        values_{static_cast<const Value*>(args.dictionary)} {}

  void run(std::uint32_t begin, std::uint32_t end) const {
    for (std::uint32_t i = begin; i < end; ++i) slice(p_.slices[i]);
  }

 private:
  static constexpr int value_bytes = Types::value_bytes, most = packed_max_columns;

  void slice(const PackedSlice& s) const {
    if (s.index() == PackedEmpty) return host_packed_empty<Y>(p_, s, alpha_, beta_, p_.columns);
    const PackedPacket packet(Lanes, value_bytes);
    const unsigned char* const base = p_.packets + static_cast<std::size_t>(s.packet) * packed_unit;
    const auto* const v = reinterpret_cast<const Stored*>(base);
    const int steps = s.steps(), group = s.group(), columns = p_.columns;
    // The same order of additions as in PackedHostKernel, so that strides and the number of vectors change no bit: in
    // whole chunks a sum for each place of a vector register, the last steps by pairs.
    constexpr int width = 16 / static_cast<int>(sizeof(Sum));
    Sum apart[3][Lanes][width][most], sum[3][Lanes][most];
    for (int r = 0; r < group; ++r) {
      for (int l = 0; l < Lanes; ++l) {
        for (int w = 0; w < width; ++w) {
          for (int j = 0; j < columns; ++j) apart[r][l][w][j] = Sum(0);
        }
      }
    }
    const auto fold = [&](int r, int l, int j, int size) {
      Sum(&p)[width][most] = apart[r][l];
      if (size <= 2 || width == 2) return p[0][j] + p[1][j];
      return (p[0][j] + p[1][j]) + (p[2 % width][j] + p[3 % width][j]);
    };
    bool folded = false;
    for (int first = 0; first < steps;) {
      int begin, size;
      packet.find_chunk(steps, first, begin, size);
      const bool whole = size == packet.chunk;
      if (!whole && !folded) {
        each(group, columns, [&](int r, int l, int j) { sum[r][l][j] = fold(r, l, j, width); });
        folded = true;
      }
      if (!whole) {
        each(group, columns, [&](int r, int l, int j) {
          for (int w = 0; w < width; ++w) apart[r][l][w][j] = Sum(0);
        });
      }
      for (int n = 0; n < size; ++n) {
        std::int64_t place[Lanes];
        places(s, packet, base, first + n, place);
        for (int l = 0; l < Lanes; ++l) {
          if (place[l] < 0) continue;  // padding reads no x
          const Value* const x = x_ + place[l] * p_.x_stride;
          const int k = first * group * Lanes + l * size + n;
          for (int r = 0; r < group; ++r) {
            const Sum a = values_.one(v, k + r * size * Lanes);
            for (int j = 0; j < columns; ++j) {
              apart[r][l][n % width][j] += a * host_number<Sum>(x[j * p_.x_column_stride]);
            }
          }
        }
      }
      if (!whole) each(group, columns, [&](int r, int l, int j) { sum[r][l][j] += fold(r, l, j, size); });
      first += size;
    }
    if (!folded) each(group, columns, [&](int r, int l, int j) { sum[r][l][j] = fold(r, l, j, width); });
    write(s, base, packet, sum);
  }

  /// Adds up the lanes of each row, then writes its part's sums or its results.
  void write(const PackedSlice& s, const unsigned char* base, const PackedPacket& packet,
             Sum (&sum)[3][Lanes][most]) const {
    const int log = s.log_lanes(), group = s.group(), columns = p_.columns;
    const auto* const ids = reinterpret_cast<const std::uint16_t*>(base + packet.row_ids(s));
    for (int r = 0; r < group; ++r) {
      for (int t = 0, n = Lanes / 2; t < log; ++t, n /= 2) {
        for (int l = 0; l < n; ++l) {
          for (int j = 0; j < columns; ++j) sum[r][l][j] = sum[r][2 * l][j] + sum[r][2 * l + 1][j];
        }
      }
      if (s.part()) {
        Sum* const partials = static_cast<Sum*>(p_.partials) + static_cast<std::size_t>(s.row) * columns;
        for (int j = 0; j < columns; ++j) partials[j] = sum[0][0][j];
        return;
      }
      for (int q = 0; q < s.units(); ++q) {
        const std::int64_t row = std::int64_t{s.row} + r + (s.has_ids() ? ids[q] : q * group);
        for (int j = 0; j < columns; ++j) {
          Y* const y = static_cast<Y*>(p_.y) + row * p_.y_stride + j * p_.y_column_stride;
          store_scaled(y, alpha_, sum[r][q][j], beta_);
        }
      }
    }
  }

  template <class F>
  static void each(int group, int columns, F&& f) {
    for (int r = 0; r < group; ++r) {
      for (int l = 0; l < Lanes; ++l) {
        for (int j = 0; j < columns; ++j) f(r, l, j);
      }
    }
  }

  /// Columns of a step, -1 for padding.
  void places(const PackedSlice& s, const PackedPacket& packet, const unsigned char* base, int step,
              std::int64_t (&place)[Lanes]) const {
    const unsigned char *const low = base + packet.indices(s), *const high = base + packet.high(s);
    switch (s.index()) {
      case PackedIndex8:
        return indexed<PackedIndex8>(s, packet, low, high, step, place);
      case PackedIndex16:
        return indexed<PackedIndex16>(s, packet, low, high, step, place);
      case PackedIndex24:
        return indexed<PackedIndex24>(s, packet, low, high, step, place);
      case PackedIndex32:
        return indexed<PackedIndex32>(s, packet, low, high, step, place);
      default:
        break;
    }
    const std::uint32_t bits = reinterpret_cast<const std::uint32_t*>(low)[step] ^ 0x80000000u;
    const auto offset = static_cast<std::int32_t>(bits);
    for (int l = 0; l < Lanes; ++l) {
      bool on = l < s.units();
      if (s.masked()) on = on && (reinterpret_cast<const std::uint32_t*>(high)[l] >> step & 1u) != 0;
      place[l] = on ? std::int64_t{s.row} + l + offset : -1;
    }
  }
  template <int Index>
  void indexed(const PackedSlice& s, const PackedPacket& packet, const unsigned char* low, const unsigned char* high,
               int step, std::int64_t (&place)[Lanes]) const {
    using Indices = PackedHostIndices<Index>;
    const Indices index{reinterpret_cast<const typename Indices::Low*>(low), high};
    int first, size;
    packet.find_chunk(s.steps(), step, first, size);
    for (int l = 0; l < Lanes; ++l) {
      const std::uint32_t i = index.get(first * Lanes + l * size + (step - first));
      if (i == Indices::padding) {
        place[l] = -1;
      } else if (p_.hubs == 0) {
        place[l] = std::int64_t{s.column} + i;
      } else {
        place[l] = i < p_.hubs ? std::int64_t{p_.hub_columns[i]} : std::int64_t{i} - p_.hubs;
      }
    }
  }

  const SpmvPackedArgs& p_;
  const Value* x_;
  Sum alpha_, beta_;
  Values values_;
};

}  // namespace Impl
}  // namespace Tessera

#endif
