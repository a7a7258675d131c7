// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CORE_PLAN_SCRATCH_HPP
#define TESSERA_CORE_PLAN_SCRATCH_HPP

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>

#include "Tessera_Options.hpp"
#include "core/Tessera_Arena.hpp"
#include "core/Tessera_VectorOperand.hpp"

namespace Tessera {
namespace Impl {

/// What applies of one plan share: copies of operands in another layout, sums of split windows or rows. Its size is
/// known only at an apply; it grows there and is kept.
template <class Exec, class MemorySpace>
class PlanScratch {
 public:
  /// @throw InvalidArgument
  void set_up(const KernelTable* backend, const Workspace& workspace) {
    require_workspace(workspace, 0);
    backend_ = backend;
    workspace_ = workspace;
  }

  /// Bytes that can be had: any number, unless the caller gave a workspace.
  std::size_t most() const { return workspace_.bytes > 0 ? workspace_.bytes : std::numeric_limits<std::size_t>::max(); }
  bool offers(std::size_t bytes) const { return bytes <= most(); }

  /// At least so many bytes, aligned to 16 (null for none), for kernels enqueued on `space` from now on. Where the plan
  /// was last applied on another instance, waits for that one (once). @throw WorkspaceTooSmall, DeviceError
  char* reserve(const Exec& space, std::size_t bytes) const {
    if (bytes == 0) return nullptr;
    if (!offers(bytes)) throw WorkspaceTooSmall(bytes, workspace_.bytes);
    const bool change = !previous_ || Compat::native_stream(*previous_) != Compat::native_stream(space);
    if (previous_ && change) Compat::fence(*previous_, "Tessera: change of execution-space instance");
    if (workspace_.bytes == 0 && bytes > bytes_) {
      if (bytes_ > 0) Compat::fence(space, "Tessera: scratch grows");
      storage_.reset();  // first, so that both never exist at once
      bytes_ = 0;
      storage_ = Impl::allocate<MemorySpace>(space, backend_, "Tessera::scratch", bytes, Lifetime::Plan);
      bytes_ = bytes;
    }
    if (change) previous_ = space;
    return static_cast<char*>(workspace_.bytes > 0 ? workspace_.data : storage_.get());
  }

 private:
  const KernelTable* backend_ = nullptr;
  Workspace workspace_{};
  mutable std::shared_ptr<void> storage_;
  mutable std::size_t bytes_ = 0;
  mutable std::optional<Exec> previous_;
};

/// Cuts ranges of whole 256 bytes out of scratch; a first pass without memory counts.
class ScratchLayout {
 public:
  explicit ScratchLayout(char* base = nullptr) : base_(base) {}
  template <class T>
  T* take(std::int64_t n) {
    const std::size_t at = bytes_;
    bytes_ += rounded(static_cast<std::size_t>(n) * sizeof(T));
    return base_ == nullptr || n == 0 ? nullptr : reinterpret_cast<T*>(base_ + at);
  }
  std::size_t bytes() const { return bytes_; }
  static std::size_t rounded(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

 private:
  char* base_;
  std::size_t bytes_ = 0;
};

}  // namespace Impl
}  // namespace Tessera

#endif
