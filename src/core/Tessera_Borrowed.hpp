// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CORE_BORROWED_HPP
#define TESSERA_CORE_BORROWED_HPP

#include <cstddef>
#include <memory>
#include <string>

#include "Tessera_Compat.hpp"
#include "Tessera_Error.hpp"
#include "backends/interface/Tessera_KernelTable.hpp"
#include "core/Tessera_Profile.hpp"

namespace Tessera {
namespace Impl {

/// Memory of a set-up that a backend keeps for the next one. Its first borrowed_zero_bytes are zero, and the kernels
/// that use them leave them so: neither an allocation nor a fill stands between two kernels. Tools see the bytes that
/// were asked for, for as long as they are borrowed.
class Borrowed {
 public:
  /// Null where the backend keeps none, or none of that size. @throw DeviceError
  template <class MemorySpace, class Exec>
  static std::shared_ptr<Borrowed> open(const Exec& space, const KernelTable* backend, const char* label,
                                        std::size_t bytes) {
    if (backend == nullptr || backend->runtime.borrow == nullptr) return nullptr;
    void* memory = nullptr;
    const Status status = backend->runtime.borrow(bytes, Compat::native_stream(space), &memory);
    if (!status.ok()) throw DeviceError(std::string(label) + ": " + status.message);
    if (memory == nullptr) return nullptr;
    const std::shared_ptr<Borrowed> borrowed(new Borrowed(*backend, memory));
    borrowed->seen_ = reported<MemorySpace>(std::shared_ptr<void>(memory, [](void*) {}), label, bytes);
    return borrowed;
  }
  /// What may still be in use, after an error, nobody gets any more.
  ~Borrowed() {
    seen_.reset();
    backend_->runtime.give_back(memory_, !done_);
  }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;

  char* data() const { return static_cast<char*>(memory_); }
  /// The kernels that use it have ended, as far as it is concerned.
  void done() { done_ = true; }

 private:
  Borrowed(const KernelTable& backend, void* memory) : backend_(&backend), memory_(memory) {}

  const KernelTable* backend_;
  void* memory_;
  std::shared_ptr<void> seen_;
  bool done_ = false;
};

}  // namespace Impl
}  // namespace Tessera

#endif
