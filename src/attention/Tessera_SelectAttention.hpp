// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_ATTENTION_SELECT_ATTENTION_HPP
#define TESSERA_ATTENTION_SELECT_ATTENTION_HPP

#include <cstdlib>
#include <string>
#include <utility>

#include "attention/Tessera_AttentionOptions.hpp"
#include "attention/Tessera_AttentionShares.hpp"
#include "core/Tessera_Selection.hpp"

namespace Tessera {
namespace Impl {

using AttentionChoice = Choice<AttentionAlgorithm>;

/// What TESSERA_FORCE_ATTENTION_ALGORITHM asks for. @throw InvalidArgument  unknown name
inline AttentionAlgorithm forced_attention_algorithm() {
  const char* const name = std::getenv("TESSERA_FORCE_ATTENTION_ALGORITHM");
  return name == nullptr || *name == 0 ? AttentionAlgorithm::Auto : parse_attention_algorithm(name);
}

/// Which algorithm and backend an AttentionPlan takes before it has looked at the pattern, and the sentence that says
/// why. Where a backend has a fused kernel for the matrix's type, that one runs (windows; the pattern decides how
/// high, and of FP32 whether it is this one, that by rows or Chain). Else where it has one by rows, the pattern decides
/// between that one and Chain.
template <class Csr>
class AttentionSelection {
 public:
  using Exec = typename Csr::execution_space;

  /// @throw InvalidArgument
  explicit AttentionSelection(const AttentionOptions& options) : options_(options), place_(options.backend) {
    require<InvalidArgument>(options.dimension_hint >= 0, [&] {
      return "AttentionOptions::dimension_hint must not be negative, is " + std::to_string(options.dimension_hint);
    });
    require<InvalidArgument>(options.window_height >= 0 && options.window_height <= 2, [&] {
      return "AttentionOptions::window_height must be 1 or 2, or 0, is " + std::to_string(options.window_height);
    });
    constexpr Precision natural = ScalarTraits<typename Csr::value_type>::precision;
    choice_.precision = precision_of(options.compute, natural);
    require<NotSupported>(
        choice_.precision == natural || (natural == Precision::FP32 && choice_.precision == Precision::TF32), [&] {
          return std::string("attention: operands of ") + to_string(natural) + " are not multiplied in " +
                 to_string(choice_.precision) + " (fp32 is in tf32): convert them";
        });
    choice_.device = Exec::name();
    asked_ = options.algorithm != AttentionAlgorithm::Auto ? options.algorithm : forced_attention_algorithm();
  }

  /// @throw NotSupported, NotCompiled
  AttentionChoice choose() {
    place_.check_place();
    const bool elsewhere = place_.forced() != Backend::Auto && place_.forced() != Backend::Kokkos;
    if (asked_ == AttentionAlgorithm::Rows) {
      if (own_rows(false)) {
        place_.take_backend(choice_, asked_, "Rows was asked for");
        return choice_;
      }
      require<NotSupported>(options_.fallback, [&] {
        return std::string("attention: Rows has no kernel for ") + to_string(choice_.precision) +
               " and these columns here, only backends of devices have one, for fp32 and fp64 and columns of 32 bits "
               "(fallback = false)";
      });
      choice_.fallback = true;
      asked_ = AttentionAlgorithm::Fused;
    }
    if (asked_ != AttentionAlgorithm::Chain && own_fused()) {
      place_.take_backend(choice_, AttentionAlgorithm::Fused,
                          asked_ == AttentionAlgorithm::Fused ? "Fused was asked for; the backend has a kernel for it"
                                                              : "the backend has a fused kernel for this type");
      if (asked_ == AttentionAlgorithm::Auto) candidates(AttentionAlgorithm::Fused, AttentionAlgorithm::Chain);
      if (asked_ == AttentionAlgorithm::Auto && own_rows(true))
        choice_.candidates.push_back({AttentionAlgorithm::Rows, 3});
      choice_.predict = true;
      return choice_;
    }
    if (asked_ == AttentionAlgorithm::Auto && own_rows(true)) {
      place_.take_backend(choice_, AttentionAlgorithm::Rows, "the backend has a kernel by rows for this type");
      candidates(AttentionAlgorithm::Rows, AttentionAlgorithm::Chain);
      choice_.predict = true;
      return choice_;
    }
    if (asked_ == AttentionAlgorithm::Fused && elsewhere) {
      require<NotSupported>(options_.fallback, [&] {
        return std::string("attention: Fused has no kernel for ") + to_string(choice_.precision) + " in backend '" +
               to_string(place_.forced()) + "' (fallback = false)";
      });
      choice_.fallback = true;
      return take(AttentionAlgorithm::Chain, "Fused has no kernel in the backend that was asked for; Chain instead");
    }
    if (asked_ == AttentionAlgorithm::Fused) return take(asked_, "Fused was asked for");
    if (asked_ == AttentionAlgorithm::Chain) return take(asked_, "Chain was asked for");
    if (elsewhere) return take(AttentionAlgorithm::Chain, "a backend was asked for, whose SDDMM and SpMM make a chain");
    if (place_.host()) {
      choice_.predict = true;
      return take(AttentionAlgorithm::Fused, "hosts keep the scores of a row in their first cache");
    }
    const bool narrow = sizeof(typename Csr::value_type) == 2,
               own = place_.forced() == Backend::Auto && place_.why_not().empty();
    if (own) {
      candidates(AttentionAlgorithm::Chain, AttentionAlgorithm::Fused);
      return take(AttentionAlgorithm::Chain, narrow ? "the device's backend has an SDDMM for this type"
                                                    : "the device's backend has SDDMM and SpMM for this type");
    }
    candidates(AttentionAlgorithm::Fused, AttentionAlgorithm::Chain);
    return take(AttentionAlgorithm::Fused, "no backend multiplies such operands here");
  }

 private:
  /// Whether the backend that was asked for has a fused kernel for the matrix's type, or that of the device for the
  /// columns as well that Q, K and V will have.
  bool own_fused() const {
    const AttentionKernels* const kernels = own_kernels();
    if (kernels == nullptr || kernels->forward == nullptr) return false;
    const AttentionShape shape = kernels->shape(choice_.precision);
    const int d = options_.dimension_hint;
    const bool fits = d > 0 && d <= shape.most_columns && d >= shape.least_inner;
    return shape.rows > 0 && (fits || place_.forced() != Backend::Auto);
  }
  /// The same of a kernel by rows; hinted: for the columns that are expected as well.
  bool own_rows(bool hinted) const {
    const AttentionKernels* const kernels = own_kernels();
    if (!attention_rows_read<Csr> || kernels == nullptr || kernels->rows_forward == nullptr) return false;
    const AttentionRowsLimits limits = kernels->rows_limits(choice_.precision);
    const int d = options_.dimension_hint;
    if (limits.columns == 0) return false;
    return !hinted || (d > 0 && d <= limits.most_columns);
  }
  /// Those of the backend that was asked for, or of the device; null: none.
  const AttentionKernels* own_kernels() const {
    if (place_.forced() == Backend::Kokkos || place_.forced() == Backend::Reference) return nullptr;
    if ((place_.host() && !place_.emulated()) || !place_.why_not().empty()) return nullptr;
    return &kernel_table(place_.backend()).attention;
  }
  /// Best first; costs are ranks, since no model of them exists.
  void candidates(AttentionAlgorithm first, AttentionAlgorithm second) {
    choice_.candidates = {{first, 1}, {second, 2}};
  }
  /// @throw NotSupported
  AttentionChoice take(AttentionAlgorithm algorithm, std::string why) {
    require<NotSupported>(algorithm == AttentionAlgorithm::Chain || choice_.precision != Precision::TF32, [&] {
      return why +
             "; and the portable kernel has no tf32: use ComputeType::FP32, Chain, or a backend with matrix units "
             "and a dimension_hint that it takes";
    });
    choice_.algorithm = algorithm;
    choice_.backend = Backend::Kokkos;
    if (algorithm == AttentionAlgorithm::Chain && place_.forced() != Backend::Auto) choice_.backend = place_.forced();
    choice_.why = std::move(why);
    return choice_;
  }

  AttentionOptions options_;
  BackendSelection<Exec> place_;
  AttentionChoice choice_;
  AttentionAlgorithm asked_ = AttentionAlgorithm::Auto;
};

}  // namespace Impl
}  // namespace Tessera

#endif
