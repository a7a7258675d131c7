// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_LAUNCH_LAUNCH_HPP
#define TESSERA_LAUNCH_LAUNCH_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "backends/interface/Tessera_Macros.hpp"
#include "backends/interface/Tessera_Status.hpp"

/// \file
/// What all launchers share. A launcher is one text, compiled by nvcc, by hipcc, and by the host's compiler as loops
/// for the emulation. It is written in two concepts.
///
/// A *device* (CudaDevice, HipDevice, EmulatedDevice) is what vendors differ in:
///
///   name                        of the backend
///   family                      whose instructions and waves these are
///   emulated                    whether loops on the host stand for a device; then only the general kernels exist
///   every_width<Atom>           whether all kernels exist that differ in their columns alone, or, of an instruction
///                               whose like has them, the narrowest and the widest
///   middle_widths               whether attention has them; where not, every_width are the narrowest and the widest
///   every_length<Value>         whether SDDMM has all kernels that differ in the length of rows of X and Y alone
///   every_walk<Value>           whether SpMM by rows has all kernels that differ in which lanes read what alone
///   every_variant<Value>        whether packed slices and DASP have all kernels that differ in caching, waves or
///                               strides alone
///   Wave, Unit<Atom>            who executes a kernel, and the matrix unit
///   tables                      whether x may be kept in tables in shared memory
///   Error, success, too_large   the runtime's errors, and the one for a grid that it cannot launch
///   most_thread_blocks(threads) of a grid, of so many threads each
///   multiprocessors()           of the current device
///   shared_bytes()              that a thread block can have on the current device
///   launch<Body>(grid, stream, args, rest...)   enqueues a body
///   status(error, label)        the error in words
///   runtime()                   RuntimeCalls
///
/// A *body* is what a thread block does:
///
///   threads       of a thread block
///   bound         what bounds the registers: thread blocks that a multiprocessor must hold (NVIDIA), or waves of a
///                 SIMD (AMD); 0: no bound
///   shared        bytes of memory that the thread block has, without tables
///   overlapping   whether a launch may begin before the one before it is complete; the body waits where it must
///   run(thread_block, args, rest...)
///                 index(), thread_blocks(), tile(), tiles();
///                 memory(), at a multiple of 128 bytes;
///                 each_wave(f) and each_thread(f) call f(index in it), on a device once, for the own one;
///                 each_wave_of<Body>(args...) calls Body::wave(thread_block, index, args...) likewise;
///                 synchronize(); wait_for_previous_launch<EarlyNext>(), start_next_launch()
///
/// The order of a body's statements is the one that nvcc makes the best code of; in particular a wave, which reads the
/// thread's index, comes after what may end the thread.

namespace Tessera {

/// Whose instructions, fragments and waves.
enum class Family { Nvidia, Amd };

/// Where code of devices is only compiled (Tessera_DEVICE_FEWER_WIDTHS) FP16 alone has every width, length
/// and variant.
#ifdef TESSERA_DEVICE_FEWER_WIDTHS
constexpr bool compile_less = true;
#else
constexpr bool compile_less = false;
#endif

namespace Launch {

/// The one of two types, or numbers, that is the family's.
template <class Device, class Nvidia, class Amd>
using ForFamily = std::conditional_t<Device::family == Family::Nvidia, Nvidia, Amd>;
template <class Device>
constexpr int for_family(int nvidia, int amd) {
  return Device::family == Family::Nvidia ? nvidia : amd;
}

/// Thread blocks in two dimensions, and bytes of memory of each that its body does not know.
struct Grid {
  std::int64_t thread_blocks = 0, tiles = 1;
  std::size_t table_bytes = 0;
};

constexpr std::int64_t ceil_div(std::int64_t n, std::int64_t by) { return (n + by - 1) / by; }

/// Most tiles of a grid, in its second dimension.
constexpr std::int64_t most_tiles = 65535;

/// Enqueues a body, unless the device has no such grid.
template <class Device, class Body, class... Args>
typename Device::Error launch(const Grid& grid, Stream stream, const Args&... args) {
  const bool fits = grid.thread_blocks <= Device::most_thread_blocks(Body::threads) && grid.tiles <= most_tiles;
  if (!fits) return Device::too_large;
  return Device::template launch<Body>(grid, stream, args...);
}

/// The same for any number of tiles, in several launches if need be; the body is told the first one of its launch.
template <class Device, class Body, class Args>
typename Device::Error launch_tiles(const Grid& grid, Stream stream, const Args& args) {
  typename Device::Error error = Device::success;
  for (std::int64_t first = 0; first < grid.tiles && error == Device::success; first += most_tiles) {
    error = launch<Device, Body>({grid.thread_blocks, std::min(most_tiles, grid.tiles - first)}, stream, args, first);
  }
  return error;
}

}  // namespace Launch
}  // namespace Tessera

#endif
