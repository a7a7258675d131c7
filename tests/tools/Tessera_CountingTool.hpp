// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_COUNTING_TOOL_HPP
#define TESSERA_COUNTING_TOOL_HPP

#include <map>
#include <string>
#include <vector>

/// \file
/// What the counting tool has seen, as tests read it from the loaded library.

namespace Tessera {
namespace Testing {

struct ToolRecord {
  std::map<std::string, long> kernels;  ///< events begin/endParallelFor per name
  std::map<std::string, long> regions;  ///< per name
  std::map<std::string, long> bytes;    ///< allocated and not released, per label
  std::vector<std::string> faults;      ///< events within events, ends without begin, releases of what nobody allocated
};

/// Exported by the tool under the name below.
using ToolRecordFunction = ToolRecord& (*)();
inline constexpr const char* tool_record_function = "tessera_tool_record";

}  // namespace Testing
}  // namespace Tessera

#endif
