// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "spgemm/Tessera_BenchSpgemm.hpp"

#include <algorithm>
#include <optional>

#include "Tessera_Compat.hpp"
#include "Tessera_Error.hpp"

namespace Tessera {
namespace Bench {
namespace {

/// A^T by plain loops.
BenchMatrix transposed(const BenchMatrix& matrix) {
  const auto& A = matrix.csr;
  BenchMatrix t;
  t.csr.rows = A.cols;
  t.csr.cols = A.rows;
  t.csr.row_map.assign(static_cast<std::size_t>(A.cols) + 1, 0);
  for (const int column : A.entries) ++t.csr.row_map[static_cast<std::size_t>(column) + 1];
  for (std::size_t i = 1; i < t.csr.row_map.size(); ++i) t.csr.row_map[i] += t.csr.row_map[i - 1];
  std::vector<std::int64_t> next(t.csr.row_map.begin(), t.csr.row_map.end() - 1);
  t.csr.entries.resize(A.entries.size());
  t.csr.values.resize(A.entries.size());
  for (int i = 0; i < A.rows; ++i) {
    for (auto e = static_cast<std::size_t>(A.row_map[static_cast<std::size_t>(i)]);
         e < static_cast<std::size_t>(A.row_map[static_cast<std::size_t>(i) + 1]); ++e) {
      const auto to = static_cast<std::size_t>(next[static_cast<std::size_t>(A.entries[e])]++);
      t.csr.entries[to] = i;
      t.csr.values[to] = A.values[e];
    }
  }
  return t;
}

std::vector<SpgemmAlgorithm> algorithms_of(const BenchOptions& options) {
  std::vector<SpgemmAlgorithm> list;
  const auto add = [&](SpgemmAlgorithm a) {
    if (std::find(list.begin(), list.end(), a) == list.end()) list.push_back(a);
  };
  for (const std::string& name : options.algorithms) {
    if (name != "all") {
      add(parse_spgemm_algorithm(name));
      continue;
    }
    add(SpgemmAlgorithm::Auto);
    if (!Compat::is_host_v<Exec>) add(SpgemmAlgorithm::Binned);
    for (const SpgemmAlgorithm a :
         {SpgemmAlgorithm::Spa, SpgemmAlgorithm::Hash, SpgemmAlgorithm::Heap, SpgemmAlgorithm::Coo}) {
      if (Compat::is_host_v<Exec>) add(a);
    }
    add(SpgemmAlgorithm::Dia);
    add(SpgemmAlgorithm::Ell);
  }
  if (options.regret) add(SpgemmAlgorithm::Auto);
  return list;
}

/// B of the command line, or A^T; of square matrices without B nothing: A itself.
std::optional<BenchMatrix> second_of(const Job& job) {
  const BenchOptions& options = job.options;
  if (options.matrix_b.empty()) {
    if (job.matrix.csr.rows == job.matrix.csr.cols) return {};
    return transposed(job.matrix);
  }
  BenchMatrix B = load_matrix(options.matrix_b, options.seed + 1);
  make_values_uniform(B, options.seed + 1);
  if (B.csr.rows != job.matrix.csr.cols) {
    throw BenchError(ExitInput, "A has " + std::to_string(job.matrix.csr.cols) + " columns, " + options.matrix_b +
                                    " has " + std::to_string(B.csr.rows) + " rows");
  }
  return B;
}

/// A B.
class SpgemmProduct final : public Product {
 public:
  SpgemmProduct(const Job& job, const std::optional<BenchMatrix>& second, Precision precision)
      : algorithms_(algorithms_of(job.options)), precision_(precision) {
    for (const SpgemmAlgorithm a : algorithms_) {
      asked_.push_back({a, SpgemmTiles::Auto});
      if (a != SpgemmAlgorithm::Binned || precision != Precision::FP64 || Compat::is_host_v<Exec>) continue;
      asked_.push_back({a, SpgemmTiles::Never});
      asked_.push_back({a, SpgemmTiles::Always});
    }
    double scale = 1;
    o_.A = o_.B = make_csr(job, precision, scale, false);
    if (second) o_.B = make_csr(Job{job.options, *second, job.report}, precision, scale, false);
    if (o_.A.offset_bits != o_.B.offset_bits) throw NotSupported("A and B need offsets of one width: --offset-bits 64");
    SpgemmOptions options;
    const System plan = make(options);
    plan.apply();  // to know how large C is
    products_ = plan.statistics().classes.at(0).nnz;
    c_entries_ = static_cast<std::int64_t>(o_.C->entries.size());
  }

  void describe(Record& r) const override {
    r.op = "spgemm";
    r.y_type = Impl::to_string(o_.A.element);
    r.rows = o_.A.rows;
    r.cols = o_.A.cols;
    r.offset_bits = o_.A.offset_bits;
  }
  double matrix_bytes() const override { return o_.A.bytes() + o_.B.bytes(); }
  /// Of C.
  double dense_bytes() const override {
    return static_cast<double>(c_entries_) * static_cast<double>(bytes_of(o_.A.element) + sizeof(int)) +
           o_.A.offset_bits / 8 * (o_.A.rows + 1.0);
  }
  double flops() const override { return 2 * static_cast<double>(products_); }
  std::vector<std::string> baselines() const override {
    std::vector<std::string> list;
#if defined(TESSERA_HAVE_KOKKOSKERNELS)
    if (kokkos_kernels_has_spgemm(o_)) list.emplace_back("kokkos-kernels");
#endif
#if defined(TESSERA_HAVE_CUDA)
    if (has_cusparse()) list.insert(list.end(), {"cusparse-alg1", "cusparse-alg2", "cusparse-alg3"});
#endif
    return list;
  }
  System make_baseline(const std::string& name) const override {
#if defined(TESSERA_HAVE_KOKKOSKERNELS)
    if (name == "kokkos-kernels" && kokkos_kernels_has_spgemm(o_)) return kokkos_kernels_spgemm(o_);
#endif
#if defined(TESSERA_HAVE_CUDA)
    if (name.rfind("cusparse-alg", 0) == 0 && has_cusparse()) return make_cusparse_spgemm(o_, name.back() - '0');
#endif
    throw NotSupported("baseline '" + name + "' is not in this build or does not know this precision");
  }
  std::vector<Variant> variants() const override {
    std::vector<Variant> list;
    for (const auto& [algorithm, tiles] : asked_) {
      const char* const how = tiles == SpgemmTiles::Auto ? "" : tiles == SpgemmTiles::Never ? "no-tiles" : "tiles";
      list.push_back({to_string(algorithm), how});
    }
    return list;
  }
  System make_plan(std::size_t index) const override {
    SpgemmOptions options;
    options.algorithm = asked_[index].first;
    options.tiles = asked_[index].second;
    return make(options);
  }

  void write_features(const BenchOptions& options, const std::string& matrix) const {
    write_spgemm_features(options.features, o_, products_, matrix, options, algorithms_, [this](SpgemmAlgorithm a) {
      SpgemmOptions asked;
      asked.algorithm = a;
      return make(asked);
    });
  }

  void reset() override { *o_.C = {}; }
  Verdict check(const std::string&) override { return check_spgemm(o_); }
  void write_result(const std::string& file) const override {
    io::HostCsr<double, int, std::int64_t> C{o_.A.rows, o_.B.cols, {}, {}, {}};
    if (o_.A.offset_bits == 64) {
      fetch<WideOffset>(o_.C->row_map, C.row_map);
    } else {
      fetch<int>(o_.C->row_map, C.row_map);
    }
    fetch<int>(o_.C->entries, C.entries);
    C.values = download(o_.A.space, o_.C->values, o_.A.element);
    io::write_matrix_market(file, C);
  }

 private:
  bool has_cusparse() const { return Compat::is_cuda_v<Exec> && o_.A.offset_bits == 32; }
  System make(const SpgemmOptions& options) const {
    return precision_ == Precision::FP64 ? spgemm_plan_fp64(o_, options) : spgemm_plan_fp32(o_, options);
  }

  std::vector<SpgemmAlgorithm> algorithms_;
  std::vector<std::pair<SpgemmAlgorithm, SpgemmTiles>> asked_;  ///< and on devices Binned with and without tiles
  Precision precision_;
  SpgemmOperands o_;
  std::int64_t products_ = 0, c_entries_ = 0;
};

void bench_spgemm(const Job& job) {
  const BenchOptions& options = job.options;
  if (options.alpha != 1 || options.beta != 0) throw BenchError(ExitUsage, "spgemm has no --alpha and --beta");
  if (!options.x.empty() || !options.y.empty()) throw BenchError(ExitUsage, "spgemm takes --matrix-b, not --x and --y");
  if (options.backend != Backend::Auto && options.backend != Backend::Kokkos) {
    throw BenchError(ExitNotSupported, std::string("spgemm runs on Kokkos, not on ") + to_string(options.backend));
  }
  if (!options.write_operands.empty()) write_operands(options, job.matrix, {});
  const auto second = second_of(job);
  for (const Precision p : job.options.precisions) {
    guarded(job, case_name(p) + " operands", ExitNotSupported, [&] {
      SpgemmProduct product(job, second, p);
      if (options.features.empty()) {
        run_case(job, p, product);
      } else {
        product.write_features(options, job.matrix.name);
      }
    });
  }
}

}  // namespace

Operation spgemm_operation() {
  Operation op;
  op.name = "spgemm";
  op.summary = "C = A B with --matrix-b, else A A, of rectangular matrices A A^T";
  op.precisions = {Precision::FP64, Precision::FP32};
  for (const SpgemmAlgorithm a :
       {SpgemmAlgorithm::Auto, SpgemmAlgorithm::Spa, SpgemmAlgorithm::Hash, SpgemmAlgorithm::Heap, SpgemmAlgorithm::Coo,
        SpgemmAlgorithm::Binned, SpgemmAlgorithm::Dia, SpgemmAlgorithm::Ell}) {
    op.algorithms.emplace_back(to_string(a));
  }
  op.baselines = {"kokkos-kernels", "cusparse-alg1", "cusparse-alg2", "cusparse-alg3"};
  op.takes = {"--matrix-b", "--features"};
  op.uniform_values = true;
  op.run = bench_spgemm;
  return op;
}

}  // namespace Bench
}  // namespace Tessera
