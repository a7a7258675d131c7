// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// AttentionPlan: o := softmax(scale q k^T on a pattern) v and its gradients; row_softmax.

#include <cmath>
#include <deque>

#include "adapters/python/Tessera_PythonObject.hpp"

namespace Tessera {
namespace Python {
namespace {

using Access = Operand::Access;

/// Operands of a call by name, all of numbers and in their place.
class Operands {
 public:
  const Operand& read(nb::handle object, const char* name) { return take(object, name, Access::Read); }
  const Array& write(nb::handle object, const char* name) { return take(object, name, Access::Write).array(); }

 private:
  const Operand& take(nb::handle object, const char* name, Access access) {
    all_.emplace_back(object, name, access);
    all_.back().require_numbers().require_place();
    return all_.back();
  }
  std::deque<Operand> all_;  // whose elements stay where they are
};

/// Of heads, if q has them.
nb::object make_rows(const Operand& like, std::int64_t rows, std::int64_t columns) {
  const Array& a = like.array();
  return a.rank == 3 ? like.make_like({a.extent[0], rows, columns}) : like.make_like({rows, columns});
}
/// The last extent, 1 of what has no dimension for it: the plan refuses that.
std::int64_t columns_of(const Operand& operand) {
  const Array& a = operand.array();
  return a.rank >= 2 ? a.extent[a.rank - 1] : 1;
}

class AttentionObject : public PlanObject<AnyAttention> {
 public:
  AttentionObject(nb::handle indptr, nb::handle indices, nb::handle data, std::int64_t rows, std::int64_t cols,
                  bool check, nb::handle stream, nb::handle options)
      : PlanObject(make_attention, indptr, indices, data, rows, cols, check, stream, options) {}

  nb::object apply(nb::handle q, nb::handle k, nb::handle v, nb::object out, nb::object lse, nb::handle scale,
                   nb::handle stream) const {
    const AnyAttention& attention = plan();
    Operands operands;
    const Operand &from_q = operands.read(q, "q"), &from_k = operands.read(k, "k"), &from_v = operands.read(v, "v");
    if (out.is_none()) out = make_rows(from_q, arrays().rows, columns_of(from_v));
    const Array& a = from_q.array();
    if (lse.ptr() == Py_False) lse = nb::none();
    if (lse.ptr() == Py_True) {
      lse = a.rank == 3 ? from_q.make_sums({a.extent[0], arrays().rows}) : from_q.make_sums({arrays().rows});
    }
    const Array& to = operands.write(out, "out");
    const Array* const sums = lse.is_none() ? nullptr : &operands.write(lse, "lse");
    const double factor = scale_of(scale, from_q);
    {
      void* const on = from_q.stream(stream);
      const Running running;
      attention.apply(on, factor, a, from_k.array(), from_v.array(), to, sums);
    }
    if (lse.is_none()) return out;
    return nb::make_tuple(out, lse);
  }

  nb::tuple backward(nb::handle grad_out, nb::handle q, nb::handle k, nb::handle v, nb::handle out, nb::handle lse,
                     nb::handle scale, bool grad_values, nb::object into, nb::handle stream) const {
    const AnyAttention& attention = plan();
    Operands operands;
    const Operand &from_q = operands.read(q, "q"), &from_k = operands.read(k, "k"), &from_v = operands.read(v, "v"),
                  &from_o = operands.read(out, "out"), &from_lse = operands.read(lse, "lse"),
                  &from_grad = operands.read(grad_out, "grad_out");
    if (into.is_none()) into = make_gradients(from_q, columns_of(from_v), grad_values);
    Impl::require<InvalidArgument>(nb::isinstance<nb::tuple>(into) && nb::len(into) == (grad_values ? 4U : 3U), [&] {
      return std::string("into is a tuple of arrays for the gradients of q, k, v") +
             (grad_values ? " and the values" : ", and of the values with grad_values=True");
    });
    const auto results = nb::borrow<nb::tuple>(into);
    const Array &d_q = operands.write(results[0], "grad_q"), &d_k = operands.write(results[1], "grad_k"),
                &d_v = operands.write(results[2], "grad_v");
    const Array* const d_values = grad_values ? &operands.write(results[3], "grad_values") : nullptr;
    const double factor = scale_of(scale, from_q);
    void* const on = from_q.stream(stream);
    {
      const Running running;
      attention.backward(on, factor, from_q.array(), from_k.array(), from_v.array(),
                         {&from_o.array(), &from_lse.array(), &from_grad.array(), &d_q, &d_k, &d_v, d_values});
    }
    return results;
  }

 private:
  static double scale_of(nb::handle given, const Operand& q) {
    double scale = 0;
    if (nb::try_cast(given, scale)) return scale;
    if (!given.is_none()) throw nb::type_error("scale must be a number, or None");
    const std::int64_t columns = columns_of(q);
    return columns > 0 ? 1 / std::sqrt(static_cast<double>(columns)) : 1;
  }
  nb::tuple make_gradients(const Operand& q, std::int64_t v_columns, bool values) const {
    const std::int64_t rows = arrays().rows, cols = arrays().cols, columns = columns_of(q);
    const nb::object d_q = make_rows(q, rows, columns), d_k = make_rows(q, cols, columns),
                     d_v = make_rows(q, cols, v_columns);
    if (!values) return nb::make_tuple(d_q, d_k, d_v);
    const Array& a = q.array();
    return nb::make_tuple(d_q, d_k, d_v,
                          a.rank == 3 ? q.make_like({a.extent[0], arrays().nnz}) : q.make_like({arrays().nnz}));
  }
};

/// The rows of a pattern, as far as row_softmax needs them.
class Rows {
 public:
  Rows(nb::handle indptr, const Array& numbers) : indptr_(indptr, "indptr", Access::Read) {
    const Number n = indptr_.number();
    Impl::require<NotSupported>(n == Number::Int32 || n == Number::Int64,
                                [&] { return "indptr must be int32 or int64, not " + indptr_.type(); });
    Impl::require<InvalidArgument>(indptr_.contiguous() && indptr_.size() > 0, [] {
      return std::string("indptr must be one contiguous row of at least one number");
    });
    Impl::require<DimensionMismatch>(numbers.rank == 1 || numbers.rank == 2, [] {
      return std::string("row_softmax: a number per entry, or a row of them per head, has 1 or 2 dimensions");
    });
    indptr_.require_place();
    arrays_.rows = indptr_.size() - 1;
    arrays_.nnz = numbers.extent[numbers.rank - 1];
    arrays_.indptr = indptr_.array().data;
    arrays_.wide = n == Number::Int64;
    arrays_.indices = arrays_.data = arrays_.indptr;  // not looked at, but null is refused
  }
  const AnyCsr& arrays() const noexcept { return arrays_; }

 private:
  Operand indptr_;
  AnyCsr arrays_;
};

nb::object make_of_shape(const Operand& like) {
  const Array& a = like.array();
  return a.rank == 2 ? like.make_like({a.extent[0], a.extent[1]}) : like.make_like({a.extent[0]});
}

nb::object softmax(nb::handle indptr, nb::handle x, nb::object out, nb::handle stream) {
  const Operand from(x, "x", Access::Read);
  from.require_numbers();
  ensure_kokkos(from.device());
  from.require_place();
  const Rows rows(indptr, from.array());
  if (out.is_none()) out = make_of_shape(from);
  const Operand to(out, "out", Access::Write);
  to.require_numbers().require_place();
  void* const on = from.stream(stream);
  const Running running;
  row_softmax(on, rows.arrays(), from.array(), to.array());
  return out;
}

nb::object softmax_backward(nb::handle indptr, nb::handle y, nb::handle grad_y, nb::object out, nb::handle stream) {
  const Operand from(y, "y", Access::Read), grad(grad_y, "grad_y", Access::Read);
  from.require_numbers();
  ensure_kokkos(from.device());
  from.require_place();
  grad.require_numbers().require_place();
  const Rows rows(indptr, from.array());
  if (out.is_none()) out = make_of_shape(from);
  const Operand to(out, "out", Access::Write);
  to.require_numbers().require_place();
  void* const on = from.stream(stream);
  const Running running;
  row_softmax_backward(on, rows.arrays(), from.array(), grad.array(), to.array());
  return out;
}

}  // namespace

void define_attention(nb::module_& m) {
  nb::class_<AttentionObject> c(m, "AttentionPlan", "o := softmax(scale q k^T [+ A] [* A] on the pattern of A) v.");
  c.def(nb::init<nb::handle, nb::handle, nb::handle, std::int64_t, std::int64_t, bool, nb::handle, nb::handle>(),
        nb::arg("indptr"), nb::arg("indices"), nb::arg("data"), nb::arg("rows"), nb::arg("cols"), nb::arg("check"),
        nb::arg("stream").none(), nb::arg("options"));
  c.def("apply", &AttentionObject::apply, nb::arg("q"), nb::arg("k"), nb::arg("v"), nb::arg("out").none() = nb::none(),
        nb::arg("lse").none() = nb::none(), nb::arg("scale").none() = nb::none(), nb::arg("stream").none() = nb::none(),
        "out := softmax(scale <q_i, k_j> [+ a_ij] [* a_ij] over the entries j of row i) v.\n\n"
        "q is (rows, d), k (cols, d), v (cols, e), out (rows, e); or all with one dimension more in front for heads.\n"
        "scale None is 1 / sqrt(d). With lse=True, or an array for it, returns (out, lse), the log-sum-exp of every\n"
        "row's scores, (rows,) or (heads, rows), float64 of float64, else float32: backward needs it. A row without\n"
        "entries gives zeros. Without out, returns a new array of q's library, type and device. stream: as\n"
        "SpmmPlan.apply.");
  c.def("backward", &AttentionObject::backward, nb::arg("grad_out"), nb::arg("q"), nb::arg("k"), nb::arg("v"),
        nb::arg("out"), nb::arg("lse"), nb::arg("scale").none() = nb::none(), nb::arg("grad_values") = false,
        nb::arg("into").none() = nb::none(), nb::arg("stream").none() = nb::none(),
        "(grad_q, grad_k, grad_v), and with grad_values a fourth, of a loss whose gradient by out is grad_out.\n\n"
        "q, k, v and scale are those of apply, out and lse its results. grad_values has a number per entry, or a row\n"
        "of them per head. into: a tuple of arrays to write them to. Needs prepare_backward=True. Deterministic.");
  define_common(c);
  m.def("row_softmax", &softmax, nb::arg("indptr"), nb::arg("x"), nb::arg("out").none() = nb::none(),
        nb::arg("stream").none() = nb::none(), "Softmax of the rows of a pattern; indptr is trusted.");
  m.def("row_softmax_backward", &softmax_backward, nb::arg("indptr"), nb::arg("y"), nb::arg("grad_y"),
        nb::arg("out").none() = nb::none(), nb::arg("stream").none() = nb::none(),
        "The gradient by x of row_softmax from that by its result y; indptr is trusted.");
}

}  // namespace Python
}  // namespace Tessera
