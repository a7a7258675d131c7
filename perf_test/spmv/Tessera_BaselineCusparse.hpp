// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BASELINE_CUSPARSE_HPP
#define TESSERA_BASELINE_CUSPARSE_HPP

#include <cuda_runtime_api.h>
#include <cusparse.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>

#include "driver/Tessera_BaselineTypes.hpp"

/// \file
/// cuSPARSE's generic SpMV with its preprocessing call, on CSR and on sliced ELL. 16-bit operands are summed in FP32,
/// as Tessera does.

/// Sliced ELL came with CUDA 12.1 update 1.
#if CUSPARSE_VERSION >= 12100
#define TESSERA_BENCH_CUSPARSE_SELL 1
#endif

namespace Tessera {
namespace Bench {

template <class T>
constexpr cudaDataType cuda_type() {
  if constexpr (std::is_same_v<T, double>) return CUDA_R_64F;
  if constexpr (std::is_same_v<T, float>) return CUDA_R_32F;
  if constexpr (std::is_same_v<T, half_t>) return CUDA_R_16F;
  return CUDA_R_16BF;
}

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

/// The vectors, the workspace and the call; who derives from it describes the matrix.
template <class Operands>
class CusparseSpmv {
 public:
  using S = typename Operands::value_type;
  using Y = typename Operands::result_type;
  using Offset = typename Operands::offset_type;
  using Sum = std::conditional_t<std::is_same_v<S, double>, double, float>;

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

 protected:
  template <class T>
  using Array = Kokkos::View<T*, typename Operands::device_type>;

  static constexpr cusparseIndexType_t offset_index = sizeof(Offset) == 8 ? CUSPARSE_INDEX_64I : CUSPARSE_INDEX_32I;

  CusparseSpmv(const Operands& o, cusparseSpMVAlg_t algorithm)
      : o_(o), algorithm_(algorithm), alpha_(static_cast<Sum>(o.alpha)), beta_(static_cast<Sum>(o.beta)) {
    handle_ = shared_cusparse_handle();
    check(cusparseSetStream(handle_, static_cast<cudaStream_t>(Compat::native_stream(o.space))));
  }

  /// The last step of a constructor, when there is A_. Vectors come here and not before, so that the destructor of
  /// this class frees them whatever throws.
  void prepare() {
    check(cusparseCreateDnVec(&x_, o_.cols, o_.x.data(), cuda_type<S>()));
    check(cusparseCreateDnVec(&y_, o_.rows, o_.y.data(), cuda_type<Y>()));
    std::size_t bytes = 0;
    check(cusparseSpMV_bufferSize(handle_, CUSPARSE_OPERATION_NON_TRANSPOSE, &alpha_, A_, x_, &beta_, y_,
                                  cuda_type<Sum>(), algorithm_, &bytes));
    buffer_ = Array<char>("cuSPARSE", bytes);
#if CUSPARSE_VERSION >= 12300
    const cusparseStatus_t status = cusparseSpMV_preprocess(handle_, CUSPARSE_OPERATION_NON_TRANSPOSE, &alpha_, A_, x_,
                                                            &beta_, y_, cuda_type<Sum>(), algorithm_, buffer_.data());
    // Some formats have nothing to prepare: then the product itself still has to be supported, and apply() sees to it.
    if (status != CUSPARSE_STATUS_NOT_SUPPORTED) check(status);
#endif
  }

  static void check(cusparseStatus_t status) { cusparse_check(status); }

  Operands o_;
  cusparseSpMatDescr_t A_ = nullptr;

 private:
  cusparseSpMVAlg_t algorithm_;
  Sum alpha_, beta_;
  cusparseHandle_t handle_ = nullptr;
  cusparseDnVecDescr_t x_ = nullptr, y_ = nullptr;
  Array<char> buffer_;
};

/// On the caller's CSR arrays.
template <class Operands>
class CusparseCsr : public CusparseSpmv<Operands> {
  using Base = CusparseSpmv<Operands>;

 public:
  CusparseCsr(const Operands& o, cusparseSpMVAlg_t algorithm) : Base(o, algorithm) {
    Base::check(cusparseCreateCsr(&this->A_, o.rows, o.cols, static_cast<std::int64_t>(o.entries.extent(0)),
                                  this->o_.row_map.data(), this->o_.entries.data(), this->o_.values.data(),
                                  Base::offset_index, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
                                  cuda_type<typename Base::S>()));
    Base::prepare();
  }
};

template <class Operands>
Baseline make_cusparse_spmv(const Operands& o, cusparseSpMVAlg_t algorithm) {
  const auto spmv = std::make_shared<CusparseCsr<Operands>>(o, algorithm);
  Baseline b;
  b.apply = [spmv] { spmv->apply(); };
  b.backend = "cuda";
  b.kernel = algorithm == CUSPARSE_SPMV_CSR_ALG1 ? "SPMV_CSR_ALG1" : "SPMV_CSR_ALG2";
  b.workspace_bytes = static_cast<double>(spmv->buffer_bytes());
  b.why = "cuSPARSE, preprocessed";
  b.has_setup = true;
  return b;
}

#if defined(TESSERA_BENCH_CUSPARSE_SELL)
/// On sliced ELL, which cuSPARSE does not make itself. A slice stores the widest of its rows for all of them, column by
/// column. Converted on the host, as an application without a kernel of its own would.
template <class Operands>
class CusparseSell : public CusparseSpmv<Operands> {
  using Base = CusparseSpmv<Operands>;
  using S = typename Base::S;
  using Offset = typename Base::Offset;

 public:
  static constexpr int slice = 32;

  /// @throw NotSupported  for matrices that would store two slots an entry or more: rows too uneven for this format
  explicit CusparseSell(const Operands& o) : Base(o, CUSPARSE_SPMV_SELL_ALG1) {
    const auto row_map = host_copy(o.row_map);
    fill(row_map, slice_offsets(row_map));
    Base::check(cusparseCreateSlicedEll(&this->A_, o.rows, o.cols, static_cast<std::int64_t>(o.entries.extent(0)),
                                        slots_, slice, offsets_.data(), columns_.data(), values_.data(),
                                        Base::offset_index, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
                                        cuda_type<S>()));
    Base::prepare();
  }

  double format_bytes() const {
    return static_cast<double>(slots_) * (sizeof(S) + sizeof(int)) +
           static_cast<double>(offsets_.extent(0)) * sizeof(Offset);
  }
  /// Stored over entries, less 1.
  double padding_ratio() const {
    const auto entries = static_cast<double>(this->o_.entries.extent(0));
    return entries > 0 ? static_cast<double>(slots_) / entries - 1 : 0;
  }

 private:
  template <class T>
  using Array = typename Base::template Array<T>;

  template <class View>
  auto host_copy(const View& from) const {
    auto to = Kokkos::create_mirror_view(from);
    Kokkos::deep_copy(this->o_.space, to, from);
    Compat::fence(this->o_.space, "Tessera::bench sliced ELL");
    return to;
  }

  /// On the host, from the row lengths alone: most matrices that do not fit end here.
  template <class RowMap>
  auto slice_offsets(const RowMap& row_map) {
    const int rows = this->o_.rows;
    const int slices = rows / slice + (rows % slice != 0);
    offsets_ = Compat::allocate<Array<Offset>>(this->o_.space, "offsets", static_cast<std::size_t>(slices) + 1);
    const auto offsets = Kokkos::create_mirror_view(offsets_);
    offsets(0) = 0;
    for (int s = 0; s < slices; ++s) {
      Offset width = 0;
      const int height = std::min(slice, rows - s * slice);
      for (int row = s * slice; row < s * slice + height; ++row) {
        width = std::max(width, static_cast<Offset>(row_map(row + 1) - row_map(row)));
      }
      slots_ += static_cast<std::int64_t>(width) * slice;  // the last slice is stored in full
      offsets(s + 1) = static_cast<Offset>(slots_);
    }
    if (slots_ >= 2 * static_cast<std::int64_t>(this->o_.entries.extent(0))) {
      throw NotSupported("sliced ELL would store two slots an entry or more");
    }
    if (slots_ > static_cast<std::int64_t>(std::numeric_limits<Offset>::max())) {
      throw NotSupported("sliced ELL would store more slots than its offsets can count");
    }
    return offsets;
  }

  template <class RowMap, class Offsets>
  void fill(const RowMap& row_map, const Offsets& offsets) {
    const auto entries = host_copy(this->o_.entries);
    const auto from = host_copy(this->o_.values);
    columns_ = Compat::allocate<Array<int>>(this->o_.space, "columns", static_cast<std::size_t>(slots_));
    values_ = Compat::allocate<Array<S>>(this->o_.space, "values", static_cast<std::size_t>(slots_));
    const auto columns = Kokkos::create_mirror_view(columns_);
    const auto values = Kokkos::create_mirror_view(values_);
    Kokkos::deep_copy(columns, -1);  // how cuSPARSE marks a slot without an entry
    Kokkos::deep_copy(values, S(0));
    for (int row = 0; row < this->o_.rows; ++row) {
      auto at = static_cast<std::size_t>(offsets(row / slice)) + static_cast<std::size_t>(row % slice);
      for (Offset e = row_map(row); e < row_map(row + 1); ++e, at += slice) {
        columns(at) = entries(e);
        values(at) = from(e);
      }
    }
    Kokkos::deep_copy(this->o_.space, offsets_, offsets);
    Kokkos::deep_copy(this->o_.space, columns_, columns);
    Kokkos::deep_copy(this->o_.space, values_, values);
    Compat::fence(this->o_.space, "Tessera::bench sliced ELL");
  }

  std::int64_t slots_ = 0;
  Array<Offset> offsets_;
  Array<int> columns_;
  Array<S> values_;
};

template <class Operands>
Baseline make_cusparse_sell(const Operands& o) {
  const auto spmv = std::make_shared<CusparseSell<Operands>>(o);
  Baseline b;
  b.apply = [spmv] { spmv->apply(); };
  b.backend = "cuda";
  b.kernel = "SPMV_SELL_ALG1";
  b.workspace_bytes = static_cast<double>(spmv->buffer_bytes());
  b.format_bytes = spmv->format_bytes();
  b.padding_ratio = spmv->padding_ratio();
  b.why = "cuSPARSE, sliced ELL, slices of " + std::to_string(CusparseSell<Operands>::slice) + " rows";
  b.has_setup = true;
  return b;
}
#endif

}  // namespace Bench
}  // namespace Tessera

#endif
