// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "attention/Tessera_BenchAttention.hpp"

#include <algorithm>
#include <cmath>

#include "Tessera_Compat.hpp"
#include "Tessera_Error.hpp"
#include "driver/Tessera_BenchContext.hpp"
#include "spmm/Tessera_BenchSpmm.hpp"
#include "spmm/Tessera_BenchVerifySpmm.hpp"

namespace Tessera {
namespace Bench {
namespace {

enum class AttentionRole : std::uint64_t { Q = 0x51, K = 0x4b, V = 0x56, DO = 0x44 };
std::uint64_t seed_of(const BenchOptions& options, AttentionRole role) {
  return options.seed ^ (static_cast<std::uint64_t>(role) << 56);
}

struct AttentionVariant {
  AttentionAlgorithm algorithm;
  bool named;
};

/// all: Fused and Auto. The chain of three is a baseline, and an algorithm where it is named.
std::vector<AttentionVariant> variants_of(const BenchOptions& options) {
  std::vector<AttentionVariant> list;
  const auto add = [&](AttentionAlgorithm a, bool named) {
    const auto at = std::find_if(list.begin(), list.end(), [a](const auto& v) { return v.algorithm == a; });
    if (at == list.end()) {
      list.push_back({a, named});
    } else {
      at->named = at->named || named;
    }
  };
  for (const std::string& name : options.algorithms) {
    if (name != "all") {
      add(parse_attention_algorithm(name), true);
      continue;
    }
    add(AttentionAlgorithm::Fused, false);
    add(AttentionAlgorithm::Auto, false);
  }
  if (options.regret) add(AttentionAlgorithm::Auto, true);
  return list;
}

/// One width of Q, K and V after the other, checked on the device.
class AttentionProduct final : public Product {
 public:
  AttentionProduct(const Job& job, Precision precision)
      : options_(job.options), precision_(precision), variants_(variants_of(job.options)) {
    double scale = 1;
    o_.A = make_csr(job, precision, scale, false);
    o_.heads = options_.heads;
    o_.backward = options_.backward;
    if (o_.backward) transposed_ = AttentionColumns(o_.A.space, job.matrix);
  }

  void set_columns(std::int64_t columns) {
    drop();
    o_.columns = columns;
    o_.scale = options_.alpha / std::sqrt(static_cast<double>(columns));
    const std::int64_t m = o_.A.rows, n = o_.A.cols;
    o_.q = seeded(m, AttentionRole::Q);
    o_.k = seeded(n, AttentionRole::K);
    o_.v = seeded(n, AttentionRole::V);
    o_.o = array(m);
    o_.lse = DeviceArray("lse", static_cast<std::size_t>(o_.heads * m), bytes_of(o_.sum_type()));
    if (o_.backward) {
      o_.d_o = seeded(m, AttentionRole::DO);
      o_.d_q = array(m);
      o_.d_k = array(n);
      o_.d_v = array(n);
      attention_inputs(o_);
    }
    Compat::fence(o_.A.space, "Tessera::bench operands");
  }
  void drop() { o_.q = o_.k = o_.v = o_.o = o_.lse = o_.d_o = o_.d_q = o_.d_k = o_.d_v = {}; }
  /// Forward: Q, K and V are read, O is written; backward: Q, K, V, O and dO are read, dQ, dK and dV written.
  double dense_bytes(std::int64_t columns) const {
    const double row = static_cast<double>(columns) * static_cast<double>(bytes_of(o_.A.element));
    const double m = o_.A.rows, n = o_.A.cols, sides = o_.backward ? 4 : 2;
    return static_cast<double>(o_.heads) * (sides * (m + n) * row + m * static_cast<double>(bytes_of(o_.sum_type())));
  }

  void describe(Record& r) const override {
    r.op = o_.backward ? "attention-backward" : "attention";
    r.columns = true;
    r.y_type = Impl::to_string(o_.A.element);
    r.layout = "right";
    r.rows = o_.A.rows;
    r.cols = o_.A.cols;
    r.n = o_.columns;
    r.heads = o_.heads;
    r.offset_bits = o_.A.offset_bits;
  }
  /// The pattern: the numbers of A are not read.
  double matrix_bytes() const override {
    return o_.A.bytes() - static_cast<double>(o_.A.nnz()) * static_cast<double>(bytes_of(o_.A.element));
  }
  double dense_bytes() const override { return dense_bytes(o_.columns); }
  /// Scores and their weighted sum; backward: scores again, gradients of weights, three sums. What a kernel computes
  /// twice counts once.
  double flops() const override {
    return (o_.backward ? 10 : 4) * static_cast<double>(o_.heads) * static_cast<double>(o_.A.nnz()) *
           static_cast<double>(o_.columns);
  }
  /// A row of K and one of V; backward the same by rows of A, and a row of Q and one of dO by columns.
  double row_bytes() const override {
    return (o_.backward ? 4 : 2) * static_cast<double>(o_.heads * o_.columns) *
           static_cast<double>(bytes_of(o_.A.element));
  }
  /// The chain of three goes forward alone. The portable kernel is a baseline where another one can be measured.
  std::vector<std::string> baselines() const override {
    std::vector<std::string> names;
    if (!o_.backward) names.emplace_back("chain");
    const bool other = !Compat::is_host_v<Exec> || options_.backend != Backend::Auto;
    if (other && options_.backend != Backend::Kokkos) names.emplace_back("portable");
    return names;
  }
  System make_baseline(const std::string& name) const override {
    AttentionOptions options = plan_options();
    options.fallback = true;
    const bool chain = name == "chain";
    options.algorithm = chain ? AttentionAlgorithm::Chain : AttentionAlgorithm::Fused;
    if (!chain) {
      options.backend = Backend::Kokkos;
      options.compute = ComputeType::Auto;
    }
    System system = make(options);
    const Statistics s = system.statistics();
    system.statistics = {};
    system.backend = s.backend;
    system.kernel = chain ? "SDDMM, softmax, SpMM" : "parallel rows";
    system.why = chain ? "an SDDMM plan, the softmax of rows, an SpMM plan" : "the portable kernel";
    if (!chain && precision_ == Precision::TF32) system.why += ", in FP32";
    system.format_bytes = static_cast<double>(s.format_bytes);
    system.has_setup = true;
    return system;
  }
  std::vector<Variant> variants() const override {
    std::vector<Variant> list;
    for (const AttentionVariant& v : variants_) list.push_back({to_string(v.algorithm), "", v.named});
    return list;
  }
  System make_plan(std::size_t index) const override {
    AttentionOptions options = plan_options();
    options.algorithm = variants_[index].algorithm;
    options.fallback = options.algorithm == AttentionAlgorithm::Auto;
    return make(options);
  }

  /// No result is read: every number must be written over what poisons a sum.
  void reset() override {
    const Exec& space = o_.A.space;
    const auto poison = [&](const DeviceArray& a, std::int64_t rows) { fill_dense(space, o_.all(a, rows), 0, true); };
    if (o_.backward) {
      poison(o_.d_q, o_.A.rows);
      poison(o_.d_k, o_.A.cols);
      poison(o_.d_v, o_.A.cols);
      return;
    }
    poison(o_.o, o_.A.rows);
    fill_dense(space, {o_.lse.data<void>(), o_.sum_type(), o_.heads * o_.A.rows, 1, 1, 1}, 0, true);
  }
  Verdict check(const std::string& kernel) override { return check_attention(o_, transposed_, kernel, precision_); }
  /// O, or dQ: all heads, one below the other.
  void write_result(const std::string& file) const override {
    const std::int64_t rows = o_.heads * o_.A.rows;
    const std::vector<double> by_rows = download(o_.A.space, o_.backward ? o_.d_q : o_.o, o_.A.element);
    std::vector<double> values(by_rows.size());
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t c = 0; c < o_.columns; ++c) {
        values[static_cast<std::size_t>(c * rows + i)] = by_rows[static_cast<std::size_t>(i * o_.columns + c)];
      }
    }
    write_dense_result(file, rows, o_.columns, values, o_.A.element);
  }

 private:
  AttentionOptions plan_options() const {
    AttentionOptions options;
    options.backend = options_.backend;
    options.selection = options_.selection;
    if (precision_ == Precision::TF32) options.compute = ComputeType::TF32;
    options.dimension_hint = static_cast<int>(o_.columns);
    options.prepare_backward = o_.backward;
    return options;
  }
  System make(const AttentionOptions& options) const {
    switch (precision_) {
      case Precision::FP64:
        return attention_plan_fp64(o_, options);
      case Precision::FP16:
        return attention_plan_fp16(o_, options);
      case Precision::BF16:
        return attention_plan_bf16(o_, options);
      default:  // TF32 is FP32's data with another plan
        return attention_plan_fp32(o_, options);
    }
  }
  DeviceArray array(std::int64_t rows) const {
    return DeviceArray("attention", static_cast<std::size_t>(o_.heads * rows * o_.columns), bytes_of(o_.A.element));
  }
  DeviceArray seeded(std::int64_t rows, AttentionRole role) const {
    const DeviceArray made = array(rows);
    fill_dense(o_.A.space, o_.all(made, rows), seed_of(options_, role));
    return made;
  }

  const BenchOptions& options_;
  Precision precision_;
  std::vector<AttentionVariant> variants_;
  AttentionOperands o_;
  AttentionColumns transposed_;
};

/// Reference numbers of entries and rows, in double.
double check_bytes(const AttentionProduct& product, const BenchMatrix& matrix) {
  return product.matrix_bytes() +
         8 * (6 * static_cast<double>(matrix.nnz()) + 5 * static_cast<double>(matrix.csr.rows));
}

void bench_attention(const Job& all) {
  BenchOptions options = all.options;
  if (!options.columns_given) options.columns = {64};
  if (options.beta != 0) throw BenchError(ExitUsage, "attention has no --beta");
  if (!options.x.empty() || !options.y.empty() || !options.write_operands.empty()) {
    throw BenchError(ExitUsage, "attention has no --x, --y and --write-operands: its operands are seeded");
  }
  const Job job = {options, all.matrix, all.report};
  if (options.heads > 1) job.report.note(std::to_string(options.heads) + " heads per apply");
  for (const Precision p : options.precisions) {
    guarded(job, case_name(p) + " operands", ExitNotSupported, [&] {
      AttentionProduct product(job, p);
      for (const std::int64_t columns : options.columns) {
        const std::string what = too_large(check_bytes(product, job.matrix), product.dense_bytes(columns),
                                           memory_bytes(), Compat::is_host_v<Exec>);
        if (!what.empty()) {
          job.report.note(job.matrix.name + ": left out " + case_name(p, columns) + ": " + what);
          continue;
        }
        guarded(job, "operands " + case_name(p, columns), ExitNotSupported, [&] {
          product.set_columns(columns);
          run_case(job, p, product);
        });
        product.drop();
      }
    });
  }
}

}  // namespace

Operation attention_operation() {
  Operation op;
  op.name = "attention";
  op.summary = "O = softmax(alpha / sqrt(d) Q K^T on the entries) V, or its gradients (--backward)";
  op.precisions = {Precision::FP64, Precision::FP32, Precision::TF32, Precision::FP16, Precision::BF16};
  for (const AttentionAlgorithm a :
       {AttentionAlgorithm::Auto, AttentionAlgorithm::Fused, AttentionAlgorithm::Chain, AttentionAlgorithm::Rows}) {
    op.algorithms.emplace_back(to_string(a));
  }
  op.baselines = {"chain", "portable"};
  op.takes = {"--columns", "--heads", "--backward"};
  op.columns = true;
  op.run = bench_attention;
  return op;
}

}  // namespace Bench
}  // namespace Tessera
