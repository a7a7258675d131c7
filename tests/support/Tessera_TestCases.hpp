// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_TEST_CASES_HPP
#define TESSERA_TEST_CASES_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "Tessera_Options.hpp"
#include "backends/interface/Tessera_PackedLayout.hpp"
#include "support/Tessera_TestMatrix.hpp"

/// \file
/// What the suites go through: patterns, options, and numbers that a product must not meet.

namespace Tessera {
namespace Testing {

/// Options under a name.
template <class Options>
struct Named {
  std::string name;
  Options options;
};

inline std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

/// With sanitizers every kind of case, but neither the largest of a kind nor all sizes: results are checked without.
#ifdef TESSERA_TEST_FEWER_TYPES
constexpr bool fewer_cases = true;
#else
constexpr bool fewer_cases = false;
#endif
/// Beside such a build: emulated units leave out what it runs.
#ifdef TESSERA_TEST_BESIDE_SANITIZED
constexpr bool beside_sanitized = true;
#else
constexpr bool beside_sanitized = false;
#endif
/// In both of these, which run one after the other: lists of widths, lengths and options that take long are the shorter
/// ones.
constexpr bool shorter_lists = fewer_cases || beside_sanitized;
/// Whether the other of the two takes this pair of a long list, counted by `turn`: of what does not depend on types
/// each takes every second one.
constexpr bool taken_elsewhere(std::size_t turn) { return shorter_lists && (turn % 2 == 0) != fewer_cases; }
/// What this build emulates: with sanitizers NVIDIA's waves alone (backends/CMakeLists.txt).
constexpr bool emulates(Backend backend) { return !fewer_cases || backend != Backend::EmulatedAmd; }
inline std::vector<Backend> emulated_backends() {
  if (!emulates(Backend::EmulatedAmd)) return {Backend::EmulatedNvidia};
  return {Backend::EmulatedNvidia, Backend::EmulatedAmd};
}
/// With sanitizers, of long lists of options and patterns: whether the test of the same list in a type of another size
/// takes case `turn`. All of them are beside, in two types more.
template <class Scalar>
constexpr bool in_other_size(std::size_t turn) {
  return fewer_cases && turn % 2 != (sizeof(Scalar) == 2 ? 1 : 0);
}
/// The most entries of a row in long lists of cases.
constexpr int longest_case = shorter_lists ? 300 : 600;

/// Every generator at least once, small enough for an emulated matrix unit; some in two sizes, the large ones more than
/// half of all entries.
template <bool Shorter = fewer_cases>
const std::vector<std::string>& shapes() {
  static const std::vector<std::string> all = words(std::string(R"(
      empty empty:rows=0:cols=5 empty:rows=5:cols=0 empty:rows=0:cols=0 empty:rows=3000:cols=1 diagonal
      diagonal:rows=100:cols=37 diagonal:rows=37:cols=100 dense dense:rows=1:cols=1 dense:rows=1:cols=3001
      dense:rows=3001:cols=1 dense_row dense_row:others=1 dense_column dense_column:others=1 ramp every_length
      duplicates uniform:rows=777:cols=91:per_row=3 random:rows=1501:cols=997:lengths=uniform:mean=4
      random:rows=1501:cols=997:lengths=equal:mean=2.5 random:rows=1501:cols=1999:lengths=power:mean=6:tail=1.3
      rmat:scale=9:degree=8 batch:graphs=61 stencil2d:nx=37:ny=29 stencil2d:nx=23:ny=31:points=9
      stencil3d:nx=9:ny=11:nz=7 aggregation:nx=11:ny=7:nz=8 markov2d:nx=31:ny=37:gap=100
      fem:elements=hex:nx=4:ny=3:nz=3:dof=1:cavities=0)") +
                                                    (Shorter ? R"(
      circuit:n=1003:long_every=300:long_min=300:long_max=700 chem:n=101:longest=100 community:n=499:edges=2001
      lp:rows=21:cols=901:slack=1 fem:nx=4:ny=3:nz=2:cavities=1 web:n=701:longest=400 block_grid:nx=3:ny=2:nodes=41
      diagonals:n=301:count=7:reach=90:missing=0.3:stray=0.02)"
                                                             : R"(
      every_length:longest=600:cols=701 ramp:n=301 lp:rows=101:cols=5003 uniform:rows=1999:cols=1501:per_row=16
      duplicates:rows=151:longest=400 dense_row:rows=3:cols=20011 diagonal:rows=5000:cols=5000 dense:rows=3:cols=4001
      duplicates:rows=3000:longest=5:cols=11 circuit:n=5003:long_every=1000:long_min=800:long_max=2500
      chem:n=501:longest=500 lp:rows=51:cols=3001:slack=1 fem:nx=5:ny=4:nz=3:cavities=1
      random:rows=997:cols=2003:lengths=geometric:mean=9
      random:rows=6001:cols=5003:lengths=uniform:mean=2 community:n=1999:edges=9001 web:n=3001:longest=900
      stencil3d:nx=7:ny=5:nz=9:points=27 aggregation:nx=8:ny=9:nz=7:what=r:points=27 block_grid:nx=5:ny=4:nodes=91
      diagonals:n=1201:count=7:reach=90:missing=0.3:stray=0.02)"));
  return all;
}

/// All row lengths from 0 to `longest` (of those above 64 each third in shorter lists), the short ones often:
/// `short_rows` rows of each of 0..4.
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
    const auto length = static_cast<int>(every.row_map[i + 1] - every.row_map[i]);
    if (!shorter_lists || length <= 64 || (longest - length) % 3 == 0) {
      add(length, 0, every.entries.data() + every.row_map[i]);
    }
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

// ---- numbers of which two parts of TF32 leave out most (SplitUnit): of the 12 bits beyond TF32's nearly all are set,
// the last one always, at a small magnitude; signs: of both, and apart by up to 2^11

inline void worst_for_parts(float* numbers, std::size_t count, bool signs, std::uint32_t seed) {
  std::mt19937 engine(seed);
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits = static_cast<int>(4095 - 2 * (engine() % 8)),
               exponent = signs ? static_cast<int>(engine() % 12) : 0;
    const float magnitude = std::ldexp(1 + static_cast<float>(bits) * 0x1p-23f, exponent);
    numbers[i] = signs && engine() % 2 != 0 ? -magnitude : magnitude;
  }
}

// ---- infinite and undefined numbers, where a product must not meet them, or in some rows alone

inline double bad_number(std::size_t i) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return i % 3 == 0 ? std::nan("") : i % 3 == 1 ? infinity : -infinity;
}

/// The pattern on the odd columns alone: no row uses an even one, column 0 among them.
inline Pattern on_odd_columns(Pattern p) {
  for (int& column : p.entries) column = 2 * column + 1;
  p.cols = 2 * p.cols + 1;
  return p;
}
/// An x for it: integers, and bad numbers at the even columns.
template <class Scalar>
std::vector<Scalar> bad_at_even_columns(std::int64_t cols) {
  auto x = numbers<Scalar>(cols, Data::Integers, 6);
  for (std::size_t j = 0; j < x.size(); j += 2) x[j] = as<Scalar>(bad_number(j / 2));
  return x;
}
/// Every seventh row of a matrix on odd columns gets a bad value, another seventh meets one in bad_at_even_columns.
template <class Scalar, class Offset>
void add_bad_rows(HostMatrix<Scalar, Offset>& A, int shift) {
  for (int i = 0; i < A.rows; ++i) {
    if (A.length(i) == 0) continue;
    const auto at =
        static_cast<std::size_t>(static_cast<std::int64_t>(A.row_map[static_cast<std::size_t>(i)]) + i % A.length(i));
    if ((i + shift) % 7 == 0) A.values[at] = as<Scalar>(bad_number(static_cast<std::size_t>(i / 7)));
    if ((i + shift) % 7 == 3) --A.entries[at];
  }
}

// ---- CSR5

/// Rows that begin, end or are missing at the borders of tiles and lanes, or go on through many tiles.
inline std::vector<Pattern> csr5_border_cases(int omega, int sigma) {
  const int tile = omega * sigma, lane = sigma;
  std::vector<std::vector<int>> lengths = {
      {tile},
      {tile, tile, tile},
      {tile - 1, 1},
      {tile - 1, 1, tile + 1, tile - 1},
      {tile - 1, 2, tile},
      {1, tile, tile, tile},
      {2 * tile},
      {3 * tile, 1},
      {3 * tile + 1},
      {1, 3 * tile, 1},
      {1, 3 * tile - 1, tile},
      {0, tile},
      {tile, 0},
      {0, 0, tile, 0, 0, tile, 0, 0},
      {tile, 0, 0, 0, 1},
      {tile - 1, 0, 0, 1, 0, tile, 0},
      {0, 2 * tile + 1, 0, tile - 1, 0, 0, 5 * tile, 0},
      {1, 0, tile - 2, 0, 1, 0, tile, 0, 0, 2},
      {0, 0, 0, 1},
      {1, 0, 0, 0},
      {0, 0, 0},
      {lane, lane, 0, lane, 2 * lane, 0, tile, lane + 1, 0, tile - 1},
      {100 * tile, 0, 1},
      {tile / 2, 100 * tile, 0, tile / 2, 66 * tile, 1, 65 * tile, tile - 1, 64 * tile, 1},
      {65 * tile, 65 * tile + 1, 64 * tile, 64 * tile - 1},
      std::vector<int>(static_cast<std::size_t>(3 * tile + 1), 1)};
  std::vector<int> gaps;
  for (int i = 0; i < 4 * tile; ++i) gaps.push_back(i % 3 == 0 ? 2 : 0);
  lengths.push_back(gaps);
  std::vector<Pattern> all;
  for (const std::vector<int>& l : lengths) all.push_back(pattern_of_lengths(l, 97));
  return all;
}

// ---- DASP

/// Ends and middles of every range.
inline std::vector<Named<DaspOptions>> dasp_option_sets() {
  std::vector<Named<DaspOptions>> all(1, {"defaults", {}});
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

/// Sorted inside windows, as large matrices of even rows are (DaspCases.AreWhatTheySay).
inline Pattern dasp_many_sort_windows() {
  std::vector<int> lengths(34 * 2048 + 3, 5);
  lengths.insert(lengths.end(), 1001, 6);
  return pattern_of_lengths(lengths, 3001);
}
/// So many short steps that a wave takes several, and the last wave of a class fewer (DaspCases.AreWhatTheySay).
/// @param slices  rows of one length that a step takes
inline Pattern dasp_many_short_rows(std::int64_t slices) {
  const std::int64_t each = slices * (slices > 64 ? 3300 : 6600) + 7;  // 2.5 / slices steps per row, of each length
  std::vector<int> lengths;
  for (const int length : {1, 2, 3, 4}) lengths.insert(lengths.end(), static_cast<std::size_t>(each), length);
  return pattern_of_lengths(lengths, 3001);
}

// ---- packed slices

/// Every switch on and off, ends and middles of every range.
inline std::vector<Named<PackedOptions>> packed_option_sets() {
  std::vector<Named<PackedOptions>> all;
  const auto add = [&](const std::string& name, const auto& change) {
    PackedOptions o;
    o.least_shared = 0;  // also in matrices as small as those of the tests
    o.even_slices = o.diagonals = false;
    change(o);
    all.push_back({name, o});
  };
  add("defaults", [](PackedOptions& o) { o = PackedOptions{}; });
  add("even slices", [](PackedOptions& o) { o.even_slices = true, o.value_classes = false; });
  add("diagonals", [](PackedOptions& o) { o.diagonals = true, o.least_diagonals = 0, o.value_classes = false; });
  add("shared patterns", [](PackedOptions&) {});
  add("wide indices", [](PackedOptions& o) { o.narrow_indices = false; });
  add("no index-free slices", [](PackedOptions& o) { o.index_free = false; });
  add("no shared patterns", [](PackedOptions& o) { o.shared_patterns = false; });
  add("values in full", [](PackedOptions& o) { o.value_classes = false; });
  add("nothing at all", [](PackedOptions& o) {
    o.narrow_indices = o.index_free = o.shared_patterns = o.value_classes = false;
    o.hubs = 0;
    o.bypass = CacheBypass::Never;
  });
  for (const int hubs : {0, 1, 17, 65536}) {
    add("hubs " + std::to_string(hubs), [=](PackedOptions& o) { o.hubs = hubs; });
  }
  add("renumbered", [](PackedOptions& o) { o.renumber = 1; });
  add("renumbered in parts",
      [](PackedOptions& o) { o.renumber = 1, o.max_steps = o.split_steps = 2, o.window = 48, o.natural_padding = 0; });
  for (const int blocks : {1, 2, 3, 64}) {
    add("column blocks " + std::to_string(blocks), [=](PackedOptions& o) { o.column_blocks = blocks; });
  }
  add("column blocks with parts", [](PackedOptions& o) {
    o.column_blocks = 4, o.max_steps = o.split_steps = 2, o.window = 48, o.natural_padding = 0;
  });
  for (const int steps : {1, 2, 3, 7, 32, 33, 63}) {
    add("max_steps " + std::to_string(steps), [=](PackedOptions& o) { o.max_steps = steps; });
  }
  // Parts are never shorter than rows of max_steps.
  for (const int steps : {1, 2, 63}) {
    add("split_steps " + std::to_string(steps),
        [=](PackedOptions& o) { o.split_steps = steps, o.max_steps = std::min(steps, 4); });
  }
  for (const int window : {12, 35, 1000, 4092}) {
    add("window " + std::to_string(window), [=](PackedOptions& o) { o.window = window; });
  }
  for (const double padding : {0.0, 0.5, 1e6}) {
    add("natural_padding " + std::to_string(padding), [=](PackedOptions& o) { o.natural_padding = padding; });
  }
  add("small everything", [](PackedOptions& o) { o.max_steps = 2, o.split_steps = 2, o.window = 48, o.hubs = 5; });
  return all;
}

/// Patterns for which a kind of slice is certain. All have several windows of slices at 8 lanes.
constexpr const char* stencil = "stencil2d:nx=37:ny=29";
constexpr const char* three_dof = "fem:nx=5:ny=4:nz=3:cavities=0";

/// A stencil whose rows lack entries here and there: index-free slices with masks, also inside and at the first step.
inline Pattern stencil_with_gaps() {
  const Pattern full = generate("stencil2d:nx=41:ny=31");
  return pattern_of_rows(full.rows, full.cols, [&](std::int64_t i, std::vector<int>& columns) {
    for (std::int64_t k = full.row_map[i]; k < full.row_map[i + 1]; ++k) {
      if (i % 11 != 3 || (k + i) % 3 != 0) columns.push_back(full.entries[static_cast<std::size_t>(k)]);
    }
  });
}

/// As plans name a value class in their statistics.
inline std::string name_of(PackedStorage storage) {
  switch (storage) {
    case PackedStorage::Full:
      return "values in full";
    case PackedStorage::Float:
      return "values as float";
    case PackedStorage::Integer:
      return "values as 8-bit integers";
    case PackedStorage::Dictionary:
      return "values in a dictionary";
    case PackedStorage::Constant:
      return "values as a constant";
  }
  return "";
}

/// Numbers that belong to a value class and to no narrower one (given some thousand of them), for every type: Integer
/// takes -128..127; the dictionary has 256 quarters from -32 on; Float has more numbers than a dictionary.
inline double class_number(PackedStorage storage, std::uint64_t seed, std::uint64_t i) {
  const double real = number(Data::Real, seed, i);
  const auto byte = static_cast<double>(static_cast<int>((real + 1) * 128) % 256 - 128);
  switch (storage) {
    case PackedStorage::Full:
      return real;
    case PackedStorage::Float:
      return static_cast<double>(static_cast<float>(real));
    case PackedStorage::Integer:
      return byte;
    case PackedStorage::Dictionary:
      return byte / 4;
    case PackedStorage::Constant:
      return seed % 2 ? -2.5 : 0.75;
  }
  return 0;
}
template <class Scalar>
void fill_class(std::vector<Scalar>& values, PackedStorage storage, std::uint64_t seed) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = as<Scalar>(class_number(storage, seed, i));
}
/// The classes a type has. Float is for doubles alone.
template <class Scalar>
std::vector<PackedStorage> value_classes() {
  std::vector<PackedStorage> all = {PackedStorage::Full, PackedStorage::Integer, PackedStorage::Dictionary,
                                    PackedStorage::Constant};
  if (sizeof(Scalar) == 8) all.push_back(PackedStorage::Float);
  return all;
}

}  // namespace Testing
}  // namespace Tessera

#endif
