// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_ADAPTERS_TPETRA_HALO_HPP
#define TESSERA_ADAPTERS_TPETRA_HALO_HPP

#include <cstdint>
#include <string>

#include "Tessera_Compat.hpp"
#include "Tessera_Types.hpp"
#include "adapters/Tessera_TpetraCompat.hpp"

/// \file
/// The exchange of a TpetraOperator with numbers narrower than those of its vectors: rounded when they are packed,
/// widened when they have arrived. Tpetra's Import moves only numbers of the vector's own type, so this goes to its
/// Distributor, as bytes.

namespace Tessera {
namespace Impl {

/// Sent and received numbers of one Import that has nothing but received elements (createRemoteOnlyImport).
/// An element travels as its numbers in all columns, one after the other.
template <class Scalar, class Device, class Import>
class NarrowHalo {
 public:
  using Exec = typename Device::execution_space;
  using Bytes = Kokkos::View<char*, Device>;
  using Ordinals = Kokkos::View<std::int64_t*, Device>;

  /// @param precision  FP32 or BF16, narrower than Scalar
  NarrowHalo(const Import& import, Precision precision)
      : precision_(precision),
        send_(indices("Tessera::tpetra::send", import.getExportLIDs())),
        receive_(indices("Tessera::tpetra::receive", import.getRemoteLIDs())) {}

  int bytes_per_number() const { return precision_ == Precision::FP32 ? 4 : 2; }

  /// Receives posted and messages under way. Waits for the packed numbers.
  template <class X, class Distributor>
  void begin(const Exec& space, const X& x, Distributor& distributor) {
    const std::size_t columns = x.extent(1), element = columns * static_cast<std::size_t>(bytes_per_number());
    // Exact extents: the Distributor compares them with what it sends and receives.
    resize(send_bytes_, send_host_, send_.extent(0) * element);
    resize(receive_bytes_, receive_host_, receive_.extent(0) * element);
    if (precision_ == Precision::FP32) {
      pack<float>(space, x);
    } else {
      pack<bhalf_t>(space, x);
    }
    Kokkos::deep_copy(space, send_host_, send_bytes_);
    Compat::fence(space, "Tessera::tpetra[packed]");
    distributor.doPosts(send_host_, element, receive_host_);
  }
  /// Waits for the messages and writes their numbers.
  template <class To, class Distributor>
  void end(const Exec& space, const To& to, Distributor& distributor) {
    distributor.doWaits();
    Kokkos::deep_copy(space, receive_bytes_, receive_host_);
    if (precision_ == Precision::FP32) {
      unpack<float>(space, to);
    } else {
      unpack<bhalf_t>(space, to);
    }
  }

  template <class W, class X>
  struct Pack {
    Ordinals elements;
    X x;
    W* to;
    std::int64_t columns;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t n) const {
      const std::int64_t i = n / columns;
      to[n] = W(static_cast<float>(x(elements(i), n - i * columns)));
    }
  };
  template <class W, class To>
  struct Unpack {
    Ordinals elements;
    const W* from;
    To to;
    std::int64_t columns;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t n) const {
      const std::int64_t i = n / columns;
      to(elements(i), n - i * columns) = static_cast<Scalar>(static_cast<float>(from[n]));
    }
  };

 private:
  using HostBytes = typename Bytes::HostMirror;

  template <class Indices>
  static Ordinals indices(const std::string& label, const Indices& from) {
    const Ordinals result(label, static_cast<std::size_t>(from.size()));
    const auto host = Kokkos::create_mirror_view(result);
    for (std::size_t i = 0; i < host.extent(0); ++i) host(i) = from[static_cast<int>(i)];
    Kokkos::deep_copy(result, host);
    return result;
  }
  /// Where kernels and MPI read the same memory both are one View.
  static void resize(Bytes& bytes, HostBytes& host, std::size_t size) {
    if (bytes.extent(0) == size && host.extent(0) == size) return;
    bytes = Bytes("Tessera::tpetra::halo bytes", size);
    host = Kokkos::create_mirror_view(bytes);
  }
  template <class W, class X>
  void pack(const Exec& space, const X& x) const {
    const auto columns = static_cast<std::int64_t>(x.extent(1));
    Kokkos::parallel_for("Tessera::tpetra[pack]",
                         Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(
                             space, 0, static_cast<std::int64_t>(send_.extent(0)) * columns),
                         Pack<W, X>{send_, x, reinterpret_cast<W*>(send_bytes_.data()), columns});
  }
  template <class W, class To>
  void unpack(const Exec& space, const To& to) const {
    const auto columns = static_cast<std::int64_t>(to.extent(1));
    Kokkos::parallel_for("Tessera::tpetra[unpack]",
                         Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(
                             space, 0, static_cast<std::int64_t>(receive_.extent(0)) * columns),
                         Unpack<W, To>{receive_, reinterpret_cast<const W*>(receive_bytes_.data()), to, columns});
  }

  Precision precision_;
  Ordinals send_, receive_;
  Bytes send_bytes_, receive_bytes_;
  HostBytes send_host_, receive_host_;
};

}  // namespace Impl
}  // namespace Tessera

#endif
