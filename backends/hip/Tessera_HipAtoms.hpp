// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_HIP_HIP_ATOMS_HPP
#define TESSERA_HIP_HIP_ATOMS_HPP

#include <hip/hip_runtime.h>

#include "backends/units/Tessera_AtomsAmd.hpp"

/// \file
/// MfmaUnit<Atom>: the instruction behind each AMD atom, on the registers of the own lane. One specialisation a shape;
/// everything else about the shape is in Tessera_AtomsAmd.hpp. The builtins' trailing zeros are cbsz, abid and blgp: no
/// broadcast of A, no permutation of B ("CDNA2 Instruction Set Architecture", matrix fused multiply-add).
///
/// gfx90a flushes subnormal FP16 and BF16 operands, and subnormal results, of these instructions to zero; later CDNA
/// devices do not. FP32 and FP64 keep them.

namespace Tessera {
namespace Impl {

/// Registers as the vector the builtin takes.
template <class V, class T>
__device__ __forceinline__ V as_vector(const T* r) {
  V v;
  __builtin_memcpy(&v, r, sizeof(v));
  return v;
}

template <class Atom>
struct Mfma;

template <>
struct Mfma<Gfx90a_M16N16K4_F64> {
  __device__ __forceinline__ static void run(double* c, const double* a, const double* b) {
    using V = double __attribute__((ext_vector_type(4)));
    const V d = __builtin_amdgcn_mfma_f64_16x16x4f64(a[0], b[0], as_vector<V>(c), 0, 0, 0);
    __builtin_memcpy(c, &d, sizeof(d));
  }
};

template <>
struct Mfma<Gfx90a_M16N16K4_F32> {
  __device__ __forceinline__ static void run(float* c, const float* a, const float* b) {
    using V = float __attribute__((ext_vector_type(4)));
    const V d = __builtin_amdgcn_mfma_f32_16x16x4f32(a[0], b[0], as_vector<V>(c), 0, 0, 0);
    __builtin_memcpy(c, &d, sizeof(d));
  }
};

template <>
struct Mfma<Gfx90a_M16N16K16_F32_F16> {
  __device__ __forceinline__ static void run(float* c, const half_t* a, const half_t* b) {
    using V = float __attribute__((ext_vector_type(4)));
    using Operands = _Float16 __attribute__((ext_vector_type(4)));
    const V d =
        __builtin_amdgcn_mfma_f32_16x16x16f16(as_vector<Operands>(a), as_vector<Operands>(b), as_vector<V>(c), 0, 0, 0);
    __builtin_memcpy(c, &d, sizeof(d));
  }
};

template <>
struct Mfma<Gfx90a_M16N16K16_F32_BF16> {
  __device__ __forceinline__ static void run(float* c, const bhalf_t* a, const bhalf_t* b) {
    using V = float __attribute__((ext_vector_type(4)));
    using Operands = short __attribute__((ext_vector_type(4)));
    const V d = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(as_vector<Operands>(a), as_vector<Operands>(b),
                                                          as_vector<V>(c), 0, 0, 0);
    __builtin_memcpy(c, &d, sizeof(d));
  }
};

}  // namespace Impl

/// The matrix unit of an AMD compute unit, same interface as Emulated<Atom>.
template <class Atom_>
struct MfmaUnit {
  using Atom = Atom_;

  template <class Wave, class VaryingC, class VaryingA, class VaryingB>
  __device__ __forceinline__ static void mma(const Wave&, VaryingC& c, const VaryingA& a, const VaryingB& b) {
    Impl::Mfma<Atom>::run(c.own.r, a.own.r, b.own.r);
  }
};

}  // namespace Tessera

#endif
