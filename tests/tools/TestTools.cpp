// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// What a tool for Kokkos sees: each product of a backend by name, disjoint events, memory that balances. The tool was
// loaded by Kokkos (KOKKOS_TOOLS_LIBS), as a profiler is.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>

#include "Tessera.hpp"
#include "support/Tessera_TestMatrix.hpp"
#include "tools/Tessera_CountingTool.hpp"

namespace Tessera {
namespace Testing {
namespace {

using Exec = Kokkos::DefaultExecutionSpace;
constexpr bool on_host = Compat::is_host_v<Exec>;
/// A backend that launches its own kernels.
constexpr Backend own = on_host ? Backend::EmulatedNvidia : Backend::Auto;
constexpr const char* mesh = "stencil2d:nx=20:ny=20:points=9";
template <class T>
using Array2 = Kokkos::View<T**, Kokkos::LayoutRight, DeviceOf<Exec>>;

class Tool : public testing::Test {
 protected:
  Tool() {
    void* const library = dlopen(TESSERA_COUNTING_TOOL, RTLD_NOLOAD | RTLD_NOW);
    void* const symbol = library == nullptr ? nullptr : dlsym(library, tool_record_function);
    if (symbol == nullptr) throw std::runtime_error("Kokkos has not loaded the counting tool");
    record_ = &reinterpret_cast<ToolRecordFunction>(symbol)();
    record_->kernels.clear();
    record_->regions.clear();
    bytes_before_ = record_->bytes;
  }
  ~Tool() override {
    for (const std::string& fault : record_->faults) ADD_FAILURE() << fault;
    record_->faults.clear();
    for (const auto& [label, bytes] : record_->bytes) {
      // What Kokkos keeps for itself is not ours.
      if (label.rfind("Kokkos::", 0) == 0) continue;
      EXPECT_EQ(bytes, bytes_before_[label]) << label << " was not given back";
    }
  }
  long kernels(const std::string& name) const {
    const auto found = record_->kernels.find(name);
    return found == record_->kernels.end() ? 0 : found->second;
  }
  long regions(const std::string& name) const {
    const auto found = record_->regions.find(name);
    return found == record_->regions.end() ? 0 : found->second;
  }
  /// Held now, of all labels that begin so.
  long bytes(const std::string& prefix) const {
    long sum = 0;
    for (const auto& [label, held] : record_->bytes) {
      if (label.rfind(prefix, 0) == 0) sum += held;
    }
    return sum;
  }

  template <class T>
  void spmv(SpmvAlgorithm algorithm, Backend backend, const std::string& event) {
    const DeviceMatrix<Exec, T> A(make_matrix<T>(mesh, Data::Integers, 1));
    SpmvOptions options;
    options.algorithm = algorithm;
    options.backend = backend;
    const SpmvPlan plan(Exec(), A.view(), options);
    EXPECT_EQ(regions("Tessera::spmv setup"), 1);
    const DeviceVector<Exec, T> x("x", A.view().cols()), y("y", A.view().rows());
    for (int i = 0; i < 3; ++i) plan.apply(Exec(), x, y);
    Exec().fence();
    EXPECT_EQ(kernels(event), 3) << event;
  }
  template <class T>
  void spmm(SpmmAlgorithm algorithm, ComputeType compute, const std::string& event) {
    const DeviceMatrix<Exec, T> A(make_matrix<T>(mesh, Data::Integers, 1));
    SpmmOptions options;
    options.algorithm = algorithm;
    options.compute = compute;
    options.backend = own;
    const SpmmPlan plan(Exec(), A.view(), options);
    const Array2<T> b("b", A.view().cols(), 16), c("c", A.view().rows(), 16);
    for (int i = 0; i < 3; ++i) plan.apply(Exec(), b, c);
    Exec().fence();
    EXPECT_EQ(kernels(event), 3) << event;
  }
  template <class T>
  void sddmm(SddmmAlgorithm algorithm, ComputeType compute, Backend backend, const std::string& event) {
    const DeviceMatrix<Exec, T> S(make_matrix<T>(mesh, Data::Integers, 1));
    SddmmOptions options;
    options.algorithm = algorithm;
    options.compute = compute;
    options.backend = backend;
    const SddmmPlan plan(Exec(), S.view(), options);
    // Rows that are no whole words: the copies are events of Kokkos' own, beside the backend's. Rows reads a few in
    // place.
    const Array2<T> x("x", S.view().rows(), 15), y("y", S.view().cols(), 15);
    const DeviceVector<Exec, T> p("p", S.view().nnz());
    for (int i = 0; i < 3; ++i) plan.apply(Exec(), x, y, p);
    Exec().fence();
    EXPECT_EQ(kernels(event), 3) << event;
    if (backend == own) {
      EXPECT_EQ(kernels("Tessera::sddmm[pack X]"), algorithm == SddmmAlgorithm::Rows ? 0 : 3);
    }
  }

  ToolRecord* record_;

 private:
  std::map<std::string, long> bytes_before_;
};

TEST_F(Tool, SpmvByPackedSlices) {
  spmv<double>(SpmvAlgorithm::PackedSlices, own, "Tessera::spmv[packed,fp64]");
  EXPECT_EQ(regions("Tessera::convert[packed]"), 1);
}
TEST_F(Tool, SpmvByDasp) { spmv<double>(SpmvAlgorithm::Dasp, own, "Tessera::spmv[dasp,fp64]"); }
TEST_F(Tool, SpmvByDaspInSixteenBits) { spmv<half_t>(SpmvAlgorithm::Dasp, own, "Tessera::spmv[dasp,fp16]"); }
TEST_F(Tool, SpmvByThePortableKernel) { spmv<double>(SpmvAlgorithm::Csr, Backend::Kokkos, "Tessera::spmv[csr]"); }

TEST_F(Tool, SpmmByPanels) {
  spmm<double>(SpmmAlgorithm::Panels, ComputeType::Auto, "Tessera::spmm[panels,fp64]");
  EXPECT_EQ(regions("Tessera::convert[panels]"), 1);
}
TEST_F(Tool, SpmmByFlashSparse) {
  spmm<float>(SpmmAlgorithm::FlashSparse, ComputeType::TF32, "Tessera::spmm[flash,tf32]");
}
TEST_F(Tool, SpmmByRows) { spmm<float>(SpmmAlgorithm::GeSpmm, ComputeType::Auto, "Tessera::spmm[gespmm,fp32]"); }

TEST_F(Tool, SddmmByRows) { sddmm<double>(SddmmAlgorithm::Rows, ComputeType::Auto, own, "Tessera::sddmm[rows,fp64]"); }
TEST_F(Tool, SddmmByPanels) {
  sddmm<float>(SddmmAlgorithm::Panels, ComputeType::TF32, own, "Tessera::sddmm[panels,tf32]");
}
TEST_F(Tool, SddmmByFlashSparse) {
  sddmm<half_t>(SddmmAlgorithm::FlashSparse, ComputeType::Auto, own, "Tessera::sddmm[flash,fp16]");
}
TEST_F(Tool, SddmmByBsmr) { sddmm<half_t>(SddmmAlgorithm::Bsmr, ComputeType::Auto, own, "Tessera::sddmm[bsmr,fp16]"); }

TEST_F(Tool, AttentionForwardAndBackward) {
  const DeviceMatrix<Exec, half_t> A(make_matrix<half_t>(mesh, Data::Integers, 1));
  AttentionOptions options;
  options.algorithm = AttentionAlgorithm::Fused;
  options.backend = own;
  options.prepare_backward = true;
  const AttentionPlan plan(Exec(), A.view(), options);
  const auto array = [&](const std::string& label) { return Array2<half_t>(label, A.view().rows(), 16); };
  const auto q = array("q"), k = array("k"), v = array("v"), o = array("o"), d_o = array("d_o"), d_q = array("d_q"),
             d_k = array("d_k"), d_v = array("d_v");
  const DeviceVector<Exec, float> lse("lse", A.view().rows());
  plan.apply(Exec(), 0.25, q, k, v, o, lse);
  plan.backward(Exec(), 0.25, q, k, v, o, lse, d_o, d_q, d_k, d_v);
  Exec().fence();
  EXPECT_EQ(kernels("Tessera::attention[forward,fp16]"), 1);
  EXPECT_EQ(kernels("Tessera::attention[backward by rows,fp16]"), 1);
  EXPECT_EQ(kernels("Tessera::attention[backward by columns,fp16]"), 1);
}
TEST_F(Tool, StagesOfSpgemm) {
  const DeviceMatrix<Exec, double> A(make_matrix<double>(mesh, Data::Integers, 1));
  SpgemmOptions options;
  options.algorithm = SpgemmAlgorithm::Binned;
  options.backend = own;
  SpgemmPlan plan(Exec(), A.view(), A.view(), options);
  const DeviceVector<Exec, std::size_t> row_map("row_map", A.view().rows() + 1);
  const std::int64_t nnz = plan.symbolic(Exec(), row_map);
  const DeviceVector<Exec, int> entries("entries", nnz);
  const DeviceVector<Exec, double> values("values", nnz);
  plan.numeric(Exec(), row_map, entries, values);
  Exec().fence();
  for (const char* const stage : {"look", "columns", "offsets", "numbers"}) {
    EXPECT_GE(kernels(std::string("Tessera::spgemm[") + stage + ",fp64]"), 1) << stage;
  }
}

TEST_F(Tool, ReferencesOnHosts) {
  if (!on_host) GTEST_SKIP() << "Backend::Reference runs on hosts";
  spmv<double>(SpmvAlgorithm::Auto, Backend::Reference, "Tessera::spmv[reference,fp64]");
  sddmm<double>(SddmmAlgorithm::Auto, ComputeType::Auto, Backend::Reference, "Tessera::sddmm[reference,fp64]");
}

// The memory of a format and of scratch, wherever it comes from, and a plan that grows its scratch.
TEST_F(Tool, MemoryOfAPlan) {
  const DeviceMatrix<Exec, double> A(make_matrix<double>(mesh, Data::Integers, 1));
  SpmmOptions options;
  options.algorithm = SpmmAlgorithm::Panels;
  options.backend = own;
  {
    const SpmmPlan plan(Exec(), A.view(), options);
    EXPECT_GE(bytes("Tessera::"), static_cast<long>(plan.format_bytes()));
    long scratch = 0;
    for (const int n : {3, 5, 40}) {  // rows of B that are copied
      const Kokkos::View<double**, Kokkos::LayoutLeft, DeviceOf<Exec>> b("b", A.view().cols(), n),
          c("c", A.view().rows(), n);
      plan.apply(Exec(), b, c);
      Exec().fence();
      EXPECT_GT(bytes("Tessera::scratch"), scratch);
      scratch = bytes("Tessera::scratch");
    }
  }
  EXPECT_EQ(bytes("Tessera::"), 0);
}

}  // namespace
}  // namespace Testing
}  // namespace Tessera
