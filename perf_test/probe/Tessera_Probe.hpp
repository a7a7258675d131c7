// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_PROBE_HPP
#define TESSERA_PROBE_HPP

#include <cstdint>
#include <cstdio>
#include <exception>
#include <limits>
#include <string>
#include <vector>

#include "Tessera_Compat.hpp"
#include "driver/Tessera_BenchContext.hpp"
#include "driver/Tessera_BenchTimer.hpp"

/// \file
/// tessera_probe measures what a machine can do at most of what sparse products do: read streams, gather, launch,
/// multiply on matrix units, read shared memory. Everything runs on Kokkos' default execution space; warm, that is with
/// caches as the run before left them.

namespace Tessera {
namespace Bench {

using ProbeSpace = Kokkos::DefaultExecutionSpace;

struct ProbeOptions {
  bool quick = false;  ///< few and small sizes: shows that everything runs, says little about a device
  std::vector<std::string> only;
  int repeat = 10;
  double budget = 0.5;                                ///< seconds a figure
  std::int64_t max_bytes = std::int64_t(2048) << 20;  ///< of a working set
  std::string json;
};

/// One figure. NaN: does not apply; null in JSON.
struct Ceiling {
  static constexpr double none = std::numeric_limits<double>::quiet_NaN();

  std::string group, name;
  double working_set = none;  ///< bytes
  Timing time;                ///< of one run
  double operations = none;   ///< reads, entries, launches or instructions per run
  double bytes = none;        ///< moved by a run
  double flop = none;         ///< done by a run
  std::string unavailable;    ///< why there is no figure; empty if there is one

  double operations_per_second() const { return operations / time.median; }
  double bytes_per_second() const { return bytes / time.median; }
  double flop_per_second() const { return flop / time.median; }
};

/// All figures of a run.
class Sheet {
 public:
  Sheet(const ProbeOptions& options, const BenchContext& context);

  void add(Ceiling ceiling) { all_.push_back(std::move(ceiling)); }
  /// A figure that this machine or build cannot give.
  void add_unavailable(const std::string& group, const std::string& name, const std::string& why);

  /// A table of a group: a line a name, a column a working set, each cell `scale` times `value`.
  void print_by_working_set(const std::string& group, const std::string& title, double (Ceiling::*value)() const,
                            double scale) const;
  /// A line a figure: time, operations, flop.
  void print_list(const std::string& group, const std::string& title) const;
  /// @throw std::runtime_error  the file cannot be written
  void write_json() const;

 private:
  ProbeOptions options_;
  BenchContext context_;
  std::vector<Ceiling> all_;
};

/// "32 KiB"
std::string format_bytes(double bytes);

/// What the probes share.
struct Probe {
  const ProbeOptions& options;
  Sheet& sheet;
  ProbeSpace space;

  Timer<ProbeSpace> timer() const { return {space, options.repeat, options.budget}; }
};

void probe_streams(const Probe& probe);
void probe_gathers(const Probe& probe);
void probe_launches(const Probe& probe);
void probe_matrix_units(const Probe& probe);
void probe_shared_memory(const Probe& probe);

/// Sixteen bytes, the widest load of a lane.
struct alignas(16) ProbeWord {
  std::uint64_t low, high;
};
using ProbeWords = Kokkos::View<ProbeWord*, ProbeSpace::memory_space>;

/// Numbers that are neither equal nor compressible.
struct FillWords {
  ProbeWords words;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
    const auto u = static_cast<std::uint64_t>(i);
    words(i) = {(u + 1) * 0x9E3779B97F4A7C15ull, (u + 1) * 0xD1B54A32D192ED03ull};
  }
};
using ProbePolicy = Kokkos::RangePolicy<ProbeSpace, Kokkos::IndexType<std::int64_t>>;

/// Allocates and fills; says so and halves the size while there is not enough memory.
inline ProbeWords allocate_words(const ProbeSpace& space, std::int64_t bytes) {
  for (;; bytes /= 2) {
    try {
      auto words = Compat::allocate<ProbeWords>(space, "Tessera::probe::words", static_cast<std::size_t>(bytes / 16));
      Kokkos::parallel_for("Tessera::probe fill", ProbePolicy(space, 0, bytes / 16), FillWords{words});
      Compat::fence(space, "Tessera::probe fill");
      return words;
    } catch (const std::exception&) {
      if (bytes < (1 << 20)) throw;
      std::printf("no memory for working sets of %s\n", format_bytes(static_cast<double>(bytes)).c_str());
    }
  }
}

/// Threads that can be resident at once.
inline std::int64_t resident_threads(const ProbeSpace& space) {
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(space.concurrency()));
}
/// Who shares the work of a kernel: every thread of a host; on a device some rounds of them, so that neither a kernel
/// that needs more registers nor the end of the last round counts much.
inline std::int64_t probe_workers(const ProbeSpace& space) {
  return resident_threads(space) * (Compat::is_host_v<ProbeSpace> ? 1 : 4);
}

}  // namespace Bench
}  // namespace Tessera

#endif
