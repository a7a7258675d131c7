// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_TEST_ATTENTION_REFERENCE_HPP
#define TESSERA_TEST_ATTENTION_REFERENCE_HPP

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "attention/Tessera_AttentionOptions.hpp"
#include "support/Tessera_TestCheck.hpp"

/// \file
/// Attention and its gradients by plain loops in long double, with bounds of the errors that a kernel with sums of unit
/// roundoff u and results of unit roundoff w may make, whatever the order of its sums. First-order bounds are doubled,
/// which covers the higher orders while they are below one half.

namespace Tessera {
namespace Testing {

using Wide = long double;

/// One head. Numbers are those that the kernel gets, after their rounding.
struct AttentionProblem {
  HostMatrix<double, int> A;  ///< values: bias or scale
  AttentionValues kind = AttentionValues::None;
  double scale = 1;
  int d = 0, e = 0;
  std::vector<double> q, k, v, d_o;  ///< row by row
};

/// How a kernel rounds weights before it multiplies V by them, backward weights and gradients of scores; none: not at
/// all.
struct WeightRounding {
  double relative = 0;    ///< to itself
  double of_largest = 0;  ///< below the normal range, to the largest one of the row (backward also: of the column)
  double of_one = 0;      ///< below the normal range, of a weight that multiplies dO
  double operands = 0;    ///< forward, of Q, K and V to themselves, before they are multiplied
};

/// Results, and how far off each may be.
struct AttentionWanted {
  std::vector<Wide> value, bound;
  std::vector<Wide> rounded;  ///< backward: the part of the bound that rounded weights make, which is not doubled
  explicit AttentionWanted(std::size_t n = 0) : value(n), bound(n), rounded(n) {}
};

class AttentionReference {
 public:
  AttentionWanted o, lse, d_q, d_k, d_v, d_values;

  /// u: of the sums, w: of the results; tiny: largest error of a store below the normal range.
  AttentionReference(const AttentionProblem& problem, double u, double w, double tiny, const WeightRounding& rounding)
      : p_(problem),
        u_(u),
        w_(w),
        tiny_(tiny),
        rounding_(rounding),
        s_(entries()),
        s_bound_(entries()),
        weight_(entries()) {
    const auto rows = static_cast<std::size_t>(p_.A.rows), e = static_cast<std::size_t>(p_.e);
    o = AttentionWanted(rows * e);
    lse = AttentionWanted(rows);
    for (int i = 0; i < p_.A.rows; ++i) forward(i);
  }
  /// backward_rounding: of the kernel that goes backward.
  void backward(const WeightRounding& backward_rounding) {
    const auto m = static_cast<std::size_t>(p_.A.rows), n = static_cast<std::size_t>(p_.A.cols);
    const auto d = static_cast<std::size_t>(p_.d), e = static_cast<std::size_t>(p_.e);
    d_q = AttentionWanted(m * d);
    d_k = AttentionWanted(n * d);
    d_v = AttentionWanted(n * e);
    d_values = AttentionWanted(entries());
    uses_.assign(n, 0);
    for (const int column : p_.A.entries) ++uses_[static_cast<std::size_t>(column)];
    d_s_ = d_s_bound_ = relative_ = std::vector<Wide>(entries());
    largest_of_row_.assign(m, 0);
    largest_of_column_.assign(n, 0);
    for (int i = 0; i < p_.A.rows; ++i) score_gradients(i);
    for (int i = 0; i < p_.A.rows; ++i) add_gradients(i, backward_rounding);
    for (AttentionWanted* r : {&d_q, &d_k, &d_v, &d_values}) {
      for (std::size_t x = 0; x < r->value.size(); ++x) {
        r->bound[x] = stored(r->value[x], 2 * r->bound[x] + r->rounded[x]);
      }
    }
  }

 private:
  std::size_t entries() const { return p_.A.entries.size(); }
  Wide stored(Wide value, Wide bound) const { return bound + w_ * (std::abs(value) + bound) + tiny_; }
  /// <x, y> and the sum of the absolute products.
  static std::pair<Wide, Wide> dot(const double* x, const double* y, int n) {
    Wide sum = 0, size = 0;
    for (int k = 0; k < n; ++k) {
      const Wide product = Wide(x[k]) * y[k];
      sum += product;
      size += std::abs(product);
    }
    return {sum, size};
  }
  const double* row(const std::vector<double>& of, int i, int width) const {
    return of.data() + static_cast<std::size_t>(i) * static_cast<std::size_t>(width);
  }
  bool masked(std::size_t at) const { return s_[at] == -std::numeric_limits<Wide>::infinity(); }

  /// Scores, weights and O of a row. An inner product errs by (d + 1) u of its absolute products, factor and bias by a
  /// rounding each. A weight errs by twice the scores' error (its own and the sum's), u times the distance to the
  /// largest score (the subtraction), 4 u (exponential) and, for each of n additions and changes of the maximum, 8 u at
  /// most.
  void forward(int i) {
    const auto begin = static_cast<std::size_t>(p_.A.row_map[i]), end = static_cast<std::size_t>(p_.A.row_map[i + 1]);
    Wide largest = -std::numeric_limits<Wide>::infinity(), least = -largest, off = 0;
    for (std::size_t at = begin; at < end; ++at) {
      const auto [sum, size] = dot(row(p_.q, i, p_.d), row(p_.k, p_.A.entries[at], p_.d), p_.d);
      const double value = p_.A.values[at];
      const Wide factor = p_.kind == AttentionValues::Scale ? Wide(p_.scale) * value : Wide(p_.scale);
      const bool bias = p_.kind == AttentionValues::Bias;
      s_[at] = bias ? factor * sum + value : factor * sum;
      if (bias && value == -std::numeric_limits<double>::infinity()) s_[at] = value;
      if (masked(at)) continue;
      s_bound_[at] = ((p_.d + 4) * u_ + 2 * rounding_.operands) * std::abs(factor) * size + u_ * std::abs(s_[at]);
      off = std::max(off, s_bound_[at]);
      largest = std::max(largest, s_[at]);
      least = std::min(least, s_[at]);
    }
    const auto n = static_cast<Wide>(end - begin);
    Wide total = 0;
    for (std::size_t at = begin; at < end; ++at) total += masked(at) ? 0 : std::exp(s_[at] - largest);
    const bool any = total > 0;
    const auto here = static_cast<std::size_t>(i), e = static_cast<std::size_t>(p_.e);
    lse.value[here] = any ? largest + std::log(total) : -std::numeric_limits<Wide>::infinity();
    const Wide relative = any ? off + u_ * (largest - least) + (8 * n + 8) * u_ : 0;
    lse.bound[here] = any ? 2 * relative + 2 * u_ * (std::abs(lse.value[here]) + std::abs(largest)) : 0;
    // Rounded weights: each is off by its own part, and the sum that they are divided by is not.
    std::vector<Wide> size(e), all(e);
    for (std::size_t at = begin; at < end; ++at) {
      weight_[at] = masked(at) ? 0 : std::exp(s_[at] - lse.value[here]);
      if (masked(at)) continue;
      const double* const v = row(p_.v, p_.A.entries[at], p_.e);
      for (std::size_t k = 0; k < e; ++k) {
        o.value[here * e + k] += weight_[at] * v[k];
        size[k] += weight_[at] * std::abs(Wide(v[k]));
        all[k] += std::abs(Wide(v[k]));
      }
    }
    for (std::size_t k = 0; k < e; ++k) {
      const Wide rounded =
          (1 + 4 * relative) * ((rounding_.relative + rounding_.operands) * size[k] + rounding_.of_largest * all[k]);
      o.bound[here * e + k] = stored(o.value[here * e + k], 2 * 2 * relative * size[k] + rounded);
    }
  }
  Wide value_factor(std::size_t at) const {
    return p_.kind == AttentionValues::Scale ? Wide(p_.A.values[at]) : Wide(1);
  }
  /// Gradients of the scores of a row. A weight is e^(score - lse) here. <dO, O> errs by the error of the O that it
  /// gets.
  void score_gradients(int i) {
    const auto begin = static_cast<std::size_t>(p_.A.row_map[i]), end = static_cast<std::size_t>(p_.A.row_map[i + 1]);
    const auto here = static_cast<std::size_t>(i), e = static_cast<std::size_t>(p_.e);
    const double* const d_o = row(p_.d_o, i, p_.e);
    Wide delta = 0, delta_bound = 0;
    for (std::size_t k = 0; k < e; ++k) {
      const Wide own = o.value[here * e + k], off = o.bound[here * e + k];
      delta += d_o[k] * own;
      delta_bound += std::abs(Wide(d_o[k])) * (off + (p_.e + 1) * u_ * (std::abs(own) + off));
    }
    for (std::size_t at = begin; at < end; ++at) {
      if (masked(at)) continue;
      const int j = p_.A.entries[at];
      const auto column = static_cast<std::size_t>(j);
      const auto [product, product_size] = dot(row(p_.q, i, p_.d), row(p_.k, j, p_.d), p_.d);
      const auto [d_p, d_p_size] = dot(d_o, row(p_.v, j, p_.e), p_.e);
      const Wide weight = weight_[at];
      relative_[at] = s_bound_[at] + lse.bound[here] + u_ * std::abs(s_[at] - lse.value[here]) + 4 * u_;
      const Wide d_s = weight * (d_p - delta), size = weight * (std::abs(d_p) + std::abs(delta));
      const Wide d_s_bound = size * (relative_[at] + 4 * u_) + weight * ((p_.e + 1) * u_ * d_p_size + delta_bound);
      d_s_[at] = d_s;
      d_s_bound_[at] = d_s_bound;
      const bool scales = p_.kind == AttentionValues::Scale;
      d_values.value[at] = scales ? d_s * p_.scale * product : d_s;
      d_values.bound[at] = !scales ? d_s_bound
                                   : std::abs(Wide(p_.scale)) *
                                         (d_s_bound * product_size + (p_.d + 4) * u_ * std::abs(d_s) * product_size);
      const Wide most = std::abs(value_factor(at)) * (std::abs(d_s) + 2 * d_s_bound);
      largest_of_row_[here] = std::max(largest_of_row_[here], most);
      largest_of_column_[column] = std::max(largest_of_column_[column], most);
    }
  }
  void add_gradients(int i, const WeightRounding& r) {
    const auto begin = static_cast<std::size_t>(p_.A.row_map[i]), end = static_cast<std::size_t>(p_.A.row_map[i + 1]);
    const auto here = static_cast<std::size_t>(i), e = static_cast<std::size_t>(p_.e),
               d = static_cast<std::size_t>(p_.d);
    const double *const d_o = row(p_.d_o, i, p_.e), *const q = row(p_.q, i, p_.d);
    for (std::size_t at = begin; at < end; ++at) {
      if (masked(at)) continue;
      const auto column = static_cast<std::size_t>(p_.A.entries[at]);
      const double* const key = row(p_.k, p_.A.entries[at], p_.d);
      const Wide factor = p_.scale * value_factor(at), d_s = d_s_[at], weight = weight_[at];
      const auto add = [&](AttentionWanted& to, std::size_t place, Wide value, Wide bound, Wide additions) {
        to.value[place] += value;
        to.bound[place] += bound + (additions + 4) * u_ * (std::abs(value) + bound);
      };
      const auto of_row = static_cast<Wide>(end - begin), of_column = static_cast<Wide>(uses_[column]);
      const Wide own = r.relative * std::abs(value_factor(at)) * (std::abs(d_s) + 2 * d_s_bound_[at]);
      for (std::size_t k = 0; k < d; ++k) {
        const Wide off = std::abs(factor) * d_s_bound_[at], to_scale = std::abs(Wide(p_.scale));
        add(d_q, here * d + k, factor * d_s * key[k], off * std::abs(Wide(key[k])), of_row);
        add(d_k, column * d + k, factor * d_s * q[k], off * std::abs(Wide(q[k])), of_column);
        d_q.rounded[here * d + k] += to_scale * (own + r.of_largest * largest_of_row_[here]) * std::abs(Wide(key[k]));
        d_k.rounded[column * d + k] +=
            to_scale * (own + r.of_largest * largest_of_column_[column]) * std::abs(Wide(q[k]));
      }
      for (std::size_t k = 0; k < e; ++k) {
        const Wide value = weight * d_o[k], size = std::abs(value);
        add(d_v, column * e + k, value, relative_[at] * size, of_column);
        d_v.rounded[column * e + k] += r.relative * (1 + 2 * relative_[at]) * size + r.of_one * std::abs(Wide(d_o[k]));
      }
    }
  }

  const AttentionProblem& p_;
  double u_, w_, tiny_;
  WeightRounding rounding_;
  std::vector<Wide> s_, s_bound_, weight_;
  std::vector<Wide> d_s_, d_s_bound_, relative_, largest_of_row_, largest_of_column_;
  std::vector<int> uses_;
};

}  // namespace Testing
}  // namespace Tessera

#endif
