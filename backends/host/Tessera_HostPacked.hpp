// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_HOST_HOST_PACKED_HPP
#define TESSERA_HOST_HOST_PACKED_HPP

#include "backends/interface/Tessera_PackedLayout.hpp"

/// \file
/// Packed slices on hosts: what the library compiles once, so that applications need not; each precision in a file of
/// its own. Threads are the caller's.

namespace Tessera {

/// Rows of a slice with one lane each. With four, short rows leave a slice too few entries for what a slice costs; with
/// sixteen the sums of a chunk of doubles do not fit the registers of SSE2, and slices pad more.
constexpr int packed_host_lanes = 8;

/// Multiplies the slices [begin, end). Slices write different elements of y, and of partials, so that any threads may
/// share the slices out. Numbers in full have fast kernels for one vector; everything else takes a general one.
using PackedHostRun = void (*)(const SpmvPackedArgs& args, std::uint32_t begin, std::uint32_t end);
void host_packed_fp64(const SpmvPackedArgs& args, std::uint32_t begin, std::uint32_t end);
void host_packed_fp32(const SpmvPackedArgs& args, std::uint32_t begin, std::uint32_t end);
void host_packed_fp16(const SpmvPackedArgs& args, std::uint32_t begin, std::uint32_t end);
void host_packed_bf16(const SpmvPackedArgs& args, std::uint32_t begin, std::uint32_t end);

/// The same for vectors of a type that is wider than the matrix's; sums are of theirs. Full storage, no column blocks.
void host_packed_fp32_with_fp64(const SpmvPackedArgs& args, std::uint32_t begin, std::uint32_t end);

/// Whether FP16 has its fast kernel, too: on x86 CPUs that widen it by an instruction. Where it has none, the general
/// kernel costs more than the bytes it saves. Both give the same bits.
bool host_packed_fast_fp16();

}  // namespace Tessera

#endif
