// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BASELINES_SPMM_HPP
#define TESSERA_BASELINES_SPMM_HPP

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
#define TESSERA_BENCH_SPMM_HANDLE 1
#endif
#endif
#if defined(TESSERA_HAVE_CUDA)
#include "spmm/Tessera_BaselineCusparseSpmm.hpp"
#endif

/// \file
/// What SpMM is compared with: cuSPARSE on CUDA, Kokkos Kernels' spmv on multivectors on hosts. Every baseline gets the
/// arrays that Tessera gets. The rows of TF32 stand against the same calls in FP32, which these libraries offer for
/// the same data.

namespace Tessera {
namespace Bench {

/// Kokkos Kernels has no 16-bit types of ours, and on devices cuSPARSE stands for it.
template <class Operands>
constexpr bool kokkos_kernels_has_spmm() {
#if defined(TESSERA_HAVE_KOKKOSKERNELS)
  return Compat::is_host_v<typename Operands::execution_space> && sizeof(typename Operands::value_type) > 2;
#else
  return false;
#endif
}

#if defined(TESSERA_HAVE_KOKKOSKERNELS)
template <class Operands>
Baseline make_kokkos_kernels_spmm(const Operands& o) {
  using S = typename Operands::value_type;
  using Offset = typename Operands::offset_type;
  using Matrix = KokkosSparse::CrsMatrix<S, int, typename Operands::device_type, void, Offset>;
  Baseline b;
  b.backend = "kokkos";
  b.why = "KokkosSparse::spmv on multivectors";
  const Matrix A("A", o.rows, o.cols, static_cast<Offset>(o.entries.extent(0)), o.values, o.row_map, o.entries);
  const S alpha = static_cast<S>(o.alpha), beta = static_cast<S>(o.beta);
#if defined(TESSERA_BENCH_SPMM_HANDLE)
  using Handle = KokkosSparse::SPMVHandle<typename Operands::execution_space, Matrix, typename Operands::b_type,
                                          typename Operands::c_type>;
  const auto handle = std::make_shared<Handle>(KokkosSparse::SPMV_DEFAULT);
  b.kernel = KokkosSparse::get_spmv_algorithm_name(KokkosSparse::SPMV_DEFAULT);
  b.why += " with a handle kept";
  b.apply = [handle, A, o, alpha, beta] { KokkosSparse::spmv(o.space, handle.get(), "N", alpha, A, o.B, beta, o.C); };
#else
  // Older ones run on the default instance of the execution space, which is the one of the operands.
  b.kernel = "default";
  b.apply = [A, o, alpha, beta] { KokkosSparse::spmv("N", alpha, A, o.B, beta, o.C); };
#endif
  return b;
}
#endif

/// The baselines of this build that know these types on this execution space.
template <class Operands>
std::vector<std::string> spmm_baseline_names() {
  std::vector<std::string> names;
  if (kokkos_kernels_has_spmm<Operands>()) names.emplace_back("kokkos-kernels");
#if defined(TESSERA_HAVE_CUDA)
  if (Compat::is_cuda_v<typename Operands::execution_space>) {
    for (const char* name : {"cusparse-alg-default", "cusparse-alg1", "cusparse-alg2", "cusparse-alg3"}) {
      names.emplace_back(name);
    }
  }
#endif
  return names;
}

/// Sets one of them up.
template <class Operands>
Baseline make_spmm_baseline(const Operands& operands, const std::string& name) {
#if defined(TESSERA_HAVE_KOKKOSKERNELS)
  if constexpr (kokkos_kernels_has_spmm<Operands>()) {
    if (name == "kokkos-kernels") return make_kokkos_kernels_spmm(operands);
  }
#endif
#if defined(TESSERA_HAVE_CUDA)
  if constexpr (Compat::is_cuda_v<typename Operands::execution_space>) {
    if (name == "cusparse-alg-default")
      return make_cusparse_spmm(operands, CUSPARSE_SPMM_ALG_DEFAULT, "SPMM_ALG_DEFAULT");
    if (name == "cusparse-alg1") return make_cusparse_spmm(operands, CUSPARSE_SPMM_CSR_ALG1, "SPMM_CSR_ALG1");
    if (name == "cusparse-alg2") return make_cusparse_spmm(operands, CUSPARSE_SPMM_CSR_ALG2, "SPMM_CSR_ALG2");
    if (name == "cusparse-alg3") return make_cusparse_spmm(operands, CUSPARSE_SPMM_CSR_ALG3, "SPMM_CSR_ALG3");
  }
#endif
  (void)operands;
  throw NotSupported("baseline '" + name + "' is not in this build or does not know this precision");
}

}  // namespace Bench
}  // namespace Tessera

#endif
