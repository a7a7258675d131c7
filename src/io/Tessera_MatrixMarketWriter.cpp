// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include <zlib.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "Tessera_Error.hpp"
#include "Tessera_MatrixMarket.hpp"
#include "Tessera_MatrixMarketText.hpp"

namespace Tessera {
namespace io {
namespace Impl {

namespace {

namespace fs = std::filesystem;

/// A text file that appears under its name only when `commit` succeeds.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path) : path_(path), target_(path), buffer_(buffer_bytes) {
    std::error_code ignored;
    // A link stays a link: its target is replaced.
    if (fs::is_symlink(target_, ignored)) {
      const fs::path real = fs::canonical(target_, ignored);
      if (!real.empty()) target_ = real;
    }
    direct_ = fs::exists(target_, ignored) && !fs::is_regular_file(target_, ignored);
    const std::string ending = ".gz";
    const bool compress = path.size() >= ending.size() && path.compare(path.size() - 3, 3, ending) == 0;
    // x: never take over a file of somebody else's; T: plain text through the same calls.
    const std::string mode = std::string("wb") + (direct_ ? "" : "x") + (compress ? "6" : "T");
    written_ = direct_ ? target_ : temporary_name();
    errno = 0;
    file_ = gzopen(written_.string().c_str(), mode.c_str());
    if (file_ == nullptr) {
      throw FileError(path_, 0, "cannot be created: " + std::string(errno != 0 ? std::strerror(errno) : "no memory"));
    }
  }

  ~OutputFile() {
    if (file_ != nullptr) gzclose(file_);
    discard();
  }
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void text(const char* p) {
    const std::size_t length = std::strlen(p);
    make_room();
    std::memcpy(buffer_.data() + used_, p, length);
    used_ += length;
  }
  /// Numbers; the standard library's shortest form for floating point.
  template <class Number>
  void number(Number value) {
    make_room();
    char* const first = buffer_.data() + used_;
    used_ += static_cast<std::size_t>(std::to_chars(first, buffer_.data() + buffer_bytes, value).ptr - first);
  }
  template <class Real>
  void value(std::complex<Real> value) {
    number(value.real());
    text(" ");
    number(value.imag());
  }
  template <class Real>
  void value(Real value) {
    number(value);
  }

  void commit() {
    flush();
    gzFile const file = file_;
    file_ = nullptr;
    errno = 0;
    if (gzclose(file) != Z_OK) failed_write();
    if (direct_) return;
    std::error_code error;
    fs::rename(written_, target_, error);
    if (error) throw FileError(path_, 0, "cannot be put in place: " + error.message());
    committed_ = true;
  }

 private:
  static constexpr std::size_t buffer_bytes = std::size_t(1) << 18;
  /// No line is longer.
  static constexpr std::size_t room = 256;

  fs::path temporary_name() const {
    // Distinct between threads and, through the clock, between processes; if not, opening fails and nothing is lost.
    static std::atomic<unsigned> counter{0};
    const auto now = std::chrono::system_clock::now().time_since_epoch().count();
    fs::path name = target_;
    name += "." + std::to_string(now) + "-" + std::to_string(counter++) + ".tmp";
    return name;
  }

  void make_room() {
    if (buffer_bytes - used_ < room) flush();
  }

  void flush() {
    if (used_ == 0) return;
    errno = 0;
    const int wanted = static_cast<int>(used_);
    used_ = 0;
    if (gzwrite(file_, buffer_.data(), static_cast<unsigned>(wanted)) != wanted) failed_write();
  }

  [[noreturn]] void failed_write() const {
    throw FileError(path_, 0, "cannot be written: " + std::string(errno != 0 ? std::strerror(errno) : "zlib error"));
  }

  void discard() {
    std::error_code ignored;
    if (!direct_ && !committed_) fs::remove(written_, ignored);
  }

  std::string path_;
  fs::path target_;
  fs::path written_;
  std::vector<char> buffer_;
  std::size_t used_ = 0;
  gzFile file_ = nullptr;
  bool direct_ = false;
  bool committed_ = false;
};

template <class Scalar>
const char* banner(bool array) {
  constexpr bool complex = is_one_of<Scalar, std::complex<float>, std::complex<double>>;
  if (array) {
    return complex ? "%%MatrixMarket matrix array complex general\n" : "%%MatrixMarket matrix array real general\n";
  }
  return complex ? "%%MatrixMarket matrix coordinate complex general\n"
                 : "%%MatrixMarket matrix coordinate real general\n";
}

void require(bool condition, const std::string& path, const std::string& fault) {
  Tessera::Impl::require<InvalidArgument>(condition, [&] { return "write_matrix_market(" + path + "): " + fault; });
}

/// Everything a kernel could stumble over, so that no file is written that the reader would refuse.
template <class Scalar, class Ordinal, class Offset>
void check(const std::string& path, const HostCsr<Scalar, Ordinal, Offset>& matrix) {
  const auto number = [](auto value) { return std::to_string(value); };
  require(matrix.rows >= 0 && matrix.cols >= 0, path,
          "negative size " + number(matrix.rows) + " x " + number(matrix.cols));
  const auto rows = static_cast<std::size_t>(matrix.rows);
  require(matrix.row_map.size() == rows + 1, path,
          "row_map has " + number(matrix.row_map.size()) + " elements instead of rows + 1 = " + number(rows + 1));
  require(matrix.row_map[0] == 0, path, "row_map starts with " + number(matrix.row_map[0]) + " instead of 0");
  for (std::size_t row = 0; row < rows; ++row) {
    if (matrix.row_map[row] <= matrix.row_map[row + 1]) continue;
    require(false, path,
            "row_map descends from " + number(matrix.row_map[row]) + " to " + number(matrix.row_map[row + 1]) +
                " at row " + number(row));
  }
  const auto entries = static_cast<std::size_t>(matrix.row_map[rows]);
  require(matrix.entries.size() == entries && matrix.values.size() == entries, path,
          "row_map ends with " + number(entries) + ", but there are " + number(matrix.entries.size()) +
              " columns and " + number(matrix.values.size()) + " values");
  for (std::size_t k = 0; k < entries; ++k) {
    if (matrix.entries[k] >= 0 && matrix.entries[k] < matrix.cols) continue;
    require(false, path,
            "column " + number(matrix.entries[k]) + " of entry " + number(k) + " is outside 0.." + number(matrix.cols) +
                " - 1");
  }
}

}  // namespace

template <class Scalar, class Ordinal, class Offset>
void write_csr(const std::string& path, const HostCsr<Scalar, Ordinal, Offset>& matrix) {
  check(path, matrix);
  OutputFile file(path);
  file.text(banner<Scalar>(false));
  file.number(matrix.rows);
  file.text(" ");
  file.number(matrix.cols);
  file.text(" ");
  file.number(matrix.entries.size());
  file.text("\n");
  for (std::size_t row = 0; row + 1 < matrix.row_map.size(); ++row) {
    const auto end = static_cast<std::size_t>(matrix.row_map[row + 1]);
    for (auto k = static_cast<std::size_t>(matrix.row_map[row]); k < end; ++k) {
      file.number(row + 1);
      file.text(" ");
      file.number(static_cast<std::int64_t>(matrix.entries[k]) + 1);
      file.text(" ");
      file.value(matrix.values[k]);
      file.text("\n");
    }
  }
  file.commit();
}

template <class Scalar>
void write_dense(const std::string& path, const HostDense<Scalar>& matrix) {
  require(matrix.rows >= 0 && matrix.cols >= 0, path,
          "negative size " + std::to_string(matrix.rows) + " x " + std::to_string(matrix.cols));
  const auto rows = static_cast<std::uint64_t>(matrix.rows), cols = static_cast<std::uint64_t>(matrix.cols);
  const auto count = static_cast<std::uint64_t>(matrix.values.size());
  // Division, for the product may overflow.
  const bool fits = rows == 0 || cols == 0 ? count == 0 : count / rows == cols && count % rows == 0;
  require(
      fits, path,
      std::to_string(matrix.rows) + " x " + std::to_string(matrix.cols) + " with " + std::to_string(count) + " values");
  OutputFile file(path);
  file.text(banner<Scalar>(true));
  file.number(matrix.rows);
  file.text(" ");
  file.number(matrix.cols);
  file.text("\n");
  for (const Scalar& value : matrix.values) {
    file.value(value);
    file.text("\n");
  }
  file.commit();
}

#define TESSERA_INSTANTIATE_CSR(SCALAR, ORDINAL, OFFSET) \
  template void write_csr<SCALAR, ORDINAL, OFFSET>(const std::string&, const HostCsr<SCALAR, ORDINAL, OFFSET>&);
#define TESSERA_INSTANTIATE(SCALAR)                           \
  TESSERA_INSTANTIATE_CSR(SCALAR, int, int)                   \
  TESSERA_INSTANTIATE_CSR(SCALAR, int, std::int64_t)          \
  TESSERA_INSTANTIATE_CSR(SCALAR, int, std::size_t)           \
  TESSERA_INSTANTIATE_CSR(SCALAR, std::int64_t, int)          \
  TESSERA_INSTANTIATE_CSR(SCALAR, std::int64_t, std::int64_t) \
  TESSERA_INSTANTIATE_CSR(SCALAR, std::int64_t, std::size_t)  \
  template void write_dense<SCALAR>(const std::string&, const HostDense<SCALAR>&);
TESSERA_INSTANTIATE(float)
TESSERA_INSTANTIATE(double)
TESSERA_INSTANTIATE(std::complex<float>)
TESSERA_INSTANTIATE(std::complex<double>)
#undef TESSERA_INSTANTIATE
#undef TESSERA_INSTANTIATE_CSR

}  // namespace Impl
}  // namespace io
}  // namespace Tessera
