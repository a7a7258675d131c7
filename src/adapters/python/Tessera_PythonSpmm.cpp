// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "Tessera_Spmm.hpp"
#include "adapters/python/Tessera_PythonViews.hpp"

namespace Tessera {
namespace Python {
namespace {

template <class Csr>
class Spmm final : public Handle<AnyProduct, SpmmPlan<Csr>> {
  using Base = Handle<AnyProduct, SpmmPlan<Csr>>;
  using Scalar = typename Base::Scalar;

 public:
  using Base::Base;

  void apply(void* stream, Op op, double alpha, const Array& b, double beta, const Array& c) const override {
    with_operands<Scalar>("spmm", b.element, c.element, [&](auto b_type, auto c_type) {
      this->plan_.apply(space_on(stream), op, alpha, strided<2, const decltype(b_type)>("b", b), beta,
                        strided<2, decltype(c_type)>("out", c));
    });
  }
  std::size_t workspace_bytes(std::int64_t columns) const override { return this->plan_.workspace_bytes(columns); }
};

RowReordering parse_reordering(const std::string& name) {
  if (name == "none") return RowReordering::None;
  if (name == "auto") return RowReordering::Auto;
  if (name == "nearest") return RowReordering::Nearest;
  if (name == "clusters") return RowReordering::Clusters;
  if (name == "greedy") return RowReordering::Greedy;
  throw InvalidArgument("unknown reordering '" + name + "'; known: none, auto, nearest, clusters, greedy");
}

}  // namespace

std::unique_ptr<AnyProduct> make_spmm(void* stream, const AnyCsr& A, const PlanOptions& from) {
  auto options = common_options<SpmmOptions>(from);
  options.algorithm = parse_spmm_algorithm(from.algorithm);
  options.prepare_transpose = from.prepare_transpose;
  options.num_columns_hint = from.width_hint;
  options.reordering = parse_reordering(from.reordering);
  return make_handle<AnyProduct, Spmm>(stream, A, options);
}

}  // namespace Python
}  // namespace Tessera
