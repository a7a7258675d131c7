// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Libraries that the benchmark loads at run time: what is missing is said, and nothing is called.

#include <gtest/gtest.h>

#include <string>

#include "driver/Tessera_BenchLibrary.hpp"

namespace {

using namespace Tessera::Bench;

/// The message of the refusal; empty if there was none.
template <class F>
std::string refusal(const F& f) {
  try {
    f();
  } catch (const BenchError& e) {
    EXPECT_EQ(e.status(), ExitInput);
    return e.what();
  }
  return "";
}

TEST(BenchLibrary, RefusesWhatItCannotLoad) {
  EXPECT_NE(refusal([] { SharedLibrary("/no/such/library.so"); }).find("/no/such/library.so"), std::string::npos);
  EXPECT_NE(refusal([] { SharedLibrary(TESSERA_EXAMPLE_DATA "/neighbours.mtx"); }), "");
}

#if defined(__linux__) && defined(__GLIBC__)
TEST(BenchLibrary, FindsFunctionsAndNamesThoseThatAreMissing) {
  const SharedLibrary mathematics("libm.so.6");
  double (*magnitude)(double) = nullptr;
  EXPECT_EQ(refusal([&] { mathematics.require(magnitude, "fabs"); }), "");
  ASSERT_NE(magnitude, nullptr);
  EXPECT_EQ(magnitude(-27.0), 27.0);
  void (*none)() = reinterpret_cast<void (*)()>(magnitude);
  mathematics.find(none, "cusparseSpMVOp");
  EXPECT_EQ(none, nullptr);
  const std::string text = refusal([&] { mathematics.require(none, "cusparseCreate"); });
  EXPECT_NE(text.find("libm.so.6"), std::string::npos);
  EXPECT_NE(text.find("cusparseCreate"), std::string::npos);
}
#endif

}  // namespace
