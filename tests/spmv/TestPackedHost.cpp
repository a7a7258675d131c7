// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// The host kernel of packed slices by itself: what plans for hosts do not ask for (value classes), every width of
// indices, every kind of slice, strides. TestSpmvFormats.cpp has its plans.

#include <gtest/gtest.h>

#include "backends/host/Tessera_HostPackedKernel.hpp"
#include "formats/packed/Tessera_PackedHostRules.hpp"
#include "support/Tessera_TestSpmv.hpp"

namespace Tessera {
namespace Testing {

using namespace Tessera::Experimental;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;

/// A matrix in packed slices, with the members of a plan.
template <class Scalar, class Space = Exec>
struct HostSlices {
  using execution_space = Space;

  HostSlices(const HostMatrix<Scalar>& A, const PackedOptions& options = {})
      : HostSlices(DeviceMatrix<Space, Scalar>(A), options) {}
  HostSlices(const DeviceMatrix<Space, Scalar>& A, const PackedOptions& options) {
    const SpmvFeatures features = spmv_features(Space(), A.view());
    PackedOptions o = Impl::packed_host_options(options, features, sizeof(Scalar));
    o.value_classes = options.value_classes;  // hosts do not ask for classes, but read them
    format = to_packed(Space(), A.view(), packed_host_lanes, Impl::ScalarTraits<Scalar>::precision, features, o);
  }
  template <class X, class Y>
  void apply(const Space& space, Op, double alpha, const X& x, double beta, const Y& y) const {
    SpmvPackedArgs a = format.arguments();
    std::vector<double> partials(static_cast<std::size_t>(a.slice_count) * packed_max_columns, std::nan(""));
    std::vector<double> sums(static_cast<std::size_t>(a.rows * a.blocks), std::nan(""));
    const auto from = Impl::vectors_of(x);
    const auto to = Impl::vectors_of(y);
    a.partials = partials.data();
    a.block_sums = sums.data();
    a.y_type = Impl::ScalarTraits<typename Y::non_const_value_type>::element;
    a.x_stride = from.stride, a.x_column_stride = from.column_stride;
    a.y_stride = to.stride, a.y_column_stride = to.column_stride;
    a.alpha = alpha, a.beta = beta;
    for (std::int64_t first = 0; first < from.columns; first += packed_max_columns) {
      a.columns = static_cast<int>(std::min<std::int64_t>(from.columns - first, packed_max_columns));
      a.x = from.column(first);
      a.y = to.column(first);
      const Precision vectors = Impl::ScalarTraits<typename X::non_const_value_type>::precision;
      if (a.blocks > 1) {
        Impl::packed_spmv_host_blocks(space, a, format.lanes, vectors);
      } else {
        Impl::packed_spmv_host(space, a, format.lanes, vectors);
      }
    }
    space.fence();
  }

  PackedSlices<typename Space::memory_space> format;
};

/// Rows with the columns of the row before in groups of `group`, of 8 to 90 entries, and a few of other lengths
/// between.
Pattern grouped_rows(int group) {
  Pattern p;
  p.cols = 3001;
  p.row_map.push_back(0);
  for (int i = 0; i < 600; ++i) {
    const int unit = i / group, length = unit % 10 == 7 ? i % 23 : 8 + unit * 7 % 83;
    for (int k = 0; k < length; ++k) p.entries.push_back((unit * 31 + 29 * k) % 3001);
    p.row_map.push_back(static_cast<std::int64_t>(p.entries.size()));
  }
  p.rows = 600;
  return p;
}

/// Rows whose columns span `span`.
Pattern spanning(int span) {
  Pattern p;
  p.cols = span + 200;
  p.row_map.push_back(0);
  for (int i = 0; i < 150; ++i) {
    for (int k = 0; k < 3 + i % 9; ++k)
      p.entries.push_back(100 + static_cast<int>(std::int64_t{span} * k / (2 + i % 9)));
    p.row_map.push_back(static_cast<std::int64_t>(p.entries.size()));
  }
  p.rows = 150;
  return p;
}

template <class Scalar>
class HostSuite : public SpmvSuite<Exec, Scalar, OffsetOf<Scalar>, HostSlices<Scalar>> {
 public:
  using Base = SpmvSuite<Exec, Scalar, OffsetOf<Scalar>, HostSlices<Scalar>>;
  HostSuite() : Base(SpmvAlgorithm::PackedSlices, Backend::Kokkos) {
    this->data = {Data::Integers, Data::Real, Data::Magnitudes};
  }
  HostSlices<Scalar> plan(const typename Base::Device& A, const SpmvOptions& o) const override {
    return HostSlices<Scalar>(A, o.packed);
  }
  using Base::plan;
  std::vector<Named<SpmvOptions>> every_way() const override {
    std::vector<Named<SpmvOptions>> all;
    for (const Named<PackedOptions>& o : packed_option_sets()) {
      all.push_back({o.name, this->options});
      all.back().options.packed = o.options;
      all.back().options.packed.column_blocks = 0;  // one product at a time
    }
    return all;
  }
  typename Base::Options ways() const override {
    typename Base::Options all(2, this->options);
    all[1].packed.max_steps = all[1].packed.split_steps = 4;
    return all;
  }
  /// Numbers that are none, and several vectors, meet every set of options.
  typename Base::Options bad_ways() const override {
    typename Base::Options all;
    std::size_t turn = 0;
    for (const Named<SpmvOptions>& way : every_way()) {
      if (!in_other_size<Scalar>(turn++)) all.push_back(way.options);
    }
    return all;
  }
  std::vector<Pattern> patterns(int longest, int short_rows) const override {
    return {all_classes(longest, short_rows), grouped_rows(2), grouped_rows(3), generate(stencil),
            generate("stencil2d:nx=37:ny=29:points=9")};
  }
  void several_vectors() override {
    const typename Base::Options all = bad_ways();
    typename Base::Options some;
    for (std::size_t i = 0; i < all.size(); i += shorter_lists ? 4 : 1) some.push_back(all[i]);
    this->each(some, [&] {
      for (const Pattern& p : {all_classes(200, 40), grouped_rows(2), generate(stencil)}) {
        Base::several_vectors(Base::matrix(p, Data::Real, 5), {0, 1, 2, 3, 8});
      }
    });
  }
  void long_rows_in_every_option() {
    const Pattern p = this->long_rows();
    for (const Named<SpmvOptions>& way : every_way()) {
      this->each({way.options}, [&] { this->expect_pattern(p, way.name); });
    }
  }
};

template <class Scalar>
class PackedKernel : public ::testing::Test {
 protected:
  using Suite = HostSuite<Scalar>;
  Suite suite;
  static void expect(const HostMatrix<Scalar>& A, const HostSlices<Scalar>& P, Scaling s = {}) {
    Suite().expect(P, A, Data::Real, s);
  }
};
#ifdef TESSERA_TEST_FEWER_TYPES
using PackedScalars = ::testing::Types<double, half_t>;
#else
using PackedScalars = ::testing::Types<double, float, half_t, bhalf_t>;
#endif
TYPED_TEST_SUITE(PackedKernel, PackedScalars);

TYPED_TEST(PackedKernel, EveryShape) { this->suite.every_shape(); }
TYPED_TEST(PackedKernel, EveryOption) { this->suite.every_option(); }
TYPED_TEST(PackedKernel, LongRowsInEveryOption) { this->suite.long_rows_in_every_option(); }
TYPED_TEST(PackedKernel, EveryScaling) { this->suite.every_scaling(); }
TYPED_TEST(PackedKernel, SeveralVectors) { this->suite.several_vectors(); }
TYPED_TEST(PackedKernel, UnusedColumns) { this->suite.unused_columns(); }
TYPED_TEST(PackedKernel, BadNeighbours) { this->suite.bad_neighbours(); }

// Every storage class, for all tails of a chunk.
TYPED_TEST(PackedKernel, EveryStorage) {
  auto A = make_matrix<TypeParam>(all_classes(150, 60), Data::Real, 5);
  for (const PackedStorage storage : value_classes<TypeParam>()) {
    SCOPED_TRACE(name_of(storage));
    fill_class(A.values, storage, 4);
    for (const Named<PackedOptions>& o : packed_option_sets()) {
      if (o.options.column_blocks > 1) continue;
      const HostSlices<TypeParam> P(A, o.options);
      if (o.options.value_classes && o.options.hubs <= 0 && o.options.renumber != 1) {
        EXPECT_EQ(P.format.storage, storage) << o.name;
      }
      this->expect(A, P, {1.5, -1});
    }
  }
}
TYPED_TEST(PackedKernel, RefusesOtherLanes) {
  const HostSlices<TypeParam> P(make_matrix<TypeParam>("diagonal", Data::Real, 5));
  for (const int lanes : {4, 16, 32}) {
    const SpmvPackedArgs args = P.format.arguments();
    EXPECT_THROW(Impl::packed_spmv_host(Exec(), args, lanes, args.precision), NotSupported);
  }
}
TYPED_TEST(PackedKernel, EveryIndexWidth) {
  const int spans[] = {200, 254, 255, 60000, 65534, 65535, 70000, 2000000};
  const int widths[] = {PackedIndex8,  PackedIndex8,  PackedIndex16, PackedIndex16,
                        PackedIndex16, PackedIndex24, PackedIndex24, PackedIndex24};
  for (int i = 0; i < 8; ++i) {
    SCOPED_TRACE("span " + std::to_string(spans[i]));
    const auto A = make_matrix<TypeParam>(spanning(spans[i]), Data::Real, 5);
    const HostSlices<TypeParam> P(A);
    EXPECT_GT(P.format.summary.index_slots[widths[i]], 0);
    this->expect(A, P);
  }
  PackedOptions wide;
  wide.narrow_indices = false;
  const auto A = make_matrix<TypeParam>(spanning(60000), Data::Real, 5);
  const HostSlices<TypeParam> P(A, wide);
  EXPECT_GT(P.format.summary.index_slots[PackedIndex32], 0);
  this->expect(A, P);
}

// Whole stencils, rows that lack neighbours, a last slice that lacks rows, odd and even numbers of steps.
TYPED_TEST(PackedKernel, IndexFree) {
  for (const char* spec : {"stencil2d:nx=64:ny=40", "stencil2d:nx=61:ny=43", "stencil2d:nx=50:ny=33:points=9",
                           "stencil3d:nx=20:ny=17:nz=9", "stencil3d:nx=19:ny=9:nz=11:points=27", "diagonal"}) {
    SCOPED_TRACE(spec);
    const auto A = make_matrix<TypeParam>(spec, Data::Real, 5);
    const HostSlices<TypeParam> P(A);
    EXPECT_GT(P.format.summary.index_slots[PackedIndexFree], 0);
    this->expect(A, P);
    this->expect(A, P, {-1, 2.5});
  }
}

TYPED_TEST(PackedKernel, SharedIndices) {
  PackedOptions o;
  o.least_shared = 0;
  for (const int group : {2, 3}) {
    const auto A = make_matrix<TypeParam>(grouped_rows(group), Data::Real, 5);
    const HostSlices<TypeParam> P(A, o);
    EXPECT_GT(P.format.summary.grouped_slots, 0);
    this->expect(A, P, {2.5, -1});
  }
}

/// What the kernel writes to a y of NaNs with `stride` between its elements.
template <class Number, class Vector, class Scalar>
std::vector<Number> overwritten(const HostSlices<Scalar>& P, const HostMatrix<Scalar>& A, int stride) {
  const Kokkos::View<Vector*, DeviceOf<Exec>> x("x", A.cols);
  const Kokkos::View<Number**, Kokkos::LayoutLeft, DeviceOf<Exec>> y("y", stride, A.rows);
  for (int i = 0; i < A.cols; ++i) x(i) = as<Vector>(number(Data::Real, 6, i));
  Kokkos::deep_copy(y, as<Number>(std::nan("")));
  P.apply(Exec(), Op::NoTrans, 0.7, x, 0, Kokkos::subview(y, stride - 1, Kokkos::ALL()));
  std::vector<Number> got;
  for (int i = 0; i < A.rows; ++i) got.push_back(y(stride - 1, i));
  return got;
}

// Few and many column blocks, more rows than are added at a time, rows without entries in most blocks; a row's blocks
// are added in their order, whoever does it.
TYPED_TEST(PackedKernel, ColumnBlocks) {
  for (const char* spec : {"random:rows=5003:cols=7001:lengths=power:mean=9:tail=1.3", "rmat:scale=9:degree=8",
                           "lp:rows=257:cols=9001:per_col=5", "empty:rows=300:cols=500"}) {
    for (const int blocks : {2, 7, 64}) {
      SCOPED_TRACE(spec + (", blocks " + std::to_string(blocks)));
      PackedOptions o;
      o.column_blocks = blocks;
      const auto A = make_matrix<TypeParam>(spec, Data::Real, 5);
      const HostSlices<TypeParam> P(A, o);
      EXPECT_GT(P.format.blocks, 1);
      this->expect(A, P);
      this->expect(A, P, {2.5, -1});
      EXPECT_TRUE(same_bits(overwritten<SumOf<TypeParam>, TypeParam>(P, A, 1),
                            overwritten<SumOf<TypeParam>, TypeParam>(P, A, 3)));
      EXPECT_TRUE(same_bits(overwritten<TypeParam, TypeParam>(P, A, 1), overwritten<TypeParam, TypeParam>(P, A, 3)));
#if defined(KOKKOS_ENABLE_SERIAL)
      const auto x = numbers<TypeParam>(A.cols, Data::Real, 6);
      const std::vector<SumOf<TypeParam>> y(static_cast<std::size_t>(A.rows));
      const HostSlices<TypeParam, Kokkos::Serial> serial(A, o);
      EXPECT_TRUE(same_bits(product(P, Scaling{}, x, y), product(serial, Scaling{}, x, y)));
#endif
    }
  }
}

// Elements and columns both with something between them.
TYPED_TEST(PackedKernel, StridesOfBothKinds) {
  using Sum = SumOf<TypeParam>;
  constexpr int columns = 3;
  for (const Pattern& p : this->suite.patterns(200, 40)) {
    const auto A = make_matrix<TypeParam>(p, Data::Integers, 5);
    const HostSlices<TypeParam> P(A);
    const Kokkos::View<TypeParam***, Kokkos::LayoutLeft, DeviceOf<Exec>> x("x", 2, A.cols, columns);
    const Kokkos::View<Sum***, Kokkos::LayoutLeft, DeviceOf<Exec>> y("y", 3, A.rows, columns);
    Kokkos::deep_copy(x, as<TypeParam>(std::nan("")));
    Kokkos::deep_copy(y, as<Sum>(77));
    const auto from = Kokkos::subview(x, 1, Kokkos::ALL(), Kokkos::ALL());
    const auto to = Kokkos::subview(y, 1, Kokkos::ALL(), Kokkos::ALL());
    for (int j = 0; j < columns; ++j) {
      for (int i = 0; i < A.cols; ++i) from(i, j) = as<TypeParam>(number(Data::Integers, 6 + j, i));
    }
    P.apply(Exec(), Op::NoTrans, -1, from, 2.5, to);
    for (int j = 0; j < columns; ++j) {
      const auto xj = numbers<TypeParam>(A.cols, Data::Integers, 6 + j);
      std::vector<Sum> got, beside;
      for (int i = 0; i < A.rows; ++i) {
        got.push_back(to(i, j));
        beside.insert(beside.end(), {y(0, i, j), y(2, i, j)});
      }
      const std::vector<Sum> before(got.size(), 77);
      EXPECT_TRUE(agrees<Sum>(A, {-1, 2.5}, xj, before, got, true));
      EXPECT_EQ(beside, std::vector<Sum>(beside.size(), 77)) << "something beside y was written";
    }
  }
}

// Slices of few steps, all slots of which have entries, are runs of their own where y is overwritten and its elements
// are neighbours: the same bits as by the loops for all slices.
TYPED_TEST(PackedKernel, ShortSlices) {
  for (const int cols : {150, 5003}) {
    for (int steps = 1; steps <= 10; ++steps) {
      for (const char* lengths : {"equal", "uniform"}) {
        const std::string spec =
            "random:rows=1203:cols=" + std::to_string(cols) + ":lengths=" + lengths + ":mean=" + std::to_string(steps);
        SCOPED_TRACE(spec);
        const auto A = make_matrix<TypeParam>(spec.c_str(), Data::Real, 5);
        const HostSlices<TypeParam> P(A);
        const SpmvPackedArgs a = P.format.arguments();
        int full = 0;
        for (std::uint32_t i = 0; i < a.slice_count; ++i) {
          const PackedSlice& s = a.slices[i];
          full += s.steps() == steps && s.full_steps() == steps && s.rows() == packed_host_lanes &&
                  s.index() == (cols < 255 ? PackedIndex8 : PackedIndex16);
        }
        EXPECT_GT(full, 0);
        this->expect(A, P, {0.7, 0});
        const auto expect_same = [&](auto to, auto from) {
          using Number = decltype(to);
          using Vector = decltype(from);
          EXPECT_TRUE(same_bits(overwritten<Number, Vector>(P, A, 1), overwritten<Number, Vector>(P, A, 2)));
        };
        expect_same(SumOf<TypeParam>{}, TypeParam{});
        expect_same(TypeParam{}, TypeParam{});
        if constexpr (std::is_same_v<TypeParam, float>) expect_same(double{}, double{});
      }
    }
  }
}

// The same bits on every run and for every number of threads.
TYPED_TEST(PackedKernel, Deterministic) {
  PackedOptions parts;
  parts.max_steps = parts.split_steps = 4;
  const auto A = make_matrix<TypeParam>("random:rows=60001:cols=9001:lengths=power:mean=12:tail=1.3", Data::Real, 5);
  const auto x = numbers<TypeParam>(A.cols, Data::Real, 6);
  const std::vector<SumOf<TypeParam>> y(static_cast<std::size_t>(A.rows));
  for (const PackedOptions& o : {PackedOptions{}, parts}) {
    const HostSlices<TypeParam> P(A, o);
    const auto first = product(P, Scaling{}, x, y);
    for (int run = 0; run < 5; ++run) EXPECT_TRUE(same_bits(first, product(P, Scaling{}, x, y)));
#if defined(KOKKOS_ENABLE_SERIAL)
    if constexpr (!fewer_cases || std::is_same_v<TypeParam, double>) {
      const HostSlices<TypeParam, Kokkos::Serial> serial(A, o);
      EXPECT_TRUE(same_bits(first, product(serial, Scaling{}, x, y)));
    }
#endif
  }
}

// The conversion without branches gives what the type itself gives.
TEST(PackedHostNumbers, EveryHalf) {
  for (int bits = 0; bits < 65536; ++bits) {
    half_t half;
    half.bits = static_cast<std::uint16_t>(bits);
    const float wanted = static_cast<float>(half), got = Impl::host_number<float>(half);
    EXPECT_TRUE(std::isnan(wanted) ? std::isnan(got) : std::memcmp(&wanted, &got, 4) == 0) << bits;
  }
}

// Four at once are rounded as each by itself: between two numbers, at their middle and beside it, infinite and
// undefined ones too.
TEST(PackedHostNumbers, FourBhalfsAreRoundedAsOne) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    float numbers[4];
    bhalf_t rounded[4];
    const std::uint32_t low[4] = {0, 0x7fff, 0x8000, 0x8001};
    for (int j = 0; j < 4; ++j) numbers[j] = Impl::float_from_bits(bits << 16 | low[j]);
    Impl::HostVector<float>::load(numbers).store(rounded);
    for (int j = 0; j < 4; ++j) ASSERT_EQ(rounded[j].bits, bhalf_t(numbers[j]).bits) << bits << ' ' << j;
  }
}

// Rows turned over in registers: every number is the one that plain indexing finds.
template <class Scalar>
class PackedHostTurned : public ::testing::Test {};
TYPED_TEST_SUITE(PackedHostTurned, PackedScalars);
TYPED_TEST(PackedHostTurned, EveryLane) {
  using Turned = Impl::HostTurned<TypeParam>;
  if (std::is_same_v<TypeParam, half_t> && !host_packed_fast_fp16()) GTEST_SKIP() << "this CPU has no F16C";
  if constexpr (Turned::possible) {
    constexpr int rows = decltype(Turned::Vector::zero())::width;
    const auto x = numbers<TypeParam>(rows * 11, Data::Real, 3);
    const Turned turned([&](int r) { return x.data() + 11 * r + 1; });  // not aligned
    for (int l = 0; l < Turned::lanes; ++l) {
      SumOf<TypeParam> got[rows];
      const auto lane = turned.lane(l);
      std::memcpy(got, &lane.v, sizeof(got));
      for (int r = 0; r < rows; ++r) {
        EXPECT_EQ(got[r], static_cast<SumOf<TypeParam>>(x[static_cast<std::size_t>(11 * r + 1 + l)])) << r << ' ' << l;
      }
    }
  }
}

}  // namespace
}  // namespace Testing
}  // namespace Tessera
