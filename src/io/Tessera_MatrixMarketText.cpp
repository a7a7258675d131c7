// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "Tessera_MatrixMarketText.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>

#include "Tessera_Error.hpp"

namespace Tessera {
namespace io {
namespace Impl {

namespace {

bool ends_with(const std::string& text, const std::string& ending) {
  return text.size() >= ending.size() && text.compare(text.size() - ending.size(), ending.size(), ending) == 0;
}

std::string quoted(const char* p, const char* end) {
  constexpr std::ptrdiff_t longest = 40;
  const bool cut = end - p > longest;
  std::string text = "'";
  for (const char* const stop = cut ? p + longest : end; p != stop; ++p) {
    if (*p >= ' ' && *p <= '~') {
      text += *p;
    } else {
      constexpr char digits[] = "0123456789abcdef";
      const auto byte = static_cast<unsigned char>(*p);
      text += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    }
  }
  return text + (cut ? "...'" : "'");
}

}  // namespace

std::string quoted_token(const char* p, const char* end) {
  const char* stop = p;
  while (stop != end && !ends_token(*stop)) ++stop;
  return quoted(p, stop);
}

std::string quoted_rest(const char* p, const char* end) {
  while (end != p && is_blank(end[-1])) --end;
  return quoted(p, end);
}

// ---------------------------------------------------------------------------------------------------------------------
// Lines

/// The bytes of the text. Own use of inflate rather than gzread, which takes a damaged header for plain text.
struct TextReader::Source {
  std::FILE* file = nullptr;
  bool compressed = false;
  bool inflating = false;  // `stream` has to be freed
  bool inside_member = false;
  bool at_end = false;
  bool thrown = false;
  std::string fault;
  std::uint64_t file_bytes = 0;
  z_stream stream{};
  std::vector<unsigned char> input;

  ~Source() {
    if (inflating) inflateEnd(&stream);
    if (file != nullptr) std::fclose(file);
  }

  /// What to say at the end of the file: the operating system's fault if it has one, otherwise the given text.
  std::string read_fault(const std::string& otherwise) const {
    return std::ferror(file) ? std::string("cannot be read: ") + std::strerror(errno) : otherwise;
  }

  /// Ends the text here; the fault, if any, is thrown when the reader arrives.
  void stop(const std::string& why) {
    fault = why;
    at_end = true;
  }

  /// Fetches compressed bytes until there are `wanted` in the input or the file ends.
  void refill(std::size_t wanted) {
    if (stream.avail_in >= wanted) return;
    std::memmove(input.data(), stream.next_in, stream.avail_in);
    const std::size_t got = std::fread(input.data() + stream.avail_in, 1, input.size() - stream.avail_in, file);
    stream.next_in = input.data();
    stream.avail_in += static_cast<uInt>(got);
  }

  /// Between two gzip members: true if another one follows. Zero bytes of padding may close the file.
  bool start_member() {
    for (;;) {
      refill(2);
      if (stream.avail_in == 0) {
        stop(read_fault({}));
        return false;
      }
      if (*stream.next_in != 0) break;
      ++stream.next_in;
      --stream.avail_in;
    }
    if (stream.avail_in < 2 || stream.next_in[0] != 0x1f || stream.next_in[1] != 0x8b) {
      stop("bytes after the end of the gzip stream");
      return false;
    }
    inflateReset(&stream);
    inside_member = true;
    return true;
  }

  std::size_t read_compressed(char* target, std::size_t bytes) {
    stream.next_out = reinterpret_cast<Bytef*>(target);
    stream.avail_out = static_cast<uInt>(bytes);
    while (stream.avail_out > 0 && !at_end) {
      if (!inside_member && !start_member()) break;
      refill(1);
      const int status = inflate(&stream, Z_NO_FLUSH);
      if (status == Z_STREAM_END) {
        inside_member = false;
      } else if (status == Z_BUF_ERROR) {  // no progress: there is nothing left to inflate
        stop(read_fault("gzip stream is truncated (the file ends before the stream does)"));
      } else if (status != Z_OK) {
        stop(std::string("gzip stream is damaged: ") + (stream.msg != nullptr ? stream.msg : zError(status)));
      }
    }
    return bytes - stream.avail_out;
  }

  /// Up to `bytes` bytes of text; fewer only at the end.
  std::size_t read(char* target, std::size_t bytes) {
    if (compressed) return read_compressed(target, bytes);
    const std::size_t got = std::fread(target, 1, bytes, file);
    if (got < bytes) {
      stop(read_fault({}));
    }
    return got;
  }

  /// Looks at the first bytes: the content decides whether this is gzip, and the name must not contradict.
  std::size_t open(const std::string& path, char* first_bytes) {
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) throw FileError(path, 0, "is a directory");
    file = std::fopen(path.c_str(), "rb");
    if (file == nullptr) throw FileError(path, 0, std::string("cannot be opened: ") + std::strerror(errno));
    std::error_code unknown;
    const auto size = std::filesystem::file_size(path, unknown);
    if (!unknown) file_bytes = size;
    std::setvbuf(file, nullptr, _IONBF, 0);
    const std::size_t got = std::fread(first_bytes, 1, 2, file);
    compressed = got == 2 && first_bytes[0] == '\x1f' && first_bytes[1] == '\x8b';
    if (!compressed) {
      if (ends_with(path, ".gz")) {
        throw FileError(path, 0,
                        got < 2 ? "gzip header is truncated (" + std::to_string(got) + " bytes in the file)"
                                : std::string("name ends in .gz, but the content is not gzip"));
      }
      return got;
    }
    input.resize(std::size_t(1) << 17);
    input[0] = 0x1f;
    input[1] = 0x8b;
    stream.next_in = input.data();
    stream.avail_in = 2;
    constexpr int gzip_only = 15 + 16;
    if (inflateInit2(&stream, gzip_only) != Z_OK) throw FileError(path, 0, "zlib cannot be initialised");
    inflating = inside_member = true;
    return 0;
  }
};

TextReader::TextReader(const std::string& path) : path_(path), source_(new Source), block_(block_bytes + 1) {
  pos_ = block_.data();
  end_ = pos_ + source_->open(path, pos_);
}

TextReader::~TextReader() = default;

void TextReader::fail_at(std::size_t line, const std::string& fault) const { throw FileError(path_, line, fault); }

bool TextReader::next_from_file() {
  // What is left of the block is the beginning of a line: it moves to the front.
  std::size_t kept = static_cast<std::size_t>(end_ - pos_);
  std::memmove(block_.data(), pos_, kept);
  pos_ = block_.data();
  end_ = pos_ + kept;
  if (!source_->at_end) {
    end_ += source_->read(end_, block_bytes - kept);
    if (char* const newline = static_cast<char*>(std::memchr(pos_ + kept, '\n', end_ - pos_ - kept))) {
      take(newline, newline + 1);
      return true;
    }
    if (!source_->at_end) {
      fail_at(line_ + 1, "line is longer than " + std::to_string(block_bytes) + " bytes");
    }
  }
  if (!source_->fault.empty()) {
    source_->thrown = true;
    fail_at(line_ + 1, source_->fault);
  }
  if (pos_ == end_) return false;
  *end_ = '\n';  // the last line lacks its newline; the block has room for one more character
  take(end_, end_);
  return true;
}

bool TextReader::next_content() {
  while (next()) {
    const char c = *skip_blank(line_begin_);
    if (c != '\n' && c != '%') return true;
  }
  return false;
}

std::uint64_t TextReader::text_bytes_estimate() const {
  // Deflate could reach 1032:1. Sparse matrices compress four to eight times, beyond that the arrays have to grow.
  return source_->compressed ? source_->file_bytes * 16 : source_->file_bytes;
}

std::string TextReader::fault_of_rest() {
  if (!source_->compressed || source_->thrown) return {};
  while (!source_->at_end) source_->read(block_.data(), block_bytes);
  return source_->fault;
}

// ---------------------------------------------------------------------------------------------------------------------
// Banner and size line

namespace {

/// Index of the word among `choices`, ignoring case.
template <std::size_t N>
std::size_t choose(const TextReader& reader, const char* what, const std::string& word,
                   const std::array<const char*, N>& choices) {
  std::string lower = word;
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  std::string known;
  for (std::size_t k = 0; k < N; ++k) {
    if (lower == choices[k]) return k;
    known += (k == 0 ? "" : ", ") + std::string(choices[k]);
  }
  reader.fail("banner: " + std::string(what) + " " + quoted(word.data(), word.data() + word.size()) +
              " is unknown (known: " + known + ")");
}

void parse_banner(TextReader& reader, MatrixMarketHeader& header) {
  if (!reader.next()) reader.fail_at(1, "file is empty; expected the banner '%%MatrixMarket ...'");
  std::vector<std::string> words;
  for (const char* p = skip_blank(reader.begin()); p != reader.end(); p = skip_blank(p)) {
    const char* const first = p;
    while (!ends_token(*p)) ++p;
    words.emplace_back(first, p);
  }
  constexpr const char* form = "%%MatrixMarket matrix FORMAT FIELD SYMMETRY";
  const bool leading_blank = is_blank(*reader.begin());
  std::string lower = words.empty() || leading_blank ? std::string() : words[0];
  for (char& c : lower) c = (c >= 'A' && c <= 'Z') ? static_cast<char>(c - 'A' + 'a') : c;
  if (lower != "%%matrixmarket") {
    reader.fail("not a Matrix Market file: line 1 must start with '%%MatrixMarket', found " +
                quoted_rest(reader.begin(), reader.end()));
  }
  if (words.size() < 5) {
    reader.fail("banner is incomplete: " + std::to_string(words.size()) + " words instead of 5 (" + form + ")");
  }
  if (words.size() > 5) {
    reader.fail("banner has text after the symmetry: " + quoted(words[5].data(), words[5].data() + words[5].size()));
  }
  choose<1>(reader, "object", words[1], {"matrix"});
  header.format = static_cast<MatrixMarketFormat>(choose<2>(reader, "format", words[2], {"coordinate", "array"}));
  header.field =
      static_cast<MatrixMarketField>(choose<4>(reader, "field", words[3], {"real", "integer", "pattern", "complex"}));
  header.symmetry = static_cast<MatrixMarketSymmetry>(
      choose<4>(reader, "symmetry", words[4], {"general", "symmetric", "skew-symmetric", "hermitian"}));
  if (header.format == MatrixMarketFormat::Array && header.field == MatrixMarketField::Pattern) {
    reader.fail("banner: an array file cannot be pattern, for it has nothing but values");
  }
  if (header.symmetry == MatrixMarketSymmetry::Hermitian && header.field != MatrixMarketField::Complex &&
      header.field != MatrixMarketField::Pattern) {
    reader.fail("banner: hermitian needs the field complex, found " +
                quoted(words[3].data(), words[3].data() + words[3].size()));
  }
}

/// a * b for sizes; false if it does not fit.
bool multiply(std::int64_t a, std::int64_t b, std::int64_t& product) {
  if (a != 0 && b > std::numeric_limits<std::int64_t>::max() / a) return false;
  product = a * b;
  return true;
}

}  // namespace

HeaderAt parse_header(TextReader& reader) {
  HeaderAt at;
  MatrixMarketHeader& header = at.header;
  parse_banner(reader, header);
  const bool array = header.format == MatrixMarketFormat::Array;
  const char* const form = array ? "(rows columns)" : "(rows columns entries)";
  const int wanted = array ? 2 : 3;
  if (!reader.next_content()) {
    reader.fail("file ends before the size line " + std::string(form));
  }
  at.size_line = reader.line();
  std::int64_t sizes[3] = {0, 0, 0};
  const char* p = skip_blank(reader.begin());
  for (int k = 0; k < wanted; ++k, p = skip_blank(p)) {
    if (p == reader.end()) {
      reader.fail("size line has " + std::to_string(k) + " numbers instead of " + std::to_string(wanted) + " " + form);
    }
    const char* const token = p;
    const Parsed parsed = parse_integer(p, reader.end(), sizes[k]);
    if (parsed == Parsed::NotANumber) {
      reader.fail("size line: " + quoted_token(token, reader.end()) + " is not an integer " + form);
    }
    if (parsed == Parsed::OutOfRange) {
      reader.fail("size line: " + quoted_token(token, reader.end()) + " does not fit a 64-bit integer");
    }
    if (sizes[k] < 0) reader.fail("size line: " + quoted_token(token, reader.end()) + " is negative");
  }
  if (p != reader.end()) {
    reader.fail("size line has text after " + std::string(form) + ": " + quoted_rest(p, reader.end()));
  }
  header.rows = sizes[0];
  header.cols = sizes[1];
  header.stored = sizes[2];
  const bool general = header.symmetry == MatrixMarketSymmetry::General;
  const std::string extents = std::to_string(header.rows) + " x " + std::to_string(header.cols);
  if (!general && header.rows != header.cols) {
    reader.fail("a matrix of " + extents + " cannot have a symmetry: rows and columns differ");
  }
  if (array) {
    std::int64_t full = 0;
    if (!multiply(header.rows, header.cols, full)) {
      reader.fail("an array of " + extents + " has more elements than fit a 64-bit integer");
    }
    const std::int64_t off_diagonal = (full - header.rows) / 2;
    header.stored = general ? full : off_diagonal;
    if (!general && header.symmetry != MatrixMarketSymmetry::SkewSymmetric) header.stored += header.rows;
  }
  return at;
}

// ---------------------------------------------------------------------------------------------------------------------
// Numbers

Parsed parse_integer_general(const char*& p, const char* end, std::int64_t& value) {
  const char* const first = (*p == '+' && p[1] != '-') ? p + 1 : p;
  const auto [last, error] = std::from_chars(first, end, value);
  if (error == std::errc::invalid_argument || !ends_token(*last)) return Parsed::NotANumber;
  if (error == std::errc::result_out_of_range) return Parsed::OutOfRange;
  p = last;
  return Parsed::Ok;
}

namespace {

/// Whether a decimal number which is too large or too small is too large. It is nonzero, and far enough from one that
/// the position of its leading digit decides.
bool is_huge(const char* first, const char* last) {
  std::int64_t position = 0;  // the first nonzero digit stands for 10^(position - 1)
  bool point = false, leading = true;
  const char* p = (*first == '-') ? first + 1 : first;
  for (; p != last && *p != 'e' && *p != 'E'; ++p) {
    if (*p == '.') {
      point = true;
    } else if (leading && *p == '0') {
      if (point) --position;
    } else {
      leading = false;
      if (!point) ++position;
    }
  }
  std::int64_t exponent = 0;
  if (p != last) {
    ++p;
    const bool negative = *p == '-';
    if (*p == '-' || *p == '+') ++p;
    // A line is shorter than 2^20 characters, so an exponent of 2^40 outweighs any number of digits.
    for (; p != last; ++p) exponent = std::min(exponent * 10 + (*p - '0'), std::int64_t(1) << 40);
    if (negative) exponent = -exponent;
  }
  return position + exponent > 0;
}

}  // namespace

Parsed parse_extreme(const char* first, const char* last, double& value) {
  if (is_huge(first, last)) return Parsed::OutOfRange;
  value = (*first == '-') ? -0.0 : 0.0;
  return Parsed::Ok;
}

Parsed parse_extreme(const char* first, const char* last, float& value) {
  double wide = 0;
  if (std::from_chars(first, last, wide).ec == std::errc::result_out_of_range) {
    const Parsed parsed = parse_extreme(first, last, wide);
    if (parsed != Parsed::Ok) return parsed;
  }
  // A double that float cannot hold: what IEEE conversion makes of it. (Converting is undefined for the large ones.)
  const float magnitude = std::fabs(wide) > 1 ? std::numeric_limits<float>::infinity() : 0.0f;
  value = std::signbit(wide) ? -magnitude : magnitude;
  return Parsed::Ok;
}

}  // namespace Impl

MatrixMarketHeader read_matrix_market_header(const std::string& path) {
  Impl::TextReader reader(path);
  return Impl::parse_header(reader).header;
}

}  // namespace io
}  // namespace Tessera
