// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// SddmmPlan: p := alpha <x_i, y_j> [* s_ij] + beta p at the entries (i, j) of a pattern.

#include "adapters/python/Tessera_PythonObject.hpp"

namespace Tessera {
namespace Python {
namespace {

class SddmmObject : public PlanObject<AnySddmm> {
 public:
  SddmmObject(nb::handle indptr, nb::handle indices, nb::handle data, std::int64_t rows, std::int64_t cols, bool check,
              nb::handle stream, nb::handle options)
      : PlanObject(make_sddmm, indptr, indices, data, rows, cols, check, stream, options) {}

  nb::object apply(nb::handle x, nb::handle y, nb::object out, double alpha, double beta, const char* op_y,
                   nb::handle stream) const {
    const AnySddmm& product = plan();
    const Op mode = op_of(op_y);
    const Operand from_x(x, "x", Operand::Access::Read), from_y(y, "y", Operand::Access::Read);
    from_x.require_numbers().require_place();
    from_y.require_numbers().require_place();
    if (out.is_none()) {
      Impl::require<InvalidArgument>(beta == 0, [] { return std::string("beta needs an array to add to: give out"); });
      const Array& a = from_x.array();
      out = a.rank == 3 ? from_x.make_like({a.extent[0], arrays().nnz}) : from_x.make_like({arrays().nnz});
    }
    const Operand to(out, "out", Operand::Access::Write);
    to.require_numbers().require_place();
    void* const on = from_x.stream(stream);
    const Running running;
    product.apply(on, mode, alpha, from_x.array(), from_y.array(), beta, to.array());
    return out;
  }
};

}  // namespace

void define_sddmm(nb::module_& m) {
  nb::class_<SddmmObject> c(m, "SddmmPlan", "p := alpha <x_i, y_j> [* s_ij] + beta p.");
  c.def(nb::init<nb::handle, nb::handle, nb::handle, std::int64_t, std::int64_t, bool, nb::handle, nb::handle>(),
        nb::arg("indptr"), nb::arg("indices"), nb::arg("data"), nb::arg("rows"), nb::arg("cols"), nb::arg("check"),
        nb::arg("stream").none(), nb::arg("options"));
  c.def("apply", &SddmmObject::apply, nb::arg("x"), nb::arg("y"), nb::arg("out").none() = nb::none(),
        nb::arg("alpha") = 1.0, nb::arg("beta") = 0.0, nb::arg("op_y") = "N", nb::arg("stream").none() = nb::none(),
        "p_ij := alpha <x_i, y_j> [* s_ij] + beta p_ij for every entry (i, j) of the pattern, in its order.\n\n"
        "x is (rows, K), y (cols, K) or with op_y='T' (K, cols); or both with one dimension more in front for heads,\n"
        "whose results are the rows of p. Without out, returns a new array of x's library, type and device.\n"
        "stream: as SpmmPlan.apply.");
  define_common(c);
}

}  // namespace Python
}  // namespace Tessera
