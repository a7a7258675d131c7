// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "probe/Tessera_ProbeMatrixUnit.hpp"

#include "Tessera_Device.hpp"
#include "probe/Tessera_Probe.hpp"

namespace Tessera {
namespace Bench {
namespace {

#if defined(TESSERA_HAVE_CUDA)
void measure(const Probe& probe, const MatrixUnitProbe& unit, int units, void* sink) {
  constexpr int waves_a_block = 4, lanes = 32;
  const bool latency = unit.waves_a_unit == 0;
  const int blocks = latency ? 1 : units * unit.waves_a_unit / waves_a_block,
            threads = latency ? lanes : lanes * waves_a_block;
  const int rounds = (latency ? 16384 : 1024) / (probe.options.quick ? 8 : 1);
  const double waves = static_cast<double>(blocks) * threads / lanes;
  Ceiling c;
  c.group = "matrix unit";
  c.name = std::string(unit.name) + (latency ? ", one after another" : ", every multiprocessor");
  c.operations = waves * unit.chains * rounds;
  c.flop = c.operations * unit.flop;
  Status status;
  c.time = probe.timer().warm([&] {
    const Status launched = unit.run(blocks, threads, rounds, sink, Compat::native_stream(probe.space));
    if (!launched.ok()) status = launched;
  });
  if (!status.ok()) c.unavailable = status.message;
  probe.sheet.add(c);
}
#endif

/// Empty if the matrix units of the default execution space can be measured.
std::string why_not() {
  if (!Compat::is_cuda_v<ProbeSpace>) {
    return std::string("Kokkos runs on ") + ProbeSpace::name() + "; only CUDA devices are measured";
  }
  for (const BackendInfo& info : available_backends()) {
    if (info.backend == Backend::Cuda) return info.reason;
  }
  return "no CUDA backend";
}

}  // namespace

void probe_matrix_units(const Probe& probe) {
  const std::string reason = why_not();
  if (!reason.empty()) {
    probe.sheet.add_unavailable("matrix unit", "matrix instructions", reason);
  } else {
#if defined(TESSERA_HAVE_CUDA)
    const ProbeWords sink("Tessera::probe::sink", 1);
    const int units = device_facts(Backend::Cuda).compute_units;
    int count = 0;
    const MatrixUnitProbe* all = cuda_matrix_unit_probes(count);
    for (int i = 0; i < count; ++i) measure(probe, all[i], units, sink.data());
#endif
  }
  probe.sheet.print_list("matrix unit", "Matrix instructions (time per instruction, over all that run at once)");
}

}  // namespace Bench
}  // namespace Tessera
