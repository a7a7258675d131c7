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

template <class T, int Bytes>
void expect_widened() {
  using Lanes = Impl::HostLanes<float, Bytes>;
  std::vector<T> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i].bits = static_cast<std::uint16_t>(i);
  for (std::size_t first = 0; first < all.size(); first += Lanes::count) {
    typename Lanes::type v;
    Lanes::load(v, all.data() + first);
    float got[Lanes::count];
    std::memcpy(got, &v, sizeof(got));
    for (std::size_t j = 0; j < Lanes::count; ++j) {
      const float wanted = static_cast<float>(all[first + j]);
      ASSERT_TRUE(std::memcmp(&got[j], &wanted, sizeof(float)) == 0 || (std::isnan(got[j]) && std::isnan(wanted)))
          << "bits " << first + j << ": " << got[j] << " instead of " << wanted;
    }
  }
}

TEST(HostLanes, EverySixteenBitNumber) {
  expect_widened<half_t, 16>();
  expect_widened<bhalf_t, 16>();
#ifdef TESSERA_HOST_HAS_TARGETS
  // Without these instructions compilers make two or four vectors of one.
  expect_widened<half_t, 32>();
  expect_widened<half_t, 64>();
  expect_widened<bhalf_t, 32>();
  expect_widened<bhalf_t, 64>();
#endif
}

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
