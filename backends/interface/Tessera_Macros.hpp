// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_INTERFACE_MACROS_HPP
#define TESSERA_INTERFACE_MACROS_HPP

/// \file
/// What the Kokkos-free part of the library needs of the language: a function that host and device compilers both
/// accept, a loop that must be unrolled because it indexes registers, one that should be four times, and one that is
/// seldom run and should stay small.
/// TESSERA_OUTLINED_FUNCTION is called: what is seldom needed then takes no registers of the caller.
/// TESSERA_INLINED_FUNCTION is put into its caller by host compilers, too, and so compiled for the caller's
/// instructions. (Kokkos' own macro is not used here: backends are built by nvcc, hipcc or g++ alone, without Kokkos.)

#if defined(__CUDACC__) || defined(__HIPCC__)
#if defined(TESSERA_UNOPTIMIZED)
#define TESSERA_FUNCTION __host__ __device__ inline
#else
#define TESSERA_FUNCTION __host__ __device__ __forceinline__
#endif
#define TESSERA_INLINED_FUNCTION TESSERA_FUNCTION
#define TESSERA_OUTLINED_FUNCTION __host__ __device__ __noinline__
#define TESSERA_UNROLL _Pragma("unroll")
#define TESSERA_UNROLL_4 _Pragma("unroll 4")
#define TESSERA_NO_UNROLL _Pragma("unroll 1")
#else
#define TESSERA_FUNCTION inline
#define TESSERA_OUTLINED_FUNCTION inline
#if defined(__GNUC__)
#define TESSERA_INLINED_FUNCTION inline __attribute__((always_inline))
#else
#define TESSERA_INLINED_FUNCTION inline
#endif
#define TESSERA_UNROLL
#define TESSERA_UNROLL_4
#define TESSERA_NO_UNROLL
#endif

#endif
