// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FEATURES_SPGEMM_FEATURES_HPP
#define TESSERA_FEATURES_SPGEMM_FEATURES_HPP

#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "Tessera_CsrView.hpp"
#include "core/Tessera_Arena.hpp"
#include "core/Tessera_Pattern.hpp"

/// \file
/// What the choice of a method for C = A B looks at: of each matrix the features of Table 3 of Xie et al., "IA-SpGEMM",
/// PPoPP'19, and its density image, of both the compression. DIA and ELL are not made for it.

namespace Tessera {

/// Of one matrix. A diagonal is what the entries with one value of column - row lie on.
struct SpgemmFeatures {
  std::int64_t rows = 0, cols = 0, nnz = 0;
  std::int64_t longest = 0, shortest = 0;  ///< rows
  double mean = 0, variance = 0;           ///< of the rows' lengths
  std::int64_t diagonals = 0;              ///< with an entry
  bool all_diagonals = true;               ///< false: `diagonals` is of a sample, there may be more

  double density() const { return share(nnz, static_cast<double>(rows) * static_cast<double>(cols)); }
  /// Standard deviation of the rows' lengths over their mean.
  double cv() const { return mean > 0 ? std::sqrt(variance) / mean : 0; }
  /// Of those that a matrix of this size has.
  double diagonal_ratio() const { return share(diagonals, static_cast<double>(rows) + static_cast<double>(cols) - 1); }
  /// Entries per slot of DIA and of ELL; 1: no padding.
  double dia_fill() const { return share(nnz, static_cast<double>(rows) * static_cast<double>(diagonals)); }
  /// See dia_fill().
  double ell_fill() const { return share(nnz, static_cast<double>(rows) * static_cast<double>(longest)); }

 private:
  static double share(std::int64_t part, double whole) { return whole > 0 ? static_cast<double>(part) / whole : 0; }
};

/// Which diagonals are counted. Sample: those of 16,384 entries (or fewer) at equal distances. Few: of these and, where
/// they are so few that DIA may be worth while, all of them. All: every one. Where a diagonal has less than a 64th of
/// an entry (for samples: a 16th), nnz stands for them.
enum class DiagonalsCounted { None, Sample, Few, All };

/// Entries per element in 128 x 128 cells: cell (r, c) at 128 r + c has the rows i with floor(128 i / rows) = r, and
/// columns likewise. Of fewer than 128 rows (columns), each has several cells.
struct SpgemmImage {
  static constexpr int side = 128;
  std::vector<float> density;  ///< side * side
};

namespace Impl {

/// Longest and shortest row, and the squares of what lengths have above a number near their mean.
template <class Pattern>
struct SpgemmLengths {
  Pattern A;
  std::int64_t near;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t row, std::int64_t& longest, std::int64_t& shortest,
                                         double& squares) const {
    const auto length = static_cast<std::int64_t>(A.row_map()(row + 1)) - static_cast<std::int64_t>(A.row_map()(row));
    if (length > longest) longest = length;
    if (length < shortest) shortest = length;
    const auto above = static_cast<double>(length - near);
    squares += above * above;
  }
};

/// Pieces of consecutive entries with their rows: all entries, or a sample, stretches of 256 at equal distances, which
/// are the same ones wherever and by however many threads they are looked at.
template <class Pattern>
struct SpgemmPieces {
  static constexpr std::int64_t stretch = 256;
  Pattern A;
  std::int64_t count = 0, length = 0;
  std::int64_t of_stretch = 1, distance = 0;  ///< pieces of a stretch, and from one stretch to the next

  /// Threads of devices take few entries each; to find a row takes as long as some entries.
  static constexpr std::int64_t usual() { return Compat::is_host_v<typename Pattern::execution_space> ? 8192 : 32; }
  /// At most `most` entries, of which there are at least as many as in a stretch. @param each  entries of a piece, at
  /// most; a power of two
  SpgemmPieces(const Pattern& a, std::int64_t most, std::int64_t each = usual()) : A(a) {
    const auto nnz = static_cast<std::int64_t>(A.nnz());
    const bool all = nnz <= most;
    length = all || each < stretch ? each : stretch;
    of_stretch = all ? 1 : stretch / length;
    const std::int64_t stretches = all ? (nnz + length - 1) / length : most / stretch;
    distance = all ? length : nnz / stretches;
    count = stretches * of_stretch;
  }
  std::int64_t entries() const {
    const auto nnz = static_cast<std::int64_t>(A.nnz());
    return count * length < nnz ? count * length : nnz;
  }
  /// f(row, column) for the entries of a piece.
  template <class F>
  KOKKOS_INLINE_FUNCTION void each(const std::int64_t piece, const F& f) const {
    const auto nnz = static_cast<std::int64_t>(A.nnz());
    const std::int64_t first = piece / of_stretch * distance + piece % of_stretch * length;
    const std::int64_t end = first + length < nnz ? first + length : nnz;
    std::int64_t row = 0, after = A.rows();  // the row of `first` is in [row, after)
    while (after - row > 1) {
      const std::int64_t middle = row + (after - row) / 2;
      (static_cast<std::int64_t>(A.row_map()(middle)) <= first ? row : after) = middle;
    }
    for (std::int64_t e = first; e < end; ++row) {
      const auto row_end = static_cast<std::int64_t>(A.row_map()(row + 1));
      for (const std::int64_t stop = row_end < end ? row_end : end; e < stop; ++e) {
        f(row, static_cast<std::int64_t>(A.entries()(e)));
      }
    }
  }
};

/// Of a type that devices have atomics for.
using SpgemmDiagonalBits = unsigned long long;

/// A bit per diagonal.
template <class Pattern>
struct SpgemmCountDiagonals {
  SpgemmPieces<Pattern> pieces;
  SpgemmDiagonalBits* bits;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t piece, std::int64_t& found) const {
    const std::int64_t last_row = static_cast<std::int64_t>(pieces.A.rows()) - 1;
    std::int64_t more = 0;
    pieces.each(piece, [&](std::int64_t row, std::int64_t column) {
      const std::int64_t at = column - row + last_row;
      const SpgemmDiagonalBits bit = SpgemmDiagonalBits{1} << at % 64;
      volatile SpgemmDiagonalBits* const word = bits + at / 64;
      if ((*word & bit) != 0) return;
      more += (Kokkos::atomic_fetch_or(bits + at / 64, bit) & bit) == 0;
    });
    found += more;
  }
};

struct SpgemmCells {
  std::uint32_t cells[SpgemmImage::side * SpgemmImage::side];
};
struct SpgemmColumnsFound {
  std::uint64_t products, columns;
};

template <class Pattern>
struct SpgemmCountCells {
  SpgemmPieces<Pattern> pieces;
  std::uint32_t* cells;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t piece) const {
    constexpr std::int64_t side = SpgemmImage::side;
    const auto rows = static_cast<std::int64_t>(pieces.A.rows()), cols = static_cast<std::int64_t>(pieces.A.cols());
    const std::int64_t down = rows < side ? rows : side, across = cols < side ? cols : side;
    pieces.each(piece, [&](std::int64_t row, std::int64_t column) {
      Kokkos::atomic_add(cells + row * down / rows * side + column * across / cols, std::uint32_t{1});
    });
  }
};

/// Different columns among the products of sampled rows of C: a Kokkos team per row. Of rows with more products than
/// a table holds, the columns that a hash picks; of more than `walked`, those of the first entries of A's row.
template <class Pattern>
struct SpgemmCompressionFunctor {
  using exec = typename Pattern::execution_space;
  using member = typename Kokkos::TeamPolicy<exec>::member_type;
  using Table = Kokkos::View<std::int32_t*, typename exec::scratch_memory_space, Kokkos::MemoryUnmanaged>;
  static constexpr int slots = 2048, most = 1024, walked = 1 << 15;
  Pattern A, B;
  std::int64_t sampled;
  SpgemmColumnsFound* found;

  static int scratch_bytes() { return static_cast<int>(Table::shmem_size(slots)); }
  KOKKOS_INLINE_FUNCTION static std::uint32_t hash(std::uint32_t c) {
    c ^= c >> 16;
    c *= 0x7feb352du;
    c ^= c >> 15;
    c *= 0x846ca68bu;
    return c ^ c >> 16;
  }
  KOKKOS_INLINE_FUNCTION std::int64_t begin_of_b(std::int64_t e) const {
    return static_cast<std::int64_t>(B.row_map()(A.entries()(e)));
  }
  KOKKOS_INLINE_FUNCTION std::int64_t length_of_b(std::int64_t e) const {
    return static_cast<std::int64_t>(B.row_map()(A.entries()(e) + 1)) - begin_of_b(e);
  }
  /// @return 1 where the column was not there
  KOKKOS_INLINE_FUNCTION static int insert(const Table& table, std::int32_t column, std::uint32_t place) {
    for (int probe = 0; probe < slots; ++probe, ++place) {
      std::int32_t* const slot = &table(static_cast<int>(place % slots));
      // Looked at once: between two looks another thread may write this very column, where rows of B repeat it.
      std::int32_t there = *static_cast<volatile std::int32_t*>(slot);
      if (there == -1) {
        there = Kokkos::atomic_compare_exchange(slot, -1, column);
        if (there == -1) return 1;
      }
      if (there == column) return 0;
    }
    return 0;
  }

  KOKKOS_INLINE_FUNCTION void operator()(const member& team) const {
    Table table(team.team_scratch(0), slots);
    const std::int64_t row = team.league_rank() * static_cast<std::int64_t>(A.rows()) / sampled;
    const auto first = static_cast<std::int64_t>(A.row_map()(row)),
               end = static_cast<std::int64_t>(A.row_map()(row + 1));
    std::int64_t products = 0, last = first;
    while (last < end && products < walked) products += length_of_b(last++);
    int shift = 0;
    while (products >> shift > most) ++shift;
    const std::uint32_t dropped = (std::uint32_t{1} << shift) - 1;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, slots), [&](const int i) { table(i) = -1; });
    team.team_barrier();
    std::uint64_t counted = 0, columns = 0;
    for (std::int64_t e = first; e < last; ++e) {
      const std::int64_t b = begin_of_b(e), n = length_of_b(e) < walked ? length_of_b(e) : walked;
      std::uint64_t both = 0;  // products of the columns that are picked, and new columns
      Kokkos::parallel_reduce(
          Kokkos::TeamThreadRange(team, static_cast<int>(n)),
          [&](const int i, std::uint64_t& sum) {
            const auto column = static_cast<std::int32_t>(B.entries()(b + i));
            const std::uint32_t h = hash(static_cast<std::uint32_t>(column));
            if ((h & dropped) != 0) return;
            sum += 1 + (static_cast<std::uint64_t>(insert(table, column, h >> shift)) << 32);
          },
          both);
      counted += both & 0xffffffffu;
      columns += both >> 32;
    }
    Kokkos::single(Kokkos::PerTeam(team), [&]() {
      Kokkos::atomic_add(&found->products, counted << shift);
      Kokkos::atomic_add(&found->columns, columns << shift);
    });
  }
};

/// What takes no look.
template <class Pattern>
SpgemmFeatures spgemm_sizes(const Pattern& A) {
  SpgemmFeatures f;
  f.rows = static_cast<std::int64_t>(A.rows());
  f.cols = static_cast<std::int64_t>(A.cols());
  f.nnz = static_cast<std::int64_t>(A.nnz());
  if (f.rows > 0) f.mean = static_cast<double>(f.nnz) / static_cast<double>(f.rows);
  return f;
}

/// Row lengths.
template <class Pattern, class Exec>
void spgemm_add_lengths(const Exec& space, const Pattern& A, SpgemmFeatures& f) {
  if (f.rows == 0) return;
  const std::int64_t near = f.nnz / f.rows;
  double squares = 0;  // of whole numbers: exact, in whatever order, below 2^53
  Kokkos::parallel_reduce("Tessera::spgemm features",
                          Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(space, 0, f.rows),
                          SpgemmLengths<Pattern>{A, near}, Kokkos::Max<std::int64_t>(f.longest),
                          Kokkos::Min<std::int64_t>(f.shortest), squares);
  Compat::fence(space, "Tessera::spgemm features");
  const double shift = f.mean - static_cast<double>(near);
  f.variance = squares / static_cast<double>(f.rows) - shift * shift;
  if (f.variance < 0 || f.longest == f.shortest) f.variance = 0;
}

template <class Pattern, class Exec>
std::int64_t spgemm_count_diagonals(const Exec& space, const SpgemmPieces<Pattern>& pieces,
                                    const KernelTable* backend) {
  using Arena = Impl::Arena<typename Pattern::memory_space>;
  const auto words = static_cast<std::size_t>((pieces.A.rows() + static_cast<std::int64_t>(pieces.A.cols())) / 64 + 1);
  typename Arena::template View<SpgemmDiagonalBits> bits;
  const auto storage = Arena::make(space, backend, "Tessera::spgemm diagonals", Lifetime::Temporary,
                                   [&](Arena& arena) { bits = arena.template take<SpgemmDiagonalBits>(words); });
  Kokkos::deep_copy(space, bits, SpgemmDiagonalBits{0});
  std::int64_t count = 0;
  Kokkos::parallel_reduce("Tessera::spgemm diagonals",
                          Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(space, 0, pieces.count),
                          SpgemmCountDiagonals<Pattern>{pieces, bits.data()}, count);
  Compat::fence(space, "Tessera::spgemm diagonals");
  return count;
}

constexpr std::int64_t spgemm_sample = 1 << 14;

/// @param sample  entries, at most
template <class Pattern, class Exec>
void spgemm_add_diagonals(const Exec& space, const Pattern& A, DiagonalsCounted wanted, SpgemmFeatures& f,
                          const KernelTable* backend, std::int64_t sample = spgemm_sample) {
  if (wanted == DiagonalsCounted::None || f.nnz == 0) return;
  const bool all = wanted == DiagonalsCounted::All;
  if ((f.rows + f.cols) / 64 > (all ? f.nnz : f.nnz / 4 + 64)) {
    f.diagonals = f.nnz;
    f.all_diagonals = false;
    return;
  }
  constexpr std::int64_t everything = std::int64_t{1} << 62;
  // Slots that DIA may have per entry before it is out of the question.
  constexpr double worth = 16;
  SpgemmPieces<Pattern> pieces(A, all ? everything : sample);
  f.diagonals = spgemm_count_diagonals(space, pieces, backend);
  f.all_diagonals = pieces.entries() == f.nnz;
  if (f.all_diagonals || wanted == DiagonalsCounted::Sample || f.dia_fill() * worth < 1) return;
  f.diagonals = spgemm_count_diagonals(space, SpgemmPieces<Pattern>(A, everything), backend);
  f.all_diagonals = true;
}

template <class Pattern, class Exec>
SpgemmFeatures spgemm_pattern_features(const Exec& space, const Pattern& A, DiagonalsCounted diagonals,
                                       const KernelTable* backend) {
  SpgemmFeatures f = spgemm_sizes(A);
  spgemm_add_lengths(space, A, f);
  spgemm_add_diagonals(space, A, diagonals, f, backend);
  return f;
}

/// Of at most `sample` entries at equal distances.
template <class Pattern, class Exec>
SpgemmImage spgemm_pattern_image(const Exec& space, const Pattern& A, const KernelTable* backend) {
  constexpr std::int64_t side = SpgemmImage::side, sample = 1 << 17;
  SpgemmImage image;
  image.density.assign(static_cast<std::size_t>(side * side), 0);
  const auto rows = static_cast<std::int64_t>(A.rows()), cols = static_cast<std::int64_t>(A.cols());
  if (A.nnz() == 0) return image;
  using Arena = Impl::Arena<typename Pattern::memory_space>;
  typename Arena::template View<SpgemmCells> device;
  const auto storage = Arena::make(space, backend, "Tessera::spgemm image", Lifetime::Temporary,
                                   [&](Arena& arena) { device = arena.template take<SpgemmCells>(1); });
  using Bytes = typename Arena::template View<char>;
  Kokkos::deep_copy(space, Bytes(reinterpret_cast<char*>(device.data()), sizeof(SpgemmCells)), char(0));
  const SpgemmPieces<Pattern> pieces(A, sample);
  Kokkos::parallel_for("Tessera::spgemm image",
                       Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(space, 0, pieces.count),
                       SpgemmCountCells<Pattern>{pieces, reinterpret_cast<std::uint32_t*>(device.data())});
  const auto counts = std::make_unique<SpgemmCells>();
  fetch(space, backend, "Tessera::spgemm image", *counts, device);
  const double each = static_cast<double>(A.nnz()) / static_cast<double>(pieces.entries());
  const std::int64_t down = rows < side ? rows : side, across = cols < side ? cols : side;
  const auto extent = [](std::int64_t cell, std::int64_t cells, std::int64_t of) {
    return static_cast<double>(((cell + 1) * of + cells - 1) / cells - (cell * of + cells - 1) / cells);
  };
  for (std::int64_t r = 0; r < side; ++r) {
    for (std::int64_t c = 0; c < side; ++c) {
      const std::int64_t i = r * down / side, j = c * across / side;
      image.density[static_cast<std::size_t>(r * side + c)] =
          static_cast<float>(each * counts->cells[i * side + j] / (extent(i, down, rows) * extent(j, across, cols)));
    }
  }
  return image;
}

template <class Pattern, class Exec>
double spgemm_pattern_compression(const Exec& space, const Pattern& A, const Pattern& B, const KernelTable* backend) {
  using Arena = Impl::Arena<typename Pattern::memory_space>;
  using Functor = SpgemmCompressionFunctor<Pattern>;
  const auto rows = static_cast<std::int64_t>(A.rows());
  if (rows == 0 || A.nnz() == 0 || B.nnz() == 0) return 1;
  typename Arena::template View<SpgemmColumnsFound> device;
  const auto storage = Arena::make(space, backend, "Tessera::spgemm compression", Lifetime::Temporary,
                                   [&](Arena& arena) { device = arena.template take<SpgemmColumnsFound>(1); });
  using Bytes = typename Arena::template View<char>;
  Kokkos::deep_copy(space, Bytes(reinterpret_cast<char*>(device.data()), sizeof(SpgemmColumnsFound)), char(0));
  constexpr std::int64_t most = 64, one_in = 64;
  const std::int64_t wanted = rows / one_in + 1, sampled = wanted < most ? wanted : most;
  Kokkos::parallel_for("Tessera::spgemm compression",
                       Kokkos::TeamPolicy<Exec>(space, static_cast<int>(sampled), Compat::team_size<Exec>(256))
                           .set_scratch_size(0, Kokkos::PerTeam(Functor::scratch_bytes())),
                       Functor{A, B, sampled, device.data()});
  SpgemmColumnsFound found{};
  fetch(space, backend, "Tessera::spgemm compression", found, device);
  return found.columns > 0 ? static_cast<double>(found.products) / static_cast<double>(found.columns) : 1;
}

}  // namespace Impl

/// Reads the row map once, and the columns as often as DiagonalsCounted says: O(rows + entries read + (rows + cols) /
/// 64) time, (rows + cols) / 8 bytes. Two waits, three where a sample was not enough. Columns of rows may be unsorted
/// and repeat. Deterministic.
template <class Csr, class Exec>
SpgemmFeatures spgemm_features(const Exec& space, const Csr& A, DiagonalsCounted diagonals = DiagonalsCounted::All,
                               const KernelTable* backend = nullptr) {
  return Impl::spgemm_pattern_features(space, Impl::pattern_of(A), diagonals, backend);
}

/// Of 131,072 entries at equal distances, of all where there are fewer. One kernel, one wait, 64 KiB. Deterministic.
template <class Csr, class Exec>
SpgemmImage spgemm_image(const Exec& space, const Csr& A, const KernelTable* backend = nullptr) {
  return Impl::spgemm_pattern_image(space, Impl::pattern_of(A), backend);
}

/// Products per entry of C = A B, estimated from 64 rows at equal distances, a 64th of them where there are fewer: all
/// of a row's products are counted and, of rows with more than 1024, the columns that a hash picks. Rows with more
/// than 32,768 products count with the first of them. One kernel, one wait. Deterministic; 1 for no products.
template <class Csr, class Exec>
double spgemm_compression(const Exec& space, const Csr& A, const Csr& B, const KernelTable* backend = nullptr) {
  return Impl::spgemm_pattern_compression(space, Impl::pattern_of(A), Impl::pattern_of(B), backend);
}

}  // namespace Tessera

#endif
