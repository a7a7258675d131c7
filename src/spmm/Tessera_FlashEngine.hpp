// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMM_FLASH_ENGINE_HPP
#define TESSERA_SPMM_FLASH_ENGINE_HPP

#include <string>

#include "formats/windows/Tessera_ToMeBcrs.hpp"
#include "spmm/Tessera_WindowEngine.hpp"

namespace Tessera {
namespace Impl {

/// Vector length and depth of a backend's instruction for FlashSparse; depth 0 where there is none. A length that the
/// backend does not have is replaced by the one it has (AMD: 16).
struct FlashShape {
  int vector_length = 0, depth = 0;
};
inline FlashShape flash_shape(const KernelTable& table, Precision precision, int vector_length) {
  if (table.spmm.flash_depth == nullptr || table.spmm.flash == nullptr) return {};
  for (const int length : {vector_length, 8, 16}) {
    const int depth = table.spmm.flash_depth(precision, length);
    if (depth > 0) return {length, depth};
  }
  return {};
}

template <class Csr>
struct FlashMethod {
  using Exec = typename Csr::execution_space;
  using Format = Experimental::MeBcrs<typename Csr::memory_space>;
  using Args = SpmmFlashArgs;
  static constexpr const char* name = "flash";

  static int height(const KernelTable& table, Precision precision, const SpmmOptions& options) {
    return flash_shape(table, precision, options.flash.vector_length).vector_length;
  }
  static Format convert(const Exec& space, const Csr& A, Precision precision, const SpmmOptions& options,
                        const KernelTable& table, const typename WindowFunctors<Csr>::Order& order) {
    const FlashShape shape = flash_shape(table, precision, options.flash.vector_length);
    FlashOptions flash = options.flash;
    flash.vector_length = shape.vector_length;
    return Experimental::to_me_bcrs(space, A, precision, shape.depth, flash, options.updatable, &table, order);
  }
  static Args arguments(const Format& format, const FlashOptions& options) {
    Args args = format.arguments();
    args.coalesced = options.mapping == FlashMapping::Coalesced;
    return args;
  }
  static Status launch(const KernelTable& table, const Format&, const Args& args, Stream stream) {
    return table.spmm.flash(args, stream);
  }
  static void update(const Exec& space, Format& format, const Csr& A) {
    Experimental::update_me_bcrs(space, format, A, A.values());
  }
  static void describe(const Format& format, Statistics& s) {
    s.atom = std::to_string(format.vector_length) + "x1 vectors, " + std::to_string(format.depth) + " per block";
    s.stored = format.stored();
    s.matrix_unit_share = s.nnz > 0 ? 1 : 0;
  }
};

template <class Csr>
using FlashEngine = WindowEngine<Csr, FlashMethod<Csr>>;

}  // namespace Impl
}  // namespace Tessera

#endif
