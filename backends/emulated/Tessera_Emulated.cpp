// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include <cstdio>

#include "backends/emulated/Tessera_EmulatedFlash.hpp"
#include "backends/emulated/Tessera_EmulatedPacked.hpp"
#include "backends/emulated/Tessera_EmulatedSpmm.hpp"
#include "backends/interface/Tessera_KernelTable.hpp"
#include "backends/kernels/spmv/Tessera_DaspKernel.hpp"

/// \file
/// The matrix-unit kernels on the host: the same text as on devices, with emulated lanes and an emulated matrix
/// instruction. For validation; one thread, waves one after another.

namespace Tessera {
namespace {

template <class Atom>
void run_dasp(const SpmvDaspArgs& args) {
  using Wave = HostWave<Atom::lanes>;
  const Wave wave;
  for (std::uint32_t i = 0; i < args.first_wave[DaspClasses]; ++i) {
    DaspKernel<Emulated<Atom>, Wave, true, false>::run(wave, args, i);
  }
}

/// The atoms a vendor's kernels use, by precision.
struct Nvidia {
  using FP64 = Sm80_M8N8K4_F64;
  using FP16 = Sm80_M16N8K8_F32_F16;
  using BF16 = Sm80_M16N8K8_F32_BF16;
  static constexpr const char* name = "emulated NVIDIA matrix unit (sm_80 atoms, waves of 32)";
  static constexpr int wave = 32;
  static constexpr auto flash_depth = emulated_nvidia_flash_depth;
  static constexpr auto spmm_flash = emulated_nvidia_spmm_flash;
  static constexpr auto panel_geometry = emulated_nvidia_panel_geometry;
  static constexpr auto spmm_panels = emulated_nvidia_spmm_panels;
  static constexpr auto spmm_rows = emulated_nvidia_spmm_rows;
};
struct Amd {
  using FP64 = Gfx90a_M16N16K4_F64;
  using FP16 = Gfx90a_M16N16K16_F32_F16;
  using BF16 = Gfx90a_M16N16K16_F32_BF16;
  static constexpr const char* name = "emulated AMD matrix unit (gfx90a atoms, waves of 64)";
  static constexpr int wave = 64;
  static constexpr auto flash_depth = emulated_amd_flash_depth;
  static constexpr auto spmm_flash = emulated_amd_spmm_flash;
  static constexpr auto panel_geometry = emulated_amd_panel_geometry;
  static constexpr auto spmm_panels = emulated_amd_spmm_panels;
  static constexpr auto spmm_rows = emulated_amd_spmm_rows;
};

template <class Vendor>
Status facts(DeviceFacts& f) noexcept {
  f = DeviceFacts{};
  std::snprintf(f.name, sizeof(f.name), "%s", Vendor::name);
  f.wave = Vendor::wave;
  f.compute_units = 7;       // so that work is divided, unevenly
  f.cache_bytes = 64 << 10;  // so that some matrices reach beyond it
  return {};
}

template <class Vendor>
const DaspGeometry* geometry(Precision precision) noexcept {
  static const DaspGeometry fp64 = dasp_geometry<typename Vendor::FP64>();
  static const DaspGeometry fp16 = dasp_geometry<typename Vendor::FP16>();
  static const DaspGeometry bf16 = dasp_geometry<typename Vendor::BF16>();
  switch (precision) {
    case Precision::FP64:
      return &fp64;
    case Precision::FP16:
      return &fp16;
    case Precision::BF16:
      return &bf16;
    default:
      return nullptr;
  }
}

template <class Vendor>
Status spmv_dasp(const SpmvDaspArgs& args, Stream) noexcept {
  switch (args.precision) {
    case Precision::FP64:
      run_dasp<typename Vendor::FP64>(args);
      return {};
    case Precision::FP16:
      run_dasp<typename Vendor::FP16>(args);
      return {};
    case Precision::BF16:
      run_dasp<typename Vendor::BF16>(args);
      return {};
    default:
      return {"spmv[dasp]: the emulated matrix units offer FP64, FP16 and BF16"};
  }
}

template <class Vendor>
const KernelTable* table(const char* name) noexcept {
  static const KernelTable t{name,
                             false,
                             facts<Vendor>,
                             geometry<Vendor>,
                             spmv_dasp<Vendor>,
                             emulated_spmv_packed<Vendor::wave>,
                             nullptr,
                             nullptr,
                             nullptr,
                             Vendor::flash_depth,
                             Vendor::spmm_flash,
                             Vendor::panel_geometry,
                             Vendor::spmm_panels,
                             Vendor::spmm_rows};
  return &t;
}

}  // namespace

const KernelTable* emulated_nvidia_table() noexcept { return table<Nvidia>("emulated-nvidia"); }
const KernelTable* emulated_amd_table() noexcept { return table<Amd>("emulated-amd"); }

}  // namespace Tessera
