// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "Tessera_Config.hpp"

#if defined(TESSERA_HAVE_CUDA)
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "spmv/Tessera_BaselineCusparse.hpp"

namespace Tessera {
namespace Bench {
namespace {

/// The vectors, the workspace and the call; who derives from it describes the matrix.
class CusparseSpmv {
 public:
  virtual ~CusparseSpmv() {
    if (y_ != nullptr) cusparseDestroyDnVec(y_);
    if (x_ != nullptr) cusparseDestroyDnVec(x_);
    if (A_ != nullptr) cusparseDestroySpMat(A_);
  }
  CusparseSpmv(const CusparseSpmv&) = delete;
  CusparseSpmv& operator=(const CusparseSpmv&) = delete;

  void apply() {
    cusparse_check(cusparseSpMV(handle_, CUSPARSE_OPERATION_NON_TRANSPOSE, alpha_.data(), A_, x_, beta_.data(), y_,
                                alpha_.type(), algorithm_, buffer_.data<void>()));
  }
  std::size_t buffer_bytes() const { return buffer_.size(); }

 protected:
  CusparseSpmv(const SpmvOperands& o, cusparseSpMVAlg_t algorithm)
      : o_(o), algorithm_(algorithm), alpha_(o.A.element, o.alpha), beta_(o.A.element, o.beta) {
    handle_ = shared_cusparse_handle();
    cusparse_check(cusparseSetStream(handle_, static_cast<cudaStream_t>(Compat::native_stream(o.A.space))));
  }

  /// The last step of a constructor, when there is A_. Vectors come here and not before, so that the destructor of
  /// this class frees them whatever throws.
  void prepare() {
    cusparse_check(cusparseCreateDnVec(&x_, o_.A.cols, o_.x.data<void>(), cuda_type(o_.A.element)));
    cusparse_check(cusparseCreateDnVec(&y_, o_.A.rows, o_.y.data<void>(), cuda_type(o_.y_type)));
    std::size_t bytes = 0;
    cusparse_check(cusparseSpMV_bufferSize(handle_, CUSPARSE_OPERATION_NON_TRANSPOSE, alpha_.data(), A_, x_,
                                           beta_.data(), y_, alpha_.type(), algorithm_, &bytes));
    buffer_ = DeviceArray("cuSPARSE", bytes, 1);
#if CUSPARSE_VERSION >= 12300
    const cusparseStatus_t status =
        cusparseSpMV_preprocess(handle_, CUSPARSE_OPERATION_NON_TRANSPOSE, alpha_.data(), A_, x_, beta_.data(), y_,
                                alpha_.type(), algorithm_, buffer_.data<void>());
    // Some formats have nothing to prepare: then the product itself still has to be supported, and apply() sees to it.
    if (status != CUSPARSE_STATUS_NOT_SUPPORTED) cusparse_check(status);
#endif
  }

  SpmvOperands o_;
  cusparseSpMatDescr_t A_ = nullptr;

 private:
  cusparseSpMVAlg_t algorithm_;
  CusparseScalar alpha_, beta_;
  cusparseHandle_t handle_ = nullptr;
  cusparseDnVecDescr_t x_ = nullptr, y_ = nullptr;
  DeviceArray buffer_;
};

class CusparseMatrix final : public CusparseSpmv {
 public:
  CusparseMatrix(const SpmvOperands& o, cusparseSpMatDescr_t matrix, cusparseSpMVAlg_t algorithm)
      : CusparseSpmv(o, algorithm) {
    A_ = matrix;
    prepare();
  }
};

}  // namespace

System make_cusparse_spmv(const SpmvOperands& o, cusparseSpMatDescr_t matrix, cusparseSpMVAlg_t algorithm,
                          const char* kernel) {
  const auto spmv = std::make_shared<CusparseMatrix>(o, matrix, algorithm);
  System b;
  b.apply = [spmv] { spmv->apply(); };
  b.backend = "cuda";
  b.kernel = kernel;
  b.workspace_bytes = static_cast<double>(spmv->buffer_bytes());
  b.why = "cuSPARSE, preprocessed";
  b.has_setup = true;
  return b;
}

System make_cusparse_spmv(const SpmvOperands& o, cusparseSpMVAlg_t algorithm) {
  return make_cusparse_spmv(o, cusparse_csr(o.A), algorithm,
                            algorithm == CUSPARSE_SPMV_CSR_ALG1 ? "SPMV_CSR_ALG1" : "SPMV_CSR_ALG2");
}

#if defined(TESSERA_BENCH_CUSPARSE_SELL)
namespace {

std::vector<char> host_copy(const Exec& space, const DeviceArray& from) {
  const auto to = Kokkos::create_mirror_view(from.bytes());
  Kokkos::deep_copy(space, to, from.bytes());
  Compat::fence(space, "Tessera::bench sliced ELL");
  return std::vector<char>(to.data(), to.data() + to.extent(0));
}

class CusparseSell final : public CusparseSpmv {
 public:
  static constexpr int slice = 32;

  explicit CusparseSell(const SpmvOperands& o) : CusparseSpmv(o, CUSPARSE_SPMV_SELL_ALG1) {
    const CsrOperand& A = o_.A;
    const std::vector<std::int64_t> row_map = host_row_map();
    const std::vector<std::int64_t> offsets = slice_offsets(row_map);
    fill(row_map, offsets);
    offsets_ = upload_offsets(A.space, offsets, A.offset_bits);
    cusparse_check(cusparseCreateSlicedEll(&A_, A.rows, A.cols, A.nnz(), slots_, slice, offsets_.data<void>(),
                                           columns_.data<void>(), values_.data<void>(), cusparse_offsets(A),
                                           CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, cuda_type(A.element)));
    prepare();
  }

  double format_bytes() const {
    return static_cast<double>(slots_) * static_cast<double>(bytes_of(o_.A.element) + sizeof(int)) +
           static_cast<double>(offsets_.bytes().extent(0));
  }
  /// Stored over entries, less 1.
  double padding_ratio() const {
    const auto entries = static_cast<double>(o_.A.nnz());
    return entries > 0 ? static_cast<double>(slots_) / entries - 1 : 0;
  }

 private:
  std::vector<std::int64_t> host_row_map() const {
    const std::vector<char> bytes = host_copy(o_.A.space, o_.A.row_map);
    std::vector<std::int64_t> row_map(o_.A.row_map.size());
    for (std::size_t i = 0; i < row_map.size(); ++i) {
      int narrow = 0;
      if (o_.A.offset_bits == 64) {
        std::memcpy(&row_map[i], bytes.data() + 8 * i, 8);
      } else {
        std::memcpy(&narrow, bytes.data() + 4 * i, 4);
        row_map[i] = narrow;
      }
    }
    return row_map;
  }

  /// On the host, from the row lengths alone: most matrices that do not fit end here.
  std::vector<std::int64_t> slice_offsets(const std::vector<std::int64_t>& row_map) {
    const int rows = o_.A.rows;
    std::vector<std::int64_t> offsets = {0};
    for (int first = 0; first < rows; first += slice) {
      std::int64_t width = 0;
      const int end = std::min(first + slice, rows);
      for (int row = first; row < end; ++row) width = std::max(width, row_map[row + 1] - row_map[row]);
      slots_ += width * slice;  // the last slice is stored in full
      offsets.push_back(slots_);
    }
    if (slots_ >= 2 * o_.A.nnz()) throw NotSupported("sliced ELL would store two slots per entry or more");
    if (o_.A.offset_bits == 32 && slots_ > std::numeric_limits<std::int32_t>::max()) {
      throw NotSupported("sliced ELL would store more slots than its offsets can count");
    }
    return offsets;
  }

  void fill(const std::vector<std::int64_t>& row_map, const std::vector<std::int64_t>& offsets) {
    const CsrOperand& A = o_.A;
    const std::vector<char> entries = host_copy(A.space, A.entries), from = host_copy(A.space, A.values);
    const std::size_t width = bytes_of(A.element);
    std::vector<int> columns(static_cast<std::size_t>(slots_), -1);  // how cuSPARSE marks a slot without an entry
    values_ = DeviceArray("values", static_cast<std::size_t>(slots_), width);
    const auto values = Kokkos::create_mirror_view(values_.bytes());
    std::memset(values.data(), 0, values.extent(0));
    for (int row = 0; row < A.rows; ++row) {
      auto at = static_cast<std::size_t>(offsets[row / slice]) + static_cast<std::size_t>(row % slice);
      for (std::int64_t e = row_map[row]; e < row_map[row + 1]; ++e, at += slice) {
        std::memcpy(&columns[at], entries.data() + sizeof(int) * static_cast<std::size_t>(e), sizeof(int));
        std::memcpy(values.data() + width * at, from.data() + width * static_cast<std::size_t>(e), width);
      }
    }
    columns_ = upload(A.space, "columns", columns);
    Kokkos::deep_copy(A.space, values_.bytes(), values);
    Compat::fence(A.space, "Tessera::bench sliced ELL");
  }

  std::int64_t slots_ = 0;
  DeviceArray offsets_, columns_, values_;
};

}  // namespace

System make_cusparse_sell(const SpmvOperands& o) {
  const auto spmv = std::make_shared<CusparseSell>(o);
  System b;
  b.apply = [spmv] { spmv->apply(); };
  b.backend = "cuda";
  b.kernel = "SPMV_SELL_ALG1";
  b.workspace_bytes = static_cast<double>(spmv->buffer_bytes());
  b.format_bytes = spmv->format_bytes();
  b.padding_ratio = spmv->padding_ratio();
  b.why = "cuSPARSE, sliced ELL, slices of " + std::to_string(CusparseSell::slice) + " rows";
  b.has_setup = true;
  return b;
}
#endif

}  // namespace Bench
}  // namespace Tessera
#endif
