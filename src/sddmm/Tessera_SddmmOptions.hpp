// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SDDMM_SDDMM_OPTIONS_HPP
#define TESSERA_SDDMM_SDDMM_OPTIONS_HPP

#include <string>

#include "Tessera_Options.hpp"

namespace Tessera {

/// Rows: entry by entry on CUDA cores or CPUs, equal numbers of entries per wave. FlashSparse: windows of rows on
/// matrix units, rows of Y read once per window, swapped and transposed [Shi et al., PPoPP'25, section 4]; one
/// instruction high (NVIDIA: 8 rows), or the windows of the SpmmPlan that the plan is made with. Panels: FlashSparse,
/// with windows as high as the pattern wants them. Bsmr: rows of similar columns put together, columns that are dense
/// in a window of them as Panels, the other entries as Rows [BSMR-SDDMM]. Csr: Rows without any set-up. Auto takes
/// Panels, Rows or Csr.
enum class SddmmAlgorithm { Auto, Panels, Rows, FlashSparse, Bsmr, Csr };

/// Parameters of SddmmAlgorithm::Bsmr.
struct BsmrOptions {
  RowReordering reordering = RowReordering::Auto;  ///< how rows are put together
  int dense_from = 0;  ///< entries of a column in a window from which it is dense; 0: by K and the precision
  /// Columns that count as one where clusters compare rows; 0: 16 for Greedy, as published, and 1 for signatures.
  int column_block = 0;
  /// With which rows are put together, 0 to 1: reorder::GreedyRowsOptions, reorder::ClusteredRowsOptions say what that
  /// is; negative: 0.3 for Greedy, as published, and any for signatures.
  double least_similarity = -1;
};

/// What a caller may choose of an SddmmPlan; members that SpmmOptions has as well mean the same.
struct SddmmOptions {
  SddmmAlgorithm algorithm = SddmmAlgorithm::Auto;  ///< stronger than TESSERA_FORCE_SDDMM_ALGORITHM
  Selection selection = Selection::Predict;         ///< how Auto decides
  ComputeType compute = ComputeType::Auto;          ///< Auto: the precision of the matrix
  Backend backend = Backend::Auto;                  ///< stronger than TESSERA_FORCE_BACKEND
  Reuse reuse = Reuse::Many;                        ///< Once: no set-up
  bool scale_by_values = false;                     ///< multiply by S, the numbers of the matrix
  int inner_hint = 64;                              ///< K that applies will mostly have
  int window_height = 0;                            ///< in instructions: 1 or 2; 0: by algorithm and pattern
  Tf32Copy tf32_copy = Tf32Copy::Auto;              ///< of Y, for TF32 by Panels and FlashSparse
  bool updatable = true;                            ///< update_values may be called
  bool fallback = true;                             ///< false: NotSupported instead of another algorithm
  Workspace workspace{};                            ///< instead of scratch of the plan's own
  BsmrOptions bsmr{};                               ///< where Bsmr was asked for
};

/// See to_string(SpmvAlgorithm).
inline const char* to_string(SddmmAlgorithm a) {
  switch (a) {
    case SddmmAlgorithm::Auto:
      return "auto";
    case SddmmAlgorithm::Panels:
      return "panels";
    case SddmmAlgorithm::Rows:
      return "rows";
    case SddmmAlgorithm::FlashSparse:
      return "flash";
    case SddmmAlgorithm::Bsmr:
      return "bsmr";
    case SddmmAlgorithm::Csr:
      return "csr";
  }
  return "?";
}
/// See parse_spmv_algorithm.
inline SddmmAlgorithm parse_sddmm_algorithm(const std::string& name) {
  constexpr SddmmAlgorithm all[] = {SddmmAlgorithm::Auto,        SddmmAlgorithm::Panels, SddmmAlgorithm::Rows,
                                    SddmmAlgorithm::FlashSparse, SddmmAlgorithm::Bsmr,   SddmmAlgorithm::Csr};
  return Impl::parse_enum(name, all, "SDDMM algorithm");
}

}  // namespace Tessera

#endif
