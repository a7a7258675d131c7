// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// How often the benchmark repeats work that the host waits for.

#include <gtest/gtest.h>

#include "driver/Tessera_BenchTimer.hpp"

namespace {

using namespace Tessera::Bench;

struct Counts {
  int prepared = 0, run = 0;
};

Timing repeat(Counts& counts, double long_enough) {
  Timer<Kokkos::DefaultExecutionSpace> timer(Kokkos::DefaultExecutionSpace{}, 20, 60);
  return timer.blocking(
      3, [&] { ++counts.prepared; }, [&] { ++counts.run; }, long_enough);
}

TEST(BenchTimer, DoesNotCountTheFirstRun) {
  Counts counts;
  const Timing t = repeat(counts, 60);
  EXPECT_EQ(counts.run, 4);
  EXPECT_EQ(counts.prepared, 4);
  EXPECT_EQ(t.samples, 3);
}

TEST(BenchTimer, RepeatsNothingThatTakesLongEnough) {
  Counts counts;
  const Timing t = repeat(counts, -1);
  EXPECT_EQ(counts.run, 1);
  EXPECT_EQ(counts.prepared, 1);
  EXPECT_EQ(t.samples, 1);
  EXPECT_GE(t.median, 0);
}

}  // namespace
