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

/// Sides of one: compressed rows, in four sums, since one would wait for each addition.
template <class Value>
void single_rows(const SpmvBsrArgs& args, std::int64_t begin, std::int64_t end) {
  const auto* const a = static_cast<const Value*>(args.values);
  const auto* const x = static_cast<const Value*>(args.x);
  for (std::int64_t row = begin; row < end; ++row) {
    std::int64_t k = args.offset(row);
    const std::int64_t last = args.offset(row + 1);
    Value sum[4] = {};
    for (; k + 4 <= last; k += 4) {
      for (int n = 0; n < 4; ++n) sum[n] += a[k + n] * x[args.columns[k + n] * args.x_stride];
    }
    for (; k < last; ++k) sum[0] += a[k] * x[args.columns[k] * args.x_stride];
    store_result<Value>(args, row * args.y_stride, (sum[0] + sum[1]) + (sum[2] + sum[3]));
  }
}

/// Blocks by rows, consecutive x, any side up to `widest`: block after block, since a row of all blocks would be read
/// in strides.
constexpr int widest = 64;
template <class Value>
void wide_block_rows(const SpmvBsrArgs& args, std::int64_t begin, std::int64_t end) {
  const std::int64_t b = args.block;
  const auto* const x = static_cast<const Value*>(args.x);
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t first = args.offset(row), last = args.offset(row + 1);
    const Value* a = static_cast<const Value*>(args.values) + first * b * b;
    Value sum[widest] = {};
    for (std::int64_t k = first; k < last; ++k) {
      const Value* const from = x + args.columns[k] * b;
      for (std::int64_t i = 0; i < b; ++i, a += b) {
        Value part[4] = {};
        std::int64_t j = 0;
        for (; j + 4 <= b; j += 4) {
          for (int n = 0; n < 4; ++n) part[n] += a[j + n] * from[j + n];
        }
        for (; j < b; ++j) part[0] += a[j] * from[j];
        sum[i] += (part[0] + part[1]) + (part[2] + part[3]);
      }
    }
    for (std::int64_t i = 0; i < b; ++i) store_result<Value>(args, (row * b + i) * args.y_stride, sum[i]);
  }
}

/// Any side, order and stride: row by row. Unit: numbers of a block's row, and x, are consecutive.
template <class Value, bool Unit>
void point_rows(const SpmvBsrArgs& args, std::int64_t begin, std::int64_t end) {
  const std::int64_t b = args.block, x_stride = Unit ? 1 : args.x_stride;
  const auto* const x = static_cast<const Value*>(args.x);
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t first = args.offset(row), last = args.offset(row + 1);
    const BsrSteps steps = BsrSteps::of(args.order, b, last - first);
    const std::int64_t a_stride = Unit ? 1 : steps.column;
    for (std::int64_t i = 0; i < b; ++i) {
      const Value* a = static_cast<const Value*>(args.values) + first * b * b + i * steps.row;
      Value sum[4] = {};
      for (std::int64_t k = first; k < last; ++k, a += steps.block) {
        const Value* const from = x + args.columns[k] * b * x_stride;
        std::int64_t j = 0;
        for (; j + 4 <= b; j += 4) {
          for (int n = 0; n < 4; ++n) sum[n] += a[(j + n) * a_stride] * from[(j + n) * x_stride];
        }
        for (; j < b; ++j) sum[0] += a[j * a_stride] * from[j * x_stride];
      }
      store_result<Value>(args, (row * b + i) * args.y_stride, (sum[0] + sum[1]) + (sum[2] + sum[3]));
    }
  }
}

template <class Value>
void run(const SpmvBsrArgs& args, std::int64_t begin, std::int64_t end) {
  if (args.block == 1) return single_rows<Value>(args, begin, end);
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
        if (args.block <= widest) return wide_block_rows<Value>(args, begin, end);
    }
  }
  if (args.order != BlockOrder::ColumnMajor && args.x_stride == 1) return point_rows<Value, true>(args, begin, end);
  point_rows<Value, false>(args, begin, end);
}

}  // namespace

void host_bsr(const SpmvBsrArgs& args, std::int64_t begin, std::int64_t end) {
  if (args.precision == Precision::FP64) return run<double>(args, begin, end);
  run<float>(args, begin, end);
}

}  // namespace Tessera
