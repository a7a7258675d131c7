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
    {"stencil2d:nx=100:ny=90:points=5", {0.07988081f, 0.01439338f, 0.9046744f, 0.001051356f}},
    {"diagonals:n=10000:count=31:reach=15:missing=0.5:seed=12", {0.5094707f, 0.007144689f, 0.4827216f, 0.0006629833f}},
    {"rmat:scale=11:degree=16:symmetric=0", {0.9991949f, 0.000566893f, 0.0001827443f, 5.545965e-05f}},
    {"uniform:rows=1000:cols=1000:per_row=20", {0.9741995f, 0.01574414f, 0.008482229f, 0.001574051f}},
};

}  // namespace Testing
}  // namespace Tessera

#endif
