// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "spgemm/Tessera_BenchSpgemm.hpp"

#if defined(TESSERA_HAVE_KOKKOSKERNELS)
#include <KokkosKernels_Handle.hpp>
#include <KokkosSparse_CrsMatrix.hpp>
#include <KokkosSparse_spgemm.hpp>

#include "Tessera_Compat.hpp"
#include "Tessera_Error.hpp"

namespace Tessera {
namespace Bench {
namespace {

using Matrix = KokkosSparse::CrsMatrix<double, int, Device, void, int>;

Matrix matrix_of(const CsrOperand& o) {
  return Matrix("matrix", o.rows, o.cols, static_cast<int>(o.nnz()), o.values.view<double>(), o.row_map.view<int>(),
                o.entries.view<int>());
}
template <class View>
void copy_array(DeviceArray& to, const char* name, const View& from) {
  using Element = typename View::non_const_value_type;
  to = DeviceArray(name, from.extent(0), sizeof(Element));
  Kokkos::deep_copy(to.view<Element>(), from);
}

/// With its C, which outlives a product: taken apart only to be checked.
struct Spgemm {
  using Handle = KokkosKernels::Experimental::KokkosKernelsHandle<int, int, double, Exec, typename Exec::memory_space,
                                                                  typename Exec::memory_space>;
  Exec space;
  Matrix A, B, C;
  std::shared_ptr<SpgemmOutput> output;

  void apply() {
    Handle handle;
    handle.create_spgemm_handle(KokkosSparse::SPGEMM_KK);
    KokkosSparse::spgemm_symbolic(handle, A, false, B, false, C);
    KokkosSparse::spgemm_numeric(handle, A, false, B, false, C);
    handle.destroy_spgemm_handle();
    Compat::fence(space, "Tessera::bench spgemm");
  }
  void show() const {
    copy_array(output->row_map, "C row_map", C.graph.row_map);
    copy_array(output->entries, "C entries", C.graph.entries);
    copy_array(output->values, "C values", C.values);
    output->sorted = false;
  }
};

}  // namespace

bool kokkos_kernels_has_spgemm(const SpgemmOperands& o) {
  return o.A.element == ElementType::Double && o.A.offset_bits == 32;
}

System kokkos_kernels_spgemm(const SpgemmOperands& o) {
  System system;
  const auto spgemm = std::make_shared<Spgemm>(Spgemm{o.A.space, matrix_of(o.A), matrix_of(o.B), {}, o.C});
  system.apply = [spgemm] { spgemm->apply(); };
  system.finish = [spgemm] { spgemm->show(); };
  system.backend = "kokkos";
  system.kernel = "SPGEMM_KK";
  system.why = "KokkosSparse::spgemm_symbolic and spgemm_numeric; columns not sorted";
  return system;
}

}  // namespace Bench
}  // namespace Tessera
#endif
