// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "support/Tessera_TestMatrix.hpp"

namespace Tessera {
namespace Testing {

template <class Memory>
using Bytes = Kokkos::View<char*, Kokkos::LayoutLeft, Memory, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

template <class Memory>
void upload(void* to, const void* from, std::size_t bytes) {
  char* source = const_cast<char*>(static_cast<const char*>(from));
  Kokkos::deep_copy(Bytes<Memory>(static_cast<char*>(to), bytes), Bytes<Kokkos::HostSpace>(source, bytes));
}
template <class Memory>
void download(void* to, const void* from, std::size_t bytes) {
  char* source = const_cast<char*>(static_cast<const char*>(from));
  Kokkos::deep_copy(Bytes<Kokkos::HostSpace>(static_cast<char*>(to), bytes), Bytes<Memory>(source, bytes));
}

template void upload<Kokkos::HostSpace>(void*, const void*, std::size_t);
template void download<Kokkos::HostSpace>(void*, const void*, std::size_t);
#if defined(KOKKOS_ENABLE_CUDA) || defined(KOKKOS_ENABLE_HIP)
template void upload<Kokkos::DefaultExecutionSpace::memory_space>(void*, const void*, std::size_t);
template void download<Kokkos::DefaultExecutionSpace::memory_space>(void*, const void*, std::size_t);
#endif

}  // namespace Testing
}  // namespace Tessera
