// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// SpmvPlan and SpmmPlan: y := alpha op(A) x + beta y.

#include "adapters/python/Tessera_PythonObject.hpp"

namespace Tessera {
namespace Python {
namespace {

class Product : public PlanObject<AnyProduct> {
 public:
  using PlanObject::PlanObject;

  nb::object apply(nb::handle x, nb::object out, double alpha, double beta, const char* op, nb::handle stream) const {
    const AnyProduct& product = plan();
    const Op mode = op_of(op);
    const Operand from(x, "x", Operand::Access::Read);
    from.require_numbers().require_place();
    const Array& a = from.array();
    if (out.is_none()) {
      Impl::require<InvalidArgument>(beta == 0, [] { return std::string("beta needs an array to add to: give out"); });
      const std::int64_t rows = mode == Op::NoTrans ? arrays().rows : arrays().cols;
      out = a.rank == 1 ? from.make_like({rows}) : from.make_like({rows, a.extent[1]});
    }
    const Operand to(out, "out", Operand::Access::Write);
    to.require_numbers().require_place();
    void* const on = from.stream(stream);
    const Running running;
    product.apply(on, mode, alpha, a, beta, to.array());
    return out;
  }
};

class Spmv : public Product {
 public:
  Spmv(nb::handle indptr, nb::handle indices, nb::handle data, std::int64_t rows, std::int64_t cols, bool check,
       nb::handle stream, nb::handle options)
      : Product(make_spmv, indptr, indices, data, rows, cols, check, stream, options) {}
};
class Spmm : public Product {
 public:
  Spmm(nb::handle indptr, nb::handle indices, nb::handle data, std::int64_t rows, std::int64_t cols, bool check,
       nb::handle stream, nb::handle options)
      : Product(make_spmm, indptr, indices, data, rows, cols, check, stream, options) {}
};

template <class Object>
void define(nb::module_& m, const char* name, const char* text, const char* apply_text) {
  nb::class_<Object> c(m, name, text);
  c.def(nb::init<nb::handle, nb::handle, nb::handle, std::int64_t, std::int64_t, bool, nb::handle, nb::handle>(),
        nb::arg("indptr"), nb::arg("indices"), nb::arg("data"), nb::arg("rows"), nb::arg("cols"), nb::arg("check"),
        nb::arg("stream").none(), nb::arg("options"));
  c.def("apply", &Object::apply, nb::arg("x"), nb::arg("out").none() = nb::none(), nb::arg("alpha") = 1.0,
        nb::arg("beta") = 0.0, nb::arg("op") = "N", nb::arg("stream").none() = nb::none(), apply_text);
  define_common(c);
}

}  // namespace

void define_products(nb::module_& m) {
  define<Spmv>(m, "SpmvPlan", "y := alpha op(A) x + beta y.",
               "y := alpha op(A) x + beta y with a vector x, or a matrix of several as columns.\n\n"
               "Without out, returns a new row-major array of x's library, type and device. op is 'N' or 'T' (needs\n"
               "prepare_transpose=True). beta == 0 overwrites out, NaN included. On devices asynchronous on stream (a\n"
               "raw pointer as int; None: the current stream of x's library).");
  define<Spmm>(m, "SpmmPlan", "C := alpha op(A) B + beta C.",
               "out := alpha op(A) x + beta out with a dense matrix x.\n\n"
               "Without out, returns a new row-major array of x's library, type and device. op is 'N' or 'T' (needs\n"
               "prepare_transpose=True). beta == 0 overwrites out, NaN included. On devices asynchronous on stream (a\n"
               "raw pointer as int; None: the current stream of x's library).");
}

}  // namespace Python
}  // namespace Tessera
