// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "driver/Tessera_BenchOperation.hpp"

#include "Tessera_BenchOperations.inc"

namespace Tessera {
namespace Bench {

const std::vector<Operation>& operations() {
  // Of the operations that are built (Tessera_OPERATIONS).
  static const std::vector<Operation> table = {TESSERA_BENCH_OPERATIONS read_operation()};
  return table;
}

const Operation& find_operation(const std::string& name) {
  std::string known;
  for (const Operation& operation : operations()) {
    if (operation.name == name) return operation;
    known += (known.empty() ? "" : ", ") + operation.name;
  }
  throw BenchError(ExitUsage, "op '" + name + "' is not one of this build; there are " + known);
}

}  // namespace Bench
}  // namespace Tessera
