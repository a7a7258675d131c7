// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SDDMM_SDDMM_RULES_HPP
#define TESSERA_SDDMM_SDDMM_RULES_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>

#include "backends/interface/Tessera_SddmmArgs.hpp"
#include "backends/interface/Tessera_SddmmKernels.hpp"
#include "features/Tessera_SpmmFeatures.hpp"
#include "sddmm/Tessera_SelectSddmm.hpp"

/// \file
/// The rules of Auto on devices.

namespace Tessera {
namespace Impl {

/// What decides: from so many entries per fetched row of Y on, panels were the faster on an H200
/// (perf_test/notes/sddmm.md), by the bytes of a row of X or Y. A block costs about the same however short its rows
/// are, so short ones ask for denser windows; Rows converts every 16-bit number, units none; FP32 costs three products;
/// up to 512 bytes (FP64: 1024) the rows of X stay in registers in Panels, up to 2048 in Rows.
inline double least_sddmm_density(std::int64_t inner, Precision precision) {
  const std::int64_t bytes = inner * bytes_of(precision);
  switch (precision) {
    case Precision::FP16:
    case Precision::BF16:
      return bytes <= 64 ? 1.85 : bytes <= 128 ? 1.3 : bytes <= 256 ? 1.15 : 1.25;
    case Precision::TF32:
      return bytes <= 128 ? 1.7 : bytes <= 256 ? 1.25 : bytes <= 512 ? 1.4 : 1.65;
    case Precision::FP32:
      return bytes <= 128 ? 2.2 : bytes <= 256 ? 1.7 : 1.65;
    default:
      return bytes <= 256 ? 1.6 : bytes <= 512 ? 1.85 : 1.65;
  }
}

/// Units that multiply FP32 in parts leave out up to 8 u of a product, u = 2^-24, and may cut 20 u of a sum of eight;
/// such sums are added up by K / 8 roundings. From so many products on that is within (K + 2) u, as FP32 arithmetic is;
/// fewer go entry by entry (perf_test/notes/precision.md).
constexpr std::int64_t least_inner_in_parts = 30;

/// Whether units of this shape must not sum so few products.
inline bool too_few_for_parts(const SddmmShape& shape, std::int64_t inner) {
  return shape.in_parts && inner < least_inner_in_parts;
}

/// How much more entries a fetched row of Y has to serve in windows of two instructions than in those of one for them
/// to be the faster: they halve the loads of Y and need twice the registers for X. Where FP64's rows do not stay in
/// registers they never were.
inline double least_gain_of_height(std::int64_t inner, Precision precision) {
  const std::int64_t bytes = inner * bytes_of(precision);
  if (precision == Precision::TF32 && (bytes <= 128 || bytes > 512)) return bytes <= 128 ? 1.1 : 1.5;
  if (precision == Precision::FP32 && bytes <= 128) return 1.25;
  if (precision == Precision::FP64 && bytes >= 1024) {
    return bytes == 1024 ? 1.7 : std::numeric_limits<double>::infinity();
  }
  return 1.55;
}

/// Windows of Panels.
struct SddmmWindows {
  int height;     ///< in instructions
  double served;  ///< entries per fetched row of Y, as windows of one instruction would have to have them to be as fast
};
/// one, two: entries per fetched row of Y in windows of one and two instructions.
inline SddmmWindows sddmm_windows(std::int64_t inner, Precision precision, double one, double two) {
  const double gain = least_gain_of_height(inner, precision);
  if (two < gain * one) return {1, one};
  return {2, two / std::min(gain, 1.3)};
}

/// Entries of a column in a window of `height` instructions from which SddmmAlgorithm::Bsmr calls it dense.
inline int sddmm_dense_from(std::int64_t inner, Precision precision, int height) {
  return static_cast<int>(std::ceil(least_sddmm_density(inner, precision) * (height == 2 ? 1.2 : 1)));
}

/// Fills choice.candidates, best first, and decides. Costs are in gathered rows of Y. shape: the backend's.
inline void predict_sddmm(SddmmChoice& c, const SpmmFeatures& f, const SddmmOptions& options,
                          const SddmmShape& shape = {}) {
  const double nnz = static_cast<double>(f.nnz), least = least_sddmm_density(options.inner_hint, c.precision);
  const SddmmWindows windows = sddmm_windows(options.inner_hint, c.precision, f.g8, f.g16);
  c.candidates.clear();
  // Blocks count entries in 32 bits.
  const bool counted = f.nnz < std::numeric_limits<std::uint32_t>::max() && f.rows < 8 * SddmmBlock::most_windows;
  if (counted && !too_few_for_parts(shape, options.inner_hint)) {
    c.candidates.push_back({SddmmAlgorithm::Panels, least * nnz / (windows.served > 0 ? windows.served : 1)});
  }
  c.candidates.push_back({SddmmAlgorithm::Rows, nnz});
  std::stable_sort(c.candidates.begin(), c.candidates.end(),
                   [](const SddmmCandidate& a, const SddmmCandidate& b) { return a.cost < b.cost; });
  c.algorithm = c.candidates[0].algorithm;
  char text[280];
  std::snprintf(
      text, sizeof(text),
      "%s for K = %d of %s: rows of %.1f (longest %lld); a fetched row of Y serves %.2f entries in windows of 8 "
      "rows, %.2f in windows of 16: worth %.2f (Panels from %.2f)",
      to_string(c.algorithm), options.inner_hint, to_string(c.precision), f.mean, static_cast<long long>(f.longest),
      f.g8, f.g16, windows.served, least);
  c.why = text;
}

}  // namespace Impl
}  // namespace Tessera

#endif
