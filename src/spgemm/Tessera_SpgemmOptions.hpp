// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPGEMM_SPGEMM_OPTIONS_HPP
#define TESSERA_SPGEMM_SPGEMM_OPTIONS_HPP

#include <cstddef>
#include <string>

#include "Tessera_Types.hpp"

namespace Tessera {

/// How a row of C = A B is summed [the methods of IA-SpGEMM: Xie et al., PPoPP'19, section 2]. Spa: a dense array of
/// C's columns. Hash: a table of the row's columns. Heap: a merge of the rows of B, which must be sorted. Coo: all
/// products of the row, sorted by column. Binned: rows by size, by teams with tables and windows of bits in their
/// scratch; made for devices. Dia: A and B by diagonals; for matrices of few, well filled ones, columns of A's and B's
/// rows ascending without copies. Ell: A and B padded to their longest rows; for short rows of about one length. Dia
/// and Ell predict their memory and refuse irregular matrices before they allocate. Auto is Spa, Hash, Dia or
/// Ell on hosts, as a SpgemmModel says and memory allows, and Binned on devices, where Dia and Ell are offered as well.
///
/// Time besides O(products + rows). Hash: nnz(C) log(longest row of C). Heap, Coo: products log(longest row). Binned:
/// per row of many products a bit per column from its first to its last, and per part of up to 512 entries of C's row a
/// look at each row of B. Dia: rows times pairs of diagonals, all of whose slots are multiplied, and rows times
/// diagonals of A, of B for the formats. Ell: per row of C, and per entry of A's row a walk through the columns found
/// so far.
///
/// Memory, s bytes per number. Spa, per thread: n (s + 3/16) bytes; and 8 per row of B and 12 per word of 64 columns of
/// it where B has two columns or more per word. Hash, per thread: 2 (8 + s) bytes per product of the row with most (but
/// not more than n of them), up to twice as much. Coo, per thread: 8 + s per product of that row. Heap, per thread: 32
/// bytes per entry of the longest row of A. Binned: 20 (by a backend 37) bytes per row and 8 per part of large rows of
/// C in lists, and by a backend, from symbolic() to numeric(), 4 bytes (in one call 4 + s) per entry that C may have:
/// min(products, columns from first to last) of each row, or none of it if that and the lists are more than
/// max_workspace_bytes; if the lists alone are, phases go through the rows in batches, each of which looks at B once
/// more. Where a backend cuts few, very long rows of A into pieces (never with a max_workspace_bytes): 4 + s bytes per
/// entry of the pieces' results, which are at most half of the products that sizes let expect, or, where few of many
/// rows are long, at most the products, and 2^27. Dia, for A and for B: s + 1/8 bytes per row and diagonal, and up to
/// 24 per pair of diagonals. Ell: 4 + s bytes per row of A and of B and entry of the longest one, and 4 min(n, product
/// of the two lengths) per row of C.
enum class SpgemmAlgorithm { Auto, Spa, Hash, Heap, Coo, Binned, Dia, Ell };

/// By what Auto takes an algorithm. Tree: a few comparisons of features. MatNet: a small network that sees density
/// images of A and B as well [Xie et al., PPoPP'19, section 4]; it takes 0.4 to 2 ms, so that products of less than 4
/// million multiplications are left to the tree. Both were trained on measured products; their regrets are in
/// perf_test/notes/spgemm.md.
enum class SpgemmModel { Tree, MatNet };

/// Whether Binned on a backend sums windows of 8 (AMD: 16) consecutive rows on FP64 matrix units. Auto: where their
/// rows of A have most columns in common and there are enough products, as in finite elements with several unknowns per
/// node. Always: wherever it is possible, to compare. Products are then added in the order of the window's columns of
/// A, which is that of each row, but the unit may round otherwise than a multiplication that is fused with an addition.
enum class SpgemmTiles { Auto, Never, Always };

/// What a caller may choose of an SpgemmPlan.
struct SpgemmOptions {
  SpgemmAlgorithm algorithm = SpgemmAlgorithm::Auto;  ///< stronger than TESSERA_FORCE_SPGEMM_ALGORITHM
  SpgemmModel model = SpgemmModel::Tree;              ///< of Auto; on devices Tree is the only one
  SpgemmTiles tiles = SpgemmTiles::Auto;              ///< of Binned on a backend, FP64
  /// Of Binned: Kokkos, the device's own, or on hosts an emulated one, with which Auto is Binned. The other algorithms
  /// know Kokkos. Auto: the device's own where it is built, else Kokkos. A B whose columns descend or repeat is for
  /// Kokkos whatever is asked for; statistics() says who it was.
  Backend backend = Backend::Auto;
  /// Scratch, at most; 0: as much as is of use. With less, fewer threads of a host work, and Binned on a backend finds
  /// columns twice where once needs room for them (its default: a 32nd of the device's memory, if there is as much) and
  /// goes through the rows in batches where not even lists of all of them fit; 256 rows are a batch in any case.
  /// Dia and Ell: of their formats, with which they are refused if it is too little (their default: 64 MiB or four
  /// times the bytes of A and B, whatever is more).
  std::size_t max_workspace_bytes = 0;
  /// Of spgemm() on devices, and on hosts by an emulated one: C's arrays stay when the last View of them is gone, and a
  /// later call takes them for its C, which saves it the allocation and the release, longer than a small product. Up to
  /// a 32nd of the device's memory, at least 256 MiB, are kept; release_kept_memory() and Kokkos::finalize give it
  /// back, and a call that finds no memory for C gives it back first. An array may be a sixteenth larger than C needs,
  /// one that is used again up to twice as large. Before arrays are used again everything on the device is waited for,
  /// as Kokkos does when it releases a View. false: C's arrays are its own, allocated and released as any View.
  bool keep_memory = true;
};

/// See to_string(SpmvAlgorithm).
inline const char* to_string(SpgemmAlgorithm a) {
  switch (a) {
    case SpgemmAlgorithm::Auto:
      return "auto";
    case SpgemmAlgorithm::Spa:
      return "spa";
    case SpgemmAlgorithm::Hash:
      return "hash";
    case SpgemmAlgorithm::Heap:
      return "heap";
    case SpgemmAlgorithm::Coo:
      return "coo";
    case SpgemmAlgorithm::Binned:
      return "binned";
    case SpgemmAlgorithm::Dia:
      return "dia";
    case SpgemmAlgorithm::Ell:
      return "ell";
  }
  return "?";
}
/// See parse_spmv_algorithm.
inline SpgemmAlgorithm parse_spgemm_algorithm(const std::string& name) {
  constexpr SpgemmAlgorithm all[] = {SpgemmAlgorithm::Auto, SpgemmAlgorithm::Spa, SpgemmAlgorithm::Hash,
                                     SpgemmAlgorithm::Heap, SpgemmAlgorithm::Coo, SpgemmAlgorithm::Binned,
                                     SpgemmAlgorithm::Dia,  SpgemmAlgorithm::Ell};
  return Impl::parse_enum(name, all, "SpGEMM algorithm");
}

}  // namespace Tessera

#endif
