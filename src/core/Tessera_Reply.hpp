// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CORE_REPLY_HPP
#define TESSERA_CORE_REPLY_HPP

#include <cstdint>
#include <memory>

#include "core/Tessera_Arena.hpp"
#include "core/Tessera_Mailbox.hpp"

/// \file
/// What kernels tell the host: totals that it needs before it can go on.

namespace Tessera {
namespace Impl {

/// Where one thread of a kernel puts an answer: in a mailbox, or where there is none in memory that is copied.
template <class T>
struct ReplyPlace {
  struct Message {
    T content{};
    std::int64_t number = 0;
  };
  Message* mail = nullptr;
  T* memory = nullptr;

  KOKKOS_INLINE_FUNCTION void send(const T& content) const {
    if (mail == nullptr) {
      *memory = content;
      return;
    }
    mail->content = content;
    Compat::publish_to_host(&mail->number, 1);
  }
};

/// One answer of one kernel. Through a mailbox the host has it before the kernel ends, in a tenth of the time that a
/// wait for the stream and a copy take.
template <class T>
class Reply {
 public:
  using Message = typename ReplyPlace<T>::Message;

  /// @throw DeviceError
  explicit Reply(const KernelTable* backend)
      : backend_(backend), mail_(backend != nullptr ? Mailbox<Message>::open(*backend) : nullptr) {}

  /// A kernel that will answer is about to be enqueued. @param memory  one T, where there is no mailbox
  template <class View>
  ReplyPlace<T> ask(const View& memory) {
    return {mail_ != nullptr ? mail_->ask() : nullptr, memory.data()};
  }
  /// What the kernel said. @throw DeviceError
  template <class Exec, class View>
  T receive(const Exec& space, const char* what, const View& memory) {
    if (mail_ != nullptr) return mail_->answer(space, 1).content;
    T content{};
    fetch(space, backend_, what, content, memory);
    return content;
  }

 private:
  const KernelTable* backend_;
  std::shared_ptr<Mailbox<Message>> mail_;
};

/// True in the last of `total` Kokkos teams that come here, for all of its threads: what the others wrote before is
/// then visible. `arrived` counts from zero. A team's threads pass a barrier.
template <class Member>
KOKKOS_INLINE_FUNCTION bool last_team(const Member& team, std::uint32_t* arrived, std::uint32_t total) {
#if !defined(__CUDA_ARCH__)  // where a barrier and then a fence of one thread are enough
  Kokkos::memory_fence();
#endif
  team.team_barrier();
  int last = 0;
  Kokkos::single(
      Kokkos::PerTeam(team),
      [&](int& l) {
        Kokkos::memory_fence();
        l = Kokkos::atomic_fetch_add(arrived, 1u) + 1 == total;
        if (l != 0) Kokkos::memory_fence();
      },
      last);
#if !defined(__CUDA_ARCH__)
  Kokkos::memory_fence();
#endif
  return last != 0;
}

}  // namespace Impl
}  // namespace Tessera

#endif
