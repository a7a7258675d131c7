// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BENCH_SUMMARY_HPP
#define TESSERA_BENCH_SUMMARY_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "driver/Tessera_BenchReport.hpp"

/// \file
/// What the records of all matrices say together. Emulated and wrong results are left out, precisions and numbers of
/// columns never mixed.

namespace Tessera {
namespace Bench {

/// Time of the second system over time of the first, over the matrices that both have in one precision for one N.
struct Comparison {
  std::string precision, label, against;
  std::int64_t n = 1;
  double geometric_mean = 1, cold_geometric_mean = Record::unknown;
  double minimum = Record::unknown;
  std::string minimum_matrix;
  int wins = 0, ties = 0, matrices = 0;  ///< ties: both ran the same kernel, so that no difference is one
};
/// Tessera's rows against the baselines, and against its own csr; "cusparse" is the better of its CSR algorithms, "best
/// baseline" the best of all on each matrix.
std::vector<Comparison> compare(const std::vector<Record>& records);

/// What the choice of auto costs on one matrix in one precision for one N.
struct Regret {
  std::string precision, matrix;
  std::int64_t n = 1;
  std::string chosen;   ///< what auto took
  std::string fastest;  ///< of Tessera's other rows, auto's own choice measured again among them
  double seconds = Record::unknown, fastest_seconds = Record::unknown;
  /// 1: auto took the fastest; differences of a few percent about it are those of two measurements.
  double ratio() const { return seconds / fastest_seconds; }
};
/// One for each matrix, precision and N that has auto and another of Tessera's algorithms, in the order of the records.
std::vector<Regret> regrets(const std::vector<Record>& records);

struct RegretSummary {
  std::string precision;
  std::int64_t n = 1;
  double geometric_mean = 1, worst = 0;
  std::string worst_matrix;
  int matrices = 0;
};
/// One for each precision and N.
std::vector<RegretSummary> summarize_regrets(const std::vector<Regret>& regrets);

/// Auto in one precision for one N, over all matrices or those of one class; the baseline is the fastest on each
/// matrix.
struct AutoSummary {
  std::string precision;
  std::int64_t n = 1;
  std::string pattern;                       ///< the class; empty: all matrices
  int matrices = 0, compared = 0, wins = 0;  ///< compared: those with a baseline; wins: faster than it
  double speedup_geometric_mean = Record::unknown, speedup_minimum = Record::unknown;
  std::string minimum_matrix, minimum_baseline;
  double gbytes_per_second = Record::unknown;  ///< geometric mean; bytes of the format and the vectors
  /// Set-up time over the time of an apply: geometric mean and largest.
  double setup_applies = Record::unknown, setup_applies_largest = Record::unknown;
  std::string setup_matrix;
};
/// @param pattern  leaves out the matrices of other classes; empty: takes all
std::vector<AutoSummary> summarize_auto(const std::vector<Record>& records, const std::string& pattern = "");

/// The classes that occur, in the order of the records.
std::vector<std::string> patterns_of(const std::vector<Record>& records);

/// Tables of the above; nothing where there is nothing to say.
void print_comparisons(const std::vector<Record>& records, std::size_t label_width, bool cold);
/// @param stream_gbytes_per_second  0: not measured
void print_auto(const std::vector<Record>& records, double stream_gbytes_per_second);
void print_regrets(const std::vector<Record>& records);

}  // namespace Bench
}  // namespace Tessera

#endif
