// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

/// \file
/// tessera_probe: what this machine can do at most, against which the products' times are to be read.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>

#include "driver/Tessera_BenchMain.hpp"
#include "probe/Tessera_Probe.hpp"

namespace Tessera {
namespace Bench {
namespace {

struct Group {
  const char* name;
  void (*run)(const Probe&);
};
constexpr Group groups[] = {{"stream", probe_streams},
                            {"gather", probe_gathers},
                            {"launch", probe_launches},
                            {"matrix", probe_matrix_units},
                            {"shared", probe_shared_memory}};

/// Nothing if the command line only asked for its help.
std::optional<ProbeOptions> parse(int argc, char** argv) {
  ProbeOptions o;
  std::vector<std::string> names;
  for (const Group& g : groups) names.push_back(g.name);
  CLI::App app(
      "Measures what sparse products are limited by on Kokkos' default execution space: streams, random gathers,\n"
      "launches, matrix instructions, shared memory. A full run takes a minute or two and up to 2 GiB.\n"
      "Exit status: 0 measured, 1 failure at run time, 2 bad usage, 5 no device.",
      "tessera_probe");
  app.option_defaults()->always_capture_default();
  app.add_flag("--quick", o.quick, "Few and small sizes: seconds on a CPU, no ceilings of a device");
  app.add_option("--only", o.only, "Groups to run: stream, gather, launch, matrix, shared; several with commas")
      ->delimiter(',')
      ->check(CLI::IsMember(names))
      ->default_str("");
  const CLI::Option* repeat = app.add_option("--repeat", o.repeat, "Batches of at least 0.3 ms a median is taken from")
                                  ->check(CLI::Range(1, 10000));
  const CLI::Option* budget =
      app.add_option("--budget", o.budget, "Seconds after which a figure stops repeating")->check(CLI::PositiveNumber);
  std::int64_t mebibytes = o.max_bytes >> 20;
  app.add_option("--max-mib", mebibytes, "Largest working set in MiB")
      ->check(CLI::Range(std::int64_t(1), std::int64_t(1) << 16));
  app.add_option("--json", o.json, "Write all figures");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
      app.exit(e);
      return std::nullopt;
    }
    throw BenchError(ExitUsage, std::string(e.what()) + " (--help)");
  }
  o.max_bytes = mebibytes << 20;
  if (o.quick && repeat->count() == 0) o.repeat = 3;
  if (o.quick && budget->count() == 0) o.budget = 0.02;
  return o;
}

void measure(const ProbeOptions& options) {
  Sheet sheet(options, make_context(BenchOptions()));
  const Probe probe{options, sheet, ProbeSpace()};
  sheet.write_json();  // a file that cannot be written is better known before the minutes of a full run
  for (const Group& g : groups) {
    const auto& only = options.only;
    if (only.empty() || std::find(only.begin(), only.end(), g.name) != only.end()) g.run(probe);
    sheet.write_json();  // an interrupted run leaves what it had
  }
}

Exit run(CommandLine& line) {
  const auto options = parse(line.argc(), line.argv());
  if (!options) return ExitVerified;
  const auto kokkos = line.start_kokkos();
  measure(*options);
  return ExitVerified;
}

}  // namespace
}  // namespace Bench
}  // namespace Tessera

int main(int argc, char** argv) {
  return Tessera::Bench::run_program("tessera_probe", argc, argv, Tessera::Bench::run);
}
