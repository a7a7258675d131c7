// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_LAUNCH_CELLS_LAUNCH_HPP
#define TESSERA_LAUNCH_CELLS_LAUNCH_HPP

#include "backends/interface/Tessera_StoreResult.hpp"
#include "backends/kernels/spmv/Tessera_CellsKernel.hpp"
#include "backends/launch/Tessera_Launch.hpp"
#include "backends/launch/Tessera_SpmvLaunchers.hpp"
#include "backends/units/Tessera_Wave.hpp"

/// \file
/// Launchers of SpMV from packed slices in cells: a thread block per multiprocessor, all of its shared memory.

namespace Tessera {
namespace Launch {

/// A row block in a share of the columns.
template <class Device, class Value>
struct CellsBody {
  using Wave = typename Device::Wave;
  using Kernel = CellsKernel<Value, Wave>;
  using Sum = typename Kernel::Sum;
  static constexpr int threads = 1024, waves = threads / Wave::lanes, bound = 1, shared = 0;
  static constexpr bool overlapping = true;
  static constexpr unsigned per_word = sizeof(Word) / sizeof(Value);

  /// Elements of the table: x of a column block, and a zero at a word of its own.
  TESSERA_FUNCTION static constexpr std::size_t table_size(std::size_t block_columns) {
    return block_columns + per_word;
  }
  static std::size_t bytes(const SpmvCellsArgs& p) {
    return CellsLayout::shared_bytes(p.sums, p.block_columns, sizeof(Value));
  }

  template <class ThreadBlock>
  TESSERA_FUNCTION static void run(const ThreadBlock& thread_block, const SpmvCellsArgs& p) {
    const unsigned block = thread_block.index() / p.shares, share = thread_block.index() % p.shares;
    const unsigned first = p.share_first[share], cells = p.share_first[share + 1] - first;
    Sum* const sums = reinterpret_cast<Sum*>(thread_block.memory());
    Value* const table = reinterpret_cast<Value*>(sums + p.sums);
    CellsRun* const runs = reinterpret_cast<CellsRun*>(table + table_size(p.block_columns));
    const std::size_t cell = std::size_t{block} * p.column_blocks + first;
    const auto fetch_runs = [&](unsigned thread, unsigned k) {
      if (k >= cells || thread >= unsigned{CellsLayout::runs}) return;
      const CellsRun run = p.runs[(cell + k) * CellsLayout::runs + thread];
      runs[k % 2 * CellsLayout::runs + thread] = {run.word, run.unit + p.units[cell + k]};
    };
    thread_block.each_thread([&](unsigned thread) {
      fetch_runs(thread, 0);
      for (unsigned i = thread; i < p.sums; i += threads) sums[i] = Sum(0);
      if (thread == 0) table[p.block_columns] = static_cast<Value>(0.0f);
    });
    thread_block.template wait_for_previous_launch<true>();
    thread_block.synchronize();
    typename Kernel::State state[ThreadBlock::template held<waves>];
    const auto start = [&](unsigned k) {
      thread_block.each_wave([&](unsigned wave) {
        Kernel::start(Wave(), p, state[ThreadBlock::held_at(wave)], runs + k % 2 * CellsLayout::runs, wave, waves);
      });
    };
    if (cells > 0) start(0);
    for (unsigned k = 0; k < cells; ++k) {
      fetch(thread_block, p, first + k, table, [&](unsigned thread) { fetch_runs(thread, k + 1); });
      thread_block.synchronize();
      thread_block.each_wave(
          [&](unsigned wave) { Kernel::multiply(Wave(), p, state[ThreadBlock::held_at(wave)], table, sums, waves); });
      if (k + 1 < cells) start(k + 1);
      thread_block.synchronize();
    }
    finish(thread_block, p, block, share, sums);
  }

 private:
  /// x of a column block to the table. @param meanwhile  done by threads while x is on its way
  template <class ThreadBlock, class Meanwhile>
  TESSERA_FUNCTION static void fetch(const ThreadBlock& thread_block, const SpmvCellsArgs& p, unsigned column_block,
                                     Value* table, const Meanwhile& meanwhile) {
    const std::int64_t first = std::int64_t{column_block} * p.block_columns, left = p.cols - first;
    const auto count = static_cast<unsigned>(left < p.block_columns ? left : p.block_columns);
    const Value* const x = static_cast<const Value*>(p.x) + first * p.x_stride;
    const bool aligned = p.x_stride == 1 && reinterpret_cast<std::uintptr_t>(x) % sizeof(Word) == 0;
    const unsigned words = aligned ? count / per_word : 0;
    thread_block.each_thread([&](unsigned thread) {
      for (unsigned i = thread; i < words; i += threads) {
        Wave::template copy_async<false>(Wave::memory(reinterpret_cast<char*>(table + i * per_word)), x + i * per_word,
                                         true);
      }
      Wave::commit_copies();
      for (unsigned i = words * per_word + thread; i < count; i += threads) table[i] = x[i * p.x_stride];
      meanwhile(thread);
      Wave::template wait_copies<0>();
    });
  }

  /// Sums of cut rows, then all sums to y or, of one share among several, to memory.
  template <class ThreadBlock>
  TESSERA_FUNCTION static void finish(const ThreadBlock& thread_block, const SpmvCellsArgs& p, unsigned block,
                                      unsigned share, Sum* sums) {
    thread_block.each_thread([&](unsigned thread) {
      const CellsCut* const cuts = p.cuts + std::size_t{block} * p.most_cuts;
      for (unsigned i = thread; i < p.cut_counts[block]; i += threads) {
        Sum sum = sums[cuts[i].place];
        for (unsigned k = 0; k < cuts[i].count; ++k) sum += sums[cuts[i].first + k];
        sums[cuts[i].place] = sum;
      }
    });
    thread_block.synchronize();
    thread_block.each_thread([&](unsigned thread) {
      for (unsigned i = thread; i < p.groups * CellsLayout::row_group; i += threads) {
        const std::uint32_t group = p.row_groups[block * p.groups + i / CellsLayout::row_group];
        const std::int64_t row = std::int64_t{group} * CellsLayout::row_group + i % CellsLayout::row_group;
        if (group == CellsLayout::none || row >= p.rows) continue;
        if (p.shares == 1) {
          store_result<Value>(p, row * p.y_stride, sums[i]);
        } else {
          static_cast<Sum*>(p.partials)[share * p.rows + row] = sums[i];
        }
      }
    });
  }
};

/// Adds the sums of the shares, in their order.
template <class Value>
struct AddSharesBody {
  using Sum = std::conditional_t<sizeof(Value) == 8, double, float>;
  static constexpr int threads = 256, bound = 0, shared = 0;
  static constexpr bool overlapping = true;

  template <class ThreadBlock>
  TESSERA_FUNCTION static void run(const ThreadBlock& thread_block, const SpmvCellsArgs& p) {
    thread_block.template wait_for_previous_launch<true>();
    thread_block.each_thread([&](unsigned thread) {
      const std::int64_t row = std::int64_t{thread_block.index()} * threads + thread;
      if (row >= p.rows) return;
      const Sum* const partials = static_cast<const Sum*>(p.partials) + row;
      Sum sum = partials[0];
      for (unsigned share = 1; share < p.shares; ++share) sum += partials[share * p.rows];
      store_result<Value>(p, row * p.y_stride, sum);
    });
  }
};

template <class Device, class Value>
Status launch_cells(const SpmvCellsArgs& args, Stream stream) {
  using Body = CellsBody<Device, Value>;
  const Grid grid{std::int64_t{args.row_blocks} * args.shares, 1, Body::bytes(args)};
  if (grid.table_bytes > Device::shared_bytes())
    return {"spmv[cells]: more shared memory than a thread block can have"};
  typename Device::Error error = launch<Device, Body>(grid, stream, args);
  if (error == Device::success && args.shares > 1) {
    using Add = AddSharesBody<Value>;
    error = launch<Device, Add>({ceil_div(args.rows, Add::threads)}, stream, args);
  }
  return Device::status(error, "Tessera::spmv[cells]");
}

template <class Device>
Status spmv_cells(const SpmvCellsArgs& args, Stream stream) noexcept {
  if (args.rows == 0) return {};
  switch (args.precision) {
    case Precision::FP64:
      return launch_cells<Device, double>(args, stream);
    case Precision::FP32:
      return launch_cells<Device, float>(args, stream);
    case Precision::FP16:
      return launch_cells<Device, half_t>(args, stream);
    case Precision::BF16:
      return launch_cells<Device, bhalf_t>(args, stream);
    default:
      return {"spmv[cells]: FP64, FP32, FP16 and BF16 are offered"};
  }
}

}  // namespace Launch
}  // namespace Tessera

#endif
