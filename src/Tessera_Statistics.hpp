// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_STATISTICS_HPP
#define TESSERA_STATISTICS_HPP

#include <cstddef>
#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

namespace Tessera {

/// Share of one row class of a format (DASP: the paper's Figure 15).
struct ClassShare {
  std::string name;    ///< of the class
  long long rows = 0;  ///< rows in it
  long long nnz = 0;   ///< entries, or slots where the class is one of slots
};

/// What a plan decided and what it costs. Host data only, cheap to copy.
struct Statistics {
  std::string operation;            ///< "spmv", "spmm", "sddmm", "attention" or "spgemm"
  std::string algorithm;            ///< as to_string of the operation's algorithms names it
  std::string backend;              ///< as to_string(Backend) names it
  std::string atom;                 ///< the matrix instruction; empty: none is used
  std::string compute;              ///< as to_string(Precision) names it
  std::string device;               ///< where the kernels run
  std::string why;                  ///< the rule that decided, with its numbers
  long long rows = 0;               ///< of the matrix
  long long cols = 0;               ///< of the matrix
  long long nnz = 0;                ///< entries of the matrix
  long long stored = 0;             ///< slots of the format, padding included
  double padding_ratio = 0;         ///< stored / nnz - 1
  double matrix_unit_share = 0;     ///< nonzeros that go through the matrix unit / nnz
  double row_mean = 0;              ///< entries per row
  long long row_max = 0;            ///< 0 if the algorithm did not look
  std::size_t format_bytes = 0;     ///< what the kernel reads, vectors apart
  std::size_t map_bytes = 0;        ///< what update_values keeps
  std::size_t workspace_bytes = 0;  ///< scratch of apply
  std::size_t csr_bytes = 0;        ///< the same matrix in CSR
  double setup_seconds = 0;         ///< host time of the constructor; the last kernel may still run
  int launches = 0;                 ///< kernel launches of an apply, to one vector or SpMM's usual number of columns
  bool fallback_taken = false;      ///< another algorithm than the one asked for, or than the device would allow
  bool transpose_prepared = false;  ///< op(A) = A^T is possible
  bool deterministic = true;        ///< bitwise the same result in every apply
  std::vector<ClassShare> classes;  ///< of the format's rows or slots
};

/// An aligned table, keys in a fixed order.
void print_statistics(const Statistics& statistics, std::ostream& out);
/// One JSON object on one line, keys as the members' names.
std::string to_json(const Statistics& statistics);

/// The same for anything with a statistics() member.
template <class Plan, class = decltype(std::declval<const Plan&>().statistics())>
void print_statistics(const Plan& plan, std::ostream& out) {
  print_statistics(plan.statistics(), out);
}

}  // namespace Tessera

#endif
