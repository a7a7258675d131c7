// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "spmm/Tessera_BenchSpmm.hpp"

#include "Tessera_Compat.hpp"
#include "Tessera_Error.hpp"
#include "driver/Tessera_BenchContext.hpp"
#include "spmm/Tessera_BenchVerifySpmm.hpp"

namespace Tessera {
namespace Bench {
namespace {

/// B and C before the product, where files gave them; without columns: seeded.
struct DenseOperands {
  io::HostDense<double> B, C;
};

/// Column-major numbers in the order of a layout's memory.
std::vector<double> in_layout(const io::HostDense<double>& dense, bool layout_left) {
  if (layout_left) return dense.values;
  std::vector<double> values;
  values.reserve(dense.values.size());
  for (std::int64_t i = 0; i < dense.rows; ++i) {
    for (std::int64_t j = 0; j < dense.cols; ++j) values.push_back(dense.values[i + j * dense.rows]);
  }
  return values;
}

/// C := alpha A B + beta C for one number of columns after the other, checked on the device.
class SpmmProduct final : public Product {
 public:
  SpmmProduct(const Job& job, const DenseOperands& dense, Precision precision)
      : options_(job.options), dense_(dense), precision_(precision), variants_(spmm_variants(job.options, precision)) {
    o_.A = make_csr(job, precision, scale_);
    o_.c_type = result_type(precision, options_);
    o_.layout_left = options_.layout_left;
    o_.alpha = options_.alpha / scale_;
    o_.beta = options_.beta;
  }

  /// Drops B and C, then makes others.
  void set_columns(std::int64_t n) {
    drop();
    o_.columns = n;
    const auto columns = static_cast<std::size_t>(n);
    const Exec& space = o_.A.space;
    if (dense_.B.cols > 0) {
      o_.B = upload(space, "B", in_layout(dense_.B, o_.layout_left), o_.A.element);
    } else {
      o_.B = DeviceArray("B", static_cast<std::size_t>(o_.A.cols) * columns, bytes_of(o_.A.element));
      fill_dense(space, o_.b_elements(), dense_seed(options_.seed, DenseRole::B));
    }
    if (dense_.C.cols > 0) first_c_ = upload(space, "first C", in_layout(dense_.C, o_.layout_left), o_.c_type);
    o_.C = DeviceArray("C", static_cast<std::size_t>(o_.A.rows) * columns, bytes_of(o_.c_type));
    Compat::fence(space, "Tessera::bench operands");
  }
  void drop() { o_.B = o_.C = first_c_ = {}; }

  /// B once and C once, or twice where it is read.
  double dense_bytes(std::int64_t n, bool reads_c) const {
    const double c = static_cast<double>(bytes_of(o_.c_type)) * o_.A.rows;
    return static_cast<double>(n) * (static_cast<double>(bytes_of(o_.A.element)) * o_.A.cols + (reads_c ? 2 * c : c));
  }

  void describe(Record& r) const override {
    r.op = "spmm";
    r.columns = true;
    r.y_type = Impl::to_string(o_.c_type);
    r.layout = o_.layout_left ? "left" : "right";
    r.rows = o_.A.rows;
    r.cols = o_.A.cols;
    r.n = o_.columns;
    r.value_scale = scale_;
    r.offset_bits = o_.A.offset_bits;
  }
  double matrix_bytes() const override { return o_.A.bytes(); }
  double dense_bytes() const override { return dense_bytes(o_.columns, o_.beta != 0); }
  double flops() const override { return 2 * static_cast<double>(o_.A.nnz()) * static_cast<double>(o_.columns); }
  double row_bytes() const override {
    return static_cast<double>(o_.columns) * static_cast<double>(bytes_of(o_.A.element));
  }
  std::vector<std::string> baselines() const override { return spmm_baselines(o_); }
  System make_baseline(const std::string& name) const override {
    System system = make_spmm_baseline(o_, name);
    if (precision_ == Precision::TF32) system.why += ", in FP32";
    return system;
  }

  std::vector<Variant> variants() const override {
    std::vector<Variant> list;
    for (const SpmmVariant& v : variants_) list.push_back({to_string(v.algorithm), v.name, v.named});
    return list;
  }

  System make_plan(std::size_t index) const override {
    const SpmmVariant& v = variants_[index];
    SpmmOptions options;
    options.algorithm = v.algorithm;
    options.backend = options_.backend;
    options.selection = options_.selection;
    options.flash = v.flash;
    options.num_columns_hint = static_cast<int>(o_.columns);
    options.fallback = v.algorithm == SpmmAlgorithm::Auto;
    if (precision_ == Precision::TF32) options.compute = ComputeType::TF32;
    switch (precision_) {
      case Precision::FP64:
        return spmm_plan_fp64(o_, options);
      case Precision::FP16:
        return spmm_plan_fp16(o_, options);
      case Precision::BF16:
        return spmm_plan_bf16(o_, options);
      default:  // TF32 is FP32's data with another plan
        return spmm_plan_fp32(o_, options);
    }
  }

  /// beta == 0 promises not to read C, so every element must be written over what poisons a sum.
  void reset() override {
    if (o_.beta != 0 && first_c_.size() > 0) {
      copy(o_.A.space, o_.C, first_c_);
    } else {
      fill_dense(o_.A.space, o_.c_elements(), dense_seed(options_.seed, DenseRole::C), o_.beta == 0);
    }
  }

  Verdict check(const std::string& kernel) override {
    DenseElements first;
    if (first_c_.size() > 0) first = o_.elements(first_c_, o_.c_type, o_.A.rows);
    return check_spmm(o_, first, dense_seed(options_.seed, DenseRole::C),
                      SpmmRounding::of(precision_, o_.A.element, o_.c_type, kernel));
  }

  void write_result(const std::string& file) const override {
    std::vector<double> c = download(o_.A.space, o_.C, o_.c_type);
    // The transposed order is that of the other layout.
    if (!o_.layout_left) c = in_layout({o_.columns, o_.A.rows, std::move(c)}, false);
    write_dense_result(file, o_.A.rows, o_.columns, c, o_.c_type);
  }

 private:
  const BenchOptions& options_;
  const DenseOperands& dense_;
  Precision precision_;
  std::vector<SpmmVariant> variants_;
  double scale_ = 1;
  SpmmOperands o_;
  DeviceArray first_c_;
};

/// Of --x and --y; their columns are those that are measured. @throw BenchError
DenseOperands load_operands(BenchOptions& options, const BenchMatrix& matrix) {
  DenseOperands dense;
  const auto load = [&](const std::string& file, std::int64_t rows) {
    io::HostDense<double> operand = load_dense(file);
    const bool first = !options.columns_given;
    if (first) options.columns = {operand.cols};
    options.columns_given = true;
    if (operand.rows != rows || options.columns != std::vector<std::int64_t>{operand.cols} || operand.cols == 0) {
      throw BenchError(ExitInput, file + ": " + std::to_string(operand.rows) + " x " + std::to_string(operand.cols) +
                                      " values, " + matrix.name + " needs " + std::to_string(rows) +
                                      " rows, and as many columns as --columns and the other file say");
    }
    return operand;
  };
  if (!options.x.empty()) dense.B = load(options.x, matrix.csr.cols);
  if (!options.y.empty() && options.beta != 0) dense.C = load(options.y, matrix.csr.rows);
  return dense;
}

void write_operands_of(const BenchOptions& options, const BenchMatrix& matrix, const DenseOperands& dense) {
  std::vector<DenseFile> files;
  const auto add = [&](const char* name, const io::HostDense<double>& given, std::int64_t rows, DenseRole role) {
    for (const std::int64_t n : options.columns) {
      const std::string suffix = options.columns.size() > 1 ? "N" + std::to_string(n) : std::string();
      files.push_back({with_suffix(name, suffix), given});
      if (given.cols == 0) files.back().dense = {rows, n, seeded_dense(rows, n, dense_seed(options.seed, role))};
    }
  };
  add("B.mtx", dense.B, matrix.csr.cols, DenseRole::B);
  if (options.beta != 0) add("C.mtx", dense.C, matrix.csr.rows, DenseRole::C);
  write_operands(options, matrix, files);
}

void bench_spmm(const Job& all) {
  const BenchMatrix& matrix = all.matrix;
  BenchOptions options = all.options;
  const DenseOperands dense = load_operands(options, matrix);
  const Job job = {options, matrix, all.report};
  if (!options.write_operands.empty()) write_operands_of(options, matrix, dense);
  for (const Precision p : options.precisions) {
    guarded(job, case_name(p) + " operands", ExitNotSupported, [&] {
      SpmmProduct product(job, dense, p);
      for (const std::int64_t n : options.columns) {
        const std::string what =
            too_large(product.matrix_bytes(), product.dense_bytes(n, false), memory_bytes(), Compat::is_host_v<Exec>);
        if (!what.empty()) {
          job.report.note(matrix.name + ": left out " + case_name(p, n) + ": " + what);
          continue;
        }
        guarded(job, "operands " + case_name(p, n), ExitNotSupported, [&] {
          product.set_columns(n);
          run_case(job, p, product);
        });
        product.drop();
      }
    });
  }
}

}  // namespace

Operation spmm_operation() {
  Operation op;
  op.name = "spmm";
  op.summary = "C = alpha A B + beta C";
  op.precisions = {Precision::FP64, Precision::FP32, Precision::TF32, Precision::FP16, Precision::BF16};
  for (const SpmmAlgorithm a : {SpmmAlgorithm::Auto, SpmmAlgorithm::Panels, SpmmAlgorithm::FlashSparse,
                                SpmmAlgorithm::GeSpmm, SpmmAlgorithm::Csr}) {
    op.algorithms.emplace_back(to_string(a));
  }
  op.baselines = {"kokkos-kernels", "cusparse-alg-default", "cusparse-alg1", "cusparse-alg2", "cusparse-alg3"};
  op.takes = {"--columns", "--layout"};
  op.columns = true;
  op.uniform_values = true;
  op.run = bench_spmm;
  return op;
}

}  // namespace Bench
}  // namespace Tessera
