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

/// Some slices at a time for one vector after the other, which then find the packets in the first caches: the kernel
/// for one vector is several times faster than the general one.
template <class Types>
void host_packed_columns(const SpmvPackedArgs& args, std::uint32_t begin, std::uint32_t end) {
  using Kernel = Impl::PackedHostKernel<Types, packed_host_lanes>;
  if (args.columns == 1) return Kernel(args).run(begin, end);
  constexpr std::uint32_t most = 16384 / packed_unit;
  const std::size_t y_bytes = sizeof(typename Types::Value) == 2 && args.y_type != ElementType::Float
                                  ? sizeof(typename Types::Value)
                                  : sizeof(typename Types::Sum);
  for (std::uint32_t last; begin < end; begin = last) {
    for (last = begin + 1; last < end && args.slices[last].packet - args.slices[begin].packet < most;) ++last;
    SpmvPackedArgs one = args;
    for (int j = 0; j < args.columns; ++j) {
      Kernel(one).run(begin, last);
      one.x = static_cast<const typename Types::Value*>(one.x) + args.x_column_stride;
      one.y = static_cast<char*>(one.y) + args.y_column_stride * static_cast<std::int64_t>(y_bytes);
      one.partials = static_cast<typename Types::Sum*>(one.partials) + (one.partials != nullptr ? 1 : 0);
    }
  }
}

/// The kernels of one precision.
template <class Value>
void host_packed(const SpmvPackedArgs& args, std::uint32_t begin, std::uint32_t end) {
  using Full = PackedTypes<Value, PackedStorage::Full>;
  const bool plain = args.x_stride == 1 && args.hubs == 0;
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
      return host_packed_columns<Full>(args, begin, end);
    }
  }
  host_packed_general<Value, PackedStorage::Full>(args, begin, end);
}

/// Numbers of a narrow type with vectors of a wider one.
template <class Narrow, class Wide>
void host_packed_mixed(const SpmvPackedArgs& args, std::uint32_t begin, std::uint32_t end) {
  using Types = Impl::PackedMixedTypes<Narrow, Wide>;
  if (args.x_stride == 1 && args.hubs == 0) return host_packed_columns<Types>(args, begin, end);
  Impl::PackedHostVectors<Types, Wide, packed_host_lanes>(args).run(begin, end);
}

}  // namespace Tessera

#endif
