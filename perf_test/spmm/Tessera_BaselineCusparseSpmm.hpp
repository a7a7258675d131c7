// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BASELINE_CUSPARSE_SPMM_HPP
#define TESSERA_BASELINE_CUSPARSE_SPMM_HPP

#include <memory>
#include <string>
#include <type_traits>

#include "spmv/Tessera_BaselineCusparse.hpp"

/// \file
/// cuSPARSE's generic SpMM on the caller's CSR arrays, with its preprocessing call; B and C in the caller's layout.
/// 16-bit operands are summed in FP32, as Tessera does.

namespace Tessera {
namespace Bench {

template <class Operands>
class CusparseSpmm {
 public:
  using S = typename Operands::value_type;
  using Y = typename Operands::result_type;
  using Offset = typename Operands::offset_type;
  using Sum = std::conditional_t<std::is_same_v<S, double>, double, float>;

  CusparseSpmm(const Operands& o, cusparseSpMMAlg_t algorithm)
      : o_(o), algorithm_(algorithm), alpha_(static_cast<Sum>(o.alpha)), beta_(static_cast<Sum>(o.beta)) {
    try {
      make();
    } catch (...) {
      release();
      throw;
    }
  }
  ~CusparseSpmm() { release(); }
  CusparseSpmm(const CusparseSpmm&) = delete;
  CusparseSpmm& operator=(const CusparseSpmm&) = delete;

  void apply() {
    cusparse_check(cusparseSpMM(handle_, no_transpose, no_transpose, &alpha_, A_, B_, &beta_, C_, cuda_type<Sum>(),
                                algorithm_, buffer_.data()));
  }
  std::size_t buffer_bytes() const { return buffer_.extent(0); }

 private:
  static constexpr cusparseOperation_t no_transpose = CUSPARSE_OPERATION_NON_TRANSPOSE;

  template <class View>
  static cusparseDnMatDescr_t dense(const View& v) {
    constexpr bool right = std::is_same_v<typename Operands::layout, Kokkos::LayoutRight>;
    cusparseDnMatDescr_t descriptor = nullptr;
    const auto rows = static_cast<std::int64_t>(v.extent(0)), cols = static_cast<std::int64_t>(v.extent(1));
    const auto ld = static_cast<std::int64_t>(right ? v.stride(0) : v.stride(1));
    cusparse_check(cusparseCreateDnMat(&descriptor, rows, cols, ld, v.data(),
                                       cuda_type<typename View::non_const_value_type>(),
                                       right ? CUSPARSE_ORDER_ROW : CUSPARSE_ORDER_COL));
    return descriptor;
  }

  void make() {
    constexpr auto offsets = sizeof(Offset) == 8 ? CUSPARSE_INDEX_64I : CUSPARSE_INDEX_32I;
    handle_ = shared_cusparse_handle();
    cusparse_check(cusparseSetStream(handle_, static_cast<cudaStream_t>(Compat::native_stream(o_.space))));
    cusparse_check(cusparseCreateCsr(&A_, o_.rows, o_.cols, static_cast<std::int64_t>(o_.entries.extent(0)),
                                     o_.row_map.data(), o_.entries.data(), o_.values.data(), offsets,
                                     CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, cuda_type<S>()));
    B_ = dense(o_.B);
    C_ = dense(o_.C);
    std::size_t bytes = 0;
    cusparse_check(cusparseSpMM_bufferSize(handle_, no_transpose, no_transpose, &alpha_, A_, B_, &beta_, C_,
                                           cuda_type<Sum>(), algorithm_, &bytes));
    buffer_ = decltype(buffer_)("cuSPARSE", bytes);
#if CUSPARSE_VERSION >= 12000
    const cusparseStatus_t status = cusparseSpMM_preprocess(handle_, no_transpose, no_transpose, &alpha_, A_, B_,
                                                            &beta_, C_, cuda_type<Sum>(), algorithm_, buffer_.data());
    // Some algorithms have nothing to prepare: then the product itself still has to be supported; apply() sees to it.
    if (status != CUSPARSE_STATUS_NOT_SUPPORTED) cusparse_check(status);
#endif
  }

  void release() {
    if (C_ != nullptr) cusparseDestroyDnMat(C_);
    if (B_ != nullptr) cusparseDestroyDnMat(B_);
    if (A_ != nullptr) cusparseDestroySpMat(A_);
    A_ = nullptr;
    B_ = C_ = nullptr;
  }

  Operands o_;
  cusparseSpMMAlg_t algorithm_;
  Sum alpha_, beta_;
  cusparseHandle_t handle_ = nullptr;
  cusparseSpMatDescr_t A_ = nullptr;
  cusparseDnMatDescr_t B_ = nullptr, C_ = nullptr;
  Kokkos::View<char*, typename Operands::device_type> buffer_;
};

template <class Operands>
Baseline make_cusparse_spmm(const Operands& o, cusparseSpMMAlg_t algorithm, const char* name) {
  const auto spmm = std::make_shared<CusparseSpmm<Operands>>(o, algorithm);
  Baseline b;
  b.apply = [spmm] { spmm->apply(); };
  b.backend = "cuda";
  b.kernel = name;
  b.workspace_bytes = static_cast<double>(spmm->buffer_bytes());
  b.why = "cuSPARSE, preprocessed";
  b.has_setup = true;
  return b;
}

}  // namespace Bench
}  // namespace Tessera

#endif
