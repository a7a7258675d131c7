// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Vectors of hosts: every 16-bit number becomes the float it is, and lanes are added in the order that is promised.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "core/Tessera_HostLanes.hpp"

namespace Tessera {
namespace Testing {
namespace {

template <class T, int Bytes, int Isa = Bytes>
KOKKOS_FORCEINLINE_FUNCTION void expect_widened() {
  using Lanes = Impl::HostLanes<float, Bytes, Isa>;
  std::vector<T> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i].bits = static_cast<std::uint16_t>(i);
  for (std::size_t first = 0; first < all.size(); first += Lanes::count) {
    typename Lanes::type v;
    Lanes::load(v, all.data() + first);
    float got[Lanes::count];
    std::memcpy(got, &v, sizeof(got));
    for (std::size_t j = 0; j < Lanes::count; ++j) {
      const float wanted = static_cast<float>(all[first + j]), one = Impl::host_widen<float, Isa>(all[first + j]);
      if constexpr (Lanes::template can_store<T>) {
        T back[Lanes::count];
        Lanes::store(back, v * 1.001f);  // between two numbers
        ASSERT_EQ(back[j].bits, T(got[j] * 1.001f).bits) << "bits " << first + j;
      }
      T rounded = Impl::host_round<T, Isa>(got[j] * 1.001f), scaled = all[first + j];
      ASSERT_EQ(rounded.bits, T(got[j] * 1.001f).bits) << "bits " << first + j;
      // Products with small numbers are exact, so that it does not matter whether compilers fuse them.
      Impl::host_store_scaled<Isa>(&scaled, 2.0f, 0.75f, 3.0f);
      ASSERT_TRUE(std::isnan(wanted) || scaled.bits == T(1.5f + 3 * wanted).bits) << "bits " << first + j;
      ASSERT_TRUE(std::memcmp(&one, &got[j], sizeof(float)) == 0 || (std::isnan(one) && std::isnan(wanted)));
      ASSERT_TRUE(std::memcmp(&got[j], &wanted, sizeof(float)) == 0 || (std::isnan(got[j]) && std::isnan(wanted)))
          << "bits " << first + j << ": " << got[j] << " instead of " << wanted;
    }
  }
}

#ifdef TESSERA_HOST_HAS_TARGETS
TESSERA_HOST_TARGET("avx2,fma") void expect_widened_by_32() {
  expect_widened<half_t, 32>();
  expect_widened<bhalf_t, 32>();
  expect_widened<half_t, 16, 32>();
  expect_widened<bhalf_t, 16, 32>();
}
TESSERA_HOST_TARGET("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma") void expect_widened_by_64() {
  expect_widened<half_t, 64>();
  expect_widened<bhalf_t, 64>();
}
#endif

// Every level that this CPU has.
TEST(HostLanes, EverySixteenBitNumber) {
  expect_widened<half_t, 16>();
  expect_widened<bhalf_t, 16>();
#ifdef TESSERA_HOST_HAS_TARGETS
  if (Impl::host_vector_bytes() >= 32) expect_widened_by_32();
  if (Impl::host_vector_bytes() >= 64) expect_widened_by_64();
#endif
}

#if TESSERA_HOST_F16C
// Four at once, from memory and from a register, and back: rounded as the type itself rounds.
TEST(HostHalf, InstructionsGiveWhatTheTypeGives) {
  if (!Impl::host_has_f16c()) GTEST_SKIP() << "this CPU has no F16C";
  for (unsigned bits = 0; bits < 65536; ++bits) {
    half_t four[4], back[4];
    for (unsigned j = 0; j < 4; ++j) four[j].bits = static_cast<std::uint16_t>(bits + 16384 * j);
    Impl::F16c<4>::Floats wide, low;
    Impl::F16c<4>::widen(wide, four);
    Impl::F16cWords words = {};
    std::memcpy(&words, four, sizeof(four));
    Impl::f16c_widen_low(low, words);
    // Between two numbers, at their middle and beside it.
    const float beside[4] = {wide[0] * 1.0003f, wide[0] * (1 + 0x1p-11f), wide[0] * (1 + 0x1p-11f + 0x1p-20f), wide[0]};
    Impl::F16c<4>::Floats rounded;
    std::memcpy(&rounded, beside, sizeof(beside));
    Impl::F16c<4>::narrow(back, rounded);
    for (int j = 0; j < 4; ++j) {
      const float wanted = static_cast<float>(four[j]), got = wide[j], other = low[j];
      ASSERT_TRUE(std::isnan(wanted) ? std::isnan(got) : std::memcmp(&wanted, &got, 4) == 0) << bits;
      ASSERT_EQ(std::memcmp(&got, &other, 4), 0) << bits;
      ASSERT_EQ(back[j].bits, half_t(beside[j]).bits) << bits;
      ASSERT_EQ(Impl::f16c_narrow(beside[j]).bits, back[j].bits) << bits;
    }
  }
}
#endif

/// Halves are added until one lane is left.
template <class Sum, int Bytes>
void expect_total() {
  using Lanes = Impl::HostLanes<Sum, Bytes>;
  Sum lanes[Lanes::count];
  for (int j = 0; j < Lanes::count; ++j) lanes[j] = Sum(1) / Sum(3 + j * j);
  typename Lanes::type v;
  Lanes::load(v, lanes);
  for (int n = Lanes::count / 2; n > 0; n /= 2) {
    for (int j = 0; j < n; ++j) lanes[j] += lanes[j + n];
  }
  EXPECT_EQ(Lanes::total(v), lanes[0]) << Bytes << " bytes";
}

TEST(HostLanes, TotalInAFixedOrder) {
  expect_total<float, 16>();
  expect_total<float, 32>();
  expect_total<float, 64>();
  expect_total<double, 16>();
  expect_total<double, 32>();
  expect_total<double, 64>();
}

}  // namespace
}  // namespace Testing
}  // namespace Tessera
