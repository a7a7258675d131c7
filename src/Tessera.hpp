// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_TESSERA_HPP
#define TESSERA_TESSERA_HPP

/// \file
/// Everything of the library: sparse matrix kernels on matrix units for Kokkos applications.

#include "Tessera_Attention.hpp"
#include "Tessera_BsrSpmv.hpp"
#include "Tessera_BsrView.hpp"
#include "Tessera_Config.hpp"
#include "Tessera_CsrView.hpp"
#include "Tessera_Device.hpp"
#include "Tessera_Error.hpp"
#include "Tessera_Options.hpp"
#include "Tessera_RowSoftmax.hpp"
#include "Tessera_Sddmm.hpp"
#include "Tessera_Spgemm.hpp"
#include "Tessera_Spmm.hpp"
#include "Tessera_Spmv.hpp"
#include "Tessera_Statistics.hpp"
#include "Tessera_ToDevice.hpp"
#include "Tessera_Types.hpp"
#include "io/Tessera_MatrixMarket.hpp"
#include "reorder/Tessera_BlockDiagonal.hpp"
#include "reorder/Tessera_Reorder.hpp"
#include "reorder/Tessera_RowClusters.hpp"

#endif
