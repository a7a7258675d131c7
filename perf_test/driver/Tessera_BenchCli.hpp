// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BENCH_CLI_HPP
#define TESSERA_BENCH_CLI_HPP

#include <optional>

#include "driver/Tessera_BenchOptions.hpp"

namespace Tessera {
namespace Bench {

/// The command line, checked as far as that goes without looking at a matrix. Nothing if it only asked for text that
/// is printed now (--help, --list).
/// @throw BenchError  ExitUsage; ExitNotSupported for what does not exist in this build
std::optional<BenchOptions> parse_command_line(int argc, char** argv);

}  // namespace Bench
}  // namespace Tessera

#endif
