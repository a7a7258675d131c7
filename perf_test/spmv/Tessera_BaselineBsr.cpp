// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

/// \file
/// What the product with blocks is compared with, on the arrays that Tessera gets.

#include <memory>

#include "Tessera_Compat.hpp"
#include "Tessera_Config.hpp"
#include "driver/Tessera_BaselineKokkosKernels.hpp"
#include "spmv/Tessera_BenchSpmv.hpp"
#if defined(TESSERA_HAVE_CUDA)
#include "spmv/Tessera_BaselineCusparse.hpp"
#endif
#if defined(TESSERA_HAVE_KOKKOSKERNELS) && defined(TESSERA_BENCH_SPMV_HANDLE)
#include <KokkosSparse_BsrMatrix.hpp>
#include <KokkosSparse_spmv.hpp>
#include <KokkosSparse_spmv_handle.hpp>
#define TESSERA_BENCH_KOKKOS_BSR 1
#endif

namespace Tessera {
namespace Bench {
namespace {

#if defined(TESSERA_BENCH_KOKKOS_BSR)
template <class S>
System kokkos_kernels_bsr(const SpmvOperands& o, KokkosSparse::SPMVAlgorithm algorithm) {
  using Matrix = KokkosSparse::Experimental::BsrMatrix<S, int, Device, void, int>;
  using Vector = Kokkos::View<S*, Device>;
  using Handle = KokkosSparse::SPMVHandle<Exec, Matrix, Vector, Vector>;
  const BsrOperand& b = o.blocks;
  const Matrix A("A", b.block_rows, b.block_cols, static_cast<int>(b.blocks()), b.values.view<S>(),
                 b.row_map.view<int>(), b.entries.view<int>(), b.block);
  const auto handle = std::make_shared<Handle>(algorithm);
  System system;
  system.backend = "kokkos";
  system.kernel = KokkosSparse::get_spmv_algorithm_name(algorithm);
  system.why = "KokkosSparse::spmv on BsrMatrix with a handle kept";
  system.apply = [handle, A, space = o.A.space, alpha = static_cast<S>(o.alpha), x = o.x.view<S>(),
                  beta = static_cast<S>(o.beta),
                  y = o.y.view<S>()] { KokkosSparse::spmv(space, handle.get(), "N", alpha, A, x, beta, y); };
  return system;
}
System kokkos_kernels_bsr(const SpmvOperands& o, KokkosSparse::SPMVAlgorithm algorithm) {
  return o.A.element == ElementType::Double ? kokkos_kernels_bsr<double>(o, algorithm)
                                            : kokkos_kernels_bsr<float>(o, algorithm);
}
#endif

#if defined(TESSERA_HAVE_CUDA)
/// The older call, on blocks alone.
class CusparseBsrmv {
 public:
  explicit CusparseBsrmv(const SpmvOperands& o) : o_(o) {
    cusparse_check(cusparseCreateMatDescr(&descriptor_));
    cusparse_check(
        cusparseSetStream(shared_cusparse_handle(), static_cast<cudaStream_t>(Compat::native_stream(o.A.space))));
  }
  ~CusparseBsrmv() { cusparseDestroyMatDescr(descriptor_); }
  CusparseBsrmv(const CusparseBsrmv&) = delete;
  CusparseBsrmv& operator=(const CusparseBsrmv&) = delete;

  void apply() {
    if (o_.A.element == ElementType::Double) {
      multiply<double>(cusparseDbsrmv);
    } else {
      multiply<float>(cusparseSbsrmv);
    }
  }

 private:
  template <class S, class Call>
  void multiply(Call call) {
    const BsrOperand& b = o_.blocks;
    const S alpha = static_cast<S>(o_.alpha), beta = static_cast<S>(o_.beta);
    cusparse_check(call(shared_cusparse_handle(), CUSPARSE_DIRECTION_ROW, CUSPARSE_OPERATION_NON_TRANSPOSE,
                        b.block_rows, b.block_cols, static_cast<int>(b.blocks()), &alpha, descriptor_,
                        b.values.data<S>(), b.row_map.data<int>(), b.entries.data<int>(), b.block, o_.x.data<S>(),
                        &beta, o_.y.data<S>()));
  }
  SpmvOperands o_;
  cusparseMatDescr_t descriptor_ = nullptr;
};

#if CUSPARSE_VERSION >= 12600
#define TESSERA_BENCH_CUSPARSE_BSR 1
/// The generic call.
cusparseSpMatDescr_t cusparse_blocks(const BsrOperand& b, ElementType element) {
  cusparseSpMatDescr_t descriptor = nullptr;
  cusparse_check(cusparseCreateBsr(&descriptor, b.block_rows, b.block_cols, b.blocks(), b.block, b.block,
                                   b.row_map.data<void>(), b.entries.data<void>(), b.values.data<void>(),
                                   CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, cuda_type(element),
                                   CUSPARSE_ORDER_ROW));
  return descriptor;
}
#endif
#endif

/// It reads the blocks instead of compressed rows.
System on_blocks(System system, const SpmvOperands& o) {
  system.format_bytes = o.blocks.bytes();
  system.padding_ratio = o.blocks.padding_ratio(o.A.nnz());
  return system;
}

}  // namespace

std::vector<std::string> blocks_baseline_names() {
  return {"kokkos-kernels-bsr", "kokkos-kernels-bsr-v41", "kokkos-kernels-bsr-v42", "cusparse-bsr", "cusparse-bsrmv"};
}

std::vector<std::string> blocks_baselines(const SpmvOperands& o) {
  std::vector<std::string> names;
  if (o.blocks.block == 0 || bytes_of(o.A.element) == 2) return names;
#if defined(TESSERA_BENCH_KOKKOS_BSR)
  for (const char* name : {"kokkos-kernels-bsr", "kokkos-kernels-bsr-v41", "kokkos-kernels-bsr-v42"}) {
    names.emplace_back(name);
  }
#endif
#if defined(TESSERA_HAVE_CUDA)
  if (Compat::is_cuda_v<Exec>) {
#if defined(TESSERA_BENCH_CUSPARSE_BSR)
    names.emplace_back("cusparse-bsr");
#endif
    names.emplace_back("cusparse-bsrmv");
  }
#endif
  return names;
}

bool make_blocks_baseline(const SpmvOperands& o, const std::string& name, System& system) {
  if (o.blocks.block == 0 || bytes_of(o.A.element) == 2) return false;
#if defined(TESSERA_BENCH_KOKKOS_BSR)
  if (name == "kokkos-kernels-bsr") system = kokkos_kernels_bsr(o, KokkosSparse::SPMV_DEFAULT);
  if (name == "kokkos-kernels-bsr-v41") system = kokkos_kernels_bsr(o, KokkosSparse::SPMV_BSR_V41);
  if (name == "kokkos-kernels-bsr-v42") system = kokkos_kernels_bsr(o, KokkosSparse::SPMV_BSR_V42);
#endif
#if defined(TESSERA_HAVE_CUDA)
#if defined(TESSERA_BENCH_CUSPARSE_BSR)
  if (name == "cusparse-bsr") {
    system = make_cusparse_spmv(o, cusparse_blocks(o.blocks, o.A.element), CUSPARSE_SPMV_BSR_ALG1, "SPMV_BSR_ALG1");
  }
#endif
  if (name == "cusparse-bsrmv") {
    const auto spmv = std::make_shared<CusparseBsrmv>(o);
    system.apply = [spmv] { spmv->apply(); };
    system.backend = "cuda";
    system.kernel = "bsrmv";
    system.why = "cuSPARSE, the older call";
  }
#endif
  (void)name;
  if (!system.apply) return false;
  system = on_blocks(system, o);
  return true;
}

}  // namespace Bench
}  // namespace Tessera
