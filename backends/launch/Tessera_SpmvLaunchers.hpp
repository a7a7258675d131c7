// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_LAUNCH_SPMV_LAUNCHERS_HPP
#define TESSERA_LAUNCH_SPMV_LAUNCHERS_HPP

#include "backends/interface/Tessera_Half.hpp"
#include "backends/interface/Tessera_PackedCheck.hpp"
#include "backends/interface/Tessera_SpmvKernels.hpp"

/// \file
/// The launchers of SpMV, as the table names them. Those that are only declared here are compiled in files of their
/// own: a vendor's folder instantiates the definitions of Tessera_DaspLaunch.hpp, Tessera_BsrLaunch.hpp,
/// Tessera_CellsLaunch.hpp and Tessera_PackedLaunch.hpp.

namespace Tessera {
namespace Launch {

template <class Device>
const DaspGeometry* dasp_geometry(Precision precision) noexcept;
template <class Device>
Status spmv_dasp(const SpmvDaspArgs& args, Stream stream) noexcept;
template <class Device>
Status spmv_bsr(const SpmvBsrArgs& args, Stream stream) noexcept;
template <class Device>
Status spmv_cells(const SpmvCellsArgs& args, Stream stream) noexcept;

// Packed slices of one precision, in parts that compile apart: values in full and one vector, or several, or values
// stored in fewer bytes.
template <class Device, class Value>
Status packed_full(const SpmvPackedArgs& args, Stream stream) noexcept;
template <class Device, class Value>
Status packed_vectors(const SpmvPackedArgs& args, Stream stream) noexcept;
template <class Device, class Value>
Status packed_stored(const SpmvPackedArgs& args, Stream stream) noexcept;

template <class Device, class Value>
Status spmv_packed_in(const SpmvPackedArgs& args, Stream stream) noexcept {
  if (args.storage != PackedStorage::Full) return packed_stored<Device, Value>(args, stream);
  if (args.columns > 1) return packed_vectors<Device, Value>(args, stream);
  return packed_full<Device, Value>(args, stream);
}

template <class Device>
Status spmv_packed(const SpmvPackedArgs& args, Stream stream) noexcept {
  if (args.precision == Precision::TF32) return {"spmv[packed]: FP64, FP32, FP16 and BF16 are offered"};
  const Status status = check_packed_waves(args);
  if (!status.ok() || args.slice_count == 0) return status;
  switch (args.precision) {
    case Precision::FP64:
      return spmv_packed_in<Device, double>(args, stream);
    case Precision::FP32:
      return spmv_packed_in<Device, float>(args, stream);
    case Precision::FP16:
      return spmv_packed_in<Device, half_t>(args, stream);
    default:
      return spmv_packed_in<Device, bhalf_t>(args, stream);
  }
}

template <class Device>
SpmvKernels spmv_kernels() noexcept {
  SpmvKernels kernels;
  kernels.dasp_geometry = dasp_geometry<Device>;
  kernels.dasp = spmv_dasp<Device>;
  kernels.packed = spmv_packed<Device>;
  kernels.bsr = spmv_bsr<Device>;
  if constexpr (Device::tables) kernels.cells = spmv_cells<Device>;
  return kernels;
}

}  // namespace Launch
}  // namespace Tessera

#endif
