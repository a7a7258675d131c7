// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_TEST_SHAPES_HPP
#define TESSERA_TEST_SHAPES_HPP

#include <algorithm>
#include <string>
#include <vector>

#include "matrices/Tessera_Generators.hpp"

/// \file
/// Which patterns the suites go through.

namespace Tessera {
namespace Testing {

using Matrices::generate;
using Matrices::Pattern;

/// Every generator at least once, small enough for an emulated matrix unit.
inline const std::vector<std::string>& shapes() {
  static const std::vector<std::string> all = {"empty",
                                               "empty:rows=0:cols=5",
                                               "empty:rows=5:cols=0",
                                               "empty:rows=0:cols=0",
                                               "empty:rows=3000:cols=1",
                                               "diagonal",
                                               "diagonal:rows=100:cols=37",
                                               "diagonal:rows=37:cols=100",
                                               "diagonal:rows=5000:cols=5000",
                                               "dense",
                                               "dense:rows=1:cols=1",
                                               "dense:rows=1:cols=3001",
                                               "dense:rows=3001:cols=1",
                                               "dense:rows=3:cols=4001",
                                               "dense_row",
                                               "dense_row:others=1",
                                               "dense_row:rows=3:cols=20011",
                                               "dense_column",
                                               "dense_column:others=1",
                                               "ramp",
                                               "ramp:n=301",
                                               "every_length",
                                               "every_length:longest=600:cols=701",
                                               "duplicates",
                                               "duplicates:rows=151:longest=400",
                                               "duplicates:rows=3000:longest=5:cols=11",
                                               "circuit:n=5003:long_every=1000:long_min=800:long_max=2500",
                                               "chem:n=501:longest=500",
                                               "lp:rows=101:cols=5003",
                                               "lp:rows=51:cols=3001:slack=1",
                                               "uniform:rows=1999:cols=1501:per_row=16",
                                               "uniform:rows=777:cols=91:per_row=3",
                                               "random:rows=1501:cols=997:lengths=uniform:mean=4",
                                               "random:rows=1501:cols=997:lengths=equal:mean=2.5",
                                               "random:rows=997:cols=2003:lengths=geometric:mean=9",
                                               "random:rows=1501:cols=1999:lengths=power:mean=6:tail=1.3",
                                               "random:rows=6001:cols=5003:lengths=uniform:mean=2",
                                               "rmat:scale=9:degree=8",
                                               "community:n=1999:edges=9001",
                                               "web:n=3001:longest=900",
                                               "batch:graphs=61",
                                               "stencil2d:nx=37:ny=29",
                                               "stencil2d:nx=23:ny=31:points=9",
                                               "stencil3d:nx=9:ny=11:nz=7",
                                               "stencil3d:nx=7:ny=5:nz=9:points=27",
                                               "markov2d:nx=31:ny=37:gap=100",
                                               "fem:nx=5:ny=4:nz=3:cavities=1",
                                               "fem:elements=hex:nx=4:ny=3:nz=3:dof=1:cavities=0",
                                               "block_grid:nx=5:ny=4:nodes=91"};
  return all;
}

/// All row lengths from 0 to `longest`, the short ones often: `short_rows` rows of each of 0..4.
inline Pattern all_classes(int longest, int short_rows, int cols = 701) {
  const Pattern every = generate("every_length:longest=" + std::to_string(longest) + ":cols=" + std::to_string(cols));
  Pattern p;
  p.cols = cols;
  p.row_map.push_back(0);
  const auto add = [&](int length, int shift, const int* columns) {
    for (int k = 0; k < length; ++k) p.entries.push_back(columns != nullptr ? columns[k] : (5 * k + shift) % cols);
    p.row_map.push_back(static_cast<std::int64_t>(p.entries.size()));
    ++p.rows;
  };
  int taken = 0;
  for (std::int64_t i = 0; i < every.rows; ++i) {
    add(static_cast<int>(every.row_map[i + 1] - every.row_map[i]), 0, every.entries.data() + every.row_map[i]);
    for (; taken < 5 * short_rows * (i + 1) / every.rows; ++taken) add(taken * 7 % 5, taken, nullptr);
  }
  return p;
}

/// Descending columns in which every third repeats the first.
inline Pattern with_unsorted_columns(Pattern p) {
  for (std::int64_t i = 0; i < p.rows; ++i) {
    const auto begin = p.entries.begin() + p.row_map[i], end = p.entries.begin() + p.row_map[i + 1];
    std::reverse(begin, end);
    for (auto k = begin; k < end; ++k) {
      if ((k - begin) % 3 == 1) *k = *begin;
    }
  }
  return p;
}

}  // namespace Testing
}  // namespace Tessera

#endif
