// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Calls of packed-slices kernels that would compute something else must be refused: by the table of every backend in
// this build, and on hosts. They have no slices, so that none needs a device, refused or not.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backends/interface/Tessera_KernelTable.hpp"
#include "spmv/Tessera_PackedSpmv.hpp"

namespace Tessera {
namespace Testing {

struct PackedCall {
  Precision precision;
  PackedStorage storage;
  int columns;
  std::uint32_t hubs;
  int blocks;

  SpmvPackedArgs args() const {
    SpmvPackedArgs a;
    a.precision = precision;
    a.storage = storage;
    a.columns = columns;
    a.hubs = hubs;
    a.blocks = blocks;
    return a;
  }
  /// By the contract, written down a second time.
  bool for_hosts() const {
    const bool has_storage = storage != PackedStorage::Float || precision == Precision::FP64;
    const bool plain = columns == 1 && storage == PackedStorage::Full;
    return has_storage && columns >= 1 && columns <= 8 && (blocks == 1 || plain);
  }
  bool for_waves() const { return for_hosts() && (columns == 1 || (storage == PackedStorage::Full && hubs == 0)); }
  std::string name() const {
    return std::string(to_string(precision)) + ", storage " + std::to_string(static_cast<int>(storage)) + ", " +
           std::to_string(columns) + " columns, " + std::to_string(hubs) + " hubs, " + std::to_string(blocks) +
           " blocks";
  }
};

std::vector<PackedCall> packed_calls() {
  std::vector<PackedCall> all;
  for (const Precision precision : {Precision::FP64, Precision::FP32, Precision::FP16, Precision::BF16}) {
    for (const PackedStorage storage : {PackedStorage::Full, PackedStorage::Float, PackedStorage::Integer,
                                        PackedStorage::Dictionary, PackedStorage::Constant}) {
      for (const int columns : {-1, 0, 1, 2, 8, 9}) {
        for (const std::uint32_t hubs : {0u, 5u}) all.push_back({precision, storage, columns, hubs, 1});
        all.push_back({precision, storage, columns, 0u, 3});
      }
    }
  }
  return all;
}

TEST(PackedRefusals, EveryBackendOfThisBuild) {
  for (const KernelTable* table : {cuda_table(), hip_table(), emulated_nvidia_table(), emulated_amd_table()}) {
    if (table == nullptr) continue;
    for (const PackedCall& call : packed_calls()) {
      const Status status = table->spmv.packed(call.args(), nullptr);
      EXPECT_EQ(status.ok(), call.for_waves()) << table->name << ": " << call.name();
    }
  }
}

TEST(PackedRefusals, Hosts) {
  const Kokkos::DefaultHostExecutionSpace space;
  for (const PackedCall& call : packed_calls()) {
    SCOPED_TRACE(call.name());
    if (call.for_hosts()) {
      EXPECT_NO_THROW(Impl::packed_spmv_host(space, call.args(), packed_host_lanes, call.args().precision));
    } else {
      EXPECT_THROW(Impl::packed_spmv_host(space, call.args(), packed_host_lanes, call.args().precision), NotSupported);
    }
  }
}

}  // namespace Testing
}  // namespace Tessera
