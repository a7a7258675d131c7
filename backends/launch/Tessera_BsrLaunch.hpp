// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_LAUNCH_BSR_LAUNCH_HPP
#define TESSERA_LAUNCH_BSR_LAUNCH_HPP

#include <cstdint>

#include "backends/kernels/spmv/Tessera_BsrKernel.hpp"
#include "backends/kernels/spmv/Tessera_BsrStagedKernel.hpp"
#include "backends/launch/Tessera_Launch.hpp"
#include "backends/launch/Tessera_SpmvLaunchers.hpp"

/// \file
/// Launchers of SpMV from blocks: four waves per thread block, without shared memory or with a part of it per wave.

namespace Tessera {
namespace Launch {

template <class Device, class Value, int Width, int Words, bool Streaming>
struct BsrBody {
  using Wave = typename Device::Wave;
  using Kernel = BsrKernel<Value, Wave, Width, Words, Streaming>;
  static constexpr int waves = 4, threads = waves * Wave::lanes, shared = 0;
  /// NVIDIA: 102, 72, 64 or 56 registers, as many as keep four blocks in flight without spilling; not measured
  /// (perf_test/notes/spmv-bsr.md).
  static constexpr int bytes = Width * Words * static_cast<int>(sizeof(Value));
  static constexpr int bound = for_family<Device>(Words > 2                  ? 5
                                                  : Words > 1 && bytes == 16 ? 7
                                                  : bytes == 16              ? 8
                                                                             : 9,
                                                  0);
  static constexpr bool overlapping = true;

  template <class ThreadBlock>
  TESSERA_FUNCTION static void run(const ThreadBlock& thread_block, const SpmvBsrArgs& args, BsrShape shape) {
    thread_block.template wait_for_previous_launch<true>();
    const std::int64_t first = std::int64_t{thread_block.index()} * waves;
    thread_block.each_wave([&](unsigned in_thread_block) {
      const std::int64_t index = first + in_thread_block;
      if (index * shape.block_rows >= args.block_rows) return;
      const Wave wave;
      Kernel::run(wave, args, shape, index);
    });
  }
};

/// Whether lanes can read `width` numbers at once: they lie side by side and aligned, and a block's rows fit a wave.
inline bool bsr_takes(const SpmvBsrArgs& args, int width, int lanes) {
  const auto bytes = static_cast<std::uintptr_t>(width * bytes_of(args.precision));
  const auto aligned = [&](const void* p) { return reinterpret_cast<std::uintptr_t>(p) % bytes == 0; };
  return args.block % width == 0 && args.block / width * args.block <= lanes && args.order != BlockOrder::ColumnMajor &&
         (width == 1 || (args.x_stride == 1 && aligned(args.values) && aligned(args.x)));
}

template <class Device, class Value, int Width, int Words>
Status launch_bsr(const SpmvBsrArgs& args, Stream stream) {
  using Body = BsrBody<Device, Value, Width, Words, true>;
  // A lane with several blocks to go hides its waits best; few block rows need every lane.
  const std::int64_t many = 32 * std::int64_t{Device::multiprocessors()};
  const BsrShape shape = BsrShape::of(args, Width, Body::Wave::lanes, args.block_rows >= many ? 4 : 1, Words);
  const Grid grid{ceil_div(args.block_rows, std::int64_t{Body::waves} * shape.block_rows)};
  typename Device::Error error = Device::success;
  if (Device::emulated || args.streaming) {
    error = launch<Device, Body>(grid, stream, args, shape);
  } else if constexpr (!Device::emulated) {
    error = launch<Device, BsrBody<Device, Value, Width, Words, false>>(grid, stream, args, shape);
  }
  return Device::status(error, "Tessera::spmv[bsr]");
}

/// Blocks that are staged in shared memory at once (perf_test/notes/spmv-bsr.md).
constexpr int bsr_piece(int block) { return block == 3 ? 64 : 32; }

template <class Device, class Value, int Block>
struct BsrStagedBody {
  using Wave = typename Device::Wave;
  static constexpr int piece = bsr_piece(Block);
  using Kernel = BsrStagedKernel<Value, Wave, Block, piece>;
  static constexpr int waves = 4, threads = waves * Wave::lanes, shared = waves * Kernel::wave_bytes;
  /// Of shared memory, of which a thread block's takes a kibibyte more; and of registers, 40, 48 or 56.
  static constexpr int room = (227 << 10) / (shared + 1024), most = sizeof(Value) == 8 ? 9 : Block % 4 == 0 ? 10 : 12;
  static constexpr int bound = for_family<Device>(room < most ? room : most, 0);
  static constexpr bool overlapping = true;

  /// @param rows  block rows per wave
  template <class ThreadBlock>
  TESSERA_FUNCTION static void run(const ThreadBlock& thread_block, const SpmvBsrArgs& args, int rows) {
    thread_block.template wait_for_previous_launch<true>();
    const std::int64_t first = std::int64_t{thread_block.index()} * waves;
    thread_block.each_wave([&](unsigned in_thread_block) {
      const std::int64_t row = (first + in_thread_block) * rows, left = args.block_rows - row;
      if (left <= 0) return;
      const Wave wave;
      Kernel::run(wave, args, Wave::memory(thread_block.memory() + in_thread_block * Kernel::wave_bytes), row,
                  left < rows ? static_cast<int>(left) : rows, Wave::cache_hint(false));
    });
  }
};

/// Stages the blocks, if there are rows for every wave that the device holds, of about a piece at least, and everything
/// lies where it can be copied.
template <class Device, class Value, int Block>
bool launch_bsr_staged(const SpmvBsrArgs& args, Stream stream, Status& status) {
  using Body = BsrStagedBody<Device, Value, Block>;
  if (args.block != Block) return false;
  const auto aligned = [](const void* p, int bytes) { return reinterpret_cast<std::uintptr_t>(p) % bytes == 0; };
  constexpr int alignment = Body::Kernel::alignment;
  const bool takes = args.order == BlockOrder::RowMajor && aligned(args.values, 16) && aligned(args.x, alignment) &&
                     (alignment == sizeof(Value) || args.x_stride == 1);
  const std::int64_t enough = Device::emulated ? 1 : std::int64_t{32} * Device::multiprocessors();
  if (!takes || !args.streaming || args.block_rows < enough || args.blocks < 20 * std::int64_t{args.block_rows}) {
    return false;
  }
  const std::int64_t mean = args.blocks / args.block_rows;
  const int rows = mean < Body::piece ? static_cast<int>(Body::piece / mean) : 1;
  const Grid grid{ceil_div(args.block_rows, std::int64_t{Body::waves} * rows)};
  status = Device::status(launch<Device, Body>(grid, stream, args, rows), "Tessera::spmv[bsr]");
  return true;
}
/// Sides that gain by it.
template <class Device, class Value>
bool launch_bsr_staged(const SpmvBsrArgs& args, Stream stream, Status& status) {
  return launch_bsr_staged<Device, Value, 3>(args, stream, status) ||
         launch_bsr_staged<Device, Value, 4>(args, stream, status) ||
         launch_bsr_staged<Device, Value, 5>(args, stream, status) ||
         launch_bsr_staged<Device, Value, 6>(args, stream, status) ||
         launch_bsr_staged<Device, Value, 7>(args, stream, status) ||
         launch_bsr_staged<Device, Value, 8>(args, stream, status);
}

template <class Device, class Value>
Status spmv_bsr_in(const SpmvBsrArgs& args, Stream stream) {
  constexpr int lanes = Device::Wave::lanes;
  // AMD has no copies that arrive while a wave goes on.
  if constexpr (Device::family == Family::Nvidia) {
    Status status{};
    if (launch_bsr_staged<Device, Value>(args, stream, status)) return status;
  }
  if constexpr (sizeof(Value) == 4) {
    if (bsr_takes(args, 4, lanes)) return launch_bsr<Device, Value, 4, 1>(args, stream);
  }
  if (bsr_takes(args, 2, lanes)) return launch_bsr<Device, Value, 2, 1>(args, stream);
  // Three numbers per column index and number of x instead of one (perf_test/notes/spmv-bsr.md).
  if (args.block == 3) return launch_bsr<Device, Value, 1, 3>(args, stream);
  if (args.block * args.block <= lanes) return launch_bsr<Device, Value, 1, 1>(args, stream);
  return launch_bsr<Device, Value, 1, 2>(args, stream);
}

template <class Device>
Status spmv_bsr(const SpmvBsrArgs& args, Stream stream) noexcept {
  const Status status = check_bsr(args);
  if (!status.ok() || args.block_rows == 0) return status;
  return args.precision == Precision::FP64 ? spmv_bsr_in<Device, double>(args, stream)
                                           : spmv_bsr_in<Device, float>(args, stream);
}

}  // namespace Launch
}  // namespace Tessera

#endif
