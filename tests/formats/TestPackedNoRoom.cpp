// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// New numbers for which there is no memory: packed slices are as they were, whichever allocation fails.

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "features/Tessera_SpmvFeatures.hpp"
#include "formats/packed/Tessera_FromPacked.hpp"
#include "formats/packed/Tessera_PackedUpdate.hpp"
#include "support/Tessera_TestCases.hpp"
#include "support/Tessera_TestCheck.hpp"

namespace Tessera {
namespace Testing {
namespace PackedWithoutRoom {

using Exec = Kokkos::DefaultHostExecutionSpace;

/// Allocations that succeed.
int left = 0;
Status allocate(std::size_t bytes, Stream, void** memory) noexcept {
  *memory = left-- > 0 ? std::aligned_alloc(256, (bytes + 255) / 256 * 256) : nullptr;
  return *memory != nullptr ? Status{} : Status{"no room"};
}
void release(void* memory, Stream, bool) noexcept { std::free(memory); }

TEST(PackedNoRoom, KeepsTheOldNumbers) {
  using Csr = DeviceMatrix<Exec, double>::Csr;
  KernelTable table;
  table.runtime.allocate = allocate;
  table.runtime.release = release;
  auto A = make_matrix<double>(all_classes(300, 100), Data::Integers, 3);
  for (double& value : A.values) value = value < 0 ? 2 : 3;
  const DeviceMatrix<Exec, double> device(A);
  auto B = A;
  for (std::size_t i = 0; i < B.values.size(); ++i) B.values[i] = 1.0 / (static_cast<double>(i) + 3);
  const DeviceMatrix<Exec, double> fresh(B);
  for (const int lanes : {8, 32}) {
    const SpmvFeatures features = spmv_features(Exec(), device.view());
    auto p = Experimental::to_packed(Exec(), device.view(), lanes, Precision::FP64, features, PackedOptions{}, true);
    const PackedStorage narrow = p.storage;
    ASSERT_NE(narrow, PackedStorage::Full);
    const auto update = [&](int allocations) {
      left = allocations;
      Experimental::packed_update<Csr>(Exec(), p, fresh.view().values(), &table);
    };
    for (int allocations = 0; allocations < 3; ++allocations) {
      EXPECT_THROW(update(allocations), DeviceError) << allocations;
      EXPECT_EQ(p.storage, narrow);
      const auto found = to_csr(p);
      EXPECT_EQ(found.entries, A.entries);
      EXPECT_EQ(std::memcmp(found.bits.data(), A.values.data(), sizeof(double) * A.values.size()), 0);
    }
    update(3);
    EXPECT_EQ(p.storage, PackedStorage::Full);
    const auto found = to_csr(p);
    EXPECT_EQ(std::memcmp(found.bits.data(), B.values.data(), sizeof(double) * B.values.size()), 0);
  }
}

}  // namespace PackedWithoutRoom
}  // namespace Testing
}  // namespace Tessera
