// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_LAUNCH_KERNEL_TABLE_OF_HPP
#define TESSERA_LAUNCH_KERNEL_TABLE_OF_HPP

#include "backends/interface/Tessera_KernelTable.hpp"
#include "backends/launch/Tessera_AttentionLaunchers.hpp"
#include "backends/launch/Tessera_SddmmLaunchers.hpp"
#include "backends/launch/Tessera_SpgemmLaunchers.hpp"
#include "backends/launch/Tessera_SpmmLaunchers.hpp"
#include "backends/launch/Tessera_SpmvLaunchers.hpp"

namespace Tessera {
namespace Launch {

/// The table of a backend, an operation per line.
template <class Device>
const KernelTable* kernel_table_of() noexcept {
  static const KernelTable table = [] {
    KernelTable t;
    t.name = Device::name;
    t.on_device = !Device::emulated;
    t.runtime = Device::runtime();
    t.spmv = spmv_kernels<Device>();
    t.spmm = spmm_kernels<Device>();
    t.sddmm = sddmm_kernels<Device>();
    t.spgemm = spgemm_kernels<Device>();
    t.attention = attention_kernels<Device>();
    return t;
  }();
  return &table;
}

}  // namespace Launch
}  // namespace Tessera

#endif
