// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/emulated/Tessera_EmulatedFlash.hpp"

#include "backends/emulated/Tessera_EmulatedPartials.hpp"
#include "backends/kernels/spmm/Tessera_FlashSpmmKernel.hpp"

/// \file
/// FlashSparse on emulated waves and matrix units, parts one after another.

namespace Tessera {
namespace {

struct Emulation {
  const SpmmFlashArgs& args;

  template <class Atom, bool Swap, bool Coalesced, int Tiles>
  void run() const {
    using Wave = HostWave<Atom::lanes>;
    using Kernel = FlashSpmmKernel<Emulated<Atom>, Wave, Swap, Coalesced, Tiles>;
    const Wave wave;
    for (std::int64_t column = 0; column < args.dense.columns; column += Kernel::columns) {
      for (std::int64_t part = 0; part < args.split.part_count; ++part) Kernel::run(wave, args, part, column);
    }
    emulate_add_partials<typename Atom::Operand, float, Wave>(spmm_partial_rows(args, args.vector_length));
  }
};

template <class Vendor>
Status run_flash(const SpmmFlashArgs& args) noexcept {
  const Status status = flash_check<Vendor>(args);
  if (!status.ok()) return status;
  flash_dispatch<Vendor>(args, flash_tiles(args, 1), Emulation{args});
  return {};
}

}  // namespace

int emulated_nvidia_flash_depth(Precision precision, int vector_length) noexcept {
  return flash_depth_of<FlashNvidia>(precision, vector_length);
}
int emulated_amd_flash_depth(Precision precision, int vector_length) noexcept {
  return flash_depth_of<FlashAmd>(precision, vector_length);
}
Status emulated_nvidia_spmm_flash(const SpmmFlashArgs& args, Stream) noexcept { return run_flash<FlashNvidia>(args); }
Status emulated_amd_spmm_flash(const SpmmFlashArgs& args, Stream) noexcept { return run_flash<FlashAmd>(args); }

}  // namespace Tessera
