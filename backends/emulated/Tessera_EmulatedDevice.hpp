// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_EMULATED_EMULATED_DEVICE_HPP
#define TESSERA_EMULATED_EMULATED_DEVICE_HPP

#include <cstring>
#include <vector>

#include "backends/interface/Tessera_KernelTable.hpp"
#include "backends/launch/Tessera_Launch.hpp"
#include "backends/units/Tessera_Atom.hpp"
#include "backends/units/Tessera_AtomsAmd.hpp"
#include "backends/units/Tessera_AtomsNvidia.hpp"
#include "backends/units/Tessera_Wave.hpp"

/// \file
/// The host as launchers see it (Tessera_Launch.hpp): the same text as on devices, with emulated lanes and an emulated
/// matrix instruction. For validation; one thread, waves one after another.

namespace Tessera {

/// A thread block whose threads take turns.
template <class Wave, int Threads>
class EmulatedThreadBlock {
 public:
  EmulatedThreadBlock(const Launch::Grid& grid, unsigned index, unsigned tile, char* memory)
      : grid_(grid), index_(index), tile_(tile), memory_(memory) {}

  unsigned index() const { return index_; }
  unsigned thread_blocks() const { return static_cast<unsigned>(grid_.thread_blocks); }
  unsigned tile() const { return tile_; }
  unsigned tiles() const { return static_cast<unsigned>(grid_.tiles); }
  char* memory() const { return memory_; }

  template <class F>
  void each_wave(F&& f) const {
    for (unsigned wave = 0; wave < Threads / Wave::lanes; ++wave) f(wave);
  }
  template <class Body, class... Args>
  void each_wave_of(const Args&... args) const {
    each_wave([&](unsigned in_thread_block) { Body::wave(*this, in_thread_block, args...); });
  }
  template <class F>
  void each_thread(F&& f) const {
    for (unsigned thread = 0; thread < Threads; ++thread) f(thread);
  }
  void synchronize() const {}
  template <int Waves>
  static constexpr int held = Waves;
  static constexpr unsigned held_at(unsigned wave) { return wave; }
  template <bool EarlyNext>
  void wait_for_previous_launch() const {}
  void start_next_launch() const {}

 private:
  const Launch::Grid& grid_;
  unsigned index_, tile_;
  char* memory_;
};

/// The atom that is emulated for another.
template <class Atom>
struct EmulatedAtom {
  using type = Atom;
};
#ifdef TESSERA_EMULATED_FEWER_TYPES
// Where no test multiplies in BF16 (backends/CMakeLists.txt): its kernels are those of FP16, which are compiled once.
template <>
struct EmulatedAtom<Sm80_M16N8K8_F32_BF16> {
  using type = Sm80_M16N8K8_F32_F16;
};
template <>
struct EmulatedAtom<Sm80_M16N8K16_F32_BF16> {
  using type = Sm80_M16N8K16_F32_F16;
};
template <>
struct EmulatedAtom<Gfx90a_M16N16K16_F32_BF16> {
  using type = Gfx90a_M16N16K16_F32_F16;
};
#endif

#ifdef TESSERA_EMULATED_FEWER_TYPES
constexpr bool emulate_less = true;
#else
constexpr bool emulate_less = false;
#endif

template <Family Family_>
struct EmulatedDevice {
  static constexpr Family family = Family_;
  static constexpr bool nvidia = family == Family::Nvidia;

  using Wave = HostWave<nvidia ? 32 : 64>;
  template <class Atom>
  using Unit = Emulated<typename EmulatedAtom<Atom>::type>;
  using Error = const char*;

  static constexpr const char* name = nvidia ? "emulated-nvidia" : "emulated-amd";
  static constexpr bool emulated = true, tables = nvidia;
  /// BF16 differs from FP16 in the product alone, and FP32 hardly in what widths matter to; all of them in every width
  /// take more than twice as long to compile.
  template <class Atom>
  static constexpr bool every_width = std::is_same_v<typename Atom::Operand, half_t>;
  static constexpr bool middle_widths = !emulate_less;  // those the build beside has
  /// FP16 has every length, FP32 and FP64 on one vendor's waves besides, but with sanitizers.
  template <class Value>
  static constexpr bool every_length = std::is_same_v<Value, half_t> || (sizeof(Value) > 2 && nvidia && !emulate_less);
  template <class>
  static constexpr bool every_variant = true;  ///< of those that emulation has
  static constexpr Error success = nullptr, too_large = "emulation: the grid has too many thread blocks";

  static constexpr std::int64_t most_thread_blocks(int) { return (std::int64_t{1} << 31) - 1; }
  static constexpr int multiprocessors() { return 7; }  // so that work is divided, unevenly
  static constexpr std::size_t shared_bytes() { return 227 << 10; }
  static Status status(Error error, const char*) noexcept { return {error}; }
  static RuntimeCalls runtime() noexcept;

  template <class Body, class... Args>
  static Error launch(const Launch::Grid& grid, Stream, const Args&... args) {
    std::vector<Word> memory((Body::shared + grid.table_bytes + sizeof(Word) - 1) / sizeof(Word));
    char* const bytes = reinterpret_cast<char*>(memory.data());
    for (unsigned tile = 0; tile < grid.tiles; ++tile) {
      for (unsigned index = 0; index < grid.thread_blocks; ++index) {
        // What a kernel reads without having written it must not look like something.
        if (!memory.empty()) std::memset(bytes, 0xff, memory.size() * sizeof(Word));
        Body::run(EmulatedThreadBlock<Wave, Body::threads>(grid, index, tile, bytes), args...);
      }
    }
    return success;
  }
};

using EmulatedNvidia = EmulatedDevice<Family::Nvidia>;
using EmulatedAmd = EmulatedDevice<Family::Amd>;

/// X(device) per device that a build emulates: its kernels.
#ifdef TESSERA_EMULATED_FEWER_TYPES
#define TESSERA_EACH_EMULATED(X) X(EmulatedNvidia)
#else
#define TESSERA_EACH_EMULATED(X) X(EmulatedNvidia) X(EmulatedAmd)
#endif

}  // namespace Tessera

#endif
