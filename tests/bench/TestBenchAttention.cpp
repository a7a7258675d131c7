// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// The benchmark of attention: its check of results. What is run is a matter of the command line (RunBench.cmake).

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "attention/Tessera_BenchAttention.hpp"
#include "driver/Tessera_BenchUniform.hpp"
#include "spmm/Tessera_BenchVerifySpmm.hpp"

namespace {

using namespace Tessera;
using namespace Tessera::Bench;

/// Two heads on 4 x 3: rows of two entries, of none (twice), of three (one column twice); width 2.
struct SmallAttention {
  static constexpr int heads = 2, rows = 4, cols = 3, width = 2;
  AttentionOperands o;
  AttentionColumns transposed;
  const std::vector<std::int64_t> row_map = {0, 2, 2, 2, 5};
  const std::vector<int> of_row = {0, 0, 3, 3, 3}, entries = {0, 2, 1, 1, 2};

  SmallAttention(ElementType element, bool backward) {
    BenchMatrix matrix;
    matrix.csr.rows = rows;
    matrix.csr.cols = cols;
    matrix.csr.row_map = row_map;
    matrix.csr.entries = entries;
    o.A.rows = rows;
    o.A.cols = cols;
    o.A.element = element;
    o.A.row_map = upload_offsets(o.A.space, row_map, 32);
    o.A.entries = upload(o.A.space, "entries", entries);
    o.heads = heads;
    o.columns = width;
    o.scale = 0.75;
    o.backward = backward;
    transposed = AttentionColumns(o.A.space, matrix);
    o.q = seeded(rows, 1);
    o.k = seeded(cols, 2);
    o.v = seeded(cols, 3);
    o.d_o = seeded(rows, 4);
    o.o = seeded(rows, 5);
    o.lse = DeviceArray("lse", heads * rows, bytes_of(o.sum_type()));
    attention_inputs(o);
    if (backward) gradients();
  }
  DeviceArray seeded(int n, std::uint64_t seed) const {
    const DeviceArray a("operand", static_cast<std::size_t>(heads * n * width), bytes_of(o.A.element));
    fill_dense(o.A.space, o.all(a, n), seed);
    return a;
  }
  std::vector<double> numbers(const DeviceArray& a) const { return download(o.A.space, a, o.A.element); }
  /// By plain loops over entries: another order than that of the check.
  void gradients() {
    const auto q = numbers(o.q), k = numbers(o.k), v = numbers(o.v), d_o = numbers(o.d_o), out = numbers(o.o);
    const auto lse = download(o.A.space, o.lse, o.sum_type());
    std::vector<double> d_q(q.size()), d_k(k.size()), d_v(v.size());
    for (int h = 0; h < heads; ++h) {
      for (std::size_t e = 0; e < entries.size(); ++e) {
        const auto i = static_cast<std::size_t>(h * rows + of_row[e]),
                   j = static_cast<std::size_t>(h * cols + entries[e]);
        double product = 0, d_p = 0, delta = 0;
        for (std::size_t c = 0; c < width; ++c) {
          product += q[i * width + c] * k[j * width + c];
          d_p += d_o[i * width + c] * v[j * width + c];
          delta += d_o[i * width + c] * out[i * width + c];
        }
        const double p = std::exp(o.scale * product - lse[i]), d_s = o.scale * p * (d_p - delta);
        for (std::size_t c = 0; c < width; ++c) {
          d_q[i * width + c] += d_s * k[j * width + c];
          d_k[j * width + c] += d_s * q[i * width + c];
          d_v[j * width + c] += p * d_o[i * width + c];
        }
      }
    }
    o.d_q = upload(o.A.space, "dQ", d_q, o.A.element);
    o.d_k = upload(o.A.space, "dK", d_k, o.A.element);
    o.d_v = upload(o.A.space, "dV", d_v, o.A.element);
  }
  /// With number `at` of a result times a factor and plus something.
  Verdict check(DeviceArray AttentionOperands::*which, std::size_t at, double factor, double more,
                const std::string& kernel = "parallel rows", Precision precision = Precision::FP32) const {
    AttentionOperands changed = o;
    std::vector<double> values = numbers(o.*which);
    values[at] = values[at] * factor + more;
    changed.*which = upload(o.A.space, "changed", values, o.A.element);
    return check_attention(changed, transposed, kernel, precision);
  }
};

constexpr ElementType all_types[] = {ElementType::Double, ElementType::Float, ElementType::Half, ElementType::BHalf};

TEST(BenchAttention, AcceptsTheRightAnswer) {
  for (const ElementType type : all_types) {
    for (const bool backward : {false, true}) {
      const SmallAttention small(type, backward);
      const Verdict v = check_attention(small.o, small.transposed, "parallel rows");
      EXPECT_TRUE(v.verified()) << v.fault;
    }
  }
}

TEST(BenchAttention, RefusesWhatIsOutsideTheBound) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const SmallAttention forward(ElementType::Double, false), backward(ElementType::Double, true);
  const Verdict v = forward.check(&AttentionOperands::o, 6, 1 + 1e-12, 0);
  EXPECT_FALSE(v.verified());
  EXPECT_NE(v.fault.find("head 0 of O, number 6"), std::string::npos) << v.fault;
  EXPECT_FALSE(forward.check(&AttentionOperands::o, 2, 1, 1e-12).verified());  // of an empty row
  EXPECT_FALSE(forward.check(&AttentionOperands::o, 15, nan, 0).verified());   // not written
  EXPECT_FALSE(forward.check(&AttentionOperands::lse, 3, 1 + 1e-12, 0).verified());
  for (const auto which : {&AttentionOperands::d_q, &AttentionOperands::d_k, &AttentionOperands::d_v}) {
    EXPECT_FALSE(backward.check(which, 0, 1 + 1e-12, 0).verified());
    EXPECT_FALSE(backward.check(which, 11, 1, HUGE_VAL).verified());  // of the second head
    EXPECT_FALSE(backward.check(which, 11, nan, 0).verified());
  }
  const SmallAttention half(ElementType::Half, false);
  EXPECT_FALSE(half.check(&AttentionOperands::o, 6, 1 + 4.0 / 1024, 0).verified());
}

// Units round weights to 16 bits: the same error is less of the bound, and not nothing.
TEST(BenchAttention, UnitsMayRoundTheirWeights) {
  const SmallAttention small(ElementType::BHalf, false);
  const std::string unit = "Sm80_M16N8K16_F32_BF16";
  const double own = small.check(&AttentionOperands::o, 0, 1, 1.0 / 16).error_over_bound;
  const double with_unit = small.check(&AttentionOperands::o, 0, 1, 1.0 / 16, unit).error_over_bound;
  EXPECT_LT(with_unit, own);
  EXPECT_GT(with_unit, 1);
}
// TF32 rounds operands to 11 bits: 2^-12 of a number of O is within the bound then, 2^-4 is not.
TEST(BenchAttention, Tf32MayRoundItsOperands) {
  const SmallAttention small(ElementType::Float, false);
  const auto check = [&](double factor, Precision precision) {
    return small.check(&AttentionOperands::o, 6, factor, 0, "unit", precision).verified();
  };
  EXPECT_FALSE(check(1 + 0x1p-12, Precision::FP32));
  EXPECT_TRUE(check(1 + 0x1p-12, Precision::TF32));
  EXPECT_FALSE(check(1 + 0x1p-4, Precision::TF32));
}

}  // namespace
