// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BENCH_OPERANDS_HPP
#define TESSERA_BENCH_OPERANDS_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "Tessera_BsrView.hpp"
#include "Tessera_CsrView.hpp"
#include "Tessera_Types.hpp"

/// \file
/// Operands on the device whose element types are known at run time, so that uploading, filling and checking them is
/// compiled once. Only plans and baselines see the types.

namespace Tessera {
namespace Bench {

using Exec = Kokkos::DefaultExecutionSpace;
using Device = Exec::device_type;

/// Offsets of 64 bits: what Kokkos Kernels' matrices have unless they are asked for others.
using WideOffset = std::size_t;

constexpr KOKKOS_INLINE_FUNCTION std::size_t bytes_of(ElementType type) {
  return type == ElementType::Double ? 8 : type == ElementType::Float ? 4 : 2;
}

/// Rounded to the type and back. Inline for kernels.
KOKKOS_INLINE_FUNCTION double rounded(double value, ElementType type) {
  switch (type) {
    case ElementType::Float:
      return static_cast<double>(static_cast<float>(value));
    case ElementType::Half:
      return static_cast<double>(static_cast<half_t>(value));
    case ElementType::BHalf:
      return static_cast<double>(static_cast<bhalf_t>(value));
    default:
      return value;
  }
}

/// An array on the device.
class DeviceArray {
 public:
  DeviceArray() = default;
  DeviceArray(const char* name, std::size_t size, std::size_t element_bytes)
      : bytes_(Kokkos::view_alloc(Kokkos::WithoutInitializing, std::string(name)), size * element_bytes), size_(size) {}
  /// Another's, which must stay alive.
  template <class View>
  explicit DeviceArray(const View& view)
      : bytes_(reinterpret_cast<char*>(const_cast<typename View::non_const_value_type*>(view.data())),
               view.extent(0) * sizeof(typename View::value_type)),
        size_(view.extent(0)) {}

  std::size_t size() const { return size_; }
  const Kokkos::View<char*, Device>& bytes() const { return bytes_; }
  template <class T>
  T* data() const {
    return reinterpret_cast<T*>(bytes_.data());
  }
  /// Does not keep the array alive.
  template <class T>
  Kokkos::View<T*, Device> view() const {
    return Kokkos::View<T*, Device>(data<T>(), size_);
  }

 private:
  Kokkos::View<char*, Device> bytes_;
  std::size_t size_ = 0;
};

/// Each value rounded once. Waits.
DeviceArray upload(const Exec& space, const char* name, const std::vector<double>& values, ElementType type);
DeviceArray upload(const Exec& space, const char* name, const std::vector<int>& values);
/// @param bits  of an offset: 32 or 64
DeviceArray upload_offsets(const Exec& space, const std::vector<std::int64_t>& offsets, int bits);
/// Waits.
std::vector<double> download(const Exec& space, const DeviceArray& array, ElementType type);
/// Enqueued.
void copy(const Exec& space, const DeviceArray& to, const DeviceArray& from);

/// A in CSR.
struct CsrOperand {
  Exec space;
  int rows = 0, cols = 0, offset_bits = 32;
  ElementType element = ElementType::Double;
  DeviceArray row_map, entries, values;

  std::int64_t nnz() const { return static_cast<std::int64_t>(entries.size()); }
  double bytes() const {
    return static_cast<double>(nnz()) * static_cast<double>(bytes_of(element) + sizeof(int)) +
           offset_bits / 8 * (rows + 1.0);
  }
  template <class S, class Offset>
  CsrView<S, int, Offset, Device> view() const {
    return {rows, cols, row_map.view<Offset>(), entries.view<int>(), values.view<S>()};
  }
};

/// The same matrix in dense blocks, row-major, offsets of 32 bits.
struct BsrOperand {
  int block = 0, block_rows = 0, block_cols = 0;  ///< block 0: there is none
  DeviceArray row_map, entries, values;

  std::int64_t blocks() const { return static_cast<std::int64_t>(entries.size()); }
  double bytes() const {
    return static_cast<double>(row_map.bytes().extent(0) + entries.bytes().extent(0) + values.bytes().extent(0));
  }
  /// Stored over entries, less 1.
  double padding_ratio(std::int64_t nnz) const {
    return nnz > 0 ? static_cast<double>(values.size()) / static_cast<double>(nnz) - 1 : 0;
  }
  template <class S>
  BsrView<S, int, int, Device> view() const {
    return {block_rows, block_cols, block, row_map.view<int>(), entries.view<int>(), values.view<S>()};
  }
};

/// y := alpha A x + beta y.
struct SpmvOperands {
  CsrOperand A;
  BsrOperand blocks;
  ElementType y_type = ElementType::Double;
  DeviceArray x, y;
  double alpha = 1, beta = 0;
};

/// B or C as kernels of the benchmark see it: elements by their place, through a switch over the types.
struct DenseElements {
  void* data = nullptr;
  ElementType type = ElementType::Double;
  std::int64_t rows = 0, columns = 0, row_stride = 0, column_stride = 0;

  KOKKOS_INLINE_FUNCTION double get(std::int64_t i, std::int64_t j) const {
    const std::int64_t at = i * row_stride + j * column_stride;
    switch (type) {
      case ElementType::Float:
        return static_cast<double>(static_cast<const float*>(data)[at]);
      case ElementType::Half:
        return static_cast<double>(static_cast<const half_t*>(data)[at]);
      case ElementType::BHalf:
        return static_cast<double>(static_cast<const bhalf_t*>(data)[at]);
      default:
        return static_cast<const double*>(data)[at];
    }
  }
  KOKKOS_INLINE_FUNCTION void set(std::int64_t i, std::int64_t j, double value) const {
    const std::int64_t at = i * row_stride + j * column_stride;
    switch (type) {
      case ElementType::Float:
        static_cast<float*>(data)[at] = static_cast<float>(value);
        break;
      case ElementType::Half:
        static_cast<half_t*>(data)[at] = static_cast<half_t>(value);
        break;
      case ElementType::BHalf:
        static_cast<bhalf_t*>(data)[at] = static_cast<bhalf_t>(value);
        break;
      default:
        static_cast<double*>(data)[at] = value;
    }
  }
  /// Place of the idx-th element in the order of memory, so that neighbouring threads touch neighbours.
  KOKKOS_INLINE_FUNCTION void place(std::int64_t idx, std::int64_t& row, std::int64_t& col) const {
    const bool right = column_stride == 1;
    const std::int64_t length = right ? columns : rows;
    const std::int64_t line = idx / length, at = idx - line * length;
    row = right ? line : at;
    col = right ? at : line;
  }
};

/// C := alpha A B + beta C, B and C both in LayoutRight or both in LayoutLeft.
struct SpmmOperands {
  CsrOperand A;
  ElementType c_type = ElementType::Double;
  std::int64_t columns = 0;
  bool layout_left = false;
  DeviceArray B, C;
  double alpha = 1, beta = 0;

  DenseElements b_elements() const { return elements(B, A.element, A.cols); }
  DenseElements c_elements() const { return elements(C, c_type, A.rows); }
  DenseElements elements(const DeviceArray& array, ElementType type, std::int64_t rows) const {
    // With one column both strides are 1; the order is the same then.
    return {array.data<void>(), type, rows, columns, layout_left ? 1 : columns, layout_left ? rows : 1};
  }
  template <class T, class Layout>
  static Kokkos::View<T**, Layout, Device> view(const DeviceArray& array, std::int64_t rows, std::int64_t columns) {
    return Kokkos::View<T**, Layout, Device>(array.data<T>(), static_cast<std::size_t>(rows),
                                             static_cast<std::size_t>(columns));
  }
};

}  // namespace Bench
}  // namespace Tessera

#endif
