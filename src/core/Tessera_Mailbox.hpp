// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CORE_MAILBOX_HPP
#define TESSERA_CORE_MAILBOX_HPP

#include <cstdint>
#include <memory>
#include <new>

#include "Tessera_Compat.hpp"
#include "Tessera_Error.hpp"
#include "backends/interface/Tessera_KernelTable.hpp"

namespace Tessera {
namespace Impl {

/// A message that kernels of a backend write where the host reads it: a struct whose member `number` is written last.
/// Questions have numbers from 1 on.
template <class Message>
class Mailbox {
  static_assert(sizeof(Message) <= mailbox_bytes, "mailboxes have room for small messages");

 public:
  /// Null where the backend has none. @throw DeviceError
  static std::shared_ptr<Mailbox> open(const KernelTable& backend) {
    if (backend.runtime.open_mailbox == nullptr) return nullptr;
    void* memory = nullptr;
    const Status status = backend.runtime.open_mailbox(&memory);
    if (!status.ok()) throw DeviceError(std::string("mailbox: ") + status.message);
    return std::shared_ptr<Mailbox>(new Mailbox(backend, new (memory) Message()));
  }
  /// One that may still be written to, after an error, is nobody's any more.
  ~Mailbox() {
    if (!asked_) backend_->runtime.close_mailbox(message_);
  }
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  /// A kernel that will write here is about to be enqueued. @return where
  Message* ask() {
    asked_ = true;
    return message_;
  }
  /// What the kernel wrote, as soon as it has. @throw DeviceError
  template <class Exec>
  const Message& answer(const Exec& space, std::int64_t number) {
    const Status status = backend_->runtime.await(&message_->number, number, Compat::native_stream(space));
    if (!status.ok()) throw DeviceError(status.message);
    asked_ = false;
    return *message_;
  }

 private:
  Mailbox(const KernelTable& backend, Message* message) : backend_(&backend), message_(message) {}

  const KernelTable* backend_;
  Message* message_;
  bool asked_ = false;
};

}  // namespace Impl
}  // namespace Tessera

#endif
