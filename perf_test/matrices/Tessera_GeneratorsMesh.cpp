// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include <array>
#include <cstdlib>
#include <numeric>

#include "Tessera_GeneratorsDetail.hpp"

/// \file
/// Patterns of discretised partial differential equations.

namespace Tessera {
namespace Matrices {
namespace Detail {

namespace {

struct Grid {
  int nx, ny, nz;
  std::int64_t size() const { return static_cast<std::int64_t>(nx) * ny * nz; }
  int id(int x, int y, int z) const { return (z * ny + y) * nx + x; }
  std::array<int, 3> position(int id) const { return {id % nx, id / nx % ny, id / nx / ny}; }
};

/// Calls visit(dx, dy, dz, id) for the 27 neighbours of a grid point that exist, itself included, by ascending id.
template <class Visit>
void for_neighbours(const Grid& grid, int x, int y, int z, Visit&& visit) {
  for (int dz = (z > 0 ? -1 : 0); dz <= (z + 1 < grid.nz ? 1 : 0); ++dz)
    for (int dy = (y > 0 ? -1 : 0); dy <= (y + 1 < grid.ny ? 1 : 0); ++dy)
      for (int dx = (x > 0 ? -1 : 0); dx <= (x + 1 < grid.nx ? 1 : 0); ++dx)
        visit(dx, dy, dz, grid.id(x + dx, y + dy, z + dz));
}

void check_grid(const Options& options, const Grid& grid, int unknowns_per_point = 1) {
  // In two steps, because three extents of 2^31 overflow even 64 bits.
  const std::int64_t plane = static_cast<std::int64_t>(grid.nx) * grid.ny;
  options.check(plane <= max_index && plane * grid.nz <= max_index && grid.size() * unknowns_per_point <= max_index,
                "at most 2147483647 rows");
}

Pattern stencil(const Grid& grid, bool corners, std::int64_t points) {
  return by_rows(grid.size(), grid.size(), grid.size() * points, [&](int i, std::vector<int>& row) {
    const auto p = grid.position(i);
    for_neighbours(grid, p[0], p[1], p[2], [&](int dx, int dy, int dz, int id) {
      if (corners || std::abs(dx) + std::abs(dy) + std::abs(dz) <= 1) row.push_back(id);
    });
  });
}
Pattern stencil2d(const Options& options) {
  const Grid grid{options.integer("nx"), options.integer("ny"), 1};
  check_grid(options, grid);
  return stencil(grid, options.text("points") == "9", options.integer("points"));
}
Pattern stencil3d(const Options& options) {
  const Grid grid{options.integer("nx"), options.integer("ny"), options.integer("nz")};
  check_grid(options, grid);
  return stencil(grid, options.text("points") == "27", options.integer("points"));
}

/// Smoothed aggregation on a stencil's grid: aggregates are cubes of `side` points, and a smoothing step spreads each
/// of their columns to the points that a step of the stencil reaches.
class Aggregation {
 public:
  Aggregation(const Grid& fine, int side, int steps, bool corners)
      : fine_(fine),
        coarse_{(fine.nx + side - 1) / side, (fine.ny + side - 1) / side, (fine.nz + side - 1) / side},
        side_(side),
        steps_(steps),
        corners_(corners) {}

  /// A row per point: aggregates that it reaches.
  Pattern by_points() const {
    return by_rows(fine_.size(), coarse_.size(), 0, [&](int i, std::vector<int>& row) {
      const auto p = fine_.position(i);
      each_near(p, p, [&](int x, int y, int z) { row.push_back(coarse_.id(x / side_, y / side_, z / side_)); });
    });
  }
  /// A row per aggregate: points that reach it.
  Pattern by_aggregates() const {
    return by_rows(coarse_.size(), fine_.size(), 0, [&](int i, std::vector<int>& row) {
      const auto p = coarse_.position(i);
      std::array<int, 3> low, high;
      for (int d = 0; d < 3; ++d) {
        low[d] = p[d] * side_;
        high[d] = low[d] + side_ - 1;
      }
      each_near(low, high, [&](int x, int y, int z) { row.push_back(fine_.id(x, y, z)); });
    });
  }

 private:
  /// Points of the grid that a box reaches.
  template <class Visit>
  void each_near(const std::array<int, 3>& low, const std::array<int, 3>& high, const Visit& visit) const {
    const auto outside = [&](int at, int d) { return std::max({low[d] - at, at - high[d], 0}); };
    for (int z = std::max(0, low[2] - steps_); z <= std::min(fine_.nz - 1, high[2] + steps_); ++z)
      for (int y = std::max(0, low[1] - steps_); y <= std::min(fine_.ny - 1, high[1] + steps_); ++y)
        for (int x = std::max(0, low[0] - steps_); x <= std::min(fine_.nx - 1, high[0] + steps_); ++x)
          if (corners_ || outside(x, 0) + outside(y, 1) + outside(z, 2) <= steps_) visit(x, y, z);
  }

  Grid fine_, coarse_;
  int side_, steps_;
  bool corners_;
};
Pattern aggregation(const Options& options) {
  const Grid grid{options.integer("nx"), options.integer("ny"), options.integer("nz")};
  check_grid(options, grid);
  const std::string what = options.text("what");
  const Aggregation all(grid, options.integer("side"), what == "ap" ? 2 : 1, options.text("points") == "27");
  return what == "r" ? all.by_aggregates() : all.by_points();
}

Pattern markov2d(const Options& options) {
  const Grid grid{options.integer("nx"), options.integer("ny"), 1};
  check_grid(options, grid);
  const int gap = options.integer("gap");
  return by_rows(grid.size(), grid.size(), grid.size() * 4, [&](int i, std::vector<int>& row) {
    const int x = i % grid.nx, y = i / grid.nx;
    if (y > 0) row.push_back(i - grid.nx);
    if (x > 0) row.push_back(i - 1);
    if (x + 1 < grid.nx) row.push_back(i + 1);
    if (y + 1 < grid.ny && (x + y) % gap != 0) row.push_back(i + grid.nx);
  });
}

Pattern block_grid(const Options& options) {
  const int nodes = options.integer("nodes"), dof = options.integer("dof");
  const std::int64_t plane = options.integer64("nx") * options.integer64("ny");
  options.check(plane <= nodes, "nx * ny <= nodes");
  options.check(static_cast<std::int64_t>(nodes) * dof <= max_index, "nodes * dof <= 2147483647");
  const Grid grid{options.integer("nx"), options.integer("ny"), static_cast<int>((nodes + plane - 1) / plane)};
  const std::uint32_t missing = static_cast<std::uint32_t>(options.integer("missing"));
  const std::uint32_t seed = static_cast<std::uint32_t>(options.integer64("seed"));
  // Symmetric in its arguments, so that a link is missing in both directions or in none.
  const auto is_missing = [=](int a, int b) {
    std::uint32_t h = static_cast<std::uint32_t>(std::min(a, b)) * 73856093u ^
                      static_cast<std::uint32_t>(std::max(a, b)) * 19349663u ^ seed;
    h ^= h >> 15;
    h *= 2246822519u;
    h ^= h >> 13;
    return a != b && h % 100 < missing;
  };
  const std::int64_t rows = static_cast<std::int64_t>(nodes) * dof;
  return by_rows(rows, rows, 0, [&](int i, std::vector<int>& row) {
    const int node = i / dof;
    const auto p = grid.position(node);
    for_neighbours(grid, p[0], p[1], p[2], [&](int, int, int, int other) {
      // The last layer of the grid may be incomplete.
      if (other >= nodes || is_missing(node, other)) return;
      for (int d = 0; d < dof; ++d) row.push_back(other * dof + d);
    });
  });
}

/// Hexahedral cells on a box with cavities; optionally every cell is cut into six tetrahedra.
///
/// The cut pulls every cell and every face from its vertex of smallest label. Neighbouring cells therefore agree on
/// their common face, and random labels give the irregular vertex degrees of an unstructured tetrahedral mesh.
class BoxMesh {
 public:
  BoxMesh(const Grid& cells, bool tetrahedra, int cavities, std::uint64_t seed)
      : cells_(cells),
        points_{cells.nx + 1, cells.ny + 1, cells.nz + 1},
        tetrahedra_(tetrahedra),
        seed_(seed),
        active_(static_cast<std::size_t>(cells.size()), 1) {
    Rng rng(seed);
    for (int c = 0; c < cavities; ++c) carve(rng);
    // A mesh without a cell is no mesh.
    active_[0] = 1;
  }

  /// Node-to-node pattern including the diagonal, nodes numbered by x, then y, then z; unused points are left out.
  Pattern node_graph() const {
    std::vector<int> number(static_cast<std::size_t>(points_.size()), -1);
    std::vector<int> used;
    for (int id = 0; id < points_.size(); ++id) {
      const auto p = points_.position(id);
      if (!any_cell(p[0], p[1], p[2], 0, 0, 0)) continue;
      number[id] = static_cast<int>(used.size());
      used.push_back(id);
    }
    const std::int64_t nodes = static_cast<std::int64_t>(used.size());
    return by_rows(nodes, nodes, nodes * (tetrahedra_ ? 15 : 27), [&](int i, std::vector<int>& row) {
      const auto p = points_.position(used[i]);
      for_neighbours(points_, p[0], p[1], p[2], [&](int dx, int dy, int dz, int other) {
        if (linked(p[0], p[1], p[2], dx, dy, dz)) row.push_back(number[other]);
      });
    });
  }

 private:
  void carve(Rng& rng) {
    // Half cells, and integers throughout: rounding must not decide whether a cell exists.
    const int cx = rng.below(2 * cells_.nx), cy = rng.below(2 * cells_.ny), cz = rng.below(2 * cells_.nz);
    const std::int64_t radius = 1 + rng.below(1 + std::min({cells_.nx, cells_.ny, cells_.nz}) / 2);
    for (int id = 0; id < cells_.size(); ++id) {
      const auto p = cells_.position(id);
      const std::int64_t x = 2 * p[0] + 1 - cx, y = 2 * p[1] + 1 - cy, z = 2 * p[2] + 1 - cz;
      if (x * x + y * y + z * z < radius * radius) active_[id] = 0;
    }
  }
  /// Is there a cell that has both the point and the point displaced by (dx, dy, dz)?
  bool any_cell(int x, int y, int z, int dx, int dy, int dz) const {
    const auto low = [](int at, int d) { return d > 0 ? at : at - 1; };
    const auto high = [](int at, int d) { return d < 0 ? at - 1 : at; };
    for (int k = std::max(0, low(z, dz)); k <= std::min(cells_.nz - 1, high(z, dz)); ++k)
      for (int j = std::max(0, low(y, dy)); j <= std::min(cells_.ny - 1, high(y, dy)); ++j)
        for (int i = std::max(0, low(x, dx)); i <= std::min(cells_.nx - 1, high(x, dx)); ++i)
          if (active_[cells_.id(i, j, k)]) return true;
    return false;
  }
  bool linked(int x, int y, int z, int dx, int dy, int dz) const {
    if (!any_cell(x, y, z, dx, dy, dz)) return false;
    if (!tetrahedra_ || std::abs(dx) + std::abs(dy) + std::abs(dz) <= 1) return true;
    // The diagonal of a face or cell exists if one of its ends is the vertex that the face or cell is pulled from.
    int first = points_.id(x, y, z);
    const int end = points_.id(x + dx, y + dy, z + dz), start = first;
    for (int k = 0; k <= std::abs(dz); ++k)
      for (int j = 0; j <= std::abs(dy); ++j)
        for (int i = 0; i <= std::abs(dx); ++i) {
          const int id = points_.id(x + i * dx, y + j * dy, z + k * dz);
          if (label(id) < label(first)) first = id;
        }
    return first == start || first == end;
  }
  std::pair<std::uint64_t, int> label(int id) const {
    std::uint64_t h = (static_cast<std::uint64_t>(id) + seed_ + 1) * 0x9E3779B97F4A7C15ull;
    h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9ull;
    h = (h ^ (h >> 27)) * 0x94D049BB133111EBull;
    return {h ^ (h >> 31), id};
  }

  Grid cells_, points_;
  bool tetrahedra_;
  std::uint64_t seed_;
  std::vector<char> active_;
};

/// Breadth-first order of one component appended to `order`; returns where the last level begins.
std::size_t append_levels(const Pattern& graph, int start, std::vector<int>& order, std::vector<char>& visited) {
  const auto degree = [&](int v) { return graph.row_map[v + 1] - graph.row_map[v]; };
  std::size_t level_begin = order.size(), next = order.size();
  order.push_back(start);
  visited[start] = 1;
  while (next < order.size()) {
    level_begin = next;
    for (const std::size_t level_end = order.size(); next < level_end; ++next) {
      const std::size_t first_new = order.size();
      for (std::int64_t k = graph.row_map[order[next]]; k < graph.row_map[order[next] + 1]; ++k) {
        const int w = graph.entries[k];
        if (visited[w]) continue;
        visited[w] = 1;
        order.push_back(w);
      }
      std::stable_sort(order.begin() + first_new, order.end(), [&](int a, int b) { return degree(a) < degree(b); });
    }
  }
  return level_begin;
}
/// Reverse Cuthill-McKee; the result lists old numbers in the new order.
std::vector<int> rcm_order(const Pattern& graph) {
  std::vector<int> order;
  order.reserve(static_cast<std::size_t>(graph.rows));
  std::vector<char> visited(static_cast<std::size_t>(graph.rows), 0);
  for (int v = 0; v < graph.rows; ++v) {
    if (visited[v]) continue;
    const std::size_t component = order.size();
    int start = v;
    // Two sweeps reach a node that is peripheral enough; exactness would only cost time.
    for (int sweep = 0; sweep < 2; ++sweep) {
      start = order[append_levels(graph, start, order, visited)];
      for (std::size_t k = component; k < order.size(); ++k) visited[order[k]] = 0;
      order.resize(component);
    }
    append_levels(graph, start, order, visited);
  }
  std::reverse(order.begin(), order.end());
  return order;
}
std::vector<int> shuffled_order(int nodes, std::uint64_t seed) {
  std::vector<int> order(static_cast<std::size_t>(nodes));
  std::iota(order.begin(), order.end(), 0);
  Rng rng(seed ^ 0x5bd1e995u);
  for (int i = nodes; i > 1; --i) std::swap(order[i - 1], order[rng.below(i)]);
  return order;
}
Pattern renumber(const Pattern& graph, const std::vector<int>& order) {
  std::vector<int> number(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) number[order[i]] = static_cast<int>(i);
  return by_rows(graph.rows, graph.cols, graph.row_map.back(), [&](int i, std::vector<int>& row) {
    for (std::int64_t k = graph.row_map[order[i]]; k < graph.row_map[order[i] + 1]; ++k)
      row.push_back(number[graph.entries[k]]);
  });
}
Pattern expand_blocks(const Pattern& graph, int dof) {
  return by_rows(graph.rows * dof, graph.cols * dof, graph.row_map.back() * dof * dof,
                 [&](int i, std::vector<int>& row) {
                   for (std::int64_t k = graph.row_map[i / dof]; k < graph.row_map[i / dof + 1]; ++k)
                     for (int d = 0; d < dof; ++d) row.push_back(graph.entries[k] * dof + d);
                 });
}
Pattern fem(const Options& options) {
  const Grid cells{options.integer("nx"), options.integer("ny"), options.integer("nz")};
  const int dof = options.integer("dof");
  check_grid(options, {cells.nx + 1, cells.ny + 1, cells.nz + 1}, dof);
  const std::uint64_t seed = static_cast<std::uint64_t>(options.integer64("seed"));
  const BoxMesh mesh(cells, options.text("elements") == "tet", options.integer("cavities"), seed);
  Pattern graph = mesh.node_graph();
  if (options.text("numbering") == "rcm") graph = renumber(graph, rcm_order(graph));
  if (options.text("numbering") == "shuffled")
    graph = renumber(graph, shuffled_order(static_cast<int>(graph.rows), seed));
  return dof == 1 ? graph : expand_blocks(graph, dof);
}

}  // namespace

std::vector<Generator> mesh_generators() {
  std::vector<Generator> list;
  list.push_back({{"stencil2d",
                   {},
                   "Five- or nine-point stencil on an nx by ny grid, x running fastest.",
                   "ecology1, ecology2, G3_circuit (5 points); fv1, fv2, fv3 (9 points)",
                   "",
                   true},
                  {integer_key("nx", 100, 1), integer_key("ny", 100, 1), choice_key("points", "5|9")},
                  stencil2d});
  list.push_back(
      {{"stencil3d",
        {},
        "Seven- or 27-point stencil on an nx by ny by nz grid, x running fastest.",
        "atmosmodd, atmosmodj, Lin (7 points); nlpkkt80, the HPCG problem (27 points)",
        "",
        true},
       {integer_key("nx", 24, 1), integer_key("ny", 24, 1), integer_key("nz", 24, 1), choice_key("points", "7|27")},
       stencil3d});
  list.push_back(
      {{"aggregation",
        {},
        "Smoothed aggregation for stencil3d of the same extents: prolongator P (what=p), its transpose (r), or "
        "the product A P (ap); aggregates are cubes of side^3 points.",
        "products of a multigrid hierarchy",
        "",
        true},
       {integer_key("nx", 24, 1), integer_key("ny", 24, 1), integer_key("nz", 24, 1), choice_key("points", "7|27"),
        choice_key("what", "p|r|ap"), integer_key("side", 3, 1, 1000)},
       aggregation});
  list.push_back({{"markov2d",
                   {},
                   "Steps of a walk on a grid: no diagonal, at most four entries, every gap-th upward step left out.",
                   "mc2depi",
                   "",
                   true},
                  {integer_key("nx", 100, 1), integer_key("ny", 100, 1), integer_key("gap", 300, 1)},
                  markov2d});
  list.push_back({{"fem",
                   {},
                   "Finite elements on a box of hexahedra or irregularly cut tetrahedra with cavities: dense dof by "
                   "dof blocks on the mesh's node graph.",
                   "audikw_1, Hook_1498, Emilia_923 (tet, dof=3); Flan_1565, bone010 (hex, dof=3); poisson3Db (tet, "
                   "dof=1); pwtk, bmw3_2, shipsec1 (dof=6)",
                   "",
                   true},
                  {choice_key("elements", "tet|hex"), integer_key("nx", 24, 1), integer_key("ny", 14, 1),
                   integer_key("nz", 10, 1), integer_key("dof", 3, 1, 8),
                   choice_key("numbering", "rcm|natural|shuffled"), integer_key("cavities", 6, 0, 1000), seed_key()},
                  fem});
  list.push_back({{"block_grid",
                   {},
                   "27-point node grid in dof by dof blocks with a percentage of the links missing; nodes need not "
                   "fill the last layer.",
                   "cant, consph, shipsec1",
                   "",
                   true},
                  {integer_key("nx", 12, 1), integer_key("ny", 16, 1), integer_key("nodes", 3000, 1),
                   integer_key("dof", 3, 1, 8), integer_key("missing", 8, 0, 100), seed_key(0)},
                  block_grid});
  return list;
}

}  // namespace Detail
}  // namespace Matrices
}  // namespace Tessera
