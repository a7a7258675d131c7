// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// The extension module tessera._core: Kokkos' life, exceptions, and the classes of the other files.

#include <nanobind/nanobind.h>

#include "adapters/python/Tessera_PythonObject.hpp"

namespace Tessera {
namespace Python {
namespace {

const char* name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::InvalidArgument:
      return "InvalidArgument";
    case ErrorCode::DimensionMismatch:
      return "DimensionMismatch";
    case ErrorCode::NotSupported:
      return "NotSupported";
    case ErrorCode::NotCompiled:
      return "NotCompiled";
    case ErrorCode::StalePlan:
      return "StalePlan";
    case ErrorCode::WorkspaceTooSmall:
      return "WorkspaceTooSmall";
    case ErrorCode::OutOfMemory:
      return "OutOfMemory";
    case ErrorCode::DeviceError:
      return "DeviceError";
    case ErrorCode::FileError:
      return "FileError";
  }
  return "Error";
}

/// The exceptions are Python's own classes (_errors.py), of the same names.
void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& e) {
    const nb::object type = nb::module_::import_("tessera._errors").attr(name_of(e.code()));
    const nb::object error = type(e.what());
    if (const auto* const memory = dynamic_cast<const OutOfMemory*>(&e)) error.attr("required") = memory->required();
    if (const auto* const workspace = dynamic_cast<const WorkspaceTooSmall*>(&e)) {
      error.attr("required") = workspace->required();
      error.attr("given") = workspace->given();
    }
    PyErr_SetObject(type.ptr(), error.ptr());
  }
}

nb::dict build() {
  const BuildFacts facts = build_facts();
  nb::dict d;
  d["execution_space"] = facts.space;
  d["device"] = facts.device == DeviceKind::Cuda ? "cuda" : facts.device == DeviceKind::Rocm ? "rocm" : "host";
  d["initialized"] = kokkos_initialized();
  if (kokkos_initialized()) d["concurrency"] = concurrency();
  return d;
}

NB_MODULE(_core, m) {
  // Plans in caches that live to the end are closed by finalize().
  nb::set_leak_warnings(false);
  nb::register_exception_translator(translate);
  m.def("initialize", &choose_kokkos, nb::arg("threads") = 0, nb::arg("device") = -1,
        "Initialise Kokkos with so many threads (0: its own choice) on this device (-1: its own choice).\n\n"
        "Only needed where the defaults are not wanted: the first plan initialises Kokkos otherwise. Raises\n"
        "InvalidArgument once Kokkos is initialised.");
  m.def("finalize", &end_kokkos,
        "Close all plans and finalise Kokkos, if Tessera initialised it. Runs by itself when Python ends.");
  m.def("build", &build, "Facts of this build: the execution space that plans run on, its device.");
  define_products(m);
  define_sddmm(m);
  define_attention(m);
  define_spgemm(m);
}

}  // namespace
}  // namespace Python
}  // namespace Tessera
