// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FORMATS_PACKED_PACKED_UPDATE_HPP
#define TESSERA_FORMATS_PACKED_PACKED_UPDATE_HPP

#include <cstdint>

#include "formats/packed/Tessera_ToPacked.hpp"

/// \file
/// New numbers for packed slices, and what happens when they leave the class of the old ones.

namespace Tessera {
namespace Impl {

/// Copies everything but the values from packets of one class to those of another; one thread per lane of a slice.
template <class Csr>
struct PackedMoveFunctor : PackedTypesOf<Csr> {
  template <class T>
  using View = typename PackedTypesOf<Csr>::template View<T>;
  View<PackedSlice> old_slices, slices;
  const unsigned char* old_packets;
  unsigned char* packets;
  int lanes, old_bytes, bytes;

  template <class T>
  KOKKOS_INLINE_FUNCTION static void copy(const unsigned char* from, std::size_t i, unsigned char* to, std::size_t j) {
    reinterpret_cast<T*>(to)[j] = reinterpret_cast<const T*>(from)[i];
  }
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
    const PackedSlice s = slices(i / lanes), before = old_slices(i / lanes);
    const int lane = static_cast<int>(i % lanes);
    const PackedPacket a(lanes, old_bytes), b(lanes, bytes);
    const unsigned char* const from = old_packets + static_cast<std::size_t>(before.packet) * packed_unit;
    unsigned char* const to = packets + static_cast<std::size_t>(s.packet) * packed_unit;
    const unsigned char *const low = from + a.indices(s), *const high = from + a.high(s);
    unsigned char *const new_low = to + b.indices(s), *const new_high = to + b.high(s);
    const int ids = s.has_ids() ? s.rows() : 0;
    for (int q = lane; q < ids; q += lanes) {
      copy<std::uint16_t>(from + a.row_ids(s), static_cast<std::size_t>(q), to + b.row_ids(s),
                          static_cast<std::size_t>(q));
    }
    if (s.index() == PackedIndexFree) {
      for (int step = lane; step < s.steps(); step += lanes) {
        copy<std::uint32_t>(low, static_cast<std::size_t>(step), new_low, static_cast<std::size_t>(step));
      }
      if (s.masked()) {
        copy<std::uint32_t>(high, static_cast<std::size_t>(lane), new_high, static_cast<std::size_t>(lane));
      }
      return;
    }
    for (int step = 0; step < s.steps(); ++step) {
      const std::size_t at = a.element(s.steps(), step, lane, 0, 1), there = b.element(s.steps(), step, lane, 0, 1);
      switch (s.index()) {
        case PackedIndex8:
          copy<std::uint8_t>(low, at, new_low, there);
          break;
        case PackedIndex16:
          copy<std::uint16_t>(low, at, new_low, there);
          break;
        case PackedIndex24:
          copy<std::uint16_t>(low, at, new_low, there);
          copy<std::uint8_t>(high, at, new_high, there);
          break;
        default:
          copy<std::uint32_t>(low, at, new_low, there);
      }
    }
  }
};

/// New packets for values in full; indices, row ids and masks move along. Two waits. An exception leaves p as it was.
template <class Pattern, class Exec>
void packed_widen(const Exec& space, Experimental::PackedSlices<typename Pattern::memory_space>& p,
                  const KernelTable* backend) {
  using Memory = typename Pattern::memory_space;
  const auto slices = static_cast<std::int64_t>(p.slices.extent(0));
  typename Arena<Memory>::template View<PackedSizes> total;
  PackedMoveFunctor<Pattern> move;
  const auto scratch =
      Arena<Memory>::make(space, backend, "Tessera::packed::scratch", Lifetime::Temporary, [&](Arena<Memory>& arena) {
        total = arena.template take<PackedSizes>(1);
        move.old_slices = arena.template take<PackedSlice>(p.slices.extent(0));
      });
  Kokkos::deep_copy(space, move.old_slices, p.slices);
  move.old_bytes = p.value_bytes();
  move.old_packets = reinterpret_cast<const unsigned char*>(p.packets.data());
  const Experimental::PackedSlices<Memory> before = p;
  p.storage = PackedStorage::Full;
  try {
    place_packets<Pattern>(space, p, total, backend);
  } catch (...) {  // there is no room for them
    p = before;
    Kokkos::deep_copy(space, p.slices, move.old_slices);
    Compat::fence(space, "Tessera::update[packed] the old slices are back");
    throw;
  }
  move.slices = p.slices;
  move.packets = reinterpret_cast<unsigned char*>(p.packets.data());
  move.lanes = p.lanes;
  move.bytes = p.value_bytes();
  Kokkos::parallel_for("Tessera::update[packed] wider packets", Kokkos::RangePolicy<Exec>(space, 0, slices * p.lanes),
                       move);
  Compat::fence(space, "Tessera::update[packed] the old packets are released");
}

}  // namespace Impl

namespace Experimental {

/// New numbers for the same pattern. Stored in full: one kernel, no wait. In a value class: the numbers are looked at
/// first, which waits once; numbers that leave the class are from then on stored in full, in new packets.
/// @throw OutOfMemory, DeviceError  no room for these; p is as it was
template <class Csr, class Exec>
void packed_update(const Exec& space, PackedSlices<typename Csr::memory_space>& p,
                   const typename Csr::values_type& values, const KernelTable* backend = nullptr) {
  if (p.storage != PackedStorage::Full && values.extent(0) > 0) {
    using Arena = Impl::Arena<typename Csr::memory_space>;
    using Natural = typename Csr::value_type;
    typename Arena::template View<Impl::PackedClassFound> found;
    const auto scratch = Arena::make(space, backend, "Tessera::packed::scratch", Impl::Lifetime::Temporary,
                                     [&](Arena& arena) { found = arena.template take<Impl::PackedClassFound>(1); });
    using Bytes = typename Arena::template View<char>;
    Kokkos::deep_copy(space, Bytes(static_cast<char*>(scratch.get()), sizeof(Impl::PackedClassFound)), char(0));
    Impl::packed_classify(space, Impl::ValuesOf<Csr>(values), found);
    Impl::PackedClassFound host{};
    Impl::fetch(space, backend, "Tessera::update_values: value class", host, found);
    const bool fits = host.misfit[0] == 0 && host.misfit[static_cast<int>(p.storage)] == 0;
    if (!fits) {
      Impl::packed_widen<Impl::PatternOf<Csr>>(space, p, backend);
    } else if (p.storage == PackedStorage::Constant || p.storage == PackedStorage::Dictionary) {
      Impl::upload_dictionary(space, p, Impl::dictionary_of(host), sizeof(Natural));
    }
  }
  const Impl::PackedRowMap<typename Csr::memory_space> map{p.row_map, p.blocks > 1 ? p.rows : 1};
  Impl::packed_fill(space, p, Impl::ValuesOf<Csr>(values), map, Impl::PackedGate{});
}

}  // namespace Experimental
}  // namespace Tessera

#endif
