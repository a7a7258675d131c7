// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BENCH_TIMER_HPP
#define TESSERA_BENCH_TIMER_HPP

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "Tessera_Compat.hpp"
#include "Tessera_Config.hpp"
#include "Tessera_Error.hpp"

#if defined(TESSERA_HAVE_CUDA)
#include <cuda_runtime_api.h>
#endif

/// \file
/// Time of work enqueued on an execution space. Warm: batches of at least 0.3 ms of the same operation, back to back,
/// so that neither the clock nor a wait is part of a figure. Cold: single runs after the caches were overwritten; they
/// include the gap between two events, 2 to 4 us on a GPU.

namespace Tessera {
namespace Bench {

struct Timing {
  double median = std::numeric_limits<double>::quiet_NaN();
  double minimum = std::numeric_limits<double>::quiet_NaN();
  int samples = 0;
  int runs_per_sample = 1;
};

inline double median_of(std::vector<double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Host clock around fences: what hosts have, and devices without event support here.
template <class Exec>
class FenceClock {
 public:
  explicit FenceClock(const Exec& space) : space_(space) {}
  void start() {
    Compat::fence(space_, "Tessera::bench");
    begin_ = now();
  }
  double stop() {
    Compat::fence(space_, "Tessera::bench");
    return now() - begin_;
  }

 private:
  Exec space_;
  double begin_ = 0;
};

#if defined(TESSERA_HAVE_CUDA)
/// Events in the stream: the host's launches and waits are not measured.
template <class Exec>
class EventClock {
 public:
  explicit EventClock(const Exec& space) : stream_(static_cast<cudaStream_t>(Compat::native_stream(space))) {
    check(cudaEventCreate(&begin_));
    check(cudaEventCreate(&end_));
  }
  ~EventClock() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  EventClock(const EventClock&) = delete;
  EventClock& operator=(const EventClock&) = delete;
  void start() { check(cudaEventRecord(begin_, stream_)); }
  double stop() {
    check(cudaEventRecord(end_, stream_));
    check(cudaEventSynchronize(end_));
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin_, end_));
    return 1e-3 * static_cast<double>(milliseconds);
  }

 private:
  static void check(cudaError_t status) {
    if (status != cudaSuccess) throw DeviceError(std::string("timing: ") + cudaGetErrorString(status));
  }
  cudaStream_t stream_;
  cudaEvent_t begin_{}, end_{};
};

template <class Exec>
using Clock = std::conditional_t<Compat::is_cuda_v<Exec>, EventClock<Exec>, FenceClock<Exec>>;
#else
template <class Exec>
using Clock = FenceClock<Exec>;
#endif

template <class Exec>
class Timer {
 public:
  /// @param repeat  samples wanted
  /// @param budget  seconds after which a case ends with what it has, three samples if it must
  Timer(const Exec& space, int repeat, double budget)
      : space_(space), clock_(space), repeat_(repeat), budget_(budget) {}

  template <class F>
  Timing warm(const F& run) {
    const double begin = now();
    int runs = 0;
    for (; runs < 5 && (runs == 0 || now() - begin < budget_ / 4); ++runs) run();
    Compat::fence(space_, "Tessera::bench warm-up");
    Timing t;
    // Doubles the batch until it lasts.
    constexpr double shortest_batch = 3e-4;
    for (;;) {
      const double seconds = batch(run, t.runs_per_sample);
      if (seconds >= shortest_batch || t.runs_per_sample >= 1 << 16) break;
      const double wanted = 1.1 * shortest_batch / std::max(seconds, 1e-9);
      t.runs_per_sample = static_cast<int>(std::ceil(t.runs_per_sample * std::min(std::max(wanted, 1.5), 64.0)));
    }
    std::vector<double> samples;
    while (wants_more(samples, begin)) samples.push_back(batch(run, t.runs_per_sample) / t.runs_per_sample);
    return finish(t, samples);
  }

  /// Every sample is one run after `cache` was overwritten.
  template <class F>
  Timing cold(const F& run) {
    overwrite_cache();
    run();
    Compat::fence(space_, "Tessera::bench warm-up");
    const double begin = now();
    std::vector<double> samples;
    while (wants_more(samples, begin)) {
      overwrite_cache();
      clock_.start();
      run();
      samples.push_back(clock_.stop());
    }
    return finish(Timing{}, samples);
  }

  /// Host time of `run` and the wait for its work: `wanted` samples after one that is not counted. `prepare` runs
  /// before each, unmeasured.
  /// @param long_enough  seconds; if the first run takes more, it is the only one and counts
  template <class F, class P>
  Timing blocking(int wanted, const P& prepare, const F& run,
                  double long_enough = std::numeric_limits<double>::infinity()) {
    const double begin = now();
    std::vector<double> samples;
    for (int i = 0; i <= wanted; ++i) {
      prepare();
      Compat::fence(space_, "Tessera::bench");
      const double start = now();
      run();
      Compat::fence(space_, "Tessera::bench");
      const double seconds = now() - start;
      const bool enough = i == 0 && seconds > long_enough;
      if (i > 0 || enough) samples.push_back(seconds);
      if (enough || (!samples.empty() && now() - begin > budget_)) break;
    }
    return finish(Timing{}, samples);
  }

 private:
  template <class F>
  double batch(const F& run, int runs) {
    clock_.start();
    for (int i = 0; i < runs; ++i) run();
    return clock_.stop();
  }
  bool wants_more(const std::vector<double>& samples, double begin) const {
    const int have = static_cast<int>(samples.size());
    return have < std::min(3, repeat_) || (have < repeat_ && now() - begin < budget_);
  }
  static Timing finish(Timing t, const std::vector<double>& samples) {
    t.samples = static_cast<int>(samples.size());
    t.median = median_of(samples);
    if (!samples.empty()) t.minimum = *std::min_element(samples.begin(), samples.end());
    return t;
  }
  void overwrite_cache() {
    // Several times the last-level cache of today's devices; hosts have less bandwidth to spend on it.
    constexpr std::size_t bytes = std::size_t(Compat::is_host_v<Exec> ? 96 : 256) << 20;
    if (cache_.extent(0) == 0) cache_ = Buffer("Tessera::bench::cache", bytes / sizeof(double));
    Kokkos::deep_copy(space_, cache_, fill_ += 1.0);
  }

  using Buffer = Kokkos::View<double*, typename Exec::memory_space>;
  Exec space_;
  Clock<Exec> clock_;
  int repeat_;
  double budget_;
  Buffer cache_;
  double fill_ = 0;
};

}  // namespace Bench
}  // namespace Tessera

#endif
