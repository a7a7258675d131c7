// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_TEST_MATRIX_HPP
#define TESSERA_TEST_MATRIX_HPP

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "Tessera_CsrView.hpp"
#include "Tessera_Types.hpp"
#include "matrices/Tessera_Generators.hpp"
#include "support/Tessera_TestReference.hpp"

/// \file
/// Matrices and vectors for the tests: built on the host from a generator's pattern and seeded numbers, then copied to
/// whatever space is under test. Nothing here uses the library's conversions.

namespace Tessera {
namespace Testing {

using Matrices::generate;
using Matrices::GeneratorInfo;
using Matrices::generators;
using Matrices::Pattern;

template <class Exec>
using DeviceOf = Kokkos::Device<Exec, typename Exec::memory_space>;
template <class Exec, class T>
using DeviceVector = Kokkos::View<T*, Kokkos::LayoutLeft, DeviceOf<Exec>>;

/// Rounds once.
template <class T>
T as(double value) {
  return T(value);
}
template <class T>
double wide(const T& value) {
  if constexpr (std::is_same_v<T, half_t> || std::is_same_v<T, bhalf_t>) {
    return static_cast<double>(static_cast<float>(value));
  } else {
    return static_cast<double>(value);
  }
}

template <class T>
std::vector<T> numbers(std::int64_t n, Data data, std::uint64_t seed) {
  std::vector<double> all(static_cast<std::size_t>(n));
  fill_numbers(all.data(), all.size(), data, seed);
  if constexpr (std::is_same_v<T, double>) {
    return all;
  } else {
    std::vector<T> v(all.size());
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = as<T>(all[i]);
    return v;
  }
}

/// Offsets for which the library holds plans and conversions of this type compiled (Tessera_SpmvInstances.hpp): 64 bits
/// for the widest type, so that every suite meets both widths. Tests of offsets name others.
template <class Scalar>
using OffsetOf = std::conditional_t<std::is_same_v<Scalar, double>, std::size_t, int>;

/// What tests of SpMM, SDDMM and attention take where types do not matter: sanitized builds hold these plans in FP32
/// and FP16 alone (src/CMakeLists.txt).
#ifdef TESSERA_TEST_FEWER_TYPES
using UsualScalar = float;
#else
using UsualScalar = double;
#endif

template <class Scalar, class Offset = OffsetOf<Scalar>>
struct HostMatrix {
  using value_type = Scalar;
  using offset_type = Offset;
  int rows = 0, cols = 0;
  std::vector<Offset> row_map;
  std::vector<int> entries;
  std::vector<Scalar> values;

  std::int64_t nnz() const { return static_cast<std::int64_t>(entries.size()); }
  std::int64_t length(int row) const {
    return static_cast<std::int64_t>(row_map[static_cast<std::size_t>(row) + 1]) -
           static_cast<std::int64_t>(row_map[static_cast<std::size_t>(row)]);
  }
};

template <class Scalar, class Offset = OffsetOf<Scalar>>
HostMatrix<Scalar, Offset> make_matrix(const Pattern& p, Data data, std::uint64_t seed) {
  HostMatrix<Scalar, Offset> A;
  A.rows = static_cast<int>(p.rows);
  A.cols = static_cast<int>(p.cols);
  A.row_map.assign(p.row_map.begin(), p.row_map.end());
  A.entries = p.entries;
  A.values = numbers<Scalar>(A.nnz(), data, seed);
  return A;
}
template <class Scalar, class Offset = OffsetOf<Scalar>>
HostMatrix<Scalar, Offset> make_matrix(const std::string& spec, Data data, std::uint64_t seed) {
  return make_matrix<Scalar, Offset>(generate(spec), data, seed);
}
/// add(row, columns) appends the columns of each row.
template <class Add>
Pattern pattern_of_rows(std::int64_t rows, std::int64_t cols, const Add& add) {
  Pattern p;
  p.rows = rows;
  p.cols = cols;
  p.row_map.push_back(0);
  for (std::int64_t i = 0; i < rows; ++i) {
    add(i, p.entries);
    p.row_map.push_back(static_cast<std::int64_t>(p.entries.size()));
  }
  return p;
}
/// Rows of the given lengths; columns `3 k + row`, wrapped, so that rows differ.
inline Pattern pattern_of_lengths(const std::vector<int>& lengths, int cols) {
  return pattern_of_rows(static_cast<std::int64_t>(lengths.size()), cols, [&](std::int64_t i, std::vector<int>& to) {
    for (int k = 0; k < lengths[static_cast<std::size_t>(i)]; ++k) to.push_back(static_cast<int>((3 * k + i) % cols));
  });
}

/// A^T by plain loops.
template <class Scalar, class Offset>
HostMatrix<Scalar, Offset> transposed(const HostMatrix<Scalar, Offset>& A) {
  HostMatrix<Scalar, Offset> t;
  t.rows = A.cols;
  t.cols = A.rows;
  std::vector<std::vector<std::pair<int, Scalar>>> lists(static_cast<std::size_t>(A.cols));
  for (int i = 0; i < A.rows; ++i) {
    for (auto k = A.row_map[i]; k < A.row_map[i + 1]; ++k) lists[A.entries[k]].emplace_back(i, A.values[k]);
  }
  t.row_map.push_back(0);
  for (const auto& list : lists) {
    for (const auto& entry : list) {
      t.entries.push_back(entry.first);
      t.values.push_back(entry.second);
    }
    t.row_map.push_back(static_cast<Offset>(t.entries.size()));
  }
  return t;
}

/// Bytes to and from arrays of a memory space, after everything that was launched; compiled for the spaces of the
/// default execution spaces.
template <class Memory>
void upload(void* to, const void* from, std::size_t bytes);
template <class Memory>
void download(void* to, const void* from, std::size_t bytes);

/// `to` is a contiguous View of as many elements.
template <class T, class Target>
void copy_to(const std::vector<T>& from, const Target& to) {
  static_assert(std::is_same_v<typename Target::value_type, T>);
  if (to.extent(0) != from.size() || !to.span_is_contiguous()) throw std::logic_error("copy_to: another number");
  upload<typename Target::memory_space>(to.data(), from.data(), from.size() * sizeof(T));
}
template <class Exec, class T>
DeviceVector<Exec, T> to_device(const std::vector<T>& from, const std::string& label = "test") {
  DeviceVector<Exec, T> to(Kokkos::view_alloc(label, Kokkos::WithoutInitializing), from.size());
  copy_to(from, to);
  return to;
}
/// `from` is a contiguous View of rank 1.
template <class View>
auto to_host(const View& from) {
  std::vector<typename View::non_const_value_type> to(from.extent(0));
  if (!from.span_is_contiguous()) throw std::logic_error("to_host: with strides");
  download<typename View::memory_space>(to.data(), from.data(), to.size() * sizeof(to[0]));
  return to;
}

/// The matrix in the memory of an execution space.
template <class Exec, class Scalar, class Offset = OffsetOf<Scalar>>
struct DeviceMatrix {
  using Csr = CsrView<Scalar, int, Offset, DeviceOf<Exec>>;

  DeviceMatrix() = default;
  explicit DeviceMatrix(const HostMatrix<Scalar, Offset>& A)
      : rows(A.rows),
        cols(A.cols),
        row_map(to_device<Exec>(A.row_map)),
        entries(to_device<Exec>(A.entries)),
        values(to_device<Exec>(A.values)) {}
  Csr view() const { return csr_view(rows, cols, row_map, entries, values); }

  int rows = 0, cols = 0;
  DeviceVector<Exec, Offset> row_map;
  DeviceVector<Exec, int> entries;
  DeviceVector<Exec, Scalar> values;
};

/// A dense matrix as the middle of a larger one. What lies around it holds a guard that nobody may write, or read into
/// a result. Elements are given and read back row by row.
template <class Exec, class T, class Layout>
class Guarded {
 public:
  struct Margins {
    int above = 0, below = 0, left = 0, right = 0;
  };

  Guarded(const std::vector<T>& data, std::int64_t rows, std::int64_t columns, Margins margins, double guard)
      : rows_(rows),
        columns_(columns),
        margins_(margins),
        guard_(as<T>(guard)),
        all_(Kokkos::view_alloc(std::string("test::guarded"), Kokkos::WithoutInitializing),
             static_cast<std::size_t>(margins.above + rows + margins.below),
             static_cast<std::size_t>(margins.left + columns + margins.right)) {
    std::vector<T> host(all_.span(), guard_);
    each([&](std::size_t at, bool inside, std::size_t element) {
      if (inside) host[at] = data[element];
    });
    upload<typename Exec::memory_space>(all_.data(), host.data(), host.size() * sizeof(T));
  }
  /// Of the same layout type, whatever the margins.
  auto view() const {
    return Kokkos::subview(all_, std::make_pair<std::int64_t>(margins_.above, margins_.above + rows_),
                           std::make_pair<std::int64_t>(margins_.left, margins_.left + columns_));
  }
  std::vector<T> read() const {
    std::vector<T> data(static_cast<std::size_t>(rows_ * columns_));
    const auto host = memory();
    each([&](std::size_t at, bool inside, std::size_t element) {
      if (inside) data[element] = host[at];
    });
    return data;
  }
  bool intact() const {
    bool good = true;
    const auto host = memory();
    each([&](std::size_t at, bool inside, std::size_t) { good = good && (inside || wide(host[at]) == wide(guard_)); });
    return good;
  }

 protected:
  const auto& whole() const { return all_; }

 private:
  std::vector<T> memory() const {
    std::vector<T> host(all_.span());
    download<typename Exec::memory_space>(host.data(), all_.data(), host.size() * sizeof(T));
    return host;
  }
  /// f(place in memory, whether it is part of the matrix, index of that element)
  template <class F>
  void each(const F& f) const {
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(all_.extent(0)); ++i) {
      for (std::int64_t j = 0; j < static_cast<std::int64_t>(all_.extent(1)); ++j) {
        const std::int64_t row = i - margins_.above, column = j - margins_.left;
        const bool inside = row >= 0 && row < rows_ && column >= 0 && column < columns_;
        f(static_cast<std::size_t>(i) * all_.stride(0) + static_cast<std::size_t>(j) * all_.stride(1), inside,
          inside ? static_cast<std::size_t>(row * columns_ + column) : 0);
      }
    }
  }

  std::int64_t rows_, columns_;
  Margins margins_;
  T guard_;
  Kokkos::View<T**, Layout, DeviceOf<Exec>> all_;
};

/// A vector as the middle column of a matrix of three: stride 3 (LayoutRight) or 1 (LayoutLeft, seldom aligned to more
/// than an element).
template <class Exec, class T, class Layout>
class GuardedVector : public Guarded<Exec, T, Layout> {
 public:
  GuardedVector(const std::vector<T>& data, double guard)
      : Guarded<Exec, T, Layout>(data, static_cast<std::int64_t>(data.size()), 1, {0, 0, 1, 1}, guard) {}
  auto column() const { return Kokkos::subview(this->whole(), Kokkos::ALL(), 1); }
};

}  // namespace Testing
}  // namespace Tessera

#endif
