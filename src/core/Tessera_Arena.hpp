// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CORE_ARENA_HPP
#define TESSERA_CORE_ARENA_HPP

#include <cstdint>
#include <memory>
#include <string>

#include "Tessera_Compat.hpp"
#include "Tessera_Error.hpp"
#include "backends/interface/Tessera_KernelTable.hpp"
#include "core/Tessera_HugePages.hpp"
#include "core/Tessera_Profile.hpp"

/// \file
/// Memory of formats and of their conversion: few allocations, cut into typed arrays.

namespace Tessera {
namespace Impl {

/// How long an allocation lives: until the work enqueued so far is done, or as long as a plan.
enum class Lifetime { Temporary, Plan };

/// Uninitialised memory, from the backend's pool where it has one, else as a managed View. What a host's plan reads at
/// every product is asked for in huge pages where it is large.
/// @throw DeviceError, OutOfMemory  the backend's pool, or Kokkos, has no such memory
template <class MemorySpace, class Exec>
std::shared_ptr<void> allocate(const Exec& space, const KernelTable* backend, const char* label, std::size_t bytes,
                               Lifetime lifetime) {
  if (backend == nullptr || backend->runtime.allocate == nullptr) {
    using View = Kokkos::View<std::uint64_t*, Kokkos::LayoutLeft, MemorySpace>;
    const auto view = Compat::allocate<View>(space, label, (bytes + 7) / 8);
    if (Compat::is_host_v<Exec> && lifetime == Lifetime::Plan) prefer_huge_pages(view.data(), bytes);
    return std::shared_ptr<void>(view.data(), [view](void*) {});
  }
  void* memory = nullptr;
  const Stream stream = Compat::native_stream(space);
  const Status status = backend->runtime.allocate(bytes, stream, &memory);
  if (!status.ok()) throw DeviceError(std::string(label) + ", " + std::to_string(bytes) + " bytes: " + status.message);
  // A plan may outlive the stream it was made on, and be in use on others.
  const bool everywhere = lifetime == Lifetime::Plan;
  const auto release = [backend, stream = everywhere ? nullptr : stream, everywhere](void* p) {
    backend->runtime.release(p, stream, everywhere);
  };
  return reported<MemorySpace>(std::shared_ptr<void>(memory, release), label, bytes);
}

/// Copies one object to the host. Waits for everything enqueued on the instance.
template <class Exec, class T, class View>
void fetch(const Exec& space, const KernelTable* backend, const char* what, T& host, const View& device) {
  if (backend != nullptr && backend->runtime.fetch != nullptr) {
    const Status status = backend->runtime.fetch(&host, device.data(), sizeof(T), Compat::native_stream(space));
    if (!status.ok()) throw DeviceError(std::string(what) + ": " + status.message);
    return;
  }
  using Host = Kokkos::View<T*, Kokkos::LayoutLeft, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  Kokkos::deep_copy(space, Host(&host, 1), device);
  Compat::fence(space, what);
}

/// Cuts typed arrays out of one allocation; a first pass without memory counts the bytes.
template <class MemorySpace>
class Arena {
 public:
  template <class T>
  using View = Kokkos::View<T*, Kokkos::LayoutLeft, MemorySpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

  /// Calls layout(arena) twice: to count, and with an allocation of that size.
  template <class Exec, class Layout>
  static std::shared_ptr<void> make(const Exec& space, const KernelTable* backend, const char* label, Lifetime lifetime,
                                    Layout&& layout) {
    Arena count;
    layout(count);
    const auto storage = Impl::allocate<MemorySpace>(space, backend, label, count.bytes_, lifetime);
    Arena arena;
    arena.base_ = static_cast<char*>(storage.get());
    layout(arena);
    return storage;
  }
  /// The same with memory that is there already.
  template <class Layout>
  static std::size_t bytes_of(Layout&& layout) {
    Arena count;
    layout(count);
    return count.bytes_;
  }
  template <class Layout>
  static void place(char* memory, Layout&& layout) {
    Arena arena;
    arena.base_ = memory;
    layout(arena);
  }
  template <class T>
  View<T> take(std::size_t n) {
    static_assert(alignof(T) <= 64, "Views of Kokkos begin at multiples of 64 bytes on hosts");
    const std::size_t at = bytes_;
    bytes_ += (n * sizeof(T) + 255) / 256 * 256;
    return base_ == nullptr ? View<T>() : View<T>(reinterpret_cast<T*>(base_ + at), n);
  }
  /// What follows lies at least so many bytes behind the first.
  void skip_to(std::size_t bytes) { bytes_ = bytes_ < bytes ? bytes : bytes_; }
  /// Taken so far.
  std::size_t bytes() const { return bytes_; }

 private:
  char* base_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace Impl
}  // namespace Tessera

#endif
