// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "driver/Tessera_BenchTimer.hpp"
#include "features/Tessera_SpgemmFeatureVector.hpp"
#include "features/Tessera_SpgemmFeatures.hpp"
#include "features/Tessera_SpgemmNet.hpp"
#include "spgemm/Tessera_BenchSpgemm.hpp"
#include "spgemm/Tessera_SpgemmChoice.hpp"

namespace Tessera {
namespace Bench {
namespace {

using Json = nlohmann::ordered_json;

template <class Offset>
auto pattern_of(const CsrOperand& m) {
  using Pattern = Impl::CsrPattern<int, Offset, Device>;
  return Pattern(m.rows, m.cols, m.row_map.view<Offset>(), m.entries.view<int>());
}

/// The least of five.
template <class F>
double seconds_of(const CsrOperand& m, const F& f) {
  double least = std::numeric_limits<double>::infinity();
  for (int turn = 0; turn < 5; ++turn) {
    const double begin = now();
    f();
    Compat::fence(m.space, "Tessera::bench");
    least = std::min(least, now() - begin);
  }
  return least;
}

/// A hexadecimal digit per cell.
std::string text_of(const SpgemmImage& image) {
  std::string text;
  for (const int level : Impl::spgemm_image_levels(image.density)) text += "0123456789abcdef"[level];
  return text;
}

/// What a model sees of the product, and what it costs to find it.
template <class Offset>
void add_features(const SpgemmOperands& o, std::int64_t products, Json& j) {
  const auto A = pattern_of<Offset>(o.A), B = pattern_of<Offset>(o.B);
  const Exec& space = o.A.space;
  SpgemmFeatures a, b;
  double compression = 0;
  SpgemmImage image_a, image_b;
  const auto features = [&](DiagonalsCounted diagonals) {
    a = Impl::spgemm_pattern_features(space, A, diagonals, nullptr);
    b = Impl::same_pattern(A, B) ? a : Impl::spgemm_pattern_features(space, B, diagonals, nullptr);
  };
  Json cost;
  cost["rows"] = seconds_of(o.A, [&] { features(DiagonalsCounted::None); });
  cost["all diagonals"] = seconds_of(o.A, [&] { features(DiagonalsCounted::All); });
  const auto decide = [&](SpgemmModel model) { Impl::spgemm_decide(space, A, B, products, model, nullptr); };
  cost["choice by the tree"] = seconds_of(o.A, [&] { decide(SpgemmModel::Tree); });
  cost["choice by MatNet"] = seconds_of(o.A, [&] { decide(SpgemmModel::MatNet); });
  cost["diagonals"] = seconds_of(o.A, [&] { features(DiagonalsCounted::Few); });
  cost["compression"] = seconds_of(o.A, [&] { compression = Impl::spgemm_pattern_compression(space, A, B, nullptr); });
  cost["images"] = seconds_of(o.A, [&] {
    image_a = Impl::spgemm_pattern_image(space, A, nullptr);
    image_b = Impl::same_pattern(A, B) ? image_a : Impl::spgemm_pattern_image(space, B, nullptr);
  });
  const auto vector = Impl::spgemm_feature_vector(a, b, products, compression);
  for (std::size_t i = 0; i < vector.size(); ++i) j["features"][Impl::spgemm_feature_names[i]] = vector[i];
  j["image of A"] = text_of(image_a);
  j["image of B"] = Impl::same_pattern(A, B) ? "" : text_of(image_b);
  j["seconds of features"] = cost;
}

struct Method {
  SpgemmAlgorithm algorithm;
  System system;
  int runs = 1;
  std::vector<double> seconds;  ///< not of the first run, unless it was long
  double first = 0, spent = 0;
};

/// Runs it once: how many entries C has, and how many runs a time needs.
std::int64_t run_first(Method& m, const SpgemmOperands& o) {
  const double begin = now();
  m.system.apply();
  Compat::fence(o.A.space, "Tessera::bench");
  m.first = m.spent = now() - begin;
  m.runs = static_cast<int>(std::min(1000.0, std::max(1.0, 5e-4 / m.spent)));
  return static_cast<std::int64_t>(o.C->entries.size());
}

/// The methods that take these matrices, each run once. @throw BenchError  they find different numbers of entries
std::vector<Method> methods_of(const SpgemmOperands& o, std::int64_t products,
                               const std::vector<SpgemmAlgorithm>& algorithms,
                               const std::function<System(SpgemmAlgorithm)>& make) {
  std::vector<Method> methods;
  std::int64_t entries = -1;
  for (const SpgemmAlgorithm a : algorithms) {
    // They sort a row's products: of many, hopeless.
    const bool sorts = a == SpgemmAlgorithm::Heap || a == SpgemmAlgorithm::Coo;
    if (sorts && products > 32 * static_cast<std::int64_t>(o.A.rows)) continue;
    try {
      Method m;
      m.algorithm = a;
      m.system = make(a);
      const std::int64_t found = run_first(m, o);
      if (entries < 0) entries = found;
      if (found != entries) {
        throw BenchError(ExitWrongResult, std::string(to_string(a)) + " finds " + std::to_string(found) +
                                              " entries, the method before " + std::to_string(entries));
      }
      methods.push_back(std::move(m));
    } catch (const NotSupported&) {  // too much memory, or not for such matrices
    } catch (const OutOfMemory&) {
    }
  }
  return methods;
}

/// Times in turn, until the budget of each is spent; of much slower ones the first time does.
void measure_in_turn(std::vector<Method>& methods, const SpgemmOperands& o, const BenchOptions& options) {
  double fastest = std::numeric_limits<double>::infinity();
  for (const Method& m : methods) fastest = std::min(fastest, m.first);
  for (int round = 0; round < options.repeat; ++round) {
    for (Method& m : methods) {
      if (m.spent > options.budget || (round > 0 && m.first > 8 * fastest)) continue;
      const double begin = now();
      for (int run = 0; run < m.runs; ++run) m.system.apply();
      Compat::fence(o.A.space, "Tessera::bench");
      const double spent = now() - begin;
      m.spent += spent;
      m.seconds.push_back(spent / m.runs);
    }
  }
  for (Method& m : methods) {
    if (m.seconds.empty()) m.seconds.push_back(m.first);
  }
}

}  // namespace

void write_spgemm_features(const std::string& file, const SpgemmOperands& o, std::int64_t products,
                           const std::string& matrix, const BenchOptions& options,
                           const std::vector<SpgemmAlgorithm>& algorithms,
                           const std::function<System(SpgemmAlgorithm)>& make) {
  Json j;
  j["A"] = matrix;
  j["B"] = options.matrix_b;
  j["space"] = Exec::name();
  for (const SpgemmAlgorithm a : algorithms) j["seconds"][to_string(a)] = nullptr;
  std::vector<Method> methods = methods_of(o, products, algorithms, make);
  measure_in_turn(methods, o, options);
  for (const Method& m : methods) {
    j["seconds"][to_string(m.algorithm)] = median_of(m.seconds);
    j["least seconds"][to_string(m.algorithm)] = *std::min_element(m.seconds.begin(), m.seconds.end());
  }
  if (o.A.offset_bits == 64) {
    add_features<WideOffset>(o, products, j);
  } else {
    add_features<int>(o, products, j);
  }
  std::ofstream out(file, std::ios::app);
  out << j.dump() << "\n" << std::flush;
  if (!out) throw BenchError(ExitFailure, file + ": cannot be written");
}

}  // namespace Bench
}  // namespace Tessera
