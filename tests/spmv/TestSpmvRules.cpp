// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// What must hold of Auto's rules for SpMV wherever their thresholds lie. The thresholds are measured: the notes have
// the matrices.

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "formats/packed/Tessera_CellsRules.hpp"
#include "formats/packed/Tessera_PackedHostRules.hpp"
#include "formats/packed/Tessera_PackedRules.hpp"
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
        EXPECT_NE(c.reason().find(to_string(c.algorithm)), std::string::npos) << c.reason();
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
        SpmvFeatures f = rows_of(mean, rows);
        f.cv = 1;
        const bool now = choice_of(f, precision, true).algorithm == SpmvAlgorithm::PackedSlices;
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

// Hosts: rows of one entry or so need no slices, however many, unless numbers have 16 bits; a long row among few
// entries does.
TEST(SpmvRules, ShortEqualRowsAndOneLongRowOnHosts) {
  for (std::int64_t rows = 16; rows <= 1 << 22; rows *= 8) {
    for (const Precision precision : {Precision::FP64, Precision::FP32}) {
      const auto c = choice_of(rows_of(1, rows), precision, true);
      EXPECT_EQ(c.algorithm, SpmvAlgorithm::Csr) << rows;
      EXPECT_NE(c.reason().find("do not pay"), std::string::npos) << c.reason();
    }
  }
  EXPECT_EQ(choice_of(rows_of(1, 1 << 20), Precision::BF16, true).algorithm, SpmvAlgorithm::PackedSlices);
  EXPECT_EQ(choice_of(rows_of(1), Precision::FP64, true, false).algorithm, SpmvAlgorithm::PackedSlices);
  SpmvFeatures few = rows_of(3, 100);  // 16 bits are widened by vectors in slices
  few.cv = 1;
  EXPECT_EQ(choice_of(few, Precision::BF16, true).algorithm, SpmvAlgorithm::Csr);
  few = rows_of(3, 900);
  EXPECT_EQ(choice_of(few, Precision::FP32, true).algorithm, SpmvAlgorithm::Csr);
  EXPECT_EQ(choice_of(few, Precision::BF16, true).algorithm, SpmvAlgorithm::PackedSlices);
  SpmvFeatures one = rows_of(5, 1000);
  one.cv = 30;
  EXPECT_EQ(choice_of(one, Precision::FP64, true).algorithm, SpmvAlgorithm::Csr);
  one.longest = one.nnz;
  EXPECT_EQ(choice_of(one, Precision::FP64, true).algorithm, SpmvAlgorithm::PackedSlices);
}

// Hosts: small matrices of short rows take slices where rows are alike; less so where one thread has all the work.
TEST(SpmvRules, FewRowsThatAreAlikeOnHosts) {
  const auto taken = [](double mean, std::int64_t rows, double cv, double shift = 0) {
    SpmvFeatures f = rows_of(mean, rows);
    f.cv = cv, f.shift = shift;
    return choice_of(f, Precision::FP64, true).algorithm;
  };
  EXPECT_EQ(taken(6.5, 1138, 0.13), SpmvAlgorithm::PackedSlices);
  EXPECT_EQ(taken(6.5, 1138, 0.45), SpmvAlgorithm::Csr) << "rows of all lengths";
  EXPECT_EQ(taken(6.5, 1138, 0.13, 0.9), SpmvAlgorithm::Csr) << "slices without indices";
  EXPECT_EQ(taken(4, 1000, 0.5), SpmvAlgorithm::PackedSlices) << "one thread's work";
  EXPECT_EQ(taken(4, 1000, 0.7), SpmvAlgorithm::Csr);
  EXPECT_EQ(taken(4, 700, 0), SpmvAlgorithm::Csr) << "too few entries";
  EXPECT_EQ(taken(1.4, 3000, 0.3), SpmvAlgorithm::Csr) << "rows of one entry or little more";
  EXPECT_EQ(taken(2, 3000, 0.3), SpmvAlgorithm::PackedSlices);
}

/// A device with room for tables of x.
DeviceFacts large_device() {
  DeviceFacts d;
  d.wave = 32;
  d.compute_units = 132;
  d.shared_bytes = 227 << 10;
  d.cache_bytes = 50 << 20;
  return d;
}

// Column blocks: x of one fits into shared memory; none where x is local, where rows are short and many, or where an
// option says so. A device without such memory has none.
TEST(PackedRules, ColumnBlocks) {
  const DeviceFacts device = large_device();
  for (const int bytes : {2, 4, 8}) {
    int with_blocks = 0;
    for (const double mean : {2.0, 30.0, 1000.0}) {
      for (std::int64_t rows = 100; rows <= 10000000; rows *= 10) {
        for (const std::int64_t cols : {100, 100000, 400000, 2000000, 100000000}) {
          SpmvFeatures f = rows_of(mean, rows);
          if (f.nnz > 100000000) continue;
          f.cols = cols;
          f.sectors = 0.95;
          const int blocks = Impl::packed_blocks({}, f, device, bytes);
          ASSERT_GE(blocks, 1);
          ASSERT_LE(blocks, packed_max_blocks);
          if (blocks > 1) {
            ++with_blocks;
            EXPECT_LE((cols + blocks - 1) / blocks * bytes, Impl::packed_table_bytes(device));
            EXPECT_GE(mean, 30) << "sums of pieces cost more than their entries";
          }
          EXPECT_EQ(Impl::packed_blocks({}, f, DeviceFacts{}, bytes), 1);
          PackedOptions none;
          none.column_blocks = 0;
          EXPECT_EQ(Impl::packed_blocks(none, f, device, bytes), 1);
          f.sectors = 0.1;
          EXPECT_EQ(Impl::packed_blocks({}, f, device, bytes), 1) << "x is local";
        }
      }
    }
    EXPECT_GT(with_blocks, 0) << bytes << " bytes";
  }
  // An x of more than 64 of them, where each can have a multiprocessor of its own.
  SpmvFeatures wide = rows_of(1000, 3000);
  wide.cols = 2200000;
  wide.sectors = 0.95;
  const int blocks = Impl::packed_blocks({}, wide, device, 8);
  EXPECT_GT(blocks, 64);
  EXPECT_LE(std::int64_t{8} * ((wide.cols + blocks - 1) / blocks), Impl::packed_table_bytes(device));
  DeviceFacts few = device;
  few.compute_units = 80;
  EXPECT_EQ(Impl::packed_blocks({}, wide, few, 8), 1);
}

// Column blocks on hosts: a power of two of them where x is scattered and beyond the first cache and rows are long, the
// more, the larger x is; none where x is local or rows are short.
TEST(PackedRules, ColumnBlocksOnHosts) {
  for (const int bytes : {2, 4, 8}) {
    SCOPED_TRACE(std::to_string(bytes) + " bytes");
    int with_blocks = 0;
    for (const double mean : {2.0, 30.0, 1000.0}) {
      int before = 0;
      for (const std::int64_t cols : {1, 100, 2000, 30000, 400000, 2000000, 100000000}) {
        SpmvFeatures f = rows_of(mean, 3000);
        f.cols = cols;
        f.sectors = 0.95;
        const int blocks = Impl::packed_host_blocks(f, bytes);
        EXPECT_TRUE(blocks == 0 || (blocks >= 2 && blocks <= packed_max_blocks && (blocks & (blocks - 1)) == 0));
        EXPECT_LE(blocks, cols);
        if (mean < 10 || cols * bytes < 32768) {
          EXPECT_EQ(blocks, 0) << mean << " entries per row, " << cols << " columns";
        }
        if (cols * bytes <= 1 << 22) {  // a line beyond the caches costs the same, whatever x is divided by
          EXPECT_GE(blocks, before) << mean << " entries per row, " << cols << " columns";
        }
        before = blocks;
        with_blocks += blocks > 0;
        f.sectors = 0.1;
        EXPECT_EQ(Impl::packed_host_blocks(f, bytes), 0) << "x is local";
        PackedOptions asked;
        for (asked.column_blocks = 0; asked.column_blocks < 3; ++asked.column_blocks) {
          EXPECT_EQ(Impl::packed_host_options(asked, f, bytes).column_blocks, asked.column_blocks);
        }
      }
    }
    EXPECT_GT(with_blocks, 0);
  }
  EXPECT_EQ(Impl::packed_host_blocks(SpmvFeatures{}, 8), 0) << "nothing to multiply";
}

// Columns in the order of their use: skewed and scattered, an x beyond the first level, a device that has room for it
// there, and where no option of columns says otherwise.
TEST(PackedRules, Renumbered) {
  const DeviceFacts device = large_device();
  SpmvFeatures skewed = rows_of(15, 262144);
  skewed.cols = 262144;
  skewed.cv = 7, skewed.sectors = 0.95, skewed.narrow = 0;
  const auto looks = [&](const auto& change, int bytes = 2) {
    SpmvFeatures f = skewed;
    PackedOptions o;
    change(f, o);
    return Impl::packed_may_renumber(o, f, device, bytes);
  };
  for (const int bytes : {2, 4, 8}) EXPECT_EQ(looks([](SpmvFeatures&, PackedOptions&) {}, bytes), bytes < 8) << bytes;
  EXPECT_FALSE(Impl::packed_may_renumber({}, skewed, DeviceFacts{}, 2));
  EXPECT_FALSE(looks([](SpmvFeatures& f, PackedOptions&) { f.cv = 0.5; }));
  EXPECT_FALSE(looks([](SpmvFeatures& f, PackedOptions&) { f.sectors = 0.5; }));
  EXPECT_FALSE(looks([](SpmvFeatures& f, PackedOptions&) { f.narrow = 0.9; }));
  EXPECT_FALSE(looks([](SpmvFeatures& f, PackedOptions&) { f.mean = 3; }));
  EXPECT_FALSE(looks([](SpmvFeatures& f, PackedOptions&) { f.nnz = 1000000; }));
  EXPECT_FALSE(looks([](SpmvFeatures& f, PackedOptions&) { f.nnz = 30000000; })) << "hubs";
  EXPECT_FALSE(looks([](SpmvFeatures& f, PackedOptions&) { f.cols = 100000; }));
  for (const int hubs : {0, 17}) EXPECT_FALSE(looks([=](SpmvFeatures&, PackedOptions& o) { o.hubs = hubs; }));
  EXPECT_FALSE(looks([](SpmvFeatures&, PackedOptions& o) { o.column_blocks = 0; }));
  EXPECT_FALSE(looks([](SpmvFeatures&, PackedOptions& o) { o.renumber = 0; }));
  SpmvFeatures small = rows_of(3, 10);
  small.cols = 10;
  PackedOptions asked;
  asked.renumber = 1;
  EXPECT_TRUE(Impl::packed_may_renumber(asked, small, DeviceFacts{}, 8));
}

// Cells fit into shared memory, name their rows and columns by 16 bits, and cover the matrix, or there are none.
TEST(PackedRules, CellsFit) {
  const DeviceFacts device = large_device();
  int made = 0, several = 0;
  for (const std::int64_t rows : {1, 33, 5000, 1000000, 9000000}) {
    for (const std::int64_t cols : {1, 64, 70000, 3000000}) {
      for (const int bytes : {2, 4, 8}) {
        for (const int shares : {1, 3, 64}) {
          SpmvFeatures f = rows_of(20, rows);
          f.cols = cols;
          PackedOptions o;
          o.cells = shares;
          const Impl::CellsShape s = Impl::cells_shape(o, f, device, bytes);
          if (s.row_blocks == 0) continue;
          ++made;
          several += s.shares > 1;
          EXPECT_LE(
              CellsLayout::shared_bytes(static_cast<std::size_t>(s.sums()), static_cast<std::size_t>(s.block_columns),
                                        static_cast<std::size_t>(bytes)),
              device.shared_bytes);
          EXPECT_GE(s.all_places(), rows);
          EXPECT_LT(s.places(), s.sums()) << "padding has a sum of its own";
          EXPECT_LE(s.places(), 65535);
          EXPECT_GE(s.column_blocks * s.block_columns, cols);
          EXPECT_LT((s.column_blocks - 1) * s.block_columns, cols);
          EXPECT_LT(s.block_columns, 65536);
          EXPECT_EQ(s.block_columns % 64, 0);
          EXPECT_LE(s.shares, std::min(shares, s.column_blocks));
          EXPECT_LE(s.column_blocks, Impl::cells_most_blocks);
        }
      }
    }
  }
  EXPECT_GT(made, 100);
  EXPECT_GT(several, 50);
}

// Where Auto takes cells, by features and times measured on an H200 (perf_test/notes/spmv-cells.md).
TEST(PackedRules, CellsWhereTheyWereFaster) {
  const auto taken = [](std::int64_t rows, std::int64_t cols, std::int64_t nnz, std::int64_t longest, double cv,
                        double sectors, int bytes) {
    SpmvFeatures f = rows_of(static_cast<double>(nnz) / static_cast<double>(rows), rows);
    f.cols = cols, f.nnz = nnz, f.longest = longest, f.cv = cv, f.sectors = sectors;
    return Impl::cells_shape({}, f, large_device(), bytes).row_blocks > 0;
  };
  const auto rmat18 = [&](int bytes) { return taken(262144, 262144, 3940070, 15835, 6.97, 0.963, bytes); };
  EXPECT_TRUE(rmat18(4)) << "17.9 us, 21.8 without";
  EXPECT_TRUE(rmat18(2)) << "15.0 us, 17.8";
  EXPECT_FALSE(rmat18(8)) << "36.6 us, 30.6";
  EXPECT_TRUE(taken(250000, 200000, 3999849, 16, 0.002, 0.995, 8)) << "27.9 us, 32.0";
  EXPECT_TRUE(taken(400000, 400000, 19411953, 3934, 0.593, 0.539, 4)) << "45.5 us, 66.1";
  EXPECT_FALSE(taken(400000, 400000, 19411953, 3934, 0.593, 0.539, 8)) << "93.7 us, 91.2";
}

// A team of the set-up gets no more than 48 kB from Kokkos, and holds its entries where these fit beside its tables.
TEST(PackedRules, CellsSetUpFits) {
  int held = 0, too_many = 0;
  for (const std::int64_t rows : {5000, 300000, 1224514}) {
    for (const double mean : {8., 30., 52.4, 79.}) {
      for (const std::int64_t cols : {70000, 400000, 1224514}) {
        for (const int bytes : {2, 4, 8}) {
          for (const int shares : {1, 3}) {
            SpmvFeatures f = rows_of(mean, rows);
            f.cols = cols;
            const Impl::CellsShape s = Impl::cells_shape_of(f, large_device(), bytes, shares, 1);
            if (s.row_blocks == 0) continue;
            const int entries = s.held_entries(f.nnz, bytes);
            EXPECT_LE(Impl::CellsShape::setup_bytes(s.column_blocks) + entries * (4 + bytes), 48 * 1024 - 1024);
            EXPECT_TRUE(entries == 0 || entries >= f.nnz / rows * 32) << "fewer than the mean";
            ++(entries > 0 ? held : too_many);
          }
        }
      }
    }
  }
  EXPECT_GT(held, 100);
  EXPECT_GT(too_many, 0);
}

// A piece has the fewest slots with which no slice is too long, and its key tells how many, and its steps. Keys ascend
// as slots, then lengths descend.
TEST(PackedRules, CellsKeys) {
  int before = -1;
  for (int length = CellsLayout::longest; length > 0; --length) {
    const int log = CellsLayout::log_slots(length), steps = CellsLayout::steps_of(length, log);
    const int key = CellsLayout::key_of(length);
    EXPECT_LE(steps, CellsLayout::max_steps) << length;
    EXPECT_GE(steps << log, length);
    EXPECT_LT((steps - 1) << log, length);
    EXPECT_LT(log, CellsLayout::widths);
    if (log > 0) {
      EXPECT_GT(CellsLayout::steps_of(length, log - 1), CellsLayout::max_steps) << length;
    }
    EXPECT_EQ(CellsLayout::log_of_key(key), log) << length;
    EXPECT_EQ(CellsLayout::steps_of_key(key), steps) << length;
    EXPECT_GE(key, before) << length;
    EXPECT_GE(key, CellsLayout::first_key(log));
    before = key;
    const std::uint32_t run = CellsLayout::run(65535, log, steps);
    EXPECT_EQ(CellsLayout::end_of(run), 65535u);
    EXPECT_EQ(CellsLayout::log_of(run), log);
    EXPECT_EQ(CellsLayout::steps_of(run), steps);
  }
  EXPECT_EQ(before, CellsLayout::keys - 1);
  EXPECT_EQ(CellsLayout::key_of(0), CellsLayout::keys);
}

// Auto takes them where gathers from far limit, and numbers are so short that much of x fits.
TEST(PackedRules, CellsWherePredicted) {
  const auto taken = [](int bytes, const auto& change) {
    DeviceFacts device = large_device();
    SpmvFeatures f = rows_of(16, 1000000);
    f.cols = 1000000, f.longest = 16, f.sectors = 1, f.narrow = 0, f.cv = 0;
    PackedOptions o;
    change(f, o, device);
    return Impl::cells_shape(o, f, device, bytes).row_blocks > 0;
  };
  const auto nothing = [](SpmvFeatures&, PackedOptions&, DeviceFacts&) {};
  EXPECT_TRUE(taken(2, nothing));
  EXPECT_TRUE(taken(4, nothing));
  EXPECT_FALSE(taken(8, nothing)) << "too little of x fits";
  const auto lower = [](SpmvFeatures& f, PackedOptions&, DeviceFacts&) { f.cols = 250000; };
  EXPECT_TRUE(taken(8, lower));
  const auto small = [](SpmvFeatures& f, PackedOptions&, DeviceFacts&) {
    f = rows_of(30, 100000);
    f.cols = 100000, f.longest = 30, f.sectors = 1, f.narrow = 0, f.cv = 0;
  };
  EXPECT_TRUE(taken(2, small));
  EXPECT_TRUE(taken(4, small));
  // Several shares save nothing where all of x fits in few column blocks, and their sums cost.
  SpmvFeatures f = rows_of(12, 1000000);
  f.cols = 200000, f.cv = 0;
  EXPECT_EQ(Impl::cells_best_shape(f, large_device(), 4).shares, 1);
  f.cols = 3000000;
  EXPECT_GT(Impl::cells_best_shape(f, large_device(), 4).shares, 1);
  EXPECT_FALSE(taken(2, [](SpmvFeatures& f, PackedOptions&, DeviceFacts&) { f.sectors = 0.2; })) << "x is local";
  EXPECT_FALSE(taken(2, [](SpmvFeatures& f, PackedOptions&, DeviceFacts&) { f.nnz = 1000000; })) << "x is near";
  EXPECT_FALSE(taken(2, [](SpmvFeatures& f, PackedOptions&, DeviceFacts&) { f.longest = 1000000; })) << "one long row";
  EXPECT_TRUE(taken(4, [](SpmvFeatures& f, PackedOptions&, DeviceFacts&) { f.cv = 3; }));
  // Columns of very skewed rows are near for others, too.
  const auto skewed = [](double cv) {
    return [cv](SpmvFeatures& f, PackedOptions&, DeviceFacts&) { f.cv = cv, f.cols = 1600000; };
  };
  EXPECT_TRUE(taken(4, skewed(3)));
  EXPECT_FALSE(taken(4, skewed(8)));
  EXPECT_FALSE(taken(2, [](SpmvFeatures& f, PackedOptions&, DeviceFacts&) { f.cols = 50000000; })) << "many blocks";
  EXPECT_FALSE(taken(2, [](SpmvFeatures&, PackedOptions& o, DeviceFacts&) { o.cells = 0; }));
  EXPECT_FALSE(taken(2, [](SpmvFeatures&, PackedOptions& o, DeviceFacts&) { o.hubs = 100; }));
  EXPECT_FALSE(taken(2, [](SpmvFeatures&, PackedOptions&, DeviceFacts& d) { d.shared_bytes = 65536; }));
}

// Of one size of matrix there are at most two sizes of sort windows, those of the sectors that PackedAhead looks at: it
// enqueues an order for each before anybody knows the sectors.
TEST(PackedRules, SortWindows) {
  const auto window = [](double mean, std::int64_t rows, double sectors, double same = 0, bool renumbered = false) {
    SpmvFeatures f = rows_of(mean, rows);
    f.sectors = sectors, f.same2 = same, f.longest = 100;
    return Impl::packed_shape({}, f, 32, 8, 1, false, renumbered).sort_window;
  };
  const int usual = window(12, 400000, 0);
  EXPECT_LT(window(12, 400000, 0.6), usual) << "rows that share x stay together";
  EXPECT_EQ(window(12, 400000, 0.6, 0.9), usual) << "equal rows";
  EXPECT_EQ(window(12, 400000, 0.6, 0, true), usual) << "x in the order of its use";
  EXPECT_EQ(window(5, 900000, 0.6), usual) << "short rows";
  for (const double mean : {1.0, 3.0, 6.0, 12.0, 20.0, 60.0}) {
    for (const std::int64_t rows : {40000, 300000, 1000000, 3000000}) {
      const std::set<int> looked_at{window(mean, rows, 0), window(mean, rows, 0.2), window(mean, rows, 0.45)};
      EXPECT_LE(looked_at.size(), 2u);
      for (int sectors = 0; sectors <= 100; sectors += 5) {
        EXPECT_EQ(looked_at.count(window(mean, rows, 0.01 * sectors)), 1u) << mean << " " << rows << " " << sectors;
      }
    }
  }
}

// Beside hub columns longer rows have longer slices.
TEST(PackedRules, StepsBesideHubs) {
  const auto steps = [](double mean, std::int64_t rows, int bytes) {
    return Impl::packed_shape({}, rows_of(mean, rows), 32, bytes, 1, true).max_steps;
  };
  EXPECT_LT(steps(15, 500000, 8), steps(25, 500000, 8));
  EXPECT_EQ(steps(25, 500000, 4), steps(25, 1000000, 4));
}

// Where rows of the longest length have different diagonals, nobody looks for a list of all.
TEST(PackedRules, Diagonals) {
  SpmvFeatures f;
  f.rows = f.cols = 500000;
  f.nnz = 4 * f.rows - 1000;
  f.mean = static_cast<double>(f.nnz) / static_cast<double>(f.rows);
  f.longest = 4;
  f.shift = 0.9;
  const auto looks = [&] {
    const PackedOptions o;
    return Impl::packed_may_be_diagonals(Impl::packed_shape(o, f, 32, 8, 1, false), o, f);
  };
  EXPECT_TRUE(looks());
  f.askew = true;
  EXPECT_FALSE(looks());
  f.nnz = 12 * f.rows - 1000, f.mean = 12;
  f.longest = 13;  // and rows of 12 entries have what they have of 13 diagonals
  EXPECT_TRUE(looks());
}

// Even slices: rows fit, padding is bounded, and who asks for a shape gets it.
TEST(PackedRules, EvenSlices) {
  int even = 0;
  for (const double mean : {0.1, 1.0, 3.0, 9.0, 40.0, 700.0}) {
    for (const std::int64_t longest : {1, 5, 12, 13, 100, 3000}) {
      for (const std::int64_t rows : {1, 100, 10000, 1000000}) {
        SpmvFeatures f = rows_of(mean, rows);
        f.longest = longest;
        if (f.nnz == 0 || static_cast<double>(longest) < mean) continue;
        const auto shape = [&](const PackedOptions& o) { return Impl::packed_shape(o, f, 32, 8, 1, false); };
        const Impl::PackedShape s = shape({});
        if (s.even_steps > 0) {
          ++even;
          const std::int64_t room = std::int64_t{s.even_steps} << s.even_log;
          EXPECT_GE(room, longest);
          EXPECT_LE(static_cast<double>(room * rows), 3.0 * static_cast<double>(f.nnz));
          EXPECT_LE(f.nnz, PackedOptions{}.most_even);
          EXPECT_EQ(s.sort_window % (32 >> s.even_log), 0) << "whole slices";
        }
        PackedOptions asked;
        asked.max_steps = 7;
        EXPECT_EQ(shape(asked).even_steps, 0);
        asked = {};
        asked.even_slices = false;
        EXPECT_EQ(shape(asked).even_steps, 0);
      }
    }
  }
  EXPECT_GT(even, 0);
}

}  // namespace
}  // namespace Testing
}  // namespace Tessera
