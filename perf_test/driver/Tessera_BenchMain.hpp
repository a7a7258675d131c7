// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BENCH_MAIN_HPP
#define TESSERA_BENCH_MAIN_HPP

#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "Tessera_Compat.hpp"
#include "driver/Tessera_BenchContext.hpp"

/// \file
/// What the mains of tessera_bench and tessera_probe share.

namespace Tessera {
namespace Bench {

/// A command line in two: Kokkos may know options with its prefix only; others have the same names as ours.
class CommandLine {
 public:
  CommandLine(int argc, char** argv) : theirs_{argv[0]} {
    for (int i = 0; i < argc; ++i) (std::strncmp(argv[i], "--kokkos", 8) == 0 ? theirs_ : ours_).push_back(argv[i]);
    count_ = static_cast<int>(ours_.size());
    their_count_ = static_cast<int>(theirs_.size());
    ours_.push_back(nullptr);
    theirs_.push_back(nullptr);
  }
  /// Without Kokkos' options.
  int argc() const { return count_; }
  char** argv() { return ours_.data(); }

  /// Kokkos is initialised for as long as the result lives.
  /// @throw BenchError  ExitNotSupported
  Kokkos::ScopeGuard start_kokkos() {
    const std::string missing = missing_device();
    if (!missing.empty()) throw BenchError(ExitNotSupported, missing);
    return Kokkos::ScopeGuard(their_count_, theirs_.data());
  }

 private:
  std::vector<char*> ours_, theirs_;
  int count_ = 0, their_count_ = 0;
};

/// run(CommandLine&), with exceptions as messages and exit statuses.
template <class Run>
Exit run_program(const char* name, int argc, char** argv, Run&& run) {
  try {
    CommandLine line(argc, argv);
    return run(line);
  } catch (const BenchError& e) {
    std::fprintf(stderr, "%s: %s\n", name, e.what());
    return e.status();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", name, e.what());
    return ExitFailure;
  }
}

}  // namespace Bench
}  // namespace Tessera

#endif
