// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Packed slices on host threads against plain loops.

#include <gtest/gtest.h>

#include "backends/host/Tessera_HostPackedKernel.hpp"
#include "formats/packed/Tessera_PackedUpdate.hpp"
#include "spmv/Tessera_PackedSpmv.hpp"
#include "support/Tessera_BadNumbers.hpp"
#include "support/Tessera_TestCheck.hpp"
#include "support/Tessera_TestShapes.hpp"

namespace Tessera {
namespace Testing {

using namespace Tessera::Experimental;

namespace {

/// A matrix in packed slices, multiplied by Exec.
template <class Scalar, class Exec = Kokkos::DefaultHostExecutionSpace>
struct PackedHost {
  using Matrix = HostMatrix<Scalar>;
  using Device = DeviceMatrix<Exec, Scalar>;
  using Csr = typename Device::Csr;
  using Sum = std::conditional_t<std::is_same_v<Scalar, double>, double, float>;
  /// Vectors as columns: element i of column j lies at i * stride + j * column_stride; all else is a guard.
  struct Layout {
    std::int64_t x = 1, y = 1, x_column = 0, y_column = 0;
    int columns = 1;
  };

  PackedHost(const Matrix& A, const PackedOptions& options = {}) : device(A) {
    const Exec space;
    PackedOptions o = Impl::packed_host_options(options);
    o.value_classes = options.value_classes;  // hosts do not ask for classes, but read them
    format = to_packed(space, device.view(), packed_host_lanes, Impl::ScalarTraits<Scalar>::precision,
                       spmv_features(space, device.view()), o);
  }

  template <class Y>
  std::vector<Y> product(Scaling s, const std::vector<Scalar>& x, const std::vector<Y>& y, const Layout& l) const {
    SpmvPackedArgs a = format.arguments();
    std::vector<double> partials(static_cast<std::size_t>(a.slice_count) * packed_max_columns, std::nan(""));
    std::vector<Y> result = y;
    a.partials = partials.data();
    a.x = x.data();
    a.y = result.data();
    a.y_type = Impl::ScalarTraits<Y>::element;
    a.x_stride = l.x, a.y_stride = l.y, a.x_column_stride = l.x_column, a.y_column_stride = l.y_column;
    a.columns = l.columns;
    a.alpha = s.alpha, a.beta = s.beta;
    const Exec space;
    Impl::packed_spmv_host(space, a, format.lanes);
    space.fence();
    return result;
  }
  template <class Y>
  std::vector<Y> product(Scaling s, const std::vector<Scalar>& x, const std::vector<Y>& y) const {
    return product(s, x, y, Layout{});
  }

  template <class Y = Sum>
  void expect(const Matrix& A, Data data, Scaling s = {}) const {
    const auto x = numbers<Scalar>(A.cols, data, 21);
    const auto y = numbers<Y>(A.rows, data, 22);
    EXPECT_TRUE(agrees<Sum>(A, s, x, y, product(s, x, y), data == Data::Integers));
  }

  Device device;
  PackedSlices<typename Csr::memory_space> format;
};

struct NamedPackedOptions {
  const char* name;
  PackedOptions options;
};
std::vector<NamedPackedOptions> packed_option_sets() {
  std::vector<NamedPackedOptions> all(1, {"defaults", {}});
  const auto add = [&](const char* name, auto&& change) {
    PackedOptions o;
    change(o);
    all.push_back({name, o});
  };
  add("short parts", [](PackedOptions& o) { o.max_steps = 3, o.split_steps = 5; });
  add("one step", [](PackedOptions& o) { o.max_steps = 1, o.split_steps = 1; });
  add("wide indices", [](PackedOptions& o) { o.narrow_indices = o.index_free = false; });
  add("sorted", [](PackedOptions& o) { o.natural_padding = 0, o.window = 252; });
  add("natural", [](PackedOptions& o) { o.natural_padding = 100; });
  add("no classes", [](PackedOptions& o) { o.value_classes = o.shared_patterns = false; });
  add("hubs", [](PackedOptions& o) { o.hubs = 40; });
  for (NamedPackedOptions& o : all) o.options.least_shared = 0;
  return all;
}

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

}  // namespace

template <class T>
class PackedOnHost : public ::testing::Test {};
#ifdef TESSERA_TEST_FEWER_TYPES
using PackedScalars = ::testing::Types<double, float, half_t>;
#else
using PackedScalars = ::testing::Types<double, float, half_t, bhalf_t>;
#endif
TYPED_TEST_SUITE(PackedOnHost, PackedScalars);

TYPED_TEST(PackedOnHost, EveryShape) {
  for (const std::string& spec : shapes()) {
    SCOPED_TRACE(spec);
    for (const Data data : {Data::Integers, Data::Real, Data::Magnitudes}) {
      const auto A = make_matrix<TypeParam>(spec, data, 5);
      const PackedHost<TypeParam> P(A);
      P.expect(A, data);
      P.template expect<TypeParam>(A, data, {2.5, -1});
    }
  }
}

TYPED_TEST(PackedOnHost, EveryOption) {
  std::vector<Pattern> patterns = {all_classes(700, 100), grouped_rows(2), grouped_rows(3)};
  patterns.push_back(generate("stencil2d:nx=37:ny=29:points=9"));
  patterns.push_back(generate("circuit:n=5003:long_every=1000:long_min=800:long_max=2500"));
  for (const NamedPackedOptions& o : packed_option_sets()) {
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      SCOPED_TRACE(std::string(o.name) + ", pattern " + std::to_string(i));
      for (const Data data : {Data::Integers, Data::Real}) {
        const auto A = make_matrix<TypeParam>(patterns[i], data, 5);
        const PackedHost<TypeParam> P(A, o.options);
        P.expect(A, data);
        P.template expect<TypeParam>(A, data, {2.5, 1});
      }
    }
  }
}

TYPED_TEST(PackedOnHost, RefusesOtherLanes) {
  const auto A = make_matrix<TypeParam>("diagonal", Data::Real, 5);
  const PackedHost<TypeParam> P(A);
  const Kokkos::DefaultHostExecutionSpace space;
  for (const int lanes : {4, 16, 32}) {
    EXPECT_THROW(Impl::packed_spmv_host(space, P.format.arguments(), lanes), NotSupported);
  }
}

TYPED_TEST(PackedOnHost, EveryScaling) {
  for (const bool parts : {false, true}) {
    PackedOptions o;
    if (parts) o.max_steps = o.split_steps = 4;
    const auto A = make_matrix<TypeParam>(all_classes(400, 100), Data::Integers, 5);
    const auto B = make_matrix<TypeParam>(all_classes(400, 100), Data::Magnitudes, 5);
    const PackedHost<TypeParam> exact(A, o), rounded(B, o);
    for (const Scaling s : scalings()) {
      exact.expect(A, Data::Integers, s);
      exact.template expect<TypeParam>(A, Data::Integers, s);
      rounded.expect(B, Data::Magnitudes, s);
      rounded.template expect<TypeParam>(B, Data::Magnitudes, s);
    }
  }
}

// Every storage class, for all tails of a chunk.
TYPED_TEST(PackedOnHost, EveryStorage) {
  using Host = PackedHost<TypeParam>;
  const Pattern p = all_classes(150, 60);
  auto A = make_matrix<TypeParam>(p, Data::Real, 5);
  const auto expect = [&](PackedStorage storage) {
    for (const NamedPackedOptions& o : packed_option_sets()) {
      const Host P(A, o.options);
      if (o.options.value_classes && o.options.hubs < 0) {
        EXPECT_EQ(P.format.storage, storage) << o.name;
      }
      P.expect(A, Data::Real, {1.5, -1});
    }
  };
  for (std::size_t i = 0; i < A.values.size(); ++i) A.values[i] = as<TypeParam>(static_cast<double>(i % 256) - 128);
  expect(PackedStorage::Integer);
  for (std::size_t i = 0; i < A.values.size(); ++i) A.values[i] = as<TypeParam>(0.125 * static_cast<double>(i % 199));
  expect(PackedStorage::Dictionary);
  for (TypeParam& value : A.values) value = as<TypeParam>(-0.75);
  expect(PackedStorage::Constant);
  if (std::is_same_v<TypeParam, double>) {
    for (std::size_t i = 0; i < A.values.size(); ++i) A.values[i] = as<TypeParam>(0.25 * static_cast<double>(i) - 999);
    expect(PackedStorage::Float);
  }
}

TYPED_TEST(PackedOnHost, EveryIndexWidth) {
  const int spans[] = {200, 254, 255, 60000, 65534, 65535, 70000, 2000000};
  const int widths[] = {PackedIndex8,  PackedIndex8,  PackedIndex16, PackedIndex16,
                        PackedIndex16, PackedIndex24, PackedIndex24, PackedIndex24};
  for (int i = 0; i < 8; ++i) {
    SCOPED_TRACE("span " + std::to_string(spans[i]));
    const auto A = make_matrix<TypeParam>(spanning(spans[i]), Data::Real, 5);
    const PackedHost<TypeParam> P(A);
    EXPECT_GT(P.format.summary.index_slots[widths[i]], 0);
    P.expect(A, Data::Real);
  }
  PackedOptions wide;
  wide.narrow_indices = false;
  const auto A = make_matrix<TypeParam>(spanning(60000), Data::Real, 5);
  const PackedHost<TypeParam> P(A, wide);
  EXPECT_GT(P.format.summary.index_slots[PackedIndex32], 0);
  P.expect(A, Data::Real);
}

// Whole stencils, rows that lack neighbours, a last slice that lacks rows, odd and even numbers of steps.
TYPED_TEST(PackedOnHost, IndexFree) {
  for (const char* spec : {"stencil2d:nx=64:ny=40", "stencil2d:nx=61:ny=43", "stencil2d:nx=50:ny=33:points=9",
                           "stencil3d:nx=20:ny=17:nz=9", "stencil3d:nx=19:ny=9:nz=11:points=27", "diagonal"}) {
    SCOPED_TRACE(spec);
    const auto A = make_matrix<TypeParam>(spec, Data::Real, 5);
    const PackedHost<TypeParam> P(A);
    EXPECT_GT(P.format.summary.index_slots[PackedIndexFree], 0);
    P.expect(A, Data::Real);
    P.expect(A, Data::Real, {-1, 2.5});
  }
}

TYPED_TEST(PackedOnHost, SharedIndices) {
  PackedOptions o;
  o.least_shared = 0;
  for (const int group : {2, 3}) {
    const auto A = make_matrix<TypeParam>(grouped_rows(group), Data::Real, 5);
    const PackedHost<TypeParam> P(A, o);
    EXPECT_GT(P.format.summary.grouped_slots, 0);
    P.expect(A, Data::Real, {2.5, -1});
  }
}

TYPED_TEST(PackedOnHost, AwkwardSizes) {
  for (const int length : {1, 2, 3, 4, 5, 7, 8, 9, 31, 63, 64, 127, 505, 1009}) {
    for (const int rows : {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33, 257}) {
      SCOPED_TRACE(std::to_string(rows) + " rows of " + std::to_string(length));
      const auto A = make_matrix<TypeParam>(
          pattern_of_lengths(std::vector<int>(static_cast<std::size_t>(rows), length), 1031), Data::Integers, 11);
      PackedHost<TypeParam>(A).expect(A, Data::Integers);
    }
  }
}

TYPED_TEST(PackedOnHost, SeveralVectorsAndStrides) {
  using Host = PackedHost<TypeParam>;
  using Layout = typename Host::Layout;
  using Sum = typename Host::Sum;
  std::vector<Pattern> patterns = {all_classes(200, 40), grouped_rows(2), generate("stencil2d:nx=37:ny=29")};
  for (const NamedPackedOptions& o : packed_option_sets()) {
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      SCOPED_TRACE(std::string(o.name) + ", pattern " + std::to_string(i));
      const auto A = make_matrix<TypeParam>(patterns[i], Data::Integers, 5);
      const Host P(A, o.options);
      for (const int columns : {1, 2, 3, 8}) {
        Layout layouts[3];
        layouts[0] = {columns + 1, columns + 2, 1, 1, columns};     // rows one after another, with a gap
        layouts[1] = {1, 1, A.cols + 3, A.rows + 3, columns};       // columns one after another
        layouts[2] = {1, 2 * columns + 1, A.cols + 1, 2, columns};  // neither
        for (const Layout& l : layouts) {
          const auto x = numbers<TypeParam>(l.x * A.cols + l.x_column * columns, Data::Integers, 6);
          const auto y = numbers<Sum>(l.y * A.rows + l.y_column * columns, Data::Integers, 7);
          const Scaling s{-1, 2.5};
          std::vector<Sum> wanted = y;
          const auto got = P.product(s, x, y, l);
          for (int j = 0; j < columns; ++j) {
            for (int row = 0; row < A.rows; ++row) {
              double sum = 0;
              for (auto k = A.row_map[row]; k < A.row_map[row + 1]; ++k) {
                sum += wide(A.values[k]) * wide(x[static_cast<std::size_t>(A.entries[k] * l.x + j * l.x_column)]);
              }
              Sum& at = wanted[static_cast<std::size_t>(row * l.y + j * l.y_column)];
              at = static_cast<Sum>(-sum + 2.5 * static_cast<double>(at));
            }
          }
          EXPECT_TRUE(same_bits(got, wanted)) << columns << " columns";  // integers, and nothing beside y is touched
        }
      }
    }
  }
}

// No row uses the even columns of x, column 0 among them.
TYPED_TEST(PackedOnHost, PaddingReadsNothing) {
  for (const NamedPackedOptions& o : packed_option_sets()) {
    for (const Pattern& p : {all_classes(600, 200), grouped_rows(3), generate("stencil2d:nx=37:ny=29")}) {
      SCOPED_TRACE(o.name);
      const auto A = make_matrix<TypeParam>(on_odd_columns(p), Data::Integers, 5);
      const auto x = bad_at_even_columns<TypeParam>(A.cols);
      const auto y = numbers<TypeParam>(A.rows, Data::Integers, 7);
      const PackedHost<TypeParam> P(A, o.options);
      EXPECT_TRUE(agrees<typename PackedHost<TypeParam>::Sum>(A, {}, x, y, P.product({}, x, y), true));
    }
  }
}

// A row meets infinities only if it uses them itself, however few columns its neighbours have.
TYPED_TEST(PackedOnHost, BadNeighbours) {
  for (const NamedPackedOptions& o : packed_option_sets()) {
    for (const Pattern& p : {all_classes(300, 100), generate("stencil2d:nx=37:ny=29")}) {
      SCOPED_TRACE(o.name);
      auto A = make_matrix<TypeParam>(p, Data::Integers, 5);
      auto x = numbers<TypeParam>(A.cols, Data::Integers, 6);
      for (std::size_t j = 0; j < x.size(); j += 97) x[j] = as<TypeParam>(bad_number(j / 97));
      for (std::size_t k = 50; k < A.values.size(); k += 211) A.values[k] = as<TypeParam>(bad_number(k));
      const auto y = numbers<TypeParam>(A.rows, Data::Integers, 7);
      const PackedHost<TypeParam> P(A, o.options);
      EXPECT_TRUE(agrees<typename PackedHost<TypeParam>::Sum>(A, {}, x, y, P.product({}, x, y), true));
    }
  }
}

TYPED_TEST(PackedOnHost, BetaZeroDoesNotReadY) {
  using Host = PackedHost<TypeParam>;
  PackedOptions parts;
  parts.max_steps = parts.split_steps = 4;
  const auto A = make_matrix<TypeParam>(all_classes(600, 200), Data::Integers, 5);
  const auto x = numbers<TypeParam>(A.cols, Data::Integers, 6);
  const std::vector<typename Host::Sum> y(static_cast<std::size_t>(A.rows), as<typename Host::Sum>(std::nan("")));
  const std::vector<TypeParam> narrow(static_cast<std::size_t>(A.rows), as<TypeParam>(std::nan("")));
  for (const PackedOptions& o : {PackedOptions{}, parts}) {
    const Host P(A, o);
    EXPECT_TRUE(agrees<typename Host::Sum>(A, {-1, 0}, x, y, P.product({-1, 0}, x, y), true));
    EXPECT_TRUE(agrees<typename Host::Sum>(A, {-1, 0}, x, narrow, P.product({-1, 0}, x, narrow), true));
  }
}

TYPED_TEST(PackedOnHost, NewValues) {
  using Host = PackedHost<TypeParam>;
  const auto A = make_matrix<TypeParam>(all_classes(600, 200), Data::Integers, 1);
  const auto B = make_matrix<TypeParam>(all_classes(600, 200), Data::Real, 2);
  Host P(A);
  const Host other(B);
  packed_update<typename Host::Csr>(Kokkos::DefaultHostExecutionSpace(), P.format, other.device.view().values());
  P.expect(B, Data::Real);
}

// The same bits on every run and for every number of threads.
TYPED_TEST(PackedOnHost, Deterministic) {
  using Host = PackedHost<TypeParam>;
  PackedOptions parts;
  parts.max_steps = parts.split_steps = 4;
  const auto A = make_matrix<TypeParam>("random:rows=60001:cols=9001:lengths=power:mean=12:tail=1.3", Data::Real, 5);
  const auto x = numbers<TypeParam>(A.cols, Data::Real, 6);
  const std::vector<typename Host::Sum> y(static_cast<std::size_t>(A.rows));
  for (const PackedOptions& o : {PackedOptions{}, parts}) {
    const Host P(A, o);
    const auto first = P.product({}, x, y);
    for (int run = 0; run < 5; ++run) EXPECT_TRUE(same_bits(first, P.product({}, x, y)));
#if defined(KOKKOS_ENABLE_SERIAL)
    const PackedHost<TypeParam, Kokkos::Serial> serial(A, o);
    EXPECT_TRUE(same_bits(first, serial.product({}, x, y)));
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

}  // namespace Testing
}  // namespace Tessera
