// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BASELINE_CUSPARSE_HPP
#define TESSERA_BASELINE_CUSPARSE_HPP

#include <cuda_runtime_api.h>
#include <cusparse.h>

#include <memory>
#include <string>
#include <type_traits>

#include "Tessera_BaselineTypes.hpp"

/// \file
/// cuSPARSE's generic SpMV on CSR with its preprocessing call. 16-bit operands are summed in FP32, as Tessera does.

namespace Tessera {
namespace Bench {

template <class T>
constexpr cudaDataType cuda_type() {
  if constexpr (std::is_same_v<T, double>) return CUDA_R_64F;
  if constexpr (std::is_same_v<T, float>) return CUDA_R_32F;
  if constexpr (std::is_same_v<T, half_t>) return CUDA_R_16F;
  return CUDA_R_16BF;
}

template <class Operands>
class CusparseSpmv {
 public:
  using S = typename Operands::value_type;
  using Y = typename Operands::result_type;
  using Sum = std::conditional_t<std::is_same_v<S, double>, double, float>;

  CusparseSpmv(const Operands& o, cusparseSpMVAlg_t algorithm)
      : o_(o), algorithm_(algorithm), alpha_(static_cast<Sum>(o.alpha)), beta_(static_cast<Sum>(o.beta)) {
    handle_ = shared_handle();
    check(cusparseSetStream(handle_, static_cast<cudaStream_t>(Compat::native_stream(o.space))));
    constexpr cusparseIndexType_t offsets =
        sizeof(typename Operands::offset_type) == 8 ? CUSPARSE_INDEX_64I : CUSPARSE_INDEX_32I;
    check(cusparseCreateCsr(&A_, o.rows, o.cols, static_cast<std::int64_t>(o.entries.extent(0)), o_.row_map.data(),
                            o_.entries.data(), o_.values.data(), offsets, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
                            cuda_type<S>()));
    check(cusparseCreateDnVec(&x_, o.cols, o_.x.data(), cuda_type<S>()));
    check(cusparseCreateDnVec(&y_, o.rows, o_.y.data(), cuda_type<Y>()));
    std::size_t bytes = 0;
    check(cusparseSpMV_bufferSize(handle_, CUSPARSE_OPERATION_NON_TRANSPOSE, &alpha_, A_, x_, &beta_, y_,
                                  cuda_type<Sum>(), algorithm_, &bytes));
    buffer_ = decltype(buffer_)("cuSPARSE", bytes);
#if CUSPARSE_VERSION >= 12300
    check(cusparseSpMV_preprocess(handle_, CUSPARSE_OPERATION_NON_TRANSPOSE, &alpha_, A_, x_, &beta_, y_,
                                  cuda_type<Sum>(), algorithm_, buffer_.data()));
#endif
  }
  ~CusparseSpmv() {
    if (y_ != nullptr) cusparseDestroyDnVec(y_);
    if (x_ != nullptr) cusparseDestroyDnVec(x_);
    if (A_ != nullptr) cusparseDestroySpMat(A_);
  }
  CusparseSpmv(const CusparseSpmv&) = delete;
  CusparseSpmv& operator=(const CusparseSpmv&) = delete;

  void apply() {
    check(cusparseSpMV(handle_, CUSPARSE_OPERATION_NON_TRANSPOSE, &alpha_, A_, x_, &beta_, y_, cuda_type<Sum>(),
                       algorithm_, buffer_.data()));
  }
  std::size_t buffer_bytes() const { return buffer_.extent(0); }

 private:
  /// One for the program: an application makes it once, so that it is no part of a matrix's set-up.
  static cusparseHandle_t shared_handle() {
    static const cusparseHandle_t handle = [] {
      cusparseHandle_t h = nullptr;
      check(cusparseCreate(&h));
      return h;
    }();
    return handle;
  }
  static void check(cusparseStatus_t status) {
    if (status == CUSPARSE_STATUS_SUCCESS) return;
    const std::string text = std::string("cuSPARSE: ") + cusparseGetErrorString(status);
    if (status == CUSPARSE_STATUS_NOT_SUPPORTED) throw NotSupported(text);
    throw DeviceError(text);
  }

  Operands o_;
  cusparseSpMVAlg_t algorithm_;
  Sum alpha_, beta_;
  cusparseHandle_t handle_ = nullptr;
  cusparseSpMatDescr_t A_ = nullptr;
  cusparseDnVecDescr_t x_ = nullptr, y_ = nullptr;
  Kokkos::View<char*, typename Operands::device_type> buffer_;
};

template <class Operands>
Baseline make_cusparse_spmv(const Operands& o, cusparseSpMVAlg_t algorithm) {
  const auto spmv = std::make_shared<CusparseSpmv<Operands>>(o, algorithm);
  Baseline b;
  b.apply = [spmv] { spmv->apply(); };
  b.backend = "cuda";
  b.kernel = algorithm == CUSPARSE_SPMV_CSR_ALG1 ? "SPMV_CSR_ALG1" : "SPMV_CSR_ALG2";
  b.workspace_bytes = static_cast<double>(spmv->buffer_bytes());
  b.why = "cuSPARSE, preprocessed";
  b.has_setup = true;
  return b;
}

}  // namespace Bench
}  // namespace Tessera

#endif
