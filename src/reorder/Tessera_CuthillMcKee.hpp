// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_REORDER_CUTHILL_MC_KEE_HPP
#define TESSERA_REORDER_CUTHILL_MC_KEE_HPP

#include <cstdint>
#include <vector>

/// \file
/// The compiled, host-only part of the reordering. It knows no Kokkos, and no header of Tessera includes Boost: whether
/// the library has the algorithm was decided where the library was built.

namespace Tessera {
namespace Impl {

/// Whether this build of the library has Boost Graph.
bool has_cuthill_mckee() noexcept;

/// Reverse Cuthill-McKee order of the graph of A + A^T without its diagonal; `order[i]` is the vertex that comes i-th.
/// @param n  vertices
/// @param row_map, entries  the pattern of A in compressed rows, valid; columns may repeat and stand in any order
/// @throw NotSupported  the library was built without Boost
std::vector<std::int32_t> reverse_cuthill_mckee(std::int32_t n, const std::int64_t* row_map,
                                                const std::int32_t* entries);

}  // namespace Impl
}  // namespace Tessera

#endif
