// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include <cuda_runtime.h>

#include <cstring>

#include "backends/cuda/Tessera_CudaAtoms.cuh"
#include "backends/cuda/Tessera_CudaBackend.hpp"
#include "backends/cuda/Tessera_CudaWave.cuh"
#include "backends/units/Tessera_Conformance.hpp"

/// \file
/// Single products of every NVIDIA atom, for the conformance test (Tessera_Conformance.hpp). The layouts under test are
/// those of the PTX ISA, sections "Matrix Fragments for mma.m8n8k4 with .f64 floating point type", "... mma.m16n8k4",
/// "... mma.m16n8k8" and "... mma.m16n8k16 with floating point type".

namespace Tessera {
namespace {

/// One wave a block, one product a wave.
template <class Atom>
__global__ void conformance_kernel(const typename Atom::Operand* a, const typename Atom::Operand* b,
                                   const typename Atom::Accumulator* c, typename Atom::Accumulator* registers) {
  const CudaWave wave;
  const std::size_t i = blockIdx.x;
  conformance_case<PtxUnit<Atom>>(wave, a + i * (Atom::m * Atom::k), b + i * (Atom::k * Atom::n),
                                  c + i * (Atom::m * Atom::n), registers + i * (Atom::lanes * Atom::c_registers));
}

/// Device memory for one call.
class Buffer {
 public:
  explicit Buffer(std::size_t bytes) { error_ = cudaMalloc(&data_, bytes); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { cudaFree(data_); }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  cudaError_t error() const { return error_; }

 private:
  void* data_ = nullptr;
  cudaError_t error_;
};

template <class Atom>
cudaError_t run(const ConformanceArgs& args) {
  using Operand = typename Atom::Operand;
  using Accumulator = typename Atom::Accumulator;
  const ConformanceSizes size = conformance_sizes<Atom>(args.cases);
  const Buffer a(size.a), b(size.b), c(size.c), registers(size.registers);
  for (const Buffer* buffer : {&a, &b, &c, &registers}) {
    if (buffer->error() != cudaSuccess) return buffer->error();
  }
  cudaError_t error = cudaMemcpy(a.as<void>(), args.a, size.a, cudaMemcpyHostToDevice);
  if (error == cudaSuccess) error = cudaMemcpy(b.as<void>(), args.b, size.b, cudaMemcpyHostToDevice);
  if (error == cudaSuccess) error = cudaMemcpy(c.as<void>(), args.c, size.c, cudaMemcpyHostToDevice);
  // All ones are a NaN in every accumulator type: a register that is not written shows.
  if (error == cudaSuccess) error = cudaMemset(registers.as<void>(), 0xff, size.registers);
  if (error != cudaSuccess) return error;
  conformance_kernel<Atom><<<static_cast<unsigned>(args.cases), Atom::lanes>>>(
      a.as<const Operand>(), b.as<const Operand>(), c.as<const Accumulator>(), registers.as<Accumulator>());
  error = cudaGetLastError();
  if (error != cudaSuccess) return error;
  return cudaMemcpy(args.registers, registers.as<void>(), size.registers, cudaMemcpyDeviceToHost);
}

/// Runs the one atom of the list whose name fits.
template <class... Atoms>
struct AtomList {
  static bool run_named(const char* name, const ConformanceArgs& args, cudaError_t& error) {
    return ((std::strcmp(name, Atoms::name) == 0 && (error = run<Atoms>(args), true)) || ...);
  }
};
using AllAtoms = AtomList<Sm80_M8N8K4_F64, Sm80_M16N8K4_F32_TF32, Sm80_M16N8K8_F32_TF32, Sm80_M16N8K8_F32_TF32Cut,
                          Sm80_M16N8K8_F32_F16, Sm80_M16N8K8_F32_BF16, Sm80_M16N8K16_F32_F16, Sm80_M16N8K16_F32_BF16>;

}  // namespace

Status cuda_conformance(const char* atom, const ConformanceArgs& args) noexcept {
  if (args.cases <= 0) return {};
  cudaError_t error = cudaSuccess;
  if (!AllAtoms::run_named(atom, args, error)) return {"conformance: not an atom of the CUDA backend"};
  return Cuda::status_of(error, "Tessera::conformance");
}

}  // namespace Tessera
