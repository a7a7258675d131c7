// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_REFERENCE_EMULATED_FLASH_HPP
#define TESSERA_REFERENCE_EMULATED_FLASH_HPP

#include "backends/interface/Tessera_KernelTable.hpp"

/// \file
/// FlashSparse on emulated units, compiled in a file of its own.

namespace Tessera {

int emulated_nvidia_flash_depth(Precision precision, int vector_length) noexcept;
int emulated_amd_flash_depth(Precision precision, int vector_length) noexcept;
Status emulated_nvidia_spmm_flash(const SpmmFlashArgs& args, Stream) noexcept;
Status emulated_amd_spmm_flash(const SpmmFlashArgs& args, Stream) noexcept;

}  // namespace Tessera

#endif
