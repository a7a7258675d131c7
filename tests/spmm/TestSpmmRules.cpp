// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// What must hold of Auto's rules for SpMM wherever their thresholds lie. The thresholds are measured: the notes have
// the matrices.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/Tessera_ColumnReads.hpp"
#include "spmm/Tessera_GeSpmmEngine.hpp"
#include "spmm/Tessera_SpmmRules.hpp"

namespace Tessera {
namespace Testing {
namespace {

const std::vector<std::int64_t>& widths() {
  static const std::vector<std::int64_t> all = {1, 8, 16, 17, 32, 33, 64, 100, 128, 129, 256, 512};
  return all;
}
std::vector<Precision> precisions() {
  return {Precision::FP64, Precision::FP32, Precision::TF32, Precision::FP16, Precision::BF16};
}
/// Rows of `mean` entries in a square matrix whose windows of 8 rows share columns `g8` times.
SpmmFeatures sharing(double mean, double g8) {
  SpmmFeatures f;
  f.rows = f.cols = 100000;
  f.mean = mean;
  f.nnz = static_cast<std::int64_t>(mean * static_cast<double>(f.rows));
  f.longest = static_cast<std::int64_t>(2 * mean) + 1;
  f.g8 = f.g16 = f.g32 = f.g64 = g8;
  f.reach = 1000;
  return f;
}
SpmmOptions of_width(std::int64_t columns) {
  SpmmOptions o;
  o.num_columns_hint = static_cast<int>(columns);
  return o;
}
Impl::SpmmChoice choice_of(const SpmmFeatures& f, Precision precision, const SpmmOptions& o) {
  Impl::SpmmChoice c;
  c.backend = Backend::EmulatedNvidia;
  c.precision = precision;
  c.pattern = Impl::ge_spmm_pattern(f, precision, o);
  Impl::predict_spmm(c, f, o, true);
  return c;
}

TEST(SpmmRules, TheCheapestCandidateIsTaken) {
  for (const Precision precision : precisions()) {
    for (const std::int64_t columns : widths()) {
      for (const double g8 : {1.0, 2.0, 3.0, 5.0, 8.0}) {
        const auto c = choice_of(sharing(20, g8), precision, of_width(columns));
        ASSERT_FALSE(c.candidates.empty());
        EXPECT_EQ(c.algorithm, c.candidates[0].algorithm);
        for (const auto& candidate : c.candidates) EXPECT_LE(c.candidates[0].cost, candidate.cost);
        EXPECT_NE(c.why.find(to_string(c.algorithm)), std::string::npos) << c.why;
        EXPECT_NE(c.why.find(std::to_string(columns) + " columns"), std::string::npos) << c.why;
      }
    }
  }
}

// Rows that share more columns never move Auto from a format of windows to rows.
TEST(SpmmRules, SharingSpeaksForWindows) {
  for (const Precision precision : precisions()) {
    for (const std::int64_t columns : widths()) {
      for (const double mean : {3.0, 20.0, 300.0}) {
        SCOPED_TRACE(std::string(to_string(precision)) + ", " + std::to_string(columns) + " columns, rows of " +
                     std::to_string(mean));
        bool windows = false;
        for (double g8 = 1; g8 <= 8; g8 += 0.125) {
          const bool now =
              choice_of(sharing(mean, g8), precision, of_width(columns)).algorithm != SpmmAlgorithm::GeSpmm;
          EXPECT_TRUE(now || !windows) << "at " << g8;
          windows = now;
        }
        // One column, and 17 of a small matrix: rows of B that are not aligned.
        const bool ever = columns > 1 && (columns != 17 || mean > 3);
        EXPECT_EQ(windows, ever) << "all eight rows of a window use the same columns";
        EXPECT_EQ(choice_of(sharing(mean, 1), precision, of_width(columns)).algorithm, SpmmAlgorithm::GeSpmm)
            << "no two rows of a window share a column";
      }
    }
  }
}

// Choices that were measured (perf_test/notes/auto.md): few very long rows, long rows, short rows beside long ones.
TEST(SpmmRules, MeasuredChoices) {
  const auto panels = [](std::int64_t rows, double mean, std::int64_t longest, double g8, Precision precision,
                         std::int64_t columns) {
    SpmmFeatures f = sharing(mean, g8);
    f.rows = rows, f.nnz = static_cast<std::int64_t>(mean * static_cast<double>(rows)), f.longest = longest;
    return choice_of(f, precision, of_width(columns)).algorithm == SpmmAlgorithm::Panels;
  };
  EXPECT_TRUE(panels(36, 17685, 42032, 2, Precision::TF32, 64));
  EXPECT_FALSE(panels(36, 17685, 42032, 2, Precision::TF32, 32));
  EXPECT_FALSE(panels(36, 17685, 42032, 2, Precision::FP16, 64));
  EXPECT_TRUE(panels(4267, 597, 4194, 1.83, Precision::TF32, 32));
  EXPECT_TRUE(panels(4267, 597, 4194, 1.83, Precision::FP64, 32));
  EXPECT_FALSE(panels(5000, 261, 4067, 1.33, Precision::FP64, 32));
  EXPECT_TRUE(panels(4000, 470, 486, 1.49, Precision::FP64, 128));
  EXPECT_FALSE(panels(4000, 470, 486, 1.49, Precision::FP64, 64));
  EXPECT_TRUE(panels(2000, 500, 500, 2.24, Precision::FP64, 32));
  EXPECT_FALSE(panels(2048, 113, 124, 2.04, Precision::FP64, 128));
  EXPECT_TRUE(panels(3000, 624, 649, 1.97, Precision::FP32, 128));
  EXPECT_FALSE(panels(4000, 470, 486, 1.49, Precision::FP32, 128));
  EXPECT_TRUE(panels(1000, 221, 238, 2.07, Precision::TF32, 64));
  EXPECT_FALSE(panels(4000, 470, 486, 1.49, Precision::TF32, 128));
  EXPECT_TRUE(panels(512, 520, 545, 2.25, Precision::FP16, 128));
  EXPECT_FALSE(panels(325557, 9.9, 2716, 2.76, Precision::FP16, 32));
  EXPECT_TRUE(panels(325557, 9.9, 2716, 2.76, Precision::FP16, 64));
  EXPECT_FALSE(panels(209352, 6.1, 7, 3.17, Precision::TF32, 100));
  EXPECT_TRUE(panels(58407, 41.6, 81, 3.37, Precision::TF32, 100));
  EXPECT_FALSE(panels(209352, 6.1, 7, 3.17, Precision::FP16, 16));
}

// Matrices that were measured (perf_test/notes/spmm-rows.md): rows of B that are not aligned are copied where a row is
// used often and the product is large, the sooner the narrower the words.
TEST(SpmmRules, CopiesOfOddRows) {
  const auto copies = [](std::int64_t rows, std::int64_t nnz, std::int64_t b_rows, std::int64_t columns, int element,
                         int word) { return Impl::ge_spmm_copies_odd_rows(rows, nnz, b_rows, columns, element, word); };
  EXPECT_TRUE(copies(60000, 2400000, 60000, 65, 4, 4));
  EXPECT_TRUE(copies(60000, 2400000, 60000, 65, 2, 2));
  EXPECT_FALSE(copies(60000, 2400000, 60000, 65, 8, 8));
  EXPECT_TRUE(copies(25000, 3752317, 25000, 7, 8, 8));
  EXPECT_FALSE(copies(60000, 2400000, 60000, 7, 4, 4)) << "few columns";
  EXPECT_FALSE(copies(60000, 2400000, 60000, 100, 2, 8)) << "words of eight bytes";
  EXPECT_FALSE(copies(334887, 3006739, 334887, 65, 4, 4)) << "used nine times";
  EXPECT_FALSE(copies(357840, 1050000, 13824, 65, 4, 4)) << "rows of three entries";
  EXPECT_FALSE(copies(1200, 120000, 1200, 65, 2, 2)) << "a small product";
  EXPECT_FALSE(copies(60000, 2400000, 60000, 64, 4, 16)) << "aligned";
  // 1,200 entries per row: a copy has eight halves of one column, and takes longer than the product.
  for (const std::int64_t columns : {1, 2, 3}) {
    for (const int element : {2, 4, 8}) EXPECT_FALSE(copies(10000, 12000000, 10000, columns, element, element));
  }
  EXPECT_TRUE(copies(10000, 12000000, 10000, 5, 2, 2));
}

// Columns where they lie: whether neighbouring rows use entries near each other.
TEST(SpmmRules, ScatterInColumns) {
  SpmmFeatures f = sharing(20, 1.3);
  EXPECT_EQ(Impl::scatter_in_columns(f), 0);
  EXPECT_FALSE(Impl::uneven_rows(f));
  f.g8 = 1;
  EXPECT_EQ(Impl::scatter_in_columns(f), f.reach);
  f.longest = 2000;
  f.g8 = 1.3;
  EXPECT_TRUE(Impl::uneven_rows(f));
  EXPECT_EQ(Impl::scatter_in_columns(f), f.reach) << "a community's hubs share columns, its rows do not";
  f.g8 = 1.6;
  EXPECT_EQ(Impl::scatter_in_columns(f), 0);
  Impl::GeSpmmPattern pattern;
  EXPECT_FALSE(Impl::columns_stay_near(pattern, 2, 2)) << "unknown";
  pattern.scatter = 4000;
  EXPECT_TRUE(Impl::columns_stay_near(pattern, 100, 8)) << "four columns at once";
  pattern.scatter = 19000;
  EXPECT_FALSE(Impl::columns_stay_near(pattern, 4, 8));
  EXPECT_FALSE(Impl::columns_stay_near(pattern, 4, 2));
  EXPECT_TRUE(Impl::columns_stay_near(pattern, 2, 2));
}

// Matrices that were measured in both ways (FP64; us through rows, in columns).
TEST(SpmmRules, CopiesOrColumns) {
  const auto copies = [](std::int64_t rows, std::int64_t cols, std::int64_t nnz, std::int64_t columns, bool near) {
    return Impl::seconds_of_columns(nnz, columns, 8, near) > Impl::seconds_of_copies(rows, cols, columns, 8);
  };
  EXPECT_FALSE(copies(5500, 50000, 770000, 2, false));  // 17.5, 13.0
  EXPECT_TRUE(copies(5500, 50000, 770000, 4, false));   // 21.2, 22.9
  EXPECT_TRUE(copies(60000, 60000, 2400000, 2, false));
  EXPECT_FALSE(copies(17000, 17000, 250000, 4, false));
  EXPECT_FALSE(copies(700000, 450000, 770000, 8, false));   // 73.9, 58.3
  EXPECT_FALSE(copies(720000, 550000, 864000, 64, false));  // 607, 483
  EXPECT_TRUE(copies(90000, 110000, 1450000, 12, false));   // 50, 128
  EXPECT_FALSE(copies(114660, 114660, 2970000, 10, true));  // 55, 42: 27 points
  EXPECT_TRUE(copies(114660, 114660, 2970000, 64, true));   // 170, 187
  EXPECT_TRUE(copies(28000, 28000, 2430000, 32, true));     // 35, 65: blocks of four unknowns
  EXPECT_FALSE(copies(650, 520, 338000, 16, true));         // 24, 10
  EXPECT_TRUE(Impl::columns_beat_panels(4000000, 4, Precision::FP64));
  EXPECT_FALSE(Impl::columns_beat_panels(2800000, 8, Precision::FP64));
  EXPECT_TRUE(Impl::columns_beat_panels(2800000, 8, Precision::FP32));
  EXPECT_TRUE(Impl::columns_beat_panels(1500000, 8, Precision::FP16));
}

// What speaks against panels speaks against FlashSparse: it never stands between panels and rows.
TEST(SpmmRules, PanelsComeBeforeFlashSparse) {
  for (const Precision precision : precisions()) {
    for (const std::int64_t columns : widths()) {
      for (const std::int64_t rows : {100, 5000, 10000, 100000}) {
        for (double g8 = 1; g8 <= 8; g8 += 0.25) {
          SpmmFeatures f = sharing(60, g8);
          f.rows = f.cols = rows;
          f.nnz = 60 * rows;
          EXPECT_NE(choice_of(f, precision, of_width(columns)).algorithm, SpmmAlgorithm::FlashSparse)
              << to_string(precision) << ", " << columns << " columns, " << rows << " rows, " << g8;
        }
      }
    }
  }
}

// Rows that FP32 panels leave to rows count twice: what panels would be taken for is theirs no more where all rows are
// short, the more of them the sooner, and for FP32 on NVIDIA's units alone.
TEST(SpmmRules, RowsApartSpeakForRows) {
  for (const std::int64_t columns : widths()) {
    if (columns == 1) continue;  // rows anyway
    for (const Precision precision : precisions()) {
      SpmmFeatures f = sharing(20, 8);
      EXPECT_EQ(choice_of(f, precision, of_width(columns)).algorithm, SpmmAlgorithm::Panels);
      f.brief_entries = f.nnz;
      const auto c = choice_of(f, precision, of_width(columns));
      const bool parts = precision == Precision::FP32;
      EXPECT_EQ(c.algorithm, parts ? SpmmAlgorithm::GeSpmm : SpmmAlgorithm::Panels) << to_string(precision);
    }
    // What the features did not know of comes out when the format is made.
    const SpmmFeatures f = sharing(30, 8);
    bool given_up = false;
    for (std::int64_t apart = 0; apart <= f.nnz; apart += f.nnz / 10) {
      auto c = choice_of(f, Precision::FP32, of_width(columns));
      const bool now = Impl::panels_given_up(c, f, of_width(columns), apart);
      EXPECT_TRUE(now || !given_up) << apart;
      EXPECT_EQ(c.algorithm, now ? SpmmAlgorithm::GeSpmm : SpmmAlgorithm::Panels);
      EXPECT_FALSE(Impl::panels_given_up(c, f, of_width(columns), apart) && now) << "once";
      given_up = now;
    }
    EXPECT_TRUE(given_up) << "all entries are gathered by rows";
  }
  auto c = choice_of(sharing(30, 8), Precision::FP64, of_width(64));
  EXPECT_FALSE(Impl::panels_given_up(c, sharing(30, 8), of_width(64), sharing(30, 8).nnz));
}

// The cost of an algorithm grows with the matrix and falls with sharing.
TEST(SpmmRules, CostsAreMonotone) {
  for (const Precision precision : precisions()) {
    for (const std::int64_t columns : widths()) {
      for (const SpmmAlgorithm a : {SpmmAlgorithm::Panels, SpmmAlgorithm::FlashSparse, SpmmAlgorithm::GeSpmm}) {
        const auto cost = [&](double mean, double g8, bool compact = false) {
          return Impl::predicted_cost(a, sharing(mean, g8), columns, precision, compact);
        };
        EXPECT_LT(cost(10, 2), cost(11, 2));
        EXPECT_GE(cost(10, 2), cost(10, 2.5));
        EXPECT_GE(cost(10, 2), cost(10, 2, true)) << "a copy of B is taken where it pays";
      }
      EXPECT_GT(Impl::least_panel_density(columns, precision), 1) << "rows alone would not be read";
      EXPECT_LT(Impl::least_panel_density(columns, precision), 8) << "a window has no more rows";
      for (const double mean : {3.0, 300.0}) {
        const double many = Impl::least_panel_density_of_whole_words(sharing(mean, 2), columns, precision);
        EXPECT_LE(many, Impl::least_panel_density(columns, precision)) << "more windows speak for panels";
        EXPECT_GT(many, 1);
      }
    }
  }
}

// Rows of B that are not aligned speak for rows, which read them where they lie: more sharing is asked of panels, and
// none suffices for one column or a small product.
TEST(SpmmRules, OddRowsOfB) {
  for (const Precision precision : precisions()) {
    const std::int64_t word = 16 / bytes_of(precision);
    for (const std::int64_t columns : {word, 4 * word, 16 * word}) {
      const auto density = [&](std::int64_t n) { return Impl::least_panel_density(sharing(20, 2), n, precision); };
      EXPECT_GE(density(columns + 1), Impl::least_panel_density_of_whole_words(sharing(20, 2), columns + 1, precision));
      EXPECT_EQ(Impl::least_panel_density_of_odd_rows(columns, precision), 0);
      EXPECT_LT(density(columns + 1), 8) << "a window has no more rows";
    }
    EXPECT_EQ(choice_of(sharing(20, 8), precision, of_width(1)).algorithm, SpmmAlgorithm::GeSpmm);
    SpmmFeatures small = sharing(20, 8);
    small.rows = small.cols = 4096, small.nnz = 20 * small.rows;
    EXPECT_EQ(choice_of(small, precision, of_width(47)).algorithm, SpmmAlgorithm::GeSpmm);
    EXPECT_EQ(choice_of(small, precision, of_width(48)).algorithm, SpmmAlgorithm::Panels) << "rows of whole words";
  }
}

// A copy of B in TF32 is for TF32 alone, obeys its option, and is not given up where there is more reason for it.
TEST(SpmmRules, CopiesOfB) {
  const auto from = [](double mean, double g8, std::int64_t columns, Tf32Copy copy = Tf32Copy::Auto,
                       Precision precision = Precision::TF32) {
    SpmmOptions o = of_width(columns);
    o.gespmm.tf32_copy = copy;
    return Impl::compact_b_from(sharing(mean, g8), precision, o);
  };
  for (const std::int64_t columns : widths()) {
    for (const double g8 : {1.0, 1.4, 2.0, 8.0}) {
      SCOPED_TRACE(std::to_string(columns) + " columns, " + std::to_string(g8));
      bool copied = false;
      for (const double mean : {1.0, 8.0, 12.0, 20.0, 30.0, 100.0, 200.0, 1000.0}) {
        const std::int64_t now = from(mean, g8, columns);
        EXPECT_TRUE(now > 0 || !copied) << "a row of B serves more entries: rows of " << mean;
        EXPECT_LE(now, columns) << "it would not be used";
        copied = now > 0;
        if (copied && mean < 200) {
          EXPECT_GT(from(mean, 1, columns), 0) << "neighbours share less";
        }
        if (copied) {
          EXPECT_GT(from(mean, g8, 2 * columns), 0) << "B is wider";
        }
        EXPECT_EQ(from(mean, g8, columns, Tf32Copy::Never), 0);
        EXPECT_EQ(from(mean, g8, columns, Tf32Copy::Always), 1);
        EXPECT_EQ(from(mean, g8, columns, Tf32Copy::Always, Precision::FP32), 0);
      }
    }
  }
  EXPECT_GT(from(300, 1, 128), 0);
  EXPECT_EQ(from(2, 1, 128), 0);
}

// Rows are spread where the matrix is small and rows are long, and as the option says.
TEST(SpmmRules, SpreadRows) {
  for (const Precision precision : precisions()) {
    for (const std::int64_t columns : widths()) {
      SCOPED_TRACE(std::string(to_string(precision)) + ", " + std::to_string(columns) + " columns");
      const auto spread = [&](std::int64_t rows, double mean, RowSpread wish = RowSpread::Auto, int max_piece = 0) {
        SpmmFeatures f = sharing(mean, 1.2);
        f.rows = rows;
        f.longest = static_cast<std::int64_t>(4 * mean);
        f.nnz = static_cast<std::int64_t>(mean * static_cast<double>(rows));
        SpmmOptions o = of_width(columns);
        o.gespmm.spread = wish;
        o.gespmm.max_piece = max_piece;
        return Impl::ge_spmm_pattern(f, precision, o).spread;
      };
      bool small = true;
      for (const std::int64_t rows : {100, 1000, 10000, 100000, 1000000, 10000000}) {
        const bool now = spread(rows, 20);
        EXPECT_TRUE(small || !now) << rows << " rows, but not fewer";
        small = now;
        EXPECT_FALSE(spread(rows, 20, RowSpread::Never));
        EXPECT_TRUE(spread(rows, 20, RowSpread::Always));
        EXPECT_FALSE(spread(rows, 20, RowSpread::Auto, 64)) << "pieces were asked for";
        EXPECT_FALSE(spread(rows, 1)) << "there is nothing to spread";
      }
      EXPECT_TRUE(spread(100, 20));
      EXPECT_FALSE(small);
      // Even rows where a row of B has up to 32 bytes: short teams are slow on them, too.
      SpmmFeatures even = sharing(40, 1.2);
      even.rows = 1000;
      even.nnz = 40000;
      even.longest = 40;
      const bool narrow = columns * bytes_of(precision) <= 32;
      EXPECT_EQ(Impl::ge_spmm_pattern(even, precision, of_width(columns)).spread, narrow);
      even.rows = 100000;
      even.nnz = 4000000;
      EXPECT_FALSE(Impl::ge_spmm_pattern(even, precision, of_width(columns)).spread) << "many rows";
      even = sharing(8, 1.2);
      even.rows = 1000;
      even.nnz = 8000;
      even.longest = 8;
      EXPECT_FALSE(Impl::ge_spmm_pattern(even, precision, of_width(columns)).spread) << "short rows";
    }
  }
}

// Rows are cut into pieces of at most a bound, even ones only where they are too few to occupy a device.
TEST(SpmmRules, Pieces) {
  const auto bounds = [](std::int64_t rows, std::int64_t mean, std::int64_t row_bytes, int max_piece = 0) {
    GeSpmmOptions o;
    o.max_piece = max_piece;
    return Impl::ge_spmm_piece(o, false, rows, rows * mean, 1, row_bytes);
  };
  for (const std::int64_t row_bytes : {4, 64, 128, 256, 1024}) {
    for (const std::int64_t rows : {1, 36, 1000, 2999, 3000, 4000, 20000, 1000000}) {
      for (const std::int64_t mean : {1, 10, 100, 300, 500, 1000, 2000, 20000}) {
        const Impl::PieceBounds here = bounds(rows, mean, row_bytes);
        EXPECT_GE(here.most, 64);
        EXPECT_GE(here.tolerated, 2 * here.most) << "halves of a row are not worth a launch";
        EXPECT_EQ(bounds(rows, mean, row_bytes, 96).most, 96);
        EXPECT_EQ(bounds(rows, mean, row_bytes, 96).tolerated, 96);
        const bool kept = here.tolerated >= mean + mean / 10;
        EXPECT_TRUE(kept || rows < 3000 || mean > 1024) << rows << " even rows of " << mean;
        EXPECT_TRUE(!kept || rows >= 3000 || rows * mean <= 1000000 || mean < 200) << rows << " even rows of " << mean;
      }
    }
  }
  EXPECT_EQ(Impl::ge_spmm_piece({}, false, 0, 0, 1, 64).most, 64);
  // Few long rows whose sums take one tile: pieces of 256 entries at least.
  EXPECT_EQ(bounds(2000, 500, 128).most, 256);
  EXPECT_EQ(bounds(2200, 500, 132).most, 134);
  EXPECT_EQ(bounds(1000, 500, 128).most, 128) << "a small matrix";
}

// Rows that are spread: longer pieces where a row of B is one or two words, each a lane's.
TEST(SpmmRules, SpreadPieces) {
  for (const int element : {2, 4, 8}) {
    for (const std::int64_t columns : {0, 1, 2, 3, 4, 5, 8, 16, 32, 33, 128}) {
      const Impl::PieceBounds bounds = Impl::ge_spmm_spread_piece(columns, element);
      const bool few = columns == 1 || columns == 2 || (columns == 4 && element < 8) || (columns == 8 && element == 2);
      EXPECT_EQ(bounds.most, few ? 2048 : 512) << columns << " columns of " << element << " bytes";
      EXPECT_EQ(bounds.tolerated, few ? 2048 : 1024);
    }
  }
}

// Hosts, B and C in columns: what is read where it lies.
TEST(SpmmRules, ColumnsOnHosts) {
  const auto in_place = [](std::int64_t per_column, std::int64_t rows, std::int64_t columns, double lines, int bytes) {
    Impl::EntryNearness near;
    near.lines = lines;
    near.numbers = std::min(1.0, 5 * lines);
    const Impl::ColumnReads reads{rows, per_column * rows, rows, columns, bytes, true, near};
    return reads.in_place() < reads.copied();
  };
  for (const std::int64_t columns : {2, 3, 5, 8, 16, 32}) {
    EXPECT_TRUE(in_place(5, 2000, columns, 1, 8)) << "short rows, B in the cache: " << columns;
    EXPECT_TRUE(in_place(5, 1000000, columns, 0.06, 8)) << "a stencil: " << columns;
  }
  for (const std::int64_t columns : {5, 8, 16, 32}) {
    EXPECT_FALSE(in_place(50, 20000, columns, 0.04, 8)) << "rows of B are used often: " << columns;
    EXPECT_FALSE(in_place(5, 1000000, columns, 1, 8)) << "every entry of A waits for lines of B: " << columns;
  }
  // 16 bits: one column after the other, whose rows are summed up for each; of one entry or two, some columns at once.
  EXPECT_TRUE(in_place(5, 2000, 3, 1, 2));
  EXPECT_TRUE(in_place(25, 30000, 2, 1, 2));
  EXPECT_FALSE(in_place(25, 30000, 4, 1, 2));
  EXPECT_FALSE(in_place(5, 2000, 8, 1, 2));
  EXPECT_TRUE(in_place(1, 50000, 8, 1, 2));
  EXPECT_TRUE(in_place(5, 250000, 3, 1, 2));
  EXPECT_FALSE(in_place(5, 270000, 3, 1, 2)) << "copied in parts";
}

}  // namespace
}  // namespace Testing
}  // namespace Tessera
