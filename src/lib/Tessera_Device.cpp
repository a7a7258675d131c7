// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "Tessera_Device.hpp"

#include <cstdlib>

#include "core/Tessera_KernelTables.hpp"

namespace Tessera {

// Backends that are not built answer with null here, so that every build has every name.
#ifndef TESSERA_HAVE_CUDA
const KernelTable* cuda_table() noexcept { return nullptr; }
#endif
#ifndef TESSERA_HAVE_HIP
const KernelTable* hip_table() noexcept { return nullptr; }
#endif

namespace {

/// An explicit list: registration by static initialisers would be dropped from a static library.
struct Entry {
  Backend backend;
  const KernelTable* (*table)() noexcept;
  const char* option;
};
constexpr Entry entries[] = {{Backend::Cuda, cuda_table, "Tessera_ENABLE_CUDA"},
                             {Backend::Hip, hip_table, "Tessera_ENABLE_HIP"},
                             {Backend::EmulatedNvidia, emulated_nvidia_table, ""},
                             {Backend::EmulatedAmd, emulated_amd_table, ""}};

BackendInfo describe(const Entry& e) {
  BackendInfo info;
  info.backend = e.backend;
  info.name = to_string(e.backend);
  const KernelTable* table = e.table();
  info.compiled = table != nullptr;
  if (!info.compiled) {
    info.reason = "not part of this build; configure with -D" + std::string(e.option) + "=ON";
    return info;
  }
  const Status status = table->runtime.device_facts(info.facts);
  info.usable = status.ok();
  if (!info.usable) info.reason = status.message;
  return info;
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

}  // namespace

std::vector<BackendInfo> available_backends() {
  std::vector<BackendInfo> list;
  for (const Entry& e : entries) list.push_back(describe(e));
  return list;
}

const KernelTable& kernel_table(Backend backend) {
  for (const Entry& e : entries) {
    if (e.backend != backend) continue;
    const BackendInfo info = describe(e);
    if (!info.compiled) throw NotCompiled("backend '" + info.name + "' is " + info.reason);
    if (!info.usable) throw NotSupported("backend '" + info.name + "' cannot be used here: " + info.reason);
    return *e.table();
  }
  throw InvalidArgument("backend '" + std::string(to_string(backend)) + "' has no matrix-unit kernels");
}

DeviceFacts device_facts(Backend backend) {
  DeviceFacts facts;
  const Status status = kernel_table(backend).runtime.device_facts(facts);
  if (!status.ok()) throw DeviceError(status.message);
  return facts;
}

Backend forced_backend() {
  const std::string name = environment("TESSERA_FORCE_BACKEND");
  return name.empty() ? Backend::Auto : parse_backend(name);
}
SpmvAlgorithm forced_spmv_algorithm() {
  const std::string name = environment("TESSERA_FORCE_ALGORITHM");
  return name.empty() ? SpmvAlgorithm::Auto : parse_spmv_algorithm(name);
}
SpmmAlgorithm forced_spmm_algorithm() {
  const std::string name = environment("TESSERA_FORCE_SPMM_ALGORITHM");
  return name.empty() ? SpmmAlgorithm::Auto : parse_spmm_algorithm(name);
}
bool verbose() { return environment("TESSERA_VERBOSE") == "1"; }

}  // namespace Tessera
