// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SDDMM_SDDMM_RULES_HPP
#define TESSERA_SDDMM_SDDMM_RULES_HPP

#include <algorithm>
#include <cstdio>

#include "features/Tessera_SpmmFeatures.hpp"
#include "sddmm/Tessera_SelectSddmm.hpp"

/// \file
/// The rules of Auto on devices.

namespace Tessera {
namespace Impl {

/// What decides: from so many entries per fetched row of Y in windows of 8 rows on, panels were the faster on an H200
/// (perf_test/notes/sddmm.md).
inline double least_sddmm_density(std::int64_t inner, Precision precision) {
  (void)inner;
  return precision == Precision::FP32 ? 2.0 : 1.5;
}

/// Fills choice.candidates, best first, and decides. Costs are in gathered rows of Y.
inline void predict_sddmm(SddmmChoice& c, const SpmmFeatures& f, const SddmmOptions& options) {
  const double nnz = static_cast<double>(f.nnz), least = least_sddmm_density(options.inner_hint, c.precision);
  c.candidates = {{SddmmAlgorithm::Panels, least * nnz / (f.g8 > 0 ? f.g8 : 1)}, {SddmmAlgorithm::Rows, nnz}};
  std::stable_sort(c.candidates.begin(), c.candidates.end(),
                   [](const SddmmCandidate& a, const SddmmCandidate& b) { return a.cost < b.cost; });
  c.algorithm = c.candidates[0].algorithm;
  char text[240];
  std::snprintf(
      text, sizeof(text),
      "%s for K = %d of %s: rows of %.1f (longest %lld); a fetched row of Y serves %.2f entries in windows of 8 "
      "rows (Panels from %.2f)",
      to_string(c.algorithm), options.inner_hint, to_string(c.precision), f.mean, static_cast<long long>(f.longest),
      f.g8, least);
  c.why = text;
}

}  // namespace Impl
}  // namespace Tessera

#endif
