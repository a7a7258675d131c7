// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Masked attention of four heads on a graph, as a layer of a graph transformer has it, forward and backward: node i
// looks at its neighbours of a ring, a bias says how far off they are, and -inf hides those that come later. Checked by
// plain loops, and the gradients by a difference along a direction.

#include <Tessera_Attention.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>

namespace {

using Exec = Kokkos::DefaultExecutionSpace;
using Heads = Kokkos::View<double***, Kokkos::LayoutRight, Exec>;    // head, node, feature
using HeadSums = Kokkos::View<double**, Kokkos::LayoutRight, Exec>;  // head, node
using Values = Kokkos::View<double*, Exec>;
using Csr = Tessera::CsrView<double, int, int, Exec::device_type>;

constexpr int nodes = 300, near = 6, heads = 4, features = 16;
constexpr double scale = 0.25;  // 1 / sqrt(features)

double number(int seed, int i) { return std::sin(1.7 * seed + 0.37 * i + 0.001 * i * seed); }

Heads filled(const std::string& name, int seed) {
  const Heads to(name, heads, nodes, features);
  const auto host = Kokkos::create_mirror_view(to);
  for (std::size_t i = 0; i < host.span(); ++i) host.data()[i] = number(seed, static_cast<int>(i));
  Kokkos::deep_copy(to, host);
  return to;
}
Heads moved(const Heads& from, const Heads& along, double step) {
  const Heads to("moved", heads, nodes, features);
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), from);
  const auto direction = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), along);
  const auto sum = Kokkos::create_mirror_view(to);
  for (std::size_t i = 0; i < sum.span(); ++i) sum.data()[i] = host.data()[i] + step * direction.data()[i];
  Kokkos::deep_copy(to, sum);
  return to;
}
double dot(const Heads& a, const Heads& b) {
  const auto x = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), a);
  const auto y = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), b);
  double sum = 0;
  for (std::size_t i = 0; i < x.span(); ++i) sum += x.data()[i] * y.data()[i];
  return sum;
}

/// Node i looks at nodes i - near ... i + near of a ring; later ones are hidden, earlier ones count less.
Csr ring() {
  constexpr int row = 2 * near + 1;
  const Kokkos::View<int*, Exec> row_map("row_map", nodes + 1), entries("entries", nodes * row);
  const Values bias("bias", nodes * row);
  const auto offsets = Kokkos::create_mirror_view(row_map), columns = Kokkos::create_mirror_view(entries);
  const auto values = Kokkos::create_mirror_view(bias);
  for (int i = 0; i < nodes; ++i) {
    offsets(i + 1) = (i + 1) * row;
    for (int k = 0; k < row; ++k) {
      const int j = (i + k - near + nodes) % nodes;
      columns(i * row + k) = j;
      values(i * row + k) = j > i ? -std::numeric_limits<double>::infinity() : -0.1 * std::abs(k - near);
    }
  }
  Kokkos::deep_copy(row_map, offsets);
  Kokkos::deep_copy(entries, columns);
  Kokkos::deep_copy(bias, values);
  return Tessera::csr_view(nodes, nodes, row_map, entries, bias);
}

/// Largest error of O, against softmax by plain loops.
double error_of(const Csr& graph, const Heads& Q, const Heads& K, const Heads& V, const Heads& O) {
  const auto host = [](const auto& view) { return Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), view); };
  const auto q = host(Q), k = host(K), v = host(V), o = host(O);
  const auto row_map = host(graph.row_map());
  const auto columns = host(graph.entries());
  const auto bias = host(graph.values());
  double worst = 0;
  for (int h = 0; h < heads; ++h) {
    for (int i = 0; i < nodes; ++i) {
      double total = 0, sums[features] = {};
      for (int e = row_map(i); e < row_map(i + 1); ++e) {
        const int j = columns(e);
        double score = 0;
        for (int c = 0; c < features; ++c) score += q(h, i, c) * k(h, j, c);
        const double weight = std::exp(scale * score + bias(e));
        total += weight;
        for (int c = 0; c < features; ++c) sums[c] += weight * v(h, j, c);
      }
      for (int c = 0; c < features; ++c) worst = std::max(worst, std::abs(o(h, i, c) - sums[c] / total));
    }
  }
  return worst;
}

int run() {
  const Exec space;
  const Csr graph = ring();
  const Heads Q = filled("Q", 1), K = filled("K", 2), V = filled("V", 3), O("O", heads, nodes, features);
  const HeadSums lse("lse", heads, nodes);

  Tessera::AttentionOptions options;
  options.values = Tessera::AttentionValues::Bias;
  options.prepare_backward = true;
  const Tessera::AttentionPlan<Csr> attention(space, graph, options);
  attention.apply(space, scale, Q, K, V, O, lse);

  // The loss is the sum of O G, so its gradient by O is G.
  const Heads G = filled("G", 4), dQ("dQ", heads, nodes, features), dK("dK", heads, nodes, features),
              dV("dV", heads, nodes, features);
  const Kokkos::View<double**, Kokkos::LayoutRight, Exec> d_bias("d_bias", heads, graph.nnz());
  attention.backward(space, scale, Q, K, V, O, lse, G, dQ, dK, dV, d_bias);
  space.fence();

  const Heads along = filled("along", 5), moved_o("moved O", heads, nodes, features);
  const auto loss = [&](double step) {
    attention.apply(space, scale, moved(Q, along, step), moved(K, along, step), moved(V, along, step), moved_o);
    space.fence();
    return dot(moved_o, G);
  };
  constexpr double step = 1e-5;
  const double difference = (loss(step) - loss(-step)) / (2 * step);
  const double gradient = dot(dQ, along) + dot(dK, along) + dot(dV, along);
  const double off = std::abs(difference - gradient) / std::abs(difference), error = error_of(graph, Q, K, V, O);
  // Doubles: some roundings of numbers of about 1; a difference keeps about half of the digits.
  const bool right = error < 1e-13 && off < 1e-7;
  std::printf("attention by %s (%s): O errs by %.1e, the gradient differs from a difference by %.1e: %s\n",
              Tessera::to_string(attention.options().algorithm), attention.statistics().why.c_str(), error, off,
              right ? "right" : "WRONG");
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char* argv[]) {
  Kokkos::initialize(argc, argv);
  const int status = run();
  Kokkos::finalize();
  return status;
}
