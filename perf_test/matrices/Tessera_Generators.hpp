// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_GENERATORS_HPP
#define TESSERA_GENERATORS_HPP

#include <cstdint>
#include <string>
#include <vector>

/// \file
/// Reproducible sparse patterns for the tests and the benchmarks; not installed. The same spec gives the same pattern
/// on every run: nothing depends on a thread count, on a standard library's distributions or on the time.
///
/// A spec is `NAME[:key=value[:key=value...]]`, for example `stencil2d:nx=1000:ny=1000:points=5`; the prefix `gen:` is
/// accepted. Keys left out take the defaults that `generators()` lists. Some names are aliases of a longer spec, kept
/// so that measurements can be repeated on the very same pattern; keys given after an alias replace the alias's own.

namespace Tessera {
namespace Matrices {

/// Compressed rows without values. Columns are sorted and unique in every row unless the generator says otherwise.
struct Pattern {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::vector<std::int64_t> row_map;
  std::vector<int> entries;
};

struct GeneratorKey {
  std::string name;
  std::string default_value;
  std::string accepts;  ///< Human readable: "1..100000", "real 0..1" or "tet|hex".
};

struct GeneratorInfo {
  std::string name;
  std::vector<GeneratorKey> keys;
  std::string summary;     ///< One sentence.
  std::string stands_for;  ///< The SuiteSparse or graph matrices whose structure this resembles; empty for test shapes.
  std::string alias_of;    ///< The spec this name expands to; empty unless it is an alias.
  bool sorted_unique = true;
};

/// Throws InvalidArgument for an unknown name or key or a value out of range; the message lists what exists.
Pattern generate(const std::string& spec);

/// Every name that `generate` knows: first the generators, then the aliases.
std::vector<GeneratorInfo> generators();

}  // namespace Matrices
}  // namespace Tessera

#endif
