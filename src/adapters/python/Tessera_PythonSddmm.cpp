// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "Tessera_Sddmm.hpp"
#include "adapters/python/Tessera_PythonViews.hpp"

namespace Tessera {
namespace Python {
namespace {

template <class Csr>
class Sddmm final : public Handle<AnySddmm, SddmmPlan<Csr>> {
  using Base = Handle<AnySddmm, SddmmPlan<Csr>>;
  using Scalar = typename Base::Scalar;

 public:
  using Base::Base;

  void apply(void* stream, Op op_y, double alpha, const Array& x, const Array& y, double beta,
             const Array& p) const override {
    Impl::require<NotSupported>(x.element == y.element, [&] {
      return "sddmm: x of " + std::string(Impl::to_string(x.element)) + " with y of " + Impl::to_string(y.element);
    });
    with_operands<Scalar>("sddmm", x.element, p.element, [&](auto x_type, auto p_type) {
      using X = const decltype(x_type);
      using P = decltype(p_type);
      const Exec& space = space_on(stream);
      if (x.rank == 2) {
        this->plan_.apply(space, op_y, alpha, strided<2, X>("x", x), strided<2, X>("y", y), beta,
                          strided<1, P>("out", p));
      } else {
        this->plan_.apply(space, op_y, alpha, strided<3, X>("x", x), strided<3, X>("y", y), beta,
                          strided<2, P>("out", p));
      }
    });
  }
  std::size_t workspace_bytes(std::int64_t inner) const override { return this->plan_.workspace_bytes(inner); }
};

}  // namespace

std::unique_ptr<AnySddmm> make_sddmm(void* stream, const AnyCsr& S, const PlanOptions& from) {
  auto options = common_options<SddmmOptions>(from);
  options.algorithm = parse_sddmm_algorithm(from.algorithm);
  options.scale_by_values = from.scale_by_values;
  options.inner_hint = from.width_hint;
  return make_handle<AnySddmm, Sddmm>(stream, S, options);
}

}  // namespace Python
}  // namespace Tessera
