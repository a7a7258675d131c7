// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CORE_HUGE_PAGES_HPP
#define TESSERA_CORE_HUGE_PAGES_HPP

#include <cstddef>
#include <cstdint>
#include <string>

#include "Tessera_Compat.hpp"
#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace Tessera {
namespace Impl {

/// Asks Linux to give memory that was not written yet in pages of 2 MiB, as NumPy does for its arrays: the first write
/// to an array of pages of 4 KiB can cost as much as the whole product. A request that may be ignored;
/// only pages that lie in the array as a whole, so that it takes no more memory. Nothing elsewhere, or for small
/// arrays.
inline void prefer_huge_pages(void* data, std::size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  constexpr std::uintptr_t page = std::uintptr_t{1} << 21;
  const auto begin = (reinterpret_cast<std::uintptr_t>(data) + page - 1) / page * page;
  const auto end = (reinterpret_cast<std::uintptr_t>(data) + bytes) / page * page;
  if (data != nullptr && begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#else
  (void)data;
  (void)bytes;
#endif
}

/// Gives Linux back the whole pages of memory whose content is not needed any more. It stays allocated and can be
/// written again. Nothing elsewhere.
inline void drop_pages(void* data, std::size_t bytes) {
#if defined(__linux__) && defined(MADV_DONTNEED)
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<std::uintptr_t>(data) + page - 1) / page * page;
  const auto end = (reinterpret_cast<std::uintptr_t>(data) + bytes) / page * page;
  if (data != nullptr && begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
#else
  (void)data;
  (void)bytes;
#endif
}

/// Uninitialised View of n elements; on hosts with huge pages where it is large. @throw OutOfMemory
template <class View>
View allocate_large(const std::string& label, std::size_t n) {
  const auto view = Compat::allocate_view<View>(label, n);
  if constexpr (Kokkos::SpaceAccessibility<Kokkos::HostSpace, typename View::memory_space>::accessible) {
    prefer_huge_pages(view.data(), n * sizeof(typename View::value_type));
  }
  return view;
}

}  // namespace Impl
}  // namespace Tessera

#endif
