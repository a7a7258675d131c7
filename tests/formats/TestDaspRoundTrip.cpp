// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// CSR -> DASP -> CSR for every geometry and precision, and the sizes that the format states about itself.

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "Tessera_Device.hpp"
#include "core/Tessera_KernelTables.hpp"
#include "formats/dasp/Tessera_FromDasp.hpp"
#include "formats/dasp/Tessera_ToDasp.hpp"
#include "support/Tessera_TestCases.hpp"
#include "support/Tessera_TestCheck.hpp"

namespace Tessera {
namespace Testing {

using namespace Tessera::Experimental;

template <class Scalar>
struct PrecisionOf {
  static constexpr Precision value = Impl::ScalarTraits<Scalar>::precision;
};

template <class Scalar>
class DaspRoundTrip : public ::testing::Test {
 public:
  using Exec = Kokkos::DefaultHostExecutionSpace;
  using Memory = typename Exec::memory_space;
  using Format = Dasp<Memory>;
  static constexpr Precision precision = PrecisionOf<Scalar>::value;

  static std::vector<const DaspGeometry*> geometries() {
    std::vector<const DaspGeometry*> all;
    for (const Backend b : emulated_backends()) {
      if (beside_sanitized && b == Backend::EmulatedNvidia && !std::is_same_v<Scalar, bhalf_t>) continue;
      all.push_back(kernel_table(b).spmv.dasp_geometry(precision));
    }
    return all;
  }
  template <class Offset>
  static Format convert(const HostMatrix<Scalar, Offset>& A, const DaspGeometry& g, const DaspOptions& o) {
    const DeviceMatrix<Exec, Scalar, Offset> device(A);
    const Format d = to_dasp(Exec(), device.view(), g, precision, o);
    Exec().fence();
    return d;
  }

  template <class Offset>
  static void expect_same(const HostMatrix<Scalar, Offset>& A, const DaspCsr& B) {
    ASSERT_EQ(A.rows, B.rows);
    ASSERT_EQ(A.cols, B.cols);
    ASSERT_TRUE(std::equal(A.row_map.begin(), A.row_map.end(), B.row_map.begin(), B.row_map.end()));
    ASSERT_EQ(A.entries, B.entries);
    for (std::size_t i = 0; i < A.values.size(); ++i) ASSERT_EQ(wide(A.values[i]), B.values[i]) << "value " << i;
  }

  /// Of the rows that are not long; at least 4, which is never long.
  template <class Offset>
  static std::int64_t longest_medium(const HostMatrix<Scalar, Offset>& A, const Format& d) {
    std::int64_t longest = 4;
    const auto order = to_host(d.row_order);
    for (std::size_t i = static_cast<std::size_t>(d.class_rows[DaspLong]); i < order.size(); ++i) {
      longest = std::max(longest, A.length(order[i]));
    }
    return longest;
  }
  /// What the documentation of the format states, counted again from the matrix.
  template <class Offset>
  static void expect_sizes(const HostMatrix<Scalar, Offset>& A, const Format& d, const DaspOptions& o) {
    EXPECT_EQ(d.nnz, A.nnz());
    EXPECT_EQ(d.stored(), d.steps * d.slots_per_step() + d.irregular);
    if (A.rows == 0) return;
    EXPECT_EQ(static_cast<std::int64_t>(d.columns.extent(0)), d.steps * d.slots_per_step());
    EXPECT_EQ(static_cast<std::int64_t>(d.irregular_columns.extent(0)), d.irregular);
    EXPECT_EQ(std::accumulate(d.class_rows, d.class_rows + DaspClasses, std::int64_t{0}), A.rows);
    EXPECT_EQ(std::accumulate(d.class_nnz, d.class_nnz + DaspClasses, std::int64_t{0}), A.nnz());
    std::int64_t count[6] = {}, longest = 0, long_rows = 0, long_nnz = 0, medium = 0, medium_nnz = 0, padding = 0;
    const std::int64_t limit = o.max_medium_length > 0 ? o.max_medium_length : longest_medium(A, d);
    EXPECT_LE(limit, 255);
    for (int i = 0; i < A.rows; ++i) {
      const std::int64_t length = A.length(i);
      longest = std::max(longest, length);
      ++count[std::min<std::int64_t>(length, 5)];
      if (length > limit) {
        ++long_rows, long_nnz += length;
      } else if (length > 4) {
        ++medium, medium_nnz += length;
      }
    }
    for (const std::int32_t column : to_host(d.columns)) padding += column == -1;
    EXPECT_EQ(d.steps * d.slots_per_step() - padding + d.irregular, A.nnz());
    EXPECT_EQ(d.max_length, longest);
    EXPECT_EQ(d.class_rows[DaspLong], long_rows);
    EXPECT_EQ(d.class_nnz[DaspLong], long_nnz);
    EXPECT_EQ(d.class_rows[DaspMedium1] + d.class_rows[DaspMedium2] + d.class_rows[DaspMedium4], medium);
    EXPECT_EQ(d.class_nnz[DaspMedium4], medium_nnz);
    EXPECT_EQ(d.class_rows[DaspEmpty], count[0]);
    EXPECT_EQ(d.class_rows[DaspPairs22], count[2]);
    EXPECT_EQ(d.class_rows[DaspFour], count[4]);
    const std::int64_t pairs = d.class_rows[DaspPairs13] / 2;
    EXPECT_EQ(d.class_rows[DaspSingle], count[1] - pairs);
    EXPECT_EQ(d.class_rows[DaspThree], count[3] - pairs);
    const bool many = std::min(count[1], count[3]) >= std::max(o.min_pairs, 1);
    EXPECT_EQ(pairs % (d.geometry.rows * d.geometry.slices), 0) << "pairs come in full tiles";
    if (many) {
      EXPECT_GT(pairs, std::min(count[1], count[3]) - d.geometry.rows * d.geometry.slices);
    } else {
      EXPECT_EQ(pairs, 0);
    }
    EXPECT_EQ(d.map_bytes(), 12 * static_cast<std::size_t>(A.rows));
  }

  /// Steps of the medium classes are at least `threshold` full, apart from sets without any.
  static void expect_threshold(const Format& d, const DaspOptions& o) {
    const auto blocks = to_host(d.blocks);
    const auto columns = to_host(d.columns);
    for (std::int64_t b = d.long_blocks; b < d.block_count; ++b) {
      const std::int64_t steps = blocks[b].packed & 0xfff;
      for (std::int64_t s = blocks[b].first_step; s < blocks[b].first_step + steps; ++s) {
        const auto begin = columns.begin() + s * d.slots_per_step();
        const auto real = d.slots_per_step() - std::count(begin, begin + d.slots_per_step(), -1);
        ASSERT_GE(static_cast<double>(real), o.threshold * static_cast<double>(d.slots_per_step()));
      }
    }
  }

  template <class Offset = OffsetOf<Scalar>>
  static void round_trip(const Pattern& p, const Named<DaspOptions>& o, const std::string& what) {
    const auto A = make_matrix<Scalar, Offset>(p, Data::Real, 7);
    for (const DaspGeometry* g : geometries()) {
      SCOPED_TRACE(what + " on " + g->atom + ", " + o.name);
      const Format d = convert(A, *g, o.options);
      ASSERT_NO_THROW(expect_same(A, to_csr(d)));
      expect_sizes(A, d, o.options);
      expect_threshold(d, o.options);
    }
  }
};
#ifdef TESSERA_TEST_FEWER_TYPES
using Scalars = ::testing::Types<double, half_t>;
#else
using Scalars = ::testing::Types<double, half_t, bhalf_t>;
#endif
TYPED_TEST_SUITE(DaspRoundTrip, Scalars);

TYPED_TEST(DaspRoundTrip, EveryShape) {
  for (const std::string& spec : shapes()) {
    for (const SortRange sort : {SortRange::Auto, SortRange::Global}) {
      Named<DaspOptions> o{"sort " + std::to_string(static_cast<int>(sort)), {}};
      o.options.sort = sort;
      this->round_trip(generate(spec), o, spec);
    }
  }
}

// Several sort windows of 2,048 rows, all classes, all options.
TYPED_TEST(DaspRoundTrip, EveryOption) {
  const Pattern p = all_classes(longest_case, 900);
  ASSERT_GT(p.rows, 2 * 2048);
  for (const Named<DaspOptions>& o : dasp_option_sets()) this->round_trip(p, o, "all classes");
}

TYPED_TEST(DaspRoundTrip, EveryMaxMediumLength) {
  const Pattern p = generate("every_length:longest=300:cols=301");
  for (int longest = 4; longest <= 255; longest += shorter_lists && longest < 250 ? 5 : 1) {
    Named<DaspOptions> o{"max_medium_length " + std::to_string(longest), {}};
    o.options.max_medium_length = longest;
    this->round_trip(p, o, "every_length");
  }
}

// The last row-block, step and pair are partly filled in all possible ways.
TYPED_TEST(DaspRoundTrip, EveryNumberOfRows) {
  for (const int length : {0, 1, 2, 3, 4, 5, 17, 40, 255, 300}) {
    for (int rows = 1; rows <= 70; ++rows) {
      if (taken_elsewhere(static_cast<std::size_t>(rows + length))) continue;
      const Pattern p = pattern_of_lengths(std::vector<int>(static_cast<std::size_t>(rows), length), 307);
      this->round_trip(p, {"defaults", {}}, std::to_string(rows) + " rows of " + std::to_string(length));
    }
  }
}

// Rows of 1 and 3 in all proportions around the number of pairs that is cut to whole tiles.
TYPED_TEST(DaspRoundTrip, EveryNumberOfPairs) {
  for (const int ones : {0, 1, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 130}) {
    for (const int threes : {0, 1, 8, 16, 31, 64, 65, 127, 129}) {
      std::vector<int> lengths(static_cast<std::size_t>(ones), 1);
      lengths.insert(lengths.end(), static_cast<std::size_t>(threes), 3);
      for (std::size_t i = 0; i < lengths.size(); ++i) std::swap(lengths[i], lengths[i * 13 % lengths.size()]);
      Named<DaspOptions> o{"min_pairs 1", {}};
      o.options.min_pairs = 1;
      this->round_trip(pattern_of_lengths(lengths, 50), o, std::to_string(ones) + " ones " + std::to_string(threes));
    }
  }
}

// Offsets are read by kernels that never meet a value.
using DaspOffsets = DaspRoundTrip<double>;
TEST_F(DaspOffsets, EveryType) {
  const Pattern p = generate("every_length:longest=300:cols=301");
  round_trip<int>(p, {"defaults", {}}, "int");
  round_trip<std::size_t>(p, {"defaults", {}}, "size_t");
}

// What the suites of products rely on.
using DaspCases = DaspRoundTrip<double>;
TEST_F(DaspCases, AreWhatTheySay) {
  for (const DaspGeometry* g : geometries()) {
    SCOPED_TRACE(g->atom);
    EXPECT_FALSE(convert(make_matrix<double>(dasp_many_sort_windows(), Data::Integers, 11), *g, {}).global_sort);
    const Pattern p = dasp_many_short_rows(DaspGeometry::tiles * g->rows * g->slices);
    EXPECT_GT(convert(make_matrix<double>(p, Data::Integers, 11), *g, {}).short_steps_per_wave, 1u);
  }
}

// Auto: the whole matrix where it is small or its rows are uneven, sort windows otherwise.
TYPED_TEST(DaspRoundTrip, AutomaticSort) {
  const auto sorted_globally = [&](const Pattern& p) {
    const auto A = make_matrix<TypeParam>(p, Data::Real, 7);
    const auto d = this->convert(A, *this->geometries()[0], {});
    this->expect_same(A, to_csr(d));
    return d.global_sort;
  };
  EXPECT_TRUE(sorted_globally(generate("uniform:rows=5000:per_row=6")));
  EXPECT_FALSE(sorted_globally(generate("uniform:rows=70001:per_row=6")));
  EXPECT_TRUE(sorted_globally(generate("random:rows=70001:mean=6:lengths=geometric")));
}

// Inside a sort window (or the whole matrix) rows descend in length, rows of one length keep their order.
TYPED_TEST(DaspRoundTrip, OrderOfTheRows) {
  const auto A = make_matrix<TypeParam>(generate("random:rows=5000:cols=997:mean=12"), Data::Real, 3);
  for (const SortRange sort : {SortRange::Window, SortRange::Global}) {
    DaspOptions o;
    o.sort = sort;
    for (const DaspGeometry* g : this->geometries()) {
      const auto d = this->convert(A, *g, o);
      const auto order = to_host(d.row_order);
      for (int c = 0; c < DaspClasses; ++c) {
        for (std::uint32_t i = 1; i < d.kernel_rows[c]; ++i) {
          const int a = order[d.first_position[c] + i - 1], b = order[d.first_position[c] + i];
          if (sort == SortRange::Window && a / 2048 != b / 2048) {
            ASSERT_LT(a / 2048, b / 2048) << "sort windows are mixed";
          } else {
            ASSERT_TRUE(c == DaspLong ? a < b : A.length(a) > A.length(b) || (A.length(a) == A.length(b) && a < b))
                << "rows " << a << " and " << b << " of class " << c;
          }
        }
      }
    }
  }
}

// Two conversions give the same bytes, and the map finds new numbers their places.
TYPED_TEST(DaspRoundTrip, DeterministicAndUpdatable) {
  const Pattern p = all_classes(600, 900);
  const auto A = make_matrix<TypeParam>(p, Data::Real, 1), B = make_matrix<TypeParam>(p, Data::Real, 2);
  const DeviceMatrix<typename TestFixture::Exec, TypeParam> fresh(B);
  for (const DaspGeometry* g : this->geometries()) {
    const auto first = this->convert(A, *g, {}), second = this->convert(A, *g, {}), wanted = this->convert(B, *g, {});
    const auto expect_equal = [&](const auto& a, const auto& b) {
      EXPECT_TRUE(same_bits(to_host(a.values), to_host(b.values)));
      const auto bytes = [](const auto& d) {  // the rest of the last unit belongs to nobody
        const auto units = to_host(d.irregular_values);
        const auto* begin = reinterpret_cast<const unsigned char*>(units.data());
        return std::vector<unsigned char>(begin, begin + d.irregular * d.geometry.value_bytes);
      };
      EXPECT_TRUE(same_bits(bytes(a), bytes(b)));
      EXPECT_TRUE(same_bits(to_host(a.columns), to_host(b.columns)));
      EXPECT_TRUE(same_bits(to_host(a.irregular_columns), to_host(b.irregular_columns)));
      EXPECT_TRUE(same_bits(to_host(a.blocks), to_host(b.blocks)));
      EXPECT_TRUE(same_bits(to_host(a.remainder), to_host(b.remainder)));
      EXPECT_TRUE(same_bits(to_host(a.row_order), to_host(b.row_order)));
      EXPECT_TRUE(same_bits(to_host(a.runs), to_host(b.runs)));
      EXPECT_TRUE(same_bits(to_host(a.long_pieces), to_host(b.long_pieces)));
    };
    expect_equal(first, second);
    EXPECT_FALSE(same_bits(to_host(first.values), to_host(wanted.values)));
    using Csr = typename DeviceMatrix<typename TestFixture::Exec, TypeParam>::Csr;
    const typename TestFixture::Exec space;
    dasp_fill<Csr>(space, first, fresh.view().values(), typename Csr::entries_type());
    space.fence();
    expect_equal(first, wanted);
  }
}

TYPED_TEST(DaspRoundTrip, OptionsOutOfRange) {
  const auto A = make_matrix<TypeParam>("diagonal:rows=3:cols=3", Data::Real, 1);
  const auto expect_refusal = [&](const DaspOptions& o) {
    EXPECT_THROW(this->convert(A, *this->geometries()[0], o), InvalidArgument);
  };
  for (const int longest : {-1, 1, 3, 256, 100000}) {
    DaspOptions o;
    o.max_medium_length = longest;
    expect_refusal(o);
  }
  for (const double threshold : {-0.5, 0.0, 1.0000001, std::nan("")}) {
    DaspOptions o;
    o.threshold = threshold;
    expect_refusal(o);
  }
  DaspOptions pairs, work;
  pairs.min_pairs = -1;
  work.entries_per_wave = -1;
  expect_refusal(pairs);
  expect_refusal(work);
}

// Wrong formats are found by the decoder; otherwise the tests above would prove little.
TYPED_TEST(DaspRoundTrip, DecoderSeesDamage) {
  const auto A = make_matrix<TypeParam>(all_classes(600, 300), Data::Real, 1);
  const auto d = this->convert(A, *this->geometries()[0], {});
  const auto expect_damage = [&](auto& element, auto value) {
    const auto kept = element;
    element = value;
    EXPECT_THROW(to_csr(d), InvalidArgument);
    element = kept;
  };
  expect_damage(d.row_order(0), d.row_order(1));
  expect_damage(d.row_order(5), -3);
  expect_damage(d.runs(0), 2000000000);
  expect_damage(d.irregular_columns(0), A.cols);
  expect_damage(d.columns(0), -1);
  expect_damage(d.remainder(0), 255);
  EXPECT_NO_THROW(to_csr(d));
}

// A new generator has to be added to the list of shapes.
TEST(Shapes, CoverEveryGenerator) {
  for (const GeneratorInfo& g : generators()) {
    if (!g.alias_of.empty()) continue;
    const bool found = std::any_of(shapes().begin(), shapes().end(),
                                   [&](const std::string& spec) { return spec.substr(0, spec.find(':')) == g.name; });
    EXPECT_TRUE(found) << g.name;
  }
}

}  // namespace Testing
}  // namespace Tessera
