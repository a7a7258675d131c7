// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_OPTIONS_HPP
#define TESSERA_OPTIONS_HPP

#include <cstddef>

#include "Tessera_Types.hpp"

namespace Tessera {

/// Caller-owned scratch in a memory space the execution space can access, aligned to 16 bytes.
/// bytes == 0: the plan allocates its own. Plans that share a workspace must not be applied at the same time.
struct Workspace {
  void* data = nullptr;   ///< not read before it was written
  std::size_t bytes = 0;  ///< at least the plan's workspace_bytes(), or 0
};

/// Whether the matrix, read once per apply, passes the first-level cache by.
enum class CacheBypass {
  Auto,    ///< Always, unless the whole format fits into the last-level cache (measured: perf_test/notes/spmv-dasp.md)
  Always,  ///< leaves the first level to x
  Never
};

/// In which range rows are sorted by length.
enum class SortRange {
  Auto,    ///< Global for small matrices and where the lengths of the medium and short rows vary much, else Window
  Window,  ///< inside windows of 2048 rows: keeps the locality of x and y
  Global   ///< over the whole matrix, as in the paper
};

/// Parameters of the DASP format [Lu & Liu, SC'23]; the defaults are the paper's where the paper has one, but for
/// max_medium_length (perf_test/notes/spmv-dasp.md).
struct DaspOptions {
  int max_medium_length = 0;         ///< longer rows are cut into pieces, 4 to 255 (the paper: MAX_LEN - 1); 0: by size
  double threshold = 0.75;           ///< least share of real entries in a step of the regular part, in (0, 1]
  int min_pairs = 128;               ///< rows of 1 and 3 are paired only if there are this many of each
  SortRange sort = SortRange::Auto;  ///< where rows are sorted by length
  int entries_per_wave = 0;   ///< work of a wave: decides row-blocks per wave and pieces of long rows; 0: by size
  bool adaptive_work = true;  ///< false: one row-block, one short step per wave
  CacheBypass bypass = CacheBypass::Auto;  ///< how the matrix is read
};

/// Parameters of packed slices. The defaults follow the matrix; perf_test/notes/spmv-packed.md has the measurements.
struct PackedOptions {
  int max_steps = 0;    ///< a row gets the fewest lanes with which it takes no more steps; 0: 8, 16 or 32 by size
  int split_steps = 0;  ///< rows of more steps of a whole wave are cut; 0: by size
  int window = 0;       ///< rows sorted among themselves, rounded down to a multiple of 12; 0: by size
  double natural_padding = 0.02;       ///< rows are sorted only where their natural order pads more than this
  bool narrow_indices = true;          ///< 8, 16 or 24 bits where the columns of a slice allow it
  bool index_free = true;              ///< one offset per step where rows repeat, shifted (stencils)
  bool shared_patterns = true;         ///< one index list for two or three rows with equal columns
  long long least_shared = 1000000;    ///< ... in matrices of at least so many entries
  bool even_slices = true;             ///< slices of one size, which need no records, where rows are few and even
  long long most_even = 300000;        ///< ... in matrices of at most so many entries
  bool diagonals = true;               ///< one list of offsets for all rows, where they have no others (stencils)
  long long least_diagonals = 100000;  ///< ... in matrices of at least so many entries
  long long least_pairs = 500000;      ///< two slices per wave from so many rows on: few diagonals, or short even rows
  bool value_classes = true;           ///< store values in fewer bytes where that loses nothing
  int hubs = -1;                       ///< columns whose x stays in shared memory; -1: by size and skew, 0: none
  int renumber = -1;  ///< columns in the order of their use, in a copy of x; -1: by size and skew, 0: no, 1: yes
  /// Blocks of columns whose x fits there, on hosts into the first caches (at most 128; sums of rows are then added in
  /// another order); -1: by a model of the time, 0 or 1: none. Where columns descend inside rows there are none.
  int column_blocks = -1;
  /// Blocks of rows whose sums fit there, too, in so many shares of x (at most 64; NVIDIA devices); -1: by size, 0:
  /// none. Where columns descend inside rows, or pieces of rows are too long, there are none; Statistics::classes
  /// tells.
  int cells = -1;
  CacheBypass bypass = CacheBypass::Auto;  ///< how the matrix is read
};

/// How Auto decides: from features of the matrix and predicted bytes, or by timing the two best predictions as well.
/// These are timed on vectors of the matrix's type, so that Measure is Predict where compute asks for another
/// precision, and with a caller's workspace, which is sized for one algorithm.
enum class Selection { Predict, Measure };

/// Parameters of CSR5 [Liu & Vinter, ICS'15].
struct Csr5Options {
  int sigma = 0;  ///< entries of a lane in a tile, 1..32; 0: the paper's choice by mean row length and omega
};

/// What a caller may choose of an SpmvPlan; the defaults let Auto choose.
struct SpmvOptions {
  SpmvAlgorithm algorithm = SpmvAlgorithm::Auto;  ///< stronger than TESSERA_FORCE_ALGORITHM
  Selection selection = Selection::Predict;       ///< how Auto decides
  ComputeType compute = ComputeType::Auto;        ///< Auto: the precision of the matrix
  Backend backend = Backend::Auto;                ///< stronger than TESSERA_FORCE_BACKEND
  Reuse reuse = Reuse::Many;                      ///< Once: no conversion
  bool prepare_transpose = false;                 ///< also build op(A) = A^T (doubles the memory)
  bool updatable = true;                          ///< keep what update_values needs: up to 12 bytes per row
  bool fallback = true;                           ///< false: NotSupported instead of another algorithm
  Workspace workspace{};                          ///< instead of scratch of the plan's own
  DaspOptions dasp{};                             ///< where DASP is chosen
  PackedOptions packed{};                         ///< where packed slices are
  Csr5Options csr5{};                             ///< where CSR5 is
};

/// How lanes of FlashSparse read B [Shi et al., PPoPP'25, section 4.3].
enum class FlashMapping {
  Direct,    ///< lane group g reads columns g and g + 8 of 16
  Coalesced  ///< ... columns 2g and 2g + 1: two neighbours in one load
};

/// Parameters of FlashSparse on ME-BCRS [Shi et al., PPoPP'25].
struct FlashOptions {
  int vector_length = 8;  ///< rows of a window; 16: the paper's comparison (on AMD's units always 16)
  bool padded = false;    ///< store whole blocks (SR-BCRS), the paper's other comparison
  FlashMapping mapping = FlashMapping::Coalesced;  ///< how lanes read B
  int max_blocks = 0;                              ///< blocks that a wave takes; heavier windows are split; 0: by size
};

/// Parameters of panels.
struct PanelOptions {
  int max_blocks = 0;  ///< blocks that a wave takes; heavier windows are split; 0: by size
};

/// Whether SpMM by rows in TF32 first copies B, and SDDMM on matrix units Y, rounded to TF32, at 20 bits per element
/// (TF32 has 19). Rows that are fetched many times are 5/8 of their size then; the copy takes a pass over B or Y and a
/// launch per apply. Without it B stays as it is and SpMM's products by rows are those of FP32; those of units round
/// in any case, so that results are the same. Backends with kernels of their own; no effect in other precisions.
enum class Tf32Copy {
  Auto,   ///< where the matrix and num_columns_hint or inner_hint say that it saves time
  Never,  ///< SpMM: products of FP32
  Always  ///< but for more than 2^34 elements of B or Y, operands that no backend takes, and a caller's workspace
          ///< without room
};

/// Whether SpMM by rows spreads each row over as many teams of lanes as its length asks for, up to a thread block, and
/// finishes rows that are longer still within the one launch: for matrices that leave most of a device idle. Backends
/// with kernels of their own.
enum class RowSpread {
  Auto,  ///< where the matrix and num_columns_hint say that it saves time; not where max_piece is given
  Never,
  Always  ///< but for matrices of 2^22 rows or entries and more
};

/// Parameters of products straight from compressed rows.
struct GeSpmmOptions {
  int max_piece = 0;                    ///< entries of a piece of a row; longer rows are split; 0: by size
  Tf32Copy tf32_copy = Tf32Copy::Auto;  ///< of B, for ComputeType::TF32
  RowSpread spread = RowSpread::Auto;   ///< of rows over teams of lanes
};

/// Whether Panels and FlashSparse reorder rows before they form windows (GeSpmm and Csr have none and ignore it). The
/// user sees nothing of it: C keeps its order, update_values and transposes work as ever. SpmmAlgorithm::Auto weighs
/// the algorithms by the natural order.
enum class RowReordering {
  Auto,      ///< Nearest or Clusters where a sample of windows says that a tenth of the fetched rows of B is saved
  None,      ///< rows stay in their order; costs nothing
  Nearest,   ///< always by first column [GE-SpMM]: reorder::nearest_rows
  Clusters,  ///< always by minhash signatures of the columns: reorder::clustered_rows
  Greedy     ///< always by exact greedy clustering on the host, O(rows^2): reorder::greedy_rows
};

/// What a caller may choose of an SpmmPlan; members that SpmvOptions has as well mean the same.
struct SpmmOptions {
  SpmmAlgorithm algorithm = SpmmAlgorithm::Auto;   ///< stronger than TESSERA_FORCE_SPMM_ALGORITHM
  Selection selection = Selection::Predict;        ///< how Auto decides
  ComputeType compute = ComputeType::Auto;         ///< Auto: the precision of the matrix
  Backend backend = Backend::Auto;                 ///< stronger than TESSERA_FORCE_BACKEND
  Reuse reuse = Reuse::Many;                       ///< Once: no conversion
  int num_columns_hint = 64;                       ///< N that applies will mostly have; Auto weighs formats for it, and
                                                   ///< takes rows of B to be contiguous without gaps
  bool prepare_transpose = false;                  ///< also build op(A) = A^T (doubles the memory)
  bool updatable = true;                           ///< keep what update_values needs
  bool fallback = true;                            ///< false: NotSupported instead of another algorithm
  RowReordering reordering = RowReordering::None;  ///< of windows' rows, invisible in C
  Workspace workspace{};                           ///< instead of scratch of the plan's own
  FlashOptions flash{};                            ///< where FlashSparse is chosen
  PanelOptions panels{};                           ///< where panels are
  GeSpmmOptions gespmm{};                          ///< where GeSpmm is
};

}  // namespace Tessera

#endif
