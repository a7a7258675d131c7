// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_MATRIXMARKETFIXTURE_HPP
#define TESSERA_MATRIXMARKETFIXTURE_HPP

#include <gtest/gtest.h>
#include <zlib.h>

#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "Tessera_Error.hpp"
#include "io/Tessera_MatrixMarket.hpp"

/// \file
/// What the tests of Matrix Market files share: a folder per test, gzip streams, and checks of results and messages.

namespace MatrixMarketTests {

namespace fs = std::filesystem;
using namespace Tessera::io;
using Complex = std::complex<double>;
using Int64 = std::int64_t;

inline const std::string coordinate_real = "%%MatrixMarket matrix coordinate real general\n";

/// A folder of its own for every test, removed afterwards.
class MatrixMarket : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::temp_directory_path() /
              ("tessera-" + std::string(test->name()) + "-" + std::to_string(std::random_device{}()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string file(const std::string& content, const std::string& name = "m.mtx") const {
    std::ofstream(path(name), std::ios::binary) << content;
    return path(name);
  }
  std::size_t files_in_folder() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  template <class Scalar = double>
  HostCsr<Scalar> csr(const std::string& content, const MatrixMarketOptions& options = {}) const {
    return read_matrix_market<Scalar>(file(content), options);
  }

  fs::path folder_;
};

/// A gzip stream; level 0 stores the text as it is, so that the place of each character is known.
inline std::string gzip(const std::string& text, int level = 6) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, static_cast<uLong>(text.size())) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(&out[0]);
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

inline std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

template <class Scalar, class Ordinal, class Offset>
void expect_csr(const HostCsr<Scalar, Ordinal, Offset>& csr, Int64 rows, Int64 cols, const std::vector<Int64>& row_map,
                const std::vector<Int64>& entries, const std::vector<Scalar>& values) {
  EXPECT_EQ(static_cast<Int64>(csr.rows), rows);
  EXPECT_EQ(static_cast<Int64>(csr.cols), cols);
  EXPECT_EQ(std::vector<Int64>(csr.row_map.begin(), csr.row_map.end()), row_map);
  EXPECT_EQ(std::vector<Int64>(csr.entries.begin(), csr.entries.end()), entries);
  EXPECT_EQ(csr.values, values);
}

template <class Container>
bool same_bits(const Container& a, const Container& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(a[0])) == 0);
}

/// Runs `body`, which has to throw a FileError at the line with the text in its message.
template <class Body>
std::string expect_file_error(const std::string& path, std::size_t line, const std::string& fault, Body&& body) {
  try {
    body();
  } catch (const Tessera::FileError& error) {
    const std::string what = error.what();
    EXPECT_EQ(error.file(), path);
    EXPECT_EQ(error.line(), line) << what;
    EXPECT_EQ(error.code(), Tessera::ErrorCode::FileError);
    EXPECT_NE(what.find(fault), std::string::npos) << what << "\n does not contain: " << fault;
    EXPECT_NE(what.find(path + ":" + std::to_string(line) + ": "), std::string::npos) << what;
    return what;
  } catch (const std::exception& error) {
    ADD_FAILURE() << "wrong exception: " << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no exception; expected: " << fault;
  return "(none)";
}

/// For the table of messages: TESSERA_PRINT_MESSAGES=1 shows what each malformed file gets.
inline void print_message(const std::string& name, const std::string& folder, std::string message) {
  const char* const wanted = std::getenv("TESSERA_PRINT_MESSAGES");
  if (wanted == nullptr || std::string(wanted) != "1") return;
  const auto at = message.find(folder + "/");
  if (at != std::string::npos) message.erase(at, folder.size() + 1);
  std::printf("| %s | %s |\n", name.c_str(), message.c_str());
}

}  // namespace MatrixMarketTests

#endif
