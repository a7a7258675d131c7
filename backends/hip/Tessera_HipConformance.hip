// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include <hip/hip_runtime.h>

#include <cstring>

#include "backends/hip/Tessera_HipAtoms.hpp"
#include "backends/hip/Tessera_HipBackend.hpp"
#include "backends/hip/Tessera_HipWave.hpp"
#include "backends/units/Tessera_Conformance.hpp"

/// \file
/// Single products of every AMD atom, for the conformance test (Tessera_Conformance.hpp). The layouts under test are
/// those of AMD's "CDNA2 Instruction Set Architecture" (matrix fused multiply-add) as the AMD matrix instruction
/// calculator prints them for v_mfma_f64_16x16x4f64, v_mfma_f32_16x16x4f32, v_mfma_f32_16x16x16f16 and
/// v_mfma_f32_16x16x16bf16_1k.

namespace Tessera {
namespace {

/// One wave a block, one product a wave.
template <class Atom>
__global__ void conformance_kernel(const typename Atom::Operand* a, const typename Atom::Operand* b,
                                   const typename Atom::Accumulator* c, typename Atom::Accumulator* registers) {
  const HipWave wave;
  const std::size_t i = blockIdx.x;
  conformance_case<MfmaUnit<Atom>>(wave, a + i * (Atom::m * Atom::k), b + i * (Atom::k * Atom::n),
                                   c + i * (Atom::m * Atom::n), registers + i * (Atom::lanes * Atom::c_registers));
}

/// Device memory for one call.
class Buffer {
 public:
  explicit Buffer(std::size_t bytes) { error_ = hipMalloc(&data_, bytes); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { (void)hipFree(data_); }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  hipError_t error() const { return error_; }

 private:
  void* data_ = nullptr;
  hipError_t error_;
};

template <class Atom>
hipError_t run(const ConformanceArgs& args) {
  using Operand = typename Atom::Operand;
  using Accumulator = typename Atom::Accumulator;
  const ConformanceSizes size = conformance_sizes<Atom>(args.cases);
  const Buffer a(size.a), b(size.b), c(size.c), registers(size.registers);
  for (const Buffer* buffer : {&a, &b, &c, &registers}) {
    if (buffer->error() != hipSuccess) return buffer->error();
  }
  hipError_t error = hipMemcpy(a.as<void>(), args.a, size.a, hipMemcpyHostToDevice);
  if (error == hipSuccess) error = hipMemcpy(b.as<void>(), args.b, size.b, hipMemcpyHostToDevice);
  if (error == hipSuccess) error = hipMemcpy(c.as<void>(), args.c, size.c, hipMemcpyHostToDevice);
  // All ones are a NaN in every accumulator type: a register that is not written shows.
  if (error == hipSuccess) error = hipMemset(registers.as<void>(), 0xff, size.registers);
  if (error != hipSuccess) return error;
  conformance_kernel<Atom><<<static_cast<unsigned>(args.cases), Atom::lanes>>>(
      a.as<const Operand>(), b.as<const Operand>(), c.as<const Accumulator>(), registers.as<Accumulator>());
  error = hipGetLastError();
  if (error != hipSuccess) return error;
  return hipMemcpy(args.registers, registers.as<void>(), size.registers, hipMemcpyDeviceToHost);
}

/// Runs the one atom of the list whose name fits.
template <class... Atoms>
struct AtomList {
  static bool run_named(const char* name, const ConformanceArgs& args, hipError_t& error) {
    return ((std::strcmp(name, Atoms::name) == 0 && (error = run<Atoms>(args), true)) || ...);
  }
};
using AllAtoms =
    AtomList<Gfx90a_M16N16K4_F64, Gfx90a_M16N16K4_F32, Gfx90a_M16N16K16_F32_F16, Gfx90a_M16N16K16_F32_BF16>;

}  // namespace

Status hip_conformance(const char* atom, const ConformanceArgs& args) noexcept {
  if (args.cases <= 0) return {};
  hipError_t error = hipSuccess;
  if (!AllAtoms::run_named(atom, args, error)) return {"conformance: not an atom of the HIP backend"};
  return Hip::status_of(error, "Tessera::conformance");
}

}  // namespace Tessera
