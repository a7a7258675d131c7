// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "driver/Tessera_BenchReport.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "driver/Tessera_BenchReportFiles.hpp"
#include "driver/Tessera_BenchSummary.hpp"
#include "driver/Tessera_BenchTimer.hpp"

namespace Tessera {
namespace Bench {
namespace {

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
  return format_number("%.0f", std::ceil(r.break_even_applies));
}

std::string shown_error(double e) { return e >= 1e-3 && e < 100 ? format_number("%.3f", e) : format_number("%.1e", e); }

}  // namespace

std::string format_number(const char* pattern, double value) {
  if (!std::isfinite(value)) return "-";
  char text[48];
  std::snprintf(text, sizeof(text), pattern, value);
  return text;
}

std::string format_seconds(double seconds) {
  if (!std::isfinite(seconds)) return "-";
  const bool micro = seconds < 1e-3, milli = seconds < 1;
  const double value = seconds * (micro ? 1e6 : milli ? 1e3 : 1);
  const char* pattern = value < 10 ? "%.3f" : value < 100 ? "%.2f" : value < 1000 ? "%.1f" : "%.0f";
  return format_number(pattern, value) + (micro ? " us" : milli ? " ms" : " s");
}

Report::Report(const BenchOptions& options, const BenchContext& context, bool columns)
    : options_(options), context_(context), columns_(columns), terminal_(isatty(STDERR_FILENO) == 1), begin_(now()) {
  if (options_.ablation && !columns_) label_width_ = 28;
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
  header_printed_ = cached_shown_ = smaller_shown_ = false;
  progress("read");
}

void Report::describe_matrix(std::int64_t rows, std::int64_t cols, std::int64_t nnz, bool seeded_values,
                             const std::string& pattern) {
  clear_progress();
  pattern_ = pattern;
  if (options_.quiet) return;
  std::printf("\n[%zu/%zu] %s: %lld x %lld, %lld entries (%.2f per row)%s%s%s\n", index_ + 1, options_.matrices.size(),
              matrix_.c_str(), static_cast<long long>(rows), static_cast<long long>(cols), static_cast<long long>(nnz),
              rows > 0 ? static_cast<double>(nnz) / static_cast<double>(rows) : 0.0,
              seeded_values ? ", seeded values" : "", pattern.empty() ? "" : ", ", pattern.c_str());
  std::fflush(stdout);
}

void Report::print_header() {
  std::printf("  %-*s %-15s %-5s", static_cast<int>(label_width_), "algorithm", "backend", "prec");
  if (columns_) std::printf(" %5s", "N");
  std::printf(" %-22s %10s", "kernel", "time");
  if (options_.cold) std::printf(" %10s", "cold");
  std::printf(" %8s %8s %8s %8s", "speedup", "GB/s", "CSR GB/s", "GFLOP/s");
  // The rows of B or Y that are fetched, to be compared with what `tessera_probe --only gather` gives.
  if (columns_) std::printf(" %8s", "gathered");
  // The compulsory bytes (A in CSR, B and C once) at the streaming read, over the time.
  if (context_.stream_gbytes_per_second > 0) std::printf(" %7s", "of roof");
  std::printf(" %7s %10s", "padding", "set-up");
  if (columns_) std::printf(" %8s", "applies");
  std::printf(" %10s %9s\n", "break-even", "err/bound");
  header_printed_ = true;
}

/// Over the fastest baseline on the same matrix in the same precision for the same N; baselines come first.
double Report::speedup(const Record& r) const {
  double best = Record::unknown;
  if (r.role != "tessera" || !r.counts()) return best;
  for (std::size_t i = first_of_matrix_; i < records_.size(); ++i) {
    const Record& other = records_[i];
    if (other.role != "baseline" || other.precision != r.precision || other.n != r.n || !other.counts()) continue;
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
  if (columns_) text(std::to_string(r.n), 5);
  text(r.kernel.substr(0, 22), -22);
  text(format_seconds(r.seconds_median), 10);
  if (options_.cold) text(format_seconds(r.seconds_cold_median), 10);
  text(format_number("%.3f", speedup(r)), 8);
  text(format_number("%.1f", r.gbytes_per_second()), 8);
  text(format_number("%.1f", r.csr_gbytes_per_second()), 8);
  text(format_number("%.2f", r.gflops), 8);
  if (columns_) text(format_number("%.1f", r.gather_gbytes_per_second()), 8);
  if (context_.stream_gbytes_per_second > 0) {
    // No share where the operands came from caches, or where the format holds less than CSR, which the share is of.
    const bool above = r.roof_share > 1, cached = above && r.gbytes_per_second() > context_.stream_gbytes_per_second;
    text(cached ? "cached" : above ? "smaller" : format_number("%.3f", r.roof_share), 7);
    cached_shown_ = cached_shown_ || cached;
    smaller_shown_ = smaller_shown_ || (above && !cached);
  }
  text(format_number("%.3f", r.padding_ratio), 7);
  text(format_seconds(r.setup_seconds), 10);
  if (columns_) text(format_number("%.1f", r.setup_applies()), 8);
  text(break_even(r), 10);
  text(shown_error(r.error_over_bound), 9);
  std::printf("%s%s\n", r.emulated ? " emulated" : "", r.verified ? "" : "  WRONG");
}

void Report::print_classes(const Record& r) const {
  // Formats of SpMM count windows and column vectors, the same for every N. Classes without rows are classes of slots,
  // of which padding makes more than there are entries.
  if (r.classes.empty() || (columns_ && r.n != options_.columns.front())) return;
  const auto share = [](long long part, std::int64_t whole) {
    return part == 0 || whole == 0
               ? std::string("-")
               : format_number("%.1f%%", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
  };
  std::printf("  %s %s %s:", r.label().c_str(), r.precision.c_str(),
              columns_ ? "format" : "classes (share of rows | of entries or stored slots)");
  const auto slots = static_cast<std::int64_t>(static_cast<double>(r.nnz) * (1 + r.padding_ratio) + 0.5);
  for (const ClassShare& c : r.classes) {
    if (c.rows == 0 && c.nnz == 0) continue;
    if (columns_) {
      std::printf("  %s %lld", c.name.c_str(), c.rows);
      continue;
    }
    std::printf("  %s %s | %s", c.name.c_str(), share(c.rows, r.rows).c_str(),
                share(c.nnz, c.rows == 0 ? slots : r.nnz).c_str());
  }
  std::printf("\n");
}

void Report::add(Record record) {
  clear_progress();
  record.pattern = pattern_;
  if (context_.stream_gbytes_per_second > 0) {
    record.roof_share = record.csr_gbytes_per_second() / context_.stream_gbytes_per_second;
  }
  if (!record.verified) {
    const Exit status = ExitWrongResult;
    if (severity(status) > severity(status_)) status_ = status;
    const std::string columns = columns_ ? " N=" + std::to_string(record.n) : std::string();
    std::fprintf(stderr, "tessera_bench: WRONG RESULT: %s %s%s on %s: %s\n", record.label().c_str(),
                 record.precision.c_str(), columns.c_str(), record.matrix.c_str(), record.fault.c_str());
  }
  if (!options_.quiet) {
    print_row(record);
    if (record.chosen_by_auto() && !options_.verbose) std::printf("      %s\n", record.why.c_str());
    if (options_.verbose) {
      std::printf("      %s; minimum %s of %d x %d runs, update %s", record.why.c_str(),
                  format_seconds(record.seconds_min).c_str(), record.samples, record.runs_per_sample,
                  format_seconds(record.update_seconds).c_str());
      if (columns_) {
        std::printf("; format %s MB, %s matrix instructions", format_number("%.3f", 1e-6 * record.format_bytes).c_str(),
                    format_number("%.0f", record.matrix_instructions).c_str());
      }
      std::printf("\n");
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
  if (cached_shown_)
    std::printf("  cached: faster than main memory can be read, so part of the operands stay in caches\n");
  if (smaller_shown_) std::printf("  smaller: faster than CSR can be read, by a format that is smaller than CSR\n");
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

void Report::print_summary() const {
  const std::size_t wrong = static_cast<std::size_t>(
      std::count_if(records_.begin(), records_.end(), [](const Record& r) { return !r.verified; }));
  print_comparisons(records_, label_width_, options_.cold);
  print_auto(records_, context_.stream_gbytes_per_second);
  if (options_.regret) print_regrets(records_);
  std::printf("\n%zu result%s, %zu verified, %zu wrong, %.1f s\n", records_.size(), records_.size() == 1 ? "" : "s",
              records_.size() - wrong, wrong, now() - begin_);
}

Exit Report::finish() {
  clear_progress();
  const bool table = options_.features.empty();
  if (table && (!options_.quiet || options_.matrices.size() > 1)) print_summary();
  // Once more: a matrix that ended early has not been written.
  write_files();
  if (table && records_.empty() && status_ == ExitVerified) status_ = ExitNotSupported;
  std::fflush(stdout);
  return status_;
}

}  // namespace Bench
}  // namespace Tessera
