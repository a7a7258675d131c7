// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/host/Tessera_HostBsr.hpp"

#include "backends/interface/Tessera_StoreResult.hpp"

namespace Tessera {
namespace {

/// Blocks by rows, consecutive x: sums of all rows of a block at once.
template <class Value, int B>
void block_rows(const SpmvBsrArgs& args, std::int64_t begin, std::int64_t end) {
  const auto* const x = static_cast<const Value*>(args.x);
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t first = args.offset(row), last = args.offset(row + 1);
    const Value* a = static_cast<const Value*>(args.values) + first * (B * B);
    Value sum[B] = {};
    for (std::int64_t k = first; k < last; ++k, a += B * B) {
      const Value* const from = x + std::int64_t{args.columns[k]} * B;
      for (int i = 0; i < B; ++i) {
        Value product = a[i * B] * from[0];
        for (int j = 1; j < B; ++j) product += a[i * B + j] * from[j];
        sum[i] += product;
      }
    }
    for (int i = 0; i < B; ++i) store_result<Value>(args, (row * B + i) * args.y_stride, sum[i]);
  }
}

/// Any side, order and stride: row by row.
template <class Value>
void point_rows(const SpmvBsrArgs& args, std::int64_t begin, std::int64_t end) {
  const std::int64_t b = args.block;
  const auto* const x = static_cast<const Value*>(args.x);
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t first = args.offset(row), last = args.offset(row + 1);
    const BsrSteps steps = BsrSteps::of(args.order, b, last - first);
    for (std::int64_t i = 0; i < b; ++i) {
      const Value* a = static_cast<const Value*>(args.values) + first * b * b + i * steps.row;
      Value sum[2] = {};
      for (std::int64_t k = first; k < last; ++k, a += steps.block) {
        const Value* const from = x + args.columns[k] * b * args.x_stride;
        std::int64_t j = 0;
        for (; j + 2 <= b; j += 2) {
          sum[0] += a[j * steps.column] * from[j * args.x_stride];
          sum[1] += a[(j + 1) * steps.column] * from[(j + 1) * args.x_stride];
        }
        if (j < b) sum[0] += a[j * steps.column] * from[j * args.x_stride];
      }
      store_result<Value>(args, (row * b + i) * args.y_stride, sum[0] + sum[1]);
    }
  }
}

template <class Value>
void run(const SpmvBsrArgs& args, std::int64_t begin, std::int64_t end) {
  if (args.order == BlockOrder::RowMajor && args.x_stride == 1) {
    switch (args.block) {
      case 2:
        return block_rows<Value, 2>(args, begin, end);
      case 3:
        return block_rows<Value, 3>(args, begin, end);
      case 4:
        return block_rows<Value, 4>(args, begin, end);
      case 5:
        return block_rows<Value, 5>(args, begin, end);
      case 6:
        return block_rows<Value, 6>(args, begin, end);
      case 7:
        return block_rows<Value, 7>(args, begin, end);
      case 8:
        return block_rows<Value, 8>(args, begin, end);
      default:
        break;
    }
  }
  point_rows<Value>(args, begin, end);
}

}  // namespace

void host_bsr(const SpmvBsrArgs& args, std::int64_t begin, std::int64_t end) {
  if (args.precision == Precision::FP64) return run<double>(args, begin, end);
  run<float>(args, begin, end);
}

}  // namespace Tessera
