// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/hip/Tessera_HipDevice.hpp"
#include "backends/launch/Tessera_ConformanceLaunch.hpp"

/// \file
/// Single products of every AMD atom, for the conformance test (Tessera_Conformance.hpp). The layouts under test are
/// those of AMD's "CDNA2 Instruction Set Architecture" (matrix fused multiply-add) as the AMD matrix instruction
/// calculator prints them for v_mfma_f64_16x16x4f64, v_mfma_f32_16x16x4f32, v_mfma_f32_16x16x16f16 and
/// v_mfma_f32_16x16x16bf16_1k.

namespace Tessera {
namespace {

struct HipMemory {
  static hipError_t allocate(void** data, std::size_t bytes) { return hipMalloc(data, bytes); }
  static void release(void* data) { (void)hipFree(data); }
  static hipError_t upload(void* to, const void* from, std::size_t bytes) {
    return hipMemcpy(to, from, bytes, hipMemcpyHostToDevice);
  }
  static hipError_t fill(void* data, int byte, std::size_t bytes) { return hipMemset(data, byte, bytes); }
  static hipError_t download(void* to, const void* from, std::size_t bytes) {
    return hipMemcpy(to, from, bytes, hipMemcpyDeviceToHost);
  }
};

}  // namespace

Status hip_conformance(const char* atom, const ConformanceArgs& args) noexcept {
  return Launch::conformance<HipDevice, HipMemory, Gfx90a_M16N16K4_F64, Gfx90a_M16N16K4_F32, Gfx90a_M16N16K16_F32_F16,
                             Gfx90a_M16N16K16_F32_BF16>(atom, args);
}

}  // namespace Tessera
