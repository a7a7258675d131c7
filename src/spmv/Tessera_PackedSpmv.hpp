// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMV_PACKED_SPMV_HPP
#define TESSERA_SPMV_PACKED_SPMV_HPP

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>

#include "Tessera_Compat.hpp"
#include "Tessera_Error.hpp"
#include "backends/host/Tessera_HostPacked.hpp"
#include "backends/interface/Tessera_PackedCheck.hpp"
#include "backends/interface/Tessera_StoreResult.hpp"
#include "core/Tessera_Shares.hpp"

/// \file
/// y := alpha A x + beta y in packed slices on host execution spaces.
///
/// Bytes: the packets, 16 per slice, x and y once if they stay in cache, whatever the number of columns; one launch, a
/// second one where rows have several parts. Deterministic and independent of the number of threads: a slice is one
/// thread's, and the parts of a row are added in their order.

namespace Tessera {
namespace Impl {

/// One share of the slices. Work: bytes of packets, and as much as 32 of these per slice.
struct PackedHostFunctor {
  SpmvPackedArgs args;
  PackedHostRun run;
  Shares shares;

  static std::int64_t work_before(const SpmvPackedArgs& a, std::int64_t slice) {
    return std::int64_t{a.slices[slice].packet} + slice;
  }
  std::uint32_t begin_of(std::int64_t share) const {
    return static_cast<std::uint32_t>(shares.begin(share, [&](std::int64_t s) { return work_before(args, s); }));
  }
  void operator()(const std::int64_t share) const { run(args, begin_of(share), begin_of(share + 1)); }
};

/// Adds the parts of a row in their order; the row's first part does the work.
template <class Value, class Sum>
struct PackedHostParts {
  SpmvPackedArgs args;
  Shares shares;

  void operator()(const std::int64_t share) const {
    const std::int64_t last = Shares::cut(shares.items, share + 1, shares.count);
    for (std::int64_t i = Shares::cut(shares.items, share, shares.count); i < last; ++i) add(i);
  }
  void add(const std::int64_t i) const {
    const PackedPart part = args.parts[i];
    if (part.which != 0) return;
    const auto columns = static_cast<std::size_t>(args.columns);
    const Sum* const sums = static_cast<const Sum*>(args.partials) + part.first * columns;
    for (std::size_t j = 0; j < columns; ++j) {
      Sum sum = 0;
      for (std::size_t k = 0; k < part.count; ++k) sum += sums[k * columns + j];
      store_result<Value>(args, part.row * args.y_stride + static_cast<std::int64_t>(j) * args.y_column_stride, sum);
    }
  }
};

/// Calls f with a number of the type that the operands have.
template <class F>
void packed_with_type(Precision precision, F&& f) {
  if (precision == Precision::FP64) return f(double{});
  if (precision == Precision::FP16) return f(half_t{});
  if (precision == Precision::BF16) return f(bhalf_t{});
  f(float{});
}

/// As csr_spmv_alone, in units of 32 bytes.
constexpr std::int64_t packed_spmv_alone = 1250;

/// Of a matrix in precision A with vectors in precision x; null where there is none.
inline PackedHostRun packed_host_run(Precision A, Precision x) {
  if (A == x) {
    return A == Precision::FP64   ? host_packed_fp64
           : A == Precision::FP16 ? host_packed_fp16
           : A == Precision::BF16 ? host_packed_bf16
                                  : host_packed_fp32;
  }
  return A == Precision::FP32 && x == Precision::FP64 ? host_packed_fp32_with_fp64 : nullptr;
}

/// y := alpha A x + beta y.
/// @param args  as a device kernel takes them; `arrivals` is not used
/// @param lanes  those of the conversion
/// @param vectors  precision of x: the matrix's, or one for which packed_host_run has a kernel
/// @throw NotSupported  lanes is not packed_host_lanes, or check_packed refuses the call
template <class Exec>
void packed_spmv_host(const Exec& space, const SpmvPackedArgs& a, int lanes, Precision vectors) {
  static_assert(Compat::is_host_v<Exec>, "packed_spmv_host runs on host execution spaces");
  require<NotSupported>(lanes == packed_host_lanes, [&] {
    return "packed slices on a host take " + std::to_string(packed_host_lanes) + " lanes, not " + std::to_string(lanes);
  });
  const Status status = check_packed(a);
  require<NotSupported>(status.ok(), [&] { return std::string(status.message); });
  if (a.slice_count == 0) return;
  const std::int64_t work = PackedHostFunctor::work_before(a, a.slice_count - 1) + 1;
  // Units of 32 bytes.
  const Shares shares = Shares::of(space, a.slice_count, work, 64, 1 << 15, 16, packed_spmv_alone / a.columns);
  static const std::string label("Tessera::spmv[packed]");
  for_each_share(label, space, shares, PackedHostFunctor{a, packed_host_run(a.precision, vectors), shares});
  // Parts are the first slices.
  const std::int64_t parts = first_item(a.slice_count, [&](std::int64_t s) { return !a.slices[s].part(); });
  if (parts == 0) return;
  packed_with_type(vectors, [&](auto operand) {
    using Value = decltype(operand);
    using Sum = std::conditional_t<std::is_same_v<Value, double>, double, float>;
    // A share for 2,000 sums: few are added by the calling thread.
    const Shares sums = Shares::of(space, parts, parts * a.columns, 2000, 1 << 20);
    static const std::string parts_label("Tessera::spmv[packed] parts");
    for_each_share(parts_label, space, sums, PackedHostParts<Value, Sum>{a, sums});
  });
}

/// Adds what the column blocks have of each row, in their order, and ends the product.
template <class Value, class Sum>
struct PackedHostBlocks {
  SpmvPackedArgs args;
  Shares shares;

  /// Some rows at a time, so that a block's sums are read as they lie.
  static constexpr std::int64_t some = 256;
  void operator()(const std::int64_t share) const {
    const std::int64_t end = Shares::cut(shares.items, share + 1, shares.count);
    for (std::int64_t row = Shares::cut(shares.items, share, shares.count); row < end; row += some) {
      add(row, std::min(std::int64_t{some}, end - row));
    }
  }
  void add(const std::int64_t first, const std::int64_t rows) const {
    Sum sums[some] = {};
    const Sum* parts = static_cast<const Sum*>(args.block_sums) + first;
    for (int block = 0; block < args.blocks; ++block, parts += args.rows) {
      for (std::int64_t r = 0; r < rows; ++r) sums[r] += parts[r];
    }
    for (std::int64_t r = 0; r < rows; ++r) store_result<Value>(args, (first + r) * args.y_stride, sums[r]);
  }
};

/// The same for a matrix in column blocks: args.block_sums has room for sums of the vectors' precision.
template <class Exec>
void packed_spmv_host_blocks(const Exec& space, const SpmvPackedArgs& a, int lanes, Precision vectors) {
  packed_spmv_host(space, packed_block_args(a), lanes, vectors);
  // A share for 4,000 sums, and the calling thread alone for fewer than 16,000.
  const Shares shares = Shares::of(space, a.rows, a.rows * a.blocks, 4000, 1 << 20, 16, 16000);
  packed_with_type(vectors, [&](auto operand) {
    using Value = decltype(operand);
    using Sum = std::conditional_t<std::is_same_v<Value, double>, double, float>;
    static const std::string label("Tessera::spmv[packed] sums of column blocks");
    for_each_share(label, space, shares, PackedHostBlocks<Value, Sum>{a, shares});
  });
}

}  // namespace Impl
}  // namespace Tessera

#endif
