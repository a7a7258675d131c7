// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "probe/Tessera_Probe.hpp"

#if defined(TESSERA_HAVE_CUDA)
#include <cuda_runtime_api.h>
#endif

/// \file
/// What a launch costs: kernels without work, back to back in a stream, waited for one by one, and from a graph.

namespace Tessera {
namespace Bench {
namespace {

struct Nothing {
  ProbeWord* sink;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
    if (i < 0) sink->low = 0;
  }
};

Ceiling figure(const std::string& name, double operations, const Timing& time) {
  Ceiling c;
  c.group = "launch";
  c.name = name;
  c.operations = operations;
  c.time = time;
  return c;
}

/// Host time of a call that does not wait; the wait between the samples is not part of it.
template <class F>
Timing enqueuing(const Probe& probe, const F& run) {
  constexpr int runs = 100;  // fewer than a stream's queue holds
  std::vector<double> samples;
  for (int i = 0; i <= probe.options.repeat; ++i) {
    Compat::fence(probe.space, "Tessera::probe");
    const double begin = now();
    for (int k = 0; k < runs; ++k) run();
    if (i > 0) samples.push_back((now() - begin) / runs);
  }
  Compat::fence(probe.space, "Tessera::probe");
  Timing t;
  t.samples = static_cast<int>(samples.size());
  t.runs_per_sample = runs;
  t.median = median_of(samples);
  t.minimum = *std::min_element(samples.begin(), samples.end());
  return t;
}

#if defined(TESSERA_HAVE_CUDA)
void check(cudaError_t status) {
  if (status != cudaSuccess) throw DeviceError(std::string("graph: ") + cudaGetErrorString(status));
}

/// A stream that can be captured, which the default one of old Kokkos versions cannot.
class OwnStream {
 public:
  OwnStream() { check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)); }
  ~OwnStream() { cudaStreamDestroy(stream); }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  cudaStream_t stream = nullptr;
};

/// A graph of empty kernels, one after another.
template <class Space>
class EmptyGraph {
 public:
  EmptyGraph(int kernels, ProbeWord* sink) : space_(own_.stream) {
    Compat::fence(space_, "Tessera::probe");
    check(cudaStreamBeginCapture(own_.stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < kernels; ++i) {
      Kokkos::parallel_for("Tessera::probe graph", ProbePolicy(space_, 0, 1), Nothing{sink});
    }
    check(cudaStreamEndCapture(own_.stream, &graph_));
    check(cudaGraphInstantiateWithFlags(&executable_, graph_, 0));
  }
  ~EmptyGraph() {
    cudaStreamSynchronize(own_.stream);
    cudaGraphExecDestroy(executable_);
    cudaGraphDestroy(graph_);
  }
  EmptyGraph(const EmptyGraph&) = delete;
  EmptyGraph& operator=(const EmptyGraph&) = delete;
  const Space& space() const { return space_; }
  void launch() const { check(cudaGraphLaunch(executable_, own_.stream)); }

 private:
  OwnStream own_;  // outlives the space
  Space space_;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
};

template <class Space>
void probe_graphs(const Probe& probe, ProbeWord* sink) {
  for (const int kernels : {1, 64}) {
    const std::string name = "graph of " + std::to_string(kernels) + (kernels == 1 ? " kernel" : " kernels");
    try {
      const EmptyGraph<Space> graph(kernels, sink);
      Timer<Space> timer(graph.space(), probe.options.repeat, probe.options.budget);
      probe.sheet.add(figure(name + ", back to back, per kernel", kernels, timer.warm([&] { graph.launch(); })));
      const Timing alone = timer.blocking(
          10 * probe.options.repeat, [] {}, [&] { graph.launch(); });
      probe.sheet.add(figure(name + ", launch and wait, a graph", 1, alone));
    } catch (const Error& e) {
      probe.sheet.add_unavailable("launch", name, e.what());
    }
  }
}
#endif

}  // namespace

void probe_launches(const Probe& probe) {
  const ProbeWords sink("Tessera::probe::sink", 1);
  const Nothing nothing{sink.data()};
  const std::int64_t many = resident_threads(probe.space);
  const auto launch = [&](std::int64_t n) {
    Kokkos::parallel_for("Tessera::probe empty", ProbePolicy(probe.space, 0, n), nothing);
  };
  Timer<ProbeSpace> timer = probe.timer();
  probe.sheet.add(figure("empty kernel, one thread, back to back", 1, timer.warm([&] { launch(1); })));
  probe.sheet.add(figure("empty kernel, every resident thread, back to back", 1, timer.warm([&] { launch(many); })));
  const int waits = 10 * probe.options.repeat;
  probe.sheet.add(figure("empty kernel, one thread, launch and wait", 1,
                         timer.blocking(
                             waits, [] {}, [&] { launch(1); })));
  probe.sheet.add(figure("empty kernel, every resident thread, launch and wait", 1,
                         timer.blocking(
                             waits, [] {}, [&] { launch(many); })));
  probe.sheet.add(figure("launch, host time", 1, enqueuing(probe, [&] { launch(1); })));
#if defined(TESSERA_HAVE_CUDA)
  if constexpr (Compat::is_cuda_v<ProbeSpace>) {
    probe_graphs<ProbeSpace>(probe, sink.data());
  } else {
    probe.sheet.add_unavailable("launch", "graph", std::string("Kokkos runs on ") + ProbeSpace::name());
  }
#else
  probe.sheet.add_unavailable("launch", "graph", "built without the CUDA backend");
#endif
  probe.sheet.print_list("launch", "Launches");
}

}  // namespace Bench
}  // namespace Tessera
