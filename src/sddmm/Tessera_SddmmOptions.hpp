// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SDDMM_SDDMM_OPTIONS_HPP
#define TESSERA_SDDMM_SDDMM_OPTIONS_HPP

#include <string>

#include "Tessera_Options.hpp"

namespace Tessera {

/// Rows: entry by entry on CUDA cores or CPUs, equal numbers of entries per wave. Panels: windows of rows on matrix
/// units, rows of Y read once per window, swapped and transposed as in FlashSparse [Shi et al., PPoPP'25]. Csr: Rows
/// without any set-up.
enum class SddmmAlgorithm { Auto, Panels, Rows, Csr };

/// What a caller may choose of an SddmmPlan; members that SpmmOptions has as well mean the same.
struct SddmmOptions {
  SddmmAlgorithm algorithm = SddmmAlgorithm::Auto;  ///< stronger than TESSERA_FORCE_SDDMM_ALGORITHM
  Selection selection = Selection::Predict;         ///< how Auto decides
  ComputeType compute = ComputeType::Auto;          ///< Auto: the precision of the matrix
  Backend backend = Backend::Auto;                  ///< stronger than TESSERA_FORCE_BACKEND
  Reuse reuse = Reuse::Many;                        ///< Once: no set-up
  bool scale_by_values = false;                     ///< multiply by S, the numbers of the matrix
  int inner_hint = 64;                              ///< K that applies will mostly have
  bool updatable = true;                            ///< update_values may be called
  bool fallback = true;                             ///< false: NotSupported instead of another algorithm
  Workspace workspace{};                            ///< instead of scratch of the plan's own
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
    case SddmmAlgorithm::Csr:
      return "csr";
  }
  return "?";
}
/// See parse_spmv_algorithm.
inline SddmmAlgorithm parse_sddmm_algorithm(const std::string& name) {
  constexpr SddmmAlgorithm all[] = {SddmmAlgorithm::Auto, SddmmAlgorithm::Panels, SddmmAlgorithm::Rows,
                                    SddmmAlgorithm::Csr};
  return Impl::parse_enum(name, all, "SDDMM algorithm");
}

}  // namespace Tessera

#endif
