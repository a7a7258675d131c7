// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_ADAPTERS_TPETRA_OPERANDS_HPP
#define TESSERA_ADAPTERS_TPETRA_OPERANDS_HPP

#include <Teuchos_RCP.hpp>
#include <string>

#include "Tessera_Error.hpp"
#include "adapters/Tessera_TpetraCompat.hpp"

/// \file
/// What the operators for Tpetra ask of X and Y alike.

namespace Tessera {
namespace Impl {

/// Whether numbers of one may be numbers of the other: by the ranges of memory that they reach over.
template <class MV>
bool share_memory(const MV& X, const MV& Y) {
  if (&X == &Y) return true;
  const auto x = Compat::read(X), y = Compat::read(Y);
  if (x.span() == 0 || y.span() == 0) return false;
  return x.data() < y.data() + y.span() && y.data() < x.data() + x.span();
}

/// Where the map is another object, one collective comparison, so that all processes find the same; its result is kept
/// for the last such map.
/// @param who  operator, in the message   @param what  X or Y   @throw DimensionMismatch  v is not on `wanted`
template <class MV, class Map>
void check_map(const char* who, const char* what, const MV& v, const Teuchos::RCP<const Map>& wanted,
               Teuchos::RCP<const Map>& known) {
  const auto map = v.getMap();
  if (map.get() == wanted.get() || map.get() == known.get()) return;
  require<DimensionMismatch>(!map.is_null() && map->isSameAs(*wanted), [&] {
    return std::string(who) + "::apply: " + what + " has " +
           (map.is_null() ? std::string("no map")
                          : "a map of " + std::to_string(map->getGlobalNumElements()) + " elements") +
           ", the operator's has " + std::to_string(wanted->getGlobalNumElements()) +
           "; the maps must be the same in the sense of Tpetra::Map::isSameAs";
  });
  known = map;
}

/// Local: as Tpetra's own, all processes have the same number.
template <class MV>
void check_columns(const char* who, const MV& X, const MV& Y) {
  require<DimensionMismatch>(X.getNumVectors() == Y.getNumVectors(), [&] {
    return std::string(who) + "::apply: X has " + std::to_string(X.getNumVectors()) + " columns, Y has " +
           std::to_string(Y.getNumVectors());
  });
}

}  // namespace Impl
}  // namespace Tessera

#endif
