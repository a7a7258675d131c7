// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "reorder/Tessera_CuthillMcKee.hpp"

#include "Tessera_Config.hpp"
#include "Tessera_Error.hpp"

#if defined(TESSERA_HAVE_BOOST)

#include <algorithm>
#include <boost/graph/cuthill_mckee_ordering.hpp>
#include <boost/iterator/counting_iterator.hpp>
#include <cstddef>
#include <utility>

namespace Tessera {
namespace Impl {
namespace {

/// An undirected graph as adjacency lists in compressed rows: every edge stands in the lists of both of its ends.
struct Adjacency {
  std::vector<std::int64_t> begin;
  std::vector<std::int32_t> neighbours;  ///< of a vertex: ascending, without repetition, without itself
};

/// The pattern of A + A^T. O(nnz log(longest row)) time, two ints per entry.
Adjacency symmetrised(std::int32_t n, const std::int64_t* row_map, const std::int32_t* entries) {
  Adjacency g;
  const auto size = static_cast<std::size_t>(n);
  std::vector<std::int64_t> next(size + 1, 0);
  const auto each_edge = [&](const auto& f) {
    for (std::int32_t i = 0; i < n; ++i) {
      for (std::int64_t k = row_map[i]; k < row_map[i + 1]; ++k) {
        if (entries[k] != i) f(static_cast<std::size_t>(i), static_cast<std::size_t>(entries[k]));
      }
    }
  };
  each_edge([&](std::size_t i, std::size_t j) { ++next[i + 1], ++next[j + 1]; });
  for (std::size_t i = 0; i < size; ++i) next[i + 1] += next[i];
  g.neighbours.resize(static_cast<std::size_t>(next[size]));
  g.begin = next;
  each_edge([&](std::size_t i, std::size_t j) {
    g.neighbours[static_cast<std::size_t>(next[i]++)] = static_cast<std::int32_t>(j);
    g.neighbours[static_cast<std::size_t>(next[j]++)] = static_cast<std::int32_t>(i);
  });
  // Repetitions go, and the lists move together, in place: what is kept never outruns what is read.
  std::int64_t kept = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const auto first = g.neighbours.begin() + g.begin[i], last = g.neighbours.begin() + g.begin[i + 1];
    std::sort(first, last);
    const auto end = std::unique(first, last);
    g.begin[i] = kept;
    std::copy(first, end, g.neighbours.begin() + kept);
    kept += end - first;
  }
  g.begin[size] = kept;
  g.neighbours.resize(static_cast<std::size_t>(kept));
  return g;
}

/// One connected component of an Adjacency as a graph of Boost's (Vertex List and Incidence Graph). Vertices keep their
/// numbers, so that all components share one map of colours.
struct Component {
  struct traversal_category : boost::vertex_list_graph_tag, boost::incidence_graph_tag {};
  using directed_category = boost::undirected_tag;
  using edge_parallel_category = boost::disallow_parallel_edge_tag;
  using vertex_descriptor = std::int32_t;
  using vertex_iterator = const std::int32_t*;
  using vertices_size_type = std::size_t;
  using edge_descriptor = const std::int32_t*;  ///< the place in Adjacency::neighbours
  using out_edge_iterator = boost::counting_iterator<const std::int32_t*>;
  using degree_size_type = std::size_t;
  using edges_size_type = std::size_t;
  static vertex_descriptor null_vertex() { return -1; }

  const Adjacency& all;
  vertex_iterator first, last;
};
// The names are Boost's, which finds them by their argument. Two are part of its concepts and not asked for today.
std::pair<Component::vertex_iterator, Component::vertex_iterator> vertices(const Component& g) {
  return {g.first, g.last};
}
[[maybe_unused]] std::size_t num_vertices(const Component& g) { return static_cast<std::size_t>(g.last - g.first); }
std::pair<Component::out_edge_iterator, Component::out_edge_iterator> out_edges(std::int32_t v, const Component& g) {
  const std::int32_t* data = g.all.neighbours.data();
  return {Component::out_edge_iterator(data + g.all.begin[static_cast<std::size_t>(v)]),
          Component::out_edge_iterator(data + g.all.begin[static_cast<std::size_t>(v) + 1])};
}
std::size_t out_degree(std::int32_t v, const Component& g) {
  return static_cast<std::size_t>(g.all.begin[static_cast<std::size_t>(v) + 1] -
                                  g.all.begin[static_cast<std::size_t>(v)]);
}
std::int32_t target(Component::edge_descriptor e, const Component&) { return *e; }
[[maybe_unused]] std::int32_t source(Component::edge_descriptor e, const Component& g) {
  const std::int64_t place = e - g.all.neighbours.data();
  const auto row = std::upper_bound(g.all.begin.begin(), g.all.begin.end(), place);
  return static_cast<std::int32_t>(row - g.all.begin.begin()) - 1;
}

}  // namespace

bool has_cuthill_mckee() noexcept { return true; }

std::vector<std::int32_t> reverse_cuthill_mckee(std::int32_t n, const std::int64_t* row_map,
                                                const std::int32_t* entries) {
  const Adjacency graph = symmetrised(n, row_map, entries);
  std::vector<std::int32_t> order, members;
  order.reserve(static_cast<std::size_t>(n));
  std::vector<bool> found(static_cast<std::size_t>(n), false);
  std::vector<boost::default_color_type> colours(static_cast<std::size_t>(n), boost::white_color);
  const auto colour = boost::make_iterator_property_map(colours.begin(), boost::identity_property_map());
  // Component by component: given the whole graph, Boost's search for starting vertices visits every vertex once for
  // each component, which a matrix of many small blocks turns into a square.
  for (std::int32_t seed = 0; seed < n; ++seed) {
    if (found[static_cast<std::size_t>(seed)]) continue;
    members.assign(1, seed);
    found[static_cast<std::size_t>(seed)] = true;
    for (std::size_t i = 0; i < members.size(); ++i) {
      const auto v = static_cast<std::size_t>(members[i]);
      for (std::int64_t k = graph.begin[v]; k < graph.begin[v + 1]; ++k) {
        const std::int32_t neighbour = graph.neighbours[static_cast<std::size_t>(k)];
        if (found[static_cast<std::size_t>(neighbour)]) continue;
        found[static_cast<std::size_t>(neighbour)] = true;
        members.push_back(neighbour);
      }
    }
    const auto begin = static_cast<std::ptrdiff_t>(order.size());
    if (members.size() == 1) {
      order.push_back(seed);
    } else {
      const Component component{graph, members.data(), members.data() + members.size()};
      const auto degree = boost::make_out_degree_map(component);
      const std::int32_t start = boost::find_starting_node(component, seed, colour, degree);
      boost::cuthill_mckee_ordering(component, start, std::back_inserter(order), colour, degree);
    }
    std::reverse(order.begin() + begin, order.end());
  }
  return order;
}

}  // namespace Impl
}  // namespace Tessera

#else

namespace Tessera {
namespace Impl {

bool has_cuthill_mckee() noexcept { return false; }

std::vector<std::int32_t> reverse_cuthill_mckee(std::int32_t, const std::int64_t*, const std::int32_t*) {
  throw NotSupported(
      "reorder::rcm uses Boost Graph, without which this library was built; install Boost's headers (Debian: "
      "libboost-dev) and configure again with Tessera_ENABLE_BOOST=ON. reorder::permute_symmetric and the others take "
      "a "
      "permutation from anywhere");
}

}  // namespace Impl
}  // namespace Tessera

#endif
