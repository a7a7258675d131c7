// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "probe/Tessera_Probe.hpp"

/// \file
/// Streaming reads of two arrays, as a sparse product reads values and columns: by bytes per entry, in two ways. By
/// element: a lane takes one value and one index at a time, as a plain CSR kernel does. By word: 16 bytes at a time
/// from both, as packed slices can. Copy and triad for comparison.

namespace Tessera {
namespace Bench {
namespace {

constexpr bool on_host = Compat::is_host_v<ProbeSpace>;

KOKKOS_INLINE_FUNCTION void combine(ProbeWord& sum, const ProbeWord& word) {
  sum.low += word.low;
  sum.high ^= word.high;
}
template <class T>
KOKKOS_INLINE_FUNCTION void combine(ProbeWord& sum, const T& element) {
  sum.low += element;
}

/// A step is Values values and Indices indices. Lanes of a device take neighbouring elements; a host's thread takes
/// neighbouring steps.
template <class Value, class Index, int Values, int Indices>
struct ReadStreams {
  // Loads in flight before the first is used.
  static constexpr int unroll = Values + Indices > 4 ? 2 : 8 / (Values + Indices);

  const Value* values;
  const Index* indices;
  std::int64_t steps, workers;
  ProbeWord* sink;

  KOKKOS_INLINE_FUNCTION std::int64_t place(std::int64_t step, int i, int count) const {
    return on_host ? step * count + i : i * steps + step;
  }
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t worker) const {
    const std::int64_t stride = on_host ? 1 : workers, end = on_host ? (worker + 1) * steps / workers : steps;
    std::int64_t step = on_host ? worker * steps / workers : worker;
    ProbeWord sum{0, 0};
    for (; step + (unroll - 1) * stride < end; step += unroll * stride) {
      Value v[unroll * Values];
      Index x[unroll * Indices];
      for (int u = 0; u < unroll; ++u) {
        for (int i = 0; i < Values; ++i) v[u * Values + i] = values[place(step + u * stride, i, Values)];
        for (int i = 0; i < Indices; ++i) x[u * Indices + i] = indices[place(step + u * stride, i, Indices)];
      }
      for (int i = 0; i < unroll * Values; ++i) combine(sum, v[i]);
      for (int i = 0; i < unroll * Indices; ++i) combine(sum, x[i]);
    }
    for (; step < end; step += stride) {
      for (int i = 0; i < Values; ++i) combine(sum, values[place(step, i, Values)]);
      for (int i = 0; i < Indices; ++i) combine(sum, indices[place(step, i, Indices)]);
    }
    // Hardly ever so, which the compiler cannot know. (A test of `high` alone it could: elements leave it at zero.)
    if ((sum.low ^ sum.high) == 0x0123456789ABCDEFull) *sink = sum;
  }
};

struct Copy {
  const ProbeWord* from;
  ProbeWord* to;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const { to[i] = from[i]; }
};
struct alignas(16) Pair {
  double a, b;
};
struct Triad {
  const Pair *x, *y;
  Pair* z;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
    z[i] = {x[i].a + 3.0 * y[i].a, x[i].b + 3.0 * y[i].b};
  }
};

class Streams {
 public:
  Streams(const Probe& probe, const ProbeWords& words, const ProbeWords& sink)
      : probe_(probe), words_(words), sink_(sink) {}

  template <class Value, class Index>
  void read(std::int64_t bytes) const {
    constexpr int a = sizeof(Value), b = sizeof(Index), smaller = a < b ? a : b;
    const std::string kind =
        std::to_string(a + b) + " B per entry (" + std::to_string(a) + "+" + std::to_string(b) + ")";
    const double entries = static_cast<double>(bytes) / (a + b);
    read_as<Value, Index, 1, 1>(kind + " by element", bytes, entries);
    read_as<ProbeWord, ProbeWord, a / smaller, b / smaller>(kind + " by word", bytes, entries);
  }

  void copy(std::int64_t bytes) const {
    const std::int64_t n = bytes / 32;
    measure("copy", bytes, Ceiling::none, 32.0 * static_cast<double>(n), n, Copy{words_.data(), words_.data() + n});
  }
  void triad(std::int64_t bytes) const {
    const std::int64_t n = bytes / 48;
    Pair* pairs = reinterpret_cast<Pair*>(words_.data());
    measure("triad", bytes, Ceiling::none, 48.0 * static_cast<double>(n), n, Triad{pairs, pairs + n, pairs + 2 * n});
  }

 private:
  template <class Value, class Index, int Values, int Indices>
  void read_as(const std::string& name, std::int64_t bytes, double entries) const {
    constexpr std::int64_t step_bytes = Values * sizeof(Value) + Indices * sizeof(Index);
    const std::int64_t steps = bytes / step_bytes;
    const std::int64_t workers = std::max<std::int64_t>(1, std::min(probe_workers(probe_.space), steps));
    // Both streams begin at a word.
    const std::int64_t value_words = (steps * Values * static_cast<std::int64_t>(sizeof(Value)) + 15) / 16;
    const auto* values = reinterpret_cast<const Value*>(words_.data());
    const auto* indices = reinterpret_cast<const Index*>(words_.data() + value_words);
    measure(name, bytes, entries, static_cast<double>(steps * step_bytes), workers,
            ReadStreams<Value, Index, Values, Indices>{values, indices, steps, workers, sink_.data()});
  }

  template <class Functor>
  void measure(const std::string& name, std::int64_t set, double operations, double bytes, std::int64_t n,
               const Functor& functor) const {
    Ceiling c;
    c.group = "stream";
    c.name = name;
    c.working_set = static_cast<double>(set);
    c.operations = operations;
    c.bytes = bytes;
    const std::string label = "Tessera::probe " + name;
    c.time = probe_.timer().warm([&] { Kokkos::parallel_for(label, ProbePolicy(probe_.space, 0, n), functor); });
    probe_.sheet.add(c);
  }

  const Probe& probe_;
  ProbeWords words_, sink_;
};

}  // namespace

void probe_streams(const Probe& probe) {
  std::vector<std::int64_t> sizes = {1, 4, 16, 40, 128, 512, 2048};
  if (probe.options.quick) sizes = {1, 4};
  const std::int64_t mebi = 1 << 20, most = std::min(sizes.back() * mebi, probe.options.max_bytes);
  // Beside the largest working set a word for each stream's rounding.
  const ProbeWords words = allocate_words(probe.space, most + 64), sink("Tessera::probe::sink", 1);
  const Streams streams(probe, words, sink);
  for (const std::int64_t size : sizes) {
    const std::int64_t bytes = size * mebi;
    if (bytes + 64 > 16 * static_cast<std::int64_t>(words.extent(0))) continue;
    streams.read<std::uint64_t, std::uint32_t>(bytes);
    streams.read<std::uint64_t, std::uint16_t>(bytes);
    streams.read<std::uint32_t, std::uint16_t>(bytes);
    streams.read<std::uint16_t, std::uint32_t>(bytes);
    streams.read<std::uint16_t, std::uint16_t>(bytes);
    streams.read<std::uint16_t, std::uint8_t>(bytes);
    streams.copy(bytes);
    streams.triad(bytes);
  }
  probe.sheet.print_by_working_set("stream", "Streams by working set, GB/s (copy and triad: reads and writes)",
                                   &Ceiling::bytes_per_second, 1e-9);
  probe.sheet.print_by_working_set("stream", "Streams by working set, 10^9 entries/s", &Ceiling::operations_per_second,
                                   1e-9);
}

}  // namespace Bench
}  // namespace Tessera
