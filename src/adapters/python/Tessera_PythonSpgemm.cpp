// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "Tessera_Spgemm.hpp"
#include "adapters/python/Tessera_PythonViews.hpp"

namespace Tessera {
namespace Python {
namespace {

template <class Csr>
class Spgemm final : public AnySpgemm {
  using Scalar = typename Csr::value_type;
  using Offset = typename Csr::size_type;
  template <class T>
  using Plain = Kokkos::View<T*, Kokkos::LayoutLeft, Memory, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

 public:
  Spgemm(const Exec& space, const Csr& A, const AnyCsr& B, const SpgemmOptions& options)
      : plan_(space, A, matrix_of<Scalar, Offset>(B), options) {
    const std::int64_t most = Impl::SpgemmOnce::start(plan_, space);
    if (Compat::is_host_v<Exec> && plan_.statistics().backend == to_string(Backend::Kokkos)) most_ = most;
  }
  std::int64_t symbolic(void* stream, void* indptr) override {
    return plan_.symbolic(space_on(stream), Plain<Offset>(static_cast<Offset*>(indptr), length()));
  }
  void numeric(void* stream, const void* indptr, void* indices, void* data) const override {
    const auto nnz = static_cast<std::size_t>(plan_.nnz());
    plan_.numeric(space_on(stream), Plain<const Offset>(static_cast<const Offset*>(indptr), length()),
                  Plain<int>(static_cast<int*>(indices), nnz), Plain<Scalar>(static_cast<Scalar*>(data), nnz));
  }
  std::int64_t most() const override { return most_; }
  std::int64_t once(void* stream, void* indptr, void* indices, void* data) override {
    return Impl::SpgemmOnce::both_phases(plan_, space_on(stream), static_cast<Offset*>(indptr),
                                         static_cast<int*>(indices), static_cast<Scalar*>(data));
  }
  Statistics statistics() const override { return plan_.statistics(); }

 private:
  std::size_t length() const { return static_cast<std::size_t>(plan_.rows()) + 1; }
  SpgemmPlan<Csr> plan_;
  std::int64_t most_ = -1;
};

}  // namespace

std::unique_ptr<AnySpgemm> make_spgemm(void* stream, const AnyCsr& A, const AnyCsr& B, const PlanOptions& from) {
  Impl::require<InvalidArgument>(A.element == B.element && A.wide == B.wide, [] {
    return std::string("spgemm: A and B must have numbers of one type and offsets of one width");
  });
  SpgemmOptions options;
  options.algorithm = parse_spgemm_algorithm(from.algorithm);
  options.backend = parse_backend(from.backend);
  return make_handle<AnySpgemm, Spgemm, false>(stream, A, B, options);
}

}  // namespace Python
}  // namespace Tessera
