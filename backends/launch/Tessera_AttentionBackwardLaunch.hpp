// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_LAUNCH_ATTENTION_BACKWARD_LAUNCH_HPP
#define TESSERA_LAUNCH_ATTENTION_BACKWARD_LAUNCH_HPP

#include <algorithm>

#include "backends/kernels/attention/Tessera_AttentionBackwardKernel.hpp"
#include "backends/launch/Tessera_AttentionMergeLaunch.hpp"
#include "backends/launch/Tessera_AttentionShapes.hpp"
#include "backends/launch/Tessera_Launch.hpp"

/// \file
/// Launchers of the two passes of attention's gradients on matrix units: a wave takes a part of a window of rows, or of
/// columns. A head is a tile of the grid. No shared memory.

namespace Tessera {
namespace Launch {

template <class Device, class Kernel>
struct AttentionBackwardBody {
  using Wave = typename Device::Wave;
  static constexpr int threads = for_family<Device>(128, 256), waves = threads / Wave::lanes;
  static constexpr int bound = for_family<Device>(Kernel::thread_blocks, 1), shared = 0;
  static constexpr bool overlapping = true;

  template <class ThreadBlock>
  TESSERA_FUNCTION static void run(const ThreadBlock& thread_block, const AttentionBackwardArgs& args,
                                   std::int64_t first_head) {
    thread_block.template wait_for_previous_launch<false>();
    thread_block.each_wave([&](unsigned in_thread_block) {
      const std::int64_t index = std::int64_t{thread_block.index()} * waves + in_thread_block;
      if (index >= args.windows.part_count) return;
      const Wave wave;
      Kernel::run(wave, args, index, first_head + thread_block.tile());
    });
  }
};

template <class Device, class Atom, int Height, int Columns, bool Exact, bool ByColumns>
typename Device::Error launch_attention_backward(const AttentionBackwardArgs& args, Stream stream) {
  using Kernel = AttentionBackwardKernel<typename Device::template Unit<Atom>, typename Device::Wave, Height, Columns,
                                         Exact, ByColumns>;
  using Body = AttentionBackwardBody<Device, Kernel>;
  using Merge = AttentionBackwardMerge<typename Atom::Operand, typename Device::Wave, ByColumns>;
  const AttentionArgs& w = args.windows;
  const auto error = launch_tiles<Device, Body>({ceil_div(w.part_count, Body::waves), w.dense.heads}, stream, args);
  if (error != Device::success) return error;
  return launch_attention_merge<Device, Merge>(w, args, w.window_rows, stream);
}

/// The kernel for so many columns of Q and V.
template <class Device, class Atom, int Height, int Columns, bool ByColumns>
typename Device::Error launch_attention_backward_columns(const AttentionBackwardArgs& args, Stream stream) {
  const AttentionDense& dense = args.windows.dense;
  constexpr int widest = 128 / Height;
  constexpr bool every = Device::template every_width<Atom>;
  if constexpr (Columns < widest) {
    constexpr int next = every && Device::middle_widths ? 2 * Columns : widest;
    if (std::max(dense.d, dense.e) > Columns) {
      return launch_attention_backward_columns<Device, Atom, Height, next, ByColumns>(args, stream);
    }
  }
  if constexpr (every) {
    if (dense.d == Columns && dense.e == Columns) {
      return launch_attention_backward<Device, Atom, Height, Columns, true, ByColumns>(args, stream);
    }
  }
  return launch_attention_backward<Device, Atom, Height, Columns, false, ByColumns>(args, stream);
}
template <class Device, class Atom, bool ByColumns>
typename Device::Error launch_attention_backward_height(const AttentionBackwardArgs& args, Stream stream) {
  if (args.windows.window_rows == Atom::n) {
    return launch_attention_backward_columns<Device, Atom, 1, 32, ByColumns>(args, stream);
  }
  return launch_attention_backward_columns<Device, Atom, 2, 32, ByColumns>(args, stream);
}
template <class Device, class Atom>
typename Device::Error launch_attention_backward_pass(const AttentionBackwardArgs& args, Stream stream) {
  return args.by_columns ? launch_attention_backward_height<Device, Atom, true>(args, stream)
                         : launch_attention_backward_height<Device, Atom, false>(args, stream);
}

template <class Device>
AttentionShape attention_backward_shape(Precision precision) noexcept {
  if (precision != Precision::FP16 && precision != Precision::BF16) return {};
  AttentionShape shape = attention_shape<Device>(precision);
  shape.most_columns = std::min(shape.most_columns, 128);
  shape.most_columns_of_two = std::min(shape.most_columns_of_two, 64);
  return shape;
}

template <class Device>
Status attention_backward(const AttentionBackwardArgs& args, Stream stream) noexcept {
  using Vendor = ForFamily<Device, AttentionNvidia, AttentionAmd>;
  const AttentionArgs& w = args.windows;
  const Status status = attention_check(w, attention_backward_shape<Device>(w.precision));
  if (!status.ok()) return status;
  if (args.ld_d_o >= (std::int64_t{1} << 30) || w.dense.ldo >= (std::int64_t{1} << 30)) {
    return {"attention: rows of O or dO lie 2^30 or more elements apart"};
  }
  if (w.part_count == 0 || w.dense.heads == 0) return status;
  const auto error = w.precision == Precision::FP16
                         ? launch_attention_backward_pass<Device, typename Vendor::FP16>(args, stream)
                         : launch_attention_backward_pass<Device, typename Vendor::BF16>(args, stream);
  return Device::status(error, args.by_columns ? "Tessera::attention[dK, dV]" : "Tessera::attention[dQ]");
}

}  // namespace Launch
}  // namespace Tessera

#endif
