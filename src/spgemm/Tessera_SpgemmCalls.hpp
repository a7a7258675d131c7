// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPGEMM_SPGEMM_CALLS_HPP
#define TESSERA_SPGEMM_SPGEMM_CALLS_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "Tessera_Compat.hpp"
#include "Tessera_Error.hpp"
#include "core/Tessera_HugePages.hpp"
#include "core/Tessera_VectorOperand.hpp"
#include "spgemm/Tessera_SpgemmOptions.hpp"

/// \file
/// What calls of SpgemmPlan and spgemm() have beside the work: checks of C's arrays, and a plan that is used once.

namespace Tessera {

template <class Csr>
class SpgemmPlan;

namespace Impl {

/// An array of C. @throw DimensionMismatch, InvalidArgument
template <class Csr, class Element, class View>
void check_spgemm_array(const char* name, const View& view, std::size_t extent) {
  static_assert(Compat::is_view_v<View> && Compat::view_rank<View> == 1 &&
                    std::is_same_v<typename View::non_const_value_type, Element> &&
                    std::is_same_v<typename View::memory_space, typename Csr::memory_space>,
                "Tessera::SpgemmPlan: row_map, entries and values are Views of rank 1 with the types of A's");
  require<DimensionMismatch>(view.extent(0) == extent, [&] {
    return "spgemm: " + std::string(name) + " has " + std::to_string(view.extent(0)) + " elements, C needs " +
           std::to_string(extent);
  });
  require<InvalidArgument>(view.extent(0) <= 1 || view.stride(0) == 1,
                           [&] { return "spgemm: " + std::string(name) + " must have unit stride"; });
  require_memory("spgemm", name, view.data(), extent != 0);
}

/// An array that a phase writes, and arrays that it reads. @throw InvalidArgument
template <class View, class... Read>
void require_spgemm_apart(const char* name, const View& view, const char* names, const Read&... read) {
  require<InvalidArgument>(!(overlap(matrix_of(view), matrix_of(read)) || ...),
                           [&] { return "spgemm: " + std::string(name) + " overlaps " + names; });
}
/// And the matrices.
template <class View, class Csr>
void require_spgemm_apart(const char* name, const View& view, const Csr& A, const Csr& B) {
  require_spgemm_apart(name, view, "an array of A or B", A.row_map(), A.entries(), A.values(), B.row_map(), B.entries(),
                       B.values());
}

/// For plans that are used once: work begins before C has its row map.
struct SpgemmOnce {
  template <class Csr, class Exec>
  static SpgemmPlan<Csr> plan(const Exec& space, const Csr& A, const Csr& B, const SpgemmOptions& options) {
    return SpgemmPlan<Csr>(space, A, B, options, true);
  }
  template <class Plan>
  static std::size_t kept_bytes(const Plan& plan) {
    return plan.options_.keep_memory ? plan.body_->kept_bytes() : 0;
  }
  template <class Plan, class Exec>
  static std::int64_t start(Plan& plan, const Exec& space) {
    return plan.body_->start_once(space);
  }
  /// @param row_map, entries, values  with room for as many entries as start() said  @return nnz(C)
  template <class Plan, class Exec, class Offset, class Ordinal, class Scalar>
  static std::int64_t both_phases(Plan& plan, const Exec& space, Offset* row_map, Ordinal* entries, Scalar* values) {
    return plan.body_->finish_once(space, reinterpret_cast<typename Plan::Offset*>(row_map), entries, values);
  }
  /// Of an array that is longer than n.
  template <class View>
  static void drop_rest(const View& view, std::size_t n) {
    drop_pages(view.data() + n, (view.extent(0) - n) * sizeof(typename View::value_type));
  }
  /// C in arrays with room for `most` entries, those of integers in one allocation if they are of one type: what an
  /// allocation and a release cost a device is a good part of a small product.
  template <class Csr, class Plan, class Exec, class Make>
  static Csr finish(Plan& plan, const Exec& space, std::size_t most, const Make& make) {
    using Offset = typename Csr::size_type;
    using Ordinal = typename Csr::ordinal_type;
    const auto part = [](const auto& view, std::size_t begin, std::size_t n) {
      return std::decay_t<decltype(view)>(Kokkos::subview(view, std::make_pair(begin, begin + n)));
    };
    const std::size_t offsets = static_cast<std::size_t>(plan.rows()) + 1;
    const auto values = make("C values", typename Csr::value_type(), most);
    const auto into = [&](const auto& row_map, const auto& entries, std::size_t first) {
      const auto nnz =
          static_cast<std::size_t>(both_phases(plan, space, row_map.data(), entries.data() + first, values.data()));
      if constexpr (Compat::is_host_v<Exec>) {
        drop_rest(entries, first + nnz);
        drop_rest(values, nnz);
      }
      return Csr(plan.rows(), plan.cols(), row_map, part(entries, first, nnz), part(values, 0, nnz));
    };
    if constexpr (std::is_same_v<Offset, Ordinal>) {
      const std::size_t first = (offsets + 63) / 64 * 64;
      const auto both = make("C row_map and entries", Ordinal(), first + most);
      return into(part(both, 0, offsets), both, first);
    } else {
      return into(make("C row_map", Offset(), offsets), make("C entries", Ordinal(), most), 0);
    }
  }
};

}  // namespace Impl
}  // namespace Tessera

#endif
