// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BENCH_REPORT_FILES_HPP
#define TESSERA_BENCH_REPORT_FILES_HPP

#include <string>
#include <vector>

#include "driver/Tessera_BenchReport.hpp"

namespace Tessera {
namespace Bench {

/// {"context": {...}} and the lists "records", "summary", "auto", "regret" and "regret_summary". @throw
/// std::runtime_error
void write_json(const std::string& file, const BenchContext& context, const BenchOptions& options,
                const std::vector<Record>& records);
/// The records' keys as a header, one line per record, row classes left out. @throw std::runtime_error
void write_csv(const std::string& file, const std::vector<Record>& records);

}  // namespace Bench
}  // namespace Tessera

#endif
