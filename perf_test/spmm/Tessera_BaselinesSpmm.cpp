// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
/// \file
/// What SpMM is compared with: cuSPARSE on CUDA, Kokkos Kernels' spmv on multivectors on hosts. Every baseline gets the
/// arrays that Tessera gets. The rows of TF32 stand against the same calls in FP32, which these libraries offer for the
/// same data.

#include "Tessera_Compat.hpp"
#include "Tessera_Config.hpp"
#include "Tessera_Error.hpp"
#include "driver/Tessera_BaselineKokkosKernels.hpp"
#include "spmm/Tessera_BenchSpmm.hpp"
#if defined(TESSERA_HAVE_CUDA)
#include "spmm/Tessera_BaselineCusparseSpmm.hpp"
#endif

namespace Tessera {
namespace Bench {

#if defined(TESSERA_HAVE_KOKKOSKERNELS)
bool kokkos_kernels_has_spmm(const SpmmOperands& o) {
  const bool type = o.A.element == ElementType::Double || (o.A.element == ElementType::Float && !o.layout_left);
  return Compat::is_host_v<Exec> && type && o.A.offset_bits == 32;
}
#endif

std::vector<std::string> spmm_baselines(const SpmmOperands& o) {
  std::vector<std::string> names;
#if defined(TESSERA_HAVE_KOKKOSKERNELS)
  if (kokkos_kernels_has_spmm(o)) names.emplace_back("kokkos-kernels");
#endif
#if defined(TESSERA_HAVE_CUDA)
  if (Compat::is_cuda_v<Exec>) {
    for (const char* name : {"cusparse-alg-default", "cusparse-alg1", "cusparse-alg2", "cusparse-alg3"}) {
      names.emplace_back(name);
    }
  }
#endif
  (void)o;
  return names;
}

System make_spmm_baseline(const SpmmOperands& o, const std::string& name) {
#if defined(TESSERA_HAVE_KOKKOSKERNELS)
  if (name == "kokkos-kernels" && kokkos_kernels_has_spmm(o)) {
    return o.A.element == ElementType::Double ? kokkos_kernels_spmm_fp64(o) : kokkos_kernels_spmm_fp32(o);
  }
#endif
#if defined(TESSERA_HAVE_CUDA)
  if (Compat::is_cuda_v<Exec>) {
    if (name == "cusparse-alg-default") return make_cusparse_spmm(o, CUSPARSE_SPMM_ALG_DEFAULT, "SPMM_ALG_DEFAULT");
    if (name == "cusparse-alg1") return make_cusparse_spmm(o, CUSPARSE_SPMM_CSR_ALG1, "SPMM_CSR_ALG1");
    if (name == "cusparse-alg2") return make_cusparse_spmm(o, CUSPARSE_SPMM_CSR_ALG2, "SPMM_CSR_ALG2");
    if (name == "cusparse-alg3") return make_cusparse_spmm(o, CUSPARSE_SPMM_CSR_ALG3, "SPMM_CSR_ALG3");
  }
#endif
  (void)o;
  throw NotSupported("baseline '" + name + "' is not in this build or does not know this precision");
}

}  // namespace Bench
}  // namespace Tessera
