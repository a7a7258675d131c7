// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_EMULATED_PARTIALS_HPP
#define TESSERA_EMULATED_PARTIALS_HPP

#include "backends/kernels/spmm/Tessera_SpmmPartials.hpp"

namespace Tessera {

/// The second launch of SpMM on emulated waves.
template <class Value, class Sum, class Wave>
void emulate_add_partials(const SpmmPartialRows& split) {
  for (std::int64_t row = 0; row < split.count; ++row) SpmmPartials<Value, Sum, Wave>::run(Wave{}, split, row, 0, 1);
}

}  // namespace Tessera

#endif
