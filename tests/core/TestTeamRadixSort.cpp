// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// The sort of a Kokkos team against std::stable_sort: by some bits of a key, keys with equal bits in their order.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "Tessera_Compat.hpp"
#include "core/Tessera_TeamRadixSort.hpp"
#include "support/Tessera_TestCheck.hpp"

namespace Tessera {
namespace Testing {

using Exec = Kokkos::DefaultExecutionSpace;
using Keys = Kokkos::View<std::uint32_t*, Exec>;
constexpr int scratch_level = Compat::large_scratch_level<Exec>;

struct SortOnce {
  using Words = Kokkos::View<std::uint32_t*, Exec::scratch_memory_space, Kokkos::MemoryUnmanaged>;
  using Sort = Impl::TeamRadixSort<Words>;
  Keys keys;
  int low, high;

  KOKKOS_INLINE_FUNCTION void operator()(const Kokkos::TeamPolicy<Exec>::member_type& team) const {
    const int count = static_cast<int>(keys.extent(0));
    const int level = scratch_level;  // a reference to a constant of the host would not do on a device
    Words words(team.team_scratch(level), Sort::words(count));
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, count), [&](const int i) { words(i) = keys(i); });
    team.team_barrier();
    const int begin = Sort(words, count).run(team, low, high);
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, count), [&](const int i) { keys(i) = words(begin + i); });
  }
};

void expect_sorted(const std::vector<std::uint32_t>& keys, int low, int high) {
  const auto bits = [=](std::uint32_t key) { return key >> low & ((1u << (high - low)) - 1); };
  auto expected = keys;
  std::stable_sort(expected.begin(), expected.end(),
                   [=](std::uint32_t a, std::uint32_t b) { return bits(a) < bits(b); });
  const auto bytes = SortOnce::Words::shmem_size(SortOnce::Sort::words(static_cast<int>(keys.size())));
  for (const int threads : {128, 512}) {  // of many keys and few threads devices sort fewer bits at a time
    const Keys device("keys", keys.size());
    Kokkos::deep_copy(device, Kokkos::View<const std::uint32_t*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>(
                                  keys.data(), keys.size()));
    Kokkos::TeamPolicy<Exec> policy(Exec(), 1, Compat::team_size<Exec>(threads));
    policy.set_scratch_size(scratch_level, Kokkos::PerTeam(bytes));
    Kokkos::parallel_for("sort", policy, SortOnce{device, low, high});
    EXPECT_EQ(to_host(device), expected) << keys.size() << " keys, bits " << low << " to " << high;
  }
}

TEST(TeamRadixSort, AsStdStableSort) {
  std::mt19937 random(1);
  for (const std::size_t count : {32u, 256u, 1024u, 4096u}) {
    std::vector<std::uint32_t> keys(count);
    for (std::size_t i = 0; i < count; ++i) keys[i] = static_cast<std::uint32_t>(random() << 12 | i);
    expect_sorted(keys, 12, 24);  // three passes
    expect_sorted(keys, 12, 20);  // two
    for (auto& key : keys) key &= 0x70fffu;
    expect_sorted(keys, 12, 24);  // few different keys; most digits are the same in all
    std::reverse(keys.begin(), keys.end());
    expect_sorted(keys, 12, 24);
    expect_sorted(std::vector<std::uint32_t>(count, 7), 0, 12);
  }
}

}  // namespace Testing
}  // namespace Tessera
