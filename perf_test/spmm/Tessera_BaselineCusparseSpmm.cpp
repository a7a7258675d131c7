// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "Tessera_Config.hpp"

#if defined(TESSERA_HAVE_CUDA)
#include <memory>

#include "spmm/Tessera_BaselineCusparseSpmm.hpp"

namespace Tessera {
namespace Bench {
namespace {

class CusparseSpmm {
 public:
  CusparseSpmm(const SpmmOperands& o, cusparseSpMMAlg_t algorithm)
      : o_(o), algorithm_(algorithm), alpha_(o.A.element, o.alpha), beta_(o.A.element, o.beta) {
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
    cusparse_check(cusparseSpMM(handle_, no_transpose, no_transpose, alpha_.data(), A_, B_, beta_.data(), C_,
                                alpha_.type(), algorithm_, buffer_.data<void>()));
  }
  std::size_t buffer_bytes() const { return buffer_.size(); }

 private:
  static constexpr cusparseOperation_t no_transpose = CUSPARSE_OPERATION_NON_TRANSPOSE;

  static cusparseDnMatDescr_t dense(const DenseElements& v, bool layout_left) {
    cusparseDnMatDescr_t descriptor = nullptr;
    cusparse_check(cusparseCreateDnMat(&descriptor, v.rows, v.columns, layout_left ? v.column_stride : v.row_stride,
                                       v.data, cuda_type(v.type),
                                       layout_left ? CUSPARSE_ORDER_COL : CUSPARSE_ORDER_ROW));
    return descriptor;
  }

  void make() {
    handle_ = shared_cusparse_handle();
    cusparse_check(cusparseSetStream(handle_, static_cast<cudaStream_t>(Compat::native_stream(o_.A.space))));
    A_ = cusparse_csr(o_.A);
    B_ = dense(o_.b_elements(), o_.layout_left);
    C_ = dense(o_.c_elements(), o_.layout_left);
    std::size_t bytes = 0;
    cusparse_check(cusparseSpMM_bufferSize(handle_, no_transpose, no_transpose, alpha_.data(), A_, B_, beta_.data(), C_,
                                           alpha_.type(), algorithm_, &bytes));
    buffer_ = DeviceArray("cuSPARSE", bytes, 1);
#if CUSPARSE_VERSION >= 12000
    const cusparseStatus_t status =
        cusparseSpMM_preprocess(handle_, no_transpose, no_transpose, alpha_.data(), A_, B_, beta_.data(), C_,
                                alpha_.type(), algorithm_, buffer_.data<void>());
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

  SpmmOperands o_;
  cusparseSpMMAlg_t algorithm_;
  CusparseScalar alpha_, beta_;
  cusparseHandle_t handle_ = nullptr;
  cusparseSpMatDescr_t A_ = nullptr;
  cusparseDnMatDescr_t B_ = nullptr, C_ = nullptr;
  DeviceArray buffer_;
};

}  // namespace

System make_cusparse_spmm(const SpmmOperands& o, cusparseSpMMAlg_t algorithm, const char* name) {
  const auto spmm = std::make_shared<CusparseSpmm>(o, algorithm);
  System b;
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
