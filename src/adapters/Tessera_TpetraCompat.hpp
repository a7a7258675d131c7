// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_ADAPTERS_TPETRA_COMPAT_HPP
#define TESSERA_ADAPTERS_TPETRA_COMPAT_HPP

#include <Teuchos_ParameterList.hpp>
#include <Tpetra_CrsMatrix.hpp>
#include <Tpetra_Distributor.hpp>
#include <Tpetra_Import.hpp>
#include <Tpetra_Map.hpp>
#include <Tpetra_MultiVector.hpp>
#include <Tpetra_Vector.hpp>
#include <type_traits>

/// \file
/// Everything that differs between the versions of Tpetra (13.2, the oldest that has beginImport, and later). Told
/// apart by what their classes have, so that no version number is needed.

namespace Tessera {
namespace Compat {

namespace Impl {
template <class Map>
auto local_size(const Map& map, int) -> decltype(map.getLocalNumElements()) {
  return map.getLocalNumElements();
}
template <class Map>
auto local_size(const Map& map, long) -> decltype(map.getNodeNumElements()) {
  return map.getNodeNumElements();
}
template <class Matrix>
auto local_entries(const Matrix& A, int) -> decltype(A.getLocalNumEntries()) {
  return A.getLocalNumEntries();
}
template <class Matrix>
auto local_entries(const Matrix& A, long) -> decltype(A.getNodeNumEntries()) {
  return A.getNodeNumEntries();
}
template <class Matrix>
auto local_longest_row(const Matrix& A, int) -> decltype(A.getLocalMaxNumRowEntries()) {
  return A.getLocalMaxNumRowEntries();
}
template <class Matrix>
auto local_longest_row(const Matrix& A, long) -> decltype(A.getNodeMaxNumRowEntries()) {
  return A.getNodeMaxNumRowEntries();
}
template <class Distributor>
auto send_at_once(Distributor& distributor, int)
    -> std::enable_if_t<std::is_convertible_v<decltype(distributor.getPlan().getIndicesTo().size()), long>> {
  // Where packets are not blocked by process, up to Trilinos 13 nonblocking sends do not exist.
  if (distributor.getPlan().getIndicesTo().size() != 0) return;
  const auto parameters = Teuchos::parameterList();
  parameters->set("Send type", "Isend");
  distributor.setParameterList(parameters);
}
template <class Distributor>
void send_at_once(Distributor&, long) {}
}  // namespace Impl

/// Elements of this process: getNodeNumElements up to 13, getLocalNumElements since.
template <class Map>
std::size_t local_size(const Map& map) {
  return static_cast<std::size_t>(Impl::local_size(map, 0));
}

/// Likewise of a matrix: its entries, and those of its longest row.
template <class Matrix>
std::size_t local_entries(const Matrix& A) {
  return static_cast<std::size_t>(Impl::local_entries(A, 0));
}
template <class Matrix>
std::size_t local_longest_row(const Matrix& A) {
  return static_cast<std::size_t>(Impl::local_longest_row(A, 0));
}

/// Nonblocking sends (MPI_Isend, the default since 14; blocking ones before), without which there is no overlap.
template <class Distributor>
void send_at_once(Distributor& distributor) {
  Impl::send_at_once(distributor, 0);
}

/// The matrix of this process, as a KokkosSparse::CrsMatrix on the Node's device.
template <class Matrix>
auto local_matrix(const Matrix& A) {
  return A.getLocalMatrixDevice();
}
/// The numbers of this process where kernels read them; the object must not be kept.
template <class MV>
auto read(const MV& v) {
  return v.getLocalViewDevice(Tpetra::Access::ReadOnly);
}
template <class MV>
auto read_write(MV& v) {
  return v.getLocalViewDevice(Tpetra::Access::ReadWrite);
}
template <class MV>
auto overwrite(MV& v) {
  return v.getLocalViewDevice(Tpetra::Access::OverwriteAll);
}

/// Receives posted and messages under way; end_import waits for them.
template <class MV, class Import>
void begin_import(MV& target, const MV& source, const Import& plan) {
  target.beginImport(source, plan, Tpetra::INSERT);
}
template <class MV, class Import>
void end_import(MV& target, const MV& source, const Import& plan) {
  target.endImport(source, plan, Tpetra::INSERT);
}
/// The way back: adds up at the owner.
template <class MV, class Import>
void begin_export_add(MV& target, const MV& source, const Import& plan) {
  target.beginExport(source, plan, Tpetra::ADD_ASSIGN);
}
template <class MV, class Import>
void end_export_add(MV& target, const MV& source, const Import& plan) {
  target.endExport(source, plan, Tpetra::ADD_ASSIGN);
}

}  // namespace Compat
}  // namespace Tessera

#endif
