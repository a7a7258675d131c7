// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Every atom against the device's own matrix instruction: one-hot operands must hit exactly the register the emulation
// hits, whole numbers must agree exactly, reals within the bound of the accumulator.

#include "Tessera_Config.hpp"
#include "units/ConformanceCheck.hpp"

namespace Tessera {
namespace Testing {
namespace {

/// Why this backend cannot run here; empty if it can.
[[maybe_unused]] std::string absent(const KernelTable* table) {
  if (table == nullptr) return "not part of this build";
  DeviceFacts facts;
  const Status status = table->runtime.device_facts(facts);
  return status.ok() ? std::string() : std::string(status.message);
}

#ifdef TESSERA_HAVE_CUDA
template <class Atom>
class CudaConformance : public testing::Test {};
TYPED_TEST_SUITE(CudaConformance, NvidiaAtoms, AtomName);
TYPED_TEST(CudaConformance, RegistersAreWhereTheAtomSays) {
  const std::string reason = absent(cuda_table());
  if (!reason.empty()) GTEST_SKIP() << reason;
  EXPECT_EQ(check_conformance<TypeParam>(cuda_conformance), "");
}
TEST(CudaConformanceEntry, UnknownAtomIsAnError) {
  ConformanceArgs args;
  args.cases = 1;
  EXPECT_FALSE(cuda_conformance("Sm80_M1N1K1", args).ok());
}
#endif

#ifdef TESSERA_HAVE_HIP
template <class Atom>
class HipConformance : public testing::Test {};
TYPED_TEST_SUITE(HipConformance, AmdAtoms, AtomName);
TYPED_TEST(HipConformance, RegistersAreWhereTheAtomSays) {
  const std::string reason = absent(hip_table());
  if (!reason.empty()) GTEST_SKIP() << reason;
  EXPECT_EQ(check_conformance<TypeParam>(hip_conformance), "");
}
TEST(HipConformanceEntry, UnknownAtomIsAnError) {
  ConformanceArgs args;
  args.cases = 1;
  EXPECT_FALSE(hip_conformance("Gfx90a_M1N1K1", args).ok());
}
#endif

}  // namespace
}  // namespace Testing
}  // namespace Tessera
