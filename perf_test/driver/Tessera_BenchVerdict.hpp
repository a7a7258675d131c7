// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BENCH_VERDICT_HPP
#define TESSERA_BENCH_VERDICT_HPP

#include <string>

namespace Tessera {
namespace Bench {

/// How far a result is from the reference, in units of the bound; above 1 is wrong.
struct Verdict {
  double error_over_bound = 0;
  std::string fault;  ///< the worst element, if it is wrong
  bool verified() const { return fault.empty() && error_over_bound <= 1; }
};

}  // namespace Bench
}  // namespace Tessera

#endif
