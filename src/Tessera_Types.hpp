// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_TYPES_HPP
#define TESSERA_TYPES_HPP

#include <string>

#include "Tessera_Error.hpp"
#include "backends/interface/Tessera_ElementTypes.hpp"
#include "backends/interface/Tessera_Half.hpp"

/// \file
/// Enumerations of the interface, their names, and the element types that may stand at it.

namespace Tessera {

/// op(A) = A, A^T or A^H.
enum class Op { NoTrans, Trans, ConjTrans };

/// What is multiplied and accumulated. `Auto` follows the matrix: double -> FP64, float -> FP32, half_t -> FP16
/// operands with FP32 sums, bhalf_t -> BF16 operands with FP32 sums. A narrower choice rounds the matrix once, at
/// set-up; it is never made by `Auto`. A sum of k products in FP32 errs by at most (k + 2) 2^-24 of their magnitudes,
/// also on NVIDIA's units, which have no FP32 (rows of 2^24 entries and more apart: example/manual/precision.md).
enum class ComputeType { Auto, FP64, FP32, TF32, FP16_FP32, BF16_FP32 };

/// Csr: straight from compressed rows. Dasp [Lu & Liu, SC'23]: matrix units. Csr5 [Liu & Vinter, ICS'15]: tiles of
/// equal numbers of entries. PackedSlices: slices of one wave with narrow indices. Bsr: straight from blocks; the one
/// algorithm of a BsrView, and of no CsrView.
enum class SpmvAlgorithm { Auto, Dasp, Csr, Csr5, PackedSlices, Bsr };

/// Panels: row windows with bitmaps, dense rows read 16 bytes per lane, matrix units (FP32 on NVIDIA's: three products
/// of TF32).
/// FlashSparse [Shi et al., PPoPP'25]: 8x1 vectors in ME-BCRS, matrix units. GeSpmm [Huang et al., SC'20]: rows on CUDA
/// cores or CPUs, straight from compressed rows, long rows split. Csr: the same without any set-up.
enum class SpmmAlgorithm { Auto, Panels, FlashSparse, GeSpmm, Csr };

/// Who executes. Kokkos: portable kernels on the execution space. Reference: plain loops on the host in double or
/// wider. EmulatedNvidia / EmulatedAmd: the matrix-unit kernels lane by lane on the host. Cuda / Hip: the devices.
enum class Backend { Auto, Kokkos, Reference, EmulatedNvidia, EmulatedAmd, Cuda, Hip };

/// Many: set-up will be amortised. Once: choose the cheapest set-up.
enum class Reuse { Many, Once };

/// Names as they stand in statistics, on command lines and in environment variables.
inline const char* to_string(SpmvAlgorithm a) {
  switch (a) {
    case SpmvAlgorithm::Auto:
      return "auto";
    case SpmvAlgorithm::Dasp:
      return "dasp";
    case SpmvAlgorithm::Csr:
      return "csr";
    case SpmvAlgorithm::Csr5:
      return "csr5";
    case SpmvAlgorithm::PackedSlices:
      return "packed";
    case SpmvAlgorithm::Bsr:
      return "bsr";
  }
  return "?";
}
/// See to_string(SpmvAlgorithm).
inline const char* to_string(SpmmAlgorithm a) {
  switch (a) {
    case SpmmAlgorithm::Auto:
      return "auto";
    case SpmmAlgorithm::Panels:
      return "panels";
    case SpmmAlgorithm::FlashSparse:
      return "flash";
    case SpmmAlgorithm::GeSpmm:
      return "gespmm";
    case SpmmAlgorithm::Csr:
      return "csr";
  }
  return "?";
}
/// See to_string(SpmvAlgorithm).
inline const char* to_string(Backend b) {
  switch (b) {
    case Backend::Auto:
      return "auto";
    case Backend::Kokkos:
      return "kokkos";
    case Backend::Reference:
      return "reference";
    case Backend::EmulatedNvidia:
      return "emulated-nvidia";
    case Backend::EmulatedAmd:
      return "emulated-amd";
    case Backend::Cuda:
      return "cuda";
    case Backend::Hip:
      return "hip";
  }
  return "?";
}
/// See to_string(SpmvAlgorithm).
inline const char* to_string(Precision p) {
  switch (p) {
    case Precision::FP64:
      return "fp64";
    case Precision::FP32:
      return "fp32";
    case Precision::TF32:
      return "tf32";
    case Precision::FP16:
      return "fp16";
    case Precision::BF16:
      return "bf16";
  }
  return "?";
}

namespace Impl {
template <class Enum, std::size_t N>
Enum parse_enum(const std::string& name, const Enum (&all)[N], const char* what) {
  std::string known;
  for (const Enum e : all) {
    if (name == to_string(e)) return e;
    known += (known.empty() ? "" : ", ") + std::string(to_string(e));
  }
  throw InvalidArgument("unknown " + std::string(what) + " '" + name + "'; known: " + known);
}
}  // namespace Impl

/// The inverse of to_string. @throw InvalidArgument listing the known names.
inline SpmvAlgorithm parse_spmv_algorithm(const std::string& name) {
  constexpr SpmvAlgorithm all[] = {SpmvAlgorithm::Auto, SpmvAlgorithm::Dasp,         SpmvAlgorithm::Csr,
                                   SpmvAlgorithm::Csr5, SpmvAlgorithm::PackedSlices, SpmvAlgorithm::Bsr};
  return Impl::parse_enum(name, all, "SpMV algorithm");
}
/// See parse_spmv_algorithm.
inline SpmmAlgorithm parse_spmm_algorithm(const std::string& name) {
  constexpr SpmmAlgorithm all[] = {SpmmAlgorithm::Auto, SpmmAlgorithm::Panels, SpmmAlgorithm::FlashSparse,
                                   SpmmAlgorithm::GeSpmm, SpmmAlgorithm::Csr};
  return Impl::parse_enum(name, all, "SpMM algorithm");
}
/// See parse_spmv_algorithm.
inline Backend parse_backend(const std::string& name) {
  constexpr Backend all[] = {Backend::Auto,        Backend::Kokkos, Backend::Reference, Backend::EmulatedNvidia,
                             Backend::EmulatedAmd, Backend::Cuda,   Backend::Hip};
  return Impl::parse_enum(name, all, "backend");
}
/// See parse_spmv_algorithm.
inline Precision parse_precision(const std::string& name) {
  constexpr Precision all[] = {Precision::FP64, Precision::FP32, Precision::TF32, Precision::FP16, Precision::BF16};
  return Impl::parse_enum(name, all, "precision");
}
/// Kokkos Kernels' modes: "N" (A), "T" (transpose), "C" (conjugate, *not* transposed: for real scalars N) and "H"
/// (conjugate transpose: for real scalars T). BLAS and cuSPARSE call by C what is H here. @throw InvalidArgument.
inline Op parse_op(const std::string& mode) {
  if (mode == "N" || mode == "n" || mode == "C" || mode == "c") return Op::NoTrans;
  if (mode == "T" || mode == "t") return Op::Trans;
  if (mode == "H" || mode == "h") return Op::ConjTrans;
  throw InvalidArgument("unknown mode '" + mode +
                        "'; known: N (A), T (transpose), C (conjugate), H (conjugate transpose)");
}

namespace Impl {
/// The element types a matrix or vector may have, and what they map to.
template <class T>
struct ScalarTraits {
  static constexpr bool supported = false;
};
template <>
struct ScalarTraits<double> {
  static constexpr bool supported = true;
  static constexpr ElementType element = ElementType::Double;
  static constexpr Precision precision = Precision::FP64;
};
template <>
struct ScalarTraits<float> {
  static constexpr bool supported = true;
  static constexpr ElementType element = ElementType::Float;
  static constexpr Precision precision = Precision::FP32;
};
template <>
struct ScalarTraits<half_t> {
  static constexpr bool supported = true;
  static constexpr ElementType element = ElementType::Half;
  static constexpr Precision precision = Precision::FP16;
};
template <>
struct ScalarTraits<bhalf_t> {
  static constexpr bool supported = true;
  static constexpr ElementType element = ElementType::BHalf;
  static constexpr Precision precision = Precision::BF16;
};

inline const char* to_string(ElementType e) {
  switch (e) {
    case ElementType::Double:
      return "double";
    case ElementType::Float:
      return "float";
    case ElementType::Half:
      return "half_t";
    case ElementType::BHalf:
      return "bhalf_t";
  }
  return "?";
}
}  // namespace Impl
}  // namespace Tessera

#endif
