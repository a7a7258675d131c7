// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "spmv/Tessera_BenchSpmv.hpp"

#include <limits>

#include "Tessera_Error.hpp"
#include "spmv/Tessera_BenchVerify.hpp"

namespace Tessera {
namespace Bench {
namespace {

/// x and y on the host; y only looked at if beta is not 0.
struct Vectors {
  std::vector<double> x, y;
};

std::vector<double> all_rounded(std::vector<double> values, ElementType type) {
  for (double& v : values) v = rounded(v, type);
  return values;
}

/// y := alpha A x + beta y, checked on the host.
class SpmvProduct final : public Product {
 public:
  SpmvProduct(const Job& job, const Vectors& vectors, Precision precision)
      : options_(job.options), precision_(precision), variants_(spmv_variants(job.options, precision)) {
    o_.A = make_csr(job, precision, scale_);
    if (options_.block > 0) o_.blocks = make_bsr(job, o_.A, scale_, options_.block);
    o_.y_type = result_type(precision, options_);
    o_.alpha = options_.alpha / scale_;
    o_.beta = options_.beta;
    o_.x = upload(o_.A.space, "x", vectors.x, o_.A.element);
    const auto rows = static_cast<std::size_t>(o_.A.rows);
    std::vector<double> y = o_.beta != 0 ? all_rounded(vectors.y, o_.y_type) : std::vector<double>(rows, 0);
    const auto& csr = job.matrix.csr;
    std::vector<double> values = csr.values;
    for (double& v : values) v = rounded(scale_ * v, o_.A.element);
    verifier_.set(csr.row_map, csr.entries, values, o_.alpha, all_rounded(vectors.x, o_.A.element), o_.beta, y,
                  o_.A.element, o_.y_type);
    // beta == 0 promises not to read y, so every row must be written over what poisons a sum.
    if (o_.beta == 0) y.assign(rows, std::numeric_limits<double>::quiet_NaN());
    first_y_ = upload(o_.A.space, "first y", y, o_.y_type);
    o_.y = upload(o_.A.space, "y", y, o_.y_type);
  }

  void describe(Record& r) const override {
    r.op = "spmv";
    r.y_type = Impl::to_string(o_.y_type);
    r.rows = o_.A.rows;
    r.cols = o_.A.cols;
    r.value_scale = scale_;
    r.offset_bits = o_.A.offset_bits;
  }
  double matrix_bytes() const override { return o_.A.bytes(); }
  double dense_bytes() const override {
    const double y = static_cast<double>(bytes_of(o_.y_type)) * o_.A.rows;
    return static_cast<double>(bytes_of(o_.A.element)) * o_.A.cols + (o_.beta != 0 ? 2 * y : y);
  }
  double flops() const override { return 2 * static_cast<double>(o_.A.nnz()); }
  std::vector<std::string> baselines() const override { return spmv_baselines(o_); }
  System make_baseline(const std::string& name) const override { return make_spmv_baseline(o_, name); }

  std::vector<Variant> variants() const override {
    std::vector<Variant> list;
    for (const SpmvVariant& v : variants_) list.push_back({to_string(v.algorithm), v.name, true});
    return list;
  }

  System make_plan(std::size_t index) const override {
    const SpmvVariant& v = variants_[index];
    SpmvOptions options;
    options.algorithm = v.algorithm;
    options.backend = options_.backend;
    options.selection = options_.selection;
    options.dasp = v.dasp;
    options.packed.value_classes = options_.value_classes;
    options.fallback = v.algorithm == SpmvAlgorithm::Auto;
    if (v.algorithm == SpmvAlgorithm::Bsr) return spmv_plan_bsr(o_, options);
    switch (precision_) {
      case Precision::FP64:
        return spmv_plan_fp64(o_, options);
      case Precision::FP16:
        return spmv_plan_fp16(o_, options);
      case Precision::BF16:
        return spmv_plan_bf16(o_, options);
      default:
        return spmv_plan_fp32(o_, options);
    }
  }

  void reset() override { copy(o_.A.space, o_.y, first_y_); }

  Verdict check(const std::string&) override {
    result_ = download(o_.A.space, o_.y, o_.y_type);
    return verifier_.check(result_);
  }

  void write_result(const std::string& file) const override {
    write_dense_result(file, o_.A.rows, 1, result_, o_.y_type);
  }

 private:
  const BenchOptions& options_;
  Precision precision_;
  std::vector<SpmvVariant> variants_;
  double scale_ = 1;
  SpmvOperands o_;
  DeviceArray first_y_;
  SpmvVerifier verifier_;
  std::vector<double> result_;
};

void bench_spmv(const Job& job) {
  const BenchOptions& o = job.options;
  if (!o.cusparse.empty()) load_cusparse(o.cusparse);
  const auto& csr = job.matrix.csr;
  Vectors vectors;
  vectors.x = load_vector(o.x, csr.cols, o.seed, VectorRole::X);
  if (o.beta != 0) vectors.y = load_vector(o.y, csr.rows, o.seed, VectorRole::Y);
  if (!o.write_operands.empty()) {
    std::vector<DenseFile> files = {{"x.mtx", {csr.cols, 1, vectors.x}}};
    if (o.beta != 0) files.push_back({"y.mtx", {csr.rows, 1, vectors.y}});
    write_operands(o, job.matrix, files);
  }
  for (const Precision p : o.precisions) {
    guarded(job, case_name(p) + " operands", ExitNotSupported, [&] {
      SpmvProduct product(job, vectors, p);
      run_case(job, p, product);
    });
  }
}

}  // namespace

Operation spmv_operation() {
  Operation op;
  op.name = "spmv";
  op.summary = "y = alpha A x + beta y";
  op.precisions = {Precision::FP64, Precision::FP32, Precision::FP16, Precision::BF16};
  for (const SpmvAlgorithm a : {SpmvAlgorithm::Auto, SpmvAlgorithm::PackedSlices, SpmvAlgorithm::Csr5,
                                SpmvAlgorithm::Dasp, SpmvAlgorithm::Csr, SpmvAlgorithm::Bsr}) {
    op.algorithms.emplace_back(to_string(a));
  }
  op.baselines = {"kokkos-kernels", "kokkos-kernels-merge", "cusparse-alg1",        "cusparse-alg2",
                  "cusparse-sell",  "cusparse-spmvop",      "cusparse-spmvop-alg1", "cusparse-spmvop-alg2"};
  for (const std::string& name : blocks_baseline_names()) op.baselines.push_back(name);
  op.takes = {"--dasp", "--value-classes", "--block", "--cusparse"};
  op.run = bench_spmv;
  return op;
}

}  // namespace Bench
}  // namespace Tessera
