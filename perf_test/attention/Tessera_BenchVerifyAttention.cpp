// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include <cmath>
#include <cstdio>
#include <limits>

#include "Tessera_Compat.hpp"
#include "Tessera_Error.hpp"
#include "attention/Tessera_BenchAttention.hpp"
#include "spmm/Tessera_BenchVerifySpmm.hpp"

namespace Tessera {
namespace Bench {
namespace {

using Range = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;
using Doubles = Kokkos::View<double*, Device>;

struct Number {
  double actual, expected, bound;
};

/// What rounds: sums, weights before they multiply on a unit (to themselves, and to the largest of their row below the
/// normal range of FP16), results; forward in TF32 Q, K and V before they multiply.
struct AttentionRounding {
  double sums, weight, of_largest, probability, store, tiny, operands;

  AttentionRounding(ElementType type, bool tf32, const std::string& kernel) {
    const bool half = type == ElementType::Half, narrow = bytes_of(type) == 2;
    const double own = type == ElementType::Double ? std::ldexp(1.0, -53) : std::ldexp(1.0, -24);
    sums = own + std::ldexp(1.0, -53);
    store = half ? std::ldexp(1.0, -11) : narrow ? std::ldexp(1.0, -8) : own;
    tiny = half ? std::ldexp(1.0, -25) : 1e-30;
    // Units are named after their atoms; all else keeps weights in the type of the sums.
    const bool unit = narrow && kernel.find("_F32_") != std::string::npos;
    operands = tf32 ? std::ldexp(1.0, -11) : 0;
    weight = unit ? store : operands;
    of_largest = unit && half ? std::ldexp(1.0, -25 - 7) : 0;
    probability = unit && half ? std::ldexp(1.0, -25 - 14) : 0;
  }
  KOKKOS_INLINE_FUNCTION double stored(double value, double bound) const {
    return bound + store * (std::fabs(value) + bound) + tiny;
  }
};

/// One head. Of entries: score and its bound, then weight, its bound, gradient of the score, its bound; of rows: the
/// log-sum-exp, the bound of a weight relative to it, <dO, O>, its bound.
struct Head {
  const void* row_map;
  bool wide;
  std::int64_t rows, nnz, columns;
  const int* entries;
  DenseElements q, k, v, o, lse, d_o, d_q, d_k, d_v;
  const int *t_map, *t_rows, *t_source;
  double scale;
  AttentionRounding rounding;
  Doubles score, score_bound, weight, weight_bound, d_score, d_score_bound;
  Doubles row_lse, row_lse_bound, row_relative, delta, delta_bound;

  KOKKOS_INLINE_FUNCTION std::int64_t offset(std::int64_t row) const {
    if (wide) return static_cast<std::int64_t>(static_cast<const WideOffset*>(row_map)[row]);
    return static_cast<const int*>(row_map)[row];
  }
  KOKKOS_INLINE_FUNCTION std::int64_t row_of(std::int64_t entry) const {
    std::int64_t low = 0, high = rows;
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      (offset(middle) <= entry ? low : high) = middle;
    }
    return low;
  }
  KOKKOS_INLINE_FUNCTION void dot(const DenseElements& x, std::int64_t i, const DenseElements& y, std::int64_t j,
                                  double& sum, double& size) const {
    sum = size = 0;
    for (std::int64_t c = 0; c < columns; ++c) {
      const double product = x.get(i, c) * y.get(j, c);
      sum += product;
      size += std::fabs(product);
    }
  }
};

struct Scores {
  Head h;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t e) const {
    double sum = 0, size = 0;
    h.dot(h.q, h.row_of(e), h.k, h.entries[e], sum, size);
    h.score(e) = h.scale * sum;
    const double product = (static_cast<double>(h.columns) + 4) * h.rounding.sums + 2 * h.rounding.operands;
    h.score_bound(e) = product * std::fabs(h.scale) * size + h.rounding.sums * std::fabs(h.scale * sum);
  }
};

/// The log-sum-exp of a row, and by how much its weights may be off relative to themselves.
struct RowSums {
  Head h;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
    double largest = -HUGE_VAL, least = HUGE_VAL, off = 0, total = 0;
    const std::int64_t begin = h.offset(i), end = h.offset(i + 1);
    for (std::int64_t e = begin; e < end; ++e) {
      largest = std::fmax(largest, h.score(e));
      least = std::fmin(least, h.score(e));
      off = std::fmax(off, h.score_bound(e));
    }
    for (std::int64_t e = begin; e < end; ++e) total += std::exp(h.score(e) - largest);
    const double u = h.rounding.sums, n = static_cast<double>(end - begin);
    h.row_lse(i) = end > begin ? largest + std::log(total) : -HUGE_VAL;
    h.row_relative(i) = end > begin ? off + u * (largest - least) + (8 * n + 8) * u : 0;
    h.row_lse_bound(i) =
        end > begin ? 2 * h.row_relative(i) + 2 * u * (std::fabs(h.row_lse(i)) + std::fabs(largest)) : 0;
  }
};

struct LseNumber {
  static constexpr const char* name = "log-sum-exp";
  Head h;
  KOKKOS_INLINE_FUNCTION Number operator()(const std::int64_t i) const {
    return {h.lse.get(i, 0), h.row_lse(i), h.row_lse_bound(i)};
  }
};

struct ONumber {
  static constexpr const char* name = "O";
  Head h;
  KOKKOS_INLINE_FUNCTION Number operator()(const std::int64_t at) const {
    const std::int64_t i = at / h.columns, c = at % h.columns;
    double sum = 0, size = 0, all = 0;
    for (std::int64_t e = h.offset(i); e < h.offset(i + 1); ++e) {
      const double weight = std::exp(h.score(e) - h.row_lse(i)), v = h.v.get(h.entries[e], c);
      sum += weight * v;
      size += weight * std::fabs(v);
      all += std::fabs(v);
    }
    const double relative = h.row_relative(i);
    const double rounded =
        (1 + 4 * relative) * ((h.rounding.weight + h.rounding.operands) * size + h.rounding.of_largest * all);
    return {h.o.get(i, c), sum, h.rounding.stored(sum, 4 * relative * size + rounded)};
  }
};

/// O and the log-sum-exp as the backward pass gets them.
struct StoreRow {
  Head h;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t at) const {
    const std::int64_t i = at / h.columns, c = at % h.columns;
    h.o.set(i, c, ONumber{h}(at).expected);
    if (c == 0) h.lse.set(i, 0, h.row_lse(i));
  }
};

struct Deltas {
  Head h;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
    double sum = 0, size = 0;
    h.dot(h.d_o, i, h.o, i, sum, size);
    h.delta(i) = sum;
    h.delta_bound(i) = (static_cast<double>(h.columns) + 1) * h.rounding.sums * size;
  }
};

/// Weight and gradient of every score, of the log-sum-exp and the O that were given. Kernels may take binary
/// exponentials: the log-sum-exp is rounded twice more then.
struct ScoreGradients {
  Head h;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t e) const {
    const std::int64_t i = h.row_of(e);
    const double u = h.rounding.sums, lse = h.lse.get(i, 0), weight = std::exp(h.score(e) - lse);
    const double relative = h.score_bound(e) + u * std::fabs(h.score(e) - lse) + 2 * u * std::fabs(lse) + 4 * u,
                 delta = h.delta(i);
    double d_p = 0, size = 0;
    h.dot(h.d_o, i, h.v, h.entries[e], d_p, size);
    h.weight(e) = weight;
    h.weight_bound(e) = weight * relative;
    h.d_score(e) = weight * (d_p - delta);
    h.d_score_bound(e) = weight * (std::fabs(d_p) + std::fabs(delta)) * (relative + 4 * u) +
                         weight * ((static_cast<double>(h.columns) + 1) * u * size + h.delta_bound(i));
  }
};

/// A sum of weighted rows, and its bound to first order; then doubled and stored.
struct WeightedSum {
  double sum = 0, size = 0, off = 0, all = 0, largest = 0, terms = 4;
  KOKKOS_INLINE_FUNCTION void add(double weight, double bound, double x) {
    sum += weight * x;
    size += std::fabs(weight * x);
    off += bound * std::fabs(x);
    all += std::fabs(x);
    largest = std::fmax(largest, std::fabs(weight) + bound);
    terms += 1;
  }
  /// of_largest: of a weight's rounding below the normal range, to the largest one.
  KOKKOS_INLINE_FUNCTION Number number(double actual, double factor, const AttentionRounding& r,
                                       double below_normal) const {
    const double units = r.weight * (size + off) + below_normal * all;
    const double bound = std::fabs(factor) * (off + units + terms * r.sums * (size + off));
    return {actual, factor * sum, r.stored(factor * sum, 2 * bound)};
  }
};

struct DqNumber {
  static constexpr const char* name = "dQ";
  Head h;
  KOKKOS_INLINE_FUNCTION Number operator()(const std::int64_t at) const {
    const std::int64_t i = at / h.columns, c = at % h.columns;
    WeightedSum w;
    for (std::int64_t e = h.offset(i); e < h.offset(i + 1); ++e) {
      w.add(h.d_score(e), h.d_score_bound(e), h.k.get(h.entries[e], c));
    }
    return w.number(h.d_q.get(i, c), h.scale, h.rounding, h.rounding.of_largest * w.largest);
  }
};
struct DkNumber {
  static constexpr const char* name = "dK";
  Head h;
  KOKKOS_INLINE_FUNCTION Number operator()(const std::int64_t at) const {
    const std::int64_t j = at / h.columns, c = at % h.columns;
    WeightedSum w;
    for (int t = h.t_map[j]; t < h.t_map[j + 1]; ++t) {
      const int e = h.t_source[t];
      w.add(h.d_score(e), h.d_score_bound(e), h.q.get(h.t_rows[t], c));
    }
    return w.number(h.d_k.get(j, c), h.scale, h.rounding, h.rounding.of_largest * w.largest);
  }
};
struct DvNumber {
  static constexpr const char* name = "dV";
  Head h;
  KOKKOS_INLINE_FUNCTION Number operator()(const std::int64_t at) const {
    const std::int64_t j = at / h.columns, c = at % h.columns;
    WeightedSum w;
    for (int t = h.t_map[j]; t < h.t_map[j + 1]; ++t) {
      const int e = h.t_source[t];
      w.add(h.weight(e), h.weight_bound(e), h.d_o.get(h.t_rows[t], c));
    }
    return w.number(h.d_v.get(j, c), 1, h.rounding, h.rounding.probability);
  }
};

template <class F>
struct Worst {
  using Reducer = Kokkos::MaxLoc<double, std::int64_t>;
  F f;
  ElementType type;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t at, typename Reducer::value_type& worst) const {
    const Number n = f(at);
    const double r = error_ratio(n.actual, n.expected, n.bound, type);
    if (r > worst.val) {
      worst.val = r;
      worst.loc = at;
    }
  }
};
template <class F>
struct Explain {
  F f;
  std::int64_t at;
  Doubles explained;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t) const {
    const Number n = f(at);
    explained(0) = n.actual;
    explained(1) = n.expected;
    explained(2) = n.bound;
  }
};

/// Keeps the worst of the numbers [0, count), and of those that the verdict has.
template <class F>
void compare(const Exec& space, std::int64_t head, std::int64_t count, const F& f, ElementType type, Verdict& verdict) {
  typename Worst<F>::Reducer::value_type worst;
  worst.val = 0;
  worst.loc = 0;
  Kokkos::parallel_reduce("Tessera::bench check", Range(space, 0, count), Worst<F>{f, type},
                          typename Worst<F>::Reducer(worst));
  Compat::fence(space, "Tessera::bench check");
  if (!(worst.val > verdict.error_over_bound)) return;
  verdict.error_over_bound = worst.val;
  if (worst.val <= 1) return;
  const Doubles explained("Tessera::bench explained", 3);
  Kokkos::parallel_for("Tessera::bench explain", Range(space, 0, 1), Explain<F>{f, worst.loc, explained});
  const auto host = Kokkos::create_mirror_view(explained);
  Kokkos::deep_copy(space, host, explained);
  Compat::fence(space, "Tessera::bench explain");
  char text[200];
  std::snprintf(text, sizeof(text), "head %lld of %s, number %lld is %.17g, the reference is %.17g +- %.2g",
                static_cast<long long>(head), F::name, static_cast<long long>(worst.loc), host(0), host(1), host(2));
  verdict.fault = text;
}

/// Scratch of all heads; a head's operands are set by set_head.
Head make_head(const AttentionOperands& o, const AttentionColumns& t, bool tf32, const std::string& kernel) {
  const auto nnz = static_cast<std::size_t>(o.A.nnz()), rows = static_cast<std::size_t>(o.A.rows);
  const auto of = [](std::size_t n) {
    return Doubles(Kokkos::view_alloc(Kokkos::WithoutInitializing, "Tessera::bench attention"), n);
  };
  const std::size_t backward = o.backward ? nnz : 0;
  Head h{o.A.row_map.data<void>(),
         o.A.offset_bits == 64,
         o.A.rows,
         o.A.nnz(),
         o.columns,
         o.A.entries.data<int>(),
         {},
         {},
         {},
         {},
         {},
         {},
         {},
         {},
         {},
         t.row_map.data<int>(),
         t.rows.data<int>(),
         t.source.data<int>(),
         o.scale,
         AttentionRounding(o.A.element, tf32, kernel),
         of(nnz),
         of(nnz),
         of(backward),
         of(backward),
         of(backward),
         of(backward),
         of(rows),
         of(rows),
         of(rows),
         of(rows),
         of(rows)};
  // The kernels' scale is a number of their sums' type.
  if (o.sum_type() == ElementType::Float) h.scale = static_cast<double>(static_cast<float>(o.scale));
  return h;
}
void set_head(Head& h, const AttentionOperands& o, std::int64_t index) {
  const std::int64_t m = o.A.rows, n = o.A.cols;
  h.q = o.head(o.q, m, index);
  h.k = o.head(o.k, n, index);
  h.v = o.head(o.v, n, index);
  h.o = o.head(o.o, m, index);
  h.lse = o.head_lse(index);
  if (!o.backward) return;
  h.d_o = o.head(o.d_o, m, index);
  h.d_q = o.head(o.d_q, m, index);
  h.d_k = o.head(o.d_k, n, index);
  h.d_v = o.head(o.d_v, n, index);
}
template <class F>
void each(const AttentionOperands& o, std::int64_t count, const F& f) {
  Kokkos::parallel_for("Tessera::bench attention", Range(o.A.space, 0, count), f);
}

}  // namespace

AttentionColumns::AttentionColumns(const Exec& space, const BenchMatrix& matrix) {
  const auto& csr = matrix.csr;
  if (csr.row_map.back() > std::numeric_limits<int>::max()) throw NotSupported("attention: 2^31 entries or more");
  std::vector<int> map(static_cast<std::size_t>(csr.cols) + 1), from(csr.entries.size()), entry(csr.entries.size());
  for (const int j : csr.entries) ++map[static_cast<std::size_t>(j) + 1];
  for (std::size_t j = 0; j + 1 < map.size(); ++j) map[j + 1] += map[j];
  std::vector<int> next(map.begin(), map.end() - 1);
  for (int i = 0; i < csr.rows; ++i) {
    for (auto e = static_cast<int>(csr.row_map[static_cast<std::size_t>(i)]);
         e < csr.row_map[static_cast<std::size_t>(i) + 1]; ++e) {
      const auto at =
          static_cast<std::size_t>(next[static_cast<std::size_t>(csr.entries[static_cast<std::size_t>(e)])]++);
      from[at] = i;
      entry[at] = e;
    }
  }
  row_map = upload(space, "columns", map);
  rows = upload(space, "rows of columns", from);
  source = upload(space, "entries of columns", entry);
}

void attention_inputs(const AttentionOperands& o) {
  Head h = make_head(o, {}, false, "parallel rows");
  for (std::int64_t index = 0; index < o.heads; ++index) {
    set_head(h, o, index);
    each(o, h.nnz, Scores{h});
    each(o, h.rows, RowSums{h});
    each(o, h.rows * h.columns, StoreRow{h});
  }
  Compat::fence(o.A.space, "Tessera::bench attention");
}

Verdict check_attention(const AttentionOperands& o, const AttentionColumns& columns, const std::string& kernel,
                        Precision precision) {
  Verdict verdict;
  const Exec& space = o.A.space;
  const ElementType type = o.A.element;
  Head h = make_head(o, columns, precision == Precision::TF32 && !o.backward, kernel);
  const std::int64_t by_rows = h.rows * h.columns, by_columns = o.A.cols * h.columns;
  for (std::int64_t index = 0; index < o.heads; ++index) {
    set_head(h, o, index);
    each(o, h.nnz, Scores{h});
    if (!o.backward) {
      each(o, h.rows, RowSums{h});
      compare(space, index, h.rows, LseNumber{h}, o.sum_type(), verdict);
      compare(space, index, by_rows, ONumber{h}, type, verdict);
      continue;
    }
    each(o, h.rows, Deltas{h});
    each(o, h.nnz, ScoreGradients{h});
    compare(space, index, by_rows, DqNumber{h}, type, verdict);
    compare(space, index, by_columns, DkNumber{h}, type, verdict);
    compare(space, index, by_columns, DvNumber{h}, type, verdict);
  }
  return verdict;
}

}  // namespace Bench
}  // namespace Tessera
