// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// What must hold of Auto's rules for SpMV wherever their thresholds lie. The thresholds are measured: the notes have
// the matrices.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "spmv/Tessera_SpmvRules.hpp"

namespace Tessera {
namespace Testing {
namespace {

constexpr SpmvAlgorithm every_algorithm[] = {SpmvAlgorithm::PackedSlices, SpmvAlgorithm::Dasp, SpmvAlgorithm::Csr5,
                                             SpmvAlgorithm::Csr};

/// Rows of `mean` entries of which nothing is known that would help.
SpmvFeatures rows_of(double mean, std::int64_t rows = 100000) {
  SpmvFeatures f;
  f.rows = f.cols = rows;
  f.mean = mean;
  f.nnz = static_cast<std::int64_t>(mean * static_cast<double>(rows));
  f.longest = static_cast<std::int64_t>(2 * mean) + 1;
  f.sectors = 0.5;
  return f;
}
Impl::SpmvChoice choice_of(const SpmvFeatures& f, Precision precision, bool host, bool natural = true) {
  Impl::SpmvChoice c;
  c.precision = precision;
  Impl::predict_spmv(c, f, host, natural);
  return c;
}

TEST(SpmvRules, BytesGrowWithTheMatrix) {
  for (const SpmvAlgorithm a : every_algorithm) {
    SCOPED_TRACE(to_string(a));
    for (const int bytes : {2, 4, 8}) {
      const auto predicted = [&](const SpmvFeatures& f) { return Impl::predicted_bytes(a, f, bytes); };
      EXPECT_LT(predicted(rows_of(10)), predicted(rows_of(11))) << "more entries";
      SpmvFeatures f = rows_of(10);
      const double plain = predicted(f);
      EXPECT_GE(plain, static_cast<double>(f.nnz) * bytes) << "each value is read";
      if (bytes < 8) {
        EXPECT_LT(plain, Impl::predicted_bytes(a, f, 2 * bytes)) << "wider values";
      }
      f.sectors = 1;
      EXPECT_LT(plain, predicted(f)) << "more of x";
    }
  }
}

// What packed slices make use of never speaks against them.
TEST(SpmvRules, StructureSpeaksForPackedSlices) {
  for (const int bytes : {2, 4, 8}) {
    const auto packed = [&](const SpmvFeatures& f) {
      return Impl::predicted_bytes(SpmvAlgorithm::PackedSlices, f, bytes);
    };
    const auto never_rises = [&](const std::string& what, double SpmvFeatures::*share) {
      SCOPED_TRACE(what);
      SpmvFeatures f = rows_of(10);
      double last = packed(f);
      for (f.*share = 0; f.*share <= 1; f.*share += 0.125) {
        EXPECT_LE(packed(f), last);
        last = packed(f);
      }
    };
    never_rises("narrow windows", &SpmvFeatures::narrow);
    never_rises("pairs of rows", &SpmvFeatures::same2);
    never_rises("triples of rows", &SpmvFeatures::same3);
    never_rises("shifted rows", &SpmvFeatures::shift);
  }
}

// On devices the fewest predicted bytes decide; formats without a kernel for the precision are no candidates.
TEST(SpmvRules, TheFewestBytesAreTakenOnDevices) {
  for (const Precision precision : {Precision::FP64, Precision::FP32, Precision::FP16, Precision::BF16}) {
    for (const double mean : {1.0, 3.0, 9.0, 40.0, 700.0}) {
      for (const bool natural : {false, true}) {
        const auto c = choice_of(rows_of(mean), precision, false, natural);
        ASSERT_FALSE(c.candidates.empty());
        EXPECT_EQ(c.algorithm, c.candidates[0].algorithm);
        for (const auto& candidate : c.candidates) {
          EXPECT_LE(c.candidates[0].cost, candidate.cost);
          if (!natural) {
            EXPECT_NE(candidate.algorithm, SpmvAlgorithm::Csr) << "a rounded matrix needs a format of its own";
            EXPECT_NE(candidate.algorithm, SpmvAlgorithm::Csr5) << "a rounded matrix needs a format of its own";
          }
          if (precision == Precision::FP32) {
            EXPECT_NE(candidate.algorithm, SpmvAlgorithm::Dasp) << "no matrix instruction";
          }
        }
        EXPECT_NE(c.why.find(to_string(c.algorithm)), std::string::npos) << c.why;
      }
    }
  }
}

// Hosts: CSR for small matrices of short rows and 16-bit numbers; more entries never move Auto back to it.
TEST(SpmvRules, LargerMatricesStayPackedOnHosts) {
  for (const Precision precision : {Precision::FP64, Precision::FP32}) {
    for (const double mean : {1.0, 3.0, 7.0, 9.0, 60.0}) {
      bool packed = false;
      for (std::int64_t rows = 16; rows <= 1 << 22; rows *= 2) {
        const bool now = choice_of(rows_of(mean, rows), precision, true).algorithm == SpmvAlgorithm::PackedSlices;
        EXPECT_TRUE(now || !packed) << rows << " rows of " << mean;
        packed = now;
      }
      EXPECT_TRUE(packed) << mean;
    }
  }
  // FP16 where an instruction widens it; BF16 anywhere.
  EXPECT_EQ(choice_of(rows_of(10), Precision::FP16, true).algorithm,
            host_packed_fast_fp16() ? SpmvAlgorithm::PackedSlices : SpmvAlgorithm::Csr);
  EXPECT_EQ(choice_of(rows_of(10), Precision::BF16, true).algorithm, SpmvAlgorithm::PackedSlices);
  EXPECT_EQ(choice_of(rows_of(10), Precision::FP16, true, false).algorithm, SpmvAlgorithm::PackedSlices)
      << "a rounded matrix needs a format of its own";
}

}  // namespace
}  // namespace Testing
}  // namespace Tessera
