// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include <sys/stat.h>

#include <cstdio>
#include <cstring>

#include "driver/Tessera_BenchMatrix.hpp"
#include "driver/Tessera_BenchOperation.hpp"
#include "driver/Tessera_BenchReport.hpp"
#include "driver/Tessera_BenchTimer.hpp"

namespace Tessera {
namespace Bench {
namespace {

using Matrix = io::HostCsr<double, int, std::int64_t>;

bool same(const Matrix& a, const Matrix& b) {
  // Bits, so that a nan equals itself.
  return a.rows == b.rows && a.cols == b.cols && a.row_map == b.row_map && a.entries == b.entries &&
         a.values.size() == b.values.size() &&
         (a.values.empty() || std::memcmp(a.values.data(), b.values.data(), 8 * a.values.size()) == 0);
}

Exit read_one(const BenchOptions& options, const std::string& file) {
  const io::MatrixMarketHeader header = io::read_matrix_market_header(file);
  struct stat status {};
  const double megabytes = stat(file.c_str(), &status) == 0 ? 1e-6 * static_cast<double>(status.st_size) : 0;
  std::vector<double> samples;
  const Matrix first = io::read_matrix_market<double, int, std::int64_t>(file);
  bool agree = true;
  const double begin = now();
  while (samples.size() < 3 || (static_cast<int>(samples.size()) < options.repeat && now() - begin < options.budget)) {
    const double start = now();
    const Matrix again = io::read_matrix_market<double, int, std::int64_t>(file);
    samples.push_back(now() - start);
    agree = agree && same(first, again);
  }
  const double median = median_of(samples);
  const double rate = static_cast<double>(header.stored) / median;
  std::printf("%-32s %12lld %10.1f %12s %16.2f %10.1f  %s\n", matrix_name(file).c_str(),
              static_cast<long long>(header.stored), megabytes, format_seconds(median).c_str(), 1e-6 * rate,
              megabytes / median, agree ? "same matrix every time" : "WRONG: readings differ");
  std::fflush(stdout);
  return agree ? ExitVerified : ExitWrongResult;
}

/// Entries per second that the Matrix Market reader takes from each file, one thread. Every reading must give the same
/// bits.
Exit bench_read(const BenchOptions& options) {
  std::printf("%-32s %12s %10s %12s %16s %10s\n", "file", "entries", "MB", "time", "M entries/s", "MB/s");
  Exit result = ExitVerified;
  for (const std::string& file : options.matrices) {
    if (file.rfind("gen:", 0) == 0) {
      throw BenchError(ExitUsage, "--op read needs files; --op spmv --write-operands DIR writes a generator's matrix");
    }
    try {
      const Exit one = read_one(options, file);
      if (one != ExitVerified) result = one;
    } catch (const Error& e) {
      std::fprintf(stderr, "tessera_bench: %s\n", e.what());
      if (result == ExitVerified) result = ExitInput;
    }
  }
  return result;
}

}  // namespace

Operation read_operation() {
  Operation op;
  op.name = "read";
  op.summary = "times the Matrix Market reader";
  op.read = bench_read;
  return op;
}

}  // namespace Bench
}  // namespace Tessera
