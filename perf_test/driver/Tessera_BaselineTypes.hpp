// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BASELINE_TYPES_HPP
#define TESSERA_BASELINE_TYPES_HPP

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "Tessera_Compat.hpp"
#include "Tessera_Error.hpp"
#include "Tessera_Types.hpp"

namespace Tessera {
namespace Bench {

/// Every name a command line may hold for an operation, built here or not. "cusparse" is all of its CSR algorithms,
/// whose names begin with "cusparse-alg"; not its sliced ELL, which is another format and fits few matrices.
inline const std::vector<std::string>& known_baselines(const std::string& op) {
  static const std::vector<std::string> spmv = {"kokkos-kernels", "kokkos-kernels-merge", "cusparse-alg1",
                                                "cusparse-alg2", "cusparse-sell"};
  static const std::vector<std::string> spmm = {"kokkos-kernels", "cusparse-alg-default", "cusparse-alg1",
                                                "cusparse-alg2", "cusparse-alg3"};
  return op == "spmm" ? spmm : spmv;
}

/// y := alpha A x + beta y on the device.
/// @tparam S  of A and x   @tparam Y  of y
template <class Exec, class S, class Y, class Offset>
struct SpmvOperands {
  using execution_space = Exec;
  using device_type = typename Exec::device_type;
  using value_type = S;
  using result_type = Y;
  using offset_type = Offset;
  Exec space;
  int rows = 0, cols = 0;
  Kokkos::View<Offset*, device_type> row_map;
  Kokkos::View<int*, device_type> entries;
  Kokkos::View<S*, device_type> values, x;
  Kokkos::View<Y*, device_type> y;
  double alpha = 1, beta = 0;
};

/// C := alpha A B + beta C on the device.
/// @tparam S  of A and B   @tparam Y  of C   @tparam Layout  of B and C
template <class Exec, class S, class Y, class Offset, class Layout>
struct SpmmOperands {
  using execution_space = Exec;
  using device_type = typename Exec::device_type;
  using value_type = S;
  using result_type = Y;
  using offset_type = Offset;
  using layout = Layout;
  using b_type = Kokkos::View<S**, Layout, device_type>;
  using c_type = Kokkos::View<Y**, Layout, device_type>;
  Exec space;
  int rows = 0, cols = 0;
  std::int64_t columns = 0;
  Kokkos::View<Offset*, device_type> row_map;
  Kokkos::View<int*, device_type> entries;
  Kokkos::View<S*, device_type> values;
  b_type B;
  c_type C;
  double alpha = 1, beta = 0;
};

/// One that is set up. The closure owns what it needs.
struct Baseline {
  std::function<void()> apply;
  std::string backend, kernel, why;
  double workspace_bytes = 0;
  double format_bytes = 0, padding_ratio = 0;  ///< of a format of its own; 0: it reads the CSR arrays
  bool has_setup = false;                      ///< it has a set-up that is worth a time
};

}  // namespace Bench
}  // namespace Tessera

#endif
