// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_SPMM_PANEL_DISPATCH_HPP
#define TESSERA_KERNELS_SPMM_PANEL_DISPATCH_HPP

#include <type_traits>

#include "backends/interface/Tessera_KernelTable.hpp"
#include "backends/kernels/spmm/Tessera_PanelKernel.hpp"
#include "backends/units/Tessera_AtomsAmd.hpp"
#include "backends/units/Tessera_AtomsNvidia.hpp"
#include "backends/units/Tessera_SplitUnit.hpp"

/// \file
/// Which instructions, blocks and tiles panels have on a vendor's matrix units: in one place for the device and for its
/// emulation. Widths are measured ones (perf_test/notes/spmm-panels.md); AMD's are not.

namespace Tessera {

struct PanelNvidia {
  template <class Launch>
  static Status dispatch(const SpmmPanelArgs& args, Launch&& launch) {
    const std::int64_t n = args.dense.columns;
    switch (args.precision) {
      case Precision::FP64:
        if (n > 32 && args.windows >= std::decay_t<Launch>::many_windows) {
          return launch.template run<Sm90_M16N8K8_F64, 1, 4, 16>();
        }
        return n <= 16 ? launch.template run<Sm90_M16N8K8_F64, 1, 1, 16>()
                       : launch.template run<Sm90_M16N8K8_F64, 1, 2, 16>();
      case Precision::FP32:
        if (n <= 32 || (n > 64 && args.windows < std::decay_t<Launch>::few_windows)) {
          return launch.template run<Sm80_M16N8K8_F32_3xTF32, 2, 1, 16>();
        }
        return launch.template run<Sm80_M16N8K8_F32_3xTF32, 2, 2, 16>();
      case Precision::TF32:
        return n <= 32 ? launch.template run<Sm80_M16N8K8_F32_TF32, 2, 1, 16>()
                       : launch.template run<Sm80_M16N8K8_F32_TF32, 2, 2, 16>();
      case Precision::FP16:
        return dispatch_16<Sm80_M16N8K16_F32_F16>(args, launch);
      case Precision::BF16:
        return dispatch_16<Sm80_M16N8K16_F32_BF16>(args, launch);
    }
    return {"spmm[panels]: unknown precision"};
  }

  static const PanelGeometry* geometry(Precision precision, std::int64_t columns) {
    static constexpr PanelGeometry fp64 = panel_geometry<PanelShape<Sm90_M16N8K8_F64, 1>>();
    static constexpr PanelGeometry fp32 = panel_geometry<PanelShape<Sm80_M16N8K8_F32_3xTF32, 2>>();
    static constexpr PanelGeometry tf32 = panel_geometry<PanelShape<Sm80_M16N8K8_F32_TF32, 2>>();
    static constexpr PanelGeometry fp16 = panel_geometry<PanelShape<Sm80_M16N8K16_F32_F16, 1>>();
    static constexpr PanelGeometry fp16_narrow = panel_geometry<PanelShape<Sm80_M16N8K16_F32_F16, 2>>();
    static constexpr PanelGeometry bf16 = panel_geometry<PanelShape<Sm80_M16N8K16_F32_BF16, 1>>();
    static constexpr PanelGeometry bf16_narrow = panel_geometry<PanelShape<Sm80_M16N8K16_F32_BF16, 2>>();
    switch (precision) {
      case Precision::FP64:
        return &fp64;
      case Precision::FP32:
        return &fp32;
      case Precision::TF32:
        return &tf32;
      case Precision::FP16:
        return columns <= 32 ? &fp16_narrow : &fp16;
      case Precision::BF16:
        return columns <= 32 ? &bf16_narrow : &bf16;
    }
    return nullptr;
  }

 private:
  /// Blocks of 32 columns of A are for narrow B, where the products of one of 16 are too few for its fixed costs.
  template <class Atom, class Launch>
  static Status dispatch_16(const SpmmPanelArgs& args, Launch&& launch) {
    const std::int64_t n = args.dense.columns;
    if (args.depth == 32) {
      return n <= 16   ? launch.template run<Atom, 2, 1, 4>()
             : n <= 32 ? launch.template run<Atom, 2, 1, 8>()
                       : launch.template run<Atom, 2, 1, 16>();
    }
    return n <= 16   ? launch.template run<Atom, 1, 1, 4>()
           : n <= 32 ? launch.template run<Atom, 1, 1, 8>()
           : n <= 64 ? launch.template run<Atom, 1, 1, 16>()
                     : launch.template run<Atom, 1, 2, 16>();
  }
};

/// FP32 has an instruction of its own here, which also answers requests for TF32.
struct PanelAmd {
  template <class Launch>
  static Status dispatch(const SpmmPanelArgs& args, Launch&& launch) {
    switch (args.precision) {
      case Precision::FP64:
        return launch.template run<Gfx90a_M16N16K4_F64, 2, 1, 16>();
      case Precision::FP32:
      case Precision::TF32:
        return launch.template run<Gfx90a_M16N16K4_F32, 2, 1, 16>();
      case Precision::FP16:
        return launch.template run<Gfx90a_M16N16K16_F32_F16, 1, 1, 16>();
      case Precision::BF16:
        return launch.template run<Gfx90a_M16N16K16_F32_BF16, 1, 1, 16>();
    }
    return {"spmm[panels]: unknown precision"};
  }

  static const PanelGeometry* geometry(Precision precision, std::int64_t) {
    static constexpr PanelGeometry fp64 = panel_geometry<PanelShape<Gfx90a_M16N16K4_F64, 2>>();
    static constexpr PanelGeometry fp32 = panel_geometry<PanelShape<Gfx90a_M16N16K4_F32, 2>>();
    static constexpr PanelGeometry fp16 = panel_geometry<PanelShape<Gfx90a_M16N16K16_F32_F16, 1>>();
    static constexpr PanelGeometry bf16 = panel_geometry<PanelShape<Gfx90a_M16N16K16_F32_BF16, 1>>();
    switch (precision) {
      case Precision::FP64:
        return &fp64;
      case Precision::FP32:
      case Precision::TF32:
        return &fp32;
      case Precision::FP16:
        return &fp16;
      case Precision::BF16:
        return &bf16;
    }
    return nullptr;
  }
};

/// Lets a wave take several neighbouring windows where these have few blocks, so that its start costs less, but not so
/// many that fewer than `waves` of them remain.
inline SpmmPanelArgs panel_shared_out(SpmmPanelArgs args, std::int64_t tile_columns, std::int64_t waves) {
  if (args.split.parts != nullptr || args.windows == 0) return args;
  const std::int64_t tiles = (args.dense.columns + tile_columns - 1) / tile_columns;
  std::int64_t per_part = 1;
  while (per_part < 4 && per_part * args.blocks < 6 * args.windows && args.windows * tiles >= (per_part + 1) * waves) {
    ++per_part;
  }
  args.split.windows_per_part = per_part;
  args.split.part_count = (args.windows + per_part - 1) / per_part;
  return args;
}

/// What no launcher can do. ldb: its bytes are multiplied by 32-bit columns.
inline Status panel_check(const SpmmPanelArgs& args) {
  if (args.dense.ldb > (std::int64_t{1} << 28) - 1) return {"spmm[panels]: rows of B lie 2^28 elements apart or more"};
  return {};
}

}  // namespace Tessera

#endif
