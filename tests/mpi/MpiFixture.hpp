// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_TESTS_MPI_FIXTURE_HPP
#define TESSERA_TESTS_MPI_FIXTURE_HPP

#include <gtest/gtest.h>

#include <Teuchos_CommHelpers.hpp>
#include <Tpetra_Core.hpp>
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "adapters/Tessera_TpetraOperator.hpp"
#include "backends/reference/Tessera_Reference.hpp"
#include "support/Tessera_TestMatrix.hpp"

/// \file
/// Distributed matrices on maps of every kind, vectors whose numbers depend on global indices only, and the comparison
/// of an operator with the product of Tpetra's own matrix.

// Its members are compiled once, in MpiOperator.cpp: they are most of what a test compiles.
extern template class Tessera::TpetraOperator<double, Tpetra::Map<>::local_ordinal_type,
                                              Tpetra::Map<>::global_ordinal_type, Tpetra::Map<>::node_type>;

namespace Tessera {
namespace Testing {

using Map = Tpetra::Map<>;
using LO = Map::local_ordinal_type;
using GO = Map::global_ordinal_type;
using Node = Map::node_type;
using Matrix = Tpetra::CrsMatrix<double, LO, GO, Node>;
using Vectors = Tpetra::MultiVector<double, LO, GO, Node>;
using Operator = TpetraOperator<double, LO, GO, Node>;
using MapPointer = Teuchos::RCP<const Map>;
using MatrixPointer = Teuchos::RCP<Matrix>;
using Comm = Teuchos::RCP<const Teuchos::Comm<int>>;
inline Comm comm() { return Tpetra::getDefaultComm(); }

inline double largest_of_all(const Comm& comm, double mine) {
  double all = mine;
  Teuchos::reduceAll(*comm, Teuchos::REDUCE_MAX, mine, Teuchos::outArg(all));
  return all;
}
/// Whether something holds on every process.
inline bool everywhere(const Comm& comm, bool here) { return largest_of_all(comm, here ? 0 : 1) == 0; }

enum class Spread {
  Blocks,      ///< contiguous, even
  Cyclic,      ///< element i on process i mod size: not contiguous
  Backwards,   ///< cyclic, falling on every process
  FirstOnly,   ///< everything on process 0
  LastEmpty,   ///< even, but the last process has nothing
  Overlapping  ///< blocks and the two elements behind: some elements on two processes
};

inline MapPointer make_map(const Comm& comm, GO n, Spread spread) {
  const int size = comm->getSize(), rank = comm->getRank();
  std::vector<GO> mine;
  const auto block = [&](int processes) {
    if (rank >= processes) return;
    for (GO i = n * rank / processes; i < n * (rank + 1) / processes; ++i) mine.push_back(i);
  };
  switch (spread) {
    case Spread::Blocks:
      block(size);
      break;
    case Spread::Cyclic:
      for (GO i = rank; i < n; i += size) mine.push_back(i);
      break;
    case Spread::Backwards:
      for (GO i = n - 1 - rank; i >= 0; i -= size) mine.push_back(i);
      break;
    case Spread::FirstOnly:
      block(1);
      break;
    case Spread::LastEmpty:
      block(size > 1 ? size - 1 : 1);
      break;
    case Spread::Overlapping:
      block(size);
      for (GO i = n * (rank + 1) / size; i < std::min(n, n * (rank + 1) / size + 2); ++i) mine.push_back(i);
      break;
  }
  const auto invalid = Teuchos::OrdinalTraits<Tpetra::global_size_t>::invalid();
  return Teuchos::rcp(
      new Map(invalid, Teuchos::ArrayView<const GO>(mine.data(), static_cast<int>(mine.size())), 0, comm));
}

struct Entry {
  GO column;
  double value;
};
using Row = std::function<std::vector<Entry>(GO)>;

/// Five-point Laplacian of nx x ny points, not symmetric in its numbers if `skew`.
inline Row laplacian(GO nx, GO ny, double skew = 0) {
  return [=](GO row) {
    std::vector<Entry> entries{{row, 4.0}};
    const GO x = row % nx, y = row / nx;
    if (x > 0) entries.push_back({row - 1, -1 - skew});
    if (x + 1 < nx) entries.push_back({row + 1, -1 + skew});
    if (y > 0) entries.push_back({row - nx, -1 - skew / 2});
    if (y + 1 < ny) entries.push_back({row + nx, -1 + skew / 2});
    return entries;
  };
}
/// Rows of 0 to 12 entries at random columns; every seventh row is empty.
inline Row random_rows(GO cols, std::uint64_t seed) {
  return [=](GO row) {
    std::vector<Entry> entries;
    const auto base = static_cast<std::uint64_t>(row) * 64;
    const int count = row % 7 == 3 ? 0 : static_cast<int>(6.5 + 6 * number(Data::Real, seed, base));
    for (int k = 0; k < count; ++k) {
      const auto i = base + 2 * static_cast<std::uint64_t>(k) + 1;
      const auto column = static_cast<GO>((number(Data::Real, seed, i) + 1) / 2 * static_cast<double>(cols));
      entries.push_back({std::min(column, cols - 1), number(Data::Magnitudes, seed, i + 1)});
    }
    return entries;
  };
}

/// @param columns  the column map, or null: what Tpetra makes
inline MatrixPointer make_matrix(const MapPointer& rows, const MapPointer& domain, const MapPointer& range,
                                 const Row& row, const MapPointer& columns = Teuchos::null) {
  const std::size_t longest = 16;
  const auto A =
      columns.is_null() ? Teuchos::rcp(new Matrix(rows, longest)) : Teuchos::rcp(new Matrix(rows, columns, longest));
  for (std::size_t i = 0; i < Compat::local_size(*rows); ++i) {
    const GO name = rows->getGlobalElement(static_cast<LO>(i));
    std::vector<GO> names;
    std::vector<double> values;
    for (const Entry& e : row(name)) {
      names.push_back(e.column);
      values.push_back(e.value);
    }
    if (names.empty()) continue;
    const auto n = static_cast<int>(names.size());
    A->insertGlobalValues(name, Teuchos::ArrayView<const GO>(names.data(), n),
                          Teuchos::ArrayView<const double>(values.data(), n));
  }
  A->fillComplete(domain, range);
  return A;
}

/// The same graph, numbers changed one by one.
inline MatrixPointer with_numbers(const MatrixPointer& A, const std::function<double(double)>& f) {
  const auto B = Teuchos::rcp(new Matrix(*A, Teuchos::Copy));
  B->resumeFill();
  {
    const auto values = B->getLocalMatrixHost().values;
    for (std::size_t k = 0; k < values.extent(0); ++k) values(k) = f(values(k));
  }
  B->fillComplete(A->getDomainMap(), A->getRangeMap());
  return B;
}

/// Numbers by global index and column; all processes that hold an element hold the same number.
inline void fill(Vectors& v, std::uint64_t seed, bool absolute = false) {
  for (std::size_t j = 0; j < v.getNumVectors(); ++j) {
    const auto column = v.getVectorNonConst(j);
    for (std::size_t i = 0; i < column->getLocalLength(); ++i) {
      const auto name = static_cast<std::uint64_t>(v.getMap()->getGlobalElement(static_cast<LO>(i)));
      const double value = number(Data::Real, seed, name * 16 + j);
      column->replaceLocalValue(static_cast<LO>(i), absolute ? std::fabs(value) : value);
    }
  }
}
inline Vectors absolute(const Vectors& v) {
  Vectors result(v, Teuchos::Copy);
  result.abs(v);
  return result;
}

/// What of a rounding error an operator may show beside 2 (entries + processes + 4) u (|alpha| |A||x| + |beta y|),
/// which bounds plain sums in double in any order (Reference::spmv_bound): relative to the magnitude, and to the row's
/// sum of |a| times the largest |x|; of received numbers, relative to the magnitude of their part of the sum.
struct Narrow {
  double unit = 0, floor = 0, sum_unit = 0, halo_unit = 0;
};

/// The same graph with the magnitudes of entries in columns that a process receives, and 0 elsewhere.
inline MatrixPointer received_magnitudes(const MatrixPointer& A) {
  const auto B = Teuchos::rcp(new Matrix(*A, Teuchos::Copy));
  const auto columns = A->getColMap(), domain = A->getDomainMap();
  B->resumeFill();
  {
    const auto local = B->getLocalMatrixHost();
    for (std::size_t k = 0; k < local.values.extent(0); ++k) {
      const bool own = domain->isNodeGlobalElement(columns->getGlobalElement(local.graph.entries(k)));
      local.values(k) = own ? 0 : std::fabs(local.values(k));
    }
  }
  B->fillComplete(A->getDomainMap(), A->getRangeMap());
  return B;
}

/// A matrix and what bounds its products' errors.
class Judge {
 public:
  explicit Judge(const MatrixPointer& A)
      : A_(A),
        magnitudes_(with_numbers(A, [](double v) { return std::fabs(v); })),
        ones_(with_numbers(A, [](double) { return 1.0; })),
        received_(received_magnitudes(A)) {}

  /// Largest error of Y against alpha op(A) X + beta Y0 of Tpetra's own matrix, as a share of what is allowed; over all
  /// processes. Both round, so that both bounds are allowed.
  double worst(const Vectors& X, const Vectors& Y, Teuchos::ETransp mode, double alpha, double beta, const Vectors& Y0,
               Narrow narrow = {}) const {
    const std::size_t columns = X.getNumVectors();
    Vectors wanted(Y.getMap(), columns), magnitude(Y.getMap(), columns), counts(Y.getMap(), 1), sums(Y.getMap(), 1);
    Vectors received(Y.getMap(), columns);
    if (beta != 0) {
      Tpetra::deep_copy(wanted, Y0);
      magnitude.abs(Y0);
    }
    // A copy, since Tpetra 13.2 refuses columns of uneven distance in a transposed product that has an Import.
    A_->apply(Vectors(X, Teuchos::Copy), wanted, mode, alpha, beta);
    magnitudes_->apply(absolute(X), magnitude, mode, std::fabs(alpha), std::fabs(beta));
    if (narrow.halo_unit > 0) received_->apply(absolute(X), received, mode, std::fabs(alpha), 0);
    Vectors one(X.getMap(), 1);
    one.putScalar(1.0);
    ones_->apply(one, counts, mode);
    magnitudes_->apply(one, sums, mode);
    std::vector<double> largest(columns);
    X.normInf(Teuchos::ArrayView<double>(largest.data(), static_cast<int>(columns)));
    const auto& comm = A_->getComm();
    double worst = 0;
    for (std::size_t j = 0; j < columns; ++j) {
      const auto got = Y.getVector(j)->getData(0), want = wanted.getVector(j)->getData(0);
      const auto size = magnitude.getVector(j)->getData(0), from_others = received.getVector(j)->getData(0);
      const auto count = counts.getData(0), sum = sums.getData(0);
      for (int i = 0; i < got.size(); ++i) {
        const double terms = count[i] + comm->getSize();
        const double u = std::numeric_limits<double>::epsilon() / 2;
        const double tiny = std::numeric_limits<double>::denorm_min();
        double bound = 2 * Reference::spmv_bound(terms, u, size[i], 0, want[i], tiny);
        bound += (narrow.unit + 2 * (terms + 4) * narrow.sum_unit) * size[i];
        bound += std::fabs(alpha) * sum[i] * largest[j] * narrow.floor + narrow.halo_unit * from_others[i];
        const double error = std::fabs(got[i] - want[i]);
        const double share = error == 0 ? 0 : error <= bound ? error / bound : std::numeric_limits<double>::max();
        worst = std::max(worst, share);
      }
    }
    return largest_of_all(comm, worst);
  }

 private:
  MatrixPointer A_, magnitudes_, ones_, received_;
};

/// The largest |a - b|, over all columns and processes.
inline double largest_difference(const Vectors& a, const Vectors& b) {
  Vectors difference(a, Teuchos::Copy);
  difference.update(-1, b, 1);
  std::vector<double> norms(a.getNumVectors());
  difference.normInf(Teuchos::ArrayView<double>(norms.data(), static_cast<int>(norms.size())));
  return norms.empty() ? 0 : *std::max_element(norms.begin(), norms.end());
}

/// Whether calling f throws E on every process.
template <class E, class F>
bool throws_everywhere(const Comm& comm, const F& f) {
  bool thrown = false;
  try {
    f();
  } catch (const E&) {
    thrown = true;
  } catch (const std::exception& e) {
    ADD_FAILURE() << "another exception: " << e.what();
  }
  return everywhere(comm, thrown);
}

}  // namespace Testing
}  // namespace Tessera

#endif
