// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "driver/Tessera_BenchCli.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <limits>

#include "Tessera_Device.hpp"
#include "driver/Tessera_BenchOperation.hpp"
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

/// "auto, packed (spmv); auto, panels (spmm)" of a list that operations have.
std::string of_operations(Names Operation::*list) {
  std::string text;
  for (const Operation& op : operations()) {
    if ((op.*list).empty()) continue;
    text += (text.empty() ? "" : "; ") + joined(op.*list) + " (" + op.name + ")";
  }
  return text;
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
  std::printf("\nbaselines; cusparse is all of its CSR algorithms\n");
  for (const Operation& op : operations()) {
    if (!op.baselines.empty()) std::printf("  %-20s %s\n", op.name.c_str(), joined(op.baselines).c_str());
  }
}

bool contains(const Names& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

/// Options that belong to some operations were given to one of those only.
void check_taken(const CLI::App& app, const Operation& own) {
  for (const Operation& other : operations()) {
    for (const std::string& option : other.takes) {
      if (app.count(option) > 0 && !contains(own.takes, option)) usage(option + " belongs to " + other.name);
    }
  }
}

/// What CLI11 cannot check.
void check(const BenchOptions& o, const Operation& op) {
  if (o.matrices.empty()) usage("--matrix FILE or --matrix gen:NAME is missing");
  if (op.read != nullptr) return;
  for (const std::string& name : o.algorithms) {
    if (name != "all" && !contains(op.algorithms, name)) {
      usage("unknown algorithm '" + name + "' of " + op.name + "; known: all, " + joined(op.algorithms));
    }
  }
  for (const Precision p : o.precisions) {
    if (std::find(op.precisions.begin(), op.precisions.end(), p) != op.precisions.end()) continue;
    Names known;
    for (const Precision q : op.precisions) known.emplace_back(to_string(q));
    throw BenchError(ExitNotSupported, op.name + " has no " + to_string(p) + "; it offers " + joined(known));
  }
  for (const std::int64_t n : o.columns) {
    if (n < 1 || n > std::numeric_limits<std::int32_t>::max()) usage("--columns: 1 to 2^31 - 1 are possible");
  }
  for (const std::string& name : o.baselines) {
    if (name == "all" || name == "none" || name == "cusparse" || contains(op.baselines, name)) continue;
    usage("unknown baseline '" + name + "'; known: none, all, cusparse, " + joined(op.baselines));
  }
  if (o.ablation && !o.write_result.empty()) usage("--ablation and --write-result exclude each other");
}

/// What the command line gives as text.
struct Texts {
  std::string backend = "auto", y_type = "float", selection = "predict", layout = "right";
  std::vector<std::int64_t> columns;
  Names precisions, dasp;
  bool list = false;
};

void add_problem(CLI::App& app, BenchOptions& o, Texts& t) {
  std::string summary = "Operation";
  Names names;
  for (const Operation& op : operations()) {
    summary += (names.empty() ? ": " : "; ") + op.name + ": " + op.summary;
    names.push_back(op.name);
  }
  app.add_option("--op", o.op, summary)->check(CLI::IsMember(names));
  app.add_option("--matrix", o.matrices, "FILE.mtx[.gz] or gen:NAME[:key=value...]; several are allowed (--list)")
      ->default_str("");
  app.add_option("--matrix-b", o.matrix_b,
                 "B of C = A B (spgemm), as --matrix; otherwise A, or A^T of a rectangular one");
  app.add_option("--precision", t.precisions, "fp64, fp32, tf32 (not spmv, spgemm), fp16, bf16; several with commas")
      ->delimiter(',')
      ->default_str("fp64");
  app.add_option("--y-type", t.y_type, "y (spmm: C, sddmm: P) of fp16 and bf16: float, or same as the operands")
      ->check(CLI::IsMember(Names{"float", "same"}));
  app.add_option("--offset-bits", o.offset_bits, "Width of CSR offsets: 32, 64 (FP64, FP32), or 0: by the entries")
      ->check(CLI::IsMember(std::vector<int>{0, 32, 64}));
  app.add_option("--block", o.block,
                 "Also multiply A in dense blocks of this side, zeros filled in, by bsr and the baselines that know "
                 "blocks; rows and columns must be multiples (spmv)")
      ->check(CLI::Range(1, 1024));
  app.add_option("--columns,--inner,--k", t.columns,
                 "Columns of B and C (spmm), of X and Y (sddmm: K), of Q, K, V and O (attention: d); several with "
                 "commas, each is measured")
      ->delimiter(',')
      ->default_str("32,64,128,256 (sddmm: 32,128; attention: 64), or those of --x");
  app.add_option("--heads", o.heads, "Heads of Q, K, V and O in one apply (attention)")->check(CLI::Range(1, 65535));
  app.add_flag("--backward", o.backward, "Measure the gradients dQ, dK and dV instead of O (attention)");
  app.add_option("--layout", t.layout, "Of B and C (spmm)")->check(CLI::IsMember(Names{"right", "left"}));
  app.add_option("--alpha", o.alpha, "See --op");
  app.add_option("--beta", o.beta, "See --op; not 0: y (C) starts with seeded values or those of --y");
  app.add_option("--seed", o.seed, "Seed of all values that no file gives");
}

void add_systems(CLI::App& app, BenchOptions& o, Texts& t) {
  app.add_option("--algorithm", o.algorithms, "all, or names: " + of_operations(&Operation::algorithms))
      ->delimiter(',');
  app.add_option("--backend", t.backend, "auto, kokkos, reference, emulated-nvidia, emulated-amd, cuda or hip");
  app.add_option("--baseline", o.baselines, "none, all, or names (--list)")->delimiter(',');
  app.add_option("--cusparse", o.cusparse,
                 "A libcusparse.so whose baselines are measured beside those of the linked one, with @ and its version "
                 "after their names (spmv)");
  app.add_option("--dasp", t.dasp,
                 "key=value,...: threshold, max_medium, min_pairs, sort=auto|window|global, entries_per_wave, "
                 "adaptive=0|1, bypass=auto|0|1 (spmv)")
      ->delimiter(',')
      ->default_str("");
  app.add_flag(
      "--ablation", o.ablation,
      "spmv: DASP with adaptive on and off times bypass on and off. spmm: flash with windows of 16 rows (16x1), "
      "direct mapping (direct) and padded blocks (sr) beside the published choice. sddmm: panels and bsmr with windows "
      "of one and two instructions, bsmr with other thresholds and rows in their own order");
  app.add_flag("--value-classes", o.value_classes,
               "Packed slices of a backend may store values in fewer bytes where that loses nothing (spmv). Off, so "
               "that figures stand for general values: generated ones have 8 significant bits, and fp64 would always "
               "be stored as float");
  app.add_option("--selection", t.selection, "How auto decides: predict, or measure the two best predictions")
      ->check(CLI::IsMember(Names{"predict", "measure"}));
  app.add_flag("--regret", o.regret,
               "Also measure auto, and print its time over that of the fastest other algorithm of the run");
}

void add_measuring(CLI::App& app, BenchOptions& o, Texts& t) {
  app.add_option("--repeat", o.repeat, "Batches of at least 0.3 ms a time is taken from")->check(CLI::Range(1, 100000));
  app.add_option("--budget", o.budget, "Seconds after which a case stops repeating")->check(CLI::PositiveNumber);
  app.add_flag("--cold", o.cold, "Also time single runs after the caches were overwritten");
  app.add_flag("--ceiling", o.ceiling, "Measure the streaming read rate first");
  app.add_option("--x", o.x,
                 "Matrix Market vector x (spmm: array B, sddmm: X; any number of columns) instead of seeded values");
  app.add_option(
      "--y", o.y,
      "Matrix Market vector y (spmm: array C) on entry, read if beta is not 0 (sddmm: array Y, always read)");
  app.add_option("--write-result", o.write_result, "Write y (spmm: C, sddmm: P); several results get suffixes");
  app.add_option(
      "--write-operands", o.write_operands,
      "Write A.mtx, x.mtx and y.mtx (spmm: B.mtx and C.mtx, sddmm: X.mtx and Y.mtx) into this folder; y and C "
      "if beta is not 0");
  app.add_option(
      "--features", o.features,
      "Add a line of JSON per product to this file: features, density images, and the time of each algorithm "
      "measured in turn (spgemm; instead of a table)");
  app.add_option("--json", o.json, "Write all records");
  app.add_option("--csv", o.csv, "Write all records, row classes apart");
  app.add_flag("--quiet", o.quiet, "Print failures only, and the summary of several matrices");
  app.add_flag("--verbose", o.verbose, "Also print why, minimum times and row classes");
  app.add_flag("--list", t.list, "List generators, backends and baselines");
}

/// Each once, in their order.
template <class T>
std::vector<T> distinct(const std::vector<T>& values) {
  std::vector<T> result;
  for (const T& v : values) {
    if (std::find(result.begin(), result.end(), v) == result.end()) result.push_back(v);
  }
  return result;
}

void interpret(const Texts& t, BenchOptions& o) {
  o.backend = parse_backend(t.backend);
  if (!t.precisions.empty()) o.precisions.clear();
  for (const std::string& name : t.precisions) o.precisions.push_back(parse_precision(name));
  o.precisions = distinct(o.precisions);
  o.y_as_operand = t.y_type == "same";
  o.layout_left = t.layout == "left";
  o.columns_given = !t.columns.empty();
  if (o.columns_given) o.columns = distinct(t.columns);
  if (t.selection == "measure") o.selection = Selection::Measure;
  for (const std::string& setting : t.dasp) set_dasp(o.dasp, setting);
}

}  // namespace

std::optional<BenchOptions> parse_command_line(int argc, char** argv) {
  BenchOptions o;
  Texts texts;
  CLI::App app(
      "Times Tessera's operations beside other libraries and verifies every result.\n"
      "Exit status: 0 all results verified, 1 failure at run time, 2 bad usage, 3 bad or unreadable input,\n"
      "4 a wrong result, 5 not supported or not built.",
      "tessera_bench");
  app.option_defaults()->always_capture_default();
  add_problem(app, o, texts);
  add_systems(app, o, texts);
  add_measuring(app, o, texts);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
      app.exit(e);
      return std::nullopt;
    }
    usage(e.what());
  }
  if (texts.list) {
    print_list();
    return std::nullopt;
  }
  try {
    const Operation& op = find_operation(o.op);
    interpret(texts, o);
    if (op.read == nullptr) check_taken(app, op);
    check(o, op);
  } catch (const InvalidArgument& e) {
    usage(e.what());
  }
  return o;
}

}  // namespace Bench
}  // namespace Tessera
