// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMV_SPMV_RULES_HPP
#define TESSERA_SPMV_SPMV_RULES_HPP

#include <algorithm>
#include <cstdio>
#include <string>

#include "Tessera_Options.hpp"
#include "backends/host/Tessera_HostPacked.hpp"
#include "features/Tessera_SpmvFeatures.hpp"
#include "spmv/Tessera_SelectSpmv.hpp"

/// \file
/// The rules of Auto: bytes that each algorithm is predicted to move for the matrix at hand, the smallest first. Every
/// number that does not follow from a format's definition is measured; perf_test/notes/auto.md, has the
/// measurements.

namespace Tessera {
namespace Impl {

/// What decides, in one place.
struct SpmvRule {
  // Bytes of an index in packed slices, by what the sample of windows shows.
  static constexpr double narrow_index = 2, wide_index = 3;
  static constexpr double packed_padding = 1.06;  ///< slots per entry, mean over the matrices of the notes
  static constexpr double dasp_padding = 1.02;
  /// A gather that misses the first level moves a sector of this size, whatever the type.
  static constexpr double sector = 32;
  /// Matrix bytes and sectors come over the same path; DASP, CSR5 and CSR wait more often than packed slices do.
  /// Factors are the geometric means of measured time over predicted bytes, packed slices = 1.
  static constexpr double dasp_wait = 1.17, csr5_wait = 1.86, csr_wait = 4.32;
  /// Hosts: where no instruction widens FP16, numbers are widened one by one, which costs more than their bytes. In
  /// matrices this small with rows this short, a CPU learns the branches of all rows, unless most entries are one long
  /// row's; of rows that are alike, slices have an entry in every slot and need no branches (those without indices
  /// gain nothing), and rows may be less alike where one thread multiplies all of them. Of rows of one entry or little
  /// more that are about equal, a slice takes longer than its eight entries without it. Everything else was at least as
  /// fast in packed slices, which widen numbers of 16 bits by vectors.
  static constexpr std::int64_t host_least_entries = 8192, host_least_narrow = 512, host_long_row = 1000;
  static constexpr std::int64_t host_least_alike = 3000, host_alone = 6000;
  static constexpr double host_least_mean = 8, host_short_mean = 1.5, host_equal_cv = 0.5, host_alike_cv = 0.35,
                          host_alike_alone_cv = 0.55;
};

/// Predicted bytes of an apply: matrix, x (by the sampled sectors), y.
inline double predicted_bytes(SpmvAlgorithm algorithm, const SpmvFeatures& f, int value_bytes) {
  const double nnz = static_cast<double>(f.nnz), rows = static_cast<double>(f.rows);
  const double vectors = nnz * f.sectors * SpmvRule::sector + rows * value_bytes;
  switch (algorithm) {
    case SpmvAlgorithm::PackedSlices: {
      const double index = f.shift > 0.5 ? 0.1 : f.narrow > 0.5 ? SpmvRule::narrow_index : SpmvRule::wide_index;
      const double shared = f.same3 >= 0.5 ? 3 : f.same2 >= 0.5 ? 2 : 1;
      return SpmvRule::packed_padding * nnz * (value_bytes + index / shared) + rows * 2 + vectors / shared;
    }
    case SpmvAlgorithm::Dasp:
      return SpmvRule::dasp_wait * (SpmvRule::dasp_padding * nnz * (value_bytes + 4) + rows * 4 + vectors);
    case SpmvAlgorithm::Csr5:
      return SpmvRule::csr5_wait * (nnz * (value_bytes + 4.2) + rows * 4 + vectors);
    default:
      return SpmvRule::csr_wait * (nnz * (value_bytes + 4) + rows * 4 + vectors);
  }
}

/// The sentence that says why the first candidate is taken. @param against_bytes  though it moves more, @param slow
/// since the host widens FP16 one by one
inline std::string explain_spmv(const std::vector<SpmvCandidate>& candidates, const SpmvFeatures& f, bool against_bytes,
                                bool slow) {
  char text[320];
  std::snprintf(
      text, sizeof(text),
      "%s is predicted to move %.3g MB, %s %.3g MB: rows of %.1f (cv %.2f, longest %lld), %.0f %% of windows "
      "within 2^16 columns, %.0f %% of entries in rows shifted by one, %.0f %% in equal rows, %.2f sectors of x "
      "per entry",
      to_string(candidates[0].algorithm), 1e-6 * candidates[0].cost,
      candidates.size() > 1 ? to_string(candidates[1].algorithm) : "no other algorithm",
      candidates.size() > 1 ? 1e-6 * candidates[1].cost : 0.0, f.mean, f.cv, static_cast<long long>(f.longest),
      100 * f.narrow, 100 * f.shift, 100 * std::max(f.same2, f.same3), f.sectors);
  std::string why = text;
  if (against_bytes) {
    why += slow ? "; taken all the same, since this host widens FP16 one by one"
                : "; taken all the same, since slices of rows so few or short do not pay on a host";
  }
  return why;
}

/// Fills choice.candidates, best first, and decides.
/// @param natural  the matrix holds the precision that is multiplied in
inline void predict_spmv(SpmvChoice& c, const SpmvFeatures& f, bool host, bool natural) {
  const int bytes = bytes_of(c.precision);
  c.candidates.clear();
  const auto add = [&](SpmvAlgorithm a) { c.candidates.push_back({a, predicted_bytes(a, f, bytes)}); };
  add(SpmvAlgorithm::PackedSlices);
  if (natural) add(SpmvAlgorithm::Csr);
  if (natural && !host) add(SpmvAlgorithm::Csr5);
  if (!host && on_matrix_units(c.precision)) add(SpmvAlgorithm::Dasp);
  const bool one_row = f.longest >= SpmvRule::host_long_row && 2 * f.longest > f.nnz;
  const std::int64_t least = bytes >= 4 ? SpmvRule::host_least_entries : SpmvRule::host_least_narrow;
  const bool alike =
      f.nnz >= SpmvRule::host_least_alike && f.shift <= 0.5 &&
      f.cv < (f.nnz + f.rows < SpmvRule::host_alone ? SpmvRule::host_alike_alone_cv : SpmvRule::host_alike_cv);
  const bool tiny = f.nnz < least && f.mean < SpmvRule::host_least_mean && !one_row && !alike;
  const bool slow = c.precision == Precision::FP16 && !host_packed_fast_fp16();
  const bool equal = bytes >= 4 && f.mean < SpmvRule::host_short_mean && f.cv < SpmvRule::host_equal_cv;
  const bool against_bytes = host && natural && (slow || tiny || equal);
  if (against_bytes) {
    std::swap(c.candidates[0], c.candidates[1]);
  } else {
    std::stable_sort(c.candidates.begin(), c.candidates.end(),
                     [](const SpmvCandidate& a, const SpmvCandidate& b) { return a.cost < b.cost; });
  }
  c.algorithm = c.candidates[0].algorithm;
  c.explain = [f, candidates = c.candidates, against_bytes, slow] {
    return explain_spmv(candidates, f, against_bytes, slow);
  };
}

}  // namespace Impl
}  // namespace Tessera

#endif
