// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "probe/Tessera_Probe.hpp"

/// \file
/// Reads of a Kokkos team's scratch memory, which is shared memory on a device: at random, where lanes collide in the
/// banks, and side by side, where they do not.

namespace Tessera {
namespace Bench {
namespace {

constexpr int scratch_bytes = 32 << 10;
using ProbeTeams = Kokkos::TeamPolicy<ProbeSpace>;

template <class T, bool Random>
struct ReadScratch {
  static constexpr int elements = scratch_bytes / static_cast<int>(sizeof(T)), flight = 8;
  std::int64_t rounds;
  T* sink;

  KOKKOS_INLINE_FUNCTION static std::uint32_t log2_elements() {
    std::uint32_t bits = 0;
    while ((2 << bits) <= elements) ++bits;
    return bits;
  }
  KOKKOS_INLINE_FUNCTION void operator()(const ProbeTeams::member_type& team) const {
    T* scratch = static_cast<T*>(team.team_scratch(0).get_shmem(elements * sizeof(T)));
    for (int i = team.team_rank(); i < elements; i += team.team_size()) scratch[i] = static_cast<T>(7 * i + 1);
    team.team_barrier();
    const std::uint32_t rank = static_cast<std::uint32_t>(team.team_rank()), shift = 32 - log2_elements();
    std::uint32_t state = (static_cast<std::uint32_t>(team.league_rank()) * 1024u + rank) * 0x9E3779B9u + 0x7F4A7C15u;
    state = (state ^ (state >> 16)) * 0x85EBCA6Bu;
    std::uint32_t place = rank;
    T sum = 0;
    for (std::int64_t k = 0; k < rounds; ++k) {
      T v[flight];
      for (int j = 0; j < flight; ++j) {
        if constexpr (Random) {
          state = state * 1664525u + 1013904223u;
          v[j] = scratch[state >> shift];
        } else {
          place = (place + 32) % elements;
          v[j] = scratch[place];
        }
      }
      for (int j = 0; j < flight; ++j) sum += v[j];
    }
    if (sum == static_cast<T>(0x0123456789ABCDEFull)) *sink = sum;
  }
};

template <class T, bool Random>
void probe_scratch(const Probe& probe, const ProbeWords& sink) {
  using F = ReadScratch<T, Random>;
  const int team = Compat::team_size<ProbeSpace>(256);
  const int league = std::max(1, static_cast<int>(probe_workers(probe.space) / team));
  const std::int64_t rounds = (Compat::is_host_v<ProbeSpace> ? 1 << 16 : 256) / (probe.options.quick ? 8 : 1);
  Ceiling c;
  c.group = "shared";
  c.name = std::to_string(sizeof(T)) + " B " + (Random ? "at random" : "side by side") + ", " +
           format_bytes(scratch_bytes) + " a team";
  c.operations = static_cast<double>(league) * team * static_cast<double>(rounds) * F::flight;
  c.bytes = c.operations * sizeof(T);
  c.time = probe.timer().warm([&] {
    Kokkos::parallel_for("Tessera::probe shared",
                         ProbeTeams(probe.space, league, team).set_scratch_size(0, Kokkos::PerTeam(scratch_bytes)),
                         F{rounds, reinterpret_cast<T*>(sink.data())});
  });
  probe.sheet.add(c);
}

}  // namespace

void probe_shared_memory(const Probe& probe) {
  const ProbeWords sink("Tessera::probe::sink", 1);
  probe_scratch<std::uint32_t, true>(probe, sink);
  probe_scratch<std::uint64_t, true>(probe, sink);
  probe_scratch<std::uint32_t, false>(probe, sink);
  probe_scratch<std::uint64_t, false>(probe, sink);
  probe.sheet.print_list(
      "shared", Compat::is_host_v<ProbeSpace> ? "Scratch memory (ordinary memory on a host)" : "Shared memory");
}

}  // namespace Bench
}  // namespace Tessera
