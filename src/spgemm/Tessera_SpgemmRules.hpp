// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPGEMM_SPGEMM_RULES_HPP
#define TESSERA_SPGEMM_SPGEMM_RULES_HPP

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "spgemm/Tessera_SpgemmOptions.hpp"

/// \file
/// The rules of Auto on hosts.

namespace Tessera {
namespace Impl {

/// What TESSERA_FORCE_SPGEMM_ALGORITHM asks for. @throw InvalidArgument  unknown name
inline SpgemmAlgorithm forced_spgemm_algorithm() {
  const char* const name = std::getenv("TESSERA_FORCE_SPGEMM_ALGORITHM");
  return name == nullptr || *name == 0 ? SpgemmAlgorithm::Auto : parse_spgemm_algorithm(name);
}

/// Scratch of all threads for one product.
struct SpgemmScratchBytes {
  std::size_t spa, hash;
};
/// Dense arrays of so many bytes are never too large.
constexpr std::size_t spgemm_small_scratch = std::size_t{1} << 26;

/// Spa was the faster on every product that was measured, up to 4 M columns with 9 scattered products per row
/// (perf_test/notes/spgemm.md); so it is taken while its memory stays in proportion to that of A and B.
inline SpgemmAlgorithm predict_spgemm(const SpgemmScratchBytes& scratch, std::size_t matrices, std::size_t most,
                                      std::string& why) {
  const std::size_t room = most > 0 ? most : std::max(spgemm_small_scratch, matrices);
  const SpgemmAlgorithm taken =
      scratch.spa <= room || scratch.spa <= scratch.hash ? SpgemmAlgorithm::Spa : SpgemmAlgorithm::Hash;
  char text[200];
  std::snprintf(text, sizeof(text), "%s: dense arrays of all threads take %zu bytes, tables %zu (Spa up to %zu)",
                to_string(taken), scratch.spa, scratch.hash, room);
  why = text;
  return taken;
}

}  // namespace Impl
}  // namespace Tessera

#endif
