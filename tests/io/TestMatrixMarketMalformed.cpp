// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "io/MatrixMarketFixture.hpp"

namespace {

using namespace MatrixMarketTests;

struct Malformed {
  const char* name;
  std::string content;
  std::size_t line;
  const char* fault;
};

std::vector<Malformed> malformed_files() {
  const std::string mm = "%%MatrixMarket matrix ", real = coordinate_real;
  return {
      {"empty file", "", 1, "file is empty"},
      {"no banner", "2 2 1\n1 1 1\n", 1, "must start with '%%MatrixMarket', found '2 2 1'"},
      {"wrong banner", "%MatrixMarket matrix coordinate real general\n1 1 0\n", 1, "not a Matrix Market file"},
      {"binary file", std::string("\x7f\x45\x4c\x46\x02\x01\x00\xff\n", 9), 1, "found '\\x7fELF\\x02\\x01\\x00\\xff'"},
      {"banner not on line 1", "\n" + real + "1 1 0\n", 1, "line 1 must start with"},
      {"banner cut short", mm + "coordinate real\n1 1 0\n", 1, "banner is incomplete: 4 words instead of 5"},
      {"banner with more words", mm + "coordinate real general x\n1 1 0\n", 1, "text after the symmetry: 'x'"},
      {"unknown object", "%%MatrixMarket vector coordinate real general\n1 1 0\n", 1, "object 'vector' is unknown"},
      {"unknown format", mm + "dense real general\n1 1\n", 1, "format 'dense' is unknown"},
      {"unknown field", mm + "coordinate double general\n1 1 0\n", 1, "field 'double' is unknown"},
      {"unknown symmetry", mm + "coordinate real diagonal\n1 1 0\n", 1, "symmetry 'diagonal' is unknown"},
      {"array of pattern", mm + "array pattern general\n1 1\n", 1, "array file cannot be pattern"},
      {"hermitian of real", mm + "coordinate real hermitian\n1 1 0\n", 1, "hermitian needs the field complex"},
      {"complex into real", mm + "coordinate complex general\n1 1 1\n1 1 1 0\n", 1,
       "cannot be read into a real matrix"},
      {"no size line", real + "% only comments\n\n", 3, "file ends before the size line (rows columns entries)"},
      {"size line too short", real + "% c\n2 2\n1 1 1\n", 3, "size line has 2 numbers instead of 3"},
      {"array size line too short", mm + "array real general\n2\n1\n2\n", 2, "has 1 numbers instead of 2"},
      {"size line too long", real + "2 2 1 7\n1 1 1\n", 2, "size line has text after (rows columns entries): '7'"},
      {"size not a number", real + "2 x 1\n1 1 1\n", 2, "'x' is not an integer"},
      {"size not an integer", real + "2 2.0 1\n1 1 1\n", 2, "'2.0' is not an integer"},
      {"negative size", real + "2 -2 1\n1 1 1\n", 2, "'-2' is negative"},
      {"size beyond 64 bits", real + "2 2 9223372036854775808\n", 2, "does not fit a 64-bit integer"},
      {"rows beyond the ordinal", real + "2147483648 2 1\n1 1 1\n", 2, "2147483648 rows do not fit the ordinal type"},
      {"columns beyond the ordinal", real + "2 2147483648 1\n1 1 1\n", 2, "columns do not fit the ordinal type"},
      {"array product beyond 64 bits", mm + "array real general\n4000000000 4000000000\n1\n", 2, "more elements than"},
      {"symmetric but not square", mm + "coordinate real symmetric\n3 2 1\n1 1 1\n", 2, "rows and columns differ"},
      {"huge declared count", real + "2 2 9223372036854775807\n1 1 1\n", 3, "ends after 1 of the 9223372036854775807"},
      {"huge declared array", mm + "array real general\n2000000000 2000000000\n1\n2\n", 4,
       "2 of the 40000000000000000"},
      {"too few entries", real + "2 2 3\n1 1 1\n2 2 2\n", 4, "too few entries: the file ends after 2 of the 3"},
      {"too many entries", real + "2 2 1\n1 1 1\n% c\n2 2 2\n", 5, "too many entries: the size line declares 1"},
      {"too few array values", mm + "array real general\n2 2\n1\n2\n3\n", 5, "ends after 3 of the 4"},
      {"too many array values", mm + "array real symmetric\n2 2\n1\n2\n3\n4\n", 6, "declares 3, and here is another"},
      {"row 0", real + "2 2 1\n0 1 1\n", 3, "row index 0 is outside 1..2 (indices start at 1)"},
      {"column 0", real + "2 2 1\n1 0 1\n", 3, "column index 0 is outside 1..2"},
      {"row beyond the matrix", real + "2 2 2\n1 1 1\n3 1 1\n", 4, "row index 3 is outside 1..2"},
      {"column beyond the matrix", real + "2 2 1\n1 3 1\n", 3, "column index 3 is outside 1..2"},
      {"negative index", real + "2 2 1\n-1 1 1\n", 3, "row index -1 is outside 1..2"},
      {"least row index", real + "2 2 1\n-9223372036854775808 1 1\n", 3, "row index -9223372036854775808 is outside"},
      {"least column index", real + "2 2 1\n1 -9223372036854775808 1\n", 3, "column index -9223372036854775808 is"},
      {"entry of an empty matrix", real + "0 0 1\n1 1 1\n", 3, "row index 1 is outside 1..0"},
      {"index beyond 64 bits", real + "2 2 1\n1 18446744073709551617 1\n", 3,
       "column index '18446744073709551617' does"},
      {"index with a fraction", real + "2 2 1\n1.5 1 1\n", 3, "row index '1.5' is not an integer"},
      {"index not a number", real + "2 2 1\n1 one 1\n", 3, "column index 'one' is not an integer"},
      {"value missing", real + "2 2 1\n1 1\n", 3, "entry has 2 numbers instead of 3 (row column value)"},
      {"column missing", real + "2 2 1\n1\n", 3, "entry has 1 numbers instead of 3"},
      {"imaginary part missing", mm + "coordinate complex general\n2 2 1\n1 1 4\n", 3, "3 numbers instead of 4"},
      {"value not a number", real + "2 2 1\n1 1 abc\n", 3, "value 'abc' is not a number"},
      {"value with a tail", real + "2 2 1\n1 1 1.5x\n", 3, "value '1.5x' is not a number"},
      {"hexadecimal value", real + "2 2 1\n1 1 0x10\n", 3, "value '0x10' is not a number"},
      {"decimal comma", real + "2 2 1\n1 1 1,5\n", 3, "value '1,5' is not a number"},
      {"exponent missing", real + "2 2 1\n1 1 1e\n", 3, "value '1e' is not a number"},
      {"two signs", real + "2 2 1\n1 1 +-1\n", 3, "value '+-1' is not a number"},
      {"NUL byte", real + std::string("2 2 1\n1 1 1\0\n", 14), 3, "value '1\\x00' is not a number"},
      {"value overflows", real + "2 2 1\n1 1 1e999\n", 3, "value '1e999' is out of range"},
      {"long value overflows", real + "1 1 1\n1 1 -1" + std::string(400, '0') + "\n", 3, "is out of range"},
      {"array value overflows", mm + "array real general\n1 1\n-1e400\n", 3, "value '-1e400' is out of range"},
      {"fraction in integer file", mm + "coordinate integer general\n2 2 1\n1 1 1.5\n", 3, "'1.5' is not an integer"},
      {"integer overflows", mm + "coordinate integer general\n1 1 1\n1 1 9223372036854775808\n", 3,
       "does not fit a 64"},
      {"text after a value", real + "2 2 1\n1 1 1 1\n", 3, "text after the entry: '1'"},
      {"comment after a value", real + "2 2 1\n1 1 1 % one\n", 3, "text after the entry: '% one'"},
      {"value in a pattern file", mm + "coordinate pattern general\n2 2 1\n1 1 1\n", 3, "text after the entry: '1'"},
      {"two array values on a line", mm + "array real general\n2 1\n1 2\n", 3, "text after the entry: '2'"},
      {"above the diagonal, symmetric", mm + "coordinate real symmetric\n2 2 1\n1 2 1\n", 3, "(1, 2) is above the"},
      {"above the diagonal, pattern", mm + "coordinate pattern symmetric\n2 2 1\n1 2\n", 3, "(1, 2) is above the"},
      {"skew-symmetric diagonal", mm + "coordinate real skew-symmetric\n2 2 1\n2 2 1\n", 3, "entry (2, 2) of a skew"},
      {"skew-symmetric nan diagonal", mm + "coordinate real skew-symmetric\n2 2 1\n2 2 nan\n", 3, "is not zero"},
      {"line too long", real + "%" + std::string(2000000, 'x') + "\n1 1 0\n", 2, "line is longer than 1048576 bytes"},
  };
}

TEST_F(MatrixMarket, MalformedFiles) {
  for (const Malformed& test : malformed_files()) {
    SCOPED_TRACE(test.name);
    const std::string name = file(test.content);
    print_message(test.name, folder_.string(), expect_file_error(name, test.line, test.fault, [&] {
                    if (std::string(test.name) == "imaginary part missing") {
                      read_matrix_market<Complex>(name);
                    } else {
                      read_matrix_market<double>(name);
                    }
                  }));
  }
}

TEST_F(MatrixMarket, MalformedHermitian) {
  const std::string banner = "%%MatrixMarket matrix coordinate complex hermitian\n2 2 1\n";
  expect_file_error(path("m.mtx"), 3, "diagonal entry (1, 1) of a hermitian matrix has a nonzero imaginary part",
                    [&] { csr<Complex>(banner + "1 1 1 1\n"); });
  expect_file_error(path("m.mtx"), 3, "(1, 2) is above the diagonal", [&] { csr<Complex>(banner + "1 2 1 1\n"); });
  expect_file_error(path("m.mtx"), 3, "nonzero imaginary part",
                    [&] { csr<Complex>("%%MatrixMarket matrix array complex hermitian\n1 1\n1 1\n"); });
}

TEST_F(MatrixMarket, UnreadableFiles) {
  print_message("file does not exist", folder_.string(),
                expect_file_error(path("none.mtx"), 0, "cannot be opened: No such file",
                                  [&] { read_matrix_market<double>(path("none.mtx")); }));
  print_message(
      "folder instead of a file", folder_.string() + "/..",
      expect_file_error(folder_.string(), 0, "is a directory", [&] { read_matrix_market_header(folder_.string()); }));
}

TEST_F(MatrixMarket, MoreRowsThanMemory) {
  const std::string name = file(coordinate_real + "4611686018427387904 1 1\n7 1 1\n");
  print_message("more rows than memory", folder_.string(),
                expect_file_error(name, 2, "not enough memory", [&] { read_matrix_market<double, Int64>(name); }));
}

TEST_F(MatrixMarket, GzipContent) {
  const std::string text = coordinate_real + "2 2 2\n1 1 2\n2 2 3\n";
  const auto check = [&](const std::string& name) {
    SCOPED_TRACE(name);
    expect_csr<double>(read_matrix_market<double>(name), 2, 2, {0, 1, 2}, {0, 1}, {2, 3});
  };
  check(file(gzip(text), "a.mtx.gz"));
  check(file(gzip(text), "gzip_by_content.mtx"));
  check(file(gzip(text.substr(0, 50)) + gzip(text.substr(50)), "two_members.mtx.gz"));
  check(file(gzip(text) + std::string(1000, '\0'), "padded.mtx.gz"));
  EXPECT_EQ(read_matrix_market_header(path("a.mtx.gz")).rows, 2);
}

TEST_F(MatrixMarket, GzipDamage) {
  // Several blocks of text, so that the fault is met long after the beginning.
  const int entries = 200000;
  std::string text = coordinate_real + "1000 1000 " + std::to_string(entries) + "\n";
  std::mt19937 random(1);
  for (int k = 0; k < entries; ++k) {
    text += std::to_string(random() % 1000 + 1) + " " + std::to_string(random() % 1000 + 1) + " " +
            std::to_string(random()) + "\n";
  }
  ASSERT_GT(text.size(), 3000000u);
  const std::string whole = gzip(text);
  const auto lines = static_cast<std::size_t>(entries) + 2;
  EXPECT_NO_THROW(read_matrix_market<double>(file(whole, "whole.mtx.gz")));

  const auto expect = [&](const std::string& name, const std::string& content, std::size_t line, const char* fault) {
    SCOPED_TRACE(name);
    const std::string path = file(content, "g.mtx.gz");
    const std::string message = expect_file_error(path, line, fault, [&] { read_matrix_market<double>(path); });
    print_message("gzip: " + name, folder_.string(), message);
    // The remark about the text belongs to damage that was met as wrong text first.
    const std::string remark = "the text goes wrong here";
    EXPECT_EQ(message.find(remark) != std::string::npos, std::string(fault).find(remark) != std::string::npos);
  };
  expect("empty file", "", 0, "gzip header is truncated (0 bytes in the file)");
  expect("header cut after 1 byte", whole.substr(0, 1), 0, "gzip header is truncated (1 bytes in the file)");
  expect("header cut after 6 bytes", whole.substr(0, 6), 1, "gzip stream is truncated");
  expect("body cut after the header", whole.substr(0, 10), 1, "gzip stream is truncated");
  expect("checksum cut off", whole.substr(0, whole.size() - 8), lines + 1, "gzip stream is truncated");
  expect("last byte cut off", whole.substr(0, whole.size() - 1), lines + 1, "gzip stream is truncated");
  expect("plain text named .gz", text, 0, "the content is not gzip");
  expect("text behind the stream", whole + "garbage", lines + 1, "bytes after the end of the gzip stream");

  std::string damaged = whole;
  damaged[whole.size() - 6] ^= 1;  // the checksum
  expect("checksum wrong", damaged, lines + 1, "gzip stream is damaged: incorrect data check");
  damaged = whole;
  damaged[whole.size() - 2] ^= 1;  // the length behind it
  expect("length wrong", damaged, lines + 1, "gzip stream is damaged: incorrect length check");
  damaged = whole;
  damaged[2] = 7;
  expect("unknown compression method", damaged, 1, "gzip stream is damaged: unknown compression method");

  // A short file whose stream is cut: the line is the first that is not complete. Stored blocks make it predictable.
  const std::string small = coordinate_real + "3 3 3\n1 1 1\n2 2 2\n3 3 3\n";
  const std::string stored = gzip(small, 0);
  expect("body cut in line 4", stored.substr(0, stored.size() - 8 - 9), 4, "gzip stream is truncated");
  // A flipped byte makes a good stream with wrong text: the checksum is what the message is about.
  damaged = stored;
  damaged[damaged.size() - 8 - 8] = 'x';  // in "2 2 2"
  expect("damage that alters the text", damaged, 4, "incorrect data check; the text goes wrong here");

  // Wherever the stream is cut, there is an exception of the right type; a cut is never taken for the end of the file.
  const std::string short_stream = gzip(small);
  for (std::size_t length = 0; length < short_stream.size(); ++length) {
    const std::string path = file(short_stream.substr(0, length), "cut.mtx.gz");
    try {
      read_matrix_market<double>(path);
      ADD_FAILURE() << "read " << length << " of " << short_stream.size() << " bytes without an error";
    } catch (const Tessera::FileError& error) {
      EXPECT_NE(std::string(error.what()).find("truncated"), std::string::npos) << error.what();
    }
  }
}

/// Random edits of a good file: every one is read or refused with a FileError, never anything else.
TEST_F(MatrixMarket, RandomEditsNeverCrash) {
  const std::string good =
      "%%MatrixMarket matrix coordinate real symmetric\n% c\n4 4 5\n1 1 1.5\n2 1 -2e3\n3 2 inf\n"
      "4 4 1e-9\n4 1 12345678901234567890\n";
  const std::string alphabet("0123456789 \n\r\t%.-+eE\0x\xff", 24);
  std::mt19937 random(5);
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = good;
    const unsigned edits = 1 + random() % 3;
    for (unsigned k = 0; k < edits && !text.empty(); ++k) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = alphabet[random() % alphabet.size()];
          break;
        case 1:
          text.insert(at, 1, alphabet[random() % alphabet.size()]);
          break;
        case 2:
          text.erase(at, 1 + random() % 4);
          break;
        default:
          text.resize(at);
      }
    }
    // Keep sizes small: an edited size line may legitimately ask for gigabytes of row pointers.
    const std::string name = file(text);
    try {
      if (read_matrix_market_header(name).rows > 100000) continue;
      const auto csr = read_matrix_market<double>(name);
      ASSERT_EQ(csr.row_map.size(), static_cast<std::size_t>(csr.rows) + 1);
      ASSERT_EQ(csr.entries.size(), static_cast<std::size_t>(csr.row_map.back()));
      for (const int col : csr.entries) ASSERT_TRUE(col >= 0 && col < csr.cols);
    } catch (const Tessera::FileError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
