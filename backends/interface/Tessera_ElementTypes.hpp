// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_INTERFACE_ELEMENT_TYPES_HPP
#define TESSERA_INTERFACE_ELEMENT_TYPES_HPP

/// \file
/// Precisions, element types and orders of numbers, as both sides of the interface name them.

namespace Tessera {

/// What is multiplied and accumulated: FP64, FP32, TF32 operands with FP32 sums, FP16 and BF16 operands with FP32 sums.
enum class Precision : int { FP64, FP32, TF32, FP16, BF16 };

/// Element types a vector can have at the boundary.
enum class ElementType : int { Double, Float, Half, BHalf };

/// Where a block matrix has number (i, j) of block k of a block row with n blocks of side b: RowMajor and ColumnMajor
/// blocks follow each other, at k b^2 + i b + j and k b^2 + j b + i; in BlockRow rows do, each through all n blocks, at
/// i n b + k b + j.
enum class BlockOrder : int { RowMajor, ColumnMajor, BlockRow };

/// Bytes of an operand in a precision: what a value of the matrix takes in a format. TF32 is kept as float.
constexpr int bytes_of(Precision p) {
  return p == Precision::FP64 ? 8 : p == Precision::FP32 || p == Precision::TF32 ? 4 : 2;
}
/// Bytes of a sum in a precision: double in FP64, else float.
constexpr int sum_bytes_of(Precision p) { return p == Precision::FP64 ? 8 : 4; }

}  // namespace Tessera

#endif
