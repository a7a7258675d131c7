// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_DASP_CASES_HPP
#define TESSERA_DASP_CASES_HPP

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "Tessera_Options.hpp"
#include "matrices/Tessera_Generators.hpp"

/// \file
/// Options and patterns for the tests of DASP.

namespace Tessera {
namespace Testing {

struct NamedOptions {
  std::string name;
  DaspOptions dasp;
};
/// Ends and middles of every range.
inline std::vector<NamedOptions> option_sets() {
  std::vector<NamedOptions> all(1, {"defaults", {}});
  for (const SortRange sort : {SortRange::Window, SortRange::Global}) {
    const auto add = [&](const std::string& name, const auto& change) {
      DaspOptions o;
      o.sort = sort;
      change(o);
      all.push_back({(sort == SortRange::Window ? "window, " : "global, ") + name, o});
    };
    for (const int longest : {0, 4, 5, 31, 64, 254, 255}) {
      add("max_medium_length " + std::to_string(longest), [=](DaspOptions& o) { o.max_medium_length = longest; });
    }
    for (const int work : {1, 64, 300, 1024, 100000}) {
      add("entries_per_wave " + std::to_string(work), [=](DaspOptions& o) { o.entries_per_wave = work; });
    }
    for (const double threshold : {1e-6, 0.5, 1.0}) {
      add("threshold " + std::to_string(threshold), [=](DaspOptions& o) { o.threshold = threshold; });
    }
    for (const int pairs : {0, 1, 17, 1000000}) {
      add("min_pairs " + std::to_string(pairs), [=](DaspOptions& o) { o.min_pairs = pairs; });
    }
    add("no adaptive work, cached", [](DaspOptions& o) {
      o.adaptive_work = false;
      o.bypass = CacheBypass::Never;
    });
  }
  return all;
}

/// So many rows of each length.
inline Matrices::Pattern rows_of_lengths(const std::vector<std::pair<int, std::int64_t>>& lengths) {
  Matrices::Pattern p;
  p.cols = 3001;
  p.row_map.push_back(0);
  for (const auto& length : lengths) {
    for (std::int64_t i = 0; i < length.second; ++i, ++p.rows) {
      for (int k = 0; k < length.first; ++k) p.entries.push_back(static_cast<int>((i * 7 + k * 61) % p.cols));
      p.row_map.push_back(static_cast<std::int64_t>(p.entries.size()));
    }
  }
  return p;
}
/// Sorted inside sort windows, as large matrices of even rows are (DaspCases.AreWhatTheySay).
inline Matrices::Pattern dasp_many_sort_windows() {
  constexpr std::int64_t rows = 34 * 2048;
  return rows_of_lengths({{5, rows + 3}, {6, 1001}});
}
/// So many short steps that a wave takes several, and the last wave of a class fewer (DaspCases.AreWhatTheySay).
/// @param in_step  rows of one length that a DASP step takes
inline Matrices::Pattern dasp_many_short_rows(std::int64_t in_step) {
  const std::int64_t each = in_step * (in_step > 64 ? 3300 : 6600) + 7;  // 2.5 / in_step steps per row, of each length
  return rows_of_lengths({{1, each}, {2, each}, {3, each}, {4, each}});
}

}  // namespace Testing
}  // namespace Tessera

#endif
