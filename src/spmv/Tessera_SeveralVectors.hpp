// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMV_SEVERAL_VECTORS_HPP
#define TESSERA_SPMV_SEVERAL_VECTORS_HPP

#include <cstdint>
#include <mutex>
#include <optional>
#include <type_traits>

#include "core/Tessera_VectorOperand.hpp"
#include "spmm/Tessera_GeSpmmInstances.hpp"

/// \file
/// Several vectors at once on hosts: SpMM straight from compressed rows, which reads an entry once for all of them.
/// Formats of SpMV read each vector alone (perf_test/notes/hosts.md, "Several vectors").

namespace Tessera {
namespace Impl {

/// What a plan of SpMV on hosts has beside its engine; set up by the first product that comes here.
template <class Csr>
class SeveralVectors {
 public:
  using Exec = typename Csr::execution_space;
  using Value = typename Csr::value_type;

  /// Whether the product was done. Takes turns where host threads multiply at the same time.
  /// @param blocks  column blocks of the plan's format; 1: none
  template <class XT, class YT>
  bool apply(const Exec& space, double alpha, const Csr& A, const Vectors<const XT>& x, double beta,
             const Vectors<YT>& y, int blocks) const {
    if constexpr (exists<XT, YT>) {
      if (!enough<XT>(A, x, blocks)) return false;
      const std::lock_guard<std::mutex> turn(mutex_);
      if (!engine_) {
        engine_.emplace(space, A, ScalarTraits<Value>::precision, SpmmOptions(), true, nullptr, GeSpmmPattern());
      }
      const Dense<const XT> b = dense_of(x);
      const Dense<YT> c = dense_of(y);
      if (x.column_stride != 1 && sizeof(XT) < 4) {
        // Slices read one vector after the other in three quarters of the time.
        const ColumnReads reads = engine_->column_reads(b, c);
        if (!ColumnReads::one_after_other(reads.rows, reads.nnz, reads.columns)) return false;
        if (4 * reads.copied() > 3 * reads.in_place()) return false;
      }
      const std::int64_t last = (x.rows - 1) * x.stride + (x.columns - 1) * x.column_stride;
      engine_->apply(space, alpha, b, static_cast<std::size_t>(last + 1), beta, c);
      return true;
    }
    return false;
  }
  void update(const Exec& space, const Csr& A) {
    if (engine_) engine_->update(space, A);
  }
  std::size_t format_bytes() const { return engine_ ? engine_->format_bytes() : 0; }

 private:
  /// Combinations of types that plans are compiled for.
  template <class XT, class YT>
  static constexpr bool exists = (std::is_same_v<Value, XT> &&
                                  (std::is_same_v<XT, YT> || (sizeof(XT) == 2 && std::is_same_v<YT, float>))) ||
                                 (std::is_same_v<Value, float> && std::is_same_v<XT, double> &&
                                  std::is_same_v<YT, double>);

  /// Two vectors or more in rows, four in columns. Of three in columns, slices are faster in column blocks and where
  /// rows are long, but very long ones, or where rows are short and uneven while the second cache holds x; of up to
  /// five in many column blocks, since SpMM finds a line of x in no near cache.
  template <class XT>
  static bool enough(const Csr& A, const Vectors<const XT>& x, int blocks) {
    constexpr int many_blocks = 16, most_in_blocks = 5;
    if (x.column_stride == 1 || x.columns < 3) return x.column_stride == 1 && x.columns > 1;
    if (x.columns > 3) return x.columns > most_in_blocks || blocks < many_blocks;
    if (blocks > 1) return false;
    const auto rows = static_cast<std::int64_t>(A.rows()), nnz = static_cast<std::int64_t>(A.nnz());
    const bool cached = x.rows * x.columns * std::int64_t{sizeof(XT)} <= ColumnReads::cached;
    if (sizeof(XT) < 4 || (cached && LengthOrder::suits(rows, nnz, x.columns))) return false;
    return nnz < 24 * rows || nnz >= 512 * rows;
  }

  mutable std::mutex mutex_;
  mutable std::optional<GeSpmmEngine<Csr>> engine_;
};

}  // namespace Impl
}  // namespace Tessera

#endif
