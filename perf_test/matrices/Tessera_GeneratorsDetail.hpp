// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_GENERATORS_DETAIL_HPP
#define TESSERA_GENERATORS_DETAIL_HPP

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "Tessera_Error.hpp"
#include "Tessera_Generators.hpp"

/// \file
/// What the generators' source files share; include only from those.

namespace Tessera {
namespace Matrices {
namespace Detail {

constexpr std::int64_t max_index = 2147483647;

/// SplitMix64 with a warmed-up state. Own code, because the standard library's distributions differ between vendors.
class Rng {
 public:
  explicit Rng(std::uint64_t seed) : state_(seed) {
    state_ = next() ^ (seed << 32);
    state_ = next();
  }
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  /// In [0, 1), a multiple of 2^-53.
  double unit() { return static_cast<double>(next() >> 11) * (1.0 / 9007199254740992.0); }
  /// In [0, n).
  int below(int n) { return static_cast<int>(((next() >> 32) * static_cast<std::uint64_t>(n)) >> 32); }

 private:
  std::uint64_t state_;
};

/// One key as its generator declares it: the public description plus what is needed to check a value.
struct Key {
  enum class Kind { Integer, Real, Choice };
  GeneratorKey info;
  Kind kind;
  double low, high;
};
/// `accepts` gives the bounds of an integer; `high` is at most 2^53, so a double holds it.
Key integer_key(const std::string& name, std::int64_t value, std::int64_t low, std::int64_t high = max_index);
Key real_key(const std::string& name, double value, double low, double high);
/// The first of the '|'-separated `choices` is the default.
Key choice_key(const std::string& name, const std::string& choices);
Key seed_key(std::int64_t value = 1);

/// Every key of one generator with its checked value.
class Options {
 public:
  Options(std::string generator, std::map<std::string, std::string> values)
      : generator_(std::move(generator)), values_(std::move(values)) {}
  std::int64_t integer64(const std::string& key) const;
  int integer(const std::string& key) const { return static_cast<int>(integer64(key)); }
  double real(const std::string& key) const;
  const std::string& text(const std::string& key) const { return values_.at(key); }
  /// For limits that involve several keys: throws InvalidArgument unless `condition`.
  void check(bool condition, const std::string& rule) const;

 private:
  std::string generator_;
  std::map<std::string, std::string> values_;
};

struct Generator {
  GeneratorInfo info;
  std::vector<Key> keys;
  Pattern (*make)(const Options&);
};
/// One table per source file.
std::vector<Generator> mesh_generators();
std::vector<Generator> graph_generators();
std::vector<Generator> row_generators();
std::vector<Generator> shape_generators();

inline void append_unchecked(Pattern& pattern, const std::vector<int>& row) {
  pattern.entries.insert(pattern.entries.end(), row.begin(), row.end());
  pattern.row_map.push_back(static_cast<std::int64_t>(pattern.entries.size()));
}
inline void sort_unique(std::vector<int>& row) {
  // Most generators emit ascending columns; finding that out is far cheaper than sorting.
  if (std::adjacent_find(row.begin(), row.end(), [](int a, int b) { return a >= b; }) == row.end()) return;
  std::sort(row.begin(), row.end());
  row.erase(std::unique(row.begin(), row.end()), row.end());
}
inline Pattern start_pattern(std::int64_t rows, std::int64_t cols, std::int64_t expected_entries = 0) {
  Pattern pattern;
  pattern.rows = rows;
  pattern.cols = cols;
  pattern.row_map.reserve(static_cast<std::size_t>(rows) + 1);
  pattern.row_map.push_back(0);
  pattern.entries.reserve(static_cast<std::size_t>(expected_entries));
  return pattern;
}
/// `fill(i, row)` puts the columns of row i into the empty `row`, in any order and with repetitions.
template <class Fill>
Pattern by_rows(std::int64_t rows, std::int64_t cols, std::int64_t expected_entries, Fill&& fill) {
  Pattern pattern = start_pattern(rows, cols, expected_entries);
  std::vector<int> row;
  for (std::int64_t i = 0; i < rows; ++i) {
    row.clear();
    fill(static_cast<int>(i), row);
    sort_unique(row);
    append_unchecked(pattern, row);
  }
  return pattern;
}

inline int clamp_column(std::int64_t column, int cols) {
  return static_cast<int>(std::min<std::int64_t>(cols - 1, std::max<std::int64_t>(0, column)));
}
/// Adds `count` different columns to the empty `row`, ascending, in O(count log count) whatever `cols` is.
void draw_distinct(Rng& rng, int count, int cols, std::vector<int>& row);

/// Edges as from << 32 | to.
inline std::uint64_t pack_edge(int from, int to) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(from)) << 32 | static_cast<std::uint32_t>(to);
}
/// Pattern of the edge list, with repetitions removed; `symmetric` adds every edge's reverse. Two counting sorts, so
/// O(edges + nodes). Takes the list to be able to free it early.
Pattern by_edges(int nodes, std::vector<std::uint64_t>&& edges, bool symmetric);

}  // namespace Detail
}  // namespace Matrices
}  // namespace Tessera

#endif
