// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_TEST_SDDMM_OPERANDS_HPP
#define TESSERA_TEST_SDDMM_OPERANDS_HPP

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/Tessera_TestSddmm.hpp"

/// \file
/// Operands of SDDMM that lie in memory in unusual ways, or hold unusual numbers, in any execution space.

namespace Tessera {
namespace Testing {

/// Element (h, i, k) of a batch of matrices lies at first + h head + i row + k column.
struct Steps {
  std::int64_t first, head, row, column;
};

/// A batch of matrices with any steps; all other elements of its memory are guards. Elements are given and read back
/// head by head and row by row.
template <class Exec, class T>
class Scattered {
 public:
  template <class Data>
  using View = Kokkos::View<Data, Kokkos::LayoutStride, DeviceOf<Exec>, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

  Scattered(const std::vector<T>& data, std::int64_t heads, std::int64_t rows, std::int64_t columns, Steps steps,
            double guard)
      : heads_(heads), rows_(rows), columns_(columns), steps_(steps), guard_(as<T>(guard)) {
    constexpr std::int64_t behind = 9;  // so that something lies behind the last element
    const std::int64_t last =
        steps.first + (heads - 1) * steps.head + (rows - 1) * steps.row + (columns - 1) * steps.column;
    std::vector<T> host(static_cast<std::size_t>(last + behind), guard_);
    for (const auto& [place, element] : places()) host[place] = data[element];
    memory_ = to_device<Exec>(host);
  }
  /// Of the first head.
  View<T**> matrix() const { return make<T**>(rows_, steps_.row, columns_, steps_.column); }
  View<T**> turned() const { return make<T**>(columns_, steps_.column, rows_, steps_.row); }
  View<T***> batch() const { return make<T***>(heads_, steps_.head, rows_, steps_.row, columns_, steps_.column); }
  View<T***> turned_batch() const {
    return make<T***>(heads_, steps_.head, columns_, steps_.column, rows_, steps_.row);
  }
  /// A vector, or one per head: the first row of each matrix.
  View<T*> vector() const { return make<T*>(columns_, steps_.column); }
  View<T**> vectors() const { return make<T**>(heads_, steps_.head, columns_, steps_.column); }

  std::vector<T> read() const {
    const auto host = to_host(memory_);
    std::vector<T> data(static_cast<std::size_t>(heads_ * rows_ * columns_));
    for (const auto& [place, element] : places()) data[element] = host[place];
    return data;
  }
  bool intact() const {
    auto host = to_host(memory_);
    for (const auto& at : places()) host[at.first] = guard_;
    return same_bits(host, std::vector<T>(host.size(), guard_));
  }

 private:
  /// Extents and steps by turns.
  template <class Data, class... Sizes>
  View<Data> make(Sizes... sizes) const {
    return View<Data>(memory_.data() + steps_.first, Kokkos::LayoutStride(static_cast<std::size_t>(sizes)...));
  }
  /// Of each element: where it lies, and which it is.
  std::vector<std::pair<std::size_t, std::size_t>> places() const {
    std::vector<std::pair<std::size_t, std::size_t>> all;
    for (std::int64_t i = 0; i < heads_; ++i) {
      for (std::int64_t j = 0; j < rows_; ++j) {
        for (std::int64_t c = 0; c < columns_; ++c) {
          const std::int64_t place = steps_.first + i * steps_.head + j * steps_.row + c * steps_.column;
          all.emplace_back(static_cast<std::size_t>(place), all.size());
        }
      }
    }
    return all;
  }

  std::int64_t heads_, rows_, columns_;
  Steps steps_;
  T guard_;
  DeviceVector<Exec, T> memory_;
};

/// K up to the next whole word of sixteen bytes.
template <class T>
constexpr std::int64_t whole_words(std::int64_t inner) {
  constexpr std::int64_t width = 16 / static_cast<std::int64_t>(sizeof(T));
  return (inner + width - 1) / width * width;
}
/// Ways for one matrix of `rows` rows to lie.
template <class T>
std::vector<Steps> matrix_steps(std::int64_t rows, std::int64_t inner) {
  constexpr std::int64_t width = 16 / static_cast<std::int64_t>(sizeof(T));
  const std::int64_t apart = whole_words<T>(inner) + width;
  return {
      {0, 0, apart, 1},          // rows of whole words, others between them: multiplied in place if K has whole words
      {1, 0, apart, 1},          // the first row not at a multiple of sixteen bytes
      {0, 0, inner + 1, 1},      // rows that are no whole words apart
      {3, 0, 2 * inner + 1, 2},  // every second column of a larger matrix
      {0, 0, 1, rows},           // by columns
      {5, 0, 3, 3 * rows + 2}    // every third row of a larger matrix by columns
  };
}
/// Ways for `heads` matrices to lie.
template <class T>
std::vector<Steps> batch_steps(std::int64_t heads, std::int64_t rows, std::int64_t inner) {
  const std::int64_t row = whole_words<T>(inner);
  return {{0, rows * row, row, 1},          // one after the other
          {0, row, heads * row, 1},         // side by side in each row, as attention has its heads
          {1, rows * row + 1, row, 1},      // heads that are no whole words apart
          {0, 1, heads * inner, heads},     // head by head in each element
          {2, rows * inner + 7, 1, rows}};  // each by columns
}

/// X and Y in every pair of neighbouring ways, Y as n x K and as K x n; P contiguous and every second number.
template <class Suite, class Exec = typename Suite::Plan::execution_space>
void every_layout(const Suite& suite, const Pattern& p, const std::vector<int>& widths) {
  using T = typename Suite::Element;
  using PT = typename Suite::Result;
  const auto A = suite.matrix(p, Data::Integers);
  const typename Suite::Device device(A);
  const typename Suite::Plan plan(Exec(), device.view(), suite.options);
  const Scaling s{2.5, -1};
  for (const int inner : widths) {
    const auto o = suite.operands(A, inner, Data::Integers);
    const auto ways_x = matrix_steps<T>(A.rows, inner), ways_y = matrix_steps<T>(A.cols, inner);
    for (std::size_t i = 0; i < 2 * ways_x.size(); ++i) {
      const std::size_t own = i % ways_x.size(), other = (i + i / ways_x.size()) % ways_y.size();
      const bool turned = i % 3 == 1, apart = i % 2 == 1;
      SCOPED_TRACE("K = " + std::to_string(inner) + ", X in way " + std::to_string(own) + ", Y in way " +
                   std::to_string(other) + (turned ? " turned" : "") + (apart ? ", P apart" : ""));
      const Scattered<Exec, T> x(o.x, 1, A.rows, inner, ways_x[own], std::nan(""));
      const Scattered<Exec, T> y(o.y, 1, A.cols, inner, ways_y[other], std::nan(""));
      const Scattered<Exec, PT> to(o.p, 1, 1, A.nnz(), {apart ? 3 : 0, 0, 0, apart ? 2 : 1}, 77);
      const auto second = turned ? y.turned() : y.matrix();
      plan.apply(Exec(), turned ? Op::Trans : Op::NoTrans, s.alpha, x.matrix(), second, s.beta, to.vector());
      Exec().fence();
      EXPECT_TRUE(to.intact()) << "something beside P was written";
      suite.check(A, inner, s, o, to.read(), true);
    }
  }
}

/// A batch of heads in every way, each head as by itself.
template <class Suite, class Exec = typename Suite::Plan::execution_space>
void every_batch_layout(const Suite& suite, const Pattern& p, int inner, std::int64_t heads) {
  using T = typename Suite::Element;
  using PT = typename Suite::Result;
  const auto A = suite.matrix(p, Data::Integers);
  const typename Suite::Device device(A);
  const typename Suite::Plan plan(Exec(), device.view(), suite.options);
  const std::int64_t of_x = std::int64_t{A.rows} * inner, of_y = std::int64_t{A.cols} * inner, nnz = A.nnz();
  const auto x = numbers<T>(heads * of_x, Data::Integers, 31), y = numbers<T>(heads * of_y, Data::Integers, 32);
  const auto p0 = numbers<PT>(heads * nnz, Data::Integers, 33);
  const auto ways_x = batch_steps<T>(heads, A.rows, inner), ways_y = batch_steps<T>(heads, A.cols, inner);
  const std::vector<Steps> ways_p = {{0, nnz, 0, 1}, {2, nnz + 5, 0, 1}, {0, 1, 0, heads}};
  for (std::size_t i = 0; i < ways_x.size(); ++i) {
    const bool turned = i % 2 == 1;
    SCOPED_TRACE("way " + std::to_string(i));
    const Scattered<Exec, T> dx(x, heads, A.rows, inner, ways_x[i], std::nan(""));
    const Scattered<Exec, T> dy(y, heads, A.cols, inner, ways_y[(i + 4) % ways_y.size()], std::nan(""));
    const Scattered<Exec, PT> dp(p0, heads, 1, nnz, ways_p[i % ways_p.size()], 77);
    const auto second = turned ? dy.turned_batch() : dy.batch();
    plan.apply(Exec(), turned ? Op::Trans : Op::NoTrans, 2.5, dx.batch(), second, -1, dp.vectors());
    Exec().fence();
    EXPECT_TRUE(dp.intact()) << "something beside P was written";
    const auto got = dp.read();
    const auto head = [](const auto& all, std::int64_t h, std::int64_t n) {
      return std::decay_t<decltype(all)>(all.begin() + h * n, all.begin() + (h + 1) * n);
    };
    for (std::int64_t h = 0; h < heads; ++h) {
      SCOPED_TRACE("head " + std::to_string(h));
      suite.check(A, inner, {2.5, -1}, {head(x, h, of_x), head(y, h, of_y), head(p0, h, nnz)}, head(got, h, nnz), true);
    }
  }
}

/// One infinite or undefined number in a row of X and one in a row of Y: the entries that use these rows have no finite
/// result, all others keep their bits.
template <class Suite, class Exec = typename Suite::Plan::execution_space>
void bad_numbers(const Suite& suite, const Pattern& p, int inner) {
  const auto A = suite.matrix(p, Data::Real);
  const typename Suite::Device device(A);
  const typename Suite::Plan plan(Exec(), device.view(), suite.options);
  const auto o = suite.operands(A, inner, Data::Real);
  const auto good = suite.template product<InPlace>(plan, A, inner, {}, o);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const int row = A.rows / 2, column = A.entries[A.entries.size() / 4];
  for (const double bad : {std::nan(""), infinity, -infinity}) {
    for (const int at : {0, inner / 2, inner - 1}) {
      SCOPED_TRACE(std::to_string(bad) + " at " + std::to_string(at));
      auto with = o;
      with.x[static_cast<std::size_t>(row * inner + at)] = as<typename Suite::Element>(bad);
      with.y[static_cast<std::size_t>(column * inner + inner - 1 - at)] = as<typename Suite::Element>(bad);
      const auto got = suite.template product<InPlace>(plan, A, inner, {}, with);
      std::size_t reached = 0, e = 0;
      for (int i = 0; i < A.rows; ++i) {
        for (const std::size_t end = e + static_cast<std::size_t>(A.length(i)); e < end; ++e) {
          const bool uses = i == row || A.entries[e] == column;
          reached += uses ? 1 : 0;
          if (uses) {
            EXPECT_FALSE(std::isfinite(wide(got[e]))) << "entry " << e << " in row " << i;
          } else {
            EXPECT_EQ(std::memcmp(&got[e], &good[e], sizeof(got[e])), 0) << "entry " << e << " in row " << i;
          }
        }
      }
      EXPECT_TRUE(reached > 0 && reached < got.size()) << "the test's own pattern";
      // NaN or which infinity it is follows from IEEE arithmetic, in whatever order.
      if (Compat::is_host_v<Exec>) {
        suite.check(A, inner, {}, with, got, false);
      }
    }
  }
}

/// Numbers of S that nobody asked for are not read; where they are asked for, a bad one stays with its entry.
template <class Suite, class Exec = typename Suite::Plan::execution_space>
void bad_scale(Suite suite, const Pattern& p, int inner) {
  auto A = suite.matrix(p, Data::Integers);
  const auto o = suite.operands(A, inner, Data::Integers);
  for (const bool scaled : {true, false}) {
    suite.options.scale_by_values = scaled;
    for (std::size_t e = 0; e < A.values.size(); e += scaled ? 7 : 1) {
      A.values[e] = as<typename Suite::Element>(bad_number(e));
    }
    const typename Suite::Device device(A);
    const typename Suite::Plan plan(Exec(), device.view(), suite.options);
    suite.check(A, inner, {}, o, suite.template product<InPlace>(plan, A, inner, {}, o), true);
    suite.check(A, inner, {2.5, -1}, o, suite.template product<AcrossRows>(plan, A, inner, {2.5, -1}, o), true);
  }
}

/// P of whole numbers, scaled by S, whose row map has offsets of this type: as plain loops make it.
template <class Exec, class T, class Offset>
void offsets_of_type(SddmmOptions options, const Pattern& p, int inner) {
  SCOPED_TRACE("K = " + std::to_string(inner) + ", " + std::to_string(sizeof(Offset)) + " bytes per offset");
  const auto A = make_matrix<T, Offset>(p, Data::Integers, 1);
  const DeviceMatrix<Exec, T, Offset> device(A);
  options.scale_by_values = true;
  const SddmmPlan<typename DeviceMatrix<Exec, T, Offset>::Csr> plan(Exec(), device.view(), options);
  const auto x = numbers<T>(std::int64_t{A.rows} * inner, Data::Integers, 2),
             y = numbers<T>(std::int64_t{A.cols} * inner, Data::Integers, 3),
             before = numbers<T>(A.nnz(), Data::Integers, 4);
  const Guarded<Exec, T, Kokkos::LayoutRight> dx(x, A.rows, inner, {}, std::nan("")),
      dy(y, A.cols, inner, {}, std::nan(""));
  const auto to = to_device<Exec>(before);
  plan.apply(Exec(), Op::NoTrans, 2.5, dx.view(), dy.view(), -1, to);
  Exec().fence();
  std::vector<double> wanted = wide(before);
  const auto element = [inner](const std::vector<T>& v) {
    return [&v, inner](std::int64_t i, std::int64_t k) { return wide(v[static_cast<std::size_t>(i * inner + k)]); };
  };
  const std::vector<double> scale = wide(A.values);
  Reference::sddmm(A.rows, inner, A.row_map.data(), A.entries.data(), scale.data(), 2.5, element(x), element(y), -1,
                   [&](auto e) -> double& { return wanted[static_cast<std::size_t>(e)]; });
  EXPECT_EQ(wide(to_host(to)), wanted);
}

/// A 16-bit sum would stop at 2048 (half_t) or 256 (bhalf_t).
template <class Suite, class Exec = typename Suite::Plan::execution_space>
void ones(const Suite& suite) {
  const auto A = suite.matrix(generate("dense:rows=3:cols=5"), Data::Integers);
  const typename Suite::Device device(A);
  const typename Suite::Plan plan(Exec(), device.view(), suite.options);
  auto o = suite.operands(A, 4096, Data::Integers);
  std::fill(o.x.begin(), o.x.end(), as<typename Suite::Element>(1));
  std::fill(o.y.begin(), o.y.end(), as<typename Suite::Element>(1));
  for (const auto& sum : suite.template product<InPlace>(plan, A, 4096, {}, o)) EXPECT_EQ(wide(sum), 4096);
}

}  // namespace Testing
}  // namespace Tessera

#endif
