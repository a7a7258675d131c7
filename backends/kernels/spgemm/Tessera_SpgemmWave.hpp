// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_SPGEMM_SPGEMM_WAVE_HPP
#define TESSERA_KERNELS_SPGEMM_SPGEMM_WAVE_HPP

#include <cstdint>

#include "backends/interface/Tessera_SpgemmArgs.hpp"
#include "backends/units/Tessera_RegisterWords.hpp"
#include "backends/units/Tessera_Wave.hpp"

/// \file
/// What the kernels of SpGEMM share.

namespace Tessera {

/// A row of B that an entry of A names.
struct SpgemmPiece {
  std::int64_t begin;
  std::int32_t count;
};
TESSERA_FUNCTION SpgemmPiece spgemm_piece(const SpgemmArgs& args, std::int64_t entry) {
  const std::int64_t k = args.A.columns[entry], begin = args.B.row_map(k);
  return {begin, static_cast<std::int32_t>(args.B.row_map(k + 1) - begin)};
}

/// Entries of each part of a large row of C.
TESSERA_FUNCTION std::int64_t spgemm_each_part(const SpgemmArgs& args, std::int64_t row, std::int64_t entries) {
  const std::int64_t of_a = args.A.row_map(row + 1) - args.A.row_map(row);
  return SpgemmRowSizes::each_part(entries, args.products[row], of_a, args.small_part);
}

/// v(lane) := v(0) + ... + v(lane).
template <class Wave, class Varying>
TESSERA_FUNCTION void spgemm_scan(const Wave& wave, Varying& v) {
  TESSERA_UNROLL
  for (int distance = 1; distance < Wave::lanes; distance *= 2) {
    Varying other;
    wave.shuffle(other, v, [&](int lane) { return lane >= distance ? lane - distance : lane; });
    wave.each([&](int lane) {
      if (lane >= distance) v(lane) += other(lane);
    });
  }
}
/// The v of one lane.
template <class Wave, class Varying>
TESSERA_FUNCTION auto spgemm_lane(const Wave& wave, const Varying& v, int source) {
  Varying same;
  wave.shuffle(same, v, [&](int) { return source; });
  return Wave::first(same);
}
/// The least or the largest v.
template <bool Least, class Wave>
TESSERA_FUNCTION std::int32_t spgemm_extreme(const Wave& wave, typename Wave::template Varying<std::int32_t> v) {
  TESSERA_UNROLL
  for (int distance = Wave::lanes / 2; distance > 0; distance /= 2) {
    typename Wave::template Varying<std::int32_t> other;
    wave.shuffle(other, v, [&](int lane) { return lane ^ distance; });
    wave.each([&](int lane) {
      if (Least ? other(lane) < v(lane) : v(lane) < other(lane)) v(lane) = other(lane);
    });
  }
  return Wave::first(v);
}

/// Products of rows of C, a team of 2^Shift lanes per row: rows of B follow one another, and the lanes of a team take
/// their entries, which have different columns. Entries of A are looked up by all lanes side by side, and the first
/// entries of the next row of B are under way while those of one are worked on.
/// Ahead: so are those behind them; for kernels that have registers for it.
template <class Wave, class Value, int Shift, bool Numbers, bool Ahead>
class SpgemmTeamProducts {
 public:
  static constexpr int lanes = 1 << Shift;
  template <class T>
  using Varying = typename Wave::template Varying<T>;
  /// Entries of A.
  struct Span {
    std::int64_t begin, end;
  };
  TESSERA_FUNCTION static int own(int lane) { return lane & (lanes - 1); }

  /// f(lane, column, number of A, number of B; zeros if not Numbers); one row of B after the other.
  template <class F>
  TESSERA_FUNCTION static void each(const Wave& wave, const SpgemmArgs& args, Varying<Span> row, const F& f) {
    const auto* const columns = args.B.columns;
    const auto* const a_values = static_cast<const Value*>(args.A.values);
    const auto* const b_values = static_cast<const Value*>(args.B.values);
    for (;;) {
      Varying<bool> more;
      wave.each([&](int lane) { more(lane) = row(lane).begin < row(lane).end; });
      if (wave.ballot(more) == 0) break;
      Entries batch;
      wave.each([&](int lane) {
        const std::int64_t e = row(lane).begin + own(lane);
        const bool on = e < row(lane).end;
        const SpgemmPiece piece = on ? spgemm_piece(args, e) : SpgemmPiece{0, 0};
        batch.begin(lane) = piece.begin;
        batch.count(lane) = piece.count;
        if (Numbers) batch.a(lane) = on ? a_values[e] : Value(0);
      });
      int steps = lanes;
      if (lanes == Wave::lanes) {
        const std::int64_t left = Wave::first(row).end - Wave::first(row).begin;
        if (left < lanes) steps = static_cast<int>(left);
      }
      Step now = first(wave, args, batch, 0);
      for (int j = 0; j < steps; ++j) {
        const Step next = j + 1 < steps ? first(wave, args, batch, j + 1) : now;
        wave.each([&](int lane) {
          const std::int32_t count = now.of.count(lane);
          const Value a = Numbers ? now.of.a(lane) : Value(0);
          std::int32_t column = now.column(lane);
          Value b = Numbers ? now.b(lane) : Value(0);
          for (std::int32_t i = own(lane); i < count; i += lanes) {
            const std::int64_t next = now.of.begin(lane) + i + lanes;
            const bool more = i + lanes < count;
            std::int32_t next_column = 0;
            Value next_b(0);
            const auto load = [&] {
              next_column = columns[next];
              if (Numbers) next_b = b_values[next];
            };
            if (more && Ahead) load();
            f(lane, column, a, b);
            if (more && !Ahead) load();
            column = next_column;
            b = next_b;
          }
        });
        wave.converge();
        now = next;
      }
      wave.each([&](int lane) { row(lane).begin += lanes; });
    }
  }

 private:
  /// Of A, with the rows of B that they name.
  struct Entries {
    Varying<std::int64_t> begin;
    Varying<std::int32_t> count;
    Varying<Value> a;
  };
  /// One of these, the same in all lanes of a team, and the lane's first entry of its row of B.
  struct Step {
    Entries of;
    Varying<std::int32_t> column;
    Varying<Value> b;
  };
  TESSERA_FUNCTION static Step first(const Wave& wave, const SpgemmArgs& args, const Entries& batch, int j) {
    Step step;
    const auto source = [j](int lane) { return (lane & ~(lanes - 1)) + j; };
    wave.shuffle(step.of.begin, batch.begin, source);
    wave.shuffle(step.of.count, batch.count, source);
    if (Numbers) wave.shuffle(step.of.a, batch.a, source);
    wave.each([&](int lane) {
      const bool on = own(lane) < step.of.count(lane);
      const std::int64_t at = step.of.begin(lane) + own(lane);
      step.column(lane) = on ? args.B.columns[at] : 0;
      if (Numbers) step.b(lane) = on ? static_cast<const Value*>(args.B.values)[at] : Value(0);
    });
    return step;
  }
};

}  // namespace Tessera

#endif
