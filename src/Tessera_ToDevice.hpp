// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_TO_DEVICE_HPP
#define TESSERA_TO_DEVICE_HPP

#include <string>
#include <type_traits>
#include <vector>

#include "Tessera_CsrView.hpp"
#include "io/Tessera_MatrixMarket.hpp"

namespace Tessera {

namespace Impl {

/// Elements rounded once to To, in the memory of Exec. The result is complete.
template <class To, class Exec, class From>
Kokkos::View<To*, Kokkos::LayoutLeft, typename Exec::device_type> device_array(const Exec& space,
                                                                               const std::string& label,
                                                                               const std::vector<From>& host) {
  const auto device =
      Compat::allocate_view<Kokkos::View<To*, Kokkos::LayoutLeft, typename Exec::device_type>>(label, host.size());
  using Host = Kokkos::View<const To*, Kokkos::LayoutLeft, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  if constexpr (std::is_same_v<To, From>) {
    Kokkos::deep_copy(space, device, Host(host.data(), host.size()));
    Compat::fence(space, label);
  } else {
    std::vector<To> rounded;
    rounded.reserve(host.size());
    for (const From& v : host) rounded.push_back(static_cast<To>(v));
    Kokkos::deep_copy(space, device, Host(rounded.data(), rounded.size()));
    Compat::fence(space, label);
  }
  return device;
}

}  // namespace Impl

/// A matrix on the host, as io::read_matrix_market gives it, as a CsrView whose arrays lie in the memory of `space` and
/// belong to it, its copies and plans made of it:
///
///     const auto A = Tessera::to_device(space, Tessera::io::read_matrix_market<double>("A.mtx"));
///     const auto B = Tessera::to_device<Tessera::half_t>(space, host);   // numbers rounded once, to nearest even
///
/// O(rows + nnz); copies 4 to 12 bytes per entry and waits for the copies. Offsets and columns keep their types.
/// @tparam Scalar  double, float, half_t or bhalf_t; left out: that of `host`
/// @throw InvalidArgument, DimensionMismatch  arrays that are no CSR matrix's, before anything is allocated
template <class Scalar = void, class Exec, class From, class Ordinal, class Offset>
auto to_device(const Exec& space, const io::HostCsr<From, Ordinal, Offset>& host) {
  using To = std::conditional_t<std::is_void_v<Scalar>, From, Scalar>;
  using HostView = CsrView<From, Ordinal, Offset, Kokkos::DefaultHostExecutionSpace::device_type>;
  HostView(host.rows, host.cols, typename HostView::row_map_type(host.row_map.data(), host.row_map.size()),
           typename HostView::entries_type(host.entries.data(), host.entries.size()),
           typename HostView::values_type(host.values.data(), host.values.size()));  // for its checks
  using Result = CsrView<To, Ordinal, Offset, typename Exec::device_type>;
  return Result(host.rows, host.cols, Impl::device_array<Offset>(space, "Tessera::row_map", host.row_map),
                Impl::device_array<Ordinal>(space, "Tessera::entries", host.entries),
                Impl::device_array<To>(space, "Tessera::values", host.values));
}

}  // namespace Tessera

#endif
