// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_HOST_HOST_PACKED_PACKET_HPP
#define TESSERA_HOST_HOST_PACKED_PACKET_HPP

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "backends/host/Tessera_HostNumbers.hpp"
#include "backends/interface/Tessera_PackedLayout.hpp"

/// \file
/// How a host thread reads a packet's numbers and indices.

namespace Tessera {
namespace Impl {

/// The whole numbers that one byte holds: loading one costs less than converting it.
template <class Sum>
struct HostIntegers {
  Sum of[256];
  constexpr HostIntegers() : of() {
    for (int i = 0; i < 256; ++i) of[i] = static_cast<Sum>(i < 128 ? i : i - 256);
  }
};
template <class Sum>
inline constexpr HostIntegers<Sum> host_integers{};

/// Numbers of a narrow type that are multiplied with vectors of a wider one, in which sums are, too.
template <class Narrow, class Wide>
struct PackedMixedTypes {
  using Value = Wide;
  using Sum = Wide;
  using Stored = Narrow;
  static constexpr PackedStorage storage = PackedStorage::Full;
  static constexpr int value_bytes = static_cast<int>(sizeof(Narrow));
};

/// How a packet's numbers are read.
template <class Types>
struct PackedHostValues {
  using Value = typename Types::Value;
  using Sum = typename Types::Sum;
  using Stored = std::conditional_t<Types::value_bytes == 0, std::uint8_t, typename Types::Stored>;
  using Vector = HostVector<Sum>;
  const Value* dictionary;

  TESSERA_HOST_INLINE Sum one(const Stored* v, int k) const {
    if constexpr (Types::storage == PackedStorage::Constant) {
      return host_number<Sum>(dictionary[0]);
    } else if constexpr (Types::storage == PackedStorage::Dictionary) {
      return host_number<Sum>(dictionary[v[k]]);
    } else if constexpr (Types::storage == PackedStorage::Integer) {
      return host_integers<Sum>.of[static_cast<std::uint8_t>(v[k])];
    } else {
      return host_number<Sum>(v[k]);
    }
  }
  TESSERA_HOST_INLINE Vector vector(const Stored* v, int k) const {
    if constexpr (std::is_same_v<Stored, Sum> || sizeof(Value) == 2 || Types::storage == PackedStorage::Full) {
      return Vector::load(v + k);
    } else {
      return Vector::make([&](int i) TESSERA_HOST_LAMBDA { return one(v, k + i); });
    }
  }
};

/// Unsigned numbers of 1 or 2 bytes, of which eight bytes are loaded at once where places are known: loads are what
/// gathers wait for.
template <int Bytes>
struct HostEightBytes {
  static_assert(Bytes == 1 || Bytes == 2, "bytes of a number");
  const unsigned char* p;

  TESSERA_HOST_INLINE std::uint32_t get(int k) const {
#if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    constexpr int count = 8 / Bytes;
    std::uint64_t eight;
    std::memcpy(&eight, p + k / count * 8, 8);
    return static_cast<std::uint32_t>(eight >> (k % count * 8 * Bytes) & ((1u << 8 * Bytes) - 1));
#else
    std::conditional_t<Bytes == 1, std::uint8_t, std::uint16_t> number;
    std::memcpy(&number, p + k * Bytes, Bytes);
    return number;
#endif
  }
};

/// Rows without entries. @param columns  vectors that y has
template <class Y, class Sum>
void host_packed_empty(const SpmvPackedArgs& args, const PackedSlice& s, Sum alpha, Sum beta, int columns) {
  const auto* const ids =
      reinterpret_cast<const std::uint16_t*>(args.packets + static_cast<std::size_t>(s.packet) * packed_unit);
  const int rows = s.rows();
  for (int q = 0; q < rows; ++q) {
    Y* const y = static_cast<Y*>(args.y) + (std::int64_t{s.row} + (s.has_ids() ? ids[q] : q)) * args.y_stride;
    for (int j = 0; j < columns; ++j) store_scaled(y + j * args.y_column_stride, alpha, Sum(0), beta);
  }
}

template <int Index>
struct PackedHostIndices {
  using Low = std::conditional_t<
      Index == PackedIndex8, std::uint8_t,
      std::conditional_t<Index == PackedIndex16 || Index == PackedIndex24, std::uint16_t, std::uint32_t>>;
  static constexpr int bytes = Index + 1;
  static constexpr std::uint32_t padding = Index == PackedIndex32 ? ~0u : (1u << (8 * bytes)) - 1;
  const Low* low;
  const std::uint8_t* high;

  TESSERA_HOST_INLINE std::uint32_t get(int k) const {
    if constexpr (Index == PackedIndex24) return low[k] | static_cast<std::uint32_t>(high[k]) << 16;
    return low[k];
  }
  /// The same for a place that is known when this is compiled. (Eight bytes of two planes for a number of 24 bits cost
  /// more than two loads.)
  template <bool AtOnce>
  TESSERA_HOST_INLINE std::uint32_t known(int k) const {
    if constexpr (AtOnce && (Index == PackedIndex8 || Index == PackedIndex16)) {
      return HostEightBytes<bytes>{reinterpret_cast<const std::uint8_t*>(low)}.get(k);
    } else {
      return get(k);
    }
  }
  TESSERA_HOST_INLINE void skip(int n) { low += n, high += n; }
};

}  // namespace Impl
}  // namespace Tessera

#endif
