// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// CSR -> packed slices -> CSR, bit by bit; and the kind of each slice, worked out again from the matrix by plain loops.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>

#include "features/Tessera_SpmvFeatures.hpp"
#include "formats/packed/Tessera_FromPacked.hpp"
#include "formats/packed/Tessera_PackedUpdate.hpp"
#include "support/Tessera_TestCases.hpp"
#include "support/Tessera_TestCheck.hpp"

namespace Tessera {
namespace Testing {

using namespace Tessera::Experimental;

template <class Scalar>
class PackedRoundTrip : public ::testing::Test {
 public:
  using Exec = Kokkos::DefaultExecutionSpace;
  using Format = PackedSlices<typename Exec::memory_space>;
  static constexpr Precision precision = Impl::ScalarTraits<Scalar>::precision;
  /// Of hosts with short vectors, of NVIDIA's and of AMD's devices.
  static constexpr int waves[] = {8, 32, 64};

  template <class Offset>
  static Format convert(const HostMatrix<Scalar, Offset>& A, int lanes, const PackedOptions& o, bool updatable = true) {
    const Exec space;
    const DeviceMatrix<Exec, Scalar, Offset> device(A);
    const SpmvFeatures f = spmv_features(space, device.view());
    const Format p = to_packed(space, device.view(), lanes, precision, f, o, updatable);
    space.fence();
    EXPECT_EQ(p.updatable, updatable);
    return p;
  }
  static std::uint64_t bits_of(Scalar value) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(value));
    return bits;
  }
  template <class Offset>
  static void expect_same(const HostMatrix<Scalar, Offset>& A, const PackedCsr& B) {
    ASSERT_EQ(A.rows, B.rows);
    ASSERT_EQ(A.cols, B.cols);
    ASSERT_TRUE(std::equal(A.row_map.begin(), A.row_map.end(), B.row_map.begin(), B.row_map.end()));
    ASSERT_EQ(A.entries, B.entries);
    for (std::size_t i = 0; i < A.values.size(); ++i) ASSERT_EQ(bits_of(A.values[i]), B.bits[i]) << "value " << i;
  }

  /// The class by its definition.
  static PackedStorage class_of(const std::vector<Scalar>& values) {
    std::set<std::uint64_t> different;
    bool finite = true, integer = true, single = true;
    for (const Scalar v : values) {
      const double number = wide(v);
      if (different.size() <= 256) different.insert(bits_of(v));  // more make no difference
      finite = finite && std::isfinite(number);
      integer = integer && number >= -128 && number <= 127 && std::floor(number) == number &&
                !(number == 0 && std::signbit(number));
      single = single && static_cast<double>(static_cast<float>(number)) == number;
    }
    if (values.empty() || !finite) return PackedStorage::Full;
    if (different.size() == 1) return PackedStorage::Constant;
    if (integer) return PackedStorage::Integer;
    if (different.size() <= 256) return PackedStorage::Dictionary;
    return sizeof(Scalar) == 8 && single ? PackedStorage::Float : PackedStorage::Full;
  }

  /// How a slice should name its columns.
  template <class Offset>
  static int index_of(const HostMatrix<Scalar, Offset>& A, const Format& p, const PackedOptions& o,
                      const PackedSlice& s, const PackedDecodedSlice& d, bool stencil_like) {
    const auto hubs = static_cast<std::int64_t>(p.hub_columns.extent(0));
    if (hubs > 0) return hubs + p.cols < 0xffffff ? PackedIndex24 : PackedIndex32;
    if (o.index_free && stencil_like && is_free(A, s, d)) return PackedIndexFree;
    if (!o.narrow_indices) return PackedIndex32;
    const std::int64_t span = d.highest - d.lowest;  // all ones must stay free for padding
    return span < 255 ? PackedIndex8 : span < 65535 ? PackedIndex16 : span < 16777215 ? PackedIndex24 : PackedIndex32;
  }
  /// One lane per row, rows in succession, all columns at the places, relative to the row, of the first longest row's,
  /// in its order, and at most 40 % more slots than entries.
  template <class Offset>
  static bool is_free(const HostMatrix<Scalar, Offset>& A, const PackedSlice& s, const PackedDecodedSlice& d) {
    if (!s.contiguous() || s.group() > 1 || s.log_lanes() > 0 || s.steps() == 0 || s.steps() > 32) return false;
    const auto longest = std::max_element(d.rows.begin(), d.rows.end(), [&](std::int64_t a, std::int64_t b) {
      return A.length(static_cast<int>(a)) < A.length(static_cast<int>(b));
    });
    const auto columns = [&](std::int64_t row) {
      std::vector<std::int64_t> c;
      for (auto k = A.row_map[row]; k < A.row_map[row + 1]; ++k) c.push_back(A.entries[k] - row);
      return c;
    };
    const auto pattern = columns(*longest);
    std::int64_t entries = 0;
    for (const std::int64_t row : d.rows) {
      auto place = pattern.begin();
      for (const std::int64_t c : columns(row)) {
        place = std::find(place, pattern.end(), c);
        if (place == pattern.end()) return false;
        ++place, ++entries;
      }
    }
    return static_cast<double>(s.steps()) * static_cast<double>(d.rows.size()) <= 1.4 * static_cast<double>(entries);
  }

  template <class Offset>
  static bool equal_rows(const HostMatrix<Scalar, Offset>& A, std::int64_t a, std::int64_t b) {
    return A.length(static_cast<int>(a)) == A.length(static_cast<int>(b)) &&
           std::equal(A.entries.begin() + A.row_map[a], A.entries.begin() + A.row_map[a + 1],
                      A.entries.begin() + A.row_map[b]);
  }
  /// Whether the row shares its columns with all of its aligned group, and is not cut.
  template <class Offset>
  static bool shares(const HostMatrix<Scalar, Offset>& A, const Format& p, std::int64_t row) {
    const std::int64_t first = row / p.group * p.group, length = A.length(static_cast<int>(row));
    if (p.group == 1 || first + p.group > A.rows || length == 0 || length > p.split_steps * p.lanes) return false;
    for (std::int64_t other = first; other < first + p.group; ++other) {
      if (!equal_rows(A, first, other)) return false;
    }
    return true;
  }

  template <class Offset>
  static void expect_shape(const HostMatrix<Scalar, Offset>& A, const Format& p, const PackedOptions& o,
                           const PackedCsr& B, bool stencil_like) {
    const auto slices = to_host(p.slices);
    const std::int64_t cut = std::int64_t{p.split_steps} * p.lanes;
    std::int64_t split = 0;
    for (int i = 0; i < A.rows; ++i) split += A.length(i) > cut;
    EXPECT_EQ(p.summary.split_rows, split);
    EXPECT_GE(p.split_steps, p.max_steps);
    EXPECT_TRUE(o.max_steps == 0 || p.max_steps == o.max_steps) << p.max_steps;
    EXPECT_TRUE(o.split_steps == 0 || p.split_steps == std::max(o.split_steps, p.max_steps)) << p.split_steps;
    if (p.even != 0) return expect_even(A, p, slices);
    for (std::size_t i = 0; i < slices.size(); ++i) {
      const PackedSlice& s = slices[i];
      const PackedDecodedSlice& d = B.slices[i];
      if (s.index() == PackedEmpty) {
        ASSERT_LE(s.rows(), 8 * p.lanes) << "slice " << i;
        for (const std::int64_t row : d.rows) ASSERT_EQ(A.length(static_cast<int>(row)), 0) << "row " << row;
        continue;
      }
      ASSERT_EQ(s.index(), index_of(A, p, o, s, d, stencil_like)) << "slice " << i << " of " << slices.size();
      if (o.narrow_indices && s.index() != PackedIndexFree && p.hub_columns.extent(0) == 0) {
        ASSERT_EQ(s.column, static_cast<std::uint32_t>(d.lowest)) << "slice " << i;
      }
      if (Compat::is_host_v<Exec>) expect_full_steps(A, p, s, d);
      std::int64_t longest = 0;
      for (const std::int64_t row : d.rows) {
        const std::int64_t length = A.length(static_cast<int>(row));
        ASSERT_EQ(s.part(), length > cut) << "row " << row;
        ASSERT_EQ(s.group() > 1, shares(A, p, row)) << "row " << row << " of " << length;
        if (!s.has_ids()) continue;
        longest = std::max(longest, length);
        ASSERT_EQ(lanes_of(length, p.lanes, p), lanes_of(longest, p.lanes, p)) << "row " << row;
      }
      if (!s.has_ids()) continue;
      ASSERT_EQ(s.log_lanes(), lanes_of(longest, s.rows(), p)) << "slice " << i;
      ASSERT_EQ(s.steps(), steps_with(longest, s.log_lanes())) << "slice " << i;
    }
  }
  static int steps_with(std::int64_t length, int log) { return static_cast<int>((length + (1 << log) - 1) >> log); }
  /// log2 of the fewest lanes with which a sorted row takes no more than max_steps, up to the wave; of so few rows in a
  /// slice that half of its lanes would have none, twice as many, and again.
  static int lanes_of(std::int64_t length, int rows, const Format& p) {
    int log = 0;
    while (steps_with(length, log) > p.max_steps && 1 << log < p.lanes) ++log;
    while (steps_with(length, log) > 1 && rows * (2 << log) <= p.lanes) ++log;
    return log;
  }
  /// Records of even slices say what a kernel makes of their number, which is all that it knows.
  template <class Offset, class Slices>
  static void expect_even(const HostMatrix<Scalar, Offset>& A, const Format& p, const Slices& slices) {
    const bool diagonals = p.summary.index_slots[PackedDiagonals] > 0;
    ASSERT_EQ(p.variant, diagonals ? PackedVariant::Diagonals : PackedVariant::Even);
    SpmvPackedArgs args = p.arguments();
    args.slice_count = static_cast<std::uint32_t>(slices.size());
    std::int64_t row = 0;
    for (std::size_t i = 0; i < slices.size(); ++i) {
      const PackedSlice &s = slices[i], made = packed_even_slice(args, static_cast<std::uint32_t>(i));
      ASSERT_EQ(s.row, row);
      ASSERT_EQ(made.row, s.row);
      ASSERT_EQ(made.packet, s.packet);
      ASSERT_EQ(made.column, s.column);
      ASSERT_EQ(made.packed & 0x07ffffffu, s.packed & 0x07ffffffu) << "slice " << i;  // above: for hosts
      ASSERT_EQ(s.index(), diagonals ? PackedDiagonals : A.cols <= 0xffff ? PackedIndex16 : PackedIndex24);
      for (int r = 0; r < s.rows(); ++r) ASSERT_LE(A.length(static_cast<int>(row + r)), s.steps() << s.log_lanes());
      row += s.rows();
    }
    EXPECT_EQ(row, A.rows);
  }
  /// What the record says to hosts: all steps before the first with padding, or 0 where that is too long ago.
  template <class Offset>
  static void expect_full_steps(const HostMatrix<Scalar, Offset>& A, const Format& p, const PackedSlice& s,
                                const PackedDecodedSlice& d) {
    std::int64_t full = s.steps();
    if (s.rows() << s.log_lanes() < p.lanes || s.masked()) full = 0;
    for (const std::int64_t row : d.rows) {
      const std::int64_t length = s.part() ? d.entries : A.length(static_cast<int>(row));
      full = std::min(full, length >> s.log_lanes());
    }
    ASSERT_EQ(s.full_steps(), s.steps() - full + 1 < 32 ? full : 0);
  }

  /// The matrix with one row for each row in each column block, as the slices see it.
  template <class Offset>
  static HostMatrix<Scalar, Offset> in_blocks(const HostMatrix<Scalar, Offset>& A, int blocks, std::int64_t columns) {
    HostMatrix<Scalar, Offset> B = A;
    B.rows = A.rows * blocks;
    B.row_map.assign(1, 0);
    B.entries.clear();
    B.values.clear();
    for (int block = 0; block < blocks; ++block) {
      for (int row = 0; row < A.rows; ++row) {
        for (auto k = A.row_map[row]; k < A.row_map[row + 1]; ++k) {
          if (A.entries[k] / columns != block) continue;
          B.entries.push_back(A.entries[k]);
          B.values.push_back(A.values[k]);
        }
        B.row_map.push_back(static_cast<Offset>(B.entries.size()));
      }
    }
    return B;
  }
  template <class Offset>
  static int expected_blocks(const HostMatrix<Scalar, Offset>& A, const PackedOptions& o) {
    for (int row = 0; row < A.rows; ++row) {
      const auto begin = A.entries.begin() + A.row_map[row], end = A.entries.begin() + A.row_map[row + 1];
      if (!std::is_sorted(begin, end)) return 1;
    }
    const int wanted = std::min(std::max(o.column_blocks, 1), std::max(static_cast<int>(A.cols), 1));
    int columns = std::max((static_cast<int>(A.cols) + wanted - 1) / wanted, 1);
    if (wanted > 1 && columns >= 64) columns = (columns + 7) / 8 * 8;
    return A.rows == 0 ? 1 : std::max((static_cast<int>(A.cols) + columns - 1) / columns, 1);
  }

  template <class Offset>
  static void expect_everything(const HostMatrix<Scalar, Offset>& A, int lanes, const Named<PackedOptions>& o) {
    SCOPED_TRACE(std::to_string(lanes) + " lanes, " + o.name);
    const Exec space;
    const DeviceMatrix<Exec, Scalar, Offset> device(A);
    const SpmvFeatures f = spmv_features(space, device.view());
    const Format p = convert(A, lanes, o.options);
    PackedCsr B;
    ASSERT_NO_THROW(B = to_csr(p));
    expect_same(A, B);
    ASSERT_EQ(p.blocks, expected_blocks(A, o.options));
    if (p.blocks > 1) {
      expect_shape(in_blocks(A, p.blocks, p.block_columns), p, o.options, B, false);
    } else {
      expect_shape(A, p, o.options, B, f.shift >= 0.3);
    }
    const auto wanted = o.options.renumber == 1 ? A.cols : std::min<std::int64_t>(std::max(o.options.hubs, 0), A.cols);
    const std::int64_t hubs = p.blocks > 1 ? 0 : wanted;
    EXPECT_EQ(static_cast<std::int64_t>(p.hub_columns.extent(0)), A.nnz() > 0 ? hubs : 0);
    const bool classes = o.options.value_classes && hubs == 0 && p.blocks == 1 && A.rows > 0;
    EXPECT_EQ(p.storage, classes ? class_of(A.values) : PackedStorage::Full);
    EXPECT_TRUE(o.options.shared_patterns || p.group == 1) << p.group;
    const auto rows = static_cast<std::size_t>(A.rows), blocks = static_cast<std::size_t>(p.blocks);
    EXPECT_EQ(p.map_bytes(), rows > 0 ? 8 * (rows * blocks + (blocks > 1 ? rows : 1)) : 0);
  }
};
#ifdef TESSERA_TEST_FEWER_TYPES
using PackedScalars = ::testing::Types<double, half_t>;
#elif defined(TESSERA_TEST_BESIDE_SANITIZED)
using PackedScalars = ::testing::Types<float, bhalf_t>;
#else
using PackedScalars = ::testing::Types<double, float, half_t, bhalf_t>;
#endif
TYPED_TEST_SUITE(PackedRoundTrip, PackedScalars);

TYPED_TEST(PackedRoundTrip, EveryShape) {
  const Named<PackedOptions> plain{"defaults", {}};
  Named<PackedOptions> shared{"least_shared 0", {}}, hubs{"hubs 40", {}}, blocks{"column blocks 3", {}};
  shared.options.least_shared = 0, hubs.options.hubs = 40, blocks.options.column_blocks = 3;
  std::size_t turn = sizeof(TypeParam) == 2;  // of shorter lists two options per pattern, others in 16 bits
  for (const std::string& spec : shapes()) {
    SCOPED_TRACE(spec);
    const auto A = make_matrix<TypeParam>(spec, Data::Real, 7);
    ++turn;
    for (const auto& o : {plain, shared, hubs, blocks}) {
      if (shorter_lists && turn++ % 2 != 0) continue;
      for (const int lanes : this->waves) this->expect_everything(A, lanes, o);
    }
  }
}

// Several sort windows of every size, all lengths of rows, groups, stencils with and without gaps, wide spans. Of
// shorter lists every second pair of options and pattern: one half in 16 bits, the other in more.
TYPED_TEST(PackedRoundTrip, EveryOption) {
  std::vector<Pattern> patterns = {all_classes(longest_case, 20), generate(three_dof), stencil_with_gaps(),
                                   generate("random:rows=300:cols=200000:lengths=power:mean=6:tail=1.3")};
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    SCOPED_TRACE("pattern " + std::to_string(i));
    const auto A = make_matrix<TypeParam>(patterns[i], i % 2 ? Data::Integers : Data::Real, 7);
    std::size_t turn = i + (sizeof(TypeParam) == 2);  // of shorter lists every second, others in 16 bits than in more
    for (const Named<PackedOptions>& o : packed_option_sets()) {
      if (shorter_lists && turn++ % 2 != 0) continue;
      for (const int lanes : this->waves) this->expect_everything(A, lanes, o);
    }
  }
}

// Slices, chunks and parts that are partly filled in all possible ways.
TYPED_TEST(PackedRoundTrip, EveryNumberOfRows) {
  Named<PackedOptions> short_parts{"split_steps 2", {}};
  short_parts.options.max_steps = short_parts.options.split_steps = 2;
  for (const int length : {0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33, 63, 64, 65, 127, 128, 129, 300}) {
    for (const int rows : {1, 2, 3, 7, 8, 9, 31, 32, 33, 63, 64, 65}) {
      if (shorter_lists && (rows + length) % 2 != (sizeof(TypeParam) == 2)) continue;
      SCOPED_TRACE(std::to_string(rows) + " rows of " + std::to_string(length));
      const std::vector<int> lengths(static_cast<std::size_t>(rows), length);
      const auto A = make_matrix<TypeParam>(pattern_of_lengths(lengths, 307), Data::Real, 7);
      for (const int lanes : this->waves) {
        this->expect_everything(A, lanes, {"defaults", {}});
        this->expect_everything(A, lanes, short_parts);
      }
    }
  }
}

// Offsets are read by kernels that never meet a value.
using PackedOffsetsScalar = std::conditional_t<fewer_cases, half_t, float>;  // which the lists above have, too
using PackedOffsets = PackedRoundTrip<PackedOffsetsScalar>;
TEST_F(PackedOffsets, EveryType) {
  const Pattern p = generate("every_length:longest=300:cols=301");
  for (const int lanes : waves) {
    expect_everything(make_matrix<PackedOffsetsScalar, int>(p, Data::Real, 7), lanes, {"int", {}});
    expect_everything(make_matrix<PackedOffsetsScalar, std::size_t>(p, Data::Real, 7), lanes, {"size_t", {}});
  }
}

// A row keeps the order of its columns, whatever that is: also in groups and in stencils.
TYPED_TEST(PackedRoundTrip, UnsortedAndRepeatedColumns) {
  for (const Pattern& p : {all_classes(longest_case, 200), generate(three_dof), generate(stencil)}) {
    const auto A = make_matrix<TypeParam>(with_unsorted_columns(p), Data::Real, 7);
    Named<PackedOptions> shared{"least_shared 0", {}},
        blocks{"column blocks 3", {}};  // which such a matrix cannot have
    shared.options.least_shared = 0, blocks.options.column_blocks = 3;
    for (const int lanes : this->waves) {
      this->expect_everything(A, lanes, shared);
      this->expect_everything(A, lanes, blocks);
    }
  }
}

/// Spans around the ends of what 8, 16 and 24 bits hold: the largest index is padding and stands for no column.
TYPED_TEST(PackedRoundTrip, WidthsAtTheirLimits) {
  using Case = std::pair<int, int>;  // span, index
  for (const Case& c : {Case{0, PackedIndex8}, Case{254, PackedIndex8}, Case{255, PackedIndex16},
                        Case{65534, PackedIndex16}, Case{65535, PackedIndex24}, Case{16777214, PackedIndex24},
                        Case{16777215, PackedIndex32}, Case{2147483646, PackedIndex32}}) {
    for (const int base : {0, 5, 100000}) {
      if (c.first > 2147483646 - base) continue;
      SCOPED_TRACE("columns " + std::to_string(base) + " to " + std::to_string(base + c.first));
      Pattern p;
      p.rows = 3, p.cols = std::int64_t{base} + c.first + 1;
      p.entries = {base, base + c.first / 2, base + c.first, base + c.first, base};
      p.row_map = {0, 3, 3, 5};
      const auto A = make_matrix<TypeParam>(p, Data::Real, 7);
      for (const int lanes : this->waves) {
        PackedOptions uneven;
        uneven.even_slices = false;
        const auto f = this->convert(A, lanes, uneven);
        this->expect_same(A, to_csr(f));
        const auto slices = to_host(f.slices);
        ASSERT_EQ(slices.size(), 1u);
        EXPECT_EQ(slices[0].index(), c.second);
      }
    }
  }
}

// Where index-free slices and groups must be, and where they must not.
TYPED_TEST(PackedRoundTrip, KindsOfSlices) {
  const auto summary = [&](const Pattern& p, int lanes, const PackedOptions& o) {
    const auto A = make_matrix<TypeParam>(p, Data::Real, 7);
    const auto f = this->convert(A, lanes, o);
    this->expect_same(A, to_csr(f));
    return f.summary;
  };
  PackedOptions shared, indexed, single, natural;
  shared.least_shared = indexed.least_shared = single.least_shared = natural.least_shared = 0;
  shared.even_slices = indexed.even_slices = single.even_slices = natural.even_slices = false;
  natural.natural_padding = 0.5;
  indexed.index_free = false;
  single.shared_patterns = false;
  for (const int lanes : this->waves) {
    SCOPED_TRACE(lanes);
    // A slice that crosses the end of a line has gaps, none has other offsets: in natural order all are index-free.
    const PackedSummary s = summary(generate(stencil), lanes, natural);
    EXPECT_EQ(s.index_slots[PackedIndexFree], s.stored);
    EXPECT_EQ(s.grouped_slots, 0);
    EXPECT_EQ(s.id_rows, 0) << "consecutive rows need no ids";
    // By default the sort windows that hold the first and the last line are sorted, few of a larger grid.
    const PackedSummary large = summary(generate("stencil2d:nx=200:ny=80"), lanes, shared);
    EXPECT_GT(static_cast<double>(large.index_slots[PackedIndexFree]), 0.95 * static_cast<double>(large.stored));
    EXPECT_EQ(summary(generate(stencil), lanes, indexed).index_slots[PackedIndexFree], 0);
    EXPECT_GT(summary(stencil_with_gaps(), lanes, shared).index_slots[PackedIndexFree], 0);

    const PackedSummary g = summary(generate(three_dof), lanes, shared);
    EXPECT_EQ(g.grouped_slots, g.stored) << "all rows come in threes";
    EXPECT_EQ(g.index_slots[PackedIndexFree], 0);
    EXPECT_EQ(summary(generate(three_dof), lanes, single).grouped_slots, 0);
    EXPECT_EQ(summary(generate(three_dof), lanes, {}).grouped_slots, 0) << "a matrix too small to share";

    const PackedSummary r = summary(generate("random:rows=1501:cols=997:lengths=uniform:mean=12"), lanes, shared);
    EXPECT_EQ(r.index_slots[PackedIndexFree], 0);
    EXPECT_EQ(r.grouped_slots, 0);
  }
}

TYPED_TEST(PackedRoundTrip, GroupsOfTwo) {
  Pattern p;
  p.cols = 400;
  p.row_map.push_back(0);
  for (int i = 0; i < 401; ++i, ++p.rows) {  // the last row has no partner
    for (int k = 0; k < 9 + i / 2 % 5; ++k) p.entries.push_back((i / 2 * 7 + k * 11) % p.cols);
    p.row_map.push_back(static_cast<std::int64_t>(p.entries.size()));
  }
  const auto A = make_matrix<TypeParam>(p, Data::Real, 7);
  Named<PackedOptions> shared{"least_shared 0", {}};
  shared.options.least_shared = 0;
  for (const int lanes : this->waves) {
    this->expect_everything(A, lanes, shared);
    const auto f = this->convert(A, lanes, shared.options);
    EXPECT_EQ(f.group, 2);
    EXPECT_GT(f.summary.grouped_slots, 0);
    EXPECT_LT(f.summary.grouped_slots, f.summary.stored);
  }
}

// Natural order where that may pad without limit; sorted, with row ids, where it may not pad at all.
TYPED_TEST(PackedRoundTrip, NaturalOrder) {
  const auto A = make_matrix<TypeParam>("random:rows=5000:cols=997:mean=6", Data::Real, 3);
  for (const int lanes : this->waves) {
    PackedOptions o;
    o.even_slices = false;
    o.natural_padding = 1e6;
    const auto natural = this->convert(A, lanes, o);
    EXPECT_EQ(natural.summary.id_rows, 0);
    o.natural_padding = 0;
    const auto sorted = this->convert(A, lanes, o);
    EXPECT_GT(sorted.summary.id_rows, A.rows / 2);
    EXPECT_LT(sorted.summary.stored, natural.summary.stored) << "sorting saves padding";
    EXPECT_TRUE(same_bits(to_csr(natural).bits, to_csr(sorted).bits));
  }
}

// The class that the definition gives, and each at its limits.
TYPED_TEST(PackedRoundTrip, ValueClasses) {
  using Scalar = TypeParam;
  auto A = make_matrix<Scalar>(all_classes(300, 100), Data::Real, 3);
  const auto expect_class = [&](PackedStorage wanted, const std::string& what) {
    SCOPED_TRACE(what);
    ASSERT_EQ(this->class_of(A.values), wanted) << "the test's own numbers";
    for (const int lanes : this->waves) {
      const auto f = this->convert(A, lanes, {});
      EXPECT_EQ(f.storage, wanted);
      this->expect_same(A, to_csr(f));
    }
  };
  const auto with_one = [&](PackedStorage storage, double odd, PackedStorage wanted) {
    fill_class(A.values, storage, 4);
    A.values[A.values.size() / 2] = as<Scalar>(odd);
    expect_class(wanted, "class " + std::to_string(static_cast<int>(storage)) + ", but one " + std::to_string(odd));
  };
  for (const PackedStorage s : value_classes<Scalar>()) {
    fill_class(A.values, s, 4);
    expect_class(s, "class " + std::to_string(static_cast<int>(s)));
    for (const double odd : {std::nan(""), HUGE_VAL, -HUGE_VAL}) with_one(s, odd, PackedStorage::Full);
  }
  fill_class(A.values, PackedStorage::Integer, 4);
  std::set<double> integers;
  for (const Scalar v : A.values) integers.insert(wide(v));
  ASSERT_EQ(integers.size(), 256u);
  // One more number is one too many for a byte and for the dictionary.
  const PackedStorage wider = sizeof(Scalar) == 8 ? PackedStorage::Float : PackedStorage::Full;
  with_one(PackedStorage::Integer, 128, wider);
  with_one(PackedStorage::Integer, -129, wider);
  with_one(PackedStorage::Integer, 0.5, wider);
  with_one(PackedStorage::Integer, -0.0, wider);
  with_one(PackedStorage::Dictionary, 1000, wider);
  with_one(PackedStorage::Constant, 4, PackedStorage::Dictionary);
  if (sizeof(Scalar) == 8) {
    with_one(PackedStorage::Float, 0.1, PackedStorage::Full);
    with_one(PackedStorage::Float, 1e300, PackedStorage::Full);
    with_one(PackedStorage::Float, -0.0, PackedStorage::Float);
  }
}

// New numbers in the class, and numbers that leave it: the packets are made anew for every kind of slice.
TYPED_TEST(PackedRoundTrip, NewValues) {
  using Scalar = TypeParam;
  using Exec = typename TestFixture::Exec;
  using Csr = typename DeviceMatrix<Exec, Scalar>::Csr;
  const Exec space;
  for (const Pattern& p : {all_classes(longest_case, 100), stencil_with_gaps(), generate(three_dof),
                           generate("random:rows=300:cols=70000:mean=9"), generate(stencil)}) {
    auto A = make_matrix<Scalar>(p, Data::Real, 3);
    for (const PackedStorage s : value_classes<Scalar>()) {
      for (const int lanes : this->waves) {
        SCOPED_TRACE("class " + std::to_string(static_cast<int>(s)) + ", " + std::to_string(lanes) + " lanes");
        fill_class(A.values, s, 4);
        PackedOptions shared;
        shared.least_shared = 0;
        auto f = this->convert(A, lanes, shared);
        ASSERT_EQ(f.storage, s);
        const auto update = [&](PackedStorage numbers, std::uint64_t seed, PackedStorage wanted) {
          fill_class(A.values, numbers, seed);
          const DeviceMatrix<Exec, Scalar> fresh(A);
          packed_update<Csr>(space, f, fresh.view().values());
          space.fence();
          EXPECT_EQ(f.storage, wanted);
          ASSERT_NO_THROW(this->expect_same(A, to_csr(f)));
        };
        update(s, 5, s);
        update(s, 6, s);
        update(PackedStorage::Full, 7, PackedStorage::Full);
        update(s, 8, PackedStorage::Full);  // and never back
      }
    }
  }
}

TYPED_TEST(PackedRoundTrip, WithoutUpdates) {
  const auto A = make_matrix<TypeParam>(all_classes(longest_case, 50), Data::Real, 1);
  for (const int lanes : this->waves) {
    const auto f = this->convert(A, lanes, {}, false);
    EXPECT_EQ(f.map_bytes(), 0u);
    this->expect_same(A, to_csr(f));
  }
}

// Hubs are the most used columns: no other column is used more often (by more than a bin of the count, 1.6 %).
TYPED_TEST(PackedRoundTrip, HubsAreTheMostUsed) {
  const auto A = make_matrix<TypeParam>("web:n=3001:longest=900", Data::Real, 1);
  std::vector<std::int64_t> uses(static_cast<std::size_t>(A.cols), 0);
  for (const int c : A.entries) ++uses[static_cast<std::size_t>(c)];
  for (const int hubs : {1, 40, 200}) {
    PackedOptions o;
    o.hubs = hubs;
    const auto f = this->convert(A, 32, o);
    this->expect_same(A, to_csr(f));
    const auto list = to_host(f.hub_columns);
    ASSERT_EQ(list.size(), static_cast<std::size_t>(hubs));
    std::int64_t least = std::numeric_limits<std::int64_t>::max(), in_hubs = 0, most = 0;
    std::set<std::uint32_t> different(list.begin(), list.end());
    ASSERT_EQ(different.size(), list.size());
    for (const std::uint32_t c : list) {
      least = std::min(least, uses[c]);
      in_hubs += uses[c];
    }
    for (std::size_t c = 0; c < uses.size(); ++c) {
      if (different.count(static_cast<std::uint32_t>(c)) == 0) most = std::max(most, uses[c]);
    }
    EXPECT_LE(static_cast<double>(most), static_cast<double>(least) * (1 + 1.0 / 64));
    EXPECT_DOUBLE_EQ(f.hub_share, static_cast<double>(in_hubs) / static_cast<double>(A.nnz()));
  }
}

TYPED_TEST(PackedRoundTrip, Deterministic) {
  for (const Pattern& p : {all_classes(longest_case, 100), generate(three_dof), stencil_with_gaps()}) {
    const auto A = make_matrix<TypeParam>(p, Data::Integers, 1);
    for (const int hubs : {0, 30, -3}) {
      PackedOptions o;
      o.hubs = std::max(hubs, 0);
      o.column_blocks = hubs < 0 ? 3 : 0;
      o.least_shared = 0;
      const auto a = this->convert(A, 32, o), b = this->convert(A, 32, o);
      EXPECT_TRUE(same_bits(to_host(a.slices), to_host(b.slices)));
      EXPECT_TRUE(same_bits(to_host(a.parts), to_host(b.parts)));
      EXPECT_TRUE(same_bits(to_host(a.hub_columns), to_host(b.hub_columns)));
      EXPECT_TRUE(same_bits(to_host(a.shares), to_host(b.shares)));
      EXPECT_TRUE(same_bits(to_csr(a).bits, to_csr(b).bits));
    }
  }
}

}  // namespace Testing
}  // namespace Tessera
