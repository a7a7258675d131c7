// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// SDDMM with offsets of every type, with numbers of S in another type than X and Y, and with operands that TF32 rounds.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "sddmm/SddmmOperands.hpp"
#include "support/Tessera_TestSddmm.hpp"

namespace Tessera {
namespace Testing {
namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
template <class T>
using Dense = Kokkos::View<T**, Kokkos::LayoutRight, DeviceOf<Exec>>;

SddmmOptions with(SddmmAlgorithm algorithm, Backend backend, ComputeType compute = ComputeType::Auto) {
  SddmmOptions o;
  o.algorithm = algorithm;
  o.backend = backend;
  o.compute = compute;
  o.fallback = false;
  return o;
}
const std::vector<SddmmOptions>& kernels() {
  static const std::vector<SddmmOptions> all = [] {
    std::vector<SddmmOptions> list = {with(SddmmAlgorithm::Rows, Backend::Kokkos),
                                      with(SddmmAlgorithm::Csr, Backend::Reference)};
    for (const Backend backend : {Backend::EmulatedNvidia, Backend::EmulatedAmd}) {
      for (const SddmmAlgorithm algorithm :
           {SddmmAlgorithm::Rows, SddmmAlgorithm::Panels, SddmmAlgorithm::FlashSparse, SddmmAlgorithm::Bsmr}) {
        list.push_back(with(algorithm, backend));
        // So that both kernels of Bsmr have entries, and rows another order than their own.
        list.back().bsmr.reordering = RowReordering::Clusters;
        list.back().bsmr.dense_from = 7;
      }
    }
    return list;
  }();
  return all;
}
template <class T>
Dense<T> dense(std::int64_t rows, std::int64_t columns, Data data, std::uint64_t seed) {
  const Dense<T> d("dense", static_cast<std::size_t>(rows), static_cast<std::size_t>(columns));
  const auto all = numbers<T>(rows * columns, data, seed);
  std::copy(all.begin(), all.end(), d.data());
  return d;
}

/// P of real numbers, scaled by S, with these offsets.
template <class Offset>
std::vector<double> with_offsets(const SddmmOptions& options) {
  const auto A = make_matrix<double, Offset>("every_length:longest=40:cols=61", Data::Real, 1);
  const DeviceMatrix<Exec, double, Offset> device(A);
  SddmmOptions scaled = options;
  scaled.scale_by_values = true;
  const SddmmPlan<typename DeviceMatrix<Exec, double, Offset>::Csr> plan(Exec(), device.view(), scaled);
  const DeviceVector<Exec, double> p("p", static_cast<std::size_t>(A.nnz()));
  plan.apply(Exec(), dense<double>(A.rows, 9, Data::Real, 2), dense<double>(A.cols, 9, Data::Real, 3), p);
  Exec().fence();
  return to_host(p);
}

// Which numbers are multiplied, and in which order, does not depend on the offsets. That they are right is the suites'.
TEST(SddmmOffsets, OfEveryTypeGiveTheSameBits) {
  for (const SddmmOptions& o : kernels()) {
    SCOPED_TRACE(name_of(o));
    const auto wanted = with_offsets<int>(o);
    EXPECT_NE(wanted, std::vector<double>(wanted.size(), 0));
    EXPECT_TRUE(same_bits(wanted, with_offsets<std::size_t>(o)));
    EXPECT_TRUE(same_bits(wanted, with_offsets<std::ptrdiff_t>(o)));
  }
}

// 64 bits per offset, signed or not, and the usual 32.
TEST(SddmmOffsets, OfEveryTypeGiveWhatPlainLoopsDo) {
  const Pattern pattern = generate("every_length:longest=40:cols=61");
  for (const SddmmOptions& o : kernels()) {
    SCOPED_TRACE(name_of(o));
    for (const int inner : {9, 11, 32, 50}) {
      offsets_of_type<Exec, double, int>(o, pattern, inner);
      offsets_of_type<Exec, double, std::size_t>(o, pattern, inner);
      offsets_of_type<Exec, double, std::ptrdiff_t>(o, pattern, inner);
#ifndef TESSERA_TEST_FEWER_TYPES
      offsets_of_type<Exec, float, std::size_t>(o, pattern, inner);
#endif
    }
  }
}

/// P of whole numbers, which are exact in any order, with columns of this type.
template <class Column>
std::vector<double> with_columns(const SddmmOptions& options) {
  const auto A = make_matrix<double>("every_length:longest=40:cols=61", Data::Integers, 1);
  const DeviceMatrix<Exec, double> device(A);
  const Kokkos::View<Column*, DeviceOf<Exec>> entries("entries", A.entries.size());
  std::copy(A.entries.begin(), A.entries.end(), entries.data());
  const auto S = csr_view(Column(A.rows), Column(A.cols), device.view().row_map(), entries, device.view().values());
  const SddmmPlan plan(Exec(), S, options);
  const DeviceVector<Exec, double> p("p", static_cast<std::size_t>(A.nnz()));
  plan.apply(Exec(), dense<double>(A.rows, 9, Data::Integers, 2), dense<double>(A.cols, 9, Data::Integers, 3), p);
  Exec().fence();
  return to_host(p);
}

// Backends know columns of 32 bits alone.
TEST(SddmmColumns, Of64Bits) {
  for (const SddmmOptions& o : kernels()) {
    SCOPED_TRACE(name_of(o));
    const auto wanted = with_columns<int>(o);
    EXPECT_NE(wanted, std::vector<double>(wanted.size(), 0));
    EXPECT_EQ(wanted, with_columns<std::int64_t>(o));
  }
}

// What the tests above have of Bsmr.
TEST(SddmmOffsets, BothKernelsOfBsmrHaveEntries) {
  const auto A = make_matrix<double>("every_length:longest=40:cols=61", Data::Integers, 1);
  const DeviceMatrix<Exec, double> device(A);
  int seen = 0;
  for (const SddmmOptions& o : kernels()) {
    if (o.algorithm != SddmmAlgorithm::Bsmr) continue;
    const Statistics s = SddmmPlan<DeviceMatrix<Exec, double>::Csr>(Exec(), device.view(), o).statistics();
    EXPECT_TRUE(s.matrix_unit_share > 0.1 && s.matrix_unit_share < 0.9) << s.matrix_unit_share;
    EXPECT_EQ(s.launches, 2);
    ++seen;
  }
  EXPECT_EQ(seen, 2);
}

// S of double scales products of half_t: exact on integers.
TEST(SddmmValues, OfAnotherTypeThanXAndY) {
  const auto A = make_matrix<double>("every_length:longest=40:cols=61", Data::Integers, 1);
  const DeviceMatrix<Exec, double> device(A);
  constexpr int inner = 21;
  const auto x = dense<half_t>(A.rows, inner, Data::Integers, 2), y = dense<half_t>(A.cols, inner, Data::Integers, 3);
  std::vector<double> wanted(static_cast<std::size_t>(A.nnz()), 1);
  Reference::sddmm(A.rows, inner, A.row_map.data(), A.entries.data(), A.values.data(), 2.5, x, y, -1,
                   [&](auto e) -> double& { return wanted[static_cast<std::size_t>(e)]; });
  for (SddmmOptions o : kernels()) {
    if (o.backend == Backend::Reference) continue;  // has no precision of its own
    SCOPED_TRACE(name_of(o));
    o.compute = ComputeType::FP16_FP32;
    o.scale_by_values = true;
    const SddmmPlan<DeviceMatrix<Exec, double>::Csr> plan(Exec(), device.view(), o);
    EXPECT_EQ(plan.statistics().compute, "fp16");
    const DeviceVector<Exec, float> p("p", wanted.size());
    Kokkos::deep_copy(p, 1);
    plan.apply(Exec(), Op::NoTrans, 2.5, x, y, -1, p);
    Exec().fence();
    EXPECT_EQ(wide(to_host(p)), wanted);
  }
}

/// <X_i, Y_j> of eight equal numbers in X and ones in Y.
float product_of_eight(float number, SddmmAlgorithm algorithm) {
  const auto A = make_matrix<float>("dense:rows=1:cols=1", Data::Integers, 1);
  const DeviceMatrix<Exec, float> device(A);
  const SddmmPlan<DeviceMatrix<Exec, float>::Csr> plan(Exec(), device.view(),
                                                       with(algorithm, Backend::EmulatedNvidia, ComputeType::TF32));
  const Dense<float> x("x", 1, 8), y("y", 1, 8);
  Kokkos::deep_copy(x, number);
  Kokkos::deep_copy(y, 1);
  const DeviceVector<Exec, float> p("p", 1);
  plan.apply(Exec(), x, y, p);
  Exec().fence();
  return p(0);
}
// 10 bits of mantissa: 1 + 2^-12 is rounded down, 1 + 3 2^-12 up. By rows TF32 is FP32, which holds both.
TEST(SddmmTf32, RoundsOnMatrixUnitsAlone) {
  const float low = 1 + 0x1p-12f, high = 1 + 0x3p-12f;
  EXPECT_EQ(product_of_eight(low, SddmmAlgorithm::Panels), 8);
  EXPECT_EQ(product_of_eight(high, SddmmAlgorithm::Panels), 8 * (1 + 0x1p-10f));
  EXPECT_EQ(product_of_eight(low, SddmmAlgorithm::Rows), 8 * low);
  EXPECT_EQ(product_of_eight(high, SddmmAlgorithm::Rows), 8 * high);
}

/// The largest error of P in u = 2^-24 of its sum's magnitude, less K.
double rounds_beyond(const SddmmPlan<DeviceMatrix<Exec, float>::Csr>& plan, const HostMatrix<float>& A, int inner,
                     bool signs) {
  const Dense<float> x("x", static_cast<std::size_t>(A.rows), static_cast<std::size_t>(inner)),
      y("y", static_cast<std::size_t>(A.cols), static_cast<std::size_t>(inner));
  worst_for_parts(x.data(), x.size(), signs, 1);
  worst_for_parts(y.data(), y.size(), signs, 2);
  const DeviceVector<Exec, float> p("p", static_cast<std::size_t>(A.nnz()));
  plan.apply(Exec(), x, y, p);
  Exec().fence();
  double worst = 0;
  for (std::int64_t i = 0; i < A.rows; ++i) {
    for (auto e = A.row_map[static_cast<std::size_t>(i)]; e < A.row_map[static_cast<std::size_t>(i) + 1]; ++e) {
      long double sum = 0, size = 0;
      for (int k = 0; k < inner; ++k) {
        const long double term = static_cast<long double>(x(i, k)) * y(A.entries[static_cast<std::size_t>(e)], k);
        sum += term;
        size += std::fabs(term);
      }
      worst = std::max(worst, static_cast<double>(std::fabs(p(e) - sum) / size * 0x1p24L));
    }
  }
  return worst - inner;
}
// FP32 is FP32 on matrix units as well, also where these multiply parts of numbers and few products are summed.
TEST(SddmmFp32, KeepsItsBound) {
  const auto A = make_matrix<float>("every_length:longest=20:cols=21", Data::Integers, 1);
  const DeviceMatrix<Exec, float> device(A);
  for (const SddmmAlgorithm algorithm : {SddmmAlgorithm::Panels, SddmmAlgorithm::Bsmr, SddmmAlgorithm::Rows}) {
    for (const Backend backend : {Backend::EmulatedNvidia, Backend::EmulatedAmd}) {
      const SddmmOptions options = with(algorithm, backend);
      SCOPED_TRACE(name_of(options));
      const SddmmPlan<DeviceMatrix<Exec, float>::Csr> plan(Exec(), device.view(), options);
      for (int inner = 1; inner <= 64; ++inner) {
        for (const bool signs : {false, true}) EXPECT_LE(rounds_beyond(plan, A, inner, signs), 2) << "K = " << inner;
      }
    }
  }
}

}  // namespace
}  // namespace Testing
}  // namespace Tessera
