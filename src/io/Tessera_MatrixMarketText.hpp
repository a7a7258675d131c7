// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_IO_MATRIX_MARKET_TEXT_HPP
#define TESSERA_IO_MATRIX_MARKET_TEXT_HPP

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "Tessera_MatrixMarket.hpp"

#if !defined(__cpp_lib_to_chars)
#error "Matrix Market files need floating-point std::from_chars (GCC 11, MSVC 19.24, LLVM 20 or newer)"
#endif

/// \file
/// Internal: lines of a plain or gzip-compressed text file, and the numbers on them.

namespace Tessera {
namespace io {
namespace Impl {

/// Hands out the lines of a file one by one.
///
/// The file passes through one fixed block, so memory does not depend on the size of the file, and a line must fit the
/// block. Faults of the gzip stream are held back until the text before them has been used up, so that they are
/// reported at the line where the text ends.
class TextReader {
 public:
  /// Longest line, and size of the block.
  static constexpr std::size_t block_bytes = std::size_t(1) << 20;

  explicit TextReader(const std::string& path);
  ~TextReader();
  TextReader(const TextReader&) = delete;
  TextReader& operator=(const TextReader&) = delete;

  /// Moves on to the next line; false at the end of the file. Throws `FileError` where the stream is damaged.
  bool next() {
    char* const newline = static_cast<char*>(std::memchr(pos_, '\n', static_cast<std::size_t>(end_ - pos_)));
    if (newline == nullptr) return next_from_file();
    take(newline, newline + 1);
    return true;
  }
  /// Moves on to the next line that is neither blank nor a comment.
  bool next_content();

  /// The current line; `*end()` is a newline, which stops every scan of digits or blanks.
  const char* begin() const { return line_begin_; }
  const char* end() const { return line_end_; }
  /// Number of the current line, from 1; at the end of the file that of the last line.
  std::size_t line() const { return line_; }
  const std::string& path() const { return path_; }

  /// Upper bound for the bytes of text in the file if that can be known, otherwise a guess; for `reserve` only.
  std::uint64_t text_bytes_estimate() const;

  [[noreturn]] void fail(const std::string& fault) const { fail_at(line_, fault); }
  [[noreturn]] void fail_at(std::size_t line, const std::string& fault) const;

  /// Reads the rest of a compressed file and returns the fault of its stream, empty if there is none or if it has been
  /// thrown already. Damaged data can decode to text that is wrong long before the checksum shows it, and then the
  /// damage is what the user wants to hear about.
  std::string fault_of_rest();

 private:
  struct Source;

  bool next_from_file();
  void take(char* line_end, char* next_line) {
    line_begin_ = pos_;
    line_end_ = line_end;
    pos_ = next_line;
    ++line_;
  }

  std::string path_;
  std::unique_ptr<Source> source_;
  std::vector<char> block_;
  char* pos_ = nullptr;
  char* end_ = nullptr;
  const char* line_begin_ = nullptr;
  const char* line_end_ = nullptr;
  std::size_t line_ = 0;
};

/// Banner and size line, and where the latter stands.
struct HeaderAt {
  MatrixMarketHeader header;
  std::size_t size_line = 0;
};
HeaderAt parse_header(TextReader& reader);

inline bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }
inline bool ends_token(char c) { return is_blank(c) || c == '\n'; }

inline const char* skip_blank(const char* p) {
  while (is_blank(*p)) ++p;
  return p;
}

/// The token at `p` in quotes, cut to a readable length and with other than printable ASCII characters escaped.
std::string quoted_token(const char* p, const char* end);
/// The same for the rest of the line.
std::string quoted_rest(const char* p, const char* end);

enum class Parsed { Ok, NotANumber, OutOfRange };

/// All integers that `parse_integer` does not settle on its fast path: signs, many digits, faults.
Parsed parse_integer_general(const char*& p, const char* end, std::int64_t& value);

/// Reads one integer token and leaves `p` behind it; on a fault `p` stays.
inline Parsed parse_integer(const char*& p, const char* end, std::int64_t& value) {
  const char* q = p;
  std::uint64_t digits = 0;
  for (; static_cast<unsigned char>(*q - '0') < 10; ++q) digits = digits * 10 + static_cast<unsigned char>(*q - '0');
  // 18 digits cannot have overflowed; anything longer, signed or odd is for the general function.
  if (q == p || q - p > 18 || !ends_token(*q)) return parse_integer_general(p, end, value);
  value = static_cast<std::int64_t>(digits);
  p = q;
  return Parsed::Ok;
}

/// Values for which from_chars reports "out of range", which it does for overflow and underflow alike.
Parsed parse_extreme(const char* first, const char* last, double& value);
Parsed parse_extreme(const char* first, const char* last, float& value);

/// Reads one real token, rounded once to `Real`, and leaves `p` behind it; on a fault `p` stays.
template <class Real>
inline Parsed parse_real(const char*& p, const char* end, Real& value) {
  // from_chars takes no plus sign; a second sign after it stays a fault.
  const char* const first = (*p == '+' && p[1] != '-') ? p + 1 : p;
  const auto [last, error] = std::from_chars(first, end, value);
  if (error == std::errc::invalid_argument || !ends_token(*last)) return Parsed::NotANumber;
  if (error == std::errc::result_out_of_range) {
    const Parsed parsed = parse_extreme(first, last, value);
    if (parsed != Parsed::Ok) return parsed;
  }
  p = last;
  return Parsed::Ok;
}

}  // namespace Impl
}  // namespace io
}  // namespace Tessera

#endif
