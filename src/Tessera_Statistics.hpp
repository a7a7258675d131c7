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
  std::string name;
  long long rows = 0;
  long long nnz = 0;
};

/// What a plan decided and what it costs. Host data only, cheap to copy.
struct Statistics {
  std::string operation, algorithm, backend, atom, compute, device;
  std::string why;  ///< the rule that decided, with its numbers
  long long rows = 0, cols = 0, nnz = 0;
  long long stored = 0;          ///< slots of the format, padding included
  double padding_ratio = 0;      ///< stored / nnz - 1
  double matrix_unit_share = 0;  ///< nonzeros that go through the matrix unit / nnz
  double row_mean = 0;
  long long row_max = 0;            ///< 0 if the algorithm did not look
  std::size_t format_bytes = 0;     ///< what the kernel reads, vectors apart
  std::size_t map_bytes = 0;        ///< what update_values keeps
  std::size_t workspace_bytes = 0;  ///< scratch of apply
  std::size_t csr_bytes = 0;        ///< the same matrix in CSR
  double setup_seconds = 0;         ///< host time of the constructor; the last kernel may still run
  int launches = 0;                 ///< kernel launches of an apply to one vector
  bool fallback_taken = false, transpose_prepared = false, deterministic = true;
  std::vector<ClassShare> classes;
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
