// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "driver/Tessera_BenchReportFiles.hpp"

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "driver/Tessera_BenchSummary.hpp"

namespace Tessera {
namespace Bench {
namespace {

using Json = nlohmann::ordered_json;

/// Unknown and infinite numbers do not exist in JSON.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
Json count(double value) { return std::isfinite(value) ? Json(static_cast<std::int64_t>(value)) : Json(nullptr); }

Json to_json(const Record& r) {
  Json j;
  j["op"] = r.op;
  j["role"] = r.role;
  j["asked"] = r.asked;
  j["algorithm"] = r.algorithm;
  j["label"] = r.label();
  j["variant"] = r.variant;
  j["backend"] = r.backend;
  j["precision"] = r.precision;
  j["y_type"] = r.y_type;
  j["kernel"] = r.kernel;
  j["emulated"] = r.emulated;
  j["matrix"] = r.matrix;
  j["pattern"] = r.pattern;
  j["layout"] = r.layout;
  j["rows"] = r.rows;
  j["cols"] = r.cols;
  j["nnz"] = r.nnz;
  j["n"] = r.n;
  j["k"] = r.k;
  j["heads"] = r.heads;
  j["alpha"] = r.alpha;
  j["beta"] = r.beta;
  j["value_scale"] = r.value_scale;
  j["offset_bits"] = r.offset_bits;
  j["seconds_median"] = number(r.seconds_median);
  j["seconds_min"] = number(r.seconds_min);
  j["seconds_cold_median"] = number(r.seconds_cold_median);
  j["seconds_cold_min"] = number(r.seconds_cold_min);
  j["samples"] = r.samples;
  j["runs_per_sample"] = r.runs_per_sample;
  j["gflops"] = number(r.gflops);
  j["gbytes_per_second"] = number(r.gbytes_per_second());
  j["csr_gbytes_per_second"] = number(r.csr_gbytes_per_second());
  j["apply_bytes"] = count(r.bytes);
  j["compulsory_bytes"] = count(r.csr_bytes);
  j["gather_bytes"] = count(r.gather_bytes);
  j["gather_gbytes_per_second"] = number(r.gather_gbytes_per_second());
  j["roof_share"] = number(r.roof_share);
  j["setup_seconds"] = number(r.setup_seconds);
  j["setup_applies"] = number(r.setup_applies());
  j["update_seconds"] = number(r.update_seconds);
  j["format_bytes"] = count(r.format_bytes);
  j["map_bytes"] = count(r.map_bytes);
  j["workspace_bytes"] = count(r.workspace_bytes);
  j["padding_ratio"] = number(r.padding_ratio);
  j["matrix_unit_share"] = number(r.matrix_unit_share);
  j["matrix_instructions"] = count(r.matrix_instructions);
  j["launches"] = r.launches < 0 ? Json(nullptr) : Json(r.launches);
  j["error_over_bound"] = number(r.error_over_bound);
  j["verified"] = r.verified;
  j["fault"] = r.fault;
  j["why"] = r.why;
  j["break_even_applies"] = number(r.break_even_applies);
  j["break_even_against"] = r.break_even_against;
  j["classes"] = Json::array();
  for (const ClassShare& c : r.classes) j["classes"].push_back({{"name", c.name}, {"rows", c.rows}, {"nnz", c.nnz}});
  return j;
}

Json to_json(const BenchContext& context, const BenchOptions& options) {
  Json j;
  for (const auto& text : context.texts()) j[text.first] = text.second;
  j["host"] = context.host;
  j["stream_gbytes_per_second"] =
      context.stream_gbytes_per_second > 0 ? Json(context.stream_gbytes_per_second) : Json(nullptr);
  j["seed"] = options.seed;
  j["repeat"] = options.repeat;
  j["cold"] = options.cold;
  j["selection"] = options.selection == Selection::Measure ? "measure" : "predict";
  j["value_classes"] = options.value_classes;
  j["block"] = options.block;
  return j;
}

Json to_json(const AutoSummary& a, const BenchContext& context) {
  return {{"precision", a.precision},
          {"n", a.n},
          {"pattern", a.pattern},
          {"matrices", a.matrices},
          {"matrices_with_baseline", a.compared},
          {"wins", a.wins},
          {"speedup_geometric_mean", number(a.speedup_geometric_mean)},
          {"speedup_minimum", number(a.speedup_minimum)},
          {"speedup_minimum_matrix", a.minimum_matrix},
          {"speedup_minimum_baseline", a.minimum_baseline},
          {"gbytes_per_second_geometric_mean", number(a.gbytes_per_second)},
          {"stream_share", number(a.gbytes_per_second / context.stream_gbytes_per_second)},
          {"setup_applies_geometric_mean", number(a.setup_applies)},
          {"setup_applies_largest", number(a.setup_applies_largest)},
          {"setup_applies_largest_matrix", a.setup_matrix}};
}

/// Through a second name, so that an interrupted run leaves the file of the matrix before. Links and what is no file
/// (/dev/stdout is both) are written to, not replaced.
void write_text(const std::string& file, const std::string& text) {
  std::error_code none;
  const auto kind = std::filesystem::symlink_status(file, none).type();
  const bool in_place = kind != std::filesystem::file_type::regular && kind != std::filesystem::file_type::not_found;
  const std::string part = in_place ? file : file + ".part";
  std::ofstream out(part, std::ios::binary);
  out << text;
  out.close();
  if (!out || (!in_place && std::rename(part.c_str(), file.c_str()) != 0)) {
    if (!in_place) std::remove(part.c_str());
    throw std::runtime_error(file + ": cannot be written");
  }
}

std::string csv_cell(const Json& value) {
  if (value.is_null()) return {};
  if (!value.is_string()) return value.dump();
  const std::string text = value.get<std::string>();
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

void write_json(const std::string& file, const BenchContext& context, const BenchOptions& options,
                const std::vector<Record>& records) {
  Json j;
  j["context"] = to_json(context, options);
  j["records"] = Json::array();
  for (const Record& r : records) j["records"].push_back(to_json(r));
  j["summary"] = Json::array();
  for (const Comparison& c : compare(records)) {
    j["summary"].push_back({{"precision", c.precision},
                            {"n", c.n},
                            {"algorithm", c.label},
                            {"against", c.against},
                            {"speedup_geometric_mean", number(c.geometric_mean)},
                            {"speedup_cold_geometric_mean", number(c.cold_geometric_mean)},
                            {"speedup_minimum", number(c.minimum)},
                            {"speedup_minimum_matrix", c.minimum_matrix},
                            {"wins", c.wins},
                            {"ties", c.ties},
                            {"matrices", c.matrices}});
  }
  j["auto"] = Json::array();
  for (const AutoSummary& a : summarize_auto(records)) j["auto"].push_back(to_json(a, context));
  j["auto_patterns"] = Json::array();
  for (const std::string& pattern : patterns_of(records)) {
    for (const AutoSummary& a : summarize_auto(records, pattern)) j["auto_patterns"].push_back(to_json(a, context));
  }
  const std::vector<Regret> each = regrets(records);
  j["regret"] = Json::array();
  for (const Regret& r : each) {
    j["regret"].push_back({{"precision", r.precision},
                           {"n", r.n},
                           {"matrix", r.matrix},
                           {"chosen", r.chosen},
                           {"seconds_median", number(r.seconds)},
                           {"fastest", r.fastest},
                           {"fastest_seconds_median", number(r.fastest_seconds)},
                           {"regret", number(r.ratio())}});
  }
  j["regret_summary"] = Json::array();
  for (const RegretSummary& r : summarize_regrets(each)) {
    j["regret_summary"].push_back({{"precision", r.precision},
                                   {"n", r.n},
                                   {"geometric_mean", number(r.geometric_mean)},
                                   {"worst", number(r.worst)},
                                   {"worst_matrix", r.worst_matrix},
                                   {"matrices", r.matrices}});
  }
  // File names may hold any bytes.
  write_text(file, j.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

void write_csv(const std::string& file, const std::vector<Record>& records) {
  std::string text, header;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const Json j = to_json(records[i]);
    std::string line;
    for (const auto& item : j.items()) {
      if (item.key() == "classes") continue;
      if (i == 0) header += (header.empty() ? "" : ",") + item.key();
      line += (item.key() == "op" ? "" : ",") + csv_cell(item.value());
    }
    text += line + "\n";
  }
  write_text(file, header + "\n" + text);
}

}  // namespace Bench
}  // namespace Tessera
