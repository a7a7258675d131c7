// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "mpi/Tessera_BenchMpiMatrix.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace Tessera {
namespace Bench {
namespace {

void insert(Matrix& A, GO row, const std::vector<GO>& columns, const std::vector<double>& values) {
  const auto n = static_cast<int>(columns.size());
  A.insertGlobalValues(row, Teuchos::ArrayView<const GO>(columns.data(), n),
                       Teuchos::ArrayView<const double>(values.data(), n));
}

/// Factors of the number of processes whose blocks of a cubic grid have the least surface.
std::array<GO, 3> process_grid(int processes) {
  std::array<GO, 3> best{processes, 1, 1};
  double least = 1e300;
  for (GO x = 1; x <= processes; ++x) {
    if (processes % x != 0) continue;
    for (GO y = 1; y <= processes / x; ++y) {
      if (processes / x % y != 0) continue;
      const GO z = processes / x / y;
      const double surface = static_cast<double>(x + y + z);
      if (surface < least) {
        least = surface;
        best = {x, y, z};
      }
    }
  }
  return best;
}

/// In (0.5, 1.5), the same for an edge from both ends.
double edge_number(GO a, GO b) {
  std::uint64_t z = static_cast<std::uint64_t>(std::min(a, b)) * 0x9E3779B97F4A7C15ull +
                    static_cast<std::uint64_t>(std::max(a, b)) * 0xD1B54A32D192ED03ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  z ^= z >> 31;
  return 0.5 + static_cast<double>(z >> 11) / 9007199254740992.0;
}

/// A grid in blocks: who has a point, and its number.
class BlockGrid {
 public:
  BlockGrid(GO points, bool each_block, int processes) : blocks_(process_grid(processes)) {
    for (int d = 0; d < 3; ++d) size_[d] = each_block ? points * blocks_[d] : points;
    for (int p = 0; p < processes; ++p) first_.push_back((p == 0 ? 0 : first_.back() + count(p - 1)));
  }
  GO size(int d) const { return size_[d]; }
  GO begin(int p, int d) const { return size_[d] * block(p, d) / blocks_[d]; }
  GO end(int p, int d) const { return size_[d] * (block(p, d) + 1) / blocks_[d]; }
  GO count(int p) const { return (end(p, 0) - begin(p, 0)) * (end(p, 1) - begin(p, 1)) * (end(p, 2) - begin(p, 2)); }
  GO number(GO x, GO y, GO z) const {
    const int p = static_cast<int>(place(x, 0) + blocks_[0] * (place(y, 1) + blocks_[1] * place(z, 2)));
    const GO nx = end(p, 0) - begin(p, 0), ny = end(p, 1) - begin(p, 1);
    return first_[static_cast<std::size_t>(p)] + x - begin(p, 0) + nx * (y - begin(p, 1) + ny * (z - begin(p, 2)));
  }

 private:
  GO block(int p, int d) const {
    return d == 0 ? p % blocks_[0] : d == 1 ? p / blocks_[0] % blocks_[1] : p / (blocks_[0] * blocks_[1]);
  }
  GO place(GO x, int d) const {
    GO b = x * blocks_[d] / size_[d];
    while (size_[d] * (b + 1) / blocks_[d] <= x) ++b;
    return b;
  }
  std::array<GO, 3> blocks_, size_{};
  std::vector<GO> first_;
};

}  // namespace

MatrixPointer stencil27(GO points, bool each_block, bool random, const Comm& comm) {
  const int rank = comm->getRank();
  const BlockGrid grid(points, each_block, comm->getSize());
  const auto invalid = Teuchos::OrdinalTraits<Tpetra::global_size_t>::invalid();
  const auto map = Teuchos::rcp(new Map(invalid, static_cast<std::size_t>(grid.count(rank)), 0, comm));
  const auto A = Teuchos::rcp(new Matrix(map, 27));
  std::vector<GO> columns;
  std::vector<double> values;
  for (GO z = grid.begin(rank, 2); z < grid.end(rank, 2); ++z) {
    for (GO y = grid.begin(rank, 1); y < grid.end(rank, 1); ++y) {
      for (GO x = grid.begin(rank, 0); x < grid.end(rank, 0); ++x) {
        const GO row = grid.number(x, y, z);
        columns.assign(1, row);
        values.assign(1, 0.5);
        for (GO c = std::max<GO>(z - 1, 0); c <= std::min(z + 1, grid.size(2) - 1); ++c) {
          for (GO b = std::max<GO>(y - 1, 0); b <= std::min(y + 1, grid.size(1) - 1); ++b) {
            for (GO a = std::max<GO>(x - 1, 0); a <= std::min(x + 1, grid.size(0) - 1); ++a) {
              if (a == x && b == y && c == z) continue;
              columns.push_back(grid.number(a, b, c));
              values.push_back(random ? -edge_number(row, columns.back()) : -1.0);
              values[0] -= values.back();
            }
          }
        }
        insert(*A, row, columns, values);
      }
    }
  }
  A->fillComplete();
  return A;
}

MatrixPointer with_absolute_numbers(const Matrix& A) {
  const auto B = Teuchos::rcp(new Matrix(A, Teuchos::Copy));
  B->resumeFill();
  {
    const auto values = B->getLocalMatrixHost().values;
    for (std::size_t k = 0; k < values.extent(0); ++k) values(k) = std::fabs(values(k));
  }
  B->fillComplete(A.getDomainMap(), A.getRangeMap());
  return B;
}

}  // namespace Bench
}  // namespace Tessera
