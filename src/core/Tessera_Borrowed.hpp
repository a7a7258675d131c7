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

namespace Tessera {
namespace Impl {

/// Memory of a set-up that a backend keeps for the next one. Its first borrowed_zero_bytes are zero, and the kernels
/// that use them leave them so: neither an allocation nor a fill stands between two kernels.
class Borrowed {
 public:
  /// Null where the backend keeps none, or none of that size. @throw DeviceError
  template <class Exec>
  static std::shared_ptr<Borrowed> open(const Exec& space, const KernelTable* backend, std::size_t bytes) {
    if (backend == nullptr || backend->runtime.borrow == nullptr) return nullptr;
    void* memory = nullptr;
    const Status status = backend->runtime.borrow(bytes, Compat::native_stream(space), &memory);
    if (!status.ok()) throw DeviceError(std::string("memory of a set-up: ") + status.message);
    if (memory == nullptr) return nullptr;
    return std::shared_ptr<Borrowed>(new Borrowed(*backend, memory));
  }
  /// What may still be in use, after an error, nobody gets any more.
  ~Borrowed() { backend_->runtime.give_back(memory_, !done_); }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;

  char* data() const { return static_cast<char*>(memory_); }
  /// The kernels that use it have ended, as far as it is concerned.
  void done() { done_ = true; }

 private:
  Borrowed(const KernelTable& backend, void* memory) : backend_(&backend), memory_(memory) {}

  const KernelTable* backend_;
  void* memory_;
  bool done_ = false;
};

}  // namespace Impl
}  // namespace Tessera

#endif
