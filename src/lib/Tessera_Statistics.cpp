// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "Tessera_Statistics.hpp"

#include <iomanip>
#include <ostream>
#include <sstream>

namespace Tessera {
namespace {

/// Calls f(key, value) for every member, in the documented order, so that table and JSON cannot differ.
template <class F>
void for_each_member(const Statistics& s, F&& f) {
  f("operation", s.operation);
  f("algorithm", s.algorithm);
  f("backend", s.backend);
  f("atom", s.atom);
  f("compute", s.compute);
  f("device", s.device);
  f("why", s.why);
  f("rows", s.rows);
  f("cols", s.cols);
  f("nnz", s.nnz);
  f("stored", s.stored);
  f("padding_ratio", s.padding_ratio);
  f("matrix_unit_share", s.matrix_unit_share);
  f("row_mean", s.row_mean);
  f("row_max", s.row_max);
  f("format_bytes", s.format_bytes);
  f("map_bytes", s.map_bytes);
  f("workspace_bytes", s.workspace_bytes);
  f("csr_bytes", s.csr_bytes);
  f("setup_seconds", s.setup_seconds);
  f("launches", s.launches);
  f("fallback_taken", s.fallback_taken);
  f("transpose_prepared", s.transpose_prepared);
  f("deterministic", s.deterministic);
}

std::string quoted(const std::string& text) {
  std::ostringstream out;
  out << '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out << '\\' << c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out << "\\u" << std::hex << std::setw(4) << std::setfill('0') << static_cast<int>(c) << std::dec;
    } else {
      out << c;
    }
  }
  out << '"';
  return out.str();
}
std::string json_value(const std::string& v) { return quoted(v); }
std::string json_value(bool v) { return v ? "true" : "false"; }
template <class T>
std::string json_value(const T& v) {
  std::ostringstream out;
  out << std::setprecision(9) << v;
  return out.str();
}

}  // namespace

void print_statistics(const Statistics& s, std::ostream& out) {
  std::ostringstream table;  // the caller's stream keeps its own format
  for_each_member(s, [&](const char* key, const auto& value) {
    std::ostringstream line;
    line << std::boolalpha << value;
    table << "  " << std::left << std::setw(20) << key << ' ' << line.str() << '\n';
  });
  if (!s.classes.empty()) {
    table << "  " << std::left << std::setw(20) << "class" << std::right << std::setw(14) << "rows" << std::setw(9)
          << "%" << std::setw(14) << "nnz" << std::setw(9) << "%" << '\n'
          << std::fixed << std::setprecision(2);
  }
  for (const ClassShare& c : s.classes) {
    table << "  " << std::left << std::setw(20) << c.name << std::right << std::setw(14) << c.rows << std::setw(9)
          << (s.rows > 0 ? 100.0 * static_cast<double>(c.rows) / static_cast<double>(s.rows) : 0.0) << std::setw(14)
          << c.nnz << std::setw(9)
          << (s.nnz > 0 ? 100.0 * static_cast<double>(c.nnz) / static_cast<double>(s.nnz) : 0.0) << '\n';
  }
  out << table.str();
}

std::string to_json(const Statistics& s) {
  std::string json = "{";
  for_each_member(s, [&](const char* key, const auto& value) {
    json += (json.size() > 1 ? ", " : "") + quoted(key) + ": " + json_value(value);
  });
  json += ", \"classes\": [";
  for (std::size_t i = 0; i < s.classes.size(); ++i) {
    const ClassShare& c = s.classes[i];
    json += (i > 0 ? ", " : "") + std::string("{\"name\": ") + quoted(c.name) + ", \"rows\": " + json_value(c.rows) +
            ", \"nnz\": " + json_value(c.nnz) + "}";
  }
  return json + "]}";
}

}  // namespace Tessera
