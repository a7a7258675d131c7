// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BENCH_READ_HPP
#define TESSERA_BENCH_READ_HPP

#include "driver/Tessera_BenchOptions.hpp"

namespace Tessera {
namespace Bench {

/// --op read: entries a second that the Matrix Market reader takes from each file, one thread. Every reading must give
/// the same bits.
Exit bench_read(const BenchOptions& options);

}  // namespace Bench
}  // namespace Tessera

#endif
