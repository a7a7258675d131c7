// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Which algorithm and backend an SDDMM plan takes, that it says why, and what it says about itself.

#include <gtest/gtest.h>

#include "support/Tessera_TestSddmm.hpp"

namespace Tessera {
namespace Testing {
namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
constexpr const char* forced_algorithm = "TESSERA_FORCE_SDDMM_ALGORITHM";
constexpr const char* forced_backend = "TESSERA_FORCE_BACKEND";
constexpr const char* pattern = "stencil2d:nx=23:ny=31:points=9";

SddmmOptions asking_for(SddmmAlgorithm algorithm, Backend backend = Backend::Auto) {
  SddmmOptions o;
  o.algorithm = algorithm;
  o.backend = backend;
  return o;
}
bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// A pattern and a plan of it.
template <class T>
struct Case {
  explicit Case(const std::string& spec, const SddmmOptions& o = {})
      : A(make_matrix<T>(spec, Data::Integers, 11)), device(A), plan(Exec(), device.view(), o) {}
  void expect_products(int inner) const {
    const SddmmSuite<Exec, T> suite(Backend::Kokkos, SddmmAlgorithm::Rows);
    suite.expect(plan, A, inner, Data::Integers, {2.5, -1});
  }
  HostMatrix<T> A;
  DeviceMatrix<Exec, T> device;
  SddmmPlan<typename DeviceMatrix<Exec, T>::Csr> plan;
};

/// Auto on emulated units: an algorithm that these have, whatever the pattern and K.
template <class T>
void expect_automatic(ComputeType compute, const std::string& spec, int inner) {
  for (const Backend backend : {Backend::EmulatedNvidia, Backend::EmulatedAmd}) {
    SCOPED_TRACE(spec + " on " + to_string(backend) + ", compute " + std::to_string(static_cast<int>(compute)) +
                 ", K = " + std::to_string(inner));
    SddmmOptions o = asking_for(SddmmAlgorithm::Auto, backend);
    o.compute = compute;
    o.inner_hint = inner;
    const Case<T> c(spec, o);
    const Statistics s = c.plan.statistics();
    EXPECT_TRUE(s.algorithm == "panels" || s.algorithm == "rows") << s.algorithm;
    EXPECT_EQ(s.backend, to_string(backend));
    EXPECT_FALSE(s.fallback_taken);
    EXPECT_FALSE(s.why.empty());
    EXPECT_STREQ(s.algorithm.c_str(), to_string(c.plan.options().algorithm));
    EXPECT_EQ(c.plan.options().backend, backend);
    c.expect_products(3);
  }
}
TEST(SddmmAuto, FindsSomethingOnEveryEmulatedUnit) {
  for (const char* spec : {"empty", "empty:rows=0:cols=5", "empty:rows=5:cols=0", "diagonal:rows=100:cols=37",
                           "dense:rows=1:cols=301", "every_length:longest=70:cols=90", pattern}) {
    for (const int inner : {0, 1, 64, 1000000}) expect_automatic<float>(ComputeType::Auto, spec, inner);
  }
  expect_automatic<float>(ComputeType::TF32, pattern, 64);
  expect_automatic<double>(ComputeType::Auto, pattern, 64);
  expect_automatic<half_t>(ComputeType::Auto, pattern, 64);
}

TEST(SddmmAuto, OnHostsIsRowsWhateverThePattern) {
  for (const std::string& spec : shapes()) {
    const Case<float> c(spec);
    const Statistics s = c.plan.statistics();
    EXPECT_EQ(s.algorithm, "rows") << spec;
    EXPECT_EQ(s.backend, "kokkos") << spec;
    EXPECT_EQ(c.plan.features(), nullptr) << "hosts have nothing to look for";
  }
}

// A plan of another precision than the pattern's takes operands of that precision alone.
TEST(SddmmAuto, KeepsThePrecisionThatWasAskedFor) {
  for (const Backend backend : {Backend::Auto, Backend::EmulatedNvidia, Backend::EmulatedAmd}) {
    SddmmOptions o = asking_for(SddmmAlgorithm::Auto, backend);
    o.compute = ComputeType::FP16_FP32;
    const Case<float> c(pattern, o);
    EXPECT_EQ(c.plan.statistics().compute, "fp16") << to_string(backend);
    EXPECT_THROW(c.expect_products(3), NotSupported) << to_string(backend);
  }
}

// Nothing is timed where there is one candidate.
TEST(SddmmAuto, MeasuresNothingOnHosts) {
  for (const Backend backend : {Backend::Auto, Backend::EmulatedNvidia}) {
    SddmmOptions o = asking_for(SddmmAlgorithm::Auto, backend);
    const Case<float> predicted(pattern, o);
    o.selection = Selection::Measure;
    const Case<float> measured(pattern, o);
    EXPECT_EQ(measured.plan.statistics().algorithm, predicted.plan.statistics().algorithm);
    EXPECT_EQ(measured.plan.statistics().why, predicted.plan.statistics().why);
    measured.expect_products(16);
  }
}

TEST(SddmmAsked, ForAnAlgorithm) {
  const SddmmOptions all[] = {asking_for(SddmmAlgorithm::Rows),
                              asking_for(SddmmAlgorithm::Csr),
                              asking_for(SddmmAlgorithm::Rows, Backend::EmulatedNvidia),
                              asking_for(SddmmAlgorithm::Rows, Backend::EmulatedAmd),
                              asking_for(SddmmAlgorithm::Panels, Backend::EmulatedNvidia),
                              asking_for(SddmmAlgorithm::Panels, Backend::EmulatedAmd)};
  for (const SddmmOptions& o : all) {
    SCOPED_TRACE(name_of(o));
    const Case<double> c(pattern, o);
    const Statistics s = c.plan.statistics();
    EXPECT_STREQ(s.algorithm.c_str(), to_string(o.algorithm));
    EXPECT_STREQ(s.backend.c_str(), to_string(o.backend == Backend::Auto ? Backend::Kokkos : o.backend));
    EXPECT_TRUE(contains(s.why, "asked for")) << s.why;
    EXPECT_FALSE(s.fallback_taken);
    c.expect_products(17);
  }
}

// Plain loops for whatever is asked; only Panels is something else than what it gets.
TEST(SddmmAsked, ForPlainLoops) {
  for (const SddmmAlgorithm a :
       {SddmmAlgorithm::Auto, SddmmAlgorithm::Csr, SddmmAlgorithm::Rows, SddmmAlgorithm::Panels}) {
    SCOPED_TRACE(to_string(a));
    SddmmOptions o = asking_for(a, Backend::Reference);
    const Case<double> c(pattern, o);
    const Statistics s = c.plan.statistics();
    EXPECT_EQ(s.backend, "reference");
    EXPECT_EQ(s.launches, 0);
    EXPECT_EQ(s.fallback_taken, a == SddmmAlgorithm::Panels);
    c.expect_products(5);
    o.fallback = false;
    if (a == SddmmAlgorithm::Panels) {
      EXPECT_THROW(Case<double>(pattern, o), NotSupported);
    } else {
      EXPECT_NO_THROW(Case<double>(pattern, o));
    }
  }
}

TEST(SddmmEnvironment, NamesAlgorithmsAndBackends) {
  const Environment amd(forced_backend, "emulated-amd");
  for (const char* name : {"panels", "rows", "csr"}) {
    const Environment e(forced_algorithm, name);
    const Case<double> c(pattern);
    EXPECT_EQ(c.plan.statistics().algorithm, name);
    EXPECT_EQ(c.plan.statistics().backend, std::string(name) == "csr" ? "kokkos" : "emulated-amd");
    c.expect_products(9);
    // Options are stronger, one by one.
    EXPECT_EQ(Case<double>(pattern, asking_for(SddmmAlgorithm::Rows)).plan.statistics().algorithm, "rows");
    const Statistics s = Case<double>(pattern, asking_for(SddmmAlgorithm::Auto, Backend::Reference)).plan.statistics();
    EXPECT_EQ(s.backend, "reference");
  }
  const std::string usual = Case<double>(pattern).plan.statistics().algorithm;
  for (const char* name : {"", "auto"}) {
    const Environment e(forced_algorithm, name);
    EXPECT_EQ(Case<double>(pattern).plan.statistics().algorithm, usual) << "'" << name << "' asks for nothing";
  }
}

TEST(SddmmEnvironment, UnknownNamesAreRefusedWithTheKnownOnes) {
  const Environment e(forced_algorithm, "gespmm");
  try {
    const Case<double> c(pattern);
    ADD_FAILURE() << "was accepted";
  } catch (const InvalidArgument& error) {
    for (const char* part : {"gespmm", "SDDMM algorithm", "auto", "panels", "rows", "csr"}) {
      EXPECT_TRUE(contains(error.what(), part)) << error.what();
    }
  }
}

TEST(SddmmStatistics, AddUp) {
  for (const SddmmOptions& o :
       {asking_for(SddmmAlgorithm::Auto), asking_for(SddmmAlgorithm::Csr),
        asking_for(SddmmAlgorithm::Auto, Backend::Reference), asking_for(SddmmAlgorithm::Rows, Backend::EmulatedNvidia),
        asking_for(SddmmAlgorithm::Panels, Backend::EmulatedNvidia),
        asking_for(SddmmAlgorithm::Panels, Backend::EmulatedAmd)}) {
    SCOPED_TRACE(name_of(o));
    const Case<half_t> c("every_length:longest=70:cols=90", o);
    const Statistics s = c.plan.statistics();
    EXPECT_EQ(s.operation, "sddmm");
    EXPECT_EQ(s.compute, "fp16");
    EXPECT_EQ(s.rows, c.A.rows);
    EXPECT_EQ(s.cols, c.A.cols);
    EXPECT_EQ(s.nnz, c.A.nnz());
    EXPECT_EQ(s.stored, s.nnz) << "no slots are padded";
    EXPECT_EQ(s.padding_ratio, 0);
    EXPECT_DOUBLE_EQ(s.row_mean, static_cast<double>(s.nnz) / static_cast<double>(s.rows));
    EXPECT_EQ(s.csr_bytes, 4u * c.A.row_map.size() + 6u * c.A.entries.size());
    EXPECT_EQ(s.workspace_bytes, c.plan.workspace_bytes(o.inner_hint));
    EXPECT_FALSE(s.transpose_prepared);
    EXPECT_TRUE(s.deterministic);
    EXPECT_FALSE(s.device.empty());
    const bool units = s.algorithm == "panels", groups = s.algorithm == "rows" && s.backend != "kokkos";
    EXPECT_EQ(s.matrix_unit_share, units ? 1 : 0);
    EXPECT_EQ(s.atom.empty(), !units);
    EXPECT_EQ(s.format_bytes, units ? c.plan.format_bytes() : s.csr_bytes + c.plan.format_bytes());
    EXPECT_EQ(c.plan.format_bytes() > 0, units || groups);
    for (const ClassShare& share : s.classes) EXPECT_GT(share.rows, 0) << share.name;
    EXPECT_TRUE(contains(to_json(s), "\"sddmm\""));
  }
}

// Between powers of two words, windows have to share more (perf_test/notes/sddmm.md, "K between powers of two").
TEST(SddmmRules, BetweenPowersOfTwo) {
  const auto panels = [](Precision precision, int inner, double mean, double served) {
    SpmmFeatures f;
    f.rows = f.cols = 60000;
    f.mean = mean;
    f.nnz = static_cast<std::int64_t>(mean * static_cast<double>(f.rows));
    f.longest = static_cast<std::int64_t>(mean) + 1;
    f.g8 = f.g16 = served;
    Impl::SddmmChoice choice;
    choice.backend = Backend::EmulatedNvidia;
    choice.precision = precision;
    SddmmOptions o;
    o.inner_hint = inner;
    Impl::predict_sddmm(choice, f, o);
    return choice.algorithm == SddmmAlgorithm::Panels;
  };
  for (const double mean : {5.0, 40.0}) {
    EXPECT_FALSE(panels(Precision::FP64, 48, mean, 1.79));
    EXPECT_TRUE(panels(Precision::FP64, 48, mean, 3.17));
    EXPECT_FALSE(panels(Precision::FP32, 48, mean, 1.79));
    EXPECT_TRUE(panels(Precision::FP32, 48, mean, 2.38));
    EXPECT_FALSE(panels(Precision::FP16, 48, mean, 1.33));
    EXPECT_TRUE(panels(Precision::FP16, 48, mean, 1.79));
    for (const Precision precision : {Precision::FP32, Precision::FP64}) {
      EXPECT_FALSE(panels(precision, 512 / bytes_of(precision), mean, 1.5));
      EXPECT_TRUE(panels(precision, 512 / bytes_of(precision), mean, 1.7));
    }
  }
}
// Rows that are not aligned are read where they lie unless many entries share one, or words are of two bytes; panels
// have them copied, which rows of few entries do not pay for.
TEST(SddmmRules, RowsThatAreNotAligned) {
  using Impl::sddmm_reads_narrow;
  const double rows = 2e6, bytes = 200;
  for (const int element : {8, 4, 2}) {
    EXPECT_TRUE(sddmm_reads_narrow(8, element, 20 * rows, rows, 2, bytes)) << element;
    EXPECT_FALSE(sddmm_reads_narrow(8, element, 100 * rows, rows, 2, bytes)) << element;
    EXPECT_TRUE(sddmm_reads_narrow(8, element, 100000, 2000, 2, bytes)) << element << ": two launches take longer";
  }
  EXPECT_TRUE(sddmm_reads_narrow(4, 4, 3 * rows, rows, 2, bytes));
  EXPECT_FALSE(sddmm_reads_narrow(4, 4, 20 * rows, rows, 2, bytes));
  EXPECT_FALSE(sddmm_reads_narrow(4, 2, 3 * rows, rows, 2, bytes));
  EXPECT_FALSE(sddmm_reads_narrow(2, 2, 100000, 2000, 2, bytes));
  EXPECT_EQ(Impl::sddmm_word_bytes_of(100, Precision::FP16), 8);
  EXPECT_EQ(Impl::sddmm_word_bytes_of(102, Precision::FP16), 4);
  EXPECT_EQ(Impl::sddmm_word_bytes_of(101, Precision::BF16), 2);
  EXPECT_EQ(Impl::sddmm_word_bytes_of(101, Precision::FP32), 4);
  EXPECT_EQ(Impl::sddmm_word_bytes_of(101, Precision::FP64), 8);
  EXPECT_EQ(Impl::sddmm_word_bytes_of(100, Precision::FP32), 16);
  const auto chosen = [](int inner, double mean, double served) {
    SpmmFeatures f;
    f.rows = f.cols = 60000;
    f.mean = mean;
    f.nnz = static_cast<std::int64_t>(mean * static_cast<double>(f.rows));
    f.g8 = f.g16 = served;
    Impl::SddmmChoice choice;
    choice.backend = Backend::EmulatedNvidia;
    choice.precision = Precision::FP16;
    SddmmOptions o;
    o.inner_hint = inner;
    Impl::predict_sddmm(choice, f, o);
    return choice.algorithm;
  };
  for (const int inner : {96, 100, 101}) {
    EXPECT_EQ(chosen(inner, 300, 2), SddmmAlgorithm::Panels) << inner;
    EXPECT_EQ(chosen(inner, 5, 2), inner == 100 ? SddmmAlgorithm::Rows : SddmmAlgorithm::Panels) << inner;
  }
}
// The sentence of the rule carries the numbers that decided.
TEST(SddmmRules, SayWhy) {
  SpmmFeatures f;
  f.rows = f.cols = 1000;
  f.nnz = 12300;
  f.mean = 12.3;
  f.longest = 456;
  f.g8 = 3.25;
  for (const int inner : {8, 128}) {
    Impl::SddmmChoice choice;
    choice.precision = Precision::BF16;
    SddmmOptions o;
    o.inner_hint = inner;
    Impl::predict_sddmm(choice, f, o);
    const std::string why = choice.why;
    for (const std::string& part :
         {std::string(to_string(choice.algorithm)), "K = " + std::to_string(inner), std::string("bf16"),
          std::string("12.3"), std::string("456"), std::string("3.25")}) {
      EXPECT_TRUE(contains(why, part)) << "no '" << part << "' in: " << why;
    }
  }
}

}  // namespace
}  // namespace Testing
}  // namespace Tessera
