// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include <cmath>
#include <limits>
#if defined(__linux__)
#include <sys/resource.h>

#include <csignal>
#endif

#include "io/MatrixMarketFixture.hpp"

namespace {

using namespace MatrixMarketTests;

template <class Real>
std::vector<Real> special_values() {
  using Limits = std::numeric_limits<Real>;
  std::vector<Real> values = {Real(0),
                              -Real(0),
                              Limits::denorm_min(),
                              -Limits::denorm_min(),
                              Limits::min(),
                              Limits::min() - Limits::denorm_min(),
                              Limits::max(),
                              Limits::lowest(),
                              Limits::epsilon(),
                              Limits::infinity(),
                              -Limits::infinity(),
                              Limits::quiet_NaN(),
                              std::copysign(Limits::quiet_NaN(), Real(-1)),
                              Real(0.1),
                              Real(1) / Real(3),
                              Real(1e22)};
  std::mt19937_64 random(11);
  while (values.size() < 2000) {
    // Any pattern of bits that is a number.
    const std::uint64_t bits = random();
    Real value;
    std::memcpy(&value, &bits, sizeof(value));
    if (!std::isnan(value)) values.push_back(value);
  }
  return values;
}

template <class Real>
void append(std::vector<Real>& out, Real a, Real) {
  out.push_back(a);
}
template <class Real>
void append(std::vector<std::complex<Real>>& out, Real a, Real b) {
  out.emplace_back(a, b);
}

template <class Scalar>
struct RealType {
  using type = Scalar;
};
template <class Real>
struct RealType<std::complex<Real>> {
  using type = Real;
};

template <class Scalar>
void round_trip(const std::string& name) {
  SCOPED_TRACE(name);
  const auto reals = special_values<typename RealType<Scalar>::type>();
  HostCsr<Scalar, int, int> csr;
  csr.cols = 50;
  csr.row_map = {0};
  for (std::size_t k = 0; k < reals.size(); ++k) {
    append(csr.values, reals[k], reals[reals.size() - 1 - k]);
    csr.entries.push_back(static_cast<int>(k % 50));
    if (k % 50 == 49) csr.row_map.push_back(static_cast<int>(k) + 1);
  }
  csr.row_map.push_back(static_cast<int>(reals.size()));  // an empty last row
  csr.rows = static_cast<int>(csr.row_map.size()) - 1;
  write_matrix_market(name, csr);
  const auto back = read_matrix_market<Scalar, int, int>(name);
  EXPECT_EQ(back.rows, csr.rows);
  EXPECT_EQ(back.cols, csr.cols);
  EXPECT_EQ(back.row_map, csr.row_map);
  EXPECT_EQ(back.entries, csr.entries);
  EXPECT_TRUE(same_bits(back.values, csr.values));

  HostDense<Scalar> dense;
  dense.rows = 50;
  dense.cols = static_cast<Int64>(csr.values.size()) / 50;
  dense.values = csr.values;
  write_matrix_market(name, dense);
  const auto dense_back = read_matrix_market_dense<Scalar>(name);
  EXPECT_EQ(dense_back.rows, dense.rows);
  EXPECT_EQ(dense_back.cols, dense.cols);
  EXPECT_TRUE(same_bits(dense_back.values, dense.values));
}

TEST_F(MatrixMarket, RoundTripIsBitIdentical) {
  for (const char* const name : {"a.mtx", "a.mtx.gz"}) {
    round_trip<float>(path(name));
    round_trip<double>(path(name));
    round_trip<std::complex<float>>(path(name));
    round_trip<Complex>(path(name));
  }
  EXPECT_EQ(files_in_folder(), 2u);  // nothing temporary is left
  const std::string bytes = content_of(path("a.mtx.gz"));
  ASSERT_GT(bytes.size(), 2u);
  EXPECT_EQ(bytes.substr(0, 2), "\x1f\x8b");
}

TEST_F(MatrixMarket, RoundTripOfEmptyMatrices) {
  HostCsr<double> csr;
  csr.row_map = {0};
  write_matrix_market(path("a.mtx"), csr);
  expect_csr<double>(read_matrix_market<double>(path("a.mtx")), 0, 0, {0}, {}, {});
  csr.rows = 17;
  csr.cols = 33;
  csr.row_map.assign(18, 0);
  write_matrix_market(path("a.mtx.gz"), csr);
  expect_csr<double>(read_matrix_market<double>(path("a.mtx.gz")), 17, 33, std::vector<Int64>(18, 0), {}, {});
}

TEST_F(MatrixMarket, WrittenText) {
  HostCsr<double, Int64, std::size_t> csr{2, 3, {0, 2, 3}, {0, 2, 1}, {0.1, -0.0, 1e300}};
  write_matrix_market(path("a.mtx"), csr);
  EXPECT_EQ(content_of(path("a.mtx")), coordinate_real + "2 3 3\n1 1 0.1\n1 3 -0\n2 2 1e+300\n");
  write_matrix_market(path("a.mtx"), HostDense<std::complex<float>>{1, 2, {{0.1f, 2}, {3, -4}}});
  EXPECT_EQ(content_of(path("a.mtx")), "%%MatrixMarket matrix array complex general\n1 2\n0.1 2\n3 -4\n");
}

TEST_F(MatrixMarket, WriterRefusesInconsistentArrays) {
  const HostCsr<double> good{2, 2, {0, 1, 2}, {0, 1}, {1, 2}};
  const std::string name = path("a.mtx");
  const auto refused = [&](auto&& edit) {
    HostCsr<double> bad = good;
    edit(bad);
    EXPECT_THROW(write_matrix_market(name, bad), Tessera::InvalidArgument);
    EXPECT_EQ(files_in_folder(), 0u);
  };
  refused([](auto& csr) { csr.row_map.pop_back(); });
  refused([](auto& csr) { csr.row_map.clear(); });
  refused([](auto& csr) { csr.row_map[0] = 1; });
  refused([](auto& csr) { csr.row_map[1] = 3; });
  refused([](auto& csr) { csr.row_map[2] = 3; });
  refused([](auto& csr) { csr.entries[1] = 2; });
  refused([](auto& csr) { csr.entries[1] = -1; });
  refused([](auto& csr) { csr.values.pop_back(); });
  refused([](auto& csr) { csr.rows = -1; });
  EXPECT_THROW(write_matrix_market(name, HostDense<double>{2, 2, {1, 2, 3}}), Tessera::InvalidArgument);
  EXPECT_THROW(write_matrix_market(name, HostDense<double>{-1, -1, {1}}), Tessera::InvalidArgument);
  EXPECT_THROW(write_matrix_market(name, HostDense<double>{Int64(1) << 62, 4, {}}), Tessera::InvalidArgument);
  EXPECT_NO_THROW(write_matrix_market(name, good));
}

TEST_F(MatrixMarket, WriterFaults) {
  const HostCsr<double> csr{1, 1, {0, 1}, {0}, {1}};
  const std::string name = path("no/such/folder/a.mtx");
  expect_file_error(name, 0, "cannot be created: No such file", [&] { write_matrix_market(name, csr); });
  fs::create_directory(path("folder"));
  expect_file_error(path("folder"), 0, "cannot be created", [&] { write_matrix_market(path("folder"), csr); });
  EXPECT_EQ(files_in_folder(), 1u);
  if (fs::exists("/dev/full")) {
    expect_file_error("/dev/full", 0, "cannot be written: No space left",
                      [&] { write_matrix_market("/dev/full", csr); });
    EXPECT_FALSE(fs::is_regular_file("/dev/full"));
  }
}

TEST_F(MatrixMarket, WriterReplacesTheTargetOfALink) {
  const HostCsr<double> csr{1, 1, {0, 1}, {0}, {1}};
  file("old", "target.mtx");
  std::error_code unsupported;
  fs::create_symlink(path("target.mtx"), path("link.mtx"), unsupported);
  if (unsupported) GTEST_SKIP() << "no symbolic links here";
  write_matrix_market(path("link.mtx"), csr);
  EXPECT_TRUE(fs::is_symlink(path("link.mtx")));
  EXPECT_EQ(content_of(path("target.mtx")), coordinate_real + "1 1 1\n1 1 1\n");
}

#if defined(__linux__)
TEST_F(MatrixMarket, FailedWriteLeavesTheOldFile) {
  HostDense<double> dense;
  std::mt19937_64 random(3);
  dense.rows = 200000;
  dense.cols = 1;
  for (Int64 k = 0; k < dense.rows; ++k) dense.values.push_back(static_cast<double>(random()));
  for (const char* const name : {"a.mtx", "a.mtx.gz"}) {
    file("old content", name);
    // A limit on the size of files stands in for a full disk.
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    rlimit limit = before;
    limit.rlim_cur = 100000;
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    expect_file_error(path(name), 0, "cannot be written", [&] { write_matrix_market(path(name), dense); });
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    std::signal(SIGXFSZ, handler);
    EXPECT_EQ(content_of(path(name)), "old content");
  }
  EXPECT_EQ(files_in_folder(), 2u);
}
#endif

}  // namespace
