// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/cuda/Tessera_CudaDevice.cuh"
#include "backends/launch/Tessera_ConformanceLaunch.hpp"

/// \file
/// Single products of every NVIDIA atom, for the conformance test (Tessera_Conformance.hpp). The layouts under test are
/// those of the PTX ISA, sections "Matrix Fragments for mma.m8n8k4 with .f64 floating point type", "... mma.m16n8k4",
/// "... mma.m16n8k8" and "... mma.m16n8k16 with floating point type".

namespace Tessera {
namespace {

struct CudaMemory {
  static cudaError_t allocate(void** data, std::size_t bytes) { return cudaMalloc(data, bytes); }
  static void release(void* data) { cudaFree(data); }
  static cudaError_t upload(void* to, const void* from, std::size_t bytes) {
    return cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice);
  }
  static cudaError_t fill(void* data, int byte, std::size_t bytes) { return cudaMemset(data, byte, bytes); }
  static cudaError_t download(void* to, const void* from, std::size_t bytes) {
    return cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost);
  }
};

}  // namespace

Status cuda_conformance(const char* atom, const ConformanceArgs& args) noexcept {
  return Launch::conformance<CudaDevice, CudaMemory, Sm80_M8N8K4_F64, Sm90_M16N8K8_F64, Sm80_M16N8K4_F32_TF32,
                             Sm80_M16N8K8_F32_TF32, Sm80_M16N8K8_F32_TF32Cut, Sm80_M16N8K8_F32_F16,
                             Sm80_M16N8K8_F32_BF16, Sm80_M16N8K16_F32_F16, Sm80_M16N8K16_F32_BF16>(atom, args);
}

}  // namespace Tessera
