// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_LAUNCH_GESPMM_LAUNCH_HPP
#define TESSERA_LAUNCH_GESPMM_LAUNCH_HPP

#include "backends/kernels/spmm/Tessera_GeSpmmDispatch.hpp"
#include "backends/kernels/spmm/Tessera_SpreadRowsKernel.hpp"
#include "backends/launch/Tessera_CompactLaunch.hpp"
#include "backends/launch/Tessera_Launch.hpp"
#include "backends/launch/Tessera_PartialsLaunch.hpp"
#include "backends/launch/Tessera_SpmmLaunchers.hpp"

/// \file
/// Launchers of SpMM from compressed rows: four waves per thread block; column tiles follow each other, so that a tile
/// of B stays in the caches.

namespace Tessera {
namespace Launch {

/// NVIDIA: 64 registers for a compact B and for eight rows of B under way, also of several teams (80 in FP64 where B
/// lies in columns), 48 where two words are 16 sums, else 40.
template <class Kernel>
constexpr int gespmm_thread_blocks = Kernel::B::in_columns && sizeof(typename Kernel::Value) == 8                ? 6
                                     : sizeof(typename Kernel::B::RowWord) > 16 || Kernel::deep || Kernel::split ? 8
                                     : Kernel::words* Kernel::width == 16                                        ? 10
                                                                                                                 : 12;

template <class Device, class Kernel>
struct GeSpmmBody {
  using Wave = typename Device::Wave;
  static constexpr int waves = 4, threads = waves * Wave::lanes,
                       bound = for_family<Device>(gespmm_thread_blocks<Kernel>, 0);
  static constexpr int shared = 0;
  static constexpr bool overlapping = true;

  template <class ThreadBlock>
  TESSERA_FUNCTION static void run(const ThreadBlock& thread_block, const GeSpmmArgs& args, int items, int tile_columns,
                                   GeSpmmAhead ahead) {
    thread_block.template wait_for_previous_launch<false>();
    const std::int64_t first = std::int64_t{thread_block.index()} * waves;
    thread_block.each_wave([&](unsigned in_thread_block) {
      const std::int64_t wave_index = first + in_thread_block;
      const Wave wave;
      const std::int32_t column = static_cast<std::int32_t>(thread_block.tile()) * tile_columns;
      if constexpr (Kernel::B::in_columns) {
        // What a wave has read of A is near when it reads it for the next group of columns.
        for (std::int32_t c = column; c < column + tile_columns && c < args.dense.columns; c += Kernel::width) {
          Kernel::run(wave, args, wave_index * items, c);
        }
      } else {
        Kernel::run(wave, args, wave_index * items, column, ahead);
      }
    });
  }
};

/// What a wave may ask for ahead of the device's next round. AMD's waves cannot ask; an emulation asks for anything.
template <class Device, class Kernel, class Body>
GeSpmmAhead gespmm_ahead(const GeSpmmArgs& args, std::int64_t per_thread_block) {
  GeSpmmAhead ahead;
  if (Device::emulated) return {3, 5};
  const std::int64_t at_once = Device::multiprocessors() * Body::bound * per_thread_block;
  if (Device::family == Family::Nvidia && rows_ask_ahead<Kernel>(args) && at_once < args.count && gespmm_narrow(args)) {
    ahead.items = static_cast<std::int32_t>(at_once);
    ahead.entries = static_cast<std::int32_t>(args.nnz * at_once / args.count);
  }
  return ahead;
}

template <class Device, class Kernel>
struct SpreadRowsBody {
  using Wave = typename Device::Wave;
  static constexpr int threads = 256, waves = threads / Wave::lanes;
  // Two: 128 registers. With 64 and 80, four columns of FP64, eight entries at once, are spilled. Five: 48.
  static constexpr bool wide = Kernel::B::in_columns && sizeof(typename Kernel::Value) == 8;
  static constexpr int bound = for_family<Device>(wide ? 2 : Kernel::single ? 5 : 4, 0);
  static constexpr int shared = Kernel::shared_bytes(threads);
  static constexpr bool overlapping = true;

  template <class ThreadBlock>
  TESSERA_FUNCTION static void run(const ThreadBlock& thread_block, const GeSpmmArgs& args, const SpreadLevels& levels,
                                   int tile_columns) {
    thread_block.template wait_for_previous_launch<false>();
    auto* const met = reinterpret_cast<typename Kernel::Sums*>(thread_block.memory());
    const int teams = Wave::lanes >> args.shift;
    const auto first = static_cast<std::int32_t>(thread_block.index()) * waves * teams;
    const auto column = static_cast<std::int32_t>(thread_block.tile()) * tile_columns;
    thread_block.each_wave([&](unsigned in_thread_block) {
      const auto w = static_cast<int>(in_thread_block);
      Kernel::add(Wave{}, args, levels, first + w * teams, column, met + w * Wave::lanes);
    });
    if (!Kernel::meets(args, levels, first)) return;
    thread_block.synchronize();
    thread_block.each_wave([&](unsigned in_thread_block) {
      const auto w = static_cast<int>(in_thread_block);
      Kernel::finish(Wave{}, args, levels, first + w * teams, column, met + w * Wave::lanes, thread_block.tile(),
                     thread_block.tiles());
    });
  }
};

/// Teams have tiles of 128 bytes, or of 8 or 32 narrower words, or of two groups of columns. They take eight entries at
/// least where that fills less than a third of the device, and more where they would fill it twice.
template <class Device, class Types, int Words = 1, bool InTurns = false>
typename Device::Error launch_spread(GeSpmmArgs args, Stream stream) {
  using Kernel = SpreadRowsKernel<Types, typename Device::Wave, Words, InTurns>;
  using Body = SpreadRowsBody<Device, Kernel>;
  const std::int64_t lanes = Device::emulated ? 1024 : Device::multiprocessors() * std::int64_t{2048};
  constexpr int widest = Types::B::in_columns ? 1 : SpmmSpread::log2_team;
  args.shift = 0;
  while (args.shift < widest && (Words * Kernel::width << args.shift) < args.dense.columns) ++args.shift;
  const int tile = Words * Kernel::width << args.shift, teams = Body::threads >> args.shift;
  const std::int64_t tiles = ceil_div(args.dense.columns, tile);
  int most = 0;
  while (most + 1 < SpreadLevels::count && (2 << most) <= teams) ++most;
  const int several_waves = Kernel::log2_lanes - args.shift + 1;  // whose sums meet where pieces are added
  SpreadLevels levels;
  for (int log2_entries = 3; log2_entries <= 6; ++log2_entries) {
    levels = spread_levels(*args.spread, log2_entries, several_waves, most);
    const std::int64_t wanted = (levels.teams * tiles) << args.shift;
    if (log2_entries == 3 ? 3 * wanted <= lanes : wanted <= 2 * lanes) break;
  }
  args.spread = nullptr;  // of the host
  if (tiles > args.arrival_tiles) args.arrivals = nullptr;
  const auto error = launch<Device, Body>({ceil_div(levels.teams, teams), tiles}, stream, args, levels, tile);
  if (error != Device::success || args.arrivals != nullptr) return error;
  return add_partials<Device, typename Types::Value, typename Types::Sum>(spmm_partial_rows(args), stream);
}

template <class Device, class Types>
typename Device::Error launch_gespmm(const GeSpmmArgs& args, Stream stream) {
  if (args.spread != nullptr) {
    constexpr std::int64_t word = Types::B::columns;
    const std::int64_t columns = args.dense.columns;
    if constexpr (!Types::B::whole) {
      if (columns <= 2 * word) return launch_spread<Device, Types, 1, true>(args, stream);
      const bool more = columns > word << SpmmSpread::log2_team;
      if (more && SpmmSpread::tiles(columns, 4 * word) <= most_tiles)
        return launch_spread<Device, Types, 4>(args, stream);
      if (!more) return launch_spread<Device, Types>(args, stream);
    } else if (SpmmSpread::tiles(columns, word) <= most_tiles) {
      return launch_spread<Device, Types>(args, stream);
    }
  }
  // An emulation has few lanes, so that small matrices fill it, and 64-bit entry numbers for some numbers of columns.
  const std::int64_t lanes = Device::emulated ? 256 : Device::multiprocessors() * std::int64_t{2048};
  const bool narrow = Device::emulated ? args.dense.columns % 4 != 3 : gespmm_narrow(args);
  typename Device::Error error = Device::success;
  constexpr bool every = Device::template every_walk<typename Types::Value>;
  gespmm_dispatch<Types, typename Device::Wave, every>(args, lanes, narrow, [&](auto kernel, const GeSpmmArgs& ready) {
    using Kernel = decltype(kernel);
    using Body = GeSpmmBody<Device, Kernel>;
    const std::int64_t items = Kernel::items(ready), tile = Kernel::tile_columns(ready);
    const std::int64_t per_thread_block = Body::waves * items;
    const GeSpmmAhead ahead = gespmm_ahead<Device, Kernel, Body>(ready, per_thread_block);
    const Grid grid{ceil_div(ready.count, per_thread_block), ceil_div(ready.dense.columns, tile)};
    error = launch<Device, Body>(grid, stream, ready, static_cast<int>(items), static_cast<int>(tile), ahead);
  });
  if (error != Device::success) return error;
  return add_partials<Device, typename Types::Value, typename Types::Sum>(spmm_partial_rows(args), stream);
}

template <class Device>
typename Device::Error launch_tf32_rows(GeSpmmArgs args, Stream stream) {
  if (args.compact == nullptr) return launch_gespmm<Device, GeSpmmTypes<float, float>>(args, stream);
  CompactCopy copy;
  copy.from = static_cast<const float*>(args.dense.b);
  copy.ld = args.dense.ldb;
  copy.rows = args.cols;
  copy.columns = args.dense.columns;
  copy.whole_words = args.word_bytes == 16;
  copy.to = args.compact;
  const auto error = launch_compact<Device>(copy, stream);
  if (error != Device::success) return error;
  args.dense = CompactB::dense(args.dense, args.cols, args.compact);
  return launch_gespmm<Device, GeSpmmTypes<float, float, RowsOfCompactB>>(args, stream);
}

template <class Device>
Status spmm_gespmm(const GeSpmmArgs& args, Stream stream) noexcept {
  const Status status = gespmm_check(args);
  if (!status.ok() || args.count == 0 || args.dense.columns == 0) return status;
  const bool words = args.word_bytes != 16 && args.compact == nullptr;
  if (words || args.in_columns) return spmm_gespmm_words<Device>(args, stream);
  if (rows_take_turns(args)) {
    GeSpmmArgs narrow = args;
    narrow.word_bytes = 8;
    return spmm_gespmm_words<Device>(narrow, stream);
  }
  const auto answer = [](typename Device::Error error) { return Device::status(error, "Tessera::spmm[gespmm]"); };
  switch (args.precision) {
    case Precision::FP64:
      return answer(launch_gespmm<Device, GeSpmmTypes<double, double>>(args, stream));
    case Precision::FP32:
      return answer(launch_gespmm<Device, GeSpmmTypes<float, float>>(args, stream));
    case Precision::FP16:
      return answer(launch_gespmm<Device, GeSpmmTypes<half_t, float>>(args, stream));
    case Precision::BF16:
      return answer(launch_gespmm<Device, GeSpmmTypes<bhalf_t, float>>(args, stream));
    case Precision::TF32:
      return answer(launch_tf32_rows<Device>(args, stream));
  }
  return {"spmm[gespmm]: unknown precision"};
}

}  // namespace Launch
}  // namespace Tessera

#endif
