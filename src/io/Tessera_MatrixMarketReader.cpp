// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include <algorithm>
#include <limits>
#include <new>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "Tessera_Error.hpp"
#include "Tessera_MatrixMarket.hpp"
#include "Tessera_MatrixMarketText.hpp"

namespace Tessera {
namespace io {

double pattern_value(std::uint64_t seed, std::int64_t row, std::int64_t col) noexcept {
  // Three rounds of the splitmix64 finaliser, one per argument.
  const auto mix = [](std::uint64_t z) {
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  };
  const std::uint64_t hash = mix(mix(mix(seed) ^ static_cast<std::uint64_t>(row)) ^ static_cast<std::uint64_t>(col));
  const bool negative = (hash >> 63) != 0;
  const auto mantissa = static_cast<int>((hash >> 56) & 127);
  // 32 bits spread over 12 octaves; every operation below is exact.
  const auto octave = static_cast<int>(((hash & 0xffffffffu) * 12) >> 32);
  const double magnitude = (128 + mantissa) * static_cast<double>(1 << octave) / (128 * 64);
  return negative ? -magnitude : magnitude;
}

namespace Impl {

namespace {

template <class Scalar>
struct ScalarTraits {
  using real = Scalar;
  static constexpr bool is_complex = false;
  static Scalar conjugate(Scalar value) { return value; }
};
template <class Real>
struct ScalarTraits<std::complex<Real>> {
  using real = Real;
  static constexpr bool is_complex = true;
  static std::complex<Real> conjugate(std::complex<Real> value) { return std::conj(value); }
};

/// The value at (col, row) that follows from the one at (row, col).
template <class Scalar>
Scalar mirrored(MatrixMarketSymmetry symmetry, Scalar value) {
  if (symmetry == MatrixMarketSymmetry::SkewSymmetric) return -value;
  if (symmetry == MatrixMarketSymmetry::Hermitian) return ScalarTraits<Scalar>::conjugate(value);
  return value;
}

/// One entry of the file, places counted from 0.
template <class Scalar, class Ordinal>
struct Record {
  Ordinal row, col;
  Scalar value;
};

/// Reads what follows the size line and hands each stored entry to `emit(row, col, value)`, places counted from 0.
template <class Scalar>
class EntryParser {
 public:
  EntryParser(TextReader& reader, const HeaderAt& at, const MatrixMarketOptions& options)
      : reader_(reader), header_(at.header), options_(options) {
    if (header_.field == MatrixMarketField::Complex && !ScalarTraits<Scalar>::is_complex) {
      reader_.fail_at(1,
                      "the file is complex and cannot be read into a real matrix; read it with "
                      "std::complex<float> or std::complex<double>");
    }
  }

  /// How many entries the file may have room for, at most the declared number: what may be reserved.
  std::size_t plausible_entries() const {
    // The shortest entries, "1 1\n" and "0\n"; plus one for a missing last newline.
    std::uint64_t shortest = header_.format == MatrixMarketFormat::Array ? 2 : 4;
    if (header_.format == MatrixMarketFormat::Coordinate && header_.field != MatrixMarketField::Pattern) shortest += 2;
    if (header_.field == MatrixMarketField::Complex) shortest += 2;
    const std::uint64_t room = reader_.text_bytes_estimate() / shortest + 1;
    return static_cast<std::size_t>(std::min(static_cast<std::uint64_t>(header_.stored), room));
  }

  template <class Emit>
  void coordinate(Emit&& emit) {
    const auto rows = static_cast<std::uint64_t>(header_.rows), cols = static_cast<std::uint64_t>(header_.cols);
    for (std::int64_t count = 0; next_entry(count); ++count) {
      std::int64_t row = 0, col = 0;
      const char* p = read_index(skip_blank(reader_.begin()), "row", 0, row);
      if (static_cast<std::uint64_t>(row) - 1 >= rows) outside("row", row, header_.rows);
      p = read_index(p, "column", 1, col);
      if (static_cast<std::uint64_t>(col) - 1 >= cols) outside("column", col, header_.cols);
      --row;
      --col;
      const Scalar value = read_value(p, 2, row, col);
      if (header_.symmetry != MatrixMarketSymmetry::General && row <= col) check_symmetry(row, col, value);
      emit(row, col, value);
    }
  }

  template <class Emit>
  void array(Emit&& emit) {
    const bool general = header_.symmetry == MatrixMarketSymmetry::General;
    const std::int64_t above = header_.symmetry == MatrixMarketSymmetry::SkewSymmetric ? 1 : 0;
    std::int64_t row = above, col = 0;
    for (std::int64_t count = 0; next_entry(count); ++count) {
      const Scalar value = read_value(skip_blank(reader_.begin()), 0, row, col);
      if (!general && row == col) check_symmetry(row, col, value);
      emit(row, col, value);
      if (++row == header_.rows) {
        ++col;
        row = general ? 0 : col + above;
      }
    }
  }

 private:
  /// Moves on to the line of entry `count`; false behind the last one.
  bool next_entry(std::int64_t count) {
    const bool found = reader_.next_content();
    if (found && count < header_.stored) return true;
    if (found) {
      reader_.fail("too many entries: the size line declares " + std::to_string(header_.stored) +
                   ", and here is another one: " + quoted_rest(skip_blank(reader_.begin()), reader_.end()));
    }
    if (count < header_.stored) {
      reader_.fail("too few entries: the file ends after " + std::to_string(count) + " of the " +
                   std::to_string(header_.stored) + " which the size line declares");
    }
    return false;
  }

  const char* read_index(const char* p, const char* what, int position, std::int64_t& index) {
    const char* const token = p;
    const Parsed parsed = parse_integer(p, reader_.end(), index);
    if (parsed == Parsed::Ok) return skip_blank(p);
    if (token == reader_.end()) incomplete(position);
    if (parsed == Parsed::OutOfRange) {
      reader_.fail(std::string(what) + " index " + quoted_token(token, reader_.end()) +
                   " does not fit a 64-bit integer");
    }
    reader_.fail(std::string(what) + " index " + quoted_token(token, reader_.end()) + " is not an integer");
  }

  /// The value at `p`, which is number `position` of the line, and the end of the line.
  Scalar read_value(const char* p, int position, std::int64_t row, std::int64_t col) {
    using Real = typename ScalarTraits<Scalar>::real;
    Scalar result;
    if (header_.field == MatrixMarketField::Pattern) {
      const bool ordered = header_.symmetry == MatrixMarketSymmetry::General || row < col;
      result = static_cast<Real>(!options_.pattern_values_random
                                     ? 1.0
                                     : pattern_value(options_.seed, ordered ? row : col, ordered ? col : row));
    } else if (header_.field == MatrixMarketField::Integer) {
      std::int64_t integer = 0;
      const char* const token = p;
      const Parsed parsed = parse_integer(p, reader_.end(), integer);
      if (parsed != Parsed::Ok) bad_value(parsed, token, position, true);
      result = static_cast<Real>(integer);
    } else {
      Real real = 0;
      p = read_real(p, position, real);
      result = real;
      if constexpr (ScalarTraits<Scalar>::is_complex) {
        if (header_.field == MatrixMarketField::Complex) {
          Real imaginary = 0;
          p = read_real(skip_blank(p), position + 1, imaginary);
          result = Scalar(real, imaginary);
        }
      }
    }
    p = skip_blank(p);
    if (p != reader_.end()) reader_.fail("text after the entry: " + quoted_rest(p, reader_.end()));
    return result;
  }

  template <class Real>
  const char* read_real(const char* p, int position, Real& value) {
    const char* const token = p;
    const Parsed parsed = parse_real(p, reader_.end(), value);
    if (parsed != Parsed::Ok) bad_value(parsed, token, position, false);
    return p;
  }

  /// An entry on or above the diagonal of a file with a symmetry.
  void check_symmetry(std::int64_t row, std::int64_t col, Scalar value) {
    const std::string place = "(" + std::to_string(row + 1) + ", " + std::to_string(col + 1) + ")";
    if (row < col) {
      reader_.fail("entry " + place + " is above the diagonal; the file declares a symmetry and so has the lower " +
                   "triangle only");
    }
    // Negated comparisons, for nan is wrong here too.
    if (header_.symmetry == MatrixMarketSymmetry::SkewSymmetric && !(value == Scalar(0))) {
      reader_.fail("diagonal entry " + place + " of a skew-symmetric matrix is not zero");
    }
    if (header_.symmetry == MatrixMarketSymmetry::Hermitian && !(std::imag(value) == 0)) {
      reader_.fail("diagonal entry " + place + " of a hermitian matrix has a nonzero imaginary part");
    }
  }

  [[noreturn]] void outside(const char* what, std::int64_t index, std::int64_t extent) {
    reader_.fail(std::string(what) + " index " + std::to_string(index) + " is outside 1.." + std::to_string(extent) +
                 (index == 0 ? " (indices start at 1)" : ""));
  }

  [[noreturn]] void incomplete(int position) {
    const bool array = header_.format == MatrixMarketFormat::Array;
    const char* const values[] = {"value", "value", "", "real imaginary"};
    const char* const value = values[static_cast<int>(header_.field)];
    const int wanted = (array ? 0 : 2) + (header_.field == MatrixMarketField::Pattern   ? 0
                                          : header_.field == MatrixMarketField::Complex ? 2
                                                                                        : 1);
    reader_.fail("entry has " + std::to_string(position) + " numbers instead of " + std::to_string(wanted) + " (" +
                 (array ? "" : "row column") + (array || *value == '\0' ? "" : " ") + value + ")");
  }

  [[noreturn]] void bad_value(Parsed parsed, const char* token, int position, bool integer) {
    if (token == reader_.end()) incomplete(position);
    const std::string text = "value " + quoted_token(token, reader_.end());
    if (parsed == Parsed::NotANumber) {
      reader_.fail(text + (integer ? " is not an integer, as the banner declares" : " is not a number"));
    }
    reader_.fail(text + (integer ? " is out of range: it does not fit a 64-bit integer"
                                 : " is out of range: too large for double precision"));
  }

  TextReader& reader_;
  const MatrixMarketHeader& header_;
  const MatrixMarketOptions& options_;
};

/// Runs `read(reader, header)` on the file and gives every failure its place in the file.
template <class Read>
auto with_file(const std::string& path, Read&& read) {
  TextReader reader(path);
  HeaderAt at;
  try {
    at = parse_header(reader);
    return read(reader, at);
  } catch (const FileError& error) {
    const std::string damage = reader.fault_of_rest();
    if (damage.empty()) throw;
    throw FileError(path, error.line(), damage + "; the text goes wrong here");
  } catch (const std::bad_alloc&) {
    // falls through: the strings of the message are better built after the big arrays are gone
  } catch (const std::length_error&) {
    // a size beyond the address space
  }
  throw FileError(path, at.size_line,
                  "not enough memory for " + std::to_string(at.header.rows) + " x " + std::to_string(at.header.cols) +
                      " with " + std::to_string(at.header.stored) + " stored entries");
}

template <class Integer>
void require_fits(const TextReader& reader, const HeaderAt& at, const char* what, std::uint64_t number,
                  const char* type) {
  constexpr auto largest = static_cast<std::uint64_t>(std::numeric_limits<Integer>::max());
  if (number > largest) {
    reader.fail_at(at.size_line, std::to_string(number) + " " + what + " do not fit the " + type + " type (at most " +
                                     std::to_string(largest) + ")");
  }
}

/// Sorts one row by column and keeps the order of equal columns.
template <class Ordinal, class Scalar>
void sort_row(Ordinal* cols, Scalar* values, std::size_t count, std::vector<std::pair<Ordinal, Scalar>>& buffer) {
  if (count <= 24) {
    for (std::size_t k = 1; k < count; ++k) {
      const Ordinal col = cols[k];
      const Scalar value = values[k];
      std::size_t hole = k;
      for (; hole > 0 && cols[hole - 1] > col; --hole) {
        cols[hole] = cols[hole - 1];
        values[hole] = values[hole - 1];
      }
      cols[hole] = col;
      values[hole] = value;
    }
    return;
  }
  buffer.clear();
  for (std::size_t k = 0; k < count; ++k) buffer.emplace_back(cols[k], values[k]);
  std::stable_sort(buffer.begin(), buffer.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t k = 0; k < count; ++k) std::tie(cols[k], values[k]) = buffer[k];
}

/// Sorts all rows and, if asked for, adds up entries at the same place. Rows only ever move to the front.
template <class Scalar, class Ordinal, class Offset>
void finish_rows(HostCsr<Scalar, Ordinal, Offset>& csr, bool sum_duplicates) {
  std::vector<std::pair<Ordinal, Scalar>> buffer;
  Ordinal* const cols = csr.entries.data();
  Scalar* const values = csr.values.data();
  std::size_t out = 0;
  std::size_t begin = 0;
  for (std::size_t row = 0; row < static_cast<std::size_t>(csr.rows); ++row) {
    const auto end = static_cast<std::size_t>(csr.row_map[row + 1]);
    bool ascending = true, distinct = true;
    for (std::size_t k = begin + 1; k < end; ++k) {
      ascending = ascending && cols[k - 1] <= cols[k];
      distinct = distinct && cols[k - 1] < cols[k];
    }
    if (!ascending) sort_row(cols + begin, values + begin, end - begin, buffer);
    if (out == begin && (distinct || !sum_duplicates)) {
      out = end;
    } else {
      const std::size_t first = out;
      for (std::size_t k = begin; k < end; ++k) {
        if (sum_duplicates && out > first && cols[out - 1] == cols[k]) {
          values[out - 1] += values[k];
        } else {
          cols[out] = cols[k];
          values[out++] = values[k];
        }
      }
    }
    csr.row_map[row + 1] = static_cast<Offset>(out);
    begin = end;
  }
  csr.entries.resize(out);
  csr.values.resize(out);
}

}  // namespace

template <class Scalar, class Ordinal, class Offset>
HostCsr<Scalar, Ordinal, Offset> read_csr(const std::string& path, const MatrixMarketOptions& options) {
  return with_file(path, [&](TextReader& reader, const HeaderAt& at) {
    const MatrixMarketHeader& header = at.header;
    EntryParser<Scalar> parser(reader, at, options);
    require_fits<Ordinal>(reader, at, "rows", static_cast<std::uint64_t>(header.rows), "ordinal");
    require_fits<Ordinal>(reader, at, "columns", static_cast<std::uint64_t>(header.cols), "ordinal");
    require_fits<Offset>(reader, at, "entries", static_cast<std::uint64_t>(header.stored), "offset");

    const bool array = header.format == MatrixMarketFormat::Array;
    const bool general = header.symmetry == MatrixMarketSymmetry::General;
    std::vector<Record<Scalar, Ordinal>> records;
    records.reserve(parser.plausible_entries());
    std::uint64_t off_diagonal = 0;
    const auto keep = [&](std::int64_t row, std::int64_t col, Scalar value) {
      off_diagonal += row != col;
      records.push_back({static_cast<Ordinal>(row), static_cast<Ordinal>(col), value});
    };
    if (array) {
      parser.array(keep);
    } else {
      parser.coordinate(keep);
    }
    // Every element of an array is an entry, so the diagonal that a skew-symmetric one leaves out is too.
    if (array && header.symmetry == MatrixMarketSymmetry::SkewSymmetric) {
      for (std::int64_t k = 0; k < header.rows; ++k) {
        records.push_back({static_cast<Ordinal>(k), static_cast<Ordinal>(k), Scalar(0)});
      }
    }
    const std::uint64_t expanded = records.size() + (general ? 0 : off_diagonal);
    require_fits<Offset>(reader, at, "entries of both triangles", expanded, "offset");

    // Counting sort by row, which keeps the order of the file within each row.
    HostCsr<Scalar, Ordinal, Offset> csr;
    csr.rows = static_cast<Ordinal>(header.rows);
    csr.cols = static_cast<Ordinal>(header.cols);
    csr.row_map.assign(static_cast<std::size_t>(header.rows) + 1, Offset(0));
    csr.entries.resize(static_cast<std::size_t>(expanded));
    csr.values.resize(static_cast<std::size_t>(expanded));
    for (const auto& record : records) {
      ++csr.row_map[static_cast<std::size_t>(record.row) + 1];
      if (!general && record.row != record.col) ++csr.row_map[static_cast<std::size_t>(record.col) + 1];
    }
    for (std::size_t row = 0; row < static_cast<std::size_t>(csr.rows); ++row) {
      csr.row_map[row + 1] = static_cast<Offset>(csr.row_map[row + 1] + csr.row_map[row]);
    }
    std::vector<Offset> next(csr.row_map.begin(), csr.row_map.end() - 1);
    const auto put = [&](Ordinal row, Ordinal col, Scalar value) {
      const auto place = static_cast<std::size_t>(next[static_cast<std::size_t>(row)]++);
      csr.entries[place] = col;
      csr.values[place] = value;
    };
    for (const auto& record : records) {
      put(record.row, record.col, record.value);
      if (!general && record.row != record.col) {
        put(record.col, record.row, mirrored(header.symmetry, record.value));
      }
    }
    finish_rows(csr, options.sum_duplicates);
    return csr;
  });
}

template <class Scalar>
HostDense<Scalar> read_dense(const std::string& path, const MatrixMarketOptions& options) {
  Tessera::Impl::require<InvalidArgument>(options.sum_duplicates, [] {
    return std::string("read_matrix_market_dense: sum_duplicates = false has no meaning for a dense matrix");
  });
  return with_file(path, [&](TextReader& reader, const HeaderAt& at) {
    const MatrixMarketHeader& header = at.header;
    EntryParser<Scalar> parser(reader, at, options);
    HostDense<Scalar> dense;
    dense.rows = header.rows;
    dense.cols = header.cols;
    const bool array = header.format == MatrixMarketFormat::Array;
    if (array && header.symmetry == MatrixMarketSymmetry::General) {
      dense.values.reserve(parser.plausible_entries());
      parser.array([&](std::int64_t, std::int64_t, Scalar value) { dense.values.push_back(value); });
      return dense;
    }
    if (!array && header.rows != 1 && header.cols != 1) {
      reader.fail_at(at.size_line, "a coordinate file of " + std::to_string(header.rows) + " x " +
                                       std::to_string(header.cols) +
                                       " is not read as a dense matrix, only vectors are; use read_matrix_market");
    }
    // The whole array is allocated once the file has proved to be good.
    std::vector<Record<Scalar, std::int64_t>> records;
    records.reserve(parser.plausible_entries());
    const auto keep = [&](std::int64_t row, std::int64_t col, Scalar value) { records.push_back({row, col, value}); };
    if (array) {
      parser.array(keep);
    } else {
      parser.coordinate(keep);
    }
    std::vector<bool> seen;
    const auto rows = static_cast<std::size_t>(header.rows);
    dense.values.assign(rows * static_cast<std::size_t>(header.cols), Scalar(0));
    seen.assign(dense.values.size(), false);
    const auto put = [&](std::int64_t row, std::int64_t col, Scalar value) {
      const std::size_t place = static_cast<std::size_t>(row) + static_cast<std::size_t>(col) * rows;
      // The first value is stored and not added to zero, which would lose the sign of -0.
      dense.values[place] = seen[place] ? dense.values[place] + value : value;
      seen[place] = true;
    };
    for (const auto& record : records) {
      put(record.row, record.col, record.value);
      if (header.symmetry != MatrixMarketSymmetry::General && record.row != record.col) {
        put(record.col, record.row, mirrored(header.symmetry, record.value));
      }
    }
    return dense;
  });
}

#define TESSERA_INSTANTIATE_CSR(SCALAR, ORDINAL, OFFSET)                                          \
  template HostCsr<SCALAR, ORDINAL, OFFSET> read_csr<SCALAR, ORDINAL, OFFSET>(const std::string&, \
                                                                              const MatrixMarketOptions&);
#define TESSERA_INSTANTIATE(SCALAR)                           \
  TESSERA_INSTANTIATE_CSR(SCALAR, int, int)                   \
  TESSERA_INSTANTIATE_CSR(SCALAR, int, std::int64_t)          \
  TESSERA_INSTANTIATE_CSR(SCALAR, int, std::size_t)           \
  TESSERA_INSTANTIATE_CSR(SCALAR, std::int64_t, int)          \
  TESSERA_INSTANTIATE_CSR(SCALAR, std::int64_t, std::int64_t) \
  TESSERA_INSTANTIATE_CSR(SCALAR, std::int64_t, std::size_t)  \
  template HostDense<SCALAR> read_dense<SCALAR>(const std::string&, const MatrixMarketOptions&);
TESSERA_INSTANTIATE(float)
TESSERA_INSTANTIATE(double)
TESSERA_INSTANTIATE(std::complex<float>)
TESSERA_INSTANTIATE(std::complex<double>)
#undef TESSERA_INSTANTIATE
#undef TESSERA_INSTANTIATE_CSR

}  // namespace Impl
}  // namespace io
}  // namespace Tessera
