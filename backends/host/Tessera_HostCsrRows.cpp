// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include <memory>
#include <new>

#include "backends/host/Tessera_HostCsrRowsKernel.hpp"

namespace Tessera {

void host_csr_rows_fp64(const HostCsrRowsArgs& args, std::int64_t begin, std::int64_t end) {
  CsrRows<double, double, double>(args).run(begin, end);
}
void host_csr_rows_fp16(const HostCsrRowsArgs& args, std::int64_t begin, std::int64_t end) {
  run_narrow_rows<half_t>(args, begin, end);
}

void* host_csr_rows_room(std::size_t bytes) {
  thread_local std::unique_ptr<char[]> kept;
  thread_local std::size_t size = 0;
  constexpr std::size_t line = 64;
  if (bytes > size) {
    kept.reset();  // first, so that both never exist at once
    size = 0;
    kept.reset(new (std::nothrow) char[bytes + line]);
    if (kept == nullptr) return nullptr;
    size = bytes;
  }
  const std::size_t behind = reinterpret_cast<std::uintptr_t>(kept.get()) % line;
  return kept.get() + (line - behind) % line;
}

}  // namespace Tessera
