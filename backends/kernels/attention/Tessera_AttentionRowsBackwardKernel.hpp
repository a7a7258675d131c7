// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_ATTENTION_ATTENTION_ROWS_BACKWARD_KERNEL_HPP
#define TESSERA_KERNELS_ATTENTION_ATTENTION_ROWS_BACKWARD_KERNEL_HPP

#include <cstdint>
#include <type_traits>

#include "backends/kernels/attention/Tessera_AttentionBackwardHead.hpp"
#include "backends/kernels/attention/Tessera_AttentionRowsKernel.hpp"

/// \file
/// Gradients of attention by rows, on ordinary arithmetic, in two passes: by rows of the pattern dQ, the gradients of
/// its numbers and <dO, O> of every row; by rows of the transposed pattern dK and dV. Weights are made again from the
/// log-sum-exp. No atomics: a row of a result is summed by one team, or by one per piece of a long row and a second
/// launch.

namespace Tessera {

template <class Wave_, class Shape, class Value, bool ByColumns>
class AttentionRowsBackwardKernel {
 public:
  using Wave = Wave_;
  using Team = AttentionRowsTeam<Wave, Shape, Value>;
  using Head = AttentionBackwardHead<Value, ByColumns, AttentionRowsBackwardArgs>;
  static constexpr int teams = Team::teams, batch = Team::batch;
  /// As forward: by the words of a lane.
  static constexpr int words = Shape::words * (2 * batch + (ByColumns ? 4 : 3)) + (sizeof(Value) == 8 ? 2 * batch : 0);
  static constexpr int thread_blocks = words <= 8 ? 6 : words <= 12 ? 5 : words <= 18 ? 4 : 3;

  /// Shares from `first` on, one per team.
  TESSERA_FUNCTION static void run(const Wave& wave, const AttentionRowsBackwardArgs& args, std::int64_t first,
                                   std::int64_t head_index) {
    const Head head(args, head_index);
    Varying<typename Team::Place> place;
    Varying<typename Team::Step> next;
    Varying<State> state;
    wave.each([&](int lane) {
      place(lane) = Team::begin(args.pattern, first + (lane >> Shape::shift));
      next(lane) = Team::take(args.pattern, place(lane));
      clear(state(lane));
      Team::clear(state(lane).first);
      Team::clear(state(lane).second);
    });
    for (;;) {
      Varying<bool> alive;
      wave.each([&](int lane) { alive(lane) = next(lane).alive; });
      if (wave.ballot(alive) == 0) return;
      const Varying<typename Team::Step> now = next;
      Varying<Gathered> gathered;
      Varying<Row> o;
      wave.each([&](int lane) {
        load(args, head, now(lane), lane, gathered(lane));
        if (now(lane).begins) begin(head, now(lane), lane, state(lane), o(lane));
        next(lane) = Team::take(args.pattern, place(lane));
      });
      if constexpr (!ByColumns) own_delta(wave, head, now, o, state);
      Varying<typename Team::Batch> first_products, second_products;
      wave.each([&](int lane) {
        TESSERA_UNROLL
        for (int b = 0; b < batch; ++b) {
          first_products(lane).of[b] = Team::product(state(lane).first, gathered(lane).first[b]);
          second_products(lane).of[b] = Team::product(state(lane).second, gathered(lane).second[b]);
        }
      });
      Team::add_up(wave, first_products);
      Team::add_up(wave, second_products);
      wave.each([&](int lane) {
        add(head, now(lane), first_products(lane), second_products(lane), gathered(lane), state(lane), lane);
        if (now(lane).ends) store(args, head, now(lane), state(lane), lane);
      });
    }
  }

 private:
  template <class T>
  using Varying = typename Wave::template Varying<T>;
  using Row = typename Team::Row;
  using RowSums = typename Team::RowSums;
  using Step = typename Team::Step;
  using Facts = AttentionFactsOf<Value>;
  struct NoSums {};
  /// By rows of Q and dO, and the sums of dQ; by columns of K and V, and those of dK and dV.
  struct State {
    Row first, second;
    RowSums first_sums;
    std::conditional_t<ByColumns, RowSums, NoSums> second_sums;
    Facts facts;  ///< by rows
  };
  struct Gathered {
    Row first[batch], second[batch];
    Value number[batch];
    Facts facts[batch];  ///< by columns
  };

  TESSERA_FUNCTION static void clear(RowSums& sums) {
    TESSERA_UNROLL
    for (int w = 0; w < Shape::words; ++w) {
      TESSERA_UNROLL
      for (int i = 0; i < Team::width; ++i) sums.s[w][i] = 0;
    }
  }
  TESSERA_FUNCTION static void clear(State& state) {
    clear(state.first_sums);
    if constexpr (ByColumns) clear(state.second_sums);
    state.facts = Facts{};
  }
  TESSERA_FUNCTION static bool is_on(const Step& step, int b) { return (step.on >> b & 1) != 0; }
  TESSERA_FUNCTION static std::int64_t entry_of(const AttentionRowsBackwardArgs& args, const Step& step, int b) {
    const std::uint32_t at = step.first + static_cast<std::uint32_t>(b);
    if (!ByColumns || args.source == nullptr || !is_on(step, b)) return at;
    return Team::offset_at(args.pattern, args.source, at);
  }
  TESSERA_FUNCTION static void load(const AttentionRowsBackwardArgs& args, const Head& head, const Step& step, int lane,
                                    Gathered& to) {
    TESSERA_UNROLL
    for (int b = 0; b < batch; ++b)
      Team::load(head.gathered_first(), step.column[b], is_on(step, b), lane, to.first[b]);
    TESSERA_UNROLL
    for (int b = 0; b < batch; ++b)
      Team::load(head.gathered_second(), step.column[b], is_on(step, b), lane, to.second[b]);
    if constexpr (ByColumns) {
      TESSERA_UNROLL
      for (int b = 0; b < batch; ++b) to.facts[b] = is_on(step, b) ? head.facts(step.column[b]) : Facts{};
    }
    if (!head.scores().valued()) return;
    TESSERA_UNROLL
    for (int b = 0; b < batch; ++b)
      to.number[b] = Wave::gather_if(head.scores().numbers() + entry_of(args, step, b), is_on(step, b));
  }
  /// Asks for what belongs to a row; of o by rows alone.
  TESSERA_FUNCTION static void begin(const Head& head, const Step& step, int lane, State& state, Row& o) {
    clear(state);
    Team::load(head.own_first(), step.row, true, lane, state.first);
    Team::load(head.own_second(), step.row, true, lane, state.second);
    if constexpr (!ByColumns) {
      Team::load(head.o(), step.row, true, lane, o);
      state.facts.lse = head.lse(step.row);
    }
  }
  /// <dO, O> of rows that begin. Each piece of a long row makes the same.
  TESSERA_FUNCTION static void own_delta(const Wave& wave, const Head& head, const Varying<Step>& now,
                                         const Varying<Row>& o, Varying<State>& state) {
    Varying<bool> begins;
    wave.each([&](int lane) { begins(lane) = now(lane).begins; });
    if (wave.ballot(begins) == 0) return;
    Varying<Value> delta;
    wave.each([&](int lane) {
      delta(lane) = 0;
      if (now(lane).begins) delta(lane) = Team::product(state(lane).second, o(lane));
    });
    TESSERA_UNROLL
    for (int distance = Team::lanes / 2; distance > 0; distance /= 2) {
      Varying<Value> other;
      wave.shuffle(other, delta, [=](int lane) { return lane ^ distance; });
      wave.each([&](int lane) { delta(lane) += other(lane); });
    }
    wave.each([&](int lane) {
      if (!now(lane).begins) return;
      state(lane).facts.delta = delta(lane);
      if (Team::own(lane) == 0) head.facts(now(lane).row) = state(lane).facts;
    });
  }

  TESSERA_FUNCTION static void add(const Head& head, const Step& step, const typename Team::Batch& first_products,
                                   const typename Team::Batch& second_products, Gathered& gathered, State& state,
                                   int lane) {
    constexpr Value none = static_cast<Value>(attention_no_score);
    const auto& scores = head.scores();
    Value weight[batch], d_score[batch];
    std::uint32_t off = 0;
    TESSERA_UNROLL
    for (int b = 0; b < batch; ++b) {
      const Value product = first_products.of[b];
      const Value score = scores.valued() ? scores.score_by(product, gathered.number[b]) : product * scores.scale();
      const bool on = is_on(step, b) && !(score == none);
      const Facts facts = ByColumns ? gathered.facts[b] : state.facts;
      off |= static_cast<std::uint32_t>(!on) << b;
      weight[b] = on ? power_of_two(score - facts.lse) : Value(0);
      d_score[b] = on ? weight[b] * (second_products.of[b] - facts.delta) : Value(0);
      if (!ByColumns && head.wants_values() && Team::own(lane) == 0 && is_on(step, b))
        head.store_value(std::int64_t{step.first} + b, d_score[b], on ? product : Value(0));
      if (on && scores.valued()) d_score[b] *= scores.factor_by(gathered.number[b]);
    }
    if ((off & step.on) != 0) {  // what such entries have is not seen, whatever it is
      TESSERA_UNROLL
      for (int b = 0; b < batch; ++b) {
        if ((off >> b & 1) == 0) continue;
        Team::clear(gathered.first[b]);
        Team::clear(gathered.second[b]);
      }
    }
    TESSERA_UNROLL
    for (int b = 0; b < batch; ++b) {
      Team::add(d_score[b], gathered.first[b], state.first_sums);
      if constexpr (ByColumns) Team::add(weight[b], gathered.second[b], state.second_sums);
    }
  }

  TESSERA_FUNCTION static void store(const AttentionRowsBackwardArgs& args, const Head& head, const Step& step,
                                     const State& state, int lane) {
    const bool whole = step.partial < 0;
    Value* const partial = static_cast<Value*>(args.pattern.partials) +
                           (head.head() * args.pattern.partial_count + step.partial) * head.partial_size();
    Team::store(state.first_sums, whole ? head.scale() : Value(1), head.own_first().words, lane,
                whole ? head.first(step.row, 0) : partial);
    if constexpr (ByColumns) {
      Team::store(state.second_sums, Value(1), head.own_second().words, lane,
                  whole ? head.second(step.row, 0) : partial + head.d());
    }
  }
};

/// What pieces left of a row that was cut becomes its gradients.
template <class Value, class Wave, bool ByColumns>
struct AttentionRowsBackwardMerge {
  using Pieces = AttentionPieces<Value, Wave, false>;
  static int words(const AttentionRowsBackwardArgs& args) {
    const AttentionDense& dense = args.pattern.dense;
    return static_cast<int>(ByColumns ? dense.d + dense.e : dense.d) / Pieces::width;
  }

  /// Row `index` of those that were cut.
  TESSERA_FUNCTION static void run(const Wave& wave, const AttentionRowsBackwardArgs& args,
                                   const AttentionMergeTiles& tiles, std::int64_t index, int tile,
                                   std::int64_t head_index) {
    const SpmmSplit split = args.pattern.splits[index];
    const AttentionBackwardHead<Value, ByColumns, AttentionRowsBackwardArgs> head(args, head_index);
    const std::int64_t size = head.partial_size();
    const Value* const from = static_cast<const Value*>(args.pattern.partials) +
                              (head_index * args.pattern.partial_count + split.first) * size;
    const Pieces pieces{from, size, split.count, head.partial_size() / Pieces::width};
    pieces.run(wave, tiles, tile, [&](int column, typename Pieces::State& row) {
      const bool first = column < head.d();
      TESSERA_UNROLL
      for (Value& sum : row.s) sum *= first ? head.scale() : Value(1);
      attention_store<16>(first ? head.first(split.window, column) : head.second(split.window, column - head.d()),
                          row.s);
    });
  }
};

}  // namespace Tessera

#endif
