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

constexpr cusparseOperation_t not_transposed = CUSPARSE_OPERATION_NON_TRANSPOSE;

/// The library, the vectors, the scalars and the workspace; who derives from it describes the matrix and has the call.
class CusparseProduct {
 public:
  virtual ~CusparseProduct() {
    if (y_ != nullptr) library_.destroy_vector(y_);
    if (x_ != nullptr) library_.destroy_vector(x_);
    if (A_ != nullptr) library_.destroy_matrix(A_);
  }
  CusparseProduct(const CusparseProduct&) = delete;
  CusparseProduct& operator=(const CusparseProduct&) = delete;

  /// What all of them report.
  template <class Product>
  static System system(const std::shared_ptr<Product>& product, const char* kernel, const std::string& how) {
    System b;
    b.apply = [product] { product->apply(); };
    b.backend = "cuda";
    b.kernel = kernel;
    b.workspace_bytes = static_cast<double>(product->buffer_.size());
    b.why = "cuSPARSE " + product->library_.version + ", " + how;
    b.has_setup = true;
    return b;
  }

 protected:
  CusparseProduct(const CusparseLibrary& library, const SpmvOperands& o)
      : library_(library), o_(o), handle_(library.handle), alpha_(o.A.element, o.alpha), beta_(o.A.element, o.beta) {
    cusparse_check(library_.set_stream(handle_, static_cast<cudaStream_t>(Compat::native_stream(o.A.space))));
  }

  /// Vectors come here and not before, so that the destructor of this class frees them whatever throws.
  void make_vectors() {
    cusparse_check(library_.create_vector(&x_, o_.A.cols, o_.x.data<void>(), cuda_type(o_.A.element)));
    cusparse_check(library_.create_vector(&y_, o_.A.rows, o_.y.data<void>(), cuda_type(o_.y_type)));
  }
  /// A_ on the caller's CSR arrays.
  void make_csr() {
    const CsrOperand& A = o_.A;
    cusparse_check(library_.create_csr(&A_, A.rows, A.cols, A.nnz(), A.row_map.data<void>(), A.entries.data<void>(),
                                       A.values.data<void>(), cusparse_offsets(A), CUSPARSE_INDEX_32I,
                                       CUSPARSE_INDEX_BASE_ZERO, cuda_type(A.element)));
  }
  void make_buffer(std::size_t bytes) { buffer_ = DeviceArray("cuSPARSE", bytes, 1); }

  const CusparseLibrary& library_;
  SpmvOperands o_;
  cusparseHandle_t handle_;
  CusparseScalar alpha_, beta_;
  cusparseSpMatDescr_t A_ = nullptr;
  cusparseDnVecDescr_t x_ = nullptr, y_ = nullptr;
  DeviceArray buffer_;
};

/// cusparseSpMV.
class CusparseSpmv : public CusparseProduct {
 public:
  void apply() {
    cusparse_check(library_.spmv(handle_, not_transposed, alpha_.data(), A_, x_, beta_.data(), y_, alpha_.type(),
                                 algorithm_, buffer_.data<void>()));
  }

 protected:
  CusparseSpmv(const CusparseLibrary& library, const SpmvOperands& o, cusparseSpMVAlg_t algorithm)
      : CusparseProduct(library, o), algorithm_(algorithm) {}

  /// The last step of a constructor, when there is A_.
  void prepare() {
    make_vectors();
    std::size_t bytes = 0;
    cusparse_check(library_.spmv_buffer_size(handle_, not_transposed, alpha_.data(), A_, x_, beta_.data(), y_,
                                             alpha_.type(), algorithm_, &bytes));
    make_buffer(bytes);
#if CUSPARSE_VERSION >= 12300
    const cusparseStatus_t status =
        library_.spmv_preprocess(handle_, not_transposed, alpha_.data(), A_, x_, beta_.data(), y_, alpha_.type(),
                                 algorithm_, buffer_.data<void>());
    // Some formats have nothing to prepare: then the product itself still has to be supported, and apply() sees to it.
    if (status != CUSPARSE_STATUS_NOT_SUPPORTED) cusparse_check(status);
#endif
  }

 private:
  cusparseSpMVAlg_t algorithm_;
};

class CusparseMatrix final : public CusparseSpmv {
 public:
  CusparseMatrix(const CusparseLibrary& library, const SpmvOperands& o, cusparseSpMVAlg_t algorithm)
      : CusparseSpmv(library, o, algorithm) {
    make_csr();
    prepare();
  }
  CusparseMatrix(const SpmvOperands& o, cusparseSpMatDescr_t matrix, cusparseSpMVAlg_t algorithm)
      : CusparseSpmv(linked_cusparse(), o, algorithm) {
    A_ = matrix;
    prepare();
  }
};

/// cusparseSpMVOp, y in place.
class CusparseSpmvOp final : public CusparseProduct {
 public:
  CusparseSpmvOp(const CusparseLibrary& library, const SpmvOperands& o, CusparseSpmvOpFunctions::Algorithm algorithm)
      : CusparseProduct(library, o), plan_{library.spmv_op} {
    if (!library.spmv_op.complete()) throw NotSupported("cuSPARSE " + library.version + " has no SpMVOp");
    make_csr();
    make_vectors();
    const CusparseSpmvOpFunctions& f = library.spmv_op;
    std::size_t bytes = 0;
    cusparse_check(f.buffer_size(handle_, not_transposed, A_, x_, y_, y_, alpha_.type(), algorithm, &bytes));
    make_buffer(bytes);
    cusparse_check(f.create_description(handle_, &plan_.description, not_transposed, A_, x_, y_, y_, alpha_.type(),
                                        algorithm, buffer_.data<void>()));
    cusparse_check(f.create_plan(handle_, plan_.description, &plan_.plan, nullptr, 0));
  }
  void apply() { cusparse_check(library_.spmv_op.apply(handle_, plan_.plan, alpha_.data(), beta_.data(), x_, y_, y_)); }

 private:
  /// Freed before what it refers to, whatever throws.
  struct Plan {
    const CusparseSpmvOpFunctions& functions;
    void *description = nullptr, *plan = nullptr;
    ~Plan() {
      if (plan != nullptr) functions.destroy_plan(plan);
      if (description != nullptr) functions.destroy_description(description);
    }
  };
  Plan plan_;
};

}  // namespace

System make_cusparse_spmv(const SpmvOperands& o, cusparseSpMatDescr_t matrix, cusparseSpMVAlg_t algorithm,
                          const char* kernel) {
  return CusparseProduct::system(std::make_shared<CusparseMatrix>(o, matrix, algorithm), kernel, "preprocessed");
}

System make_cusparse_spmv(const CusparseLibrary& library, const SpmvOperands& o, cusparseSpMVAlg_t algorithm) {
  return CusparseProduct::system(std::make_shared<CusparseMatrix>(library, o, algorithm),
                                 algorithm == CUSPARSE_SPMV_CSR_ALG1 ? "SPMV_CSR_ALG1" : "SPMV_CSR_ALG2",
                                 "preprocessed");
}

System make_cusparse_spmv_op(const CusparseLibrary& library, const SpmvOperands& o,
                             CusparseSpmvOpFunctions::Algorithm algorithm) {
  const char* const kernels[] = {"SPMVOP_ALG_DEFAULT", "SPMVOP_ALG1", "SPMVOP_ALG2"};
  return CusparseProduct::system(std::make_shared<CusparseSpmvOp>(library, o, algorithm), kernels[algorithm],
                                 "a plan kept");
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

  CusparseSell(const CusparseLibrary& library, const SpmvOperands& o)
      : CusparseSpmv(library, o, CUSPARSE_SPMV_SELL_ALG1) {
    const CsrOperand& A = o_.A;
    const std::vector<std::int64_t> row_map = host_row_map();
    const std::vector<std::int64_t> offsets = slice_offsets(row_map);
    fill(row_map, offsets);
    offsets_ = upload_offsets(A.space, offsets, A.offset_bits);
    cusparse_check(library_.create_sliced_ell(&A_, A.rows, A.cols, A.nnz(), slots_, slice, offsets_.data<void>(),
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

System make_cusparse_sell(const CusparseLibrary& library, const SpmvOperands& o) {
  const auto spmv = std::make_shared<CusparseSell>(library, o);
  System b = CusparseProduct::system(spmv, "SPMV_SELL_ALG1",
                                     "sliced ELL, slices of " + std::to_string(CusparseSell::slice) + " rows");
  b.format_bytes = spmv->format_bytes();
  b.padding_ratio = spmv->padding_ratio();
  return b;
}
#endif

}  // namespace Bench
}  // namespace Tessera
#endif
