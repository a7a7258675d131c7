// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_TEST_SDDMM_HPP
#define TESSERA_TEST_SDDMM_HPP

#include <algorithm>
#include <string>
#include <type_traits>

#include "Tessera_Sddmm.hpp"
#include "backends/reference/Tessera_Reference.hpp"
#include "support/Tessera_TestCases.hpp"
#include "support/Tessera_TestCheck.hpp"
#include "support/Tessera_TestTools.hpp"

/// \file
/// What every SDDMM kernel must pass, whoever executes it and whatever the layouts of X, Y and P.

namespace Tessera {
namespace Testing {

constexpr Backend nvidia = Backend::EmulatedNvidia, amd = Backend::EmulatedAmd;

inline std::string name_of(const SddmmOptions& o) {
  return std::string(to_string(o.algorithm)) + " on " + to_string(o.backend);
}
inline std::vector<int> all_inner() { return {0, 1, 3, 8, 15, 16, 17, 31, 33, 64, 100, 128, 257}; }
/// K around every number of words of sixteen bytes up to 40, and around those of the longest kernels: whole words, half
/// a word less, a quarter and one number.
template <class T>
std::vector<int> inner_around_words() {
  constexpr int width = 16 / static_cast<int>(sizeof(T));
  std::vector<int> words(40), inner;
  for (int w = 1; w <= 40; ++w) words[static_cast<std::size_t>(w - 1)] = w;
  words.insert(words.end(), {47, 48, 49, 63, 64, 65, 95, 96, 97, 127, 128, 129, 256, 259});
  for (const int w : words) {
    for (int less = width / 2; less > 0; less /= 2) inner.push_back(w * width - less);
    inner.push_back(w * width);
  }
  return inner;
}

/// Where operands lie: contiguous; X by columns with guards around, Y as second factor of a product, every third number
/// of P; by rows with guards around, a P that is seldom aligned; by rows with guards of four elements around.
template <class LayoutOfX, class LayoutOfY, class LayoutOfP, int Margin, int Behind, Op OpY = Op::NoTrans>
struct OperandsLie {
  using X = LayoutOfX;
  using Y = LayoutOfY;
  using P = LayoutOfP;
  static constexpr int margin = Margin, behind = Behind;
  static constexpr Op op_y = OpY;
};
using InPlace = OperandsLie<Kokkos::LayoutRight, Kokkos::LayoutRight, Kokkos::LayoutLeft, 0, 1>;
using AcrossRows = OperandsLie<Kokkos::LayoutLeft, Kokkos::LayoutRight, Kokkos::LayoutRight, 1, 2, Op::Trans>;
using Unaligned = OperandsLie<Kokkos::LayoutRight, Kokkos::LayoutLeft, Kokkos::LayoutLeft, 3, 4>;
using InFours = OperandsLie<Kokkos::LayoutRight, Kokkos::LayoutRight, Kokkos::LayoutLeft, 4, 4>;

/// One algorithm on one backend in one combination of element types.
template <class Exec, class T, class PT = T>
class SddmmSuite {
 public:
  using Element = T;
  using Result = PT;
  using Matrix = HostMatrix<T>;
  using Device = DeviceMatrix<Exec, T>;
  using Csr = typename Device::Csr;
  using Plan = SddmmPlan<Csr>;
  using Sum = SumOf<T, T, PT>;

  SddmmOptions options;

  SddmmSuite(Backend backend, SddmmAlgorithm algorithm, ComputeType compute = ComputeType::Auto) {
    options.backend = backend;
    options.algorithm = algorithm;
    options.compute = compute;
    options.fallback = false;
  }

  /// X, Y, P before and S of a product.
  struct Operands {
    std::vector<T> x, y;
    std::vector<PT> p;
  };
  Operands operands(const Matrix& A, int inner, Data data) const {
    return {operand(numbers<T>(std::int64_t{A.rows} * inner, data, 21)),
            operand(numbers<T>(std::int64_t{A.cols} * inner, data, 22)), numbers<PT>(A.nnz(), data, 23)};
  }
  Matrix matrix(const Pattern& p, Data data) const { return make_matrix<T>(p, data, 11); }

  template <class Form>
  std::vector<PT> product(const Plan& plan, const Matrix& A, int inner, Scaling s, const Operands& o) const {
    constexpr int margin = Form::margin;
    constexpr bool turned = Form::op_y == Op::Trans;
    const typename Guarded<Exec, T, typename Form::X>::Margins margins{margin, margin, margin, Form::behind};
    const Guarded<Exec, T, typename Form::X> x(o.x, A.rows, inner, margins, std::nan(""));
    std::vector<T> y_data = o.y;
    if (turned) {
      for (int j = 0; j < A.cols; ++j) {
        for (int k = 0; k < inner; ++k) y_data[at(k, A.cols, j)] = o.y[at(j, inner, k)];
      }
    }
    const Guarded<Exec, T, typename Form::Y> y(y_data, turned ? inner : A.cols, turned ? A.cols : inner,
                                               {margin, margin, margin, margin}, std::nan(""));
    const GuardedVector<Exec, PT, typename Form::P> p(o.p, 77);
    const Exec space;
    plan.apply(space, Form::op_y, s.alpha, x.view(), y.view(), s.beta, p.column());
    space.fence();
    EXPECT_TRUE(p.intact()) << "something beside P was written";
    return p.read();
  }

  /// Every number within the bound of its sum, or equal to the reference.
  void check(const Matrix& A, int inner, Scaling s, const Operands& o, const std::vector<PT>& got, bool exact) const {
    std::vector<double> wanted = wide(o.p), size(o.p.size());
    const std::vector<double> scale = wide(A.values), x = wide(o.x), y = wide(o.y);
    const std::vector<std::size_t> row_map(A.row_map.begin(), A.row_map.end());
    reference_sddmm(A.rows, inner, row_map.data(), A.entries.data(), options.scale_by_values ? scale.data() : nullptr,
                    s.alpha, x.data(), y.data(), s.beta, wanted.data(), size.data(), floor());
    const double terms = inner + (options.scale_by_values ? 1 : 0),
                 store = sizeof(PT) < sizeof(Sum) ? TypeFacts<PT>::roundoff() : 0;
    for (std::size_t e = 0; e < wanted.size(); ++e) {
      const double found = wide(got[e]);
      if (exact || std::isnan(wanted[e]) || std::isinf(wanted[e])) {
        const double rounded = wide(as<PT>(wanted[e]));
        ASSERT_TRUE(found == rounded || (std::isnan(found) && std::isnan(rounded)))
            << "entry " << e << ": " << found << " instead of " << rounded;
      } else {
        const double bound = Reference::spmv_bound(terms, unit(), size[e], store, wanted[e], TypeFacts<PT>::tiny());
        ASSERT_LE(std::fabs(found - wanted[e]), bound) << "entry " << e << ": " << found << " instead of " << wanted[e];
      }
    }
  }
  template <class Form = InPlace>
  void expect(const Plan& plan, const Matrix& A, int inner, Data data, Scaling s = {}) const {
    SCOPED_TRACE("K = " + std::to_string(inner));
    const Operands o = operands(A, inner, data);
    check(A, inner, s, o, product<Form>(plan, A, inner, s, o), data == Data::Integers);
  }

  void every_shape(const std::vector<int>& inner) const {
    int turn = 0;  // of shorter lists a shape meets one layout of two, the next one the other
    for (const std::string& spec : shapes<shorter_lists>()) {
      SCOPED_TRACE(spec);
      const bool first = !shorter_lists || turn % 2 == 0, second = !shorter_lists || turn % 2 == 1;
      ++turn;
      const Matrix A = matrix(generate(spec), Data::Integers);
      const Device device(A);
      const Plan plan(Exec(), device.view(), options);
      for (const int k : inner) {
        if (first) expect(plan, A, k, Data::Integers);
        if (second) expect<AcrossRows>(plan, A, k, Data::Integers, {2.5, -1});
      }
    }
  }
  void every_inner(const Pattern& p, const std::vector<int>& inner) const {
    for (const Data data : {Data::Integers, Data::Real}) {
      const Matrix A = matrix(p, data);
      const Device device(A);
      const Plan plan(Exec(), device.view(), options);
      const bool real = data == Data::Real;  // of shorter lists both meet one layout of three, every second k two
      int turn = real;
      for (const int k : inner) {
        if (!shorter_lists || real) expect(plan, A, k, data);
        if (!shorter_lists || turn++ % 2 == 0) expect<AcrossRows>(plan, A, k, data, {-0.5, 1});
        if (!shorter_lists || !real) expect<Unaligned>(plan, A, k, data, {2.5, -1});
      }
    }
  }
  void every_scaling(const Pattern& p, int inner) {
    for (const bool scaled : {false, true}) {
      options.scale_by_values = scaled;
      for (const Data data : {Data::Integers, Data::Real}) {
        const Matrix A = matrix(p, data);
        const Device device(A);
        const Plan plan(Exec(), device.view(), options);
        for (const double alpha : {0.0, 1.0, -0.5}) {
          for (const double beta : {0.0, 1.0, -0.5}) {
            const bool real = data == Data::Real;  // of shorter lists each meets one layout of two
            if (!shorter_lists || real != scaled) expect(plan, A, inner, data, {alpha, beta});
            if (!shorter_lists || real == scaled) expect<AcrossRows>(plan, A, inner, data, {alpha, beta});
          }
        }
      }
    }
  }
  /// beta = 0 does not read P, alpha = 0 reads neither X nor Y.
  void undefined_operands(const Pattern& p, int inner) const {
    const Matrix A = matrix(p, Data::Integers);
    const Device device(A);
    const Plan plan(Exec(), device.view(), options);
    const auto undefined = [](auto& v) {
      std::fill(v.begin(), v.end(), as<std::decay_t<decltype(v[0])>>(std::nan("")));
    };
    Operands no_p = operands(A, inner, Data::Integers), no_xy = no_p;
    undefined(no_p.p);
    undefined(no_xy.x);
    undefined(no_xy.y);
    check(A, inner, {-1, 0}, no_p, product<InPlace>(plan, A, inner, {-1, 0}, no_p), true);
    check(A, inner, {-1, 0}, no_p, product<AcrossRows>(plan, A, inner, {-1, 0}, no_p), true);
    check(A, inner, {0, 2.5}, no_xy, product<InPlace>(plan, A, inner, {0, 2.5}, no_xy), true);
    check(A, inner, {0, 2.5}, no_xy, product<Unaligned>(plan, A, inner, {0, 2.5}, no_xy), true);
  }
  /// Infinite and undefined numbers in some rows of X and Y reach the entries that use these rows, and no others.
  void bad_rows(const Pattern& p, int inner) const {
    const Matrix A = matrix(p, Data::Integers);
    const Device device(A);
    const Plan plan(Exec(), device.view(), options);
    Operands o = operands(A, inner, Data::Integers);
    const auto bad = as<T>(std::nan(""));
    for (int i = 2; i < A.rows; i += 5) o.x[at(i, inner, i % inner)] = bad;
    for (int j = 1; j < A.cols; j += 4) o.y[at(j, inner, j % inner)] = bad;
    check(A, inner, {}, o, product<InPlace>(plan, A, inner, {}, o), true);
    check(A, inner, {}, o, product<Unaligned>(plan, A, inner, {}, o), true);
  }
  /// X and Y may be one matrix.
  void one_factor(const Pattern& square, int inner) const {
    const Matrix A = matrix(square, Data::Integers);
    const Device device(A);
    const Plan plan(Exec(), device.view(), options);
    Operands o = operands(A, inner, Data::Integers);
    o.y = o.x;
    using Dense = Kokkos::View<T**, Kokkos::LayoutRight, DeviceOf<Exec>>;
    const Dense x("x", static_cast<std::size_t>(A.rows), static_cast<std::size_t>(inner));
    upload<typename Exec::memory_space>(x.data(), o.x.data(), o.x.size() * sizeof(T));
    const auto p = to_device<Exec>(o.p);
    plan.apply(Exec(), x, x, p);
    Exec().fence();
    check(A, inner, {}, o, to_host(p), true);
  }
  /// Heads side by side, each as by itself.
  void heads(const Pattern& p, int inner, int count) const {
    const Matrix A = matrix(p, Data::Integers);
    const Device device(A);
    const Plan plan(Exec(), device.view(), options);
    const auto h = static_cast<std::size_t>(count), k = static_cast<std::size_t>(inner);
    const auto rows = static_cast<std::size_t>(A.rows), cols = static_cast<std::size_t>(A.cols);
    const auto nnz = static_cast<std::size_t>(A.nnz());
    const auto x = numbers<T>(count * std::int64_t{A.rows} * inner, Data::Integers, 31);
    const auto y = numbers<T>(count * std::int64_t{A.cols} * inner, Data::Integers, 32);
    const auto p0 = numbers<PT>(count * A.nnz(), Data::Integers, 33);
    using Batch = Kokkos::View<T***, Kokkos::LayoutRight, DeviceOf<Exec>>;
    const Batch dx("x", h, rows, k), dy("y", h, cols, k);
    const Kokkos::View<PT**, Kokkos::LayoutRight, DeviceOf<Exec>> dp("p", h, nnz);
    upload<typename Exec::memory_space>(dx.data(), x.data(), x.size() * sizeof(T));
    upload<typename Exec::memory_space>(dy.data(), y.data(), y.size() * sizeof(T));
    upload<typename Exec::memory_space>(dp.data(), p0.data(), p0.size() * sizeof(PT));
    plan.apply(Exec(), Op::NoTrans, 2.5, dx, dy, -1, dp);
    Exec().fence();
    std::vector<PT> got(p0.size());
    download<typename Exec::memory_space>(got.data(), dp.data(), got.size() * sizeof(PT));
    for (std::size_t i = 0; i < h; ++i) {
      const auto part = [i](const auto& v, std::size_t n) {
        return std::decay_t<decltype(v)>(v.begin() + static_cast<std::ptrdiff_t>(i * n),
                                         v.begin() + static_cast<std::ptrdiff_t>((i + 1) * n));
      };
      check(A, inner, {2.5, -1}, {part(x, rows * k), part(y, cols * k), part(p0, nnz)}, part(got, nnz), true);
    }
  }
  void new_values(const Pattern& p, int inner) {
    options.scale_by_values = true;
    const Matrix A = matrix(p, Data::Integers), other = make_matrix<T>(p, Data::Integers, 6);
    const Device a(A), o(other);
    Plan plan(Exec(), a.view(), options);
    expect(plan, A, inner, Data::Integers);
    plan.update_values(Exec(), o.view().values());
    expect(plan, other, inner, Data::Integers);
    plan.update_values(Exec(), a.view());
    expect(plan, A, inner, Data::Integers, {2.5, -1});
    EXPECT_TRUE(plan.matches(a.view()));
    EXPECT_FALSE(plan.matches(o.view()));
  }
  /// The same bits twice, from a second plan, and after scratch was used for something else.
  void deterministic(const Pattern& p, int inner) const {
    const Matrix A = matrix(p, Data::Real);
    const Device device(A);
    const Plan plan(Exec(), device.view(), options), again(Exec(), device.view(), options);
    const Operands o = operands(A, inner, Data::Real);
    const auto first = product<AcrossRows>(plan, A, inner, {2.5, -1}, o);
    expect(plan, A, 2 * inner + 1, Data::Real);
    EXPECT_TRUE(same_bits(first, product<AcrossRows>(plan, A, inner, {2.5, -1}, o)));
    EXPECT_TRUE(same_bits(first, product<AcrossRows>(again, A, inner, {2.5, -1}, o)));
  }
  /// After a first apply of the same shapes and layouts, neither apply nor update_values allocates; on devices apply
  /// does not wait either.
  void no_allocation(const Pattern& p, int inner) const {
    const Matrix A = matrix(p, Data::Integers);
    const Device device(A);
    const Exec space;
    Plan plan(space, device.view(), options);
    const auto k = static_cast<std::size_t>(inner);
    const Kokkos::View<T**, Kokkos::LayoutLeft, DeviceOf<Exec>> x("x", static_cast<std::size_t>(A.rows), k),
        y("y", static_cast<std::size_t>(A.cols), k);
    const DeviceVector<Exec, PT> to("p", static_cast<std::size_t>(A.nnz()));
    const auto apply_all = [&] {
      plan.apply(space, x, y, to);
      plan.apply(space, Op::NoTrans, 2, x, y, 3, to);
    };
    apply_all();
    space.fence();
    const KokkosCounters counters;
    apply_all();
    if (!Compat::is_host_v<Exec>) {
      EXPECT_EQ(counters.fences(), 0) << "apply waited";
    }
    EXPECT_EQ(counters.allocations(), 0) << "apply: " << counters.last_allocation();
    plan.update_values(space, device.view().values());
    EXPECT_EQ(counters.allocations(), 0) << "update_values: " << counters.last_allocation();
    const DeviceVector<Exec, T> one("one", 1);
    EXPECT_GT(counters.allocations(), 0) << "the counters do not count";
  }
  /// A workspace of workspace_bytes(K), and not one byte beyond.
  void workspace(const Pattern& p, int inner) const {
    const Matrix A = matrix(p, Data::Integers);
    const Device device(A);
    const std::size_t need = Plan(Exec(), device.view(), options).workspace_bytes(inner);
    ASSERT_GT(need, 0u);
    const DeviceVector<Exec, std::uint64_t> memory("workspace", need / 8 + 8);
    Kokkos::deep_copy(memory, ~std::uint64_t{0});
    SddmmOptions given = options;
    given.workspace = {memory.data(), need};
    const Plan plan(Exec(), device.view(), given);
    expect<AcrossRows>(plan, A, inner, Data::Integers, {2.5, -1});
    const auto after = to_host(memory);
    for (std::size_t i = (need + 7) / 8; i < after.size(); ++i) EXPECT_EQ(after[i], ~std::uint64_t{0}) << i;
  }

 private:
  static std::size_t at(std::int64_t row, std::int64_t columns, std::int64_t column) {
    return static_cast<std::size_t>(row * columns + column);
  }
  /// TF32: numbers that it holds, so that products are exact and the bound is that of the sums.
  std::vector<T> operand(std::vector<T> v) const {
    if constexpr (std::is_same_v<T, float>) {
      if (options.compute == ComputeType::TF32) std::transform(v.begin(), v.end(), v.begin(), round_to_tf32);
    }
    return v;
  }
  bool panels() const {
    const bool automatic = options.algorithm == SddmmAlgorithm::Auto && options.backend != Backend::Kokkos;
    return Impl::has_windows(options.algorithm) || automatic;
  }
  bool matrix_unit() const { return panels() && !Compat::is_host_v<Exec>; }
  /// Also for floats that panels multiply in parts (SplitUnit): from least_inner_in_parts on, which is all that they
  /// sum, this is within FP32's bound.
  double unit() const { return unit_of<Sum, Exec>(matrix_unit()); }
  double floor() const { return std::is_same_v<T, half_t> && matrix_unit() ? 0x1p-14 : 0; }
};

}  // namespace Testing
}  // namespace Tessera

#endif
