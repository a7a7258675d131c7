// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_HOST_HOST_PACKED_RUN_HPP
#define TESSERA_HOST_HOST_PACKED_RUN_HPP

#include "backends/host/Tessera_HostPacked.hpp"
#include "backends/host/Tessera_HostPackedVectors.hpp"

namespace Tessera {

template <class Value, PackedStorage Storage>
void host_packed_general(const SpmvPackedArgs& args, std::uint32_t begin, std::uint32_t end) {
  using Types = PackedTypes<Value, Storage>;
  if constexpr (sizeof(Value) == 2) {
    if (args.y_type != ElementType::Float) {
      return Impl::PackedHostVectors<Types, Value, packed_host_lanes>(args).run(begin, end);
    }
  }
  Impl::PackedHostVectors<Types, typename Types::Sum, packed_host_lanes>(args).run(begin, end);
}

/// The kernels of one precision.
template <class Value>
void host_packed(const SpmvPackedArgs& args, std::uint32_t begin, std::uint32_t end) {
  using Full = PackedTypes<Value, PackedStorage::Full>;
  const bool plain = args.columns == 1 && args.x_stride == 1 && args.hubs == 0;
  switch (args.storage) {
    case PackedStorage::Float:
      if constexpr (sizeof(Value) == 8) host_packed_general<Value, PackedStorage::Float>(args, begin, end);
      return;
    case PackedStorage::Integer:
      return host_packed_general<Value, PackedStorage::Integer>(args, begin, end);
    case PackedStorage::Dictionary:
      return host_packed_general<Value, PackedStorage::Dictionary>(args, begin, end);
    case PackedStorage::Constant:
      return host_packed_general<Value, PackedStorage::Constant>(args, begin, end);
    case PackedStorage::Full:
      break;
  }
  constexpr bool half = std::is_same_v<Value, half_t>;
  if constexpr (!half || Impl::host_vectors_of_half) {
    if (plain && (!half || host_packed_fast_fp16())) {
      return Impl::PackedHostKernel<Full, packed_host_lanes>(args).run(begin, end);
    }
  }
  host_packed_general<Value, PackedStorage::Full>(args, begin, end);
}

}  // namespace Tessera

#endif
