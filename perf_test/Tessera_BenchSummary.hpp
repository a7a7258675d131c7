// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BENCH_SUMMARY_HPP
#define TESSERA_BENCH_SUMMARY_HPP

#include <cstddef>
#include <string>
#include <vector>

#include "Tessera_BenchReport.hpp"

/// \file
/// What the records of all matrices say together. Emulated and wrong results are left out, precisions never mixed.

namespace Tessera {
namespace Bench {

/// Time of the second system over time of the first, over the matrices that both have in one precision.
struct Comparison {
  std::string precision, label, against;
  double geometric_mean = 1, cold_geometric_mean = Record::unknown;
  double minimum = Record::unknown;
  std::string minimum_matrix;
  int wins = 0, matrices = 0;
};
/// Tessera's rows against the baselines, and against its own csr; "cusparse" is the better of its CSR algorithms, "best
/// baseline" the best of all on each matrix.
std::vector<Comparison> compare(const std::vector<Record>& records);

/// What the choice of auto costs on one matrix in one precision.
struct Regret {
  std::string precision, matrix;
  std::string chosen;   ///< what auto took
  std::string fastest;  ///< of Tessera's other rows, auto's own choice measured again among them
  double seconds = Record::unknown, fastest_seconds = Record::unknown;
  /// 1: auto took the fastest; differences of a few percent about it are those of two measurements.
  double ratio() const { return seconds / fastest_seconds; }
};
/// One for each matrix and precision that has auto and another of Tessera's algorithms, in the order of the records.
std::vector<Regret> regrets(const std::vector<Record>& records);

struct RegretSummary {
  std::string precision;
  double geometric_mean = 1, worst = 0;
  std::string worst_matrix;
  int matrices = 0;
};
/// One for each precision.
std::vector<RegretSummary> summarize_regrets(const std::vector<Regret>& regrets);

/// Auto in one precision, over all matrices; the baseline is the fastest on each matrix.
struct AutoSummary {
  std::string precision;
  int matrices = 0, compared = 0;  ///< compared: those with a baseline
  double speedup_geometric_mean = Record::unknown, speedup_minimum = Record::unknown;
  std::string minimum_matrix, minimum_baseline;
  double gbytes_per_second = Record::unknown;  ///< geometric mean; bytes of the format and the vectors
  /// Set-up time over the time of an apply: geometric mean and largest.
  double setup_applies = Record::unknown, setup_applies_largest = Record::unknown;
  std::string setup_matrix;
};
std::vector<AutoSummary> summarize_auto(const std::vector<Record>& records);

/// Tables of the above; nothing where there is nothing to say.
void print_comparisons(const std::vector<Record>& records, std::size_t label_width, bool cold);
/// @param stream_gbytes_per_second  0: not measured
void print_auto(const std::vector<Record>& records, double stream_gbytes_per_second);
void print_regrets(const std::vector<Record>& records);

}  // namespace Bench
}  // namespace Tessera

#endif
