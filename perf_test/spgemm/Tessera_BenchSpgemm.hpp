// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BENCH_SPGEMM_HPP
#define TESSERA_BENCH_SPGEMM_HPP

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "Tessera_Config.hpp"
#include "driver/Tessera_BenchCase.hpp"
#include "spgemm/Tessera_SpgemmOptions.hpp"

namespace Tessera {
namespace Bench {

/// C as the last product left it.
struct SpgemmOutput {
  DeviceArray row_map, entries, values;
  bool sorted = true;  ///< columns ascend in every row
};

/// C := A B. All of a product is timed: looking at the matrices, both phases, the allocation of C.
struct SpgemmOperands {
  CsrOperand A, B;
  std::shared_ptr<SpgemmOutput> C = std::make_shared<SpgemmOutput>();
};

/// To the host; waits.
template <class T, class To>
void fetch(const DeviceArray& from, std::vector<To>& to) {
  const auto view = from.view<T>();
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), view);
  to.assign(host.data(), host.data() + host.extent(0));
}

/// Plans by the type of the matrices, compiled in files of their own.
System spgemm_plan_fp64(const SpgemmOperands& operands, const SpgemmOptions& options);
System spgemm_plan_fp32(const SpgemmOperands& operands, const SpgemmOptions& options);

#if defined(TESSERA_HAVE_KOKKOSKERNELS)
/// KokkosSparse::spgemm_symbolic and spgemm_numeric: double, offsets of 32 bits. Its C is not sorted.
bool kokkos_kernels_has_spgemm(const SpgemmOperands& operands);
System kokkos_kernels_spgemm(const SpgemmOperands& operands);
#endif

#if defined(TESSERA_HAVE_CUDA)
/// CUSPARSE_SPGEMM_ALG1 to 3; offsets of 32 bits. The whole call, as for the others.
System make_cusparse_spgemm(const SpgemmOperands& operands, int algorithm);
#endif

/// Rows of C against plain sums in long double: every row or, of more than two million products, rows at equal
/// distances; each number within the bound of its products, and no column missing, too many or, where C says that it is
/// sorted, out of order.
Verdict check_spgemm(const SpgemmOperands& operands);

/// Adds a line to the file: a JSON object of what the models of Auto learn from. Features and density images of A and
/// B, what they cost, and the time of the whole product by each algorithm: median of `repeat` turns, in which all take
/// theirs one after the other. Null: refused, or Heap and Coo on more than 32 products
/// per row, where they are never near. One that took more than eight times as long as the fastest, or longer than
/// the budget, has no more turns. Results are compared by their numbers of entries alone.
void write_spgemm_features(const std::string& file, const SpgemmOperands& operands, std::int64_t products,
                           const std::string& matrix, const BenchOptions& options,
                           const std::vector<SpgemmAlgorithm>& algorithms,
                           const std::function<System(SpgemmAlgorithm)>& make);

}  // namespace Bench
}  // namespace Tessera

#endif
