// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "Tessera_Config.hpp"

#if defined(TESSERA_HAVE_CUDA)
#include <memory>

#include "sddmm/Tessera_BenchSddmm.hpp"
#include "spmv/Tessera_BaselineCusparse.hpp"

namespace Tessera {
namespace Bench {
namespace {

class CusparseSddmm {
 public:
  explicit CusparseSddmm(const SddmmOperands& o) : o_(o), alpha_(o.S.element, o.alpha), beta_(o.S.element, o.beta) {
    try {
      make();
    } catch (...) {
      release();
      throw;
    }
  }
  ~CusparseSddmm() { release(); }
  CusparseSddmm(const CusparseSddmm&) = delete;
  CusparseSddmm& operator=(const CusparseSddmm&) = delete;

  void apply() {
    cusparse_check(cusparseSDDMM(handle_, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_TRANSPOSE, alpha_.data(),
                                 X_, Y_, beta_.data(), P_, alpha_.type(), CUSPARSE_SDDMM_ALG_DEFAULT,
                                 buffer_.data<void>()));
  }
  std::size_t buffer_bytes() const { return buffer_.size(); }

 private:
  cusparseDnMatDescr_t dense(const DenseElements& v) const {
    cusparseDnMatDescr_t descriptor = nullptr;
    cusparse_check(
        cusparseCreateDnMat(&descriptor, v.rows, v.columns, v.columns, v.data, cuda_type(v.type), CUSPARSE_ORDER_ROW));
    return descriptor;
  }
  void make() {
    handle_ = shared_cusparse_handle();
    cusparse_check(cusparseSetStream(handle_, static_cast<cudaStream_t>(Compat::native_stream(o_.S.space))));
    X_ = dense(o_.x_elements());
    Y_ = dense(o_.y_elements());
    cusparse_check(cusparseCreateCsr(&P_, o_.S.rows, o_.S.cols, o_.S.nnz(), o_.S.row_map.data<void>(),
                                     o_.S.entries.data<void>(), o_.P.data<void>(), cusparse_offsets(o_.S),
                                     CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, cuda_type(o_.p_type)));
    std::size_t bytes = 0;
    cusparse_check(cusparseSDDMM_bufferSize(handle_, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_TRANSPOSE,
                                            alpha_.data(), X_, Y_, beta_.data(), P_, alpha_.type(),
                                            CUSPARSE_SDDMM_ALG_DEFAULT, &bytes));
    buffer_ = DeviceArray("cuSPARSE", bytes, 1);
    cusparse_check(cusparseSDDMM_preprocess(handle_, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_TRANSPOSE,
                                            alpha_.data(), X_, Y_, beta_.data(), P_, alpha_.type(),
                                            CUSPARSE_SDDMM_ALG_DEFAULT, buffer_.data<void>()));
  }
  void release() {
    if (P_ != nullptr) cusparseDestroySpMat(P_);
    if (Y_ != nullptr) cusparseDestroyDnMat(Y_);
    if (X_ != nullptr) cusparseDestroyDnMat(X_);
    P_ = nullptr;
    X_ = Y_ = nullptr;
  }

  SddmmOperands o_;
  CusparseScalar alpha_, beta_;
  cusparseHandle_t handle_ = nullptr;
  cusparseSpMatDescr_t P_ = nullptr;
  cusparseDnMatDescr_t X_ = nullptr, Y_ = nullptr;
  DeviceArray buffer_;
};

}  // namespace

System make_cusparse_sddmm(const SddmmOperands& o) {
  const auto sddmm = std::make_shared<CusparseSddmm>(o);
  System b;
  b.apply = [sddmm] { sddmm->apply(); };
  b.backend = "cuda";
  b.kernel = "SDDMM_ALG_DEFAULT";
  b.workspace_bytes = static_cast<double>(sddmm->buffer_bytes());
  b.why = "cuSPARSE, preprocessed";
  b.has_setup = true;
  return b;
}

}  // namespace Bench
}  // namespace Tessera
#endif
