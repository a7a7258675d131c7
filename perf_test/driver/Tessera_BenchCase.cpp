// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "driver/Tessera_BenchCase.hpp"

#include <algorithm>

#include "driver/Tessera_BaselineTypes.hpp"

namespace Tessera {
namespace Bench {
namespace {

bool contains(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

}  // namespace

std::vector<std::string> wanted_baselines(const BenchOptions& options, Report& report,
                                          const std::vector<std::string>& existing, const std::string& precision) {
  const std::vector<std::string>& asked = options.baselines;
  if (contains(asked, "none")) return {};
  if (contains(asked, "all")) return existing;
  std::vector<std::string> wanted;
  for (const std::string& name : known_baselines(options.op)) {
    const bool algorithm = name.rfind("cusparse-alg", 0) == 0;
    if (!contains(asked, name) && !(algorithm && contains(asked, "cusparse"))) continue;
    if (contains(existing, name)) {
      wanted.push_back(name);
    } else {
      report.note("baseline '" + name + "' is not in this build or has no " + precision, ExitNotSupported);
    }
  }
  return wanted;
}

Exit declined_baseline(const BenchOptions& options) {
  return contains(options.baselines, "all") ? ExitVerified : ExitNotSupported;
}

}  // namespace Bench
}  // namespace Tessera
