// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_ATTENTION_ATTENTION_ROWS_KERNEL_HPP
#define TESSERA_KERNELS_ATTENTION_ATTENTION_ROWS_KERNEL_HPP

#include <cstdint>

#include "backends/kernels/attention/Tessera_AttentionPieces.hpp"
#include "backends/kernels/attention/Tessera_AttentionRowsWalk.hpp"
#include "backends/kernels/attention/Tessera_AttentionWeights.hpp"
#include "backends/units/Tessera_Wave.hpp"

/// \file
/// O := softmax(scale Q K^T on a pattern) V by rows, in one pass, on ordinary arithmetic: where neighbouring rows share
/// few columns, so that windows fetch a row of K and of V per entry as this does, and for what units do not multiply.
///
/// Rows of K and of V of a batch are all under way before the first is used; what bounds the kernel is how many bytes
/// caches deliver. Sums and their reference (the largest score yet) stay in registers, and change once per batch, not
/// per entry. Sums of pieces of long rows are brought together by a second launch, in order.

namespace Tessera {

template <class Wave_, class Shape, class Value>
class AttentionRowsKernel {
 public:
  using Wave = Wave_;
  using Team = AttentionRowsTeam<Wave, Shape, Value>;
  using Head = AttentionHead<Value>;
  static constexpr int teams = Team::teams, batch = Team::batch;
  /// Of four waves each, that a multiprocessor holds (NVIDIA): by the words of a lane.
  static constexpr int words = Shape::words * (2 * batch + 2);
  static constexpr int thread_blocks = words <= 12 ? 6 : words <= 16 ? 5 : words <= 20 ? 4 : 3;

  /// Shares from `first` on, one per team.
  TESSERA_FUNCTION static void run(const Wave& wave, const AttentionRowsArgs& args, std::int64_t first,
                                   std::int64_t head_index) {
    const Head head(args.dense, head_index);
    Varying<typename Team::Place> place;
    Varying<typename Team::Step> next;
    Varying<State> state;
    wave.each([&](int lane) {
      place(lane) = Team::begin(args, first + (lane >> Shape::shift));
      next(lane) = Team::take(args, place(lane));
      clear(state(lane));
      Team::clear(state(lane).q);
    });
    for (;;) {
      Varying<bool> alive;
      wave.each([&](int lane) { alive(lane) = next(lane).alive; });
      if (wave.ballot(alive) == 0) return;
      const Varying<typename Team::Step> now = next;
      Varying<Gathered> gathered;
      Varying<typename Team::Batch> products;
      wave.each([&](int lane) {
        load(head, now(lane), lane, gathered(lane));
        if (now(lane).begins) {
          Team::load(head.q(), now(lane).row, true, lane, state(lane).q);
          clear(state(lane));
        }
        next(lane) = Team::take(args, place(lane));
        TESSERA_UNROLL
        for (int b = 0; b < batch; ++b) products(lane).of[b] = Team::product(state(lane).q, gathered(lane).k[b]);
      });
      Team::add_up(wave, products);
      wave.each([&](int lane) {
        add(head, now(lane), products(lane), gathered(lane), state(lane));
        if (now(lane).ends) store(args, head, now(lane), state(lane), lane);
      });
    }
  }

 private:
  template <class T>
  using Varying = typename Wave::template Varying<T>;
  using Row = typename Team::Row;
  using Step = typename Team::Step;
  struct State {
    Row q;
    typename Team::RowSums sums;
    Value reference, total;
  };
  struct Gathered {
    Row k[batch], v[batch];
    Value number[batch];
  };

  TESSERA_FUNCTION static void clear(State& state) {
    TESSERA_UNROLL
    for (int w = 0; w < Shape::words; ++w) {
      TESSERA_UNROLL
      for (int i = 0; i < Team::width; ++i) state.sums.s[w][i] = 0;
    }
    state.reference = attention_no_reference_of<Value>;
    state.total = 0;
  }
  TESSERA_FUNCTION static void load(const Head& head, const Step& step, int lane, Gathered& to) {
    TESSERA_UNROLL
    for (int b = 0; b < batch; ++b) Team::load(head.k(), step.column[b], (step.on >> b & 1) != 0, lane, to.k[b]);
    TESSERA_UNROLL
    for (int b = 0; b < batch; ++b) Team::load(head.v(), step.column[b], (step.on >> b & 1) != 0, lane, to.v[b]);
    if (!head.valued()) return;
    TESSERA_UNROLL
    for (int b = 0; b < batch; ++b)
      to.number[b] = Wave::gather_if(head.numbers() + (std::int64_t{step.first} + b), (step.on >> b & 1) != 0);
  }

  /// A batch's weighted rows of V, after the sums were brought to its largest score, if that is a new one.
  TESSERA_FUNCTION static void add(const Head& head, const Step& step, const typename Team::Batch& products,
                                   Gathered& gathered, State& state) {
    constexpr Value none = static_cast<Value>(attention_no_score);
    Value score[batch], largest = none;
    std::uint32_t off = 0;
    TESSERA_UNROLL
    for (int b = 0; b < batch; ++b) {
      const Value product = products.of[b];
      score[b] = head.valued() ? head.score_by(product, gathered.number[b]) : product * head.scale();
      if ((step.on >> b & 1) == 0) score[b] = none;
      off |= static_cast<std::uint32_t>(score[b] == none) << b;
      largest = score[b] > largest ? score[b] : largest;
    }
    if ((off & step.on) != 0) {  // what such entries have of V is not seen, whatever it is
      TESSERA_UNROLL
      for (int b = 0; b < batch; ++b) {
        if ((off >> b & 1) != 0) Team::clear(gathered.v[b]);
      }
    }
    if (largest > state.reference) {
      const Value shrink = power_of_two(state.reference - largest);
      state.reference = largest;
      state.total *= shrink;
      Team::scale(state.sums, shrink);
    }
    TESSERA_UNROLL
    for (int b = 0; b < batch; ++b) {
      const Value weight = power_of_two(score[b] - state.reference);
      state.total += weight;
      Team::add(weight, gathered.v[b], state.sums);
    }
  }

  TESSERA_FUNCTION static void store(const AttentionRowsArgs& args, const Head& head, const Step& step,
                                     const State& state, int lane) {
    const int e = head.e();
    if (step.partial < 0) {
      Team::store(state.sums, attention_inverse(state.total), head.v().words, lane, head.o(step.row, 0));
      if (Team::own(lane) == 0) head.store_lse(step.row, state.reference, state.total);
      return;
    }
    Value* const to = static_cast<Value*>(args.partials) +
                      (head.index() * args.partial_count + step.partial) * AttentionPartials::row_size(e);
    Team::store(state.sums, Value(1), head.v().words, lane, to);
    if (Team::own(lane) == 0) {
      to[e] = state.reference;
      to[e + 1] = state.total;
    }
  }
};

/// What pieces left of a row that was cut becomes O.
template <class Value, class Wave>
struct AttentionRowsMerge {
  using Pieces = AttentionPieces<Value, Wave, true>;
  static int words(const AttentionRowsArgs& args) { return static_cast<int>(args.dense.e) / Pieces::width; }

  /// Row `index` of those that were cut.
  TESSERA_FUNCTION static void run(const Wave& wave, const AttentionRowsArgs& args, const AttentionMergeTiles& tiles,
                                   std::int64_t index, int tile, std::int64_t head_index) {
    const SpmmSplit split = args.splits[index];
    const AttentionHead<Value> head(args.dense, head_index);
    const std::int64_t size = AttentionPartials::row_size(head.e());
    const Value* const from =
        static_cast<const Value*>(args.partials) + (head_index * args.partial_count + split.first) * size;
    const Pieces pieces{from, size, split.count, head.e() / Pieces::width};
    pieces.run(wave, tiles, tile, [&](int column, typename Pieces::State& row) {
      const Value inverse = attention_inverse(row.total);
      TESSERA_UNROLL
      for (Value& sum : row.s) sum *= inverse;
      attention_store<16>(head.o(split.window, column), row.s);
      if (column == 0) head.store_lse(split.window, row.reference, row.total);
    });
  }
};

}  // namespace Tessera

#endif
