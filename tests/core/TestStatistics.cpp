// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include <gtest/gtest.h>

#include <cstddef>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "Tessera_Statistics.hpp"

namespace Tessera {
namespace {

/// As a list of members in the order of the text; throws where it is not JSON.
using Json = nlohmann::ordered_json;
Json parse(const std::string& text) { return Json::parse(text); }

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
    for (const auto& member : json.items()) found.push_back(member.key());
    std::vector<std::string> wanted = keys;
    wanted.push_back("classes");
    EXPECT_EQ(found, wanted);
  }
}

TEST(StatisticsJson, EveryMemberHasItsValue) {
  const Statistics s = sample();
  const Json json = parse(to_json(s));
  const Json wanted = {
      {"operation", s.operation},
      {"algorithm", s.algorithm},
      {"backend", s.backend},
      {"atom", s.atom},
      {"compute", s.compute},
      {"device", s.device},
      {"why", s.why},
      {"rows", 5000000000},
      {"cols", 7},
      {"nnz", 12345678901},
      {"stored", 12345678999},
      {"padding_ratio", 0.125},
      {"matrix_unit_share", 0.875},
      {"row_mean", 2.46913578},
      {"row_max", 31},
      {"format_bytes", 1001},
      {"map_bytes", 1002},
      {"workspace_bytes", 1003},
      {"csr_bytes", 1004},
      {"setup_seconds", 1.25e-5},
      {"launches", 3},
      {"fallback_taken", true},
      {"transpose_prepared", true},
      {"deterministic", false},
      {"classes", {{{"name", "long"}, {"rows", 11}, {"nnz", 100}}, {{"name", "medium"}, {"rows", 12}, {"nnz", 200}}}}};
  EXPECT_EQ(json, wanted);
}

TEST(StatisticsJson, NoClassesAreAnEmptyList) {
  const Json json = parse(to_json(Statistics()));
  EXPECT_TRUE(json.at("classes").is_array());
  EXPECT_TRUE(json.at("classes").empty());
}

TEST(StatisticsJson, EveryCharacterOfATextComesBack) {
  std::string all = "quote \" backslash \\ slash / newline \n tab \t umlaut \xc3\xbc end";
  for (char c = 0; c < 0x20; ++c) all += c;
  Statistics s = sample();
  s.why = all;
  s.device = "\"";
  s.classes[0].name = "a\\b\"c\n";
  const Json json = parse(to_json(s));
  EXPECT_EQ(json.at("why"), all);
  EXPECT_EQ(json.at("device"), "\"");
  EXPECT_EQ(json.at("classes").at(0).at("name"), "a\\b\"c\n");
  EXPECT_EQ(json.at("rows"), 5000000000) << "numbers stay decimal after an escape";
}

TEST(StatisticsJson, ExtremeNumbers) {
  Statistics s;
  s.padding_ratio = 1e-300;
  s.row_mean = 1e300;
  s.nnz = 9223372036854775807LL;
  s.format_bytes = static_cast<std::size_t>(-1);
  const Json json = parse(to_json(s));
  EXPECT_EQ(json.at("padding_ratio"), 1e-300);
  EXPECT_EQ(json.at("row_mean"), 1e300);
  EXPECT_EQ(json.at("nnz"), 9223372036854775807LL);
  EXPECT_EQ(json.at("format_bytes"), static_cast<std::size_t>(-1));
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
