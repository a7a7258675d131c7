// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMV_SPMV_SCRATCH_HPP
#define TESSERA_SPMV_SPMV_SCRATCH_HPP

#include <cstdint>
#include <memory>
#include <optional>

#include "Tessera_Options.hpp"
#include "core/Tessera_Arena.hpp"
#include "core/Tessera_VectorOperand.hpp"

namespace Tessera {
namespace Impl {

/// What applies of one plan share: partial sums, and counters that are zero between applies.
template <class Exec, class MemorySpace>
class SpmvScratch {
 public:
  /// @throw WorkspaceTooSmall, InvalidArgument
  void set_up(const Exec& space, const KernelTable* backend, const Workspace& workspace, std::size_t partial_bytes,
              std::size_t bytes) {
    if (bytes == 0) return;
    require_workspace(workspace, bytes);
    data_ = static_cast<char*>(workspace.data);
    if (workspace.bytes == 0) {
      storage_ = Impl::allocate<MemorySpace>(space, backend, "Tessera::spmv::partials", bytes, Lifetime::Plan);
      data_ = static_cast<char*>(storage_.get());
    }
    using Bytes = Kokkos::View<char*, MemorySpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
    Kokkos::deep_copy(space, Bytes(data_, bytes), char(0));
    partial_bytes_ = partial_bytes;
  }

  void* partials() const { return data_; }
  void* at(std::size_t offset) const { return data_ + offset; }
  std::uint32_t* arrivals() const {
    return data_ == nullptr ? nullptr : reinterpret_cast<std::uint32_t*>(data_ + partial_bytes_);
  }

  /// A change of instance waits for the one before (once).
  void order_after_previous(const Exec& space) const {
    if (data_ == nullptr) return;
    const bool change = !previous_ || Compat::native_stream(*previous_) != Compat::native_stream(space);
    if (previous_ && change) Compat::fence(*previous_, "Tessera::spmv: change of execution-space instance");
    if (change) previous_ = space;
  }

 private:
  std::shared_ptr<void> storage_;
  char* data_ = nullptr;
  std::size_t partial_bytes_ = 0;
  mutable std::optional<Exec> previous_;
};

/// Whether the matrix should pass the first-level cache by: what stays in the last-level cache between applies is
/// fastest through the ordinary path. bytes: of the format, or of the format and both vectors.
inline bool bypasses(CacheBypass wish, std::size_t bytes, const KernelTable& backend) {
  if (wish != CacheBypass::Auto) return wish == CacheBypass::Always;
  DeviceFacts facts;
  const bool known = backend.runtime.device_facts(facts).ok() && facts.cache_bytes > 0;
  return !known || static_cast<double>(bytes) > 0.75 * static_cast<double>(facts.cache_bytes);
}

}  // namespace Impl
}  // namespace Tessera

#endif
