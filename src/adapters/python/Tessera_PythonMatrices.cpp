// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// spgemm: C := A B in one call.

#include "adapters/python/Tessera_PythonObject.hpp"

namespace Tessera {
namespace Python {
namespace {

bool same_arrays(const AnyCsr& a, const AnyCsr& b) {
  return a.indptr == b.indptr && a.indices == b.indices && a.rows == b.rows && a.cols == b.cols && a.nnz == b.nnz &&
         a.wide == b.wide;
}

/// The first n elements, the others released where the library can do so in place.
nb::object shortened(const nb::object& array, std::int64_t n, bool numpy) {
  if (!numpy) return array[nb::slice(nb::int_(0), nb::int_(n), nb::none())];
  array.attr("resize")(n, nb::arg("refcheck") = false);
  return array;
}

/// Indices and data of C into arrays with room for most() entries, and no plan any more. @return false: there is no
/// such room
bool multiply_once(std::unique_ptr<AnySpgemm>& plan, const CsrOperands& A, void* on, const Operand& indptr,
                   nb::object& indices, nb::object& data) {
  const std::int64_t most = plan->most();
  if (most < 0) return false;
  try {
    indices = A.data().make_integers(false, most);
    data = A.data().make_like({most});
  } catch (const nb::python_error& error) {
    if (!error.matches(PyExc_MemoryError)) throw;
    return false;
  }
  std::int64_t nnz = 0;
  {
    const Operand to_indices(indices, "indices", Operand::Access::Write), to_data(data, "data", Operand::Access::Write);
    const Running running;
    nnz = plan->once(on, indptr.array().data, to_indices.array().data, to_data.array().data);
    plan.reset();
  }
  const bool numpy = A.data().library() != Library::Torch && A.data().library() != Library::CuPy;
  indices = shortened(indices, nnz, numpy);
  data = shortened(data, nnz, numpy);
  return true;
}

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
    if (check && !same_arrays(A.arrays(), B.arrays())) check_csr(on, B.arrays());
    plan = make_spgemm(on, A.arrays(), B.arrays(), options);
  }
  nb::object indptr = A.data().make_integers(A.arrays().wide, rows + 1);
  const Operand to_indptr(indptr, "indptr", Operand::Access::Write);
  nb::object indices, data;
  if (multiply_once(plan, A, on, to_indptr, indices, data)) return nb::make_tuple(indptr, indices, data);
  std::int64_t nnz = 0;
  {
    const Running running;
    nnz = plan->symbolic(on, to_indptr.array().data);
  }
  indices = A.data().make_integers(false, nnz);
  data = A.data().make_like({nnz});
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
