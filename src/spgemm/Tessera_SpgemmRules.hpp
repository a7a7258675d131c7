// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPGEMM_SPGEMM_RULES_HPP
#define TESSERA_SPGEMM_SPGEMM_RULES_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>

#include "backends/interface/Tessera_DeviceFacts.hpp"
#include "backends/interface/Tessera_SpgemmArgs.hpp"
#include "spgemm/Tessera_SpgemmOptions.hpp"

/// \file
/// The rules of Auto on hosts, what formats take, from counts alone, and the thresholds of methods.

namespace Tessera {
namespace Impl {

/// What TESSERA_FORCE_SPGEMM_ALGORITHM asks for. @throw InvalidArgument  unknown name
inline SpgemmAlgorithm forced_spgemm_algorithm() {
  const char* const name = std::getenv("TESSERA_FORCE_SPGEMM_ALGORITHM");
  return name == nullptr || *name == 0 ? SpgemmAlgorithm::Auto : parse_spgemm_algorithm(name);
}

/// Scratch of all threads for one product.
struct SpgemmScratchBytes {
  std::size_t spa, hash;
};
/// Dense arrays of so many bytes are never too large.
constexpr std::size_t spgemm_small_scratch = std::size_t{1} << 26;

/// Entries that C may have: of 32-bit offsets backends write no more than 2^31 - 1, signed or not.
template <class Offset>
constexpr std::int64_t spgemm_most_entries() {
  return sizeof(Offset) == 4 ? std::numeric_limits<std::int32_t>::max() : std::numeric_limits<std::int64_t>::max();
}

/// Bytes of C's columns and numbers up to which they are allocated for as many entries as rows may have, before these
/// are known: beside the search for columns (perf_test/notes/spgemm.md, "Devices: how").
constexpr std::size_t spgemm_little = std::size_t{1} << 25;

/// The same on hosts, where one thread multiplies and arrays have room for an entry per product: Linux gives memory to
/// what of them is written, and no more (core/Tessera_HugePages.hpp); 0: elsewhere entries are counted first.
#if defined(__linux__)
constexpr std::size_t spgemm_most_reserved = std::size_t{1} << 32;
#else
constexpr std::size_t spgemm_most_reserved = 0;
#endif
template <class Scalar, class Ordinal, class Offset>
constexpr bool spgemm_may_reserve(std::int64_t products) {
  return static_cast<std::uint64_t>(products) <= spgemm_most_reserved / (sizeof(Scalar) + sizeof(Ordinal)) &&
         products <= spgemm_most_entries<Offset>();
}

/// Windows of rows on FP64 matrix units (perf_test/notes/spgemm.md, "Devices: tiles"): rows of A fill at least so
/// much of their union; a column of A brings so many products per row of the window, which is what the layout of its
/// row of B is paid by; C's rows have no more entries than the tiles of a window take in two rounds.
constexpr std::int32_t spgemm_window_percent = 60, spgemm_window_products = 12, spgemm_window_entries = 768;
/// Products from which on it is worth a launch to look for windows, if rows of at least half of C have many products,
/// and windows that a multiprocessor should have: with fewer it waits for one after the other.
constexpr std::int64_t spgemm_least_tiled_products = 1'000'000, spgemm_windows_each = 10;
/// Rate of the FP64 matrix instruction, as DeviceFacts have it, below which it is a stand-in for units that a device
/// has few of (8.6, 8.9, H800, H20: 0.5 to 2 million million; A100 20, H100 33): half of what it multiplies, or more,
/// is zeros. Only an H100 was measured.
constexpr double spgemm_least_matrix_rate = 8e12;

inline SpgemmWindowRule spgemm_window_rule(SpgemmTiles tiles) {
  if (tiles == SpgemmTiles::Always) return {0, 0, std::numeric_limits<std::int32_t>::max()};
  return {spgemm_window_percent, spgemm_window_products, spgemm_window_entries};
}
/// @param by_bits  rows of C with many products  @param windows  of C's rows  @param device  rate 0: not known
inline bool spgemm_looks_for_windows(SpgemmTiles tiles, std::int64_t products, std::int64_t by_bits, std::int64_t rows,
                                     std::int64_t windows, const DeviceFacts& device) {
  if (tiles != SpgemmTiles::Auto) return tiles == SpgemmTiles::Always && by_bits > 0;
  if (device.fp64_matrix_rate > 0 && device.fp64_matrix_rate < spgemm_least_matrix_rate) return false;
  if (windows < spgemm_windows_each * device.compute_units) return false;
  return products >= spgemm_least_tiled_products && by_bits >= rows - by_bits;
}

/// What the model wants of the two, Spa if it wants neither, while its memory stays in proportion to that of A and B.
inline SpgemmAlgorithm predict_spgemm(const SpgemmScratchBytes& scratch, std::size_t matrices, std::size_t most,
                                      SpgemmAlgorithm wanted, std::string& why) {
  const std::size_t room = most > 0 ? most : std::max(spgemm_small_scratch, matrices);
  const bool hash = wanted == SpgemmAlgorithm::Hash ? scratch.hash <= room || scratch.hash <= scratch.spa
                                                    : scratch.spa > room && scratch.spa > scratch.hash;
  const SpgemmAlgorithm taken = hash ? SpgemmAlgorithm::Hash : SpgemmAlgorithm::Spa;
  char text[200];
  std::snprintf(text, sizeof(text), "%s: dense arrays of all threads take %zu bytes, tables %zu (Spa up to %zu)",
                to_string(taken), scratch.spa, scratch.hash, room);
  why = text;
  return taken;
}

/// Products of fewer multiplications are done before features would be found: their sizes decide
/// (perf_test/notes/spgemm.md, "The choice on hosts").
constexpr std::int64_t spgemm_least_products = 16384;
/// Products of fewer are too short for MatNet, which takes 0.4 to 2 ms: they are the tree's (there, too).
constexpr std::int64_t spgemm_least_for_net = std::int64_t{1} << 22;

/// How many entries before it is wanted a host asks for a row of B (perf_test/notes/spgemm.md, "Hosts", "Dia and Ell").
constexpr std::int64_t spgemm_rows_ahead = 8;

/// Rows of C of up to so many products are sorted by Spa without its array, where that has more bytes than a near cache
/// and the columns of a row go through more than an eighth of it (the same page).
constexpr int spgemm_few_products = 16;
constexpr std::int64_t spgemm_near_bytes = std::int64_t{1} << 20, spgemm_near_share = 8, spgemm_sampled_rows = 64;

/// Rows of C of up to so many products are put in order by ranks in Spa; half of it where vectors have 16 bytes
/// (perf_test/notes/spgemm.md, "One pass, short rows").
constexpr int spgemm_short_products = 40;

/// Binned by Kokkos: rows of 97 to 384 entries are put in order in tables where the columns of B fill more windows than
/// this. On an H200 a window took 12 to 18 ns per row where sorting in tables took 31 to 127, but stencils of a million
/// columns were slower with windows.
constexpr int spgemm_few_windows = 4;
/// Binned by Kokkos: scratch of a team, at most, and for one row more. Not measured apart.
constexpr std::size_t spgemm_team_bytes = 24 << 10;

/// Binned by a backend: mean entries of B's rows from which on all lanes of a wave go through one together. Not
/// measured apart.
constexpr std::int64_t spgemm_long_row = 24;
/// Rows of a batch; with fewer, looks at B would cost more than the product (perf_test/notes/spgemm.md, "Batches of
/// rows").
constexpr std::int64_t spgemm_least_batch = 256;

/// Binned by a backend, rows of A in pieces: as many pieces as keep a large device busy, on every device, so that
/// results do not depend on which one it is; entries that a piece has at least, and that rows of A have in the mean
/// where they are cut (perf_test/notes/spgemm.md, "Few, very long rows of A").
struct SpgemmCut {
  std::int64_t wanted, least_row;
  std::int64_t share;  ///< of the products, that pieces may have as results: one in so many
};
constexpr std::int64_t spgemm_wanted_pieces = 2048, spgemm_least_piece = 128, spgemm_most_cut = 1024;
/// Mean entries of the rows of B that A names, below which most of a thread block waits for one such row after another.
/// Longer ones keep it busy, so that rows of A have to be longer and sums to be of more products.
constexpr std::int64_t spgemm_cut_short = 32;
inline constexpr SpgemmCut spgemm_cut_of_short{spgemm_wanted_pieces, 256, 2},
    spgemm_cut_of_long{2 * spgemm_wanted_pieces, 512, 8};
/// Results of pieces, at most: 1.6 GB in FP64.
constexpr std::int64_t spgemm_most_results = std::int64_t{1} << 27;
/// Pieces of that many entries, at most.
constexpr std::int64_t spgemm_pieces(std::int64_t rows, std::int64_t entries, std::int64_t piece) {
  return rows + entries / piece;
}
/// Entries of A per piece where its rows are cut (SpgemmLongRows): there are too few of them for a device, they are
/// long, and what pieces have as results, up to `cols` each, is at most a share of the products and
/// spgemm_most_results. Else 0. @param products  as far as sizes tell
inline std::int64_t spgemm_piece(std::int64_t rows, std::int64_t entries, std::int64_t cols, std::int64_t products) {
  const SpgemmCut& of = products < spgemm_cut_short * entries ? spgemm_cut_of_short : spgemm_cut_of_long;
  if (rows <= 0 || cols <= 0 || rows > spgemm_most_cut || entries < of.least_row * rows) return 0;
  const std::int64_t results = std::min(products / of.share, spgemm_most_results);
  const std::int64_t most = std::min(of.wanted, results / cols - rows);  // beside one per row
  if (most < rows) return 0;
  return std::max(spgemm_least_piece, (entries + most - 1) / most);
}

/// Few rows of A that are very long among others that are not: what the longest takes per entry (a thread block goes
/// through its row while others wait, and adds its products of one column one after the other; where C is narrow, each
/// of few parts goes through all of it), against what two products, the second with an entry per entry of C, take more,
/// and what a device has to do meanwhile in any case. Seconds (perf_test/notes/spgemm.md, "Few, very long rows of
/// A").
constexpr double spgemm_long_entry_seconds = 32e-9, spgemm_long_entry_of_narrow_seconds = 90e-9,
                 spgemm_second_seconds = 200e-6, spgemm_second_entry_seconds = 50e-12, spgemm_product_seconds = 40e-12;
/// Columns of C up to which it is narrow. Two of 2000 and 60,000 columns were looked at.
constexpr std::int64_t spgemm_narrow = 16384;
/// Entries of a piece there.
constexpr std::int64_t spgemm_long_row_piece = 512;
/// Entries of A per piece, where a look at A and B found rows so long that they are cut; else 0.
/// @param rows, entries  of A; @param cols  of C
inline std::int64_t spgemm_piece_of_long_rows(const SpgemmTotals& look, std::int64_t rows, std::int64_t entries,
                                              std::int64_t cols) {
  std::int64_t longest = 0;
  for (int i = 0; i < SpgemmTotals::lengths; ++i) {
    if (look.very_long[i] > 0) longest = SpgemmTotals::length(i);
  }
  const auto of = [](std::int64_t n, double seconds) { return static_cast<double>(n) * seconds; };
  const double gain =
      of(longest, cols <= spgemm_narrow ? spgemm_long_entry_of_narrow_seconds : spgemm_long_entry_seconds);
  const double cost = spgemm_second_seconds + of(look.entries, spgemm_second_entry_seconds);
  if (gain <= cost + of(look.products, spgemm_product_seconds)) return 0;
  const bool fits = look.products <= spgemm_most_results &&
                    spgemm_pieces(rows, entries, spgemm_long_row_piece) <= std::numeric_limits<std::int32_t>::max();
  return fits ? spgemm_long_row_piece : 0;
}

/// Products of a part of a large row of C (SpgemmRowSizes::each_part): as many parts as pieces above, where there are
/// so few products that a device would have fewer.
constexpr std::int64_t spgemm_small_part(std::int64_t products) {
  return std::min(SpgemmRowSizes::part_products, std::max<std::int64_t>(products / spgemm_wanted_pieces, 1024));
}

/// a b, or the most that there is.
constexpr std::size_t spgemm_times(std::size_t a, std::size_t b) {
  const std::size_t most = std::numeric_limits<std::size_t>::max();
  return a != 0 && b > most / a ? most : a * b;
}
constexpr std::size_t spgemm_plus(std::size_t a, std::size_t b) {
  const std::size_t most = std::numeric_limits<std::size_t>::max();
  return b > most - a ? most : a + b;
}

/// What Dia and Ell may take where no limit is given: matrices of which they take more are too irregular for them.
inline std::size_t spgemm_format_room(std::size_t matrices, std::size_t most) {
  return most > 0 ? most : std::max(spgemm_small_scratch, spgemm_times(4, matrices));
}

/// Rows of a diagonal as it is stored: whole words of 64, an odd number of them, so that neighbouring diagonals do not
/// compete for the same lines of a cache.
constexpr std::int64_t spgemm_diagonal_rows(std::int64_t rows) { return rows == 0 ? 0 : 64 * ((rows + 63) / 64 | 1); }
/// A matrix by diagonals: a number and a bit per row and diagonal, a word of neither before and behind.
constexpr std::size_t spgemm_diagonals_bytes(std::int64_t rows, std::int64_t diagonals, std::size_t scalar_bytes) {
  const auto slots = static_cast<std::size_t>(spgemm_diagonal_rows(rows)), n = static_cast<std::size_t>(diagonals);
  return spgemm_plus(spgemm_times(n, slots * scalar_bytes + (slots / 64 + 2) * 8 + 8), 128 * scalar_bytes + 8);
}
/// What Dia allocates at most for A (rows_a rows) and B: both by diagonals, and lists of the pairs of diagonals and of
/// the diagonals of C, which is never stored by diagonals.
constexpr std::size_t spgemm_dia_bytes(std::int64_t rows_a, std::int64_t diagonals_a, std::int64_t rows_b,
                                       std::int64_t diagonals_b, std::size_t scalar_bytes) {
  const std::size_t pairs = spgemm_times(static_cast<std::size_t>(diagonals_a), static_cast<std::size_t>(diagonals_b));
  return spgemm_plus(spgemm_plus(spgemm_diagonals_bytes(rows_a, diagonals_a, scalar_bytes),
                                 spgemm_diagonals_bytes(rows_b, diagonals_b, scalar_bytes)),
                     spgemm_times(pairs, 24));
}
/// Columns that a row of C may have, by the longest rows of A and B.
constexpr std::size_t spgemm_ell_width(std::int64_t width_a, std::int64_t width_b, std::int64_t cols) {
  return std::min(static_cast<std::size_t>(cols),
                  spgemm_times(static_cast<std::size_t>(width_a), static_cast<std::size_t>(width_b)));
}
/// What Ell allocates at most: A and B padded to their longest rows, and the columns of C padded to what they may be.
constexpr std::size_t spgemm_ell_bytes(std::int64_t rows_a, std::int64_t width_a, std::int64_t rows_b,
                                       std::int64_t width_b, std::int64_t cols, std::size_t scalar_bytes,
                                       std::size_t ordinal_bytes) {
  const auto m = static_cast<std::size_t>(rows_a), k = static_cast<std::size_t>(rows_b);
  const std::size_t slot = scalar_bytes + ordinal_bytes;
  return spgemm_plus(spgemm_plus(spgemm_times(m, spgemm_times(static_cast<std::size_t>(width_a), slot)),
                                 spgemm_times(k, spgemm_times(static_cast<std::size_t>(width_b), slot))),
                     spgemm_times(m, spgemm_times(spgemm_ell_width(width_a, width_b, cols), ordinal_bytes)));
}

}  // namespace Impl
}  // namespace Tessera

#endif
