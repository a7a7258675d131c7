// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "probe/Tessera_Probe.hpp"

/// \file
/// Random gathers by working set: single elements as from a vector x, whole rows as from a dense operand. Places come
/// from a generator in registers, so that nothing else is read; eight elements or four rows are on their way at a time.

namespace Tessera {
namespace Bench {
namespace {

constexpr bool on_host = Compat::is_host_v<ProbeSpace>;

/// A linear congruential generator; its high bits are the place.
struct Places {
  std::uint32_t state;
  int shift;
  KOKKOS_INLINE_FUNCTION Places(std::int64_t worker, int bits) : shift(32 - bits) {
    // Neighbouring workers must not start at neighbouring places.
    state = static_cast<std::uint32_t>(worker) * 0x9E3779B9u + 0x7F4A7C15u;
    state = (state ^ (state >> 16)) * 0x85EBCA6Bu;
    state ^= state >> 13;
  }
  KOKKOS_INLINE_FUNCTION std::uint32_t next() {
    state = state * 1664525u + 1013904223u;
    return state >> shift;
  }
};

template <class T>
struct GatherElements {
  static constexpr int flight = 8;
  const T* data;
  int bits;
  std::int64_t rounds;
  T* sink;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t worker) const {
    Places places(worker, bits);
    T sum = 0;
    for (std::int64_t k = 0; k < rounds; ++k) {
      T v[flight];
      for (int j = 0; j < flight; ++j) v[j] = data[places.next()];
      for (int j = 0; j < flight; ++j) sum += v[j];
    }
    if (sum == static_cast<T>(0x0123456789ABCDEFull)) *sink = sum;
  }
};

/// A row is Words words: a lane of a device takes one of them, a host's thread all.
template <int Words>
struct GatherRows {
  static constexpr int flight = on_host ? 1 : 4, lanes = on_host ? 1 : Words, own = Words / lanes;
  const ProbeWord* data;
  int bits;
  std::int64_t rounds;
  ProbeWord* sink;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t worker) const {
    Places places(worker / lanes, bits);
    const std::int64_t lane = worker % lanes;
    ProbeWord sum{0, 0};
    for (std::int64_t k = 0; k < rounds; ++k) {
      ProbeWord v[flight][own];
      for (int j = 0; j < flight; ++j) {
        const std::int64_t row = static_cast<std::int64_t>(places.next()) * Words;
        for (int i = 0; i < own; ++i) v[j][i] = data[row + lane + i];
      }
      for (int j = 0; j < flight; ++j) {
        for (int i = 0; i < own; ++i) sum.low += v[j][i].low, sum.high ^= v[j][i].high;
      }
    }
    if ((sum.low ^ sum.high) == 0x0123456789ABCDEFull) *sink = sum;
  }
};

int log2_of(std::int64_t n) {
  int bits = 0;
  while ((std::int64_t(2) << bits) <= n) ++bits;
  return bits;
}

class Gathers {
 public:
  Gathers(const Probe& probe, const ProbeWords& words, const ProbeWords& sink)
      : probe_(probe), words_(words), sink_(sink) {}

  template <class T>
  void elements(std::int64_t bytes) const {
    using F = GatherElements<T>;
    const std::int64_t workers = probe_workers(probe_.space), rounds = reads_of_worker() / F::flight;
    const auto* data = reinterpret_cast<const T*>(words_.data());
    measure("elements of " + std::to_string(sizeof(T)) + " B", bytes, workers * rounds * F::flight, sizeof(T), workers,
            F{data, log2_of(bytes / static_cast<std::int64_t>(sizeof(T))), rounds, reinterpret_cast<T*>(sink_.data())});
  }
  template <int Words>
  void rows(std::int64_t bytes) const {
    using F = GatherRows<Words>;
    const std::int64_t workers = std::max<std::int64_t>(probe_workers(probe_.space) / F::lanes, 1) * F::lanes;
    const std::int64_t rounds = std::max<std::int64_t>(reads_of_worker() / (F::flight * F::own), 1);
    measure("rows of " + std::to_string(16 * Words) + " B", bytes, workers / F::lanes * rounds * F::flight, 16 * Words,
            workers, F{words_.data(), log2_of(bytes / (16 * Words)), rounds, sink_.data()});
  }

 private:
  std::int64_t reads_of_worker() const {
    if (on_host) return probe_.options.quick ? 1 << 15 : 1 << 19;
    return probe_.options.quick ? 16 : 64;
  }
  template <class Functor>
  void measure(const std::string& name, std::int64_t set, std::int64_t reads, int read_bytes, std::int64_t n,
               const Functor& functor) const {
    Ceiling c;
    c.group = "gather";
    c.name = name;
    c.working_set = static_cast<double>(set);
    c.operations = static_cast<double>(reads);
    c.bytes = c.operations * read_bytes;
    const std::string label = "Tessera::probe " + name;
    c.time = probe_.timer().warm([&] { Kokkos::parallel_for(label, ProbePolicy(probe_.space, 0, n), functor); });
    probe_.sheet.add(c);
  }

  const Probe& probe_;
  ProbeWords words_, sink_;
};

}  // namespace

void probe_gathers(const Probe& probe) {
  const std::int64_t kibi = 1 << 10, mebi = 1 << 20;
  // Powers of two, so that a place is some bits of a number.
  std::vector<std::int64_t> sizes = {32 * kibi, 128 * kibi, mebi,       8 * mebi,
                                     32 * mebi, 64 * mebi,  256 * mebi, 1024 * mebi};
  if (probe.options.quick) sizes = {32 * kibi, mebi};
  const ProbeWords words = allocate_words(probe.space, std::min(sizes.back(), probe.options.max_bytes)),
                   sink("Tessera::probe::sink", 1);
  const Gathers gathers(probe, words, sink);
  for (const std::int64_t size : sizes) {
    if (size > 16 * static_cast<std::int64_t>(words.extent(0))) continue;
    gathers.elements<std::uint32_t>(size);
    gathers.elements<std::uint64_t>(size);
    gathers.rows<2>(size);
    gathers.rows<4>(size);
    gathers.rows<8>(size);
    gathers.rows<16>(size);
    gathers.rows<32>(size);
  }
  probe.sheet.print_by_working_set("gather", "Random gathers by working set, 10^9 reads/s",
                                   &Ceiling::operations_per_second, 1e-9);
  probe.sheet.print_by_working_set("gather", "Random gathers by working set, GB/s of what was asked for",
                                   &Ceiling::bytes_per_second, 1e-9);
}

}  // namespace Bench
}  // namespace Tessera
