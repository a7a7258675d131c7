// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Heat in a square plate with a wall that conducts badly and has a gap, insulated at its border: du/dt = div(k grad u)
// on n x n cells, backward Euler, so that each step solves (I + dt K) u_new = u_old. The matrix is assembled on the
// device; conjugate gradients take their products from one SpmvPlan, which gets new values whenever dt is doubled.
// Every step is checked against what holds for the exact solution; see `check`.
//
//   09_heat_equation [PICTURE.svg]

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "Tessera.hpp"

namespace {

using Exec = Kokkos::DefaultExecutionSpace;
using Vector = Kokkos::View<double*, Exec>;

/// I + dt K by finite volumes: between two cells flows the harmonic mean of their conductivities.
struct Assemble {
  struct Count {};
  struct Fill {};
  int n;
  double dt;
  bool wall;
  Kokkos::View<int*, Exec> row_map, entries;
  Vector values;

  KOKKOS_INLINE_FUNCTION double conductivity(int i, int j) const {
    const bool inside = 2 * j >= n && 2 * j < n + n / 16, gap = 8 * i >= 3 * n && 8 * i < 4 * n;
    return wall && inside && !gap ? 0.002 : 1;
  }
  KOKKOS_INLINE_FUNCTION double between(int i, int j, int i2, int j2) const {
    if (i2 < 0 || i2 >= n || j2 < 0 || j2 >= n) return 0;  // insulated
    const double a = conductivity(i, j), b = conductivity(i2, j2);
    return 2 * a * b / (a + b);
  }
  /// Offsets of the rows.
  KOKKOS_INLINE_FUNCTION void operator()(Count, int cell, int& sum, bool final) const {
    const int i = cell / n, j = cell % n;
    if (final) row_map(cell) = sum;
    sum += 1 + (i > 0) + (j > 0) + (j < n - 1) + (i < n - 1);
    if (final && cell == n * n - 1) row_map(n * n) = sum;
  }
  KOKKOS_INLINE_FUNCTION void operator()(Fill, int cell) const {
    const int i = cell / n, j = cell % n;
    const double up = between(i, j, i - 1, j), left = between(i, j, i, j - 1), right = between(i, j, i, j + 1),
                 down = between(i, j, i + 1, j);
    int at = row_map(cell);
    const auto put = [&](int column, double value) {
      entries(at) = column;
      values(at++) = value;
    };
    if (i > 0) put(cell - n, -dt * up);
    if (j > 0) put(cell - 1, -dt * left);
    put(cell, 1 + dt * (up + left + right + down));
    if (j < n - 1) put(cell + 1, -dt * right);
    if (i < n - 1) put(cell + n, -dt * down);
  }
};

/// y := a x + b y.
struct Combine {
  double a, b;
  Vector x, y;
  KOKKOS_INLINE_FUNCTION void operator()(int i) const { y(i) = a * x(i) + b * y(i); }
};
struct Dot {
  Vector x, y;
  KOKKOS_INLINE_FUNCTION void operator()(int i, double& sum) const { sum += x(i) * y(i); }
};

class Plate {
  using Csr = Tessera::CsrView<double, int, int, Exec::device_type>;

 public:
  Plate(int n, double dt, bool wall)
      : fill_{n, dt, wall, Kokkos::View<int*, Exec>("row_map", n * n + 1), {}, {}}, r_("r", n * n), p_("p", n * n) {
    q_ = Vector("q", n * n);
    Kokkos::parallel_scan("offsets", Kokkos::RangePolicy<Exec, Assemble::Count>(space_, 0, n * n), fill_);
    int entries = 0;
    Kokkos::deep_copy(space_, Kokkos::View<int, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>(&entries),
                      Kokkos::subview(fill_.row_map, n * n));
    space_.fence();
    fill_.entries = Kokkos::View<int*, Exec>("entries", entries);
    fill_.values = Vector("values", entries);
    Kokkos::parallel_for("fill", Kokkos::RangePolicy<Exec, Assemble::Fill>(space_, 0, n * n), fill_);
    plan_ = std::make_unique<Tessera::SpmvPlan<Csr>>(space_, matrix());
  }

  Csr matrix() const { return Tessera::csr_view(rows(), rows(), fill_.row_map, fill_.entries, fill_.values); }
  int rows() const { return fill_.n * fill_.n; }
  const Tessera::SpmvPlan<Csr>& plan() const { return *plan_; }
  double dt() const { return fill_.dt; }

  /// Another time step: the same pattern, other numbers.
  void set_dt(double dt) {
    fill_.dt = dt;
    Kokkos::parallel_for("fill", Kokkos::RangePolicy<Exec, Assemble::Fill>(space_, 0, rows()), fill_);
    plan_->update_values(space_, matrix());
  }

  /// Solves A u = b by conjugate gradients from u = b on, until |b - A u| <= 1e-12 |b|. Returns the iterations, -1 if
  /// there were too many.
  int solve(const Vector& b, const Vector& u) {
    const double goal = 1e-24 * dot(b, b);
    Kokkos::deep_copy(space_, u, b);
    Kokkos::deep_copy(space_, r_, b);
    plan_->apply(space_, Tessera::Op::NoTrans, -1.0, u, 1.0, r_);  // r = b - A u
    Kokkos::deep_copy(space_, p_, r_);
    double rr = dot(r_, r_);
    for (int iteration = 0; iteration <= 10000; ++iteration) {
      if (rr <= goal) return iteration;
      plan_->apply(space_, p_, q_);
      const double alpha = rr / dot(p_, q_);
      combine(alpha, p_, 1, u);
      combine(-alpha, q_, 1, r_);
      const double before = rr;
      rr = dot(r_, r_);
      combine(1, r_, rr / before, p_);
    }
    return -1;
  }

 private:
  double dot(const Vector& x, const Vector& y) const {
    double sum = 0;
    Kokkos::parallel_reduce("dot", Kokkos::RangePolicy<Exec>(space_, 0, rows()), Dot{x, y}, sum);
    return sum;
  }
  void combine(double a, const Vector& x, double b, const Vector& y) const {
    Kokkos::parallel_for("combine", Kokkos::RangePolicy<Exec>(space_, 0, rows()), Combine{a, b, x, y});
  }

  Exec space_;
  Assemble fill_;
  Vector r_, p_, q_;
  std::unique_ptr<Tessera::SpmvPlan<Csr>> plan_;
};

template <class View>
std::vector<typename View::non_const_value_type> to_host(const View& view) {
  const auto mirror = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), view);
  return std::vector<typename View::non_const_value_type>(mirror.data(), mirror.data() + mirror.extent(0));
}

/// How far u may be from the solution of A u = b: norms of b - A u, computed with plain loops on the host, plus what
/// these loops may err by (seven roundings per row of five entries, eps = 2 u each).
struct Residual {
  double largest = 0, sum = 0, euclidean = 0;
};
Residual residual(const Plate& plate, const std::vector<double>& b, const std::vector<double>& u) {
  const auto A = plate.matrix();
  const auto row_map = to_host(A.row_map());
  const auto entries = to_host(A.entries());
  const auto values = to_host(A.values());
  Residual r;
  for (std::size_t i = 0; i < u.size(); ++i) {
    double rest = b[i], size = std::fabs(b[i]);
    for (int k = row_map[i]; k < row_map[i + 1]; ++k) {
      const auto at = static_cast<std::size_t>(k);
      const double product = values[at] * u[static_cast<std::size_t>(entries[at])];
      rest -= product;
      size += std::fabs(product);
    }
    const double here = std::fabs(rest) + 7 * std::numeric_limits<double>::epsilon() * size;
    r.largest = std::max(r.largest, here);
    r.sum += here;
    r.euclidean += here * here;
  }
  r.euclidean = std::sqrt(r.euclidean);
  return r;
}

double sum_of(const std::vector<double>& u) {
  long double sum = 0;
  for (const double v : u) sum += v;
  return static_cast<double>(sum);
}
double norm_of(const std::vector<double>& u) {
  long double sum = 0;
  for (const double v : u) sum += static_cast<long double>(v) * v;
  return static_cast<double>(std::sqrt(sum));
}

/// I + dt K is symmetric with column sums 1, an inverse without negative elements and eigenvalues >= 1. With
/// r = b - A u exactly, therefore: the sum of u is that of b but for sum |r|; u stays between the least and the largest
/// of b but for max |r|; the norm of u is at most that of b plus |r|. (Column sums are 1 but for roundings of the
/// matrix, relative eps per value, which the last term of each residual covers.)
bool check(const std::vector<double>& b, const std::vector<double>& u, const Residual& r) {
  const auto [low, high] = std::minmax_element(b.begin(), b.end());
  const auto [least, most] = std::minmax_element(u.begin(), u.end());
  const bool conserved = std::fabs(sum_of(u) - sum_of(b)) <= r.sum;
  const bool bounded = *least >= *low - r.largest && *most <= *high + r.largest;
  const bool decays = norm_of(u) <= norm_of(b) + r.euclidean;
  const bool solved = r.euclidean <= 1e-10 * norm_of(b);
  if (!conserved) std::printf("heat is not conserved: %.17g became %.17g\n", sum_of(b), sum_of(u));
  if (!bounded) std::printf("[%g, %g] became [%g, %g]\n", *low, *high, *least, *most);
  if (!decays) std::printf("the norm grew from %.17g to %.17g\n", norm_of(b), norm_of(u));
  if (!solved) std::printf("a residual of %g\n", r.euclidean);
  return conserved && bounded && decays && solved;
}

/// Without a wall cos(pi (j + 1/2) / n) is an eigenvector of K for 2 - 2 cos(pi / n), so that a step divides it by one
/// plus dt times that; the error is at most the residual, as no eigenvalue of I + dt K is below 1.
bool check_eigenvector(int n, double dt) {
  const double pi = std::acos(-1.0);
  Plate plate(n, dt, false);
  const Vector b("b", n * n), u("u", n * n);
  const auto host = Kokkos::create_mirror_view(b);
  for (int cell = 0; cell < n * n; ++cell) host(cell) = std::cos(pi * (cell % n + 0.5) / n);
  Kokkos::deep_copy(b, host);
  if (plate.solve(b, u) < 0) return false;
  const auto before = to_host(b), after = to_host(u);
  const Residual r = residual(plate, before, after);
  const double factor = 1 + dt * (2 - 2 * std::cos(pi / n));
  double error = 0;
  for (std::size_t i = 0; i < after.size(); ++i) error += std::pow(after[i] - before[i] / factor, 2);
  error = std::sqrt(error);
  std::printf("one step of an eigenvector: error %.2e, at most %.2e is allowed\n", error, r.euclidean);
  return error <= r.euclidean && r.euclidean <= 1e-10 * norm_of(before);
}

/// Fields side by side, the square root of each number in sixteen colours; runs of one colour are one rectangle.
void draw(const std::string& file, int n, const std::vector<std::vector<double>>& fields,
          const std::vector<std::string>& titles) {
  std::ofstream out(file);
  const int size = 256 / n, side = n * size;
  out << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << (side + 16) * fields.size() + 16 << "\" height=\""
      << side + 40 << "\" font-family=\"sans-serif\" font-size=\"13\" shape-rendering=\"crispEdges\">\n"
      << "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
  for (std::size_t f = 0; f < fields.size(); ++f) {
    out << "<g transform=\"translate(" << 16 + f * (side + 16) << ",28)\">\n<text y=\"-8\">" << titles[f]
        << "</text>\n";
    const auto level = [&](int i, int j) {
      const double value = fields[f][static_cast<std::size_t>(i * n + j)];
      return std::min(15, std::max(0, static_cast<int>(16 * std::sqrt(std::max(value, 0.0)))));
    };
    for (int i = 0; i < n; ++i) {
      for (int j = 0, end; j < n; j = end) {
        for (end = j + 1; end < n && level(i, end) == level(i, j);) ++end;
        const int l = level(i, j);
        char colour[8];
        std::snprintf(colour, sizeof(colour), "#%02x%02x%02x", std::min(255, 24 * l + 20), 17 * std::max(0, l - 6) + 30,
                      140 - 8 * l);
        out << "<rect x=\"" << j * size << "\" y=\"" << i * size << "\" width=\"" << (end - j) * size << "\" height=\""
            << size << "\" fill=\"" << colour << "\"/>\n";
      }
    }
    out << "</g>\n";
  }
  out << "</svg>\n";
}

int run(const std::string& picture) {
  const int n = 64;
  Plate plate(n, 1.0, true);  // time in units of the square of a cell's side over the conductivity
  Vector u("u", n * n), next("next", n * n);
  const auto start = Kokkos::create_mirror_view(u);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j)
      start(i * n + j) = 4 * j >= n && 16 * j < 7 * n && 4 * i >= n ? 1 : 0;  // hot in front of the wall
  }
  Kokkos::deep_copy(u, start);

  std::vector<std::vector<double>> fields{to_host(u)};
  std::vector<std::string> titles{"t = 0"};
  double time = 0;
  int iterations = 0;
  bool right = true;
  for (int step = 1; step <= 56; ++step) {
    if (step > 1 && step % 8 == 1) plate.set_dt(2 * plate.dt());
    const int took = plate.solve(u, next);
    if (took < 0) return std::printf("conjugate gradients did not converge\n"), 1;
    iterations += took;
    time += plate.dt();
    const auto before = to_host(u), after = to_host(next);
    right = check(before, after, residual(plate, before, after)) && right;
    std::swap(u, next);
    if (step == 24 || step == 56) {
      fields.push_back(after);
      titles.push_back("t = " + std::to_string(static_cast<int>(time)));
    }
  }
  std::printf("56 steps to t = %g, %d iterations, products with %s on %s\n", time, iterations,
              Tessera::to_string(plate.plan().options().algorithm), Tessera::to_string(plate.plan().options().backend));
  right = check_eigenvector(n, 16) && right;
  if (!picture.empty()) draw(picture, n, fields, titles);
  std::printf("%s\n", right ? "right" : "WRONG");
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char* argv[]) {
  Kokkos::initialize(argc, argv);
  int status = 1;
  try {
    status = run(argc > 1 ? argv[1] : "");
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
  }
  Kokkos::finalize();
  return status;
}
