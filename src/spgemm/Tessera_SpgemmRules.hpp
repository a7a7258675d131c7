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

#include "backends/interface/Tessera_SpgemmArgs.hpp"
#include "spgemm/Tessera_SpgemmOptions.hpp"

/// \file
/// The rules of Auto on hosts, and what formats take, from counts alone.

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

/// Bytes of C's columns and numbers up to which they are allocated for as many entries as rows may have, before these
/// are known: beside the search for columns (perf_test/notes/spgemm.md, "Devices").
constexpr std::size_t spgemm_little = std::size_t{1} << 25;

/// Windows of rows on FP64 matrix units (perf_test/notes/spgemm.md, "Tiles on FP64 units"): rows of A fill at least so
/// much of their union; a column of A brings so many products per row of the window, which is what the layout of its
/// row of B is paid by; C's rows have no more entries than the tiles of a window take in two rounds.
constexpr std::int32_t spgemm_window_percent = 40, spgemm_window_products = 12, spgemm_window_entries = 768;
/// Products from which on it is worth a launch to look for windows, if rows of at least half of C have many products.
constexpr std::int64_t spgemm_least_tiled_products = 1'000'000;
/// Rate of the FP64 matrix instruction below which it is a stand-in for units that a device has few of (8.6, 8.9, H800:
/// 0.5 to 2 million million; A100 20, H100 67, MI250X 48): half of what it multiplies, or more, is zeros.
constexpr double spgemm_least_matrix_rate = 8e12;

inline SpgemmWindowRule spgemm_window_rule(SpgemmTiles tiles) {
  if (tiles == SpgemmTiles::Always) return {0, 0, std::numeric_limits<std::int32_t>::max()};
  return {spgemm_window_percent, spgemm_window_products, spgemm_window_entries};
}
/// @param by_bits  rows of C with many products  @param matrix_rate  of the device's FP64 matrix units; 0: unknown
inline bool spgemm_looks_for_windows(SpgemmTiles tiles, std::int64_t products, std::int64_t by_bits, std::int64_t rows,
                                     double matrix_rate) {
  if (tiles != SpgemmTiles::Auto) return tiles == SpgemmTiles::Always && by_bits > 0;
  if (matrix_rate > 0 && matrix_rate < spgemm_least_matrix_rate) return false;
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
