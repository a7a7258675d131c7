// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CUDA_BACKEND_HPP
#define TESSERA_CUDA_BACKEND_HPP

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>

#include "backends/interface/Tessera_KernelTable.hpp"

/// \file
/// What the files of this folder share: error text and the entries of the backend's table.

namespace Tessera {
namespace Cuda {

/// Ok, or "LABEL: cudaErrorName (text) on DEVICE" in thread-local storage.
Status status_of(cudaError_t error, const char* label) noexcept;

const DaspGeometry* dasp_geometry(Precision precision) noexcept;
Status spmv_dasp(const SpmvDaspArgs& args, Stream stream) noexcept;

/// Whether kernels may be launched before the one before them is complete: on devices of capability 9.0 or later, if
/// the code that runs there was compiled for 9.0 or later too.
bool supports_dependent_launch() noexcept;
/// Lets a kernel have so much dynamic shared memory on the current device. devices: a bit for those where that is done.
cudaError_t allow_shared_memory(const void* kernel, int bytes, std::atomic<std::uint64_t>& devices) noexcept;
/// Of the current device: shared memory a block can have, and multiprocessors.
std::size_t shared_bytes() noexcept;
int multiprocessors() noexcept;
Status spmv_packed_fp64(const SpmvPackedArgs& args, Stream stream) noexcept;
Status spmv_packed_fp32(const SpmvPackedArgs& args, Stream stream) noexcept;
Status spmv_packed_fp16(const SpmvPackedArgs& args, Stream stream) noexcept;
Status spmv_packed_bf16(const SpmvPackedArgs& args, Stream stream) noexcept;
int flash_depth(Precision precision, int vector_length) noexcept;
Status spmm_flash(const SpmmFlashArgs& args, Stream stream) noexcept;
const PanelGeometry* panel_geometry(Precision precision, std::int64_t columns) noexcept;
Status spmm_panels(const SpmmPanelArgs& args, Stream stream) noexcept;
Status spmm_rows(const SpmmRowsArgs& args, Stream stream) noexcept;

}  // namespace Cuda
}  // namespace Tessera

#endif
