// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include <gtest/gtest.h>

#include <cctype>
#include <cstddef>
#include <cstdlib>
#include <iomanip>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "Tessera_Statistics.hpp"

namespace Tessera {
namespace {

/// A strict reader of JSON, only as much as is needed here: throws at the first character that RFC 8259 does not allow.
struct Json {
  enum Kind { String, Number, Boolean, List, Object } kind = Object;
  std::string text;  ///< of a string, unescaped; of a number or boolean as it stands
  std::vector<Json> items;
  std::vector<std::pair<std::string, Json>> members;  ///< in the order of the text

  const Json& at(const std::string& key) const {
    for (const auto& member : members) {
      if (member.first == key) return member.second;
    }
    throw std::runtime_error("no member '" + key + "'");
  }
  double number() const {
    if (kind != Number) throw std::runtime_error("'" + text + "' is not a number");
    return std::strtod(text.c_str(), nullptr);
  }
};

class JsonReader {
 public:
  explicit JsonReader(const std::string& text) : text_(text) {}
  Json read() {
    Json value = any();
    space();
    if (at_ != text_.size()) fail("something follows");
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(what + " at character " + std::to_string(at_) + " of " + text_);
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void space() {
    while (peek() == ' ') ++at_;
  }
  void take(char c) {
    if (peek() != c) fail(std::string("'") + c + "' is missing");
    ++at_;
  }
  Json any() {
    space();
    if (peek() == '{') return object();
    if (peek() == '[') return list();
    Json value;
    if (peek() == '"') {
      value.kind = Json::String;
      value.text = string();
      return value;
    }
    for (const char* word : {"true", "false"}) {
      if (text_.compare(at_, std::string(word).size(), word) == 0) {
        value.kind = Json::Boolean;
        value.text = word;
        at_ += value.text.size();
        return value;
      }
    }
    value.kind = Json::Number;
    value.text = number();
    return value;
  }
  std::string digits() {
    const std::size_t first = at_;
    while (std::isdigit(static_cast<unsigned char>(peek()))) ++at_;
    if (at_ == first) fail("a digit is missing");
    return text_.substr(first, at_ - first);
  }
  std::string number() {
    const std::size_t first = at_;
    if (peek() == '-') ++at_;
    const std::string whole = digits();
    if (whole.size() > 1 && whole[0] == '0') fail("a number must not begin with zeros");
    if (peek() == '.') ++at_, digits();
    if (peek() == 'e' || peek() == 'E') {
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      digits();
    }
    return text_.substr(first, at_ - first);
  }
  std::string string() {
    std::string result;
    take('"');
    while (peek() != '"') {
      if (at_ >= text_.size()) fail("the string does not end");
      if (static_cast<unsigned char>(peek()) < 0x20) fail("a control character must be escaped");
      if (peek() != '\\') {
        result += text_[at_++];
        continue;
      }
      ++at_;
      const char kind = peek();
      ++at_;
      if (kind == 'u') {
        if (at_ + 4 > text_.size()) fail("four hexadecimal digits are missing");
        for (std::size_t i = at_; i < at_ + 4; ++i) {
          if (!std::isxdigit(static_cast<unsigned char>(text_[i]))) fail("not a hexadecimal digit");
        }
        result += static_cast<char>(std::stoi(text_.substr(at_, 4), nullptr, 16));
        at_ += 4;
      } else if (kind == '"' || kind == '\\' || kind == '/') {
        result += kind;
      } else if (kind == 'n' || kind == 't' || kind == 'r' || kind == 'b' || kind == 'f') {
        result += kind == 'n' ? '\n' : kind == 't' ? '\t' : kind == 'r' ? '\r' : kind == 'b' ? '\b' : '\f';
      } else {
        fail("unknown escape");
      }
    }
    take('"');
    return result;
  }
  Json list() {
    Json value;
    value.kind = Json::List;
    take('[');
    space();
    if (peek() == ']') return ++at_, value;
    for (;;) {
      value.items.push_back(any());
      space();
      if (peek() == ']') return ++at_, value;
      take(',');
    }
  }
  Json object() {
    Json value;
    take('{');
    space();
    if (peek() == '}') return ++at_, value;
    for (;;) {
      space();
      const std::string key = string();
      space();
      take(':');
      value.members.emplace_back(key, any());
      space();
      if (peek() == '}') return ++at_, value;
      take(',');
    }
  }

  const std::string& text_;
  std::size_t at_ = 0;
};

Json parse(const std::string& text) { return JsonReader(text).read(); }

/// The documented order of the members.
const std::vector<std::string> keys = {"operation",
                                       "algorithm",
                                       "backend",
                                       "atom",
                                       "compute",
                                       "device",
                                       "why",
                                       "rows",
                                       "cols",
                                       "nnz",
                                       "stored",
                                       "padding_ratio",
                                       "matrix_unit_share",
                                       "row_mean",
                                       "row_max",
                                       "format_bytes",
                                       "map_bytes",
                                       "workspace_bytes",
                                       "csr_bytes",
                                       "setup_seconds",
                                       "launches",
                                       "fallback_taken",
                                       "transpose_prepared",
                                       "deterministic"};

/// Every member different from its default and from the others.
Statistics sample() {
  Statistics s;
  s.operation = "spmv";
  s.algorithm = "dasp";
  s.backend = "cuda";
  s.atom = "Sm80_M8N8K4_F64";
  s.compute = "fp64";
  s.device = "some device";
  s.why = "a rule with numbers 1.5 > 1";
  s.rows = 5000000000LL;
  s.cols = 7;
  s.nnz = 12345678901LL;
  s.stored = 12345678999LL;
  s.padding_ratio = 0.125;
  s.matrix_unit_share = 0.875;
  s.row_mean = 2.46913578;
  s.row_max = 31;
  s.format_bytes = 1001;
  s.map_bytes = 1002;
  s.workspace_bytes = 1003;
  s.csr_bytes = 1004;
  s.setup_seconds = 1.25e-5;
  s.launches = 3;
  s.fallback_taken = true;
  s.transpose_prepared = true;
  s.deterministic = false;
  s.classes = {{"long", 11, 100}, {"medium", 12, 200}};
  return s;
}

TEST(StatisticsJson, OneObjectOnOneLineWithKeysInOrder) {
  for (const Statistics& s : {Statistics(), sample()}) {
    const std::string text = to_json(s);
    EXPECT_EQ(text.find('\n'), std::string::npos);
    const Json json = parse(text);
    std::vector<std::string> found;
    for (const auto& member : json.members) found.push_back(member.first);
    std::vector<std::string> wanted = keys;
    wanted.push_back("classes");
    EXPECT_EQ(found, wanted);
  }
}

TEST(StatisticsJson, EveryMemberHasItsValue) {
  const Statistics s = sample();
  const Json json = parse(to_json(s));
  EXPECT_EQ(json.at("operation").text, s.operation);
  EXPECT_EQ(json.at("algorithm").text, s.algorithm);
  EXPECT_EQ(json.at("backend").text, s.backend);
  EXPECT_EQ(json.at("atom").text, s.atom);
  EXPECT_EQ(json.at("compute").text, s.compute);
  EXPECT_EQ(json.at("device").text, s.device);
  EXPECT_EQ(json.at("why").text, s.why);
  EXPECT_EQ(json.at("rows").text, "5000000000");
  EXPECT_EQ(json.at("cols").text, "7");
  EXPECT_EQ(json.at("nnz").text, "12345678901");
  EXPECT_EQ(json.at("stored").text, "12345678999");
  EXPECT_EQ(json.at("padding_ratio").number(), s.padding_ratio);
  EXPECT_EQ(json.at("matrix_unit_share").number(), s.matrix_unit_share);
  EXPECT_EQ(json.at("row_mean").number(), s.row_mean);
  EXPECT_EQ(json.at("row_max").number(), 31);
  EXPECT_EQ(json.at("format_bytes").number(), 1001);
  EXPECT_EQ(json.at("map_bytes").number(), 1002);
  EXPECT_EQ(json.at("workspace_bytes").number(), 1003);
  EXPECT_EQ(json.at("csr_bytes").number(), 1004);
  EXPECT_EQ(json.at("setup_seconds").number(), s.setup_seconds);
  EXPECT_EQ(json.at("launches").number(), 3);
  for (const char* key : {"fallback_taken", "transpose_prepared", "deterministic"}) {
    EXPECT_EQ(json.at(key).kind, Json::Boolean) << key;
  }
  EXPECT_EQ(json.at("fallback_taken").text, "true");
  EXPECT_EQ(json.at("transpose_prepared").text, "true");
  EXPECT_EQ(json.at("deterministic").text, "false");
  const Json& classes = json.at("classes");
  ASSERT_EQ(classes.items.size(), 2u);
  EXPECT_EQ(classes.items[0].at("name").text, "long");
  EXPECT_EQ(classes.items[0].at("rows").number(), 11);
  EXPECT_EQ(classes.items[1].at("name").text, "medium");
  EXPECT_EQ(classes.items[1].at("nnz").number(), 200);
}

TEST(StatisticsJson, NoClassesAreAnEmptyList) {
  const Json json = parse(to_json(Statistics()));
  EXPECT_EQ(json.at("classes").kind, Json::List);
  EXPECT_TRUE(json.at("classes").items.empty());
}

TEST(StatisticsJson, EveryCharacterOfATextComesBack) {
  std::string all = "quote \" backslash \\ slash / newline \n tab \t umlaut \xc3\xbc end";
  for (char c = 1; c < 0x20; ++c) all += c;
  all += '\0';
  Statistics s = sample();
  s.why = all;
  s.device = "\"";
  s.classes[0].name = "a\\b\"c\n";
  const Json json = parse(to_json(s));
  EXPECT_EQ(json.at("why").text, all);
  EXPECT_EQ(json.at("device").text, "\"");
  EXPECT_EQ(json.at("classes").items[0].at("name").text, "a\\b\"c\n");
  EXPECT_EQ(json.at("rows").text, "5000000000") << "numbers stay decimal after an escape";
}

TEST(StatisticsJson, ExtremeNumbers) {
  Statistics s;
  s.padding_ratio = 1e-300;
  s.row_mean = 1e300;
  s.nnz = 9223372036854775807LL;
  s.format_bytes = static_cast<std::size_t>(-1);
  const Json json = parse(to_json(s));
  EXPECT_EQ(json.at("padding_ratio").number(), 1e-300);
  EXPECT_EQ(json.at("row_mean").number(), 1e300);
  EXPECT_EQ(json.at("nnz").text, "9223372036854775807");
  EXPECT_EQ(json.at("format_bytes").text, std::to_string(static_cast<std::size_t>(-1)));
}

/// The reader itself refuses what is not JSON; else the tests above would show nothing.
TEST(StatisticsJson, TheReaderIsStrict) {
  for (const char* bad : {"", "{", "{\"a\": }", "{\"a\": 1,}", "{\"a\": nan}", "{\"a\": inf}", "{\"a\": 1} x", "{a: 1}",
                          "{\"a\": 01}", "{\"a\": \"\n\"}", "{\"a\": \"\\q\"}", "[1 2]", "{\"a\": 1.}"}) {
    EXPECT_THROW(parse(bad), std::runtime_error) << bad;
  }
  EXPECT_EQ(parse("{\"a\": [1, -2.5e+3, true]}").at("a").items[1].number(), -2500);
}

std::vector<std::string> first_words(const std::string& table) {
  std::vector<std::string> words;
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string word;
    fields >> word;
    words.push_back(word);
  }
  return words;
}

TEST(StatisticsTable, SameKeysInTheSameOrder) {
  std::ostringstream out;
  print_statistics(Statistics(), out);
  EXPECT_EQ(first_words(out.str()), keys);

  std::ostringstream full;
  print_statistics(sample(), full);
  std::vector<std::string> wanted = keys;
  for (const char* more : {"class", "long", "medium"}) wanted.push_back(more);
  EXPECT_EQ(first_words(full.str()), wanted);
  EXPECT_NE(full.str().find("12345678901"), std::string::npos);
  EXPECT_NE(full.str().find("true"), std::string::npos);
}

TEST(StatisticsTable, SharesAreInPercent) {
  Statistics s;
  s.rows = 8;
  s.nnz = 1000;
  s.classes = {{"short", 2, 125}};
  std::ostringstream out;
  print_statistics(s, out);
  const std::string row = out.str().substr(out.str().find("short"));
  EXPECT_NE(row.find("25.00"), std::string::npos) << row;
  EXPECT_NE(row.find("12.50"), std::string::npos) << row;

  s.rows = s.nnz = 0;  // no division by zero
  std::ostringstream empty;
  print_statistics(s, empty);
  EXPECT_EQ(empty.str().find("nan"), std::string::npos);
}

TEST(StatisticsTable, TheStreamKeepsItsFormat) {
  std::ostringstream out;
  out << std::hex << std::setprecision(3);
  const auto flags = out.flags();
  print_statistics(sample(), out);
  EXPECT_EQ(out.flags(), flags);
  EXPECT_EQ(out.precision(), 3);
}

TEST(StatisticsTable, AnythingWithStatisticsCanBePrinted) {
  struct Plan {
    Statistics statistics() const { return sample(); }
  };
  std::ostringstream plan, direct;
  print_statistics(Plan(), plan);
  print_statistics(sample(), direct);
  EXPECT_EQ(plan.str(), direct.str());
}

}  // namespace
}  // namespace Tessera
