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

/// Rows of X and Y that are no whole words of sixteen bytes: Panels has them copied, Rows reads them in narrower words
/// or has them copied as well. Times in that of Rows per entry, a row of Y fetched from the caches
/// (perf_test/notes/sddmm.md, "Rows that are not aligned").
struct SddmmNarrowRows {
  double copied = 5.4;   ///< of a row that is read and written at the rate of memory (as SddmmCopy::taken)
  double launch = 20e6;  ///< bytes that are fetched during the launch of a copy: 3 us at 7 TB/s

  /// What entries take more in narrow words. Elements of 16 bits are not read one or two at a time.
  double more(int word_bytes, int element_bytes) const {
    constexpr double never = 1e9;
    return word_bytes >= 16 ? 0 : word_bytes == 8 ? 0.2 : element_bytes == 4 ? 1.1 : never;
  }
  double copies(double rows, double launches, double row_bytes) const {
    return copied * rows + launches * launch / std::max(row_bytes, 1.0);
  }
};
/// Whether Rows reads them where they lie: `entries` of all heads, `rows` of X and Y that would be copied in so many
/// launches.
inline bool sddmm_reads_narrow(int word_bytes, int element_bytes, double entries, double rows, double launches,
                               double row_bytes) {
  constexpr SddmmNarrowRows narrow;
  return narrow.more(word_bytes, element_bytes) * entries <= narrow.copies(rows, launches, row_bytes);
}
/// The widest words of which contiguous rows of K elements are whole numbers.
inline int sddmm_word_bytes_of(std::int64_t inner, Precision precision) {
  const std::int64_t bytes = inner * bytes_of(precision);
  return bytes % 16 == 0 ? 16 : bytes % 8 == 0 ? 8 : bytes % 4 == 0 ? 4 : 2;
}

/// The least number of entries per fetched row of Y with which panels were faster than rows on an H100
/// (perf_test/notes/sddmm.md), by the bytes of a row of X or Y. A block costs about the same however short its rows
/// are, so short rows ask for denser windows. Rows converts every 16-bit number, units none; FP32 takes three products.
/// Up to 512 bytes (FP64: 1024) the rows of X stay in registers in Panels, up to 2048 in Rows. Numbers of words of
/// sixteen bytes between powers of two suit Rows better (measured on an H200).
/// @param mean  entries per row; where these are hundreds, all blocks of a window are full, and its rows of X are read
///              for many of them
inline double least_sddmm_density(std::int64_t inner, Precision precision, double mean = 0) {
  const std::int64_t bytes = inner * bytes_of(precision);
  const double full = mean >= 200 && bytes >= 512 ? 0.86 : 1;
  const std::int64_t words = (bytes + 15) / 16;
  const bool between = (words & (words - 1)) != 0 && words < 128;
  switch (precision) {
    case Precision::FP16:
    case Precision::BF16:
      if (between) return bytes <= 64 ? 2.1 : 1.5;
      return bytes <= 64 ? 1.55 : bytes <= 128 ? 1.23 : bytes <= 256 ? 1.08 : 1.12;
    case Precision::TF32:
      if (between) return 2.1 * full;
      return bytes <= 128 ? 1.37 : bytes <= 256 ? 1.23 : 1.4 * full;
    case Precision::FP32:
      return (between ? 2.0 : bytes <= 128 ? 1.75 : 1.65) * full;
    default:
      return (between ? 2.6 : 1.65) * full;
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

/// How many times as many entries a fetched row of Y has to serve in windows of two instructions as in those of one for
/// them to be faster: they halve the loads of Y and need twice the registers for X. Where FP64's rows do not stay in
/// registers they never were.
inline double least_gain_of_height(std::int64_t inner, Precision precision) {
  const std::int64_t bytes = inner * bytes_of(precision);
  if (precision == Precision::TF32 && bytes > 512) return 1.5;
  if (precision == Precision::FP32 && bytes <= 128) return 1.7;
  if (precision == Precision::FP64) return bytes <= 1024 ? 1.7 : std::numeric_limits<double>::infinity();
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

/// What a copy of Y in TF32 (CompactCopy) saves of Panels' time, and what it takes, in fetched rows of Y per row: a row
/// that is fetched has 3/8 fewer bytes, and the copy moves 13/8 of a row at the rate of memory, which is about half of
/// that of the second-level cache. Windows that share columns find many of them in the first level, where bytes are not
/// what is missing; a Y that no cache holds gains most, unless hubs are most of what is fetched: those stay in caches
/// (perf_test/notes/sddmm.md).
struct SddmmCopy {
  double saved, taken;
};
/// served: entries per fetched row of Y; skew: longest row over the mean.
inline SddmmCopy sddmm_copy(std::int64_t inner, double served, double rows_of_y, double skew = 1) {
  if (served > 1.5) return {inner < 256 ? 0.15 : 0.24, 4.4};
  const bool far = 4 * static_cast<double>(inner) * rows_of_y > 48e6;
  const double saved = far ? 0.35 : inner < 128 ? 0.2 : 0.3;
  return {skew > 40 ? std::min(saved, 0.2) : saved, far ? 2.5 : 4.4};
}
/// Whether it is made, of so many rows of Y that are fetched.
inline bool sddmm_copies_y(std::int64_t inner, double nnz, double fetched, double rows_of_y) {
  if (inner < 64 || fetched == 0) return false;
  const SddmmCopy copy = sddmm_copy(inner, nnz / fetched, rows_of_y);
  return copy.saved * fetched > copy.taken * rows_of_y;
}

/// Time of Panels, in that of Rows per entry. served: in windows of its height; worth: as SddmmWindows has it.
inline double panels_cost(const SpmmFeatures& f, Precision precision, const SddmmOptions& options, double served,
                          double worth) {
  const double nnz = static_cast<double>(f.nnz), fetched = nnz / std::max(served, 1.0);
  const double least = least_sddmm_density(options.inner_hint, precision, f.mean);
  const double plain = least * nnz / std::max(worth, 1.0);
  const bool possible = precision == Precision::TF32 && options.tf32_copy != Tf32Copy::Never;
  const auto rows_of_y = static_cast<double>(f.cols);
  if (!possible || !sddmm_copies_y(options.inner_hint, nnz, fetched, rows_of_y)) return plain;
  if (served <= 1.5 && f.mean < 6) return plain;  // blocks of such windows are not full
  const SddmmCopy copy = sddmm_copy(options.inner_hint, served, rows_of_y, static_cast<double>(f.longest) / f.mean);
  // Windows that share little take 1.2 of the time of Rows per fetched row.
  const double each = served > 1.5 ? plain / fetched : std::min(plain / fetched, 1.2);
  return each * (fetched * (1 - copy.saved) + copy.taken * rows_of_y);
}

/// Entries of a column in a window of `height` instructions from which SddmmAlgorithm::Bsmr calls it dense.
inline int sddmm_dense_from(std::int64_t inner, Precision precision, int height) {
  return static_cast<int>(std::ceil(least_sddmm_density(inner, precision) * (height == 2 ? 1.2 : 1)));
}

/// Fills choice.candidates, best first, and decides. Costs are in gathered rows of Y. shape: the backend's.
inline void predict_sddmm(SddmmChoice& c, const SpmmFeatures& f, const SddmmOptions& options,
                          const SddmmShape& shape = {}) {
  const double nnz = static_cast<double>(f.nnz);
  const SddmmWindows windows = sddmm_windows(options.inner_hint, c.precision, f.g8, f.g16);
  const double served = windows.height == 2 ? f.g16 : f.g8;
  double panels = panels_cost(f, c.precision, options, served, windows.served), rows = nnz;
  const int word_bytes = sddmm_word_bytes_of(options.inner_hint, c.precision);
  if (word_bytes < 16) {
    constexpr SddmmNarrowRows narrow;
    const auto row_bytes = static_cast<double>(options.inner_hint * bytes_of(c.precision));
    const double copies = narrow.copies(static_cast<double>(f.rows) + static_cast<double>(f.cols), 2, row_bytes);
    panels += copies;
    rows += std::min(narrow.more(word_bytes, bytes_of(c.precision)) * nnz, copies);
  }
  // What a fetched row would have to be worth, copies counted.
  const double least = f.nnz > 0 ? panels * std::max(windows.served, 1.0) / rows : 0;
  c.candidates.clear();
  // Blocks count entries in 32 bits.
  const bool counted = f.nnz < std::numeric_limits<std::uint32_t>::max() && f.rows < 8 * SddmmBlock::most_windows;
  if (counted && !too_few_for_parts(shape, options.inner_hint)) {
    c.candidates.push_back({SddmmAlgorithm::Panels, panels});
  }
  c.candidates.push_back({SddmmAlgorithm::Rows, rows});
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
