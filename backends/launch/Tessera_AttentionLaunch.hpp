// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_LAUNCH_ATTENTION_LAUNCH_HPP
#define TESSERA_LAUNCH_ATTENTION_LAUNCH_HPP

#include <algorithm>

#include "backends/kernels/attention/Tessera_AttentionKernel.hpp"
#include "backends/kernels/attention/Tessera_AttentionMerge.hpp"
#include "backends/launch/Tessera_AttentionMergeLaunch.hpp"
#include "backends/launch/Tessera_AttentionShapes.hpp"
#include "backends/launch/Tessera_Launch.hpp"

/// \file
/// Launchers of attention on matrix units: a wave takes a part, those of a thread block neighbouring ones, whose rows
/// of K and V meet in the first-level cache. A head is a tile of the grid. No shared memory.

namespace Tessera {

namespace Launch {

template <class Device, class Kernel>
struct AttentionBody {
  using Wave = typename Device::Wave;
  static constexpr int threads = for_family<Device>(128, 256), waves = threads / Wave::lanes;
  static constexpr int bound = for_family<Device>(Kernel::thread_blocks, 1), shared = 0;
  static constexpr bool overlapping = true;

  template <class ThreadBlock>
  TESSERA_FUNCTION static void run(const ThreadBlock& thread_block, const AttentionArgs& args,
                                   std::int64_t first_head) {
    thread_block.template wait_for_previous_launch<false>();
    thread_block.each_wave([&](unsigned in_thread_block) {
      const std::int64_t wave_index = std::int64_t{thread_block.index()} * waves + in_thread_block;
      const std::int64_t first = wave_index * args.parts_per_wave;
      if (first >= args.part_count) return;
      const Wave wave;
      Kernel::run(wave, args, first, static_cast<int>(args.parts_per_wave), first_head + thread_block.tile());
    });
  }
};

/// Short parts go to a wave in fours, which has loads of one under way while it works on another, where a device has
/// parts for five times as many waves as it holds: else waves with more work than others are waited for. Of an H200
/// (perf_test/notes/attention.md).
template <class Device>
std::int64_t attention_parts_per_wave(const AttentionArgs& args) {
  if (args.parts_per_wave > 0) return args.parts_per_wave;
  if (Device::emulated) return 3;
  if (args.blocks > 6 * args.part_count) return 1;
  const std::int64_t parts = args.part_count * args.dense.heads;
  return std::clamp<std::int64_t>(parts / (std::int64_t{76} * Device::multiprocessors()), 1, 4);
}

template <class Device, class Atom, int Height, int Columns, bool Exact>
typename Device::Error launch_attention(AttentionArgs args, Stream stream) {
  using Unit = typename UnitOf<Device::template Unit, Atom>::type;
  using Kernel = AttentionKernel<Unit, typename Device::Wave, Height, Columns, Exact>;
  using Body = AttentionBody<Device, Kernel>;
  using Merge = AttentionMerge<typename Atom::Operand, typename Device::Wave>;
  args.parts_per_wave = std::min<std::int64_t>(attention_parts_per_wave<Device>(args), Kernel::most_parts);
  const std::int64_t waves = ceil_div(args.part_count, args.parts_per_wave);
  const auto error = launch_tiles<Device, Body>({ceil_div(waves, Body::waves), args.dense.heads}, stream, args);
  if (error != Device::success) return error;
  return launch_attention_merge<Device, Merge>(args, args, args.window_rows, stream);
}

/// The kernel for so many columns of Q and V. Of FP32 there is, to compile less, none for any up to 32 columns, nor for
/// exactly 256.
template <class Device, class Atom, int Height, int Columns>
typename Device::Error launch_attention_columns(const AttentionArgs& args, Stream stream) {
  const std::int64_t most = std::max(args.dense.d, args.dense.e);
  constexpr int widest = attention_most_columns<Atom, Height>;
  constexpr bool every = Device::template every_width<Atom>, wide = sizeof(typename Atom::Operand) == 4;
  constexpr bool middle = every && Device::middle_widths;
  if constexpr (every && !(wide && Columns == 256) && (middle || Columns == 32 || Columns == widest)) {
    if (args.dense.d == Columns && args.dense.e == Columns) {
      return launch_attention<Device, Atom, Height, Columns, true>(args, stream);
    }
  }
  if constexpr (wide && Columns == 32) {
    return launch_attention_columns<Device, Atom, Height, 2 * Columns>(args, stream);
  } else {
    if constexpr (Columns < widest) {
      constexpr int next = middle ? 2 * Columns : widest;
      if (most > Columns) return launch_attention_columns<Device, Atom, Height, next>(args, stream);
    }
    return launch_attention<Device, Atom, Height, Columns, false>(args, stream);
  }
}
template <class Device, class Atom>
typename Device::Error launch_attention_height(const AttentionArgs& args, Stream stream) {
  if (args.window_rows == Atom::n) return launch_attention_columns<Device, Atom, 1, 32>(args, stream);
  return launch_attention_columns<Device, Atom, 2, 32>(args, stream);
}

template <class Device>
typename Device::Error attention_forward_32_bits(const AttentionArgs& args, Stream stream) {
  using Vendor = ForFamily<Device, AttentionNvidia, AttentionAmd>;
  return args.precision == Precision::FP32 ? launch_attention_height<Device, typename Vendor::FP32>(args, stream)
                                           : launch_attention_height<Device, typename Vendor::TF32>(args, stream);
}
template <class Device>
typename Device::Error attention_forward_16_bits(const AttentionArgs& args, Stream stream) {
  using Vendor = ForFamily<Device, AttentionNvidia, AttentionAmd>;
  return args.precision == Precision::FP16 ? launch_attention_height<Device, typename Vendor::FP16>(args, stream)
                                           : launch_attention_height<Device, typename Vendor::BF16>(args, stream);
}

template <class Device>
Status attention_forward(const AttentionArgs& args, Stream stream) noexcept {
  const Status status = attention_check(args, attention_shape<Device>(args.precision));
  if (!status.ok() || args.part_count == 0 || args.dense.heads == 0) return status;
  const bool wide = args.precision == Precision::FP32 || args.precision == Precision::TF32;
  const auto error =
      wide ? attention_forward_32_bits<Device>(args, stream) : attention_forward_16_bits<Device>(args, stream);
  return Device::status(error, "Tessera::attention[windows]");
}

}  // namespace Launch
}  // namespace Tessera

#endif
