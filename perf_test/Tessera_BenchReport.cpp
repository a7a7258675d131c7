// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "Tessera_BenchReport.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "Tessera_BenchReportFiles.hpp"
#include "Tessera_BenchTimer.hpp"

namespace Tessera {
namespace Bench {
namespace {

std::string format(const char* pattern, double value) {
  if (!std::isfinite(value)) return "-";
  char text[48];
  std::snprintf(text, sizeof(text), pattern, value);
  return text;
}

/// Serious first: a wrong result must not hide behind a missing file.
int severity(Exit status) {
  switch (status) {
    case ExitVerified:
      return 0;
    case ExitNotSupported:
      return 1;
    case ExitFailure:
      return 2;
    case ExitInput:
      return 3;
    case ExitUsage:
      return 4;
    case ExitWrongResult:
      return 5;
  }
  return 5;
}

std::string break_even(const Record& r) {
  if (r.role != "tessera" || r.break_even_against.empty() || r.emulated) return "-";
  if (std::isinf(r.break_even_applies)) return "never";
  return format("%.0f", std::ceil(r.break_even_applies));
}

std::string shown_error(double e) { return e >= 1e-3 && e < 100 ? format("%.3f", e) : format("%.1e", e); }

bool counts(const Record& r) { return r.verified && !r.emulated && r.seconds_median > 0; }

}  // namespace

std::string format_seconds(double seconds) {
  if (!std::isfinite(seconds)) return "-";
  const bool micro = seconds < 1e-3, milli = seconds < 1;
  const double value = seconds * (micro ? 1e6 : milli ? 1e3 : 1);
  const char* pattern = value < 10 ? "%.3f" : value < 100 ? "%.2f" : value < 1000 ? "%.1f" : "%.0f";
  return format(pattern, value) + (micro ? " us" : milli ? " ms" : " s");
}

Report::Report(const BenchOptions& options, const BenchContext& context)
    : options_(options), context_(context), terminal_(isatty(STDERR_FILENO) == 1), begin_(now()) {
  if (options_.ablation) label_width_ = 28;
  if (options_.quiet) return;
  std::printf("tessera_bench --op %s: %s\n%s, Tessera %s, Kokkos %s, %s\n", options_.op.c_str(),
              context_.device.c_str(), context_.execution_space.c_str(), context_.tessera.c_str(),
              context_.kokkos.c_str(), context_.compiler.c_str());
  if (context_.stream_gbytes_per_second > 0) {
    std::printf("streaming read: %.1f GB/s\n", context_.stream_gbytes_per_second);
  }
  std::fflush(stdout);
}

void Report::clear_progress() {
  if (progress_shown_) std::fprintf(stderr, "\r\033[K");
  progress_shown_ = false;
}

void Report::progress(const std::string& what) {
  if (!terminal_) return;
  clear_progress();
  std::fprintf(stderr, "[%zu/%zu, %.0f s] %s: %s ...", index_ + 1, options_.matrices.size(), now() - begin_,
               matrix_.c_str(), what.c_str());
  std::fflush(stderr);
  progress_shown_ = true;
}

void Report::start_matrix(const std::string& name, std::size_t index) {
  matrix_ = name;
  index_ = index;
  first_of_matrix_ = records_.size();
  header_printed_ = false;
  progress("read");
}

void Report::describe_matrix(std::int64_t rows, std::int64_t cols, std::int64_t nnz, bool seeded_values) {
  clear_progress();
  if (options_.quiet) return;
  std::printf("\n[%zu/%zu] %s: %lld x %lld, %lld entries (%.2f a row)%s\n", index_ + 1, options_.matrices.size(),
              matrix_.c_str(), static_cast<long long>(rows), static_cast<long long>(cols), static_cast<long long>(nnz),
              rows > 0 ? static_cast<double>(nnz) / static_cast<double>(rows) : 0.0,
              seeded_values ? ", seeded values" : "");
  std::fflush(stdout);
}

void Report::print_header() {
  std::printf("  %-*s %-15s %-5s %-22s %10s", static_cast<int>(label_width_), "algorithm", "backend", "prec", "kernel",
              "time");
  if (options_.cold) std::printf(" %10s", "cold");
  std::printf(" %8s %8s %8s %8s %7s %10s %10s %9s\n", "speedup", "GB/s", "CSR GB/s", "GFLOP/s", "padding", "set-up",
              "break-even", "err/bound");
  header_printed_ = true;
}

/// Over the fastest baseline on the same matrix in the same precision; baselines come first.
double Report::speedup(const Record& r) const {
  double best = Record::unknown;
  if (r.role != "tessera" || !counts(r)) return best;
  for (std::size_t i = first_of_matrix_; i < records_.size(); ++i) {
    const Record& other = records_[i];
    if (other.role != "baseline" || other.precision != r.precision || !counts(other)) continue;
    best = std::fmin(best, other.seconds_median);
  }
  return best / r.seconds_median;
}

void Report::print_row(const Record& r) {
  if (!header_printed_) print_header();
  const auto text = [](const std::string& s, int width) { std::printf(" %*s", width, s.c_str()); };
  std::printf("  %-*s", static_cast<int>(label_width_), r.label().c_str());
  text(r.backend, -15);
  text(r.precision, -5);
  text(r.kernel.substr(0, 22), -22);
  text(format_seconds(r.seconds_median), 10);
  if (options_.cold) text(format_seconds(r.seconds_cold_median), 10);
  text(format("%.3f", speedup(r)), 8);
  text(format("%.1f", r.gbytes_per_second()), 8);
  text(format("%.1f", r.csr_gbytes_per_second()), 8);
  text(format("%.2f", r.gflops), 8);
  text(format("%.3f", r.padding_ratio), 7);
  text(format_seconds(r.setup_seconds), 10);
  text(break_even(r), 10);
  text(shown_error(r.error_over_bound), 9);
  std::printf("%s%s\n", r.emulated ? " emulated" : "", r.verified ? "" : "  WRONG");
}

void Report::print_classes(const Record& r) const {
  if (r.classes.empty()) return;
  std::printf("  %s %s row classes (share of rows | of entries):", r.label().c_str(), r.precision.c_str());
  for (const ClassShare& c : r.classes) {
    if (c.rows == 0) continue;
    std::printf("  %s %.1f%% | %.1f%%", c.name.c_str(),
                100.0 * static_cast<double>(c.rows) / static_cast<double>(r.rows),
                r.nnz > 0 ? 100.0 * static_cast<double>(c.nnz) / static_cast<double>(r.nnz) : 0.0);
  }
  std::printf("\n");
}

void Report::add(Record record) {
  clear_progress();
  if (!record.verified) {
    const Exit status = ExitWrongResult;
    if (severity(status) > severity(status_)) status_ = status;
    std::fprintf(stderr, "tessera_bench: WRONG RESULT: %s %s on %s: %s\n", record.label().c_str(),
                 record.precision.c_str(), record.matrix.c_str(), record.fault.c_str());
  }
  if (!options_.quiet) {
    print_row(record);
    if (options_.verbose) {
      std::printf("      %s; minimum %s of %d x %d runs, update %s\n", record.why.c_str(),
                  format_seconds(record.seconds_min).c_str(), record.samples, record.runs_per_sample,
                  format_seconds(record.update_seconds).c_str());
    }
    std::fflush(stdout);
  }
  records_.push_back(std::move(record));
}

void Report::note(const std::string& text, Exit status) {
  clear_progress();
  if (severity(status) > severity(status_)) status_ = status;
  if (status != ExitVerified) {
    std::fprintf(stderr, "tessera_bench: %s\n", text.c_str());
  } else if (!options_.quiet) {
    std::printf("  note: %s\n", text.c_str());
  }
}

void Report::end_matrix() {
  clear_progress();
  if (!options_.quiet && (options_.matrices.size() == 1 || options_.verbose)) {
    for (std::size_t i = first_of_matrix_; i < records_.size(); ++i) print_classes(records_[i]);
  }
  std::fflush(stdout);
  write_files();
}

void Report::write_files() const {
  try {
    if (!options_.json.empty()) write_json(options_.json, context_, options_, records_);
    if (!options_.csv.empty()) write_csv(options_.csv, records_);
  } catch (const std::exception& e) {
    throw BenchError(ExitInput, e.what());
  }
}

std::vector<Comparison> compare(const std::vector<Record>& records) {
  const std::string best_baseline = "best baseline";
  // Best time of each system on each matrix and precision; "cusparse" stands for the best of its algorithms.
  struct Times {
    double warm, cold;
  };
  std::map<std::pair<std::string, std::string>, std::map<std::string, Times>> cases;
  std::vector<std::pair<std::string, std::string>> tessera, baselines;  // precision, label, in the order of appearance
  const auto remember = [](auto& list, const std::string& precision, const std::string& label) {
    const auto entry = std::make_pair(precision, label);
    if (std::find(list.begin(), list.end(), entry) == list.end()) list.push_back(entry);
  };
  for (const Record& r : records) {
    if (!counts(r)) continue;
    const bool cusparse = r.algorithm.rfind("cusparse", 0) == 0;
    const std::string label = cusparse ? "cusparse" : r.label();
    const auto keep_best = [&](const std::string& name) {
      const auto [at, fresh] = cases[{r.precision, r.matrix}].insert({name, {r.seconds_median, r.seconds_cold_median}});
      if (fresh) return;
      at->second.warm = std::fmin(at->second.warm, r.seconds_median);
      at->second.cold = std::fmin(at->second.cold, r.seconds_cold_median);
    };
    keep_best(label);
    if (r.role == "baseline") keep_best(best_baseline);
    if (r.role == "tessera") remember(tessera, r.precision, label);
    if (r.role != "tessera" || label == "csr") remember(baselines, r.precision, label);
  }
  for (const auto& own : tessera) {
    const auto foreign = std::count_if(baselines.begin(), baselines.end(),
                                       [&](const auto& b) { return b.first == own.first && b.second != "csr"; });
    if (foreign > 1) remember(baselines, own.first, best_baseline);
  }
  std::vector<Comparison> result;
  for (const auto& own : tessera) {
    for (const auto& other : baselines) {
      if (own.first != other.first || own.second == other.second) continue;
      Comparison c{own.first, own.second, other.second};
      double sum = 0, cold_sum = 0;
      for (const auto& one : cases) {
        if (one.first.first != own.first) continue;
        const auto a = one.second.find(own.second), b = one.second.find(other.second);
        if (a == one.second.end() || b == one.second.end()) continue;
        sum += std::log(b->second.warm / a->second.warm);
        cold_sum += std::log(b->second.cold / a->second.cold);
        c.wins += a->second.warm < b->second.warm;
        ++c.matrices;
      }
      if (c.matrices == 0) continue;
      c.geometric_mean = std::exp(sum / c.matrices);
      c.cold_geometric_mean = std::exp(cold_sum / c.matrices);
      result.push_back(c);
    }
  }
  return result;
}

void Report::print_summary() const {
  const std::vector<Comparison> comparisons = compare(records_);
  const std::size_t wrong = static_cast<std::size_t>(
      std::count_if(records_.begin(), records_.end(), [](const Record& r) { return !r.verified; }));
  const bool emulated = std::any_of(records_.begin(), records_.end(), [](const Record& r) { return r.emulated; });
  if (!comparisons.empty()) {
    std::printf("\nspeedup (time of the second over time of the first, geometric mean)%s\n",
                emulated ? "; emulated rows left out" : "");
    std::printf("  %-*s %-22s %-5s %8s", static_cast<int>(label_width_), "algorithm", "against", "prec", "speedup");
    if (options_.cold) std::printf(" %8s", "cold");
    std::printf(" %12s\n", "wins");
    for (const Comparison& c : comparisons) {
      std::printf("  %-*s %-22s %-5s %8s", static_cast<int>(label_width_), c.label.c_str(), c.against.c_str(),
                  c.precision.c_str(), format("%.3f", c.geometric_mean).c_str());
      if (options_.cold) std::printf(" %8s", format("%.3f", c.cold_geometric_mean).c_str());
      std::printf(" %12s\n", (std::to_string(c.wins) + " of " + std::to_string(c.matrices)).c_str());
    }
  }
  std::printf("\n%zu result%s, %zu verified, %zu wrong, %.1f s\n", records_.size(), records_.size() == 1 ? "" : "s",
              records_.size() - wrong, wrong, now() - begin_);
}

Exit Report::finish() {
  clear_progress();
  if (!options_.quiet || options_.matrices.size() > 1) print_summary();
  // Once more: a matrix that ended early has not been written.
  write_files();
  if (records_.empty() && status_ == ExitVerified) status_ = ExitNotSupported;
  std::fflush(stdout);
  return status_;
}

}  // namespace Bench
}  // namespace Tessera
