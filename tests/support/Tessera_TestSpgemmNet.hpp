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
    {"stencil2d:nx=100:ny=90:points=5", {0.1058714f, 0.02356554f, 0.8690217f, 0.001541352f}},
    {"diagonals:n=10000:count=31:reach=15:missing=0.5:seed=12", {0.6528362f, 0.007127536f, 0.3392862f, 0.000750057f}},
    {"rmat:scale=11:degree=16:symmetric=0", {0.9993339f, 0.0004623897f, 0.0001421782f, 6.154856e-05f}},
    {"uniform:rows=1000:cols=1000:per_row=20", {0.9756974f, 0.01397365f, 0.008833861f, 0.001495029f}},
};

}  // namespace Testing
}  // namespace Tessera

#endif
