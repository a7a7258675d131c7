// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
/// \file
/// What SpMV is compared with. Every baseline gets the arrays that Tessera gets and is set up as its authors advise for
/// repeated use.

#include "Tessera_Compat.hpp"
#include "Tessera_Config.hpp"
#include "Tessera_Error.hpp"
#include "driver/Tessera_BaselineKokkosKernels.hpp"
#include "spmv/Tessera_BenchSpmv.hpp"
#if defined(TESSERA_HAVE_CUDA)
#include "spmv/Tessera_BaselineCusparse.hpp"
#endif

namespace Tessera {
namespace Bench {

#if defined(TESSERA_HAVE_CUDA)
namespace {

using SpmvOp = CusparseSpmvOpFunctions;

/// Names without the suffix of the library.
std::vector<std::string> cusparse_baselines(const CusparseLibrary& library, const SpmvOperands& o) {
  std::vector<std::string> names = {"cusparse-alg1", "cusparse-alg2"};
#if defined(TESSERA_BENCH_CUSPARSE_SELL)
  if (bytes_of(o.A.element) > 2 || !library.suffix.empty()) names.emplace_back("cusparse-sell");
#endif
  if (library.spmv_op.complete()) {
    for (const char* name : {"cusparse-spmvop", "cusparse-spmvop-alg1", "cusparse-spmvop-alg2"})
      names.emplace_back(name);
  }
  return names;
}

System make_cusparse_baseline(const CusparseLibrary& library, const SpmvOperands& o, const std::string& name) {
  if (name == "cusparse-alg1") return make_cusparse_spmv(library, o, CUSPARSE_SPMV_CSR_ALG1);
  if (name == "cusparse-alg2") return make_cusparse_spmv(library, o, CUSPARSE_SPMV_CSR_ALG2);
#if defined(TESSERA_BENCH_CUSPARSE_SELL)
  if (name == "cusparse-sell") return make_cusparse_sell(library, o);
#endif
  if (name == "cusparse-spmvop-alg1") return make_cusparse_spmv_op(library, o, SpmvOp::Alg1);
  if (name == "cusparse-spmvop-alg2") return make_cusparse_spmv_op(library, o, SpmvOp::Alg2);
  return make_cusparse_spmv_op(library, o, SpmvOp::Default);
}

}  // namespace
#endif

std::vector<std::string> spmv_baselines(const SpmvOperands& o) {
  std::vector<std::string> names;
#if defined(TESSERA_HAVE_KOKKOSKERNELS)
  // It has no 16-bit types of ours.
  if (bytes_of(o.A.element) > 2) {
    names.emplace_back("kokkos-kernels");
    if (kokkos_kernels_has_handle) names.emplace_back("kokkos-kernels-merge");
  }
#endif
#if defined(TESSERA_HAVE_CUDA)
  if (Compat::is_cuda_v<Exec>) {
    for (const CusparseLibrary* library : cusparse_libraries()) {
      for (const std::string& name : cusparse_baselines(*library, o)) names.push_back(name + library->suffix);
    }
  }
#endif
  for (const std::string& name : blocks_baselines(o)) names.push_back(name);
  return names;
}

System make_spmv_baseline(const SpmvOperands& o, const std::string& name) {
#if defined(TESSERA_HAVE_KOKKOSKERNELS)
  if (bytes_of(o.A.element) > 2) {
    if (name == "kokkos-kernels") return kokkos_kernels_spmv(o, false);
    if (name == "kokkos-kernels-merge") return kokkos_kernels_spmv(o, true);
  }
#endif
#if defined(TESSERA_HAVE_CUDA)
  if (Compat::is_cuda_v<Exec>) {
    for (const CusparseLibrary* library : cusparse_libraries()) {
      for (const std::string& own : cusparse_baselines(*library, o)) {
        if (name == own + library->suffix) return make_cusparse_baseline(*library, o, own);
      }
    }
  }
#endif
  System on_blocks;
  if (make_blocks_baseline(o, name, on_blocks)) return on_blocks;
  throw NotSupported("baseline '" + name + "' is not in this build or does not know this precision");
}

}  // namespace Bench
}  // namespace Tessera
