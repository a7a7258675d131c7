// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BENCH_OPTIONS_HPP
#define TESSERA_BENCH_OPTIONS_HPP

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "Tessera_Options.hpp"
#include "Tessera_Types.hpp"

namespace Tessera {
namespace Bench {

/// What the program returns to its caller; part of its interface.
enum Exit : int {
  ExitVerified = 0,     ///< every result was computed and is within its bound
  ExitFailure = 1,      ///< a run time failure: a device error, no memory
  ExitUsage = 2,        ///< the command line is wrong
  ExitInput = 3,        ///< a file cannot be read or does not fit
  ExitWrongResult = 4,  ///< a result is outside its bound
  ExitNotSupported = 5  ///< a combination that does not exist or is not in this build
};

/// Ends the run, or one matrix of it, with an exit status.
class BenchError : public std::runtime_error {
 public:
  BenchError(Exit status, const std::string& message) : std::runtime_error(message), status_(status) {}
  Exit status() const noexcept { return status_; }

 private:
  Exit status_;
};

/// The command line.
struct BenchOptions {
  std::string op = "spmv";
  std::vector<std::string> matrices;
  std::vector<std::string> algorithms = {"all"};
  Backend backend = Backend::Auto;
  std::vector<Precision> precisions = {Precision::FP64};
  std::vector<std::int64_t> columns = {32, 64, 128, 256};  ///< spmm: of B and C, one case each
  bool columns_given = false;                              ///< on the command line, not the ones above
  std::int64_t heads = 1;                                  ///< attention: on the same pattern, in one apply
  bool backward = false;                                   ///< attention: gradients instead of O
  bool layout_left = false;                                ///< spmm: B and C in LayoutLeft instead of LayoutRight
  double alpha = 1, beta = 0;
  std::uint64_t seed = 1;
  int repeat = 20;
  double budget = 2;  ///< seconds after which a case stops repeating
  bool cold = false;
  std::vector<std::string> baselines = {"all"};
  std::string cusparse;       ///< spmv: a library of cuSPARSE to measure beside the linked one
  bool y_as_operand = false;  ///< fp16, bf16: y (C) in the operands' 16 bits instead of fp32
  int offset_bits = 0;        ///< 0: 32 while the entries allow it
  int block = 0;              ///< spmv: also multiply A in dense blocks of this side; 0: do not
  DaspOptions dasp{};
  bool ablation = false;
  bool value_classes = false;  ///< PackedOptions::value_classes; off here: generated values would all fit narrow types
  Selection selection = Selection::Predict;
  bool regret = false;   ///< time auto against each algorithm that is measured
  std::string matrix_b;  ///< of C = A B; none: A's own, or A^T
  std::string features;  ///< spgemm: a file of features and times instead of a table
  std::string x, y, write_result, write_operands, json, csv;
  bool ceiling = false;
  bool quiet = false, verbose = false;
};

}  // namespace Bench
}  // namespace Tessera

#endif
