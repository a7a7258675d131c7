// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include <numeric>

#include "Tessera_GeneratorsDetail.hpp"

/// \file
/// Shapes that break kernels; they stand for no application.

namespace Tessera {
namespace Matrices {
namespace Detail {

namespace {

Pattern empty(const Options& options) {
  return by_rows(options.integer("rows"), options.integer("cols"), 0, [](int, std::vector<int>&) {});
}

Pattern diagonal(const Options& options) {
  const int cols = options.integer("cols");
  return by_rows(options.integer("rows"), cols, cols, [=](int i, std::vector<int>& row) {
    if (i < cols) row.push_back(i);
  });
}

Pattern dense(const Options& options) {
  const int cols = options.integer("cols");
  return by_rows(options.integer("rows"), cols, 0, [=](int, std::vector<int>& row) {
    row.resize(static_cast<std::size_t>(cols));
    std::iota(row.begin(), row.end(), 0);
  });
}

int chosen_index(const Options& options, const std::string& key, int extent) {
  const int index = options.integer(key);
  options.check(index < extent, key + " < " + std::to_string(extent));
  return index < 0 ? extent / 2 : index;
}

Pattern dense_row(const Options& options) {
  const int rows = options.integer("rows"), cols = options.integer("cols");
  const int at = chosen_index(options, "row", rows);
  const bool others = options.integer("others") == 1;
  return by_rows(rows, cols, cols, [=](int i, std::vector<int>& row) {
    if (i == at) {
      row.resize(static_cast<std::size_t>(cols));
      std::iota(row.begin(), row.end(), 0);
    } else if (others && cols > 0) {
      row.push_back(i % cols);
    }
  });
}

Pattern dense_column(const Options& options) {
  const int rows = options.integer("rows"), cols = options.integer("cols");
  const int at = chosen_index(options, "col", cols);
  const bool others = options.integer("others") == 1;
  return by_rows(rows, cols, rows, [=](int i, std::vector<int>& row) {
    row.push_back(at);
    if (others) row.push_back(i % cols);
  });
}

Pattern ramp(const Options& options) {
  const int n = options.integer("n");
  return by_rows(n, n, static_cast<std::int64_t>(n) * n / 2, [=](int i, std::vector<int>& row) {
    // Spread over the whole width, so that long rows do not merely extend short ones.
    for (int k = 0; k < i; ++k) row.push_back(static_cast<int>(static_cast<std::int64_t>(k) * n / i));
  });
}

Pattern every_length(const Options& options) {
  const int longest = options.integer("longest"), cols = options.integer("cols");
  options.check(longest <= cols, "longest <= cols");
  Rng rng(static_cast<std::uint64_t>(options.integer64("seed")));
  std::vector<int> lengths(static_cast<std::size_t>(longest) + 1);
  std::iota(lengths.begin(), lengths.end(), 0);
  for (int k = longest; k > 0; --k) std::swap(lengths[k], lengths[rng.below(k + 1)]);
  return by_rows(longest + 1, cols, 0,
                 [&](int i, std::vector<int>& row) { draw_distinct(rng, lengths[i], cols, row); });
}

Pattern duplicates(const Options& options) {
  const int rows = options.integer("rows"), cols = options.integer("cols"), longest = options.integer("longest");
  const double share = options.real("share");
  options.check(cols > 0 || longest == 0, "a column to put entries in");
  Rng rng(static_cast<std::uint64_t>(options.integer64("seed")));
  Pattern pattern = start_pattern(rows, cols);
  std::vector<int> row;
  for (int i = 0; i < rows; ++i) {
    row.clear();
    for (int left = rng.below(longest + 1); left > 0; --left) {
      const bool repeat = !row.empty() && rng.unit() < share;
      row.push_back(repeat ? row[rng.below(static_cast<int>(row.size()))] : rng.below(cols));
    }
    append_unchecked(pattern, row);
  }
  return pattern;
}

}  // namespace

std::vector<Generator> shape_generators() {
  const auto rows = [](std::int64_t value) { return integer_key("rows", value, 0); };
  const auto cols = [](std::int64_t value, std::int64_t low = 0) { return integer_key("cols", value, low); };
  std::vector<Generator> list;
  list.push_back({{"empty", {}, "No entries at all.", "", "", true}, {rows(17), cols(33)}, empty});
  list.push_back(
      {{"diagonal", {}, "The main diagonal, also of a rectangle.", "", "", true}, {rows(1000), cols(1000)}, diagonal});
  list.push_back({{"dense", {}, "Every entry.", "", "", true}, {rows(100), cols(70)}, dense});
  list.push_back({{"dense_row",
                   {},
                   "One full row (row=-1: the middle one), the others empty or, with others=1, of one entry.",
                   "",
                   "",
                   true},
                  {rows(1000), cols(5000), integer_key("row", -1, -1), integer_key("others", 0, 0, 1)},
                  dense_row});
  list.push_back({{"dense_column",
                   {},
                   "One full column (col=-1: the middle one); with others=1 every row has one more entry elsewhere.",
                   "",
                   "",
                   true},
                  {rows(5000), cols(300, 1), integer_key("col", -1, -1), integer_key("others", 0, 0, 1)},
                  dense_column});
  list.push_back(
      {{"ramp", {}, "Square; row i has i entries.", "", "", true}, {integer_key("n", 129, 0, 100000)}, ramp});
  list.push_back({{"every_length", {}, "One row of every length from 0 to longest, in random order.", "", "", true},
                  {integer_key("longest", 130, 0, 100000), cols(200), seed_key()},
                  every_length});
  list.push_back(
      {{"duplicates",
        {},
        "Random rows of 0 to longest entries with unsorted and repeated columns: what a kernel must reject "
        "or survive.",
        "",
        "",
        false},
       {rows(500), cols(300), integer_key("longest", 40, 0, 1000000000), real_key("share", 0.3, 0, 1), seed_key()},
       duplicates});
  return list;
}

}  // namespace Detail
}  // namespace Matrices
}  // namespace Tessera
