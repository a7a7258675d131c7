// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "Tessera_Spmv.hpp"
#include "adapters/python/Tessera_PythonViews.hpp"

namespace Tessera {
namespace Python {
namespace {

template <class Csr>
class Spmv final : public Handle<AnyProduct, SpmvPlan<Csr>> {
  using Base = Handle<AnyProduct, SpmvPlan<Csr>>;
  using Scalar = typename Base::Scalar;

 public:
  using Base::Base;

  void apply(void* stream, Op op, double alpha, const Array& x, double beta, const Array& y) const override {
    const auto product = [&](auto x_type, auto y_type) {
      multiply<decltype(x_type), decltype(y_type)>(stream, op, alpha, x, beta, y);
    };
    if constexpr (std::is_same_v<Scalar, float>) {
      if (x.element == ElementType::Double && y.element == ElementType::Double) return product(double(), double());
    }
    with_operands<Scalar>("spmv", x.element, y.element, product);
  }
  std::size_t workspace_bytes(std::int64_t) const override { return this->plan_.workspace_bytes(); }

 private:
  template <class X, class Y>
  void multiply(void* stream, Op op, double alpha, const Array& x, double beta, const Array& y) const {
    const Exec& space = space_on(stream);
    if (x.rank == 1) {
      this->plan_.apply(space, op, alpha, strided<1, const X>("x", x), beta, strided<1, Y>("out", y));
    } else {
      this->plan_.apply(space, op, alpha, strided<2, const X>("x", x), beta, strided<2, Y>("out", y));
    }
  }
};

}  // namespace

std::unique_ptr<AnyProduct> make_spmv(void* stream, const AnyCsr& A, const PlanOptions& from) {
  auto options = common_options<SpmvOptions>(from);
  options.algorithm = parse_spmv_algorithm(from.algorithm);
  options.prepare_transpose = from.prepare_transpose;
  return make_handle<AnyProduct, Spmv>(stream, A, options);
}

}  // namespace Python
}  // namespace Tessera
