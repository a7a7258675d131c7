// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMM_SPMM_RULES_HPP
#define TESSERA_SPMM_SPMM_RULES_HPP

#include <algorithm>
#include <cstdio>
#include <string>

#include "core/Tessera_Backends.hpp"
#include "features/Tessera_SpmmFeatures.hpp"
#include "spmm/Tessera_SelectSpmm.hpp"

/// \file
/// The rules of Auto on devices.

namespace Tessera {
namespace Impl {

/// The least g8 (entries that one fetched row of B serves in windows of 8 rows) with which panels were faster than rows
/// on an H200 (perf_test/notes/auto.md). A block of a panel costs about the same however many columns B has, so narrow
/// B asks for denser windows. In TF32 the rival are rows in FP32, which convert nothing. FP32 takes three products and
/// the splitting of operands.
inline double least_panel_density(std::int64_t columns, Precision precision) {
  if (precision == Precision::TF32) return columns <= 16 ? 3.4 : columns <= 128 ? 2.5 : 2.6;
  if (precision == Precision::FP32) return columns <= 16 ? 4.2 : columns <= 128 ? 3.4 : 4.0;
  if (precision == Precision::FP64) return columns <= 8 ? 3.5 : 2.1;
  return columns <= 32 ? 2.5 : 2.3;
}
/// Whether windows of 8 rows are long, so that what a window costs at its ends does not show, and few of them occupy a
/// device when they are split.
inline bool long_rows(const SpmmFeatures& f) { return f.rows >= 500 && f.mean >= 200; }
inline double least_panel_density_of_long_rows(std::int64_t columns, Precision precision) {
  const bool narrow = columns <= 32, middle = columns <= 64, wide = columns > 128;
  if (precision == Precision::FP64) return middle ? 1.6 : 1.48;
  if (precision == Precision::FP32) return narrow ? 2.75 : middle ? 2.2 : wide ? 1.8 : 1.95;
  if (precision == Precision::TF32) return narrow ? 1.8 : wide ? 2 : 1.9;
  return narrow ? 2.5 : middle ? 1.65 : wide ? 1.7 : 1.9;
}

/// More than there can be.
constexpr double never_panels = 99;

/// The least where contiguous rows of B are no multiples of sixteen bytes: panels copy B into such rows first, and rows
/// read it where it lies, the faster if eight bytes at a time. 0: they are multiples.
inline double least_panel_density_of_odd_rows(std::int64_t columns, Precision precision) {
  const std::int64_t bytes = columns * bytes_of(precision);
  if (bytes % 16 == 0) return 0;
  const bool narrow = columns <= 8, middle = columns <= 16;
  if (precision == Precision::FP64) return narrow ? 4.3 : middle ? 2.9 : columns <= 64 ? 2.45 : 3.4;
  if (precision == Precision::FP32) return columns <= 4 ? 6 : narrow ? 5 : 3.4;
  if (precision == Precision::TF32) return middle ? 4.4 : bytes % 8 == 0 ? 3.8 : columns <= 64 ? 2.8 : 3.4;
  if (narrow || bytes % 8 == 0) return narrow ? 4.2 : 4.1;
  return middle ? 3.4 : columns <= 32 ? 2.6 : columns <= 64 ? 3.2 : 3.5;
}

/// The same for a matrix whose rows of B are whole words: less where there are windows enough.
inline double least_panel_density_of_whole_words(const SpmmFeatures& f, std::int64_t columns, Precision precision) {
  const double least = least_panel_density(columns, precision);
  if (columns <= 16) return least;
  if (long_rows(f)) return least_panel_density_of_long_rows(columns, precision);
  if (columns > 128) return least;
  const bool narrow = columns <= 32, middle = columns <= 64;
  if (f.rows < 4096) return least;
  if (precision == Precision::TF32) return narrow ? 2.15 : middle ? 2.3 : least;
  if (precision == Precision::FP64) return middle ? 1.8 : least;
  if (precision == Precision::FP32) return least;
  // Rows of 4 lanes are dealt out where long ones are cut (RowsWalk::Dealt), which suits short ones.
  if (narrow) return f.mean < 12 && f.longest > 128 ? 3.5 : least;
  return middle ? 1.75 : 2.15;
}

inline double least_panel_density(const SpmmFeatures& f, std::int64_t columns, Precision precision) {
  double whole = least_panel_density_of_whole_words(f, columns, precision);
  // Of short rows, what a window costs at its ends shows, but in FP64, or where B has two to four blocks.
  const bool tensor = precision != Precision::FP64 && precision != Precision::FP32;
  if (f.mean < 12 && tensor && (columns <= 16 || columns > 64)) whole = std::max(whole, 3.5);
  const double odd = least_panel_density_of_odd_rows(columns, precision);
  if (odd == 0) return whole;
  // Of next to nothing of B, A is what costs; and a small product takes less than the launch of a copy does.
  if (columns * bytes_of(precision) <= 8 || f.nnz * columns < 6000000) return never_panels;
  return long_rows(f) ? whole : std::max(whole, odd);  // long rows use the copy often
}

/// From how many columns on rows copy B in TF32 first (CompactB), 0 for never: it pays where a row of B is fetched
/// often and neighbouring rows of A do not find it in the first-level cache anyway (perf_test/notes/spmm-rows.md).
inline std::int64_t compact_b_from(const SpmmFeatures& f, Precision precision, const SpmmOptions& options) {
  if (precision != Precision::TF32 || options.gespmm.tf32_copy == Tf32Copy::Never) return 0;
  if (options.gespmm.tf32_copy == Tf32Copy::Always) return 1;
  const double uses = options.num_columns_hint < 128 ? 28 : 15.5;
  const bool often = static_cast<double>(f.nnz) >= uses * static_cast<double>(f.cols);
  const bool apart = f.mean >= 200 || (f.mean >= 12 && f.g8 <= 1.5);
  return options.num_columns_hint >= 64 && often && apart ? 48 : 0;
}

/// Whether rows are spread over teams (SpreadRowsKernel): small matrices of uneven rows, whose long rows let lanes wait
/// for memory many times in a row while most of a device idles. The larger the product, the less: by entries, which
/// take instructions, and by bytes of B and C; of rows of B in up to 32 bytes, other walks are slow for longer. Where
/// teams of a wave share rows as it is (RowsWalk::Shared), less again (perf_test/notes/spmm-rows.md).
inline bool spreads_rows(const SpmmFeatures& f, Precision precision, const SpmmOptions& options) {
  const GeSpmmOptions& o = options.gespmm;
  if (o.spread != RowSpread::Auto) return o.spread == RowSpread::Always;
  const bool uneven = f.longest > 16 && static_cast<double>(f.longest) >= 2 * f.mean;
  const std::int64_t row_bytes = std::int64_t{options.num_columns_hint} * bytes_of(precision);
  const std::int64_t lanes = (row_bytes + 15) / 16, size = f.nnz + 4 * f.rows;
  const bool halves = row_bytes % 8 != 0 && bytes_of(precision) == 2;  // an element per lane of up to eight
  const bool fill = f.mean >= 100 && f.rows >= 3000;                   // a wave per row occupies the device, too
  const bool even = lanes <= 2 && !(halves && row_bytes > 4) && f.mean >= 32 && size <= std::int64_t{1} << 20 && !fill;
  if (o.max_piece > 0 || !(uneven || even)) return false;
  if (lanes <= 1) return even || (f.longest >= 48 && size <= std::int64_t{1} << 22);
  const bool together = lanes == 2 ? f.mean >= 200 : lanes < 32 && f.mean * static_cast<double>(lanes) >= 128;
  const int log2_most = together ? 17 : lanes == 2 ? 20 : 19;
  const std::int64_t most_bytes = std::int64_t{f.longest >= 48 ? 40 : 14} << 20;
  return size <= std::int64_t{1} << log2_most && size * row_bytes <= most_bytes;
}

inline bool uneven_rows(const SpmmFeatures& f) { return static_cast<double>(f.longest) > 10 * f.mean + 20; }
/// GeSpmmPattern::scatter.
inline double scatter_in_columns(const SpmmFeatures& f) { return f.g8 >= (uneven_rows(f) ? 1.5 : 1.2) ? 0 : f.reach; }

/// What GeSpmm chooses its walk by. Neighbouring rows count as sharing columns from a g8 of 2.5 on.
inline GeSpmmPattern ge_spmm_pattern(const SpmmFeatures& f, Precision precision, const SpmmOptions& options) {
  return {compact_b_from(f, precision, options),
          f.reach,
          f.g8 >= 2.5,
          spreads_rows(f, precision, options),
          f.longest,
          uneven_rows(f),
          scatter_in_columns(f)};
}

/// Whether there are so few windows of 8 rows that waves which have them leave a device idle: in FP64 and TF32, whose
/// blocks are narrow, a window is then a long way for one wave.
inline bool few_windows(const SpmmFeatures& f, std::int64_t columns, Precision precision) {
  if (long_rows(f) && (columns > 8 || f.rows >= 4000)) return false;
  if (precision == Precision::FP64) return f.rows < (columns <= 8 ? 12000 : columns <= 32 ? 4096 : 0);
  return precision == Precision::TF32 && columns > 16 && columns <= 32 && f.rows < 6400;
}

/// Predicted time of an apply to N columns in units of one gathered row of B of the precision's elements: rows that are
/// gathered, and what a gather costs relative to GeSpmm's.
inline double predicted_cost(SpmmAlgorithm algorithm, const SpmmFeatures& f, std::int64_t columns, Precision precision,
                             bool compact) {
  const double nnz = static_cast<double>(f.nnz);
  double density = f.g8 > 0 ? f.g8 : 1;
  // A few windows of very long rows leave a device idle even when they are split, unless B is wide.
  const bool single = precision == Precision::TF32 || precision == Precision::FP32;
  const bool wide = columns >= 128 || (columns >= 64 && single && f.nnz >= std::int64_t{1} << 19);
  if (f.rows < 512 && f.mean > 4096) density *= wide ? 2 : 0.125;
  // Rows of two or three entries beside long ones: items of a table are apart from their neighbours, windows are not.
  const bool scattered = f.mean < 3 && f.longest > 128 && columns > 16 && columns <= 64;
  if (precision == Precision::FP64 && scattered) density *= 2.2;
  const double windows =
      least_panel_density(f, columns, precision) * nnz / density * (few_windows(f, columns, precision) ? 2.2 : 1);
  switch (algorithm) {
    case SpmmAlgorithm::Panels:
      return windows;
    case SpmmAlgorithm::FlashSparse:
      return 1.5 * windows;
    default:
      return compact && !long_rows(f) ? 0.8 * nnz : nnz;  // bounds of long rows were measured with a copy
  }
}

/// What rows cost that panels in parts leave to the kernel for compressed rows (RowsApart): a gathered row of B for
/// each of their entries, since column vectors stay, and a launch, 3 us, in which rows read some 48 MB of B out of the
/// caches (perf_test/notes/precision.md).
inline double rows_apart_cost(std::int64_t entries, std::int64_t columns) {
  const double launch = 1.2e7 / static_cast<double>(std::max<std::int64_t>(columns, 32));
  return entries > 0 ? static_cast<double>(entries) + launch : 0;
}
/// Counts `entries` into the prediction for panels, of which it knew `known`: the features know the shortest rows, the
/// format all.
inline void count_rows_apart(SpmmChoice& c, std::int64_t columns, std::int64_t entries, std::int64_t known) {
  for (SpmmCandidate& candidate : c.candidates) {
    if (candidate.algorithm != SpmmAlgorithm::Panels) continue;
    candidate.cost += rows_apart_cost(entries, columns) - rows_apart_cost(known, columns);
  }
  std::stable_sort(c.candidates.begin(), c.candidates.end(),
                   [](const SpmmCandidate& a, const SpmmCandidate& b) { return a.cost < b.cost; });
}
inline bool panels_in_parts(const SpmmChoice& c, const SpmmOptions& options) {
  const PanelGeometry* const shape = panel_shape(kernel_table(c.backend), c.precision, options.num_columns_hint);
  return shape != nullptr && shape->part_columns != 0;
}

/// Whether another algorithm is predicted to be faster than the panels of a choice of Auto, now that these are made and
/// leave `entries` to rows. The choice is then changed.
inline bool panels_given_up(SpmmChoice& c, const SpmmFeatures& f, const SpmmOptions& options, std::int64_t entries) {
  const bool first = !c.candidates.empty() && c.candidates[0].algorithm == SpmmAlgorithm::Panels;
  if (!first || !panels_in_parts(c, options)) return false;
  count_rows_apart(c, options.num_columns_hint, entries, f.brief_entries);
  if (c.candidates[0].algorithm == SpmmAlgorithm::Panels) return false;
  c.algorithm = c.candidates[0].algorithm;
  c.why += std::string("; not Panels but ") + to_string(c.algorithm) + ": panels would leave " +
           std::to_string(entries) + " of " + std::to_string(f.nnz) + " entries to rows, for FP32";
  return true;
}

/// Fills choice.candidates, best first, and decides. exact_ge_spmm: GeSpmm in FP32 may answer a request for TF32.
inline void predict_spmm(SpmmChoice& c, const SpmmFeatures& f, const SpmmOptions& options, bool exact_ge_spmm) {
  const std::int64_t columns = options.num_columns_hint;
  const KernelTable& table = kernel_table(c.backend);
  c.candidates.clear();
  for (const SpmmAlgorithm a : {SpmmAlgorithm::Panels, SpmmAlgorithm::FlashSparse, SpmmAlgorithm::GeSpmm}) {
    const bool possible = a == SpmmAlgorithm::GeSpmm ? c.precision != Precision::TF32 || exact_ge_spmm
                                                     : offers_spmm(table, a, c.precision, options);
    if (possible) c.candidates.push_back({a, predicted_cost(a, f, columns, c.precision, c.pattern.compact_from > 0)});
  }
  count_rows_apart(c, columns, panels_in_parts(c, options) ? f.brief_entries : 0, 0);
  c.algorithm = c.candidates[0].algorithm;
  char text[320];
  std::snprintf(text, sizeof(text),
                "%s for %lld columns of %s: rows of %.1f (longest %lld); a fetched row of B serves %.2f, %.2f, %.2f, "
                "%.2f entries in windows of 8, 16, 32, 64 rows, which reach across %.3g rows of B (Panels from %.2f)",
                to_string(c.algorithm), static_cast<long long>(columns), to_string(c.precision), f.mean,
                static_cast<long long>(f.longest), f.g8, f.g16, f.g32, f.g64, f.reach,
                least_panel_density(f, columns, c.precision));
  c.why = text;
}

}  // namespace Impl
}  // namespace Tessera

#endif
