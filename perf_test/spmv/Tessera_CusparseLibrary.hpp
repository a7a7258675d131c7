// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CUSPARSE_LIBRARY_HPP
#define TESSERA_CUSPARSE_LIBRARY_HPP

#include <cusparse.h>

#include <cstddef>
#include <string>
#include <vector>

/// \file
/// cuSPARSE's functions of SpMV as pointers, so that a newer cuSPARSE than the linked one can be measured beside it.

/// Sliced ELL came with CUDA 12.1 update 1.
#if CUSPARSE_VERSION >= 12100
#define TESSERA_BENCH_CUSPARSE_SELL 1
#endif

namespace Tessera {
namespace Bench {

/// cusparseSpMVOp: z = alpha A x + beta y by a plan kept. Part of cuSPARSE 12.8 and newer, experimental there and not
/// in the headers of the toolkits that Tessera builds with; pointers of its own objects are opaque here.
struct CusparseSpmvOpFunctions {
  enum Algorithm : int { Default = 0, Alg1 = 1, Alg2 = 2 };
  cusparseStatus_t (*buffer_size)(cusparseHandle_t, cusparseOperation_t, cusparseSpMatDescr_t A, cusparseDnVecDescr_t x,
                                  cusparseDnVecDescr_t y, cusparseDnVecDescr_t z, cudaDataType sums, Algorithm,
                                  std::size_t* bytes) = nullptr;
  cusparseStatus_t (*create_description)(cusparseHandle_t, void** description, cusparseOperation_t,
                                         cusparseSpMatDescr_t A, cusparseDnVecDescr_t x, cusparseDnVecDescr_t y,
                                         cusparseDnVecDescr_t z, cudaDataType sums, Algorithm, void* buffer) = nullptr;
  cusparseStatus_t (*destroy_description)(void* description) = nullptr;
  /// `code`: of an epilogue of one's own; none: the formula above.
  cusparseStatus_t (*create_plan)(cusparseHandle_t, void* description, void** plan, const void* code,
                                  std::size_t code_bytes) = nullptr;
  cusparseStatus_t (*destroy_plan)(void* plan) = nullptr;
  cusparseStatus_t (*apply)(cusparseHandle_t, void* plan, const void* alpha, const void* beta, cusparseDnVecDescr_t x,
                            cusparseDnVecDescr_t y, cusparseDnVecDescr_t z) = nullptr;
  bool complete() const { return apply != nullptr; }
};

/// One cuSPARSE: the linked one, or the one that --cusparse names.
struct CusparseLibrary {
  std::string version;              ///< 12.9.4
  std::string suffix;               ///< of baselines' names: @12.9; none for the linked one
  cusparseHandle_t handle = {};     ///< its own
  CusparseSpmvOpFunctions spmv_op;  ///< all null where the library has none

  decltype(&cusparseCreate) create = nullptr;
  decltype(&cusparseSetStream) set_stream = nullptr;
  decltype(&cusparseGetProperty) get_property = nullptr;
  decltype(&cusparseCreateCsr) create_csr = nullptr;
#if defined(TESSERA_BENCH_CUSPARSE_SELL)
  decltype(&cusparseCreateSlicedEll) create_sliced_ell = nullptr;
#endif
  decltype(&cusparseDestroySpMat) destroy_matrix = nullptr;
  decltype(&cusparseCreateDnVec) create_vector = nullptr;
  decltype(&cusparseDestroyDnVec) destroy_vector = nullptr;
  decltype(&cusparseSpMV) spmv = nullptr;
  decltype(&cusparseSpMV_bufferSize) spmv_buffer_size = nullptr;
#if CUSPARSE_VERSION >= 12300
  decltype(&cusparseSpMV_preprocess) spmv_preprocess = nullptr;
#endif
};

/// The one that this program is linked with.
const CusparseLibrary& linked_cusparse();
/// The linked one, then the loaded one if there is one.
std::vector<const CusparseLibrary*> cusparse_libraries();

}  // namespace Bench
}  // namespace Tessera

#endif
