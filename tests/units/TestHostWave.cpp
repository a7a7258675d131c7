// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include <gtest/gtest.h>

#include <random>
#include <type_traits>
#include <vector>

#include "backends/units/Tessera_Wave.hpp"

namespace Tessera {
namespace {

template <class Lanes>
class HostWaveTest : public testing::Test {
 public:
  using Wave = HostWave<Lanes::value>;
};
using Widths = testing::Types<std::integral_constant<int, 32>, std::integral_constant<int, 64>>;
TYPED_TEST_SUITE(HostWaveTest, Widths);

TYPED_TEST(HostWaveTest, EachVisitsEveryLaneOnceInOrder) {
  const typename TestFixture::Wave wave;
  std::vector<int> visited, wanted;
  wave.each([&](int lane) { visited.push_back(lane); });
  for (int lane = 0; lane < TypeParam::value; ++lane) wanted.push_back(lane);
  EXPECT_EQ(visited, wanted);
}

TYPED_TEST(HostWaveTest, StopsAtAccessesThatADeviceWouldNotDo) {
  using Wave = typename TestFixture::Wave;
  alignas(16) char memory[64] = {};
  alignas(16) char own[16] = {};
  std::uint32_t words[4];
  const auto at = [&](int byte) { return reinterpret_cast<const Word*>(memory + byte); };
  EXPECT_EQ(Wave::load_written(at(16)).w[3], 0u);
  EXPECT_DEATH(Wave::load_written(at(8)), "16 bytes");
  EXPECT_DEATH(Wave::template load<false>(at(4)), "16 bytes");
  Wave::template load_if<false, 8>(memory + 8, true, 0, words);
  Wave::template load_if<false, 8>(memory + 4, false, 0, words);  // no access, as on devices
  EXPECT_DEATH((Wave::template load_if<false, 8>(memory + 4, true, 0, words)), "8 bytes");
  EXPECT_DEATH(Wave::gather_if(reinterpret_cast<const double*>(memory + 4), true), "8 bytes");
  EXPECT_DEATH(Wave::template copy_async<true>(own, memory + 8, true), "16 bytes");
  EXPECT_DEATH(Wave::template copy_async<true>(own + 8, memory, false), "16 bytes");
  EXPECT_DEATH(Wave::template load_staged<4>(memory + 2, words), "4 bytes");
}

TYPED_TEST(HostWaveTest, ShuffleReadsTheSourceLane) {
  using Wave = typename TestFixture::Wave;
  constexpr int lanes = Wave::lanes;
  const Wave wave;
  typename Wave::template Varying<int> in, out;
  wave.each([&](int lane) { in(lane) = 100 + lane; });
  wave.shuffle(out, in, [](int lane) { return (3 * lane + 1) % lanes; });
  wave.each([&](int lane) { EXPECT_EQ(out(lane), 100 + (3 * lane + 1) % lanes); });
  wave.shuffle(out, in, [](int) { return lanes - 1; });
  wave.each([&](int lane) { EXPECT_EQ(out(lane), 100 + lanes - 1); });
}

TYPED_TEST(HostWaveTest, ShuffleOntoItself) {
  using Wave = typename TestFixture::Wave;
  constexpr int lanes = Wave::lanes;
  const Wave wave;
  typename Wave::template Varying<int> v;
  wave.each([&](int lane) { v(lane) = lane; });
  wave.shuffle(v, v, [](int lane) { return (lane + lanes - 1) % lanes; });
  wave.each([&](int lane) { EXPECT_EQ(v(lane), (lane + lanes - 1) % lanes); });
}

TYPED_TEST(HostWaveTest, BallotHasOneBitALane) {
  using Wave = typename TestFixture::Wave;
  const Wave wave;
  typename Wave::template Varying<bool> flag;
  for (int set = 0; set < Wave::lanes; ++set) {
    wave.each([&](int lane) { flag(lane) = lane == set; });
    EXPECT_EQ(wave.ballot(flag), typename Wave::Mask{1} << set);
  }
  wave.each([&](int lane) { flag(lane) = true; });
  EXPECT_EQ(wave.ballot(flag), ~typename Wave::Mask{0} >> (64 - Wave::lanes));
  wave.each([&](int lane) { flag(lane) = false; });
  EXPECT_EQ(wave.ballot(flag), 0u);
}

TYPED_TEST(HostWaveTest, RankAndCountAgainstLoops) {
  using Wave = typename TestFixture::Wave;
  std::mt19937_64 engine(3);
  for (int trial = 0; trial < 50; ++trial) {
    const typename Wave::Mask mask =
        trial == 0 ? ~typename Wave::Mask{0} >> (64 - Wave::lanes) : engine() >> (64 - Wave::lanes);
    int below = 0;
    for (int lane = 0; lane < Wave::lanes; ++lane) {
      ASSERT_EQ(Wave::rank(mask, lane), below) << mask << " lane " << lane;
      below += static_cast<int>((mask >> lane) & 1u);
    }
    ASSERT_EQ(Wave::count(mask), below);
  }
}

TYPED_TEST(HostWaveTest, SumOfIntegersIsExact) {
  using Wave = typename TestFixture::Wave;
  const Wave wave;
  typename Wave::template Varying<long long> v;
  wave.each([&](int lane) { v(lane) = (1LL << lane % 40) + lane; });
  long long wanted = 0;
  for (int lane = 0; lane < Wave::lanes; ++lane) wanted += (1LL << lane % 40) + lane;
  EXPECT_EQ(wave.sum(v), wanted);
}

/// The order is the devices': at distance lanes/2 first. Big terms that cancel only in that order tell it apart.
TYPED_TEST(HostWaveTest, SumKeepsTheOrderOfXorShuffles) {
  using Wave = typename TestFixture::Wave;
  constexpr int lanes = Wave::lanes;
  const Wave wave;
  typename Wave::template Varying<float> v;
  wave.each([&](int lane) { v(lane) = 1; });
  v(0) = 1e8f;
  v(lanes / 2) = -1e8f;
  EXPECT_EQ(wave.sum(v), static_cast<float>(lanes - 2));

  std::mt19937 engine(4);
  std::uniform_real_distribution<float> real(-1, 1);
  std::vector<float> level(lanes);
  for (int lane = 0; lane < lanes; ++lane) level[lane] = v(lane) = real(engine);
  for (int width = lanes / 2; width > 0; width /= 2) {
    for (int lane = 0; lane < width; ++lane) level[lane] += level[lane + width];
  }
  EXPECT_EQ(wave.sum(v), level[0]);
}

TYPED_TEST(HostWaveTest, SameAndAnyBit) {
  using Wave = typename TestFixture::Wave;
  using Mask = typename Wave::Mask;
  const Wave wave;
  typename Wave::template Varying<std::int32_t> v;
  typename Wave::template Varying<Mask> same, bit;
  wave.each([&](int lane) {
    v(lane) = lane % 3 - 1;
    bit(lane) = lane % 5 == 2 ? Mask{1} << lane : 0;
  });
  wave.same(same, v);
  Mask wanted_bits = 0;
  for (int lane = 0; lane < Wave::lanes; ++lane) {
    Mask wanted = 0;
    for (int other = lane % 3; other < Wave::lanes; other += 3) wanted |= Mask{1} << other;
    EXPECT_EQ(same(lane), wanted) << lane;
    if (lane % 5 == 2) wanted_bits |= Mask{1} << lane;
  }
  EXPECT_EQ(wave.any_bit(bit), wanted_bits);
}

TYPED_TEST(HostWaveTest, SharedMemory) {
  using Wave = typename TestFixture::Wave;
  std::uint32_t word = 7;
  EXPECT_EQ(Wave::claim(&word, 8, 9), 7u) << "not what was expected there: stays";
  EXPECT_EQ(word, 7u);
  EXPECT_EQ(Wave::claim(&word, 7, 9), 7u);
  EXPECT_EQ(word, 9u);
  Wave::set_bits(&word, 6);
  EXPECT_EQ(word, 15u);
  std::int64_t sum = std::int64_t{1} << 40;
  Wave::add(&sum, -1);
  EXPECT_EQ(sum, (std::int64_t{1} << 40) - 1);
}

TYPED_TEST(HostWaveTest, LastToArriveOnceAndCounterBackAtZero) {
  const typename TestFixture::Wave wave;
  std::uint32_t counter = 0;
  for (const std::uint32_t total : {1u, 2u, 7u}) {
    for (int round = 0; round < 3; ++round) {
      for (std::uint32_t i = 1; i < total; ++i) {
        EXPECT_FALSE(wave.last_to_arrive(&counter, total));
        EXPECT_EQ(counter, i);
      }
      EXPECT_TRUE(wave.last_to_arrive(&counter, total));
      EXPECT_EQ(counter, 0u);
    }
  }
}

TYPED_TEST(HostWaveTest, LoadsAndPublishedValues) {
  using Wave = typename TestFixture::Wave;
  const Wave wave;
  double cell = 0;
  wave.publish(&cell, 2.5);
  EXPECT_EQ(Wave::read_published(&cell), 2.5);
  const Word word{{1, 2, 3, 4}};
  EXPECT_EQ((Wave::template load<true>(&word).w[3]), 4u);
  EXPECT_EQ((Wave::template load<false>(&word).w[0]), 1u);
}

}  // namespace
}  // namespace Tessera
