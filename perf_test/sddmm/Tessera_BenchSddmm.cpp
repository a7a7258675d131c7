// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "sddmm/Tessera_BenchSddmm.hpp"

#include <algorithm>

#include "Tessera_Compat.hpp"
#include "Tessera_Config.hpp"
#include "Tessera_Error.hpp"
#include "driver/Tessera_BenchContext.hpp"
#include "spmm/Tessera_BenchSpmm.hpp"
#include "spmm/Tessera_BenchVerifySpmm.hpp"

namespace Tessera {
namespace Bench {
namespace {

enum class SddmmRole : std::uint64_t { X = 0x58, Y = 0x59, P = 0x50 };
std::uint64_t seed_of(const BenchOptions& options, SddmmRole role) {
  return options.seed ^ (static_cast<std::uint64_t>(role) << 56);
}

/// X and Y, where files gave them; without columns: seeded.
struct Factors {
  io::HostDense<double> X, Y;
};

struct SddmmVariant {
  SddmmAlgorithm algorithm;
  bool named;
  std::string name = {};  ///< of an option set of --ablation
};

/// --ablation: each against the row of the algorithm's own choices.
std::vector<std::string> ablations_of(SddmmAlgorithm algorithm) {
  if (algorithm == SddmmAlgorithm::Panels) return {"low", "high"};
  if (algorithm == SddmmAlgorithm::FlashSparse) return {"shared"};
  if (algorithm == SddmmAlgorithm::Bsmr) return {"low", "from3", "from4", "unordered"};
  return {};
}
void ablate(const std::string& name, SddmmOptions& options) {
  if (name == "low") options.window_height = 1;
  if (name == "high") options.window_height = 2;
  if (name == "from3") options.bsmr.dense_from = 3;
  if (name == "from4") options.bsmr.dense_from = 4;
  if (name == "unordered") options.bsmr.reordering = RowReordering::None;
}

/// csr first so that the others can be compared with it.
std::vector<SddmmVariant> variants_of(const BenchOptions& options, Precision precision) {
  const Backend b = options.backend;
  const bool host = Compat::is_host_v<Exec>, tf32 = precision == Precision::TF32;
  const bool unit = b != Backend::Kokkos && b != Backend::Reference && !(b == Backend::Auto && host);
  std::vector<SddmmVariant> list;
  const auto add = [&](SddmmAlgorithm a, bool named) {
    const auto at = std::find_if(list.begin(), list.end(), [a](const SddmmVariant& v) { return v.algorithm == a; });
    if (at == list.end()) {
      list.push_back({a, named});
    } else {
      at->named = at->named || named;
    }
  };
  for (const std::string& name : options.algorithms) {
    if (name != "all") {
      add(parse_sddmm_algorithm(name), true);
      continue;
    }
    // What needs no set-up is slow on devices: there the rows of the backend are the plain kernel. It runs on no
    // matrix-unit backend, so that those who ask for one do not get it beside.
    const bool portable = b == Backend::Auto || b == Backend::Kokkos;
    if (!tf32 && ((host && portable) || b == Backend::Reference)) add(SddmmAlgorithm::Csr, false);
    if (b != Backend::Reference && (unit || !tf32)) add(SddmmAlgorithm::Rows, false);
    if (unit) add(SddmmAlgorithm::Panels, false);
    if (unit) add(SddmmAlgorithm::FlashSparse, false);
    if (unit) add(SddmmAlgorithm::Bsmr, false);
    if (b == Backend::Auto) add(SddmmAlgorithm::Auto, false);
  }
  if (options.regret) add(SddmmAlgorithm::Auto, true);
  std::stable_sort(list.begin(), list.end(), [](const SddmmVariant& l, const SddmmVariant& r) {
    return (l.algorithm == SddmmAlgorithm::Csr) > (r.algorithm == SddmmAlgorithm::Csr);
  });
  if (!options.ablation) return list;
  std::vector<SddmmVariant> all;
  for (const SddmmVariant& v : list) {
    all.push_back(v);
    for (const std::string& name : ablations_of(v.algorithm)) all.push_back({v.algorithm, false, name});
  }
  return all;
}

/// One K after the other, checked on the device.
class SddmmProduct final : public Product {
 public:
  SddmmProduct(const Job& job, const Factors& factors, Precision precision)
      : options_(job.options),
        matrix_(job.matrix),
        factors_(factors),
        precision_(precision),
        variants_(variants_of(job.options, precision)) {
    double scale = 1;
    o_.S = make_csr(job, precision, scale, false);
    o_.p_type = result_type(precision, options_);
    o_.alpha = options_.alpha;
    o_.beta = options_.beta;
  }

  /// Drops X, Y and P, then makes others.
  void set_inner(std::int64_t inner) {
    drop();
    o_.inner = inner;
    o_.X = factor(factors_.X, o_.S.rows, SddmmRole::X);
    o_.Y = factor(factors_.Y, o_.S.cols, SddmmRole::Y);
    o_.P = DeviceArray("P", static_cast<std::size_t>(o_.S.nnz()), bytes_of(o_.p_type));
    Compat::fence(o_.S.space, "Tessera::bench operands");
  }
  void drop() { o_.X = o_.Y = o_.P = {}; }
  double dense_bytes(std::int64_t inner) const {
    const double p = static_cast<double>(bytes_of(o_.p_type)) * static_cast<double>(o_.S.nnz());
    return static_cast<double>(inner) * static_cast<double>(bytes_of(o_.S.element)) *
               (static_cast<double>(o_.S.rows) + o_.S.cols) +
           (o_.beta != 0 ? 2 * p : p);
  }

  void describe(Record& r) const override {
    r.op = "sddmm";
    r.columns = true;
    r.y_type = Impl::to_string(o_.p_type);
    r.layout = "right";
    r.rows = o_.S.rows;
    r.cols = o_.S.cols;
    r.n = o_.inner;
    r.offset_bits = o_.S.offset_bits;
  }
  /// The pattern: the numbers of S are not read.
  double matrix_bytes() const override {
    return o_.S.bytes() - static_cast<double>(o_.S.nnz()) * static_cast<double>(bytes_of(o_.S.element));
  }
  double dense_bytes() const override { return dense_bytes(o_.inner); }
  double flops() const override { return 2 * static_cast<double>(o_.S.nnz()) * static_cast<double>(o_.inner); }
  double row_bytes() const override {
    return static_cast<double>(o_.inner) * static_cast<double>(bytes_of(o_.S.element));
  }
  std::vector<std::string> baselines() const override { return sddmm_baselines(o_); }
  System make_baseline(const std::string& name) const override {
    System system = make_sddmm_baseline(o_, name);
    if (precision_ == Precision::TF32) system.why += ", in FP32";
    return system;
  }
  std::vector<Variant> variants() const override {
    std::vector<Variant> list;
    for (const SddmmVariant& v : variants_) list.push_back({to_string(v.algorithm), v.name, v.named});
    return list;
  }
  System make_plan(std::size_t index) const override {
    SddmmOptions options;
    options.algorithm = variants_[index].algorithm;
    options.backend = options_.backend;
    options.selection = options_.selection;
    options.inner_hint = static_cast<int>(o_.inner);
    options.fallback = options.algorithm == SddmmAlgorithm::Auto;
    if (precision_ == Precision::TF32) options.compute = ComputeType::TF32;
    ablate(variants_[index].name, options);
    SharedWindows* const windows = variants_[index].name == "shared" ? &windows_ : nullptr;
    switch (precision_) {
      case Precision::FP64:
        return sddmm_plan_fp64(o_, options, windows);
      case Precision::FP16:
        return sddmm_plan_fp16(o_, options, windows);
      case Precision::BF16:
        return sddmm_plan_bf16(o_, options, windows);
      default:  // TF32 is FP32's data with another plan
        return sddmm_plan_fp32(o_, options, windows);
    }
  }

  /// beta == 0 promises not to read P, so every number must be written over what poisons a sum.
  void reset() override { fill_dense(o_.S.space, o_.p_elements(o_.P), seed_of(options_, SddmmRole::P), o_.beta == 0); }
  Verdict check(const std::string& kernel) override {
    return check_sddmm(o_, {}, seed_of(options_, SddmmRole::P), precision_, kernel);
  }
  void write_result(const std::string& file) const override {
    io::HostCsr<double, int, std::int64_t> result{matrix_.csr.rows, matrix_.csr.cols, matrix_.csr.row_map,
                                                  matrix_.csr.entries, download(o_.S.space, o_.P, o_.p_type)};
    io::write_matrix_market(file, result);
  }

 private:
  DeviceArray factor(const io::HostDense<double>& given, std::int64_t rows, SddmmRole role) const {
    const Exec& space = o_.S.space;
    if (given.cols > 0) {
      std::vector<double> by_rows;
      by_rows.reserve(given.values.size());
      for (std::int64_t i = 0; i < given.rows; ++i) {
        for (std::int64_t k = 0; k < given.cols; ++k) by_rows.push_back(given.values[i + k * given.rows]);
      }
      return upload(space, "factor", by_rows, o_.S.element);
    }
    const DeviceArray made("factor", static_cast<std::size_t>(rows * o_.inner), bytes_of(o_.S.element));
    fill_dense(space, {made.data<void>(), o_.S.element, rows, o_.inner, o_.inner, 1}, seed_of(options_, role));
    return made;
  }

  const BenchOptions& options_;
  const BenchMatrix& matrix_;
  const Factors& factors_;
  Precision precision_;
  std::vector<SddmmVariant> variants_;
  SddmmOperands o_;
  mutable SharedWindows windows_;
};

/// Of --x and --y; their columns are the K that is measured. @throw BenchError
Factors load_factors(BenchOptions& options, const BenchMatrix& matrix) {
  Factors factors;
  const auto load = [&](const std::string& file, std::int64_t rows) {
    io::HostDense<double> factor = load_dense(file);
    if (!options.columns_given) options.columns = {factor.cols};
    options.columns_given = true;
    if (factor.rows != rows || factor.cols == 0 || options.columns != std::vector<std::int64_t>{factor.cols}) {
      throw BenchError(ExitInput, file + ": " + std::to_string(factor.rows) + " x " + std::to_string(factor.cols) +
                                      " values, " + matrix.name + " needs " + std::to_string(rows) +
                                      " rows, and as many columns as --inner and the other file say");
    }
    return factor;
  };
  if (!options.x.empty()) factors.X = load(options.x, matrix.csr.rows);
  if (!options.y.empty()) factors.Y = load(options.y, matrix.csr.cols);
  return factors;
}

void write_factors(const BenchOptions& options, const BenchMatrix& matrix, const Factors& factors) {
  std::vector<DenseFile> files;
  const auto add = [&](const char* name, const io::HostDense<double>& given, std::int64_t rows, SddmmRole role) {
    for (const std::int64_t inner : options.columns) {
      const std::string suffix = options.columns.size() > 1 ? "K" + std::to_string(inner) : std::string();
      files.push_back({with_suffix(name, suffix), given});
      if (given.cols == 0) files.back().dense = {rows, inner, seeded_dense(rows, inner, seed_of(options, role))};
    }
  };
  add("X.mtx", factors.X, matrix.csr.rows, SddmmRole::X);
  add("Y.mtx", factors.Y, matrix.csr.cols, SddmmRole::Y);
  write_operands(options, matrix, files);
}

void bench_sddmm(const Job& all) {
  const BenchMatrix& matrix = all.matrix;
  BenchOptions options = all.options;
  if (!options.columns_given) options.columns = {32, 128};
  const Factors factors = load_factors(options, matrix);
  const Job job = {options, matrix, all.report};
  if (!options.write_operands.empty()) write_factors(options, matrix, factors);
  for (const Precision p : options.precisions) {
    guarded(job, case_name(p) + " operands", ExitNotSupported, [&] {
      SddmmProduct product(job, factors, p);
      for (const std::int64_t inner : options.columns) {
        const std::string what =
            too_large(product.matrix_bytes(), product.dense_bytes(inner), memory_bytes(), Compat::is_host_v<Exec>);
        if (!what.empty()) {
          job.report.note(matrix.name + ": left out " + case_name(p, inner) + ": " + what);
          continue;
        }
        guarded(job, "operands " + case_name(p, inner), ExitNotSupported, [&] {
          product.set_inner(inner);
          run_case(job, p, product);
        });
        product.drop();
      }
    });
  }
}

}  // namespace

std::vector<std::string> sddmm_baselines(const SddmmOperands& o) {
  std::vector<std::string> names;
  if (Compat::is_host_v<Exec> && bytes_of(o.S.element) >= 4) names.emplace_back("csr-loop");
#if defined(TESSERA_HAVE_CUDA)
  if (Compat::is_cuda_v<Exec>) names.emplace_back("cusparse-alg-default");
#endif
  return names;
}

System make_sddmm_baseline(const SddmmOperands& o, const std::string& name) {
  if (name == "csr-loop" && Compat::is_host_v<Exec> && bytes_of(o.S.element) >= 4) return make_csr_loop_sddmm(o);
#if defined(TESSERA_HAVE_CUDA)
  if (name == "cusparse-alg-default" && Compat::is_cuda_v<Exec>) return make_cusparse_sddmm(o);
#endif
  throw NotSupported("baseline '" + name + "' is not in this build or does not know this precision");
}

Operation sddmm_operation() {
  Operation op;
  op.name = "sddmm";
  op.summary = "P = alpha <X_i, Y_j> + beta P for the entries (i, j)";
  op.precisions = {Precision::FP64, Precision::FP32, Precision::TF32, Precision::FP16, Precision::BF16};
  for (const SddmmAlgorithm a : {SddmmAlgorithm::Auto, SddmmAlgorithm::Panels, SddmmAlgorithm::Rows,
                                 SddmmAlgorithm::FlashSparse, SddmmAlgorithm::Bsmr, SddmmAlgorithm::Csr}) {
    op.algorithms.emplace_back(to_string(a));
  }
  op.baselines = {"csr-loop", "cusparse-alg-default"};
  op.takes = {"--columns"};
  op.columns = true;
  op.uniform_values = true;
  op.run = bench_sddmm;
  return op;
}

}  // namespace Bench
}  // namespace Tessera
