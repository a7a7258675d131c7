// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Kokkos' life in a Python process, its instances on streams, and the check of matrices.

#include <map>

#include "adapters/python/Tessera_PythonViews.hpp"

namespace Tessera {
namespace Python {
namespace {

// Instances must be gone before Kokkos is, so finalize_kokkos() empties this, and no destructor at exit has anything to
// do.
std::map<void*, Exec>& instances() {
  static auto* const all = new std::map<void*, Exec>;
  return *all;
}
bool own_kokkos = false;

}  // namespace

const Exec& space_on(void* stream) {
  auto& all = instances();
  auto found = all.find(stream);
  if (found == all.end()) found = all.emplace(stream, Compat::instance_on<Exec>(stream)).first;
  return found->second;
}

BuildFacts build_facts() {
  BuildFacts facts;
  facts.space = Exec::name();
  if (Compat::is_cuda_v<Exec>) facts.device = DeviceKind::Cuda;
  if (Compat::is_hip_v<Exec>) facts.device = DeviceKind::Rocm;
  facts.one_thread = Compat::one_host_thread<Exec>;
  return facts;
}

bool kokkos_initialized() { return Kokkos::is_initialized(); }

void initialize_kokkos(int threads, int device) {
  if (Kokkos::is_initialized()) return;
  Compat::initialize(threads, device);
  own_kokkos = true;
}

void finalize_kokkos() {
  instances().clear();
  if (!own_kokkos) return;
  own_kokkos = false;
  Kokkos::finalize();
}

int device_id() { return Compat::device_id(Exec()); }
int concurrency() { return Exec().concurrency(); }
void fence(void* stream) { Compat::fence(space_on(stream), "Tessera: Python"); }

void check_csr(void* stream, const AnyCsr& A) {
  const auto report_on = [&](const auto& matrix) {
    const CsrReport report = validate(space_on(stream), matrix);
    Impl::require<InvalidArgument>(report.valid, [&] { return "not a CSR matrix: " + report.fault; });
  };
  // The numbers are not looked at, whatever their type.
  if (A.wide) {
    report_on(matrix_of<float, std::size_t>(A));
  } else {
    report_on(matrix_of<float, int>(A));
  }
}

}  // namespace Python
}  // namespace Tessera
