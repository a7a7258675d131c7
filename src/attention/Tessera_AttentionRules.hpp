// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_ATTENTION_ATTENTION_RULES_HPP
#define TESSERA_ATTENTION_ATTENTION_RULES_HPP

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <utility>

#include "Tessera_Compat.hpp"
#include "attention/Tessera_AttentionOperands.hpp"
#include "attention/Tessera_SelectAttention.hpp"
#include "backends/interface/Tessera_AttentionKernels.hpp"
#include "core/Tessera_ColumnReads.hpp"
#include "features/Tessera_SpmmFeatures.hpp"

/// \file
/// The rules of Auto on hosts, and of the backends' fused kernels.

namespace Tessera {
namespace Impl {

/// Bytes of K and V up to which Fused was the faster or as fast (perf_test/notes/attention.md): of the rows that a row
/// of the pattern reaches across, and of those that it uses. Fused reads K and V by turns, where Chain has first the
/// one and then the other to itself in the second-level cache and in what translates addresses (far), and in the
/// first-level cache for the next row (own).
constexpr double most_fused_far = 4e6, most_fused_own = 32e3;
/// Groups of eight rows of K per entry that 1,024 consecutive entries need, from which on they name rows all over: what
/// short rows reach across says nothing then.
constexpr double least_scattered = 0.13;

/// Whether hosts read a K and V of more than most_fused_far all over. Asks nothing of a device.
template <class Csr>
bool scattered_over_operands(const Csr& A, int dimension) {
  if constexpr (Compat::is_host_v<typename Csr::execution_space>) {
    const double bytes = 2.0 * dimension * static_cast<double>(A.cols()) * sizeof(typename Csr::value_type);
    return bytes > most_fused_far && EntryNearness(A).lines > least_scattered;
  } else {
    return false;
  }
}

/// Fills choice.candidates, best first, and decides. Costs are bytes over those of the rule. 16-bit operands are slower
/// by Fused only where they are scattered: Chain converts them twice, and its SpMM reads weights of 32 bits. Where one
/// row is most of the work (`alone`), it is what K and V have to stay in a cache for.
inline void predict_attention(AttentionChoice& c, const SpmmFeatures& f, int dimension, std::size_t element_bytes,
                              bool scattered = false) {
  const bool narrow = element_bytes == 2, alone = 2 * f.longest > f.nnz + f.rows;
  const double row = 2.0 * dimension * static_cast<double>(element_bytes);
  const double far = row * (scattered ? static_cast<double>(f.cols) : f.reach);
  const double own = row * (alone ? static_cast<double>(f.longest) : f.mean);
  const double cost = std::max(narrow && !scattered ? 0 : far / most_fused_far, narrow ? 0 : own / most_fused_own);
  const Candidate<AttentionAlgorithm> fused{AttentionAlgorithm::Fused, cost}, chain{AttentionAlgorithm::Chain, 1};
  c.candidates = {fused, chain};
  if (cost > 1) std::swap(c.candidates[0], c.candidates[1]);
  c.algorithm = c.candidates[0].algorithm;
  char text[240];
  std::snprintf(
      text, sizeof(text),
      "%s for %d columns of %s: %s uses %.3g kB of K and V and %s %.3g MB (Fused up to %.3g kB and %.3g MB%s)",
      to_string(c.algorithm), dimension, to_string(c.precision), alone ? "a row that is most of the work" : "a row",
      1e-3 * own, scattered ? "rows are all over" : "reaches across", 1e-6 * far, 1e-3 * most_fused_own,
      1e-6 * most_fused_far, narrow ? "; 16 bits: unless all over" : "");
  c.why = text;
}

/// How many times as many entries a fetched row of K and V has to serve in windows of two instructions as in those of
/// one for them to be faster: they halve the loads, and hold twice the sums (perf_test/notes/attention.md).
constexpr double least_attention_gain_of_height = 1.55;

/// Instructions that windows are high.
inline int attention_window_height(const AttentionShape& shape, const SpmmFeatures& f,
                                   const AttentionOptions& options) {
  if (options.window_height > 0) return options.window_height;
  const double one = shape.rows == 16 ? f.g16 : f.g8, two = shape.rows == 16 ? f.g32 : f.g16;
  return options.dimension_hint <= shape.most_columns_of_two && two >= least_attention_gain_of_height * one ? 2 : 1;
}

/// What a pass over one head takes, in us: a constant, one per column, and per million of each of these
/// (perf_test/notes/attention.md): numbers in fetched rows of K (as many of V are meant), fetched rows or entries,
/// numbers of Q and K, rows; and per thousand entries of the longest row, which one softmax waits for, and per thousand
/// of its numbers.
struct AttentionCost {
  double launches, column, fetched, each, operands, row, longest = 0, longest_numbers = 0;

  /// @param fetched_rows  of K, as many of V; @param count  what `each` is of
  double us(double fetched_rows, double count, const SpmmFeatures& f, int columns) const {
    const double rows = static_cast<double>(f.rows), both = rows + static_cast<double>(f.cols);
    return launches + column * columns +
           1e-6 * ((fetched * fetched_rows + operands * both) * columns + each * count + row * rows) +
           1e-3 * (longest + longest_numbers * columns) * static_cast<double>(f.longest);
  }
};
/// 16 bits: gathers at 6.7 TB/s and operands once at 4 TB/s fit Fused on an H200 and H100, the chain moves scores
/// besides. 32 bits: fitted on an H200 (17 to 20 matrices; 32, 64, 128 columns; one, 4 and 8 heads; the longest row on
/// 52 others, 20 to 128 columns); 64 bits: 25
/// generated ones, 20 to 100 columns, one head, rows by the columns that their team has lanes for.
constexpr AttentionCost attention_fused_16{8, 0, 0.6, 0, 1.0, 0}, attention_chain_16{16, 0, 0.6, 5.6, 1.2, 0},
    attention_fused_fp32{5.9, 0.13, 1.15, 24, 2.6, 0}, attention_fused_tf32{3.92, 0.116, 1.0, 19, 1.85, 0},
    attention_chain_32{17.5, 0, 0.68, 30, 2.3, 327, 8}, attention_rows_32{9.7, 0.0757, 0.505, 23.7, 1.68, 0, 0, 0.04},
    attention_rows_64{6.3, 0.096, 1.83, 12.4, 4.0, 116, 5.4}, attention_chain_64{5.4, 0.083, 1.58, 22.5, 3.6, 750, 17};

/// Columns of FP64 for which the team that takes so many has lanes (backends/launch/Tessera_AttentionRowsLaunch.hpp).
inline int attention_team_columns(int columns) {
  for (const int most : {16, 24, 32, 48, 64, 96, 128}) {
    if (columns <= most) return most;
  }
  return 256;
}

/// Copies of Q, K, V and O of one head where kernels want other columns, in us: two launches, and bytes at 3.5 TB/s.
/// Nothing where they are as many.
inline double attention_copies_us(const SpmmFeatures& f, int columns, std::int64_t whole, std::size_t element_bytes) {
  if (whole == columns) return 0;
  const double rows = 2.0 * (static_cast<double>(f.rows) + static_cast<double>(f.cols));
  return 5 + 0.286e-6 * rows * (columns + static_cast<double>(whole)) * static_cast<double>(element_bytes);
}

/// What Chain's products lose by rows that are no whole words, which they copy or read in narrower ones: of the copies
/// of the others.
constexpr double attention_chain_copies = 0.4;

/// How many times faster than the others Fused must be predicted for Auto to take it. 16 bits: it was the faster one on
/// all that was measured. 32 bits: least regret.
constexpr double least_attention_gain_16_bits = 0, least_attention_gain_32_bits = 1.05;

/// Fills the costs of choice.candidates, if there is more than one, and puts the best first: microseconds per head; and
/// decides.
inline void predict_attention_on_units(AttentionChoice& c, const SpmmFeatures& f, const AttentionOptions& options,
                                       std::size_t element_bytes) {
  const double served = std::max(1.0, f.g16 >= least_attention_gain_of_height * f.g8 ? f.g16 : f.g8);
  const double nnz = static_cast<double>(f.nnz), fetched_rows = nnz / served;
  const bool narrow = element_bytes == 2, in_parts = c.precision == Precision::FP32, wide = element_bytes == 8;
  const int d = options.dimension_hint;
  const std::int64_t whole = RowsWanted{16 / static_cast<std::int64_t>(element_bytes)}.columns(d);
  const double copies = attention_copies_us(f, d, whole, element_bytes);
  const auto cost_of = [&](AttentionAlgorithm a) {
    if (a == AttentionAlgorithm::Fused) {
      const AttentionCost& of = narrow ? attention_fused_16 : in_parts ? attention_fused_fp32 : attention_fused_tf32;
      const int least = narrow ? 1 : 32;  // kernels have as many columns, which takes its time in 32 bits
      return of.us(fetched_rows, fetched_rows, f, std::max(static_cast<int>(whole), least)) + copies;
    }
    if (a == AttentionAlgorithm::Rows) {
      return copies + (wide ? attention_rows_64.us(nnz, nnz, f, attention_team_columns(d))
                            : attention_rows_32.us(nnz, nnz, f, static_cast<int>(whole)));
    }
    const AttentionCost& of = narrow ? attention_chain_16 : wide ? attention_chain_64 : attention_chain_32;
    return of.us(fetched_rows, nnz, f, d) + attention_chain_copies * copies;
  };
  const double handicap = narrow ? least_attention_gain_16_bits : least_attention_gain_32_bits;
  const auto weighed = [&](const Candidate<AttentionAlgorithm>& candidate) {
    return candidate.cost * (candidate.algorithm == AttentionAlgorithm::Fused ? handicap : 1);
  };
  for (auto& candidate : c.candidates) candidate.cost = cost_of(candidate.algorithm);
  std::stable_sort(c.candidates.begin(), c.candidates.end(),
                   [&](const auto& a, const auto& b) { return weighed(a) < weighed(b); });
  char text[160];
  std::snprintf(text, sizeof(text), "; %d columns of %s, a fetched row of K and V of windows serves %.2f entries", d,
                to_string(c.precision), served);
  c.why += text;
  if (c.candidates.empty()) return;
  c.algorithm = c.candidates[0].algorithm;
  const char* before = ": ";
  for (const auto& candidate : c.candidates) {
    std::snprintf(text, sizeof(text), "%s%s %.3g", before, to_string(candidate.algorithm), candidate.cost);
    c.why += text;
    before = ", ";
  }
  c.why += " us per head predicted";
}

}  // namespace Impl
}  // namespace Tessera

#endif
