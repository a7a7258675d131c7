// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_REORDER_ROW_ORDER_RULES_HPP
#define TESSERA_REORDER_ROW_ORDER_RULES_HPP

/// \file
/// The threshold of RowReordering::Auto, which SpMM and SDDMM share.

namespace Tessera {
namespace Impl {

/// Share of the fetched rows of B that an order has to save, or clusters over first columns: less does not pay for a C
/// that is written row by row in another order (what orders bring: perf_test/notes/reordering.md).
constexpr double least_row_order_saving = 0.1;

}  // namespace Impl
}  // namespace Tessera

#endif
