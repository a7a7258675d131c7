// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CORE_PROFILE_HPP
#define TESSERA_CORE_PROFILE_HPP

#include <cstdint>
#include <memory>
#include <string>

#include "Tessera_Compat.hpp"
#include "Tessera_Error.hpp"
#include "Tessera_Types.hpp"
#include "backends/interface/Tessera_Status.hpp"

/// \file
/// What tools for Kokkos see of work that does not run through Kokkos: kernels of backends, and memory of their pools.
/// Without a tool an event costs one call that compares pointers.

namespace Tessera {
namespace Impl {

/// Names what a backend runs: "Tessera::spmv[packed,fp64]".
struct KernelName {
  const char* operation;
  const char* algorithm;  ///< or a step of it
  Precision precision;

  std::string event() const {
    return std::string("Tessera::") + operation + '[' + algorithm + ',' + to_string(precision) + ']';
  }
};

/// An event begin/endParallelFor from construction to destruction. No kernel of Kokkos' own may begin within: tools
/// take events of kernels for disjoint.
template <class Exec>
class KernelEvent {
 public:
  KernelEvent(const Exec& space, const KernelName& name) : seen_(Kokkos::Profiling::profileLibraryLoaded()) {
    if (seen_) Kokkos::Profiling::beginParallelFor(name.event(), Compat::tool_device_id(space), &id_);
  }
  KernelEvent(const Exec& space, const std::string& name) : seen_(Kokkos::Profiling::profileLibraryLoaded()) {
    if (seen_) Kokkos::Profiling::beginParallelFor(name, Compat::tool_device_id(space), &id_);
  }
  ~KernelEvent() {
    if (seen_) Kokkos::Profiling::endParallelFor(id_);
  }
  KernelEvent(const KernelEvent&) = delete;
  KernelEvent& operator=(const KernelEvent&) = delete;

 private:
  bool seen_;
  std::uint64_t id_ = 0;
};

/// launch(stream) enqueues kernels of a backend and answers with a Status. On hosts, where they are emulated at once,
/// what was enqueued before has ended. @throw DeviceError
template <class Exec, class Launch>
void run_on_backend(const Exec& space, const KernelName& name, const Launch& launch) {
  if constexpr (Compat::is_host_v<Exec>) Compat::fence(space, "Tessera: emulated");
  Status status;
  {
    const KernelEvent<Exec> event(space, name);
    status = launch(Compat::native_stream(space));
  }
  if (!status.ok()) throw DeviceError(std::string(name.operation) + '[' + name.algorithm + "]: " + status.message);
}

/// The memory as tools see allocations of Kokkos; its release is reported when the last owner lets go.
template <class MemorySpace>
std::shared_ptr<void> reported(std::shared_ptr<void> memory, const char* label, std::size_t bytes) {
  if (!Kokkos::Profiling::profileLibraryLoaded()) return memory;
  const auto handle = Kokkos::Profiling::make_space_handle(MemorySpace::name());
  Kokkos::Profiling::allocateData(handle, label, memory.get(), bytes);
  void* const data = memory.get();
  const auto release = [handle, bytes, label = std::string(label), memory = std::move(memory)](void* p) mutable {
    Kokkos::Profiling::deallocateData(handle, label, p, bytes);
    memory.reset();
  };
  return std::shared_ptr<void>(data, release);
}

}  // namespace Impl
}  // namespace Tessera

#endif
