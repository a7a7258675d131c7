// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BASELINE_CUSPARSE_HPP
#define TESSERA_BASELINE_CUSPARSE_HPP

#include <cuda_runtime_api.h>
#include <cusparse.h>

#include <string>

#include "Tessera_Compat.hpp"
#include "Tessera_Error.hpp"
#include "driver/Tessera_BenchCase.hpp"
#include "spmv/Tessera_CusparseLibrary.hpp"

/// \file
/// cuSPARSE's generic SpMV with its preprocessing call, on CSR and on sliced ELL. 16-bit operands are summed in FP32,
/// as Tessera does.

namespace Tessera {
namespace Bench {

inline cudaDataType cuda_type(ElementType type) {
  switch (type) {
    case ElementType::Double:
      return CUDA_R_64F;
    case ElementType::Float:
      return CUDA_R_32F;
    case ElementType::Half:
      return CUDA_R_16F;
    default:
      return CUDA_R_16BF;
  }
}

/// alpha or beta, and the type of the sums: double for double operands, else float.
struct CusparseScalar {
  CusparseScalar(ElementType operands, double v)
      : wide(operands == ElementType::Double), d(v), f(static_cast<float>(v)) {}
  const void* data() const { return wide ? static_cast<const void*>(&d) : &f; }
  cudaDataType type() const { return wide ? CUDA_R_64F : CUDA_R_32F; }
  bool wide;
  double d;
  float f;
};

inline void cusparse_check(cusparseStatus_t status) {
  if (status == CUSPARSE_STATUS_SUCCESS) return;
  const std::string text = std::string("cuSPARSE: ") + cusparseGetErrorString(status);
  if (status == CUSPARSE_STATUS_NOT_SUPPORTED) throw NotSupported(text);
  throw DeviceError(text);
}

/// One for the program: an application makes it once, so that it is no part of a matrix's set-up.
inline cusparseHandle_t shared_cusparse_handle() {
  static const cusparseHandle_t handle = [] {
    cusparseHandle_t h = nullptr;
    cusparse_check(cusparseCreate(&h));
    return h;
  }();
  return handle;
}

inline cusparseIndexType_t cusparse_offsets(const CsrOperand& A) {
  return A.offset_bits == 64 ? CUSPARSE_INDEX_64I : CUSPARSE_INDEX_32I;
}

/// On the caller's CSR arrays.
inline cusparseSpMatDescr_t cusparse_csr(const CsrOperand& A) {
  cusparseSpMatDescr_t descriptor = nullptr;
  cusparse_check(cusparseCreateCsr(&descriptor, A.rows, A.cols, A.nnz(), A.row_map.data<void>(), A.entries.data<void>(),
                                   A.values.data<void>(), cusparse_offsets(A), CUSPARSE_INDEX_32I,
                                   CUSPARSE_INDEX_BASE_ZERO, cuda_type(A.element)));
  return descriptor;
}

/// On the caller's CSR arrays. @throw NotSupported
System make_cusparse_spmv(const CusparseLibrary& library, const SpmvOperands& operands, cusparseSpMVAlg_t algorithm);
/// By a plan of the newer interface, on the caller's CSR arrays. @throw NotSupported
System make_cusparse_spmv_op(const CusparseLibrary& library, const SpmvOperands& operands,
                             CusparseSpmvOpFunctions::Algorithm algorithm);
/// On any matrix, whose descriptor it takes over; by the linked library. @throw NotSupported
System make_cusparse_spmv(const SpmvOperands& operands, cusparseSpMatDescr_t matrix, cusparseSpMVAlg_t algorithm,
                          const char* kernel);

#if defined(TESSERA_BENCH_CUSPARSE_SELL)
/// On sliced ELL, which cuSPARSE does not make itself. A slice stores the widest of its rows for all of them, column by
/// column. Converted on the host, as an application without a kernel of its own would.
/// @throw NotSupported  for matrices that would store two slots per entry or more: rows too uneven for this format
System make_cusparse_sell(const CusparseLibrary& library, const SpmvOperands& operands);
#endif

}  // namespace Bench
}  // namespace Tessera

#endif
