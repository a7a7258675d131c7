// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CUDA_CUDA_ATOMS_HPP
#define TESSERA_CUDA_CUDA_ATOMS_HPP

#include <cstdint>
#include <cstring>

#include "backends/units/Tessera_AtomsNvidia.hpp"

/// \file
/// PtxUnit<Atom>: the instruction behind each NVIDIA atom, on the registers of the own lane. One specialisation a
/// shape; everything else about the shape is in Tessera_AtomsNvidia.hpp.

namespace Tessera {
namespace Impl {

/// Consecutive 16-bit registers of an operand share a 32-bit one, the first in the low half.
template <class T>
__device__ __forceinline__ std::uint32_t operand_word(const T* r, int word) {
  std::uint32_t bits;
  memcpy(&bits, r + word * (4 / sizeof(T)), sizeof(bits));
  return bits;
}
/// An operand of an instruction that multiplies TF32.
template <class Atom>
__device__ __forceinline__ std::uint32_t tf32_word(float value) {
  return __float_as_uint(Atom::rounding == OperandRounding::Tf32Nearest ? round_to_tf32(value) : value);
}

template <class Atom>
struct PtxMma;

template <>
struct PtxMma<Sm80_M8N8K4_F64> {
  __device__ __forceinline__ static void run(double* c, const double* a, const double* b) {
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                 : "+d"(c[0]), "+d"(c[1])
                 : "d"(a[0]), "d"(b[0]));
  }
};

template <>
struct PtxMma<Sm90_M16N8K8_F64> {
  __device__ __forceinline__ static void run(double* c, const double* a, const double* b) {
#if __CUDA_ARCH__ >= 900
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#else
    using Quarter = PtxMma<Sm80_M8N8K4_F64>;
    Quarter::run(c, a, b);
    Quarter::run(c + 2, a + 1, b);
    Quarter::run(c, a + 2, b + 1);
    Quarter::run(c + 2, a + 3, b + 1);
#endif
  }
};

template <>
struct PtxMma<Sm80_M16N8K4_F32_TF32> {
  using Atom = Sm80_M16N8K4_F32_TF32;
  __device__ __forceinline__ static void run(float* c, const float* a, const float* b) {
    asm volatile("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(tf32_word<Atom>(a[0])), "r"(tf32_word<Atom>(a[1])), "r"(tf32_word<Atom>(b[0])));
  }
};

template <class Atom>
struct PtxTf32 {
  __device__ __forceinline__ static void run(float* c, const float* a, const float* b) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(tf32_word<Atom>(a[0])), "r"(tf32_word<Atom>(a[1])), "r"(tf32_word<Atom>(a[2])),
          "r"(tf32_word<Atom>(a[3])), "r"(tf32_word<Atom>(b[0])), "r"(tf32_word<Atom>(b[1])));
  }
};
template <>
struct PtxMma<Sm80_M16N8K8_F32_TF32> : PtxTf32<Sm80_M16N8K8_F32_TF32> {};
template <>
struct PtxMma<Sm80_M16N8K8_F32_TF32Cut> : PtxTf32<Sm80_M16N8K8_F32_TF32Cut> {};

// The 16-bit shapes differ only in the operand type's name.
#define TESSERA_PTX_K8(ATOM, TYPE)                                                                         \
  template <>                                                                                              \
  struct PtxMma<ATOM> {                                                                                    \
    __device__ __forceinline__ static void run(float* c, const ATOM::Operand* a, const ATOM::Operand* b) { \
      asm volatile("mma.sync.aligned.m16n8k8.row.col.f32." TYPE "." TYPE                                   \
                   ".f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"                                     \
                   : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                        \
                   : "r"(operand_word(a, 0)), "r"(operand_word(a, 1)), "r"(operand_word(b, 0)));           \
    }                                                                                                      \
  };
#define TESSERA_PTX_K16(ATOM, TYPE)                                                                        \
  template <>                                                                                              \
  struct PtxMma<ATOM> {                                                                                    \
    __device__ __forceinline__ static void run(float* c, const ATOM::Operand* a, const ATOM::Operand* b) { \
      asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." TYPE "." TYPE                                  \
                   ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                            \
                   : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                        \
                   : "r"(operand_word(a, 0)), "r"(operand_word(a, 1)), "r"(operand_word(a, 2)),            \
                     "r"(operand_word(a, 3)), "r"(operand_word(b, 0)), "r"(operand_word(b, 1)));           \
    }                                                                                                      \
  };
TESSERA_PTX_K8(Sm80_M16N8K8_F32_F16, "f16")
TESSERA_PTX_K8(Sm80_M16N8K8_F32_BF16, "bf16")
TESSERA_PTX_K16(Sm80_M16N8K16_F32_F16, "f16")
TESSERA_PTX_K16(Sm80_M16N8K16_F32_BF16, "bf16")
#undef TESSERA_PTX_K8
#undef TESSERA_PTX_K16

}  // namespace Impl

/// The matrix unit of an NVIDIA multiprocessor, same interface as Emulated<Atom>.
template <class Atom_>
struct PtxUnit {
  using Atom = Atom_;

  template <class Wave, class VaryingC, class VaryingA, class VaryingB>
  __device__ __forceinline__ static void mma(const Wave&, VaryingC& c, const VaryingA& a, const VaryingB& b) {
    Impl::PtxMma<Atom>::run(c.own.r, a.own.r, b.own.r);
  }
};

}  // namespace Tessera

#endif
