// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_SDDMM_SDDMM_DISPATCH_HPP
#define TESSERA_KERNELS_SDDMM_SDDMM_DISPATCH_HPP

#include "backends/interface/Tessera_SddmmKernels.hpp"
#include "backends/kernels/sddmm/Tessera_SddmmWindowKernel.hpp"
#include "backends/units/Tessera_AtomsAmd.hpp"
#include "backends/units/Tessera_AtomsNvidia.hpp"
#include "backends/units/Tessera_SplitUnit.hpp"

/// \file
/// Which instructions SDDMM has on a vendor's matrix units.

namespace Tessera {

struct SddmmNvidia {
  using FP64 = Sm80_M8N8K4_F64;
  using FP32 = Sm80_M16N8K8_F32_3xTF32;
  using TF32 = Sm80_M16N8K8_F32_TF32;
  using FP16 = Sm80_M16N8K16_F32_F16;
  using BF16 = Sm80_M16N8K16_F32_BF16;
};
/// FP32 has an instruction of its own here, which also answers requests for TF32.
struct SddmmAmd {
  using FP64 = Gfx90a_M16N16K4_F64;
  using FP32 = Gfx90a_M16N16K4_F32;
  using TF32 = Gfx90a_M16N16K4_F32;
  using FP16 = Gfx90a_M16N16K16_F32_F16;
  using BF16 = Gfx90a_M16N16K16_F32_BF16;
};

/// The data type of an atom, as an argument.
template <class Atom>
struct SddmmAtom {
  using type = Atom;
};

/// Returns run(SddmmAtom<atom of the precision>()).
template <class Vendor, class Run>
auto sddmm_with_atom(Precision precision, const Run& run) {
  switch (precision) {
    case Precision::FP64:
      return run(SddmmAtom<typename Vendor::FP64>());
    case Precision::FP32:
      return run(SddmmAtom<typename Vendor::FP32>());
    case Precision::TF32:
      return run(SddmmAtom<typename Vendor::TF32>());
    case Precision::FP16:
      return run(SddmmAtom<typename Vendor::FP16>());
    default:
      return run(SddmmAtom<typename Vendor::BF16>());
  }
}

template <class Vendor>
SddmmShape sddmm_shape_of(Precision precision) {
  return sddmm_with_atom<Vendor>(precision, [](auto atom) {
    using Atom = typename decltype(atom)::type;
    return SddmmShape{Atom::n, Atom::m, Atom::name, in_parts<Atom>};
  });
}

}  // namespace Tessera

#endif
