// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// spgemm: C := A B in one call.

#include "adapters/python/Tessera_PythonObject.hpp"

namespace Tessera {
namespace Python {
namespace {

/// (indptr, indices, data) of C.
nb::tuple spgemm(nb::handle a_indptr, nb::handle a_indices, nb::handle a_data, std::int64_t rows, std::int64_t inner,
                 nb::handle b_indptr, nb::handle b_indices, nb::handle b_data, std::int64_t b_rows, std::int64_t cols,
                 bool check, nb::handle stream, nb::handle keywords) {
  const CsrOperands A(a_indptr, a_indices, a_data, rows, inner), B(b_indptr, b_indices, b_data, b_rows, cols);
  const PlanOptions options = plan_options(keywords);
  void* const on = A.data().stream(stream);
  std::unique_ptr<AnySpgemm> plan;
  {
    const Running running;
    if (check) check_csr(on, A.arrays());
    if (check) check_csr(on, B.arrays());
    plan = make_spgemm(on, A.arrays(), B.arrays(), options);
  }
  nb::object indptr = A.data().make_integers(A.arrays().wide, rows + 1);
  const Operand to_indptr(indptr, "indptr", Operand::Access::Write);
  std::int64_t nnz = 0;
  {
    const Running running;
    nnz = plan->symbolic(on, to_indptr.array().data);
  }
  nb::object indices = A.data().make_integers(false, nnz), data = A.data().make_like({nnz});
  const Operand to_indices(indices, "indices", Operand::Access::Write), to_data(data, "data", Operand::Access::Write);
  {
    const Running running;
    plan->numeric(on, to_indptr.array().data, to_indices.array().data, to_data.array().data);
    plan.reset();
  }
  return nb::make_tuple(indptr, indices, data);
}

}  // namespace

void define_spgemm(nb::module_& m) {
  m.def("spgemm", &spgemm, nb::arg("a_indptr"), nb::arg("a_indices"), nb::arg("a_data"), nb::arg("rows"),
        nb::arg("inner"), nb::arg("b_indptr"), nb::arg("b_indices"), nb::arg("b_data"), nb::arg("b_rows"),
        nb::arg("cols"), nb::arg("check"), nb::arg("stream").none(), nb::arg("options"),
        "(indptr, indices, data) of the product of two matrices in compressed rows.");
}

}  // namespace Python
}  // namespace Tessera
