// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_TEST_SPGEMM_NET_HPP
#define TESSERA_TEST_SPGEMM_NET_HPP

/// \file
/// Made by cmake/train_spgemm.py net --write: what the framework that trained the network gives for products.

// clang-format off
namespace Tessera {
namespace Testing {

struct SpgemmNetCase {
  const char* matrix;
  float shares[4];
};
constexpr SpgemmNetCase spgemm_net_cases[] = {
    {"stencil2d:nx=100:ny=90:points=5", {0.02694218f, 0.00809693f, 0.9637017f, 0.001259233f}},
    {"diagonals:n=10000:count=31:reach=15:missing=0.5:seed=12", {0.3973987f, 0.003835523f, 0.598134f, 0.0006317653f}},
    {"rmat:scale=11:degree=16:symmetric=0", {0.9998031f, 8.922376e-05f, 9.003502e-05f, 1.767897e-05f}},
    {"uniform:rows=1000:cols=1000:per_row=20", {0.9969516f, 0.002467186f, 0.0001848795f, 0.000396286f}},
};

}  // namespace Testing
}  // namespace Tessera

#endif
