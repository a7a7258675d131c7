// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_PACKED_CASES_HPP
#define TESSERA_PACKED_CASES_HPP

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "Tessera_Options.hpp"
#include "backends/interface/Tessera_PackedLayout.hpp"
#include "support/Tessera_TestMatrix.hpp"
#include "support/Tessera_TestShapes.hpp"

/// \file
/// Options, patterns and numbers for the tests of packed slices.

namespace Tessera {
namespace Testing {

struct NamedPacked {
  std::string name;
  PackedOptions packed;
};
/// Every switch on and off, ends and middles of every range.
inline std::vector<NamedPacked> packed_option_sets() {
  std::vector<NamedPacked> all;
  const auto add = [&](const std::string& name, const auto& change) {
    PackedOptions o;
    o.least_shared = 0;  // also in matrices as small as those of the tests
    change(o);
    all.push_back({name, o});
  };
  add("defaults", [](PackedOptions& o) { o = PackedOptions{}; });
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

/// Patterns for which a kind of slice is certain. All have several sort windows at 8 lanes.
constexpr const char* stencil = "stencil2d:nx=37:ny=29";
constexpr const char* three_dof = "fem:nx=5:ny=4:nz=3:cavities=0";

/// A stencil whose rows lack entries here and there: index-free slices with masks, also inside and at the first step.
inline Pattern stencil_with_gaps() {
  const Pattern full = generate("stencil2d:nx=41:ny=31");
  Pattern p;
  p.rows = full.rows;
  p.cols = full.cols;
  p.row_map.push_back(0);
  for (std::int64_t i = 0; i < full.rows; ++i) {
    for (std::int64_t k = full.row_map[i]; k < full.row_map[i + 1]; ++k) {
      if (i % 11 != 3 || (k + i) % 3 != 0) p.entries.push_back(full.entries[static_cast<std::size_t>(k)]);
    }
    p.row_map.push_back(static_cast<std::int64_t>(p.entries.size()));
  }
  return p;
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
