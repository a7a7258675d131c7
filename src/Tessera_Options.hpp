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
  void* data = nullptr;
  std::size_t bytes = 0;
};

/// Whether the matrix, read once an apply, passes the first-level cache by.
enum class CacheBypass {
  Auto,    ///< Always, unless the whole format fits into the last-level cache (measured: perf_test/NOTES.md)
  Always,  ///< leaves the first level to x
  Never
};

/// In which range rows are sorted by length.
enum class SortRange {
  Auto,    ///< Global for small matrices and where the lengths of the medium and short rows vary much, else Window
  Window,  ///< inside windows of 2048 rows: keeps the locality of x and y
  Global   ///< over the whole matrix, as in the paper
};

/// Parameters of the DASP format [Lu & Liu, SC'23]; the defaults are the paper's where the paper has one.
struct DaspOptions {
  int max_medium_length = 255;  ///< longer rows are cut into pieces (MAX_LEN - 1; 4 <= value <= 255)
  double threshold = 0.75;      ///< least share of real entries in a step of the regular part, in (0, 1]
  int min_pairs = 128;          ///< rows of 1 and 3 are paired only if there are this many of each
  SortRange sort = SortRange::Auto;
  int entries_per_wave = 0;   ///< work of a wave: decides row-blocks a wave and pieces of long rows; 0: by size
  bool adaptive_work = true;  ///< false: one row-block, one short step a wave
  CacheBypass bypass = CacheBypass::Auto;
};

struct SpmvOptions {
  SpmvAlgorithm algorithm = SpmvAlgorithm::Auto;
  ComputeType compute = ComputeType::Auto;
  Backend backend = Backend::Auto;
  Reuse reuse = Reuse::Many;
  bool prepare_transpose = false;  ///< also build op(A) = A^T (doubles the memory)
  bool updatable = true;           ///< keep what update_values needs: 12 bytes a row
  bool fallback = true;            ///< false: NotSupported instead of another algorithm
  double max_padding = 4.0;        ///< Auto rejects a format that stores more than max_padding * nnz slots
  Workspace workspace{};
  DaspOptions dasp{};
};

}  // namespace Tessera

#endif
