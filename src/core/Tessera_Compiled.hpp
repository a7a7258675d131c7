// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CORE_COMPILED_HPP
#define TESSERA_CORE_COMPILED_HPP

#include "core/Tessera_Pattern.hpp"

/// \file
/// What the library compiles once, for the default execution space (src/CMakeLists.txt): the usual plans, conversions
/// of patterns, fills of numbers. With TESSERA_COMPILED_<OPERATION>, which the target Tessera::tessera sets for the
/// operations that it was built with (Tessera_OPERATIONS), programs link these. Plans of other types, and products with
/// other operands, are compiled where they are used, as all are without it (target Tessera::core).
///
/// Lists are macros: TESSERA_<OPERATION>_<list>(Extern, type), where Extern is `extern` or nothing.

namespace Tessera {
namespace Impl {
namespace Compiled {

using Exec = Kokkos::DefaultExecutionSpace;
using Device = Exec::device_type;
using Memory = Device::memory_space;
template <class Scalar, class Offset>
using Matrix = CsrView<Scalar, int, Offset, Device>;
template <class Offset>
using Pattern = CsrPattern<int, Offset, Device>;
template <class Scalar>
using Values = ValuesView<Scalar, Device>;
template <class Element>
using Vector = Kokkos::View<Element*, Kokkos::LayoutLeft, Memory, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

}  // namespace Compiled
}  // namespace Impl
}  // namespace Tessera

#endif
