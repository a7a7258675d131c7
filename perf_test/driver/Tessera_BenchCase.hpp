// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BENCH_CASE_HPP
#define TESSERA_BENCH_CASE_HPP

#include <functional>
#include <string>
#include <vector>

#include "Tessera_Statistics.hpp"
#include "driver/Tessera_BenchMatrix.hpp"
#include "driver/Tessera_BenchOperands.hpp"
#include "driver/Tessera_BenchOperation.hpp"
#include "driver/Tessera_BenchReport.hpp"
#include "driver/Tessera_BenchVerdict.hpp"

/// \file
/// What is measured, for every operation in the same way: baselines and plans on the same operands, one row of the
/// table each. An operation is a Product; nothing here knows a type of its operands.

namespace Tessera {
namespace Bench {

/// A plan or a baseline that is set up. The closures own what they need, the operands apart.
struct System {
  std::function<void()> apply;
  std::function<void()> update;            ///< of the values; empty: there is none
  std::function<void()> finish;            ///< brings what apply left where it is checked; empty: it is there
  std::function<Statistics()> statistics;  ///< of a plan; empty for baselines, which the members below describe
  std::function<double()> matrix_instructions;
  std::string backend, kernel, why;
  double workspace_bytes = 0;
  double format_bytes = 0, padding_ratio = 0;  ///< of a format of its own; 0: it reads the CSR arrays
  bool has_setup = false;                      ///< it has a set-up that is worth a time
};

/// One Tessera row of the table.
struct Variant {
  std::string algorithm;  ///< as on the command line
  std::string name;       ///< of an ablation's option set
  bool named = true;      ///< on the command line: that it is not supported is a shortcoming of the run
};

/// One operation on one matrix in one precision: its operands on the device, what computes it, the right answer.
class Product {
 public:
  virtual ~Product() = default;
  /// Sizes, types and scalars; numbers of columns where there are some.
  virtual void describe(Record& record) const = 0;
  virtual double matrix_bytes() const = 0;
  /// Of vectors or dense operands: each read or written once.
  virtual double dense_bytes() const = 0;
  virtual double flops() const = 0;
  /// Of a row of the dense operand that every entry names one of; 0: there is none.
  virtual double row_bytes() const { return 0; }
  /// The baselines of this build that know these types.
  virtual std::vector<std::string> baselines() const = 0;
  /// @throw NotSupported
  virtual System make_baseline(const std::string& name) const = 0;
  /// What the command line asks for, csr first so that the others can be compared with it.
  virtual std::vector<Variant> variants() const = 0;
  /// @param index  of variants()
  virtual System make_plan(std::size_t index) const = 0;
  /// The result as it is before the first product: undefined where beta is 0, which promises not to read it.
  virtual void reset() = 0;
  /// Of a result computed once after reset(). @param kernel  as the record names it
  virtual Verdict check(const std::string& kernel) = 0;
  /// The result that was checked last. @throw Error
  virtual void write_result(const std::string& file) const = 0;
};

/// One matrix on the command line's options.
struct Job {
  const BenchOptions& options;
  const BenchMatrix& matrix;
  Report& report;
};

/// The matrix in this precision on the device. Values that do not fit are scaled, and the report says so.
/// @param scale  is set to the power of two that they were multiplied with; alpha has to take it back
/// @param values_read  false: the operation takes the pattern alone, and no value has to fit
CsrOperand make_csr(const Job& job, Precision precision, double& scale, bool values_read = true);

/// Times and verifies all that is asked for.
void run_case(const Job& job, Precision precision, Product& product);

/// Runs f. What fails is reported, with `what` in the message, and the others still run.
/// @param not_supported  the status where the library says that it does not offer this
void guarded(const Job& job, const std::string& what, Exit not_supported, const std::function<void()>& f);

/// "fp16" or, with columns, "fp16 N=64".
std::string case_name(Precision precision, std::int64_t columns = 0);

/// The type of A's values, and of results: y_as_operand keeps 16 bits, where float is the rule.
ElementType operand_type(Precision precision);
ElementType result_type(Precision precision, const BenchOptions& options);

/// The narrower of float and double that holds the type: what files are written from.
void write_dense_result(const std::string& file, std::int64_t rows, std::int64_t columns,
                        const std::vector<double>& values, ElementType type);

}  // namespace Bench
}  // namespace Tessera

#endif
