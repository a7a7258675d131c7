// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// One layer of a graph convolutional network, forward and backward, in C++ and Kokkos alone:
//
//     Y = X W,   Z = A Y,   H = max(Z, 0);   dZ = dH where Z > 0,   dY = A^T dZ,   dW = X^T dY,   dX = dY W^T
//
// with A the edges of a directed graph and each node's own, divided by the roots of both degrees. A and A^T are one
// plan. The gradients are checked by differences.

#include <Tessera_Spmm.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

namespace {

using Exec = Kokkos::DefaultExecutionSpace;
using Dense = Kokkos::View<double**, Kokkos::LayoutRight, Exec>;
using Csr = Tessera::CsrView<double, int, int, Exec::device_type>;

constexpr int nodes = 200, inputs = 12, outputs = 8;

/// C := op(A) op(B), element by element: dense matrices are small here.
struct Multiply {
  Dense A, B, C;
  bool turn_a, turn_b;
  KOKKOS_INLINE_FUNCTION void operator()(int at) const {
    const int columns = static_cast<int>(C.extent(1)), i = at / columns, j = at % columns;
    const int inner = static_cast<int>(turn_a ? A.extent(0) : A.extent(1));
    double sum = 0;
    for (int k = 0; k < inner; ++k) sum += (turn_a ? A(k, i) : A(i, k)) * (turn_b ? B(j, k) : B(k, j));
    C(i, j) = sum;
  }
};
void multiply(const Exec& space, const Dense& A, bool turn_a, const Dense& B, bool turn_b, const Dense& C) {
  Kokkos::parallel_for("multiply", Kokkos::RangePolicy<Exec>(space, 0, static_cast<int>(C.span())),
                       Multiply{A, B, C, turn_a, turn_b});
}
/// to := from where Z > 0, else 0.
struct Rectify {
  Dense Z, from, to;
  KOKKOS_INLINE_FUNCTION void operator()(int at) const { to.data()[at] = Z.data()[at] > 0 ? from.data()[at] : 0; }
};
void rectify(const Exec& space, const Dense& Z, const Dense& from, const Dense& to) {
  Kokkos::parallel_for("rectify", Kokkos::RangePolicy<Exec>(space, 0, static_cast<int>(Z.span())),
                       Rectify{Z, from, to});
}

struct Layer {
  explicit Layer(const Csr& graph) : A(Exec(), graph, with_transpose()) {}
  static Tessera::SpmmOptions with_transpose() {
    Tessera::SpmmOptions options;
    options.prepare_transpose = true;
    options.num_columns_hint = outputs;
    return options;
  }
  void forward(const Exec& space, const Dense& X, const Dense& W) const {
    multiply(space, X, false, W, false, Y);
    A.apply(space, Y, Z);
    rectify(space, Z, Z, H);
  }
  /// After forward with the same X and W.
  void backward(const Exec& space, const Dense& X, const Dense& W, const Dense& dH, const Dense& dX,
                const Dense& dW) const {
    rectify(space, Z, dH, dZ);
    A.apply(space, Tessera::Op::Trans, 1.0, dZ, 0.0, dY);
    multiply(space, X, true, dY, false, dW);
    multiply(space, dY, false, W, true, dX);
  }

  Tessera::SpmmPlan<Csr> A;
  Dense Y{"Y", nodes, outputs}, Z{"Z", nodes, outputs}, H{"H", nodes, outputs};
  Dense dZ{"dZ", nodes, outputs}, dY{"dY", nodes, outputs};
};

/// Every node, and three others that it names, some of which many do.
Csr directed_graph() {
  std::vector<int> columns;
  std::vector<double> degree(nodes), named(nodes);
  for (int i = 0; i < nodes; ++i) {
    for (const int j : {i, (i + 1) % nodes, (7 * i + 3) % nodes, i % 5}) {
      columns.push_back(j);
      degree[static_cast<std::size_t>(i)] += 1;
      named[static_cast<std::size_t>(j)] += 1;
    }
  }
  const Kokkos::View<int*, Exec> row_map("row_map", nodes + 1), entries("entries", columns.size());
  const Kokkos::View<double*, Exec> values("values", columns.size());
  const auto offsets = Kokkos::create_mirror_view(row_map), own = Kokkos::create_mirror_view(entries);
  const auto numbers = Kokkos::create_mirror_view(values);
  for (int i = 0; i <= nodes; ++i) offsets(i) = 4 * i;
  for (std::size_t e = 0; e < columns.size(); ++e) {
    own(e) = columns[e];
    numbers(e) = 1 / std::sqrt(degree[e / 4] * named[static_cast<std::size_t>(columns[e])]);
  }
  Kokkos::deep_copy(row_map, offsets);
  Kokkos::deep_copy(entries, own);
  Kokkos::deep_copy(values, numbers);
  return Tessera::csr_view(nodes, nodes, row_map, entries, values);
}

Dense filled(const std::string& name, int rows, int columns, double seed) {
  const Dense to(name, rows, columns);
  const auto host = Kokkos::create_mirror_view(to);
  for (std::size_t i = 0; i < host.span(); ++i)
    host.data()[i] = std::sin(seed + 0.7 * static_cast<double>(i * i % 1009));
  Kokkos::deep_copy(to, host);
  return to;
}
double dot(const Dense& a, const Dense& b) {
  const auto x = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), a);
  const auto y = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), b);
  double sum = 0;
  for (std::size_t i = 0; i < x.span(); ++i) sum += x.data()[i] * y.data()[i];
  return sum;
}

/// Largest difference between the gradient by some numbers of `at` and central differences of loss().
template <class Loss>
double worst_difference(const Dense& at, const Dense& gradient, const Loss& loss) {
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), at);
  const auto own = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), gradient);
  const double step = 1e-6;
  double worst = 0;
  for (std::size_t i = 0; i < host.span(); i += 1 + host.span() / 40) {
    const double keep = host.data()[i];
    host.data()[i] = keep + step;
    Kokkos::deep_copy(at, host);
    const double above = loss();
    host.data()[i] = keep - step;
    Kokkos::deep_copy(at, host);
    const double below = loss();
    host.data()[i] = keep;
    worst = std::max(worst, std::abs((above - below) / (2 * step) - own.data()[i]));
  }
  Kokkos::deep_copy(at, host);
  return worst;
}

int run() {
  const Exec space;
  const Layer layer(directed_graph());
  const Dense X = filled("X", nodes, inputs, 1), W = filled("W", inputs, outputs, 2),
              G = filled("G", nodes, outputs, 3);
  const Dense dX("dX", nodes, inputs), dW("dW", inputs, outputs);
  const auto loss = [&] {  // whose gradient by H is G
    layer.forward(space, X, W);
    space.fence();
    return dot(layer.H, G);
  };
  loss();
  layer.backward(space, X, W, G, dX, dW);
  space.fence();
  // The sum of some 1600 numbers is rounded to about 1e-13, which the step makes 1e-7.
  const double by_w = worst_difference(W, dW, loss), by_x = worst_difference(X, dX, loss);
  const bool right = by_w < 1e-6 && by_x < 1e-6 && dot(dW, dW) > 1 && dot(dX, dX) > 1;
  std::printf("GCN layer by %s: gradients differ from differences by %.1e (W) and %.1e (X): %s\n",
              Tessera::to_string(layer.A.options().algorithm), by_w, by_x, right ? "right" : "WRONG");
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char* argv[]) {
  Kokkos::initialize(argc, argv);
  const int status = run();
  Kokkos::finalize();
  return status;
}
