// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include <initializer_list>

#include "Tessera_Attention.hpp"
#include "adapters/python/Tessera_PythonViews.hpp"

namespace Tessera {
namespace Python {
namespace {

template <class Csr>
class Attention final : public Handle<AnyAttention, AttentionPlan<Csr>> {
  using Base = Handle<AnyAttention, AttentionPlan<Csr>>;
  using Scalar = typename Base::Scalar;
  using Sum = typename AttentionPlan<Csr>::sum_type;
  using Gradients = AnyAttention::Gradients;

 public:
  using Base::Base;

  void apply(void* stream, double scale, const Array& q, const Array& k, const Array& v, const Array& o,
             const Array* lse) const override {
    require_element<Scalar>({&q, &k, &v, &o});
    if (lse != nullptr) require_element<Sum>({lse});
    q.rank == 3 ? forward<3>(stream, scale, q, k, v, o, lse) : forward<2>(stream, scale, q, k, v, o, lse);
  }
  void backward(void* stream, double scale, const Array& q, const Array& k, const Array& v,
                const Gradients& g) const override {
    require_element<Scalar>({&q, &k, &v, g.o, g.d_o, g.d_q, g.d_k, g.d_v});
    require_element<Sum>({g.lse});
    if (g.d_values != nullptr) require_element<Scalar>({g.d_values});
    q.rank == 3 ? gradients<3>(stream, scale, q, k, v, g) : gradients<2>(stream, scale, q, k, v, g);
  }
  std::size_t workspace_bytes(std::int64_t columns) const override { return this->plan_.workspace_bytes(columns); }

 private:
  template <class T>
  static void require_element(std::initializer_list<const Array*> arrays) {
    constexpr ElementType own = Impl::ScalarTraits<T>::element;
    for (const Array* a : arrays) {
      Impl::require<NotSupported>(a->element == own, [&] {
        return std::string("attention: operands have the type of the matrix, the log-sum-exp that of its sums: ") +
               Impl::to_string(own) + " is expected, not " + Impl::to_string(a->element);
      });
    }
  }
  template <int Rank>
  void forward(void* stream, double scale, const Array& q, const Array& k, const Array& v, const Array& o,
               const Array* lse) const {
    const Exec& space = space_on(stream);
    const auto from_q = strided<Rank, const Scalar>("q", q), from_k = strided<Rank, const Scalar>("k", k),
               from_v = strided<Rank, const Scalar>("v", v);
    const auto to = strided<Rank, Scalar>("out", o);
    if (lse == nullptr) {
      this->plan_.apply(space, scale, from_q, from_k, from_v, to);
    } else {
      this->plan_.apply(space, scale, from_q, from_k, from_v, to, strided<Rank - 1, Sum>("lse", *lse));
    }
  }
  template <int Rank>
  void gradients(void* stream, double scale, const Array& q, const Array& k, const Array& v, const Gradients& g) const {
    const auto in = [](const char* name, const Array& a) { return strided<Rank, const Scalar>(name, a); };
    const auto to = [](const char* name, const Array& a) { return strided<Rank, Scalar>(name, a); };
    const Exec& space = space_on(stream);
    const auto lse = strided<Rank - 1, const Sum>("lse", *g.lse);
    if (g.d_values == nullptr) {
      this->plan_.backward(space, scale, in("q", q), in("k", k), in("v", v), in("out", *g.o), lse,
                           in("grad_out", *g.d_o), to("grad_q", *g.d_q), to("grad_k", *g.d_k), to("grad_v", *g.d_v));
    } else {
      this->plan_.backward(space, scale, in("q", q), in("k", k), in("v", v), in("out", *g.o), lse,
                           in("grad_out", *g.d_o), to("grad_q", *g.d_q), to("grad_k", *g.d_k), to("grad_v", *g.d_v),
                           strided<Rank - 1, Scalar>("grad_values", *g.d_values));
    }
  }
};

AttentionValues parse_values(const std::string& name) {
  if (name == "none") return AttentionValues::None;
  if (name == "bias") return AttentionValues::Bias;
  if (name == "scale") return AttentionValues::Scale;
  throw InvalidArgument("unknown values '" + name + "'; known: none, bias, scale");
}

template <class Scalar>
std::unique_ptr<AnyAttention> make(void* stream, const AnyCsr& A, const AttentionOptions& options) {
  return make_as<AnyAttention, Attention, Scalar, int>(stream, A, options);
}

}  // namespace

std::unique_ptr<AnyAttention> make_attention(void* stream, const AnyCsr& A, const PlanOptions& from) {
  // Plans with offsets of 64 bits are not compiled (attention/Tessera_AttentionInstances.hpp).
  Impl::require<NotSupported>(!A.wide, [] { return std::string("attention: the indptr of a pattern is int32"); });
  auto options = common_options<AttentionOptions>(from);
  options.algorithm = parse_attention_algorithm(from.algorithm);
  options.values = parse_values(from.values);
  options.prepare_backward = from.prepare_backward;
  options.dimension_hint = from.width_hint;
  if (A.element == ElementType::Double) return make<double>(stream, A, options);
  if (A.element == ElementType::Float) return make<float>(stream, A, options);
  if (A.element == ElementType::Half) return make<half_t>(stream, A, options);
  return make<bhalf_t>(stream, A, options);
}

}  // namespace Python
}  // namespace Tessera
