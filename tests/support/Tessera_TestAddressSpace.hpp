// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_TEST_ADDRESS_SPACE_HPP
#define TESSERA_TEST_ADDRESS_SPACE_HPP

/// \file
/// An address space with little room, where the system has such limits and no sanitizer needs more.

#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__)
#define TESSERA_TEST_LIMITS_ADDRESS_SPACE

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace Tessera {
namespace Testing {

/// Lowers the limit of this process as long as it lives, also if something throws. What tests before have freed and the
/// process still has is taken away for as long, or a test's fate would depend on which others ran in its process.
class LimitedAddressSpace {
 public:
  explicit LimitedAddressSpace(rlim_t bytes) {
    EXPECT_EQ(getrlimit(RLIMIT_AS, &before_), 0);
    if (!lower_to(1)) return;  // nothing new: blocks come out of what there is
    for (std::size_t size = std::size_t{1} << 30; size >= std::size_t{1} << 20; size /= 2) {
      while (void* const block = std::malloc(size)) {
        *static_cast<void**>(block) = taken_;
        taken_ = block;
      }
    }
    lower_to(bytes);
  }
  ~LimitedAddressSpace() {
    EXPECT_EQ(setrlimit(RLIMIT_AS, &before_), 0);
    while (taken_ != nullptr) {
      void* const block = taken_;
      taken_ = *static_cast<void**>(block);
      std::free(block);
    }
  }
  LimitedAddressSpace(const LimitedAddressSpace&) = delete;
  LimitedAddressSpace& operator=(const LimitedAddressSpace&) = delete;

  /// Bytes that the process has, less what tests before have left where the library can give that back.
  static rlim_t used() {
#if defined(__GLIBC__)
    malloc_trim(0);
#endif
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
  }

 private:
  bool lower_to(rlim_t bytes) {
    rlimit low = before_;
    low.rlim_cur = bytes;
    const bool lowered = setrlimit(RLIMIT_AS, &low) == 0;
    EXPECT_TRUE(lowered) << "the test would take all memory";
    return lowered;
  }

  rlimit before_{};
  void* taken_ = nullptr;  ///< blocks, each of which begins with a pointer to the next
};

}  // namespace Testing
}  // namespace Tessera

#endif

#endif
