// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/emulated/Tessera_EmulatedSpmm.hpp"

#include <algorithm>
#include <vector>

#include "backends/emulated/Tessera_EmulatedPartials.hpp"
#include "backends/kernels/spmm/Tessera_PanelDispatch.hpp"
#include "backends/kernels/spmm/Tessera_RowsKernel.hpp"

/// \file
/// Panels and rows on emulated waves and matrix units, parts one after another.

namespace Tessera {
namespace {

struct PanelEmulation {
  const SpmmPanelArgs& args;

  template <class Atom, int Steps, int Chunks, int Bytes>
  Status run() const {
    using Wave = HostWave<Atom::lanes>;
    using Kernel = PanelKernel<typename UnitOf<Emulated, Atom>::type, Wave, Steps, Chunks, Bytes>;
    const Wave wave;
    const SpmmPanelArgs shared_out = panel_shared_out(args, Kernel::tile_columns, 3);  // so that windows are shared out
    std::vector<Word> memory(static_cast<std::size_t>(Kernel::wave_bytes) / sizeof(Word));
    for (std::int64_t column = 0; column < args.dense.columns; column += Kernel::tile_columns) {
      for (std::int64_t part = 0; part < shared_out.split.part_count; ++part) {
        // What a kernel reads without having written it must not look like something.
        std::fill(memory.begin(), memory.end(), Word{{~0u, ~0u, ~0u, ~0u}});
        Kernel::run(wave, shared_out, Wave::memory(reinterpret_cast<char*>(memory.data())), part, column);
      }
    }
    emulate_add_partials<typename Atom::Operand, typename Atom::Accumulator, Wave>(
        spmm_partial_rows(args, Kernel::Shape::rows));
    return {};
  }
};

template <class Vendor>
Status run_panels(const SpmmPanelArgs& args) noexcept {
  const Status status = panel_check(args);
  if (!status.ok() || args.split.part_count == 0) return status;
  return Vendor::dispatch(args, PanelEmulation{args});
}

template <class Types, int Lanes>
Status run_rows(const SpmmRowsArgs& args) {
  // A device of few lanes, so that small matrices fill it; 64-bit entry numbers for some numbers of columns.
  constexpr std::int64_t lanes = 256;
  const auto run = [](auto kernel, const SpmmRowsArgs& ready) {
    using Kernel = decltype(kernel);
    const typename Kernel::Wave wave;
    const std::int32_t tile = Kernel::tile_columns(ready);
    for (std::int32_t column = 0; column < ready.dense.columns; column += tile) {
      for (std::int64_t item = 0; item < ready.count; item += Kernel::items(ready)) {
        Kernel::run(wave, ready, item, column, RowsAhead{3, 5});
      }
    }
  };
  rows_dispatch<Types, HostWave<Lanes>>(args, lanes, args.dense.columns % 4 != 3, run);
  emulate_add_partials<typename Types::Value, typename Types::Sum, HostWave<Lanes>>(spmm_partial_rows(args));
  return {};
}

template <int Lanes>
Status run_tf32_rows(SpmmRowsArgs args) {
  if (args.compact == nullptr) return run_rows<RowsTypes<float, float>, Lanes>(args);
  const SpmmDense copy = CompactB::dense(args.dense, args.cols, args.compact);
  for (std::int64_t n = 0; n < args.cols * copy.ldb; ++n) compact_b_group(args.dense, copy, n / copy.ldb, n % copy.ldb);
  args.dense = copy;
  return run_rows<RowsTypes<float, float, RowsOfCompactB>, Lanes>(args);
}

template <int Lanes>
Status run_rows(const SpmmRowsArgs& args) noexcept {
  const Status status = rows_check(args);
  if (!status.ok()) return status;
  switch (args.precision) {
    case Precision::FP64:
      return run_rows<RowsTypes<double, double>, Lanes>(args);
    case Precision::FP32:
      return run_rows<RowsTypes<float, float>, Lanes>(args);
    case Precision::TF32:
      return run_tf32_rows<Lanes>(args);
    case Precision::FP16:
      return run_rows<RowsTypes<half_t, float>, Lanes>(args);
    case Precision::BF16:
      return run_rows<RowsTypes<bhalf_t, float>, Lanes>(args);
  }
  return {"spmm[gespmm]: unknown precision"};
}

}  // namespace

const PanelGeometry* emulated_nvidia_panel_geometry(Precision precision, std::int64_t columns) noexcept {
  return PanelNvidia::geometry(precision, columns);
}
const PanelGeometry* emulated_amd_panel_geometry(Precision precision, std::int64_t columns) noexcept {
  return PanelAmd::geometry(precision, columns);
}
Status emulated_nvidia_spmm_panels(const SpmmPanelArgs& args, Stream) noexcept { return run_panels<PanelNvidia>(args); }
Status emulated_amd_spmm_panels(const SpmmPanelArgs& args, Stream) noexcept { return run_panels<PanelAmd>(args); }
Status emulated_nvidia_spmm_rows(const SpmmRowsArgs& args, Stream) noexcept { return run_rows<32>(args); }
Status emulated_amd_spmm_rows(const SpmmRowsArgs& args, Stream) noexcept { return run_rows<64>(args); }

}  // namespace Tessera
