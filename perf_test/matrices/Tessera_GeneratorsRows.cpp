// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include <cmath>

#include "Tessera_GeneratorsDetail.hpp"

/// \file
/// Patterns that are described by their rows: circuits, chemistry, linear programs and plain random ones.

namespace Tessera {
namespace Matrices {
namespace Detail {

namespace {

std::uint64_t seed_of(const Options& options) { return static_cast<std::uint64_t>(options.integer64("seed")); }

Pattern circuit(const Options& options) {
  const int n = options.integer("n"), near = options.integer("near"), far = options.integer("far");
  const int long_every = options.integer("long_every"), long_min = options.integer("long_min");
  const int long_max = options.integer("long_max"), dense_cols = options.integer("dense_cols");
  const double medium = options.real("medium"), dense_share = options.real("dense_share");
  const std::uint64_t seed = seed_of(options);
  constexpr int first_long = 7;
  options.check(long_every == 0 || long_every > first_long, "long_every = 0 or > 7");
  options.check(long_min <= long_max, "long_min <= long_max");
  return by_rows(n, n, static_cast<std::int64_t>(n) * 5, [&](int i, std::vector<int>& row) {
    Rng rng(seed + static_cast<std::uint64_t>(i));
    row.push_back(i);
    const bool is_long = long_every > 0 && i % long_every == first_long;
    int length = 0;
    if (is_long)
      length = long_min + rng.below(long_max - long_min + 1);
    else if (rng.unit() < medium)
      length = 20 + rng.below(200);
    else
      length = 2 + rng.below(4);
    for (int k = 0; k < length; ++k) {
      const double u = rng.unit();
      std::int64_t column = u < 0.6    ? i + static_cast<std::int64_t>(rng.below(2 * near)) - near
                            : u < 0.95 ? i + static_cast<std::int64_t>(rng.below(2 * far)) - far
                                       : rng.below(n);
      // A net such as power or ground touches everything; the draws above are made all the same, because the pattern
      // is meant to stay what it was when it was measured.
      if (is_long) column = rng.below(n);
      row.push_back(clamp_column(column, n));
    }
    for (int d = 0; d < dense_cols; ++d)
      if (rng.unit() < dense_share) row.push_back(static_cast<int>((2 * d + 1) * std::int64_t(n) / (2 * dense_cols)));
  });
}

Pattern chem(const Options& options) {
  const int n = options.integer("n"), group = options.integer("group"), run = options.integer("run");
  const int shortest = options.integer("shortest"), longest = options.integer("longest");
  const double median = options.real("median"), sigma = options.real("sigma"), local = options.real("local");
  const double width = 2.0 * options.integer("window");
  const std::uint64_t seed = seed_of(options);
  options.check(shortest <= longest, "shortest <= longest");
  return by_rows(n, n, 0, [&](int i, std::vector<int>& row) {
    // The rows of a group share their generator and so, but for their own diagonal block, their columns.
    Rng rng(seed + static_cast<std::uint64_t>(i / group));
    const int begin = i / group * group;
    const auto add_run = [&](int column) {
      const int first = column / run * run;
      for (int c = first; c < std::min(n, first + run); ++c) row.push_back(c);
    };
    const double radius = std::sqrt(-2 * std::log(rng.unit() + 1e-300));
    const double normal = radius * std::cos(6.283185307 * rng.unit());
    const double spread = std::min<double>(longest - shortest, median * std::exp(sigma * normal));
    const int length = static_cast<int>(spread) + shortest;
    for (int k = 0; k < length; k += run) {
      if (rng.unit() < local)
        add_run(clamp_column(begin + static_cast<std::int64_t>((rng.unit() - 0.5) * width), n));
      else
        add_run(rng.below(n));
    }
    add_run(i);
  });
}

Pattern linear_program(const Options& options) {
  const int rows = options.integer("rows"), columns = options.integer("cols");
  const int per_col = options.integer("per_col"), slack = options.integer("slack");
  options.check(2 * static_cast<std::int64_t>(per_col) - 1 <= rows, "2 * per_col - 1 <= rows");
  const std::int64_t cols = columns + (slack == 1 ? static_cast<std::int64_t>(rows) : 0);
  options.check(cols <= max_index, "at most 2147483647 columns");
  const double exponent = 1.0 / (1.0 - options.real("skew"));
  Rng rng(seed_of(options));
  std::vector<std::int64_t> end(static_cast<std::size_t>(rows) + 1, 0);
  std::vector<int> column_entries, lengths(static_cast<std::size_t>(columns));
  std::vector<int> column;
  for (int c = 0; c < columns; ++c) {
    const int wanted = 1 + rng.below(2 * per_col - 1);
    column.clear();
    for (int k = 0; k < wanted; ++k) {
      const double rank = std::min<double>(rows - 1, rows * std::pow(rng.unit(), exponent));
      column.push_back(static_cast<int>(static_cast<std::uint64_t>(rank) * 2654435761ull % rows));
    }
    sort_unique(column);
    lengths[c] = static_cast<int>(column.size());
    for (int r : column) ++end[r];
    column_entries.insert(column_entries.end(), column.begin(), column.end());
  }
  Pattern pattern = start_pattern(rows, cols);
  for (int r = 0; r < rows; ++r) pattern.row_map.push_back(pattern.row_map.back() + end[r] + slack);
  pattern.entries.resize(static_cast<std::size_t>(pattern.row_map.back()));
  std::copy(pattern.row_map.begin(), pattern.row_map.end(), end.begin());
  std::size_t k = 0;
  for (int c = 0; c < columns; ++c)
    for (int left = lengths[c]; left > 0; --left) pattern.entries[end[column_entries[k++]]++] = c;
  if (slack == 1)
    for (int r = 0; r < rows; ++r) pattern.entries[end[r]] = columns + r;
  return pattern;
}

Pattern uniform(const Options& options) {
  const int cols = options.integer("cols"), per_row = options.integer("per_row");
  const bool exact = options.integer("exact") == 1;
  options.check(per_row == 0 || cols > 0, "a column to put entries in");
  options.check(!exact || per_row <= cols, "per_row <= cols");
  const std::uint64_t seed = seed_of(options);
  const std::int64_t rows = options.integer("rows");
  return by_rows(rows, cols, rows * per_row, [&](int i, std::vector<int>& row) {
    Rng rng(seed + static_cast<std::uint64_t>(i));
    if (exact)
      draw_distinct(rng, per_row, cols, row);
    else
      for (int k = 0; k < per_row; ++k) row.push_back(rng.below(cols));
  });
}

Pattern random(const Options& options) {
  const int rows = options.integer("rows"), cols = options.integer("cols");
  const double mean = options.real("mean"), tail = options.real("tail");
  const std::string lengths = options.text("lengths");
  options.check(mean <= cols, "mean <= cols");
  const std::uint64_t seed = seed_of(options);
  const double log_failure = std::log1p(-1 / (1 + mean));
  const auto draw = [&](double u) {
    if (lengths == "uniform") return u * 2 * mean;
    // log of 1 - u, so that u = 0 is harmless; floor gives the number of failures before the first success.
    if (lengths == "geometric") return mean > 0 ? std::floor(std::log1p(-u) / log_failure) : 0.0;
    if (lengths == "power") return mean * (tail - 1) / tail * std::pow(1 - u, -1 / tail);
    return mean;
  };
  return by_rows(rows, cols, static_cast<std::int64_t>(rows * mean), [&](int i, std::vector<int>& row) {
    Rng rng(seed * 1000003 + static_cast<std::uint64_t>(i));
    const double length = draw(rng.unit());
    // Rounded up with the fraction's probability: rounding to nearest would miss a mean of 0.3 altogether.
    const double rounded = std::min<double>(cols, std::floor(length + rng.unit()));
    draw_distinct(rng, static_cast<int>(rounded), cols, row);
  });
}

Pattern diagonals(const Options& options) {
  const int n = options.integer("n"), count = options.integer("count"), reach = options.integer("reach");
  const double missing = options.real("missing"), stray = options.real("stray");
  options.check(reach < n && count <= 2 * reach + 1, "reach < n and count <= 2 * reach + 1");
  const std::uint64_t seed = seed_of(options);
  Rng choice(seed);
  std::vector<int> offsets;
  draw_distinct(choice, count, 2 * reach + 1, offsets);
  return by_rows(n, n, static_cast<std::int64_t>(n) * count, [&](int i, std::vector<int>& row) {
    Rng rng(seed * 1000003 + static_cast<std::uint64_t>(i));
    for (const int offset : offsets) {
      const std::int64_t column = static_cast<std::int64_t>(i) + offset - reach;
      if (column >= 0 && column < n && rng.unit() >= missing) row.push_back(static_cast<int>(column));
    }
    if (rng.unit() < stray) row.push_back(rng.below(n));
  });
}

}  // namespace

std::vector<Generator> row_generators() {
  std::vector<Generator> list;
  list.push_back({{"circuit",
                   {},
                   "Short rows near the diagonal, a few rows of long_min to long_max entries and a few columns that "
                   "a share of all rows touches.",
                   "ASIC_680k, rajat30, rajat31, FullChip, circuit5M",
                   "",
                   true},
                  {integer_key("n", 50000, 1), integer_key("long_every", 10000, 0), integer_key("long_min", 2000, 0),
                   integer_key("long_max", 6000, 0), real_key("medium", 0.002, 0, 1),
                   integer_key("near", 20, 1, 1000000000), integer_key("far", 2000, 1, 1000000000),
                   integer_key("dense_cols", 3, 0, 1000), real_key("dense_share", 0.2, 0, 1), seed_key()},
                  circuit});
  list.push_back({{"chem",
                   {},
                   "Log-normal row lengths from shortest to longest; groups of rows share their columns, which come "
                   "in runs, so that the pattern consists of small dense blocks.",
                   "Ga41As41H72, Si41Ge41H72, SiO2, CO",
                   "",
                   true},
                  {integer_key("n", 20000, 1), integer_key("group", 8, 1), integer_key("run", 8, 1, 1000000),
                   real_key("median", 60, 0, 1e9), real_key("sigma", 0.9, 0, 10), integer_key("shortest", 20, 0),
                   integer_key("longest", 1300, 0), real_key("local", 0.7, 0, 1),
                   integer_key("window", 3000, 0, 1000000000), seed_key()},
                  chem});
  list.push_back({{"lp",
                   {},
                   "Linear program of few rows and many columns of 1 to 2 * per_col - 1 entries; skew concentrates "
                   "them in some very long rows; slack=1 appends the identity.",
                   "rail4284, rail582, nw04, fit2d, dbir1",
                   "",
                   true},
                  {integer_key("rows", 500, 1), integer_key("cols", 100000, 0), integer_key("per_col", 8, 1, 1000000),
                   real_key("skew", 0.5, 0, 0.95), integer_key("slack", 0, 0, 1), seed_key()},
                  linear_program});
  list.push_back({{"uniform",
                   {},
                   "per_row columns drawn uniformly in every row; exact=0 leaves repetitions out instead of "
                   "replacing them.",
                   "Erdos-Renyi graphs; the magnitude-pruned layers of DLMC",
                   "",
                   true},
                  {integer_key("rows", 20000, 0), integer_key("cols", 20000, 0), integer_key("per_row", 16, 0),
                   integer_key("exact", 1, 0, 1), seed_key()},
                  uniform});
  list.push_back({{"random",
                   {},
                   "Uniformly drawn columns and row lengths of a given mean: all equal, uniform on 0 to twice the "
                   "mean, geometric, or a power law with exponent tail.",
                   "",
                   "",
                   true},
                  {integer_key("rows", 1000, 0), integer_key("cols", 1000, 0), real_key("mean", 10, 0, 2147483647),
                   choice_key("lengths", "uniform|equal|geometric|power"), real_key("tail", 2, 1.01, 100), seed_key()},
                  random});
  list.push_back(
      {{"diagonals",
        {},
        "count diagonals of a square matrix, drawn within reach of the main one; a share of their entries is "
        "missing, and a share of the rows has one more entry anywhere.",
        "banded and multi-diagonal systems with gaps: cryg2500, olm1000, ecology1 with boundaries",
        "",
        true},
       {integer_key("n", 20000, 1), integer_key("count", 9, 0), integer_key("reach", 2000, 0),
        real_key("missing", 0, 0, 1), real_key("stray", 0, 0, 1), seed_key()},
       diagonals});
  return list;
}

}  // namespace Detail
}  // namespace Matrices
}  // namespace Tessera
