// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_HIP_BACKEND_HPP
#define TESSERA_HIP_BACKEND_HPP

#include <hip/hip_runtime_api.h>

#include "backends/interface/Tessera_KernelTable.hpp"

/// \file
/// What the files of this folder share: error text and the entries of the backend's table.

namespace Tessera {
namespace Hip {

/// Ok, or "LABEL: hipErrorName (text) on HIP device N" in thread-local storage.
Status status_of(hipError_t error, const char* label) noexcept;

const DaspGeometry* dasp_geometry(Precision precision) noexcept;
Status spmv_dasp(const SpmvDaspArgs& args, Stream stream) noexcept;
Status spmv_packed_fp64(const SpmvPackedArgs& args, Stream stream) noexcept;
Status spmv_packed_fp32(const SpmvPackedArgs& args, Stream stream) noexcept;
Status spmv_packed_fp16(const SpmvPackedArgs& args, Stream stream) noexcept;
Status spmv_packed_bf16(const SpmvPackedArgs& args, Stream stream) noexcept;
int flash_depth(Precision precision, int vector_length) noexcept;
Status spmm_flash(const SpmmFlashArgs& args, Stream stream) noexcept;
const PanelGeometry* panel_geometry(Precision precision, std::int64_t columns) noexcept;
Status spmm_panels(const SpmmPanelArgs& args, Stream stream) noexcept;
Status spmm_rows(const SpmmRowsArgs& args, Stream stream) noexcept;

}  // namespace Hip
}  // namespace Tessera

#endif
