// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_LAUNCH_SPGEMM_LAUNCH_HPP
#define TESSERA_LAUNCH_SPGEMM_LAUNCH_HPP

#include <algorithm>

#include "backends/kernels/spgemm/Tessera_SpgemmBitsKernel.hpp"
#include "backends/kernels/spgemm/Tessera_SpgemmNumbersKernel.hpp"
#include "backends/kernels/spgemm/Tessera_SpgemmRowsKernel.hpp"
#include "backends/kernels/spgemm/Tessera_SpgemmSharedRowsKernel.hpp"
#include "backends/kernels/spgemm/Tessera_SpgemmTableKernel.hpp"
#include "backends/launch/Tessera_Launch.hpp"
#include "backends/launch/Tessera_SpgemmLaunchers.hpp"
#include "backends/launch/Tessera_SpgemmTurn.hpp"
#include "backends/launch/Tessera_SpgemmWindowLaunch.hpp"

/// \file
/// Launchers of SpGEMM.

namespace Tessera {
namespace Launch {

/// Threads of a block that looks at rows, one per thread at once.
constexpr int spgemm_row_threads = 256;

/// A kernel of a thread block.
template <class Device, template <class, class, int> class Kernel, class Stage>
struct SpgemmRowsBody {
  using Wave = typename Device::Wave;
  static constexpr int threads = spgemm_row_threads, bound = 0;
  using Work = Kernel<Wave, Stage, threads / Wave::lanes>;
  static constexpr int shared = Work::bytes;
  static constexpr bool overlapping = true;
  template <class ThreadBlock>
  TESSERA_FUNCTION static void run(const ThreadBlock& thread_block, const SpgemmArgs& args) {
    thread_block.template wait_for_previous_launch<false>();
    Work::run(thread_block, args);
  }
};

/// A kernel of a wave that takes several rows of a list.
template <class Device, class Kernel, int Waves>
struct SpgemmListBody {
  using Wave = typename Device::Wave;
  static constexpr int threads = Waves * Wave::lanes, bound = 0, shared = Waves * Kernel::bytes;
  static constexpr bool overlapping = true;
  template <class ThreadBlock>
  TESSERA_FUNCTION static void run(const ThreadBlock& thread_block, const SpgemmArgs& args, SpgemmTurn turn,
                                   std::int64_t begin, std::int64_t end) {
    spgemm_in_turn(thread_block, turn, [&] {
      thread_block.each_wave([&](unsigned in_thread_block) {
        const std::int64_t index = std::int64_t{thread_block.index()} * Waves + in_thread_block;
        const std::int64_t first = begin + index * Kernel::rows;
        if (first >= end) return;
        const Wave wave;
        Kernel::run(wave, args, first, end, thread_block.memory() + in_thread_block * Kernel::bytes);
      });
    });
  }
};

template <class Device, class Kernel>
struct SpgemmBitsBody {
  static constexpr int threads = Kernel::threads, shared = Kernel::bytes;
  // Large thread blocks as many as there is room for: with 40 registers instead of 32 searches took 1.1 times as long.
  static constexpr int bound = for_family<Device>(threads >= 512 ? 2048 / threads : 0, 0);
  static constexpr bool overlapping = true;
  template <class ThreadBlock>
  TESSERA_FUNCTION static void run(const ThreadBlock& thread_block, const SpgemmArgs& args, SpgemmTurn turn,
                                   std::int64_t begin, int lanes) {
    spgemm_in_turn(thread_block, turn, [&] { Kernel::run(thread_block, args, begin + thread_block.index(), lanes); });
  }
};

template <class Device, class Value>
struct SpgemmPartsBody {
  using Wave = typename Device::Wave;
  using Kernel = SpgemmPartsKernel<Wave, Value>;
  static constexpr int waves = for_family<Device>(2, 1), threads = waves * Wave::lanes, bound = 0;
  static constexpr int shared = waves * Kernel::bytes;
  static constexpr bool overlapping = true;
  template <class ThreadBlock>
  TESSERA_FUNCTION static void run(const ThreadBlock& thread_block, const SpgemmArgs& args, SpgemmTurn turn,
                                   std::int64_t parts) {
    spgemm_in_turn(thread_block, turn, [&] {
      thread_block.each_wave([&](unsigned in_thread_block) {
        const std::int64_t index = std::int64_t{thread_block.index()} * waves + in_thread_block;
        if (index >= parts) return;
        const Wave wave;
        Kernel::run(wave, args, args.part[index], thread_block.memory() + in_thread_block * Kernel::bytes);
      });
    });
  }
};

/// Rows of a list, several thread blocks each.
template <class Device, class Value>
struct SpgemmSharedRowsBody {
  using Wave = typename Device::Wave;
  static constexpr int waves = for_family<Device>(16, 8), threads = waves * Wave::lanes, bound = 0;
  using Kernel = SpgemmSharedRowsKernel<Wave, Value, waves, for_family<Device>(4096, 2048)>;
  static constexpr int shared = Kernel::bytes;
  static constexpr bool overlapping = true;
  template <class ThreadBlock>
  TESSERA_FUNCTION static void run(const ThreadBlock& thread_block, const SpgemmArgs& args, SpgemmTurn turn,
                                   std::int64_t begin, std::int64_t of_row) {
    spgemm_in_turn(thread_block, turn, [&] {
      const std::int64_t index = thread_block.index();
      Kernel::run(thread_block, args, args.sizes[begin + index / of_row], index % of_row, of_row);
    });
  }
};

/// A tile of rows per thread block; more of them where thread blocks would have to add up too many totals, and less
/// than one where multiprocessors would have nothing to do. Of a large B more thread blocks look at entries than at
/// rows.
template <class Device>
void spgemm_deal(SpgemmArgs& args) noexcept {
  constexpr std::int64_t most = Device::emulated ? 3 : 1024, least = 32, entries = 8192;
  const std::int64_t rows = std::max<std::int64_t>(args.A.rows, 1);
  const std::int64_t whole = ceil_div(ceil_div(rows, spgemm_row_threads), most) * spgemm_row_threads;
  const std::int64_t spread = ceil_div(rows, 2 * Device::multiprocessors() * least) * least;
  args.rows_per_block = spread <= spgemm_row_threads && ceil_div(rows, spread) <= most ? spread : whole;
  args.window_rows = SpgemmWindows<Device>::Atom::m;
  args.thread_blocks = std::max(ceil_div(rows, args.rows_per_block), std::min(most, args.B.nnz / entries));
}

template <class Device, class Stage>
typename Device::Error launch_spgemm_rows(const SpgemmArgs& args, Stream stream) {
  const Grid grid{args.thread_blocks};
  const auto error = launch<Device, SpgemmRowsBody<Device, SpgemmTallyKernel, Stage>>(grid, stream, args);
  if (error != Device::success) return error;
  return launch<Device, SpgemmRowsBody<Device, SpgemmPlaceKernel, Stage>>(grid, stream, args);
}
template <class Device>
Status spgemm_look(const SpgemmArgs& args, Stream stream) noexcept {
  return Device::status(launch_spgemm_rows<Device, SpgemmLook<typename Device::Wave>>(args, stream),
                        "Tessera::spgemm[look]");
}
template <class Device>
Status spgemm_offsets(const SpgemmArgs& args, Stream stream) noexcept {
  return Device::status(launch_spgemm_rows<Device, SpgemmCounted<typename Device::Wave>>(args, stream),
                        "Tessera::spgemm[offsets]");
}

/// Launches the kernels of a stage. Those of long rows come first, so that no multiprocessor has one at the end.
template <class Device>
class SpgemmLists {
 public:
  SpgemmLists(const SpgemmArgs& args, const SpgemmTotals& totals, Stream stream)
      : args_(args), totals_(totals), stream_(stream) {}
  typename Device::Error error = Device::success;

  /// The rows of a kind, or size.
  template <class Kernel>
  void rows(int kind) {
    range<Kernel>(begin(kind), totals_.rows[kind]);
  }
  template <class Kernel>
  void range(std::int64_t begin, std::int64_t n) {
    constexpr int waves = for_family<Device>(4, 2);
    using Body = SpgemmListBody<Device, Kernel, waves>;
    start<Body>(ceil_div(n, std::int64_t{waves} * Kernel::rows), begin, begin + n);
  }
  template <class Kernel>
  void thread_blocks(int kind, int lanes) {
    start<SpgemmBitsBody<Device, Kernel>>(totals_.rows[kind], begin(kind), lanes);
  }
  /// Windows of a size.
  template <class Kernel>
  void windows(int size) {
    start<SpgemmTilesBody<Device, Kernel>>(totals_.rows[size], begin(size));
  }
  template <class Body, class... Args>
  void start(std::int64_t thread_blocks, const Args&... args) {
    if (thread_blocks == 0 || error != Device::success) return;
    error = launch<Device, Body>({thread_blocks}, stream_, args_, turn_, args...);
    turn_ = SpgemmTurn::Later;
  }
  /// Rows of the kinds before.
  std::int64_t begin(int kind) const {
    std::int64_t rows = 0;
    for (int k = 0; k < kind; ++k) rows += totals_.rows[k];
    return rows;
  }

 private:
  const SpgemmArgs& args_;
  const SpgemmTotals& totals_;
  Stream stream_;
  SpgemmTurn turn_ = SpgemmTurn::First;
};

template <class Device, class Value, bool Numbers>
void launch_spgemm_tables(SpgemmLists<Device>& lists) {
  using Wave = typename Device::Wave;
  lists.template rows<SpgemmTableKernel<Wave, Value, 5, SpgemmRowKinds::slots(4), Numbers>>(4);
  lists.template rows<SpgemmTableKernel<Wave, Value, 4, SpgemmRowKinds::slots(3), Numbers>>(3);
  lists.template rows<SpgemmTableKernel<Wave, Value, 3, SpgemmRowKinds::slots(2), Numbers>>(2);
  lists.template rows<SpgemmTableKernel<Wave, Value, 3, SpgemmRowKinds::slots(1), Numbers>>(1);
  lists.template rows<SpgemmTableKernel<Wave, Value, 2, SpgemmRowKinds::slots(0), Numbers>>(0);
}
template <class Device>
void launch_spgemm_bits(SpgemmLists<Device>& lists, const SpgemmArgs& args) {
  using Wave = typename Device::Wave;
  // As many lanes as the mean row of B has entries, at least.
  int lanes = 4;
  while (lanes < 32 && lanes * args.B.rows < args.B.nnz) lanes *= 2;
  using Vast = SpgemmBitsKernel<Wave, for_family<Device>(32, 16), for_family<Device>(24576, 12288), 4>;
  using Wide = SpgemmBitsKernel<Wave, for_family<Device>(16, 8), for_family<Device>(8192, 4096), 1>;
  using Narrow = SpgemmBitsKernel<Wave, for_family<Device>(2, 1), SpgemmRowKinds::narrow_columns / 32 + 1, 1>;
  if (static_cast<std::size_t>(Vast::bytes) <= Device::shared_bytes()) {
    lists.template thread_blocks<Vast>(SpgemmRowKinds::vast, lanes);
  } else {
    lists.template thread_blocks<Wide>(SpgemmRowKinds::vast, lanes);
  }
  lists.template thread_blocks<Wide>(SpgemmRowKinds::wide, lanes);
  lists.template thread_blocks<Narrow>(SpgemmRowKinds::narrow, lanes);
}
template <class Device>
Status spgemm_columns(const SpgemmArgs& args, const SpgemmTotals& totals, Stream stream) noexcept {
  SpgemmLists<Device> lists(args, totals, stream);
  launch_spgemm_bits(lists, args);
  if (!args.once) {
    launch_spgemm_tables<Device, float, false>(lists);
  } else if (args.fp64) {
    launch_spgemm_tables<Device, double, true>(lists);
  } else {
    launch_spgemm_tables<Device, float, true>(lists);
  }
  return Device::status(lists.error, "Tessera::spgemm[columns]");
}

template <class Device, class Value>
Status launch_spgemm_numbers(const SpgemmArgs& args, const SpgemmTotals& totals, Stream stream) {
  using Wave = typename Device::Wave;
  using Sizes = SpgemmRowSizes;
  SpgemmLists<Device> lists(args, totals, stream);
  // Enough thread blocks for all multiprocessors; of a row of many parts each takes several.
  constexpr std::int64_t least = 4;
  const std::int64_t shared = totals.rows[Sizes::shared];
  const std::int64_t of_row =
      std::max(ceil_div(3 * Device::multiprocessors(), std::max<std::int64_t>(shared, 1)), least);
  lists.template start<SpgemmSharedRowsBody<Device, Value>>(shared * of_row, lists.begin(Sizes::shared), of_row);
  if constexpr (std::is_same_v<Value, double>) {
    lists.template windows<typename SpgemmWindows<Device>::Large>(Sizes::large_window);
    lists.template windows<typename SpgemmWindows<Device>::Small>(Sizes::small_window);
  }
  using Parts = SpgemmPartsBody<Device, Value>;
  lists.template start<Parts>(ceil_div(totals.parts, Parts::waves), totals.parts);
  lists.template rows<SpgemmWholeRowsKernel<Wave, Value, 5, Sizes::holds(2)>>(2);
  lists.template rows<SpgemmWholeRowsKernel<Wave, Value, 3, Sizes::holds(1)>>(1);
  lists.template rows<SpgemmWholeRowsKernel<Wave, Value, 2, Sizes::holds(0)>>(0);
  if (args.once) lists.template range<SpgemmCopyKernel<Wave, Value>>(0, args.A.rows);
  return Device::status(lists.error, "Tessera::spgemm[numbers]");
}
template <class Device>
Status spgemm_numbers(const SpgemmArgs& args, const SpgemmTotals& totals, Stream stream) noexcept {
  return args.fp64 ? launch_spgemm_numbers<Device, double>(args, totals, stream)
                   : launch_spgemm_numbers<Device, float>(args, totals, stream);
}

}  // namespace Launch
}  // namespace Tessera

#endif
