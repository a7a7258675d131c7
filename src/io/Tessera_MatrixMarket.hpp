// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_IO_MATRIX_MARKET_HPP
#define TESSERA_IO_MATRIX_MARKET_HPP

#include <complex>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

/// \file
/// Matrix Market files (.mtx, and .mtx.gz through zlib) to and from plain host arrays. Nothing here needs Kokkos.
///
/// What is read: `coordinate` and `array`; `real`, `integer`, `pattern` and `complex`; `general`, `symmetric`,
/// `skew-symmetric` and `hermitian`. Beyond the published format, comments and blank lines may stand anywhere after
/// the banner, lines may end in CR LF, numbers may carry a plus sign, `inf` and `nan` are values, and `pattern` may be
/// combined with `skew-symmetric` (the mirrored value is negative) and `hermitian` (as `symmetric`).
///
/// What is refused, always as a `FileError` that carries the file, the line and the fault: everything else. In
/// particular entries above the diagonal of a file which is not `general`, nonzero diagonals of skew-symmetric files,
/// complex diagonals of hermitian files, text after an entry, missing or surplus entries, complex files read into a
/// real type, numbers and sizes beyond the range of their type, and gzip streams that are cut or fail their checksum.
/// Memory grows with the rows that the size line claims, as row_map does, and with the entries that have been read, not
/// with those that it claims.

namespace Tessera {
namespace io {

/// Words of the banner.
enum class MatrixMarketObject { Matrix };
/// Words of the banner.
enum class MatrixMarketFormat { Coordinate, Array };
/// Words of the banner.
enum class MatrixMarketField { Real, Integer, Pattern, Complex };
/// Words of the banner.
enum class MatrixMarketSymmetry { General, Symmetric, SkewSymmetric, Hermitian };

/// Banner and size line of a file.
struct MatrixMarketHeader {
  MatrixMarketObject object = MatrixMarketObject::Matrix;         ///< always a matrix
  MatrixMarketFormat format = MatrixMarketFormat::Coordinate;     ///< entries with their places, or all numbers
  MatrixMarketField field = MatrixMarketField::Real;              ///< what a number is
  MatrixMarketSymmetry symmetry = MatrixMarketSymmetry::General;  ///< which half is left out
  std::int64_t rows = 0;                                          ///< of the whole matrix
  std::int64_t cols = 0;                                          ///< of the whole matrix
  /// Entries as the file stores them, that is before a symmetric file is expanded; for `array` the number of values
  /// that the size and the symmetry imply.
  std::int64_t stored = 0;
};

/// How files are read.
struct MatrixMarketOptions {
  /// Pattern files: `pattern_value(seed, row, col)` instead of 1. Other files are not affected.
  bool pattern_values_random = false;
  /// Seed of the values of pattern files.
  std::uint64_t seed = 1;
  /// Entries at the same place are added up (in the order of the file, in the precision of `Scalar`). With `false`
  /// they stay side by side in the order of the file, so that a row may hold the same column several times.
  bool sum_duplicates = true;
};

/// Compressed sparse rows on the host.
///
/// Row i holds the entries `row_map[i] <= k < row_map[i + 1]`; `row_map` has `rows + 1` elements and starts with 0, and
/// `entries` (columns from 0) ascend within each row.
template <class Scalar, class Ordinal = int, class Offset = std::int64_t>
struct HostCsr {
  Ordinal rows = 0;              ///< at least 0
  Ordinal cols = 0;              ///< at least 0
  std::vector<Offset> row_map;   ///< rows + 1 offsets
  std::vector<Ordinal> entries;  ///< columns
  std::vector<Scalar> values;    ///< one for each column
};

/// Dense matrix on the host, column-major: element (i, j) is `values[i + j * rows]`.
template <class Scalar>
struct HostDense {
  std::int64_t rows = 0;       ///< at least 0
  std::int64_t cols = 0;       ///< at least 0
  std::vector<Scalar> values;  ///< rows * cols of them
};

/// Reproducible value for the place (`row`, `col`), counted from 0, of a pattern file.
///
/// A counter-based hash of the three arguments gives sign * 2^e * (1 + k / 128) with a random sign, e uniform in
/// -6..5 and k uniform in 0..127: magnitudes are uniform over the octaves of [2^-6, 2^6) and uniform within an octave,
/// which is log-uniform to within the octave. Eight significant bits make every value exact in FP16, BF16, TF32, FP32
/// and FP64, so that the same matrix can be compared between precisions.
/// The reader passes (min, max) of row and column for files with a symmetry, so that both triangles agree; for
/// `skew-symmetric` the lower triangle gets the value and the upper triangle its negative.
/// Time: a few ns, no state. Determinism: the same on every machine and for every order of calls.
double pattern_value(std::uint64_t seed, std::int64_t row, std::int64_t col) noexcept;

namespace Impl {

template <class T, class... Choices>
inline constexpr bool is_one_of = (std::is_same_v<T, Choices> || ...);

template <class Scalar>
inline constexpr bool is_file_scalar = is_one_of<Scalar, float, double, std::complex<float>, std::complex<double>>;

template <class Scalar, class Ordinal, class Offset>
constexpr void require_types() {
  static_assert(is_file_scalar<Scalar>,
                "Matrix Market: Scalar is float, double, std::complex<float> or std::complex<double>");
  static_assert(is_one_of<Ordinal, int, std::int64_t>, "Matrix Market: Ordinal is int or std::int64_t");
  static_assert(is_one_of<Offset, int, std::int64_t, std::size_t>,
                "Matrix Market: Offset is int, std::int64_t or std::size_t");
}

// Compiled in the library for the types above.
template <class Scalar, class Ordinal, class Offset>
HostCsr<Scalar, Ordinal, Offset> read_csr(const std::string& path, const MatrixMarketOptions& options);
template <class Scalar>
HostDense<Scalar> read_dense(const std::string& path, const MatrixMarketOptions& options);
template <class Scalar, class Ordinal, class Offset>
void write_csr(const std::string& path, const HostCsr<Scalar, Ordinal, Offset>& matrix);
template <class Scalar>
void write_dense(const std::string& path, const HostDense<Scalar>& matrix);

}  // namespace Impl

/// Reads banner and size line only.
///
/// Time and bytes: those of the text up to the size line (at most one block of 1 MiB).
/// Errors: `FileError`. What follows the size line is not looked at.
MatrixMarketHeader read_matrix_market_header(const std::string& path);

/// Reads a sparse matrix.
///
/// `Scalar`: float, double, std::complex<float> or std::complex<double>; `Ordinal`: int or std::int64_t; `Offset`: int,
/// std::int64_t or std::size_t. Symmetric files are expanded to both triangles. Explicit zeros stay entries, and an
/// `array` file gives rows * cols entries, zeros included. Real and integer files may be read into a complex type.
///
/// Precision: every number is rounded once, correctly, to `Scalar`. A number beyond the range of double is an error;
/// one that underflows double becomes a denormal number or zero. With a float type, finite numbers beyond the range
/// of float follow IEEE conversion: they become infinite, and tiny ones denormal or zero. Integers are 64 bit in the
/// file and then rounded to `Scalar`. Duplicates are added in `Scalar`.
/// Time: O(stored + rows), plus n log n for each row of n entries whose columns do not ascend in the file; one thread.
/// Bytes: besides the result, one record (two `Ordinal` and a `Scalar`) per stored entry while reading.
/// Errors: `FileError`, also when sizes do not fit `Ordinal` or `Offset`, when a complex file meets a real `Scalar` and
/// when there is not enough memory.
/// Determinism: bitwise; duplicates are added in the order of the file.
template <class Scalar, class Ordinal = int, class Offset = std::int64_t>
HostCsr<Scalar, Ordinal, Offset> read_matrix_market(const std::string& path, const MatrixMarketOptions& options = {}) {
  Impl::require_types<Scalar, Ordinal, Offset>();
  return Impl::read_csr<Scalar, Ordinal, Offset>(path, options);
}

/// Reads a dense matrix or vector: any `array` file (symmetric ones are expanded), and `coordinate` files with a single
/// row or column, whose missing elements are zero and whose duplicates are added up.
///
/// Precision, errors and determinism: as `read_matrix_market`; `sum_duplicates = false` is an `InvalidArgument`, for
/// there is only one place for an element.
/// Time: O(stored + rows * cols). Bytes: the result; for symmetric files and coordinate files the stored values too.
template <class Scalar>
HostDense<Scalar> read_matrix_market_dense(const std::string& path, const MatrixMarketOptions& options = {}) {
  Impl::require_types<Scalar, int, int>();
  return Impl::read_dense<Scalar>(path, options);
}

/// Writes a sparse matrix as `coordinate real general` or `coordinate complex general`, row by row; with gzip
/// compression if `path` ends in ".gz".
///
/// Precision: the shortest decimal numbers that read back to the same bits in the same `Scalar`, including denormal
/// numbers, signed zeros and infinities. Of a nan, its sign survives and its payload does not.
/// The text goes to a temporary file beside the target, which is renamed at the end: after an error the old file, if
/// any, is still there and nothing else. Targets that are no regular files (pipes, devices) are written directly.
/// Time: O(rows + entries); one thread. Bytes: a fixed buffer.
/// Errors: `InvalidArgument` for inconsistent arrays, before anything is written; `FileError` (line 0) if the file
/// cannot be created, written or renamed. Determinism: bitwise, also with compression for one version of zlib.
template <class Scalar, class Ordinal, class Offset>
void write_matrix_market(const std::string& path, const HostCsr<Scalar, Ordinal, Offset>& matrix) {
  Impl::require_types<Scalar, Ordinal, Offset>();
  Impl::write_csr(path, matrix);
}

/// Writes a dense matrix as `array real general` or `array complex general`; otherwise as above.
template <class Scalar>
void write_matrix_market(const std::string& path, const HostDense<Scalar>& matrix) {
  Impl::require_types<Scalar, int, int>();
  Impl::write_dense(path, matrix);
}

}  // namespace io
}  // namespace Tessera

#endif
