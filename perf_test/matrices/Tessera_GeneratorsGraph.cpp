// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include <cmath>

#include "Tessera_GeneratorsDetail.hpp"

/// \file
/// Patterns of graphs.

namespace Tessera {
namespace Matrices {
namespace Detail {

namespace {

/// `sample(rng)` gives one packed edge. One generator per share, as in the programs that made the measured patterns.
template <class Sample>
std::vector<std::uint64_t> sample_edges(std::int64_t count, std::uint64_t seed, Sample&& sample) {
  constexpr std::int64_t share = 1 << 16;
  std::vector<std::uint64_t> edges;
  edges.reserve(static_cast<std::size_t>(count));
  for (std::int64_t begin = 0; begin < count; begin += share) {
    Rng rng(seed * 1000003 + static_cast<std::uint64_t>(begin / share));
    for (std::int64_t k = begin; k < std::min(count, begin + share); ++k) edges.push_back(sample(rng));
  }
  return edges;
}

/// Permutes [0, 2^bits); without it R-MAT's heavy vertices would all have small numbers.
std::uint32_t scramble(std::uint32_t x, int bits) {
  const std::uint32_t mask = (std::uint32_t(1) << bits) - 1;
  x = (x * 2654435761u) & mask;
  x ^= x >> (bits / 2);
  return (x * 0x85ebca6bu) & mask;
}

Pattern rmat(const Options& options) {
  const int scale = options.integer("scale");
  const double a = options.real("a"), b = options.real("b"), c = options.real("c");
  const double below_b = a + b, below_c = a + b + c;
  options.check(below_c <= 1.0 + 1e-12, "a + b + c <= 1");
  const std::int64_t count = (std::int64_t(1) << scale) * options.integer64("degree");
  options.check(count <= max_index, "2^scale * degree <= 2147483647");
  auto edges = sample_edges(count, static_cast<std::uint64_t>(options.integer64("seed")), [=](Rng& rng) {
    std::uint32_t row = 0, column = 0;
    for (int level = 0; level < scale; ++level) {
      const double u = rng.unit();
      row = row << 1 | (u >= below_b);
      column = column << 1 | ((u >= a && u < below_b) || u >= below_c);
    }
    return pack_edge(static_cast<int>(scramble(row, scale)), static_cast<int>(scramble(column, scale)));
  });
  return by_edges(1 << scale, std::move(edges), options.integer("symmetric") == 1);
}

Pattern community(const Options& options) {
  const int n = options.integer("n"), size = options.integer("size");
  const double local = options.real("local");
  // The weight of the node of rank r is r^-alpha; this exponent inverts the cumulated weights.
  const double exponent = 1.0 / (1.0 - options.real("alpha"));
  auto edges =
      sample_edges(options.integer64("edges"), static_cast<std::uint64_t>(options.integer64("seed")), [=](Rng& rng) {
        const auto pick = [&] {
          const auto rank = static_cast<std::uint32_t>(std::min<double>(n - 1, n * std::pow(rng.unit(), exponent)));
          return static_cast<int>(rank * 2654435761ull % static_cast<std::uint64_t>(n));
        };
        const int from = pick();
        if (rng.unit() >= local) return pack_edge(from, pick());
        const int begin = from / size * size, width = std::min(size, n - begin);
        const int offset = static_cast<int>(width * std::pow(rng.unit(), exponent));
        return pack_edge(from, begin + std::min(offset, width - 1));
      });
  return by_edges(n, std::move(edges), options.integer("symmetric") == 1);
}

Pattern web(const Options& options) {
  const int n = options.integer("n"), window = options.integer("window");
  const double longest = options.integer("longest"), local = options.real("local"), empty = options.real("empty");
  const double hub_power = options.real("hub_power"), length_power = -1 / options.real("tail");
  const std::int64_t seed = options.integer64("seed");
  return by_rows(n, n, 0, [&](int i, std::vector<int>& row) {
    Rng rng(static_cast<std::uint64_t>(seed + i));
    if (empty > 0 && rng.unit() < empty) return;
    const int length = static_cast<int>(std::min(longest, std::pow(1 - rng.unit(), length_power)));
    for (int k = 0; k < length; ++k) {
      if (rng.unit() < local)
        row.push_back(clamp_column(i + static_cast<std::int64_t>(rng.unit() * (2.0 * window)) - window, n));
      else
        row.push_back(clamp_column(static_cast<std::int64_t>(n * std::pow(rng.unit(), hub_power)), n));
    }
  });
}

Pattern batch(const Options& options) {
  const int graphs = options.integer("graphs"), smallest = options.integer("smallest"),
            largest = options.integer("largest");
  const double degree = options.real("degree");
  options.check(smallest <= largest, "smallest <= largest");
  options.check(static_cast<std::int64_t>(graphs) * largest <= max_index, "graphs * largest <= 2147483647");
  Rng rng(static_cast<std::uint64_t>(options.integer64("seed")));
  std::vector<std::uint64_t> edges;
  int begin = 0;
  for (int g = 0; g < graphs; ++g) {
    const int size = smallest + rng.below(largest - smallest + 1);
    // A random tree keeps every graph of the batch connected, as molecules are.
    for (int v = 1; v < size; ++v) edges.push_back(pack_edge(begin + v, begin + rng.below(v)));
    for (std::int64_t k = size - 1; k < static_cast<std::int64_t>(size * degree / 2); ++k) {
      const int v = rng.below(size), w = rng.below(size);
      if (v != w) edges.push_back(pack_edge(begin + v, begin + w));
    }
    if (options.integer("loops") == 1)
      for (int v = 0; v < size; ++v) edges.push_back(pack_edge(begin + v, begin + v));
    begin += size;
  }
  return by_edges(begin, std::move(edges), true);
}

}  // namespace

std::vector<Generator> graph_generators() {
  std::vector<Generator> list;
  list.push_back({{"rmat",
                   {},
                   "R-MAT (stochastic Kronecker) graph of 2^scale nodes with degree * 2^scale samples, repetitions "
                   "removed; symmetric=1 adds the reverse edges.",
                   "kron_g500-logn16 to -logn21, soc-LiveJournal1, com-Orkut",
                   "",
                   true},
                  {integer_key("scale", 14, 2, 30), integer_key("degree", 16, 1, 1000), real_key("a", 0.57, 0, 1),
                   real_key("b", 0.19, 0, 1), real_key("c", 0.19, 0, 1), integer_key("symmetric", 0, 0, 1), seed_key()},
                  rmat});
  list.push_back(
      {{"community",
        {},
        "Chung-Lu graph of node weights rank^-alpha, where a share of the edges stays inside communities "
        "of consecutive nodes.",
        "ogbn-arxiv, ogbn-proteins, ogbn-products, ogbl-collab, ogbl-ddi, Reddit; com-Amazon, "
        "coPapersCiteseer",
        "",
        true},
       {integer_key("n", 20000, 1), integer_key("edges", 200000, 0), real_key("alpha", 0.5, 0, 0.95),
        real_key("local", 0.6, 0, 1), integer_key("size", 500, 1), integer_key("symmetric", 1, 0, 1), seed_key()},
       community});
  list.push_back({{"web",
                   {},
                   "Power-law row lengths; links go to nearby pages (local, within window) or to hubs at small "
                   "indices, and a share of the rows is empty.",
                   "webbase-1M, cnr-2000, in-2004, web-Google",
                   "",
                   true},
                  {integer_key("n", 50000, 1), real_key("tail", 1.45, 0.5, 10), integer_key("longest", 4700, 0),
                   real_key("local", 0.65, 0, 1), integer_key("window", 200, 0, 1000000000),
                   real_key("hub_power", 3, 0, 100), real_key("empty", 0.1, 0, 1), seed_key()},
                  web});
  list.push_back(
      {{"batch",
        {},
        "Block-diagonal batch of small connected graphs of smallest to largest nodes; loops=1 adds the "
        "diagonal.",
        "DD, PROTEINS, COLLAB, ogbg-molhiv and other batches of small graphs",
        "",
        true},
       {integer_key("graphs", 500, 0, 100000000), integer_key("smallest", 10, 1), integer_key("largest", 60, 1),
        real_key("degree", 4, 0, 100000), integer_key("loops", 0, 0, 1), seed_key()},
       batch});
  return list;
}

}  // namespace Detail
}  // namespace Matrices
}  // namespace Tessera
