// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_LAUNCH_GESPMM_WORDS_LAUNCH_HPP
#define TESSERA_LAUNCH_GESPMM_WORDS_LAUNCH_HPP

#include "backends/launch/Tessera_GeSpmmLaunch.hpp"

/// \file
/// SpMM from compressed rows where rows of B are aligned to eight bytes or to an element alone, or lie in columns.

namespace Tessera {
namespace Launch {

/// Columns of B and C where they lie: a lane reads an entry of A once for two or four of them, and lanes beside each
/// other have rows beside each other. Where these find their columns near, a wave takes up to four such groups, one
/// after the other, as long as that is work for one and a half times the device's lanes; else all rows take a group
/// before the next, so that few columns of B are in the caches at a time.
template <class Device, class Value, class Sum, int Columns>
typename Device::Error launch_columns(GeSpmmArgs args, Stream stream) {
  using Types = GeSpmmTypes<Value, Sum, ColumnsOfB<Value, Columns>>;
  args.shift = 0;
  if (args.spread != nullptr) return launch_spread<Device, Types, 1, true>(args, stream);
  using Wave = typename Device::Wave;
  using Kernel = GeSpmmKernel<Types, Wave, std::int32_t, RowsWalk::Split>;
  using Body = GeSpmmBody<Device, Kernel>;
  const std::int64_t lanes = Device::emulated ? 256 : Device::multiprocessors() * std::int64_t{2048};
  const std::int64_t groups = ceil_div(args.dense.columns, Columns);
  args.log2_teams = log2_teams_in_turns(args, 1, Wave::lanes, lanes);
  std::int64_t passes = args.near && args.table == nullptr ? 4 : 1;
  const auto fills = [&] { return 2 * (args.count << args.log2_teams) * ceil_div(groups, passes) >= 3 * lanes; };
  while (passes > 1 && !fills()) passes /= 2;
  const std::int64_t items = Kernel::items(args), tile = Kernel::tile_columns(args) * passes;
  const Grid grid{ceil_div(args.count, Body::waves * items), ceil_div(args.dense.columns, tile)};
  const auto error =
      launch<Device, Body>(grid, stream, args, static_cast<int>(items), static_cast<int>(tile), GeSpmmAhead{});
  return error != Device::success ? error : add_partials<Device, Value, Sum>(spmm_partial_rows(args), stream);
}

template <class Device, class Value, class Sum>
typename Device::Error launch_words(const GeSpmmArgs& args, Stream stream) {
  constexpr int element = static_cast<int>(sizeof(Value));
  if (args.in_columns && args.dense.columns <= 2) return launch_columns<Device, Value, Sum, 2>(args, stream);
  if (args.in_columns) return launch_columns<Device, Value, Sum, 4>(args, stream);
  if constexpr (element < 8) {
    if (args.word_bytes == 8) return launch_gespmm<Device, GeSpmmTypes<Value, Sum, RowsOfB<Value, 8>>>(args, stream);
  }
  return launch_gespmm<Device, GeSpmmTypes<Value, Sum, RowsOfB<Value, element>>>(args, stream);
}

template <class Device>
Status spmm_gespmm_words(const GeSpmmArgs& args, Stream stream) noexcept {
  const auto answer = [](typename Device::Error error) { return Device::status(error, "Tessera::spmm[gespmm]"); };
  switch (args.precision) {
    case Precision::FP64:
      return answer(launch_words<Device, double, double>(args, stream));
    case Precision::FP32:
    case Precision::TF32:
      return answer(launch_words<Device, float, float>(args, stream));
    case Precision::FP16:
      return answer(launch_words<Device, half_t, float>(args, stream));
    case Precision::BF16:
#if defined(TESSERA_DEVICE_FEWER_WIDTHS) || defined(TESSERA_EMULATED_FEWER_TYPES)
      return {"spmm[gespmm]: this build leaves out BF16 where rows of B are not aligned"};
#else
      return answer(launch_words<Device, bhalf_t, float>(args, stream));
#endif
  }
  return {"spmm[gespmm]: unknown precision"};
}

}  // namespace Launch
}  // namespace Tessera

#endif
