// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "driver/Tessera_BenchCli.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <limits>

#include "Tessera_Device.hpp"
#include "driver/Tessera_BaselineTypes.hpp"
#include "matrices/Tessera_Generators.hpp"

namespace Tessera {
namespace Bench {
namespace {

using Names = std::vector<std::string>;

[[noreturn]] void usage(const std::string& message) { throw BenchError(ExitUsage, message + " (--help)"); }

std::string joined(const Names& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

const Names& operations() {
  static const Names names = {"spmv", "spmm", "sddmm", "attention", "spgemm", "read"};
  return names;
}

/// One key=value of --dasp. Ranges are the library's to check.
void set_dasp(DaspOptions& dasp, const std::string& setting) {
  const std::size_t equals = setting.find('=');
  const std::string key = setting.substr(0, equals),
                    value = equals == std::string::npos ? "" : setting.substr(equals + 1);
  const auto real = [&] {
    double number = 0;
    if (!CLI::detail::lexical_cast(value, number)) usage("--dasp " + setting + ": a number is wanted");
    return number;
  };
  const auto integer = [&] {
    int number = 0;
    if (!CLI::detail::lexical_cast(value, number)) usage("--dasp " + setting + ": an integer is wanted");
    return number;
  };
  const auto flag = [&] {
    if (value != "0" && value != "1") usage("--dasp " + setting + ": 0 or 1 is wanted");
    return value == "1";
  };
  if (key == "threshold") {
    dasp.threshold = real();
  } else if (key == "max_medium") {
    dasp.max_medium_length = integer();
  } else if (key == "min_pairs") {
    dasp.min_pairs = integer();
  } else if (key == "entries_per_wave") {
    dasp.entries_per_wave = integer();
  } else if (key == "adaptive") {
    dasp.adaptive_work = flag();
  } else if (key == "bypass" && value == "auto") {
    dasp.bypass = CacheBypass::Auto;
  } else if (key == "bypass") {
    dasp.bypass = flag() ? CacheBypass::Always : CacheBypass::Never;
  } else if (key == "sort" && value == "auto") {
    dasp.sort = SortRange::Auto;
  } else if (key == "sort" && value == "window") {
    dasp.sort = SortRange::Window;
  } else if (key == "sort" && value == "global") {
    dasp.sort = SortRange::Global;
  } else {
    usage("--dasp " + setting +
          ": known are threshold=T, max_medium=N, min_pairs=N, sort=auto|window|global, entries_per_wave=N, "
          "adaptive=0|1, bypass=auto|0|1");
  }
}

void print_list() {
  std::printf("generators, for --matrix gen:NAME[:key=value...]\n");
  for (const Matrices::GeneratorInfo& g : Matrices::generators()) {
    std::printf("  %-20s %s\n", g.name.c_str(), g.alias_of.empty() ? g.summary.c_str() : g.alias_of.c_str());
    if (!g.alias_of.empty()) continue;
    for (const Matrices::GeneratorKey& k : g.keys) {
      std::printf("  %-20s   %s=%s (%s)\n", "", k.name.c_str(), k.default_value.c_str(), k.accepts.c_str());
    }
  }
  std::printf("\nmatrix-unit backends\n");
  for (const BackendInfo& b : available_backends()) {
    std::printf("  %-20s %s\n", b.name.c_str(), b.usable ? b.facts.name : b.reason.c_str());
  }
  std::printf("\nbaselines of spmv: %s, cusparse (both CSR algorithms)\n", joined(known_baselines("spmv")).c_str());
  std::printf("baselines of spmm: %s, cusparse (all of its CSR algorithms)\n", joined(known_baselines("spmm")).c_str());
}

void check_spmv(const BenchOptions& o, bool columns_given) {
  if (o.n != 1 || o.k != 0 || columns_given) {
    usage("spmv multiplies one vector: it takes neither --n nor --k nor --columns");
  }
  if (o.layout_left) usage("--layout belongs to spmm");
  for (const std::string& name : o.algorithms) {
    if (name != "all") parse_spmv_algorithm(name);
  }
  for (const Precision p : o.precisions) {
    if (p == Precision::TF32) {
      throw BenchError(ExitNotSupported, "spmv has no tf32; it offers fp64, fp32, fp16 and bf16");
    }
  }
}

void check_spmm(const BenchOptions& o, bool dasp_given) {
  if (o.n != 1 || o.k != 0) usage("spmm takes --columns, and neither --n nor --k");
  for (const std::int64_t n : o.columns) {
    if (n < 1 || n > std::numeric_limits<std::int32_t>::max()) usage("--columns: 1 to 2^31 - 1 are possible");
  }
  if (dasp_given || o.value_classes) usage("--dasp and --value-classes belong to spmv");
  if (!o.x.empty() || !o.y.empty() || !o.write_result.empty() || !o.write_operands.empty()) {
    usage("spmm has seeded dense operands only: --x, --y, --write-result and --write-operands belong to spmv");
  }
  for (const std::string& name : o.algorithms) {
    if (name != "all") parse_spmm_algorithm(name);
  }
}

/// What CLI11 cannot check.
void check(const BenchOptions& o, bool columns_given, bool dasp_given) {
  if (o.matrices.empty()) usage("--matrix FILE or --matrix gen:NAME is missing");
  if (o.op == "read") return;
  if (o.op != "spmv" && o.op != "spmm") {
    throw BenchError(ExitNotSupported,
                     "op '" + o.op + "' does not exist yet; this tessera_bench has spmv, spmm and read");
  }
  if (!o.matrix_b.empty()) usage("--matrix-b belongs to spgemm");
  if (o.op == "spmv") {
    check_spmv(o, columns_given);
  } else {
    check_spmm(o, dasp_given);
  }
  for (const std::string& name : o.baselines) {
    const Names& known = known_baselines(o.op);
    if (name == "all" || name == "none" || name == "cusparse") continue;
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      usage("unknown baseline '" + name + "'; known: none, all, cusparse, " + joined(known));
    }
  }
  if (o.write_operands.empty() && o.write_result.empty()) return;
  if (o.ablation && !o.write_result.empty()) usage("--ablation and --write-result exclude each other");
}

}  // namespace

std::optional<BenchOptions> parse_command_line(int argc, char** argv) {
  BenchOptions o;
  std::string backend = "auto", y_type = "float", selection = "predict", layout = "right";
  std::vector<std::int64_t> columns;
  Names precisions, dasp;
  bool list = false;
  CLI::App app(
      "Times Tessera's operations beside other libraries and verifies every result.\n"
      "Exit status: 0 all results verified, 1 failure at run time, 2 bad usage, 3 bad or unreadable input,\n"
      "4 a wrong result, 5 not supported or not built.",
      "tessera_bench");
  app.option_defaults()->always_capture_default();
  app.add_option("--op", o.op, "Operation; read times the Matrix Market reader")->check(CLI::IsMember(operations()));
  app.add_option("--matrix", o.matrices, "FILE.mtx[.gz] or gen:NAME[:key=value...]; several are allowed (--list)")
      ->default_str("");
  app.add_option("--matrix-b", o.matrix_b, "Second matrix (spgemm)");
  app.add_option("--algorithm", o.algorithms,
                 "all, or names: auto, packed, csr5, dasp, csr (spmv); auto, panels, flash, gespmm, csr (spmm)")
      ->delimiter(',');
  app.add_option("--backend", backend, "auto, kokkos, reference, emulated-nvidia, emulated-amd, cuda or hip");
  app.add_option("--precision", precisions, "fp64, fp32, tf32, fp16, bf16; several with commas")
      ->delimiter(',')
      ->default_str("fp64");
  app.add_option("--y-type", y_type, "y (spmm: C) of fp16 and bf16: float, or same as the operands")
      ->check(CLI::IsMember(Names{"float", "same"}));
  app.add_option("--offset-bits", o.offset_bits, "Width of CSR offsets: 32, 64, or 0: by the entries")
      ->check(CLI::IsMember(std::vector<int>{0, 32, 64}));
  app.add_option("--columns", columns, "Columns of B and C (spmm); several with commas, each is measured")
      ->delimiter(',')
      ->default_str("32,64,128,256");
  app.add_option("--layout", layout, "Of B and C (spmm)")->check(CLI::IsMember(Names{"right", "left"}));
  app.add_option("--n", o.n, "Columns of the dense operands (sddmm, attention)")->check(CLI::PositiveNumber);
  app.add_option("--k", o.k, "Inner dimension (sddmm, attention)")->check(CLI::NonNegativeNumber);
  app.add_option("--alpha", o.alpha, "y = alpha A x + beta y, C = alpha A B + beta C");
  app.add_option("--beta", o.beta, "See --alpha; not 0: y (C) starts with seeded values");
  app.add_option("--seed", o.seed, "Seed of all values that no file gives");
  app.add_option("--repeat", o.repeat, "Batches of at least 0.3 ms a time is taken from")->check(CLI::Range(1, 100000));
  app.add_option("--budget", o.budget, "Seconds after which a case stops repeating")->check(CLI::PositiveNumber);
  app.add_flag("--cold", o.cold, "Also time single runs after the caches were overwritten");
  app.add_option("--baseline", o.baselines, "none, all, or names (--list)")->delimiter(',');
  app.add_option("--dasp", dasp,
                 "key=value,...: threshold, max_medium, min_pairs, sort=auto|window|global, entries_per_wave, "
                 "adaptive=0|1, bypass=auto|0|1")
      ->delimiter(',')
      ->default_str("");
  app.add_flag(
      "--ablation", o.ablation,
      "spmv: DASP with adaptive on and off times bypass on and off. spmm: flash with windows of 16 rows (16x1), "
      "direct mapping (direct) and padded blocks (sr) beside the published choice");
  app.add_flag("--value-classes", o.value_classes,
               "Packed slices of a backend may store values in fewer bytes where that loses nothing. Off, so that "
               "figures stand for "
               "general values: generated ones have 8 significant bits, and fp64 would always be stored as float");
  app.add_option("--selection", selection, "How auto decides: predict, or measure the two best predictions")
      ->check(CLI::IsMember(Names{"predict", "measure"}));
  app.add_flag("--regret", o.regret,
               "Also measure auto, and print its time over that of the fastest other algorithm of the run");
  app.add_flag("--ceiling", o.ceiling, "Measure the streaming read rate first");
  app.add_option("--x", o.x, "Matrix Market vector x instead of seeded values");
  app.add_option("--y", o.y, "Matrix Market vector y, read if beta is not 0");
  app.add_option("--write-result", o.write_result, "Write y; several results get suffixes");
  app.add_option("--write-operands", o.write_operands, "Write A.mtx, x.mtx (and y.mtx) into this folder");
  app.add_option("--json", o.json, "Write all records");
  app.add_option("--csv", o.csv, "Write all records, row classes apart");
  app.add_flag("--quiet", o.quiet, "Print failures only, and the summary of several matrices");
  app.add_flag("--verbose", o.verbose, "Also print why, minimum times and row classes");
  app.add_flag("--list", list, "List generators, backends and baselines");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
      app.exit(e);
      return std::nullopt;
    }
    usage(e.what());
  }
  if (list) {
    print_list();
    return std::nullopt;
  }
  try {
    o.backend = parse_backend(backend);
    if (!precisions.empty()) o.precisions.clear();
    for (const std::string& name : precisions) {
      const Precision p = parse_precision(name);
      if (std::find(o.precisions.begin(), o.precisions.end(), p) == o.precisions.end()) o.precisions.push_back(p);
    }
    o.y_as_operand = y_type == "same";
    o.layout_left = layout == "left";
    if (!columns.empty()) o.columns.clear();
    for (const std::int64_t n : columns) {
      if (std::find(o.columns.begin(), o.columns.end(), n) == o.columns.end()) o.columns.push_back(n);
    }
    if (selection == "measure") o.selection = Selection::Measure;
    for (const std::string& setting : dasp) set_dasp(o.dasp, setting);
    check(o, !columns.empty(), !dasp.empty());
  } catch (const InvalidArgument& e) {
    usage(e.what());
  }
  return o;
}

}  // namespace Bench
}  // namespace Tessera
