// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BASELINES_HPP
#define TESSERA_BASELINES_HPP

#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "Tessera_Config.hpp"
#include "driver/Tessera_BaselineTypes.hpp"

#if defined(TESSERA_HAVE_KOKKOSKERNELS)
#include <KokkosSparse_CrsMatrix.hpp>
#include <KokkosSparse_spmv.hpp>
#if __has_include(<KokkosSparse_spmv_handle.hpp>)
#include <KokkosSparse_spmv_handle.hpp>
#define TESSERA_BENCH_SPMV_HANDLE 1
#endif
#endif
#if defined(TESSERA_HAVE_CUDA)
#include "spmv/Tessera_BaselineCusparse.hpp"
#endif

/// \file
/// What Tessera is compared with. Every baseline gets the arrays that Tessera gets and is set up as its authors advise
/// for repeated use.

namespace Tessera {
namespace Bench {

#if defined(TESSERA_HAVE_KOKKOSKERNELS)
template <class Operands>
struct KokkosKernelsSpmv {
  using S = typename Operands::value_type;
  using Exec = typename Operands::execution_space;
  using Matrix = KokkosSparse::CrsMatrix<S, int, typename Operands::device_type, void, typename Operands::offset_type>;

  static Matrix matrix(const Operands& o) {
    return Matrix("A", o.rows, o.cols, static_cast<typename Operands::offset_type>(o.entries.extent(0)), o.values,
                  o.row_map, o.entries);
  }

  static Baseline make(const Operands& o, bool merge) {
    Baseline b;
    b.backend = "kokkos";
    b.why = "KokkosSparse::spmv";
    const Matrix A = matrix(o);
    const S alpha = static_cast<S>(o.alpha), beta = static_cast<S>(o.beta);
#if defined(TESSERA_BENCH_SPMV_HANDLE)
    using Handle = KokkosSparse::SPMVHandle<Exec, Matrix, std::decay_t<decltype(o.x)>, std::decay_t<decltype(o.y)>>;
    const auto algorithm = merge ? KokkosSparse::SPMV_MERGE_PATH : KokkosSparse::SPMV_DEFAULT;
    const auto handle = std::make_shared<Handle>(algorithm);
    b.kernel = KokkosSparse::get_spmv_algorithm_name(algorithm);
    b.why += " with a handle kept";
    b.apply = [handle, A, o, alpha, beta] { KokkosSparse::spmv(o.space, handle.get(), "N", alpha, A, o.x, beta, o.y); };
#else
    (void)merge;
    // Older ones run on the default instance of the execution space, which is the one of the operands.
    b.kernel = "default";
    b.apply = [A, o, alpha, beta] { KokkosSparse::spmv("N", alpha, A, o.x, beta, o.y); };
#endif
    return b;
  }
};
#endif

/// The baselines of this build that know these types on this execution space.
template <class Operands>
std::vector<std::string> baseline_names() {
  std::vector<std::string> names;
#if defined(TESSERA_HAVE_KOKKOSKERNELS)
  if (sizeof(typename Operands::value_type) > 2) {
    names.emplace_back("kokkos-kernels");
#if defined(TESSERA_BENCH_SPMV_HANDLE)
    names.emplace_back("kokkos-kernels-merge");
#endif
  }
#endif
#if defined(TESSERA_HAVE_CUDA)
  if (Compat::is_cuda_v<typename Operands::execution_space>) {
    names.emplace_back("cusparse-alg1");
    names.emplace_back("cusparse-alg2");
#if defined(TESSERA_BENCH_CUSPARSE_SELL)
    if (sizeof(typename Operands::value_type) > 2) names.emplace_back("cusparse-sell");
#endif
  }
#endif
  return names;
}

/// Sets one of them up.
template <class Operands>
Baseline make_baseline(const Operands& operands, const std::string& name) {
#if defined(TESSERA_HAVE_KOKKOSKERNELS)
  if constexpr (sizeof(typename Operands::value_type) > 2) {
    if (name == "kokkos-kernels") return KokkosKernelsSpmv<Operands>::make(operands, false);
    if (name == "kokkos-kernels-merge") return KokkosKernelsSpmv<Operands>::make(operands, true);
  }
#endif
#if defined(TESSERA_HAVE_CUDA)
  if constexpr (Compat::is_cuda_v<typename Operands::execution_space>) {
    if (name == "cusparse-alg1") return make_cusparse_spmv(operands, CUSPARSE_SPMV_CSR_ALG1);
    if (name == "cusparse-alg2") return make_cusparse_spmv(operands, CUSPARSE_SPMV_CSR_ALG2);
#if defined(TESSERA_BENCH_CUSPARSE_SELL)
    if constexpr (sizeof(typename Operands::value_type) > 2) {
      if (name == "cusparse-sell") return make_cusparse_sell(operands);
    }
#endif
  }
#endif
  (void)operands;
  throw NotSupported("baseline '" + name + "' is not in this build or does not know this precision");
}

}  // namespace Bench
}  // namespace Tessera

#endif
