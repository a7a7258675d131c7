// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include <algorithm>
#include <cmath>
#include <future>
#include <limits>
#include <map>
#include <thread>

#include "backends/reference/Tessera_ReferenceSpgemm.hpp"
#include "spgemm/Tessera_BenchSpgemm.hpp"

namespace Tessera {
namespace Bench {
namespace {

/// A matrix on the host.
struct Arrays {
  std::vector<std::int64_t> row_map;
  std::vector<int> entries;
  std::vector<double> values;
};

Arrays arrays_of(const DeviceArray& row_map, const DeviceArray& entries, const DeviceArray& values, int offset_bits,
                 ElementType element) {
  Arrays a;
  if (offset_bits == 64) {
    fetch<WideOffset>(row_map, a.row_map);
  } else {
    fetch<int>(row_map, a.row_map);
  }
  fetch<int>(entries, a.entries);
  if (element == ElementType::Double) {
    fetch<double>(values, a.values);
  } else {
    fetch<float>(values, a.values);
  }
  return a;
}

std::string at(std::int64_t row, std::int64_t column) {
  return "C(" + std::to_string(row) + ", " + std::to_string(column) + ")";
}

/// The worst error of a row over its bound, or what is wrong with its columns.
double check_row(const Arrays& A, const Arrays& B, const Arrays& C, std::int64_t row, bool sorted, double u,
                 double tiny, std::string& fault) {
  const auto wanted = Reference::spgemm_row(row, A.row_map.data(), A.entries.data(), A.values.data(), B.row_map.data(),
                                            B.entries.data(), B.values.data());
  const std::int64_t begin = C.row_map[static_cast<std::size_t>(row)],
                     end = C.row_map[static_cast<std::size_t>(row) + 1];
  if (end - begin != static_cast<std::int64_t>(wanted.size())) {
    fault = "row " + std::to_string(row) + " has " + std::to_string(end - begin) + " entries instead of " +
            std::to_string(wanted.size());
    return 2;
  }
  std::map<int, double> found;
  double worst = 0;
  for (std::int64_t e = begin; e < end; ++e) {
    const int column = C.entries[static_cast<std::size_t>(e)];
    const double value = C.values[static_cast<std::size_t>(e)];
    const auto entry = wanted.find(column);
    if (entry == wanted.end() || !found.emplace(column, value).second) {
      fault = at(row, column) + (entry == wanted.end() ? " has no product" : " stands twice");
      return 2;
    }
    if (sorted && e > begin && column < C.entries[static_cast<std::size_t>(e) - 1]) {
      fault = at(row, column) + " is out of order";
      return 2;
    }
    const long double right = entry->second.sum, error = std::fabs(static_cast<long double>(value) - right);
    const double ratio = error == 0 ? 0 : static_cast<double>(error) / Reference::spgemm_bound(entry->second, u, tiny);
    if (!(ratio <= 1)) {
      fault = at(row, column) + " is " + std::to_string(value) + ", the reference is " + std::to_string(right) +
              ", ratio " + std::to_string(ratio);
    }
    worst = std::max(worst, std::isnan(ratio) ? 2 : ratio);
  }
  return worst;
}

/// The worst of every step-th row, by all processors of the host; the fault of the first row that has one.
template <class Check>
Verdict check_rows(std::int64_t rows, std::int64_t step, const Check& check) {
  struct Part {
    double worst = 0;
    std::int64_t faulty = std::numeric_limits<std::int64_t>::max();
    std::string fault;
  };
  const auto threads = static_cast<std::int64_t>(std::clamp(std::thread::hardware_concurrency(), 1U, 32U));
  std::vector<std::future<Part>> parts;
  for (std::int64_t t = 0; t < threads; ++t) {
    parts.push_back(std::async(std::launch::async, [&check, rows, step, t, threads] {
      Part part;
      for (std::int64_t row = t * step; row < rows; row += threads * step) {
        std::string fault;
        part.worst = std::max(part.worst, check(row, fault));
        if (fault.empty() || !part.fault.empty()) continue;
        part.fault = fault;
        part.faulty = row;
      }
      return part;
    }));
  }
  Verdict verdict;
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (auto& future : parts) {
    const Part part = future.get();
    verdict.error_over_bound = std::max(verdict.error_over_bound, part.worst);
    if (part.faulty >= first) continue;
    first = part.faulty;
    verdict.fault = part.fault;
  }
  return verdict;
}

}  // namespace

Verdict check_spgemm(const SpgemmOperands& o) {
  const bool wide = o.A.element == ElementType::Double;
  const double u = wide ? std::numeric_limits<double>::epsilon() / 2 : std::numeric_limits<float>::epsilon() / 2;
  const double tiny = wide ? std::numeric_limits<double>::denorm_min() : std::numeric_limits<float>::denorm_min();
  const auto of = [&](const CsrOperand& m) {
    return arrays_of(m.row_map, m.entries, m.values, m.offset_bits, m.element);
  };
  const Arrays A = of(o.A), B = of(o.B),
               C = arrays_of(o.C->row_map, o.C->entries, o.C->values, o.A.offset_bits, o.A.element);
  std::int64_t products = 0;
  for (const int k : A.entries) {
    products += B.row_map[static_cast<std::size_t>(k) + 1] - B.row_map[static_cast<std::size_t>(k)];
  }
  constexpr std::int64_t affordable = 2'000'000;
  const std::int64_t step = 1 + products / affordable;
  return check_rows(o.A.rows, step, [&](std::int64_t row, std::string& fault) {
    return check_row(A, B, C, row, o.C->sorted, u, tiny, fault);
  });
}

}  // namespace Bench
}  // namespace Tessera
