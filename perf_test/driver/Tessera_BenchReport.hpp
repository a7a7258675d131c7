// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BENCH_REPORT_HPP
#define TESSERA_BENCH_REPORT_HPP

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "Tessera_Statistics.hpp"
#include "driver/Tessera_BenchContext.hpp"
#include "driver/Tessera_BenchOptions.hpp"

/// \file
/// What one run measured, and its four forms: a table as it happens, a summary at the end, JSON, CSV.

namespace Tessera {
namespace Bench {

/// One system on one matrix in one precision. NaN: not known or not measured; null in JSON.
struct Record {
  static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

  std::string op, role;            ///< role: tessera or baseline
  std::string asked;               ///< the algorithm of the command line: "auto" may have taken any
  std::string algorithm, variant;  ///< variant: the options of an ablation
  std::string backend, precision, y_type, kernel, matrix;
  std::string pattern;    ///< "mesh" or "graph", see pattern_class()
  std::string layout;     ///< of B and C: "right" or "left"; empty for vectors
  bool emulated = false;  ///< an emulated matrix unit: its times say nothing about a device
  std::int64_t rows = 0, cols = 0, nnz = 0, n = 1, k = 0;
  std::int64_t heads = 1;  ///< of attention
  bool columns = false;    ///< the operation has n columns, so that tables show them
  double alpha = 1, beta = 0, value_scale = 1;
  int offset_bits = 32;
  double seconds_median = unknown, seconds_min = unknown;
  double seconds_cold_median = unknown, seconds_cold_min = unknown;
  int samples = 0, runs_per_sample = 1;
  double gflops = unknown;
  double bytes = 0, csr_bytes = 0;  ///< an apply must move at least, in this format and in CSR; vectors included
  double gather_bytes = unknown;    ///< of the rows of B or Y that an apply fetches, from whatever cache
  double setup_seconds = unknown, update_seconds = unknown;
  double format_bytes = unknown, map_bytes = unknown, workspace_bytes = unknown;
  double padding_ratio = unknown, matrix_unit_share = unknown;
  double matrix_instructions = unknown;  ///< of an apply, where the format's blocks say it
  double roof_share = unknown;           ///< csr_gbytes_per_second() over the streaming read, where that was measured
  int launches = -1;
  double error_over_bound = unknown;
  bool verified = false;
  std::string why, fault;
  double break_even_applies = unknown;  ///< set-up time over the time an apply saves against break_even_against
  std::string break_even_against;
  std::vector<ClassShare> classes;

  double gbytes_per_second() const { return 1e-9 * bytes / seconds_median; }
  double csr_gbytes_per_second() const { return 1e-9 * csr_bytes / seconds_median; }
  double gather_gbytes_per_second() const { return 1e-9 * gather_bytes / seconds_median; }
  bool chosen_by_auto() const { return asked == "auto"; }
  /// The first product's cost in products that follow.
  double setup_applies() const { return setup_seconds / seconds_median; }
  /// What a table calls it, as "auto->packed".
  std::string label() const {
    if (chosen_by_auto()) return "auto->" + algorithm;
    if (variant.empty()) return algorithm;
    return columns ? algorithm + "-" + variant : algorithm + "[" + variant + "]";
  }
  /// What a summary over matrices calls it: auto is one system, whatever it takes.
  std::string system() const { return chosen_by_auto() ? asked : label(); }
  /// A right result with a time that says something about this machine.
  bool counts() const { return verified && !emulated && seconds_median > 0; }
};

class Report {
 public:
  /// @param columns  the operation has columns N
  Report(const BenchOptions& options, const BenchContext& context, bool columns);

  void start_matrix(const std::string& name, std::size_t index);
  /// Sizes are known only after reading or generating.
  /// @param pattern  see pattern_class(); every record of the matrix gets it
  void describe_matrix(std::int64_t rows, std::int64_t cols, std::int64_t nnz, bool seeded_values,
                       const std::string& pattern = "");
  /// On terminals, one line that the next output replaces.
  void progress(const std::string& what);
  void add(Record record);
  /// A remark under the matrix, and, if it is not `ExitVerified`, a claim on the exit status.
  void note(const std::string& text, Exit status = ExitVerified);
  /// Writes the files again, so that an interrupted run leaves what it had.
  void end_matrix();
  /// Prints the summary. @return the most serious exit status.
  Exit finish();

 private:
  void print_header();
  void print_row(const Record& record);
  double speedup(const Record& record) const;
  void print_classes(const Record& record) const;
  void print_summary() const;
  void write_files() const;
  void clear_progress();

  BenchOptions options_;
  BenchContext context_;
  std::vector<Record> records_;
  std::size_t first_of_matrix_ = 0;
  std::string matrix_, pattern_;
  std::size_t index_ = 0;
  bool columns_ = false, cached_shown_ = false, smaller_shown_ = false;
  std::size_t label_width_ = 20;
  bool header_printed_ = false, progress_shown_ = false, terminal_ = false;
  double begin_ = 0;
  Exit status_ = ExitVerified;
};

/// "12.34 us": four significant digits.
std::string format_seconds(double seconds);
/// Through printf; "-" for what is not finite.
std::string format_number(const char* pattern, double value);

}  // namespace Bench
}  // namespace Tessera

#endif
