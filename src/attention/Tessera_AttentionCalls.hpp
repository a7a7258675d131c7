// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_ATTENTION_ATTENTION_CALLS_HPP
#define TESSERA_ATTENTION_ATTENTION_CALLS_HPP

#include <cstdint>
#include <string>
#include <type_traits>

#include "attention/Tessera_AttentionOperands.hpp"

/// \file
/// From the Views of a call of AttentionPlan to operands: types, sizes and places are checked here, before any launch.

namespace Tessera {
namespace Impl {

/// @throw DimensionMismatch
template <class Csr, class Q, class K, class V>
AttentionInput<typename Csr::value_type> attention_input(const Csr& A, const Q& q, const K& k, const V& v) {
  check_attention_views<Csr, Q, K, V>();
  const auto rows = static_cast<std::int64_t>(A.rows()), cols = static_cast<std::int64_t>(A.cols());
  const AttentionInput<typename Csr::value_type> in{dense_batch_of(typename Q::const_type(q)),
                                                    dense_batch_of(typename K::const_type(k)),
                                                    dense_batch_of(typename V::const_type(v)), heads_of(q)};
  require_size("Q", in.q, rows, in.q.matrix.columns, in.heads, in.heads);
  require_size("K", in.k, cols, in.q.matrix.columns, heads_of(k), in.heads);
  require_size("V", in.v, cols, in.v.matrix.columns, heads_of(v), in.heads);
  return in;
}

/// Without a log-sum-exp. @throw DimensionMismatch, InvalidArgument
template <class Csr, class O>
AttentionOutput<typename Csr::value_type> attention_output(const AttentionInput<typename Csr::value_type>& in,
                                                           const O& o) {
  check_attention_views<Csr, O>();
  static_assert(!std::is_const_v<typename O::value_type>, "Tessera::attention: O is written, it must not be const");
  const AttentionOutput<typename Csr::value_type> out{dense_batch_of(o)};
  require_size("O", out.o, in.q.matrix.rows, in.v.matrix.columns, heads_of(o), in.heads);
  require_apart("O and Q", out.o, in.q, in.heads);
  require_apart("O and K", out.o, in.k, in.heads);
  require_apart("O and V", out.o, in.v, in.heads);
  return out;
}

/// `v` is what `view` was, a vector of one rank less than Q. @throw DimensionMismatch
template <class Q, class View, class T>
void require_attention_vector(const char* name, const Q& q, const View& view, const BatchVector<T>& v,
                              std::int64_t size) {
  const auto heads = static_cast<std::int64_t>(Compat::view_rank<View> == 2 ? view.extent(0) : 1);
  require_size("attention", name, v, size, heads, heads_of(q));
}

/// @throw DimensionMismatch, InvalidArgument
template <class Csr, class Q, class O, class L>
AttentionOutput<typename Csr::value_type> attention_output(const AttentionInput<typename Csr::value_type>& in,
                                                           const Q& q, const O& o, const L& lse) {
  check_attention_vectors<Csr, Q, AttentionSum<typename Csr::value_type>, L>();
  auto out = attention_output<Csr>(in, o);
  out.lse = batch_vector_of(lse);
  require_attention_vector("the log-sum-exp", q, lse, out.lse, in.q.matrix.rows);
  require_apart_from("the log-sum-exp", out.lse, in.heads, in.q, in.k, in.v, out.o);
  return out;
}

/// Without a gradient of values. `prepared`: the plan was made for backward.
/// @throw NotSupported, DimensionMismatch, InvalidArgument
template <class Csr, class Q, class O, class L, class DO, class DQ, class DK, class DV>
AttentionGradients<typename Csr::value_type> attention_gradients(bool prepared,
                                                                 const AttentionInput<typename Csr::value_type>& in,
                                                                 const Q& q, const O& o, const L& lse, const DO& d_o,
                                                                 const DQ& d_q, const DK& d_k, const DV& d_v) {
  using T = typename Csr::value_type;
  check_attention_views<Csr, Q, O, DO, DQ, DK, DV>();
  check_attention_vectors<Csr, Q, AttentionSum<T>, L>();
  require<NotSupported>(prepared, [] {
    return std::string("attention: backward needs AttentionOptions::prepare_backward = true when the plan is made");
  });
  const AttentionGradients<T> g{dense_batch_of(typename O::const_type(o)),
                                dense_batch_of(typename DO::const_type(d_o)),
                                batch_vector_of(typename L::const_type(lse)),
                                dense_batch_of(d_q),
                                dense_batch_of(d_k),
                                dense_batch_of(d_v)};
  const std::int64_t m = in.q.matrix.rows, n = in.k.matrix.rows, d = in.q.matrix.columns, e = in.v.matrix.columns;
  require_size("O", g.o, m, e, heads_of(o), in.heads);
  require_size("dO", g.d_o, m, e, heads_of(d_o), in.heads);
  require_size("dQ", g.d_q, m, d, heads_of(d_q), in.heads);
  require_size("dK", g.d_k, n, d, heads_of(d_k), in.heads);
  require_size("dV", g.d_v, n, e, heads_of(d_v), in.heads);
  require_attention_vector("the log-sum-exp", q, lse, g.lse, m);
  require_gradients_apart(in, g);
  return g;
}

/// @throw DimensionMismatch, InvalidArgument
template <class Csr, class Q, class DA>
BatchVector<typename Csr::value_type> attention_gradient_of_values(
    const Csr& A, const AttentionInput<typename Csr::value_type>& in,
    const AttentionGradients<typename Csr::value_type>& g, const Q& q, const DA& d_values) {
  check_attention_vectors<Csr, Q, typename Csr::value_type, DA>();
  const auto v = batch_vector_of(d_values);
  require_attention_vector("the gradient of values", q, d_values, v, static_cast<std::int64_t>(A.nnz()));
  require_apart_from("the gradient of values", v, in.heads, in.q, in.k, in.v, g.o, g.d_o, g.d_q, g.d_k, g.d_v);
  require_apart("attention", "the gradient of values and the log-sum-exp", v, g.lse, in.heads);
  const BatchVector<const typename Csr::value_type> values{A.values().data(), v.size};
  require<InvalidArgument>(!overlap(v.matrix(in.heads), values.matrix(1)),
                           [] { return std::string("attention: the gradient of values and the values overlap"); });
  return v;
}

}  // namespace Impl
}  // namespace Tessera

#endif
