// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "Tessera_Config.hpp"

#if defined(TESSERA_HAVE_CUDA)
#include <memory>

#include "spgemm/Tessera_BenchSpgemm.hpp"
#include "spmv/Tessera_BaselineCusparse.hpp"

namespace Tessera {
namespace Bench {
namespace {

/// The generic product of cuSPARSE, from the descriptors on: work is estimated, C counted and written, as an
/// application that has A and B and no C does it.
class CusparseSpgemm {
 public:
  CusparseSpgemm(const SpgemmOperands& o, cusparseSpGEMMAlg_t algorithm)
      : o_(o), algorithm_(algorithm), one_(o.A.element, 1), zero_(o.A.element, 0) {}

  void apply() {
    *o_.C = {};
    Descriptors d;
    d.A = cusparse_csr(o_.A);
    d.B = cusparse_csr(o_.B);
    o_.C->row_map = DeviceArray("C row_map", static_cast<std::size_t>(o_.A.rows) + 1, sizeof(int));
    cusparse_check(cusparseCreateCsr(&d.C, o_.A.rows, o_.B.cols, 0, o_.C->row_map.data<void>(), nullptr, nullptr,
                                     CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
                                     cuda_type(o_.A.element)));
    cusparse_check(cusparseSpGEMM_createDescr(&d.work));
    const cusparseHandle_t handle = shared_cusparse_handle();
    cusparse_check(cusparseSetStream(handle, static_cast<cudaStream_t>(Compat::native_stream(o_.A.space))));
    const DeviceArray estimate = filled([&](std::size_t* bytes, void* buffer) {
      return cusparseSpGEMM_workEstimation(handle, none, none, one_.data(), d.A, d.B, zero_.data(), d.C, one_.type(),
                                           algorithm_, d.work, bytes, buffer);
    });
    const auto compute = [&](std::size_t* size, void* buffer) {
      return cusparseSpGEMM_compute(handle, none, none, one_.data(), d.A, d.B, zero_.data(), d.C, one_.type(),
                                    algorithm_, d.work, size, buffer);
    };
    DeviceArray products;  // until C is written
    if (algorithm_ == CUSPARSE_SPGEMM_ALG1) {
      products = filled(compute);
    } else {
      std::size_t bytes = estimated(handle, d);
      products = DeviceArray("cuSPARSE", bytes, 1);
      cusparse_check(compute(&bytes, products.data<void>()));
    }
    write(handle, d);
  }

 private:
  static constexpr cusparseOperation_t none = CUSPARSE_OPERATION_NON_TRANSPOSE;
  struct Descriptors {
    cusparseSpMatDescr_t A = nullptr, B = nullptr, C = nullptr;
    cusparseSpGEMMDescr_t work = nullptr;
    Descriptors() = default;
    Descriptors(const Descriptors&) = delete;
    Descriptors& operator=(const Descriptors&) = delete;
    ~Descriptors() {
      if (work != nullptr) cusparseSpGEMM_destroyDescr(work);
      for (const auto matrix : {A, B, C}) {
        if (matrix != nullptr) cusparseDestroySpMat(matrix);
      }
    }
  };
  /// Asks for the bytes, then runs in as many.
  template <class F>
  static DeviceArray filled(const F& f) {
    std::size_t bytes = 0;
    cusparse_check(f(&bytes, nullptr));
    DeviceArray buffer("cuSPARSE", bytes, 1);
    cusparse_check(f(&bytes, buffer.data<void>()));
    return buffer;
  }
  /// Bytes of compute() in one piece.
  std::size_t estimated(cusparseHandle_t handle, const Descriptors& d) const {
    constexpr float whole = 1.0F;
    std::size_t more = 0, bytes = 0;
    const auto ask = [&](void* buffer, std::size_t* compute_bytes) {
      cusparse_check(cusparseSpGEMM_estimateMemory(handle, none, none, one_.data(), d.A, d.B, zero_.data(), d.C,
                                                   one_.type(), algorithm_, d.work, whole, &more, buffer,
                                                   compute_bytes));
    };
    ask(nullptr, nullptr);
    const DeviceArray buffer("cuSPARSE", more, 1);
    ask(buffer.data<void>(), &bytes);
    return bytes;
  }
  void write(cusparseHandle_t handle, const Descriptors& d) const {
    std::int64_t rows = 0, cols = 0, nnz = 0;
    cusparse_check(cusparseSpMatGetSize(d.C, &rows, &cols, &nnz));
    o_.C->entries = DeviceArray("C entries", static_cast<std::size_t>(nnz), sizeof(int));
    o_.C->values = DeviceArray("C values", static_cast<std::size_t>(nnz), bytes_of(o_.A.element));
    cusparse_check(
        cusparseCsrSetPointers(d.C, o_.C->row_map.data<void>(), o_.C->entries.data<void>(), o_.C->values.data<void>()));
    cusparse_check(cusparseSpGEMM_copy(handle, none, none, one_.data(), d.A, d.B, zero_.data(), d.C, one_.type(),
                                       algorithm_, d.work));
    Compat::fence(o_.A.space, "Tessera::bench spgemm");
    o_.C->sorted = false;
  }

  SpgemmOperands o_;
  cusparseSpGEMMAlg_t algorithm_;
  CusparseScalar one_, zero_;
};

}  // namespace

System make_cusparse_spgemm(const SpgemmOperands& o, int algorithm) {
  constexpr cusparseSpGEMMAlg_t all[] = {CUSPARSE_SPGEMM_ALG1, CUSPARSE_SPGEMM_ALG2, CUSPARSE_SPGEMM_ALG3};
  const auto spgemm = std::make_shared<CusparseSpgemm>(o, all[algorithm - 1]);
  System b;
  b.apply = [spgemm] { spgemm->apply(); };
  b.backend = "cuda";
  b.kernel = "SPGEMM_ALG" + std::to_string(algorithm);
  b.why = "cuSPARSE, from the descriptors to C";
  return b;
}

}  // namespace Bench
}  // namespace Tessera
#endif
