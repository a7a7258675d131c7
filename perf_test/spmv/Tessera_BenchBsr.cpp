// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include <algorithm>
#include <limits>
#include <memory>

#include "Tessera_BsrSpmv.hpp"
#include "Tessera_Error.hpp"
#include "spmv/Tessera_BenchSpmv.hpp"

namespace Tessera {
namespace Bench {
namespace {

template <class S>
System plan_of(const SpmvOperands& o, const SpmvOptions& options) {
  using Plan = SpmvPlan<BsrView<S, int, int, Device>>;
  const auto A = o.blocks.view<S>();
  const auto plan = std::make_shared<Plan>(o.A.space, A, options);
  System system;
  system.apply = [plan, space = o.A.space, alpha = o.alpha, x = o.x.view<S>(), beta = o.beta, y = o.y.view<S>()] {
    plan->apply(space, Op::NoTrans, alpha, x, beta, y);
  };
  system.update = [plan, space = o.A.space, values = A.values()] { plan->update_values(space, values); };
  system.statistics = [plan, fill = o.blocks.padding_ratio(o.A.nnz())] {
    Statistics s = plan->statistics();
    s.padding_ratio = fill;
    return s;
  };
  return system;
}

}  // namespace

BsrOperand make_bsr(const Job& job, const CsrOperand& A, double scale, int side) {
  const auto& csr = job.matrix.csr;
  if (csr.rows % side != 0 || csr.cols % side != 0) {
    throw NotSupported("--block " + std::to_string(side) + ": the matrix is " + std::to_string(csr.rows) + " x " +
                       std::to_string(csr.cols) + ", no multiple of it");
  }
  BsrOperand bsr;
  bsr.block = side;
  bsr.block_rows = csr.rows / side;
  bsr.block_cols = csr.cols / side;
  std::vector<std::int64_t> row_map = {0};
  std::vector<int> columns, of_row;
  std::vector<double> values;
  for (int row = 0; row < bsr.block_rows; ++row) {
    const std::int64_t begin = csr.row_map[row * side], end = csr.row_map[(row + 1) * side];
    of_row.clear();
    for (std::int64_t e = begin; e < end; ++e) of_row.push_back(csr.entries[e] / side);
    std::sort(of_row.begin(), of_row.end());
    of_row.erase(std::unique(of_row.begin(), of_row.end()), of_row.end());
    const std::size_t first = columns.size();
    columns.insert(columns.end(), of_row.begin(), of_row.end());
    values.resize(columns.size() * side * side, 0);
    for (int i = 0; i < side; ++i) {
      for (std::int64_t e = csr.row_map[row * side + i]; e < csr.row_map[row * side + i + 1]; ++e) {
        const int column = csr.entries[e];
        const auto k = std::lower_bound(of_row.begin(), of_row.end(), column / side) - of_row.begin();
        values[((first + k) * side + i) * side + column % side] += scale * csr.values[e];
      }
    }
    row_map.push_back(static_cast<std::int64_t>(columns.size()));
  }
  if (columns.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    throw NotSupported("--block: more blocks than offsets of 32 bits count");
  }
  bsr.row_map = upload_offsets(A.space, row_map, 32);
  bsr.entries = upload(A.space, "entries", columns);
  bsr.values = upload(A.space, "values", values, A.element);
  return bsr;
}

System spmv_plan_bsr(const SpmvOperands& o, const SpmvOptions& options) {
  if (o.blocks.block == 0) throw NotSupported("bsr needs --block");
  if (o.A.element == ElementType::Double) return plan_of<double>(o, options);
  if (o.A.element == ElementType::Float) return plan_of<float>(o, options);
  throw NotSupported("the benchmark multiplies blocks in fp64 and fp32 only");
}

}  // namespace Bench
}  // namespace Tessera
