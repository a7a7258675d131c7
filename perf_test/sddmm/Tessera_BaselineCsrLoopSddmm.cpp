// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "Tessera_Compat.hpp"
#include "sddmm/Tessera_BenchSddmm.hpp"

namespace Tessera {
namespace Bench {
namespace {

template <class T, class Offset>
struct CsrLoop {
  const Offset* row_map;
  const int* entries;
  const T *x, *y;
  T* p;
  std::int64_t inner;
  T alpha, beta;
  void operator()(const std::int64_t i) const {
    for (Offset e = row_map[i]; e < row_map[i + 1]; ++e) {
      const T *a = x + i * inner, *b = y + std::int64_t{entries[e]} * inner;
      T sum = 0;
// Compiled with OpenMP's vectors (CMakeLists.txt): sums in any order.
#pragma omp simd reduction(+ : sum)
      for (std::int64_t k = 0; k < inner; ++k) sum += a[k] * b[k];
      p[e] = beta == 0 ? alpha * sum : alpha * sum + beta * p[e];
    }
  }
};

template <class T, class Offset>
std::function<void()> csr_loop(const SddmmOperands& o) {
  return [space = o.S.space, rows = o.S.rows,
          loop = CsrLoop<T, Offset>{o.S.row_map.data<Offset>(), o.S.entries.data<int>(), o.X.data<T>(), o.Y.data<T>(),
                                    o.P.data<T>(), o.inner, static_cast<T>(o.alpha), static_cast<T>(o.beta)}] {
    if constexpr (Compat::is_host_v<Exec>) {
      Kokkos::parallel_for("csr-loop", Kokkos::RangePolicy<Exec, Kokkos::Schedule<Kokkos::Dynamic>>(space, 0, rows),
                           loop);
    }
  };
}
template <class T>
std::function<void()> csr_loop(const SddmmOperands& o) {
  return o.S.offset_bits == 64 ? csr_loop<T, WideOffset>(o) : csr_loop<T, int>(o);
}

}  // namespace

System make_csr_loop_sddmm(const SddmmOperands& o) {
  System b;
  b.apply = o.S.element == ElementType::Double ? csr_loop<double>(o) : csr_loop<float>(o);
  b.backend = "host";
  b.kernel = "csr-loop";
  b.why = "plain loop over CSR, vectors over K";
  return b;
}

}  // namespace Bench
}  // namespace Tessera
