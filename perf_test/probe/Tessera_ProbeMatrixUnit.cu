// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include <cuda_runtime.h>

#include "backends/cuda/Tessera_CudaAtoms.cuh"
#include "backends/cuda/Tessera_CudaBackend.hpp"
#include "backends/cuda/Tessera_CudaWave.cuh"
#include "probe/Tessera_ProbeMatrixUnit.hpp"

/// \file
/// Matrix instructions back to back on registers, through the atoms that the kernels use.

namespace Tessera {
namespace Bench {
namespace {

template <class Atom, int Chains>
__global__ void rate_kernel(int rounds, typename Atom::Accumulator* sink) {
  using Operand = typename Atom::Operand;
  using Accumulator = typename Atom::Accumulator;
  const CudaWave wave;
  CudaWave::Varying<AFragment<Atom>> a;
  CudaWave::Varying<BFragment<Atom>> b;
  CudaWave::Varying<CFragment<Atom>> c[Chains];
  wave.each([&](int lane) {
    // Numbers of either sign with full mantissas: a unit that multiplies zeros takes less power than one at work.
    TESSERA_UNROLL
    for (int i = 0; i < Atom::a_registers; ++i) {
      a(lane).r[i] = Operand(static_cast<Accumulator>(0.7 - 0.045 * (lane + i)));
    }
    TESSERA_UNROLL
    for (int i = 0; i < Atom::b_registers; ++i) {
      b(lane).r[i] = Operand(static_cast<Accumulator>(0.031 * (lane - i) - 0.5));
    }
    TESSERA_UNROLL
    for (int k = 0; k < Chains; ++k) {
      TESSERA_UNROLL
      for (int i = 0; i < Atom::c_registers; ++i) c[k](lane).r[i] = static_cast<Accumulator>(k + i);
    }
  });
  for (int round = 0; round < rounds; ++round) {
    TESSERA_UNROLL
    for (int k = 0; k < Chains; ++k) PtxUnit<Atom>::mma(wave, c[k], a, b);
  }
  wave.each([&](int lane) {
    Accumulator sum = 0;
    TESSERA_UNROLL
    for (int k = 0; k < Chains; ++k) {
      TESSERA_UNROLL
      for (int i = 0; i < Atom::c_registers; ++i) sum += c[k](lane).r[i];
    }
    if (sum == static_cast<Accumulator>(0.12345)) *sink = sum;
  });
}

template <class Atom, int Chains>
Status run(int blocks, int threads, int rounds, void* sink, Stream stream) noexcept {
  rate_kernel<Atom, Chains>
      <<<static_cast<unsigned>(blocks), static_cast<unsigned>(threads), 0, static_cast<cudaStream_t>(stream)>>>(
          rounds, static_cast<typename Atom::Accumulator*>(sink));
  return Cuda::status_of(cudaGetLastError(), "Tessera::probe matrix unit");
}

template <class Atom>
constexpr double flop() {
  return 2.0 * Atom::m * Atom::n * Atom::k;
}
template <class Atom>
constexpr MatrixUnitProbe rate() {
  return {Atom::name, flop<Atom>(), 8, 32, run<Atom, 8>};
}
template <class Atom>
constexpr MatrixUnitProbe latency() {
  return {Atom::name, flop<Atom>(), 1, 0, run<Atom, 1>};
}

}  // namespace

const MatrixUnitProbe* cuda_matrix_unit_probes(int& count) noexcept {
  static const MatrixUnitProbe all[] = {
      rate<Sm80_M8N8K4_F64>(),          rate<Sm80_M16N8K8_F32_F16>(),     rate<Sm80_M16N8K8_F32_BF16>(),
      rate<Sm80_M16N8K16_F32_F16>(),    rate<Sm80_M16N8K16_F32_BF16>(),   rate<Sm80_M16N8K8_F32_TF32>(),
      latency<Sm80_M8N8K4_F64>(),       latency<Sm80_M16N8K8_F32_F16>(),  latency<Sm80_M16N8K8_F32_BF16>(),
      latency<Sm80_M16N8K16_F32_F16>(), latency<Sm80_M16N8K16_F32_BF16>()};
  count = static_cast<int>(sizeof(all) / sizeof(all[0]));
  return all;
}

}  // namespace Bench
}  // namespace Tessera
