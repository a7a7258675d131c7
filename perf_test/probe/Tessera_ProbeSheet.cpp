// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "probe/Tessera_Probe.hpp"

namespace Tessera {
namespace Bench {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json to_json(const Ceiling& c) {
  Json j;
  j["group"] = c.group;
  j["name"] = c.name;
  j["available"] = c.unavailable.empty();
  j["unavailable"] = c.unavailable;
  j["working_set_bytes"] = number(c.working_set);
  j["seconds_median"] = number(c.time.median);
  j["seconds_min"] = number(c.time.minimum);
  j["samples"] = c.time.samples;
  j["runs_per_sample"] = c.time.runs_per_sample;
  j["operations"] = number(c.operations);
  j["bytes"] = number(c.bytes);
  j["flop"] = number(c.flop);
  j["goperations_per_second"] = number(1e-9 * c.operations_per_second());
  j["gbytes_per_second"] = number(1e-9 * c.bytes_per_second());
  j["gflops"] = number(1e-9 * c.flop_per_second());
  return j;
}

/// Three significant digits at least, without an exponent.
std::string cell(double value) {
  if (!std::isfinite(value)) return "-";
  char text[32];
  const int digits = value >= 1000 ? 0 : value >= 100 ? 1 : value >= 10 ? 2 : 3;
  std::snprintf(text, sizeof(text), "%.*f", digits, value);
  return text;
}

std::string seconds(double value) {
  if (!std::isfinite(value)) return "-";
  const double unit = value < 1e-6 ? 1e-9 : value < 1e-3 ? 1e-6 : 1e-3;
  return cell(value / unit) + (value < 1e-6 ? " ns" : value < 1e-3 ? " us" : " ms");
}

template <class T>
void add_once(std::vector<T>& list, const T& item) {
  if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
}

}  // namespace

std::string format_bytes(double bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB"};
  int unit = 0;
  for (; unit < 3 && bytes >= 1024; ++unit) bytes /= 1024;
  char text[32];
  std::snprintf(text, sizeof(text), "%.4g %s", bytes, units[unit]);
  return text;
}

Sheet::Sheet(const ProbeOptions& options, const BenchContext& context) : options_(options), context_(context) {
  std::printf("%s, %s, Kokkos %s%s\n", context.device.c_str(), context.execution_space.c_str(), context.kokkos.c_str(),
              context.cuda.empty() ? "" : (", CUDA " + context.cuda).c_str());
  std::printf("warm, medians of up to %d batches%s\n", options.repeat,
              options.quick ? "; --quick: the sizes are too small for a device's ceilings" : "");
}

void Sheet::add_unavailable(const std::string& group, const std::string& name, const std::string& why) {
  Ceiling c;
  c.group = group;
  c.name = name;
  c.unavailable = why;
  add(c);
}

void Sheet::print_by_working_set(const std::string& group, const std::string& title, double (Ceiling::*value)() const,
                                 double scale) const {
  std::vector<std::string> names;
  std::vector<double> sets;
  std::size_t width = 0;
  for (const Ceiling& c : all_) {
    if (c.group != group || !std::isfinite((c.*value)())) continue;
    add_once(names, c.name);
    add_once(sets, c.working_set);
    width = std::max(width, c.name.size());
  }
  std::sort(sets.begin(), sets.end());
  std::printf("\n%s\n%-*s", title.c_str(), static_cast<int>(width), "");
  for (const double set : sets) std::printf(" %9s", format_bytes(set).c_str());
  std::printf("\n");
  for (const std::string& name : names) {
    std::printf("%-*s", static_cast<int>(width), name.c_str());
    for (const double set : sets) {
      std::string text = "-";
      for (const Ceiling& c : all_) {
        if (c.group == group && c.name == name && c.working_set == set) text = cell(scale * (c.*value)());
      }
      std::printf(" %9s", text.c_str());
    }
    std::printf("\n");
  }
  std::fflush(stdout);
}

void Sheet::print_list(const std::string& group, const std::string& title) const {
  std::size_t width = 0;
  for (const Ceiling& c : all_) {
    if (c.group == group) width = std::max(width, c.name.size());
  }
  std::printf("\n%s\n", title.c_str());
  for (const Ceiling& c : all_) {
    if (c.group != group) continue;
    std::printf("%-*s", static_cast<int>(width), c.name.c_str());
    if (!c.unavailable.empty()) {
      std::printf("  not available: %s\n", c.unavailable.c_str());
      continue;
    }
    std::printf("  %12s", seconds(c.time.median / (c.operations > 0 ? c.operations : 1)).c_str());
    if (std::isfinite(c.bytes)) std::printf("  %9s Gop/s", cell(1e-9 * c.operations_per_second()).c_str());
    if (std::isfinite(c.bytes)) std::printf("  %9s GB/s", cell(1e-9 * c.bytes_per_second()).c_str());
    if (std::isfinite(c.flop)) std::printf("  %9s Tflop/s", cell(1e-12 * c.flop_per_second()).c_str());
    std::printf("\n");
  }
  std::fflush(stdout);
}

void Sheet::write_json() const {
  if (options_.json.empty()) return;
  Json j, context;
  for (const auto& text : context_.texts()) context[text.first] = text.second;
  context["host"] = context_.host;
  context["quick"] = options_.quick;
  context["repeat"] = options_.repeat;
  j["context"] = context;
  j["ceilings"] = Json::array();
  for (const Ceiling& c : all_) j["ceilings"].push_back(to_json(c));
  std::ofstream out(options_.json, std::ios::binary);
  out << j.dump(1, ' ', false, Json::error_handler_t::replace) << "\n";
  out.close();
  if (!out) throw std::runtime_error(options_.json + ": cannot be written");
}

}  // namespace Bench
}  // namespace Tessera
