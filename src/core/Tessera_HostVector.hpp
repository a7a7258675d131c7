// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CORE_HOST_VECTOR_HPP
#define TESSERA_CORE_HOST_VECTOR_HPP

#include <vector>

#include "Tessera_Compat.hpp"

namespace Tessera {
namespace Impl {

/// The elements of a contiguous rank-1 View, wherever they are; waits for the device.
template <class View>
std::vector<typename View::non_const_value_type> host_vector(const View& from) {
  using T = typename View::non_const_value_type;
  using Unmanaged = Kokkos::MemoryTraits<Kokkos::Unmanaged>;
  std::vector<T> to(from.extent(0));
  Kokkos::deep_copy(Kokkos::View<T*, Kokkos::LayoutLeft, Kokkos::HostSpace, Unmanaged>(to.data(), to.size()), from);
  return to;
}

}  // namespace Impl
}  // namespace Tessera

#endif
