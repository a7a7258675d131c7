// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// What kernels write where the host reads it.

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "core/Tessera_KernelTables.hpp"
#include "core/Tessera_Mailbox.hpp"
#include "support/Tessera_TestCases.hpp"

namespace Tessera {
namespace Testing {

using Exec = Kokkos::DefaultHostExecutionSpace;

struct Message {
  int value = -1;
  std::int64_t number = 0;
};
using Box = Impl::Mailbox<Message>;

TEST(Mailbox, AnswersByNumber) {
  const auto box = Box::open(kernel_table(Backend::EmulatedNvidia));
  ASSERT_NE(box, nullptr);
  Message* const message = box->ask();
  EXPECT_EQ(message->value, -1);
  message->value = 7;
  message->number = 1;
  EXPECT_EQ(box->answer(Exec(), 1).value, 7);
  EXPECT_EQ(box->ask(), message);
  EXPECT_THROW(box->answer(Exec(), 2), DeviceError) << "the answer of before";
  message->value = 8;
  message->number = 2;
  EXPECT_EQ(box->answer(Exec(), 2).value, 8);
}

TEST(Mailbox, OneEach) {
  std::vector<std::shared_ptr<Box>> boxes;
  std::set<Message*> messages;
  for (int i = 0; i < 100; ++i) {
    boxes.push_back(Box::open(kernel_table(Backend::EmulatedNvidia)));
    Message* const message = boxes.back()->ask();
    EXPECT_EQ(message->number, 0) << "as new";
    message->number = 1;
    boxes.back()->answer(Exec(), 1);
    messages.insert(message);
  }
  EXPECT_EQ(messages.size(), boxes.size());
}

TEST(Mailbox, NotEverywhere) {
  if (!emulates(Backend::EmulatedAmd)) GTEST_SKIP() << "not emulated here";
  EXPECT_EQ(Box::open(kernel_table(Backend::EmulatedAmd)), nullptr);
}

}  // namespace Testing
}  // namespace Tessera
