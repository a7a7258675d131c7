// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BENCH_SPMM_CASE_HPP
#define TESSERA_BENCH_SPMM_CASE_HPP

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "Tessera_Spmm.hpp"
#include "driver/Tessera_BenchCase.hpp"
#include "driver/Tessera_BenchContext.hpp"
#include "driver/Tessera_BenchTimer.hpp"
#include "spmm/Tessera_BaselinesSpmm.hpp"
#include "spmm/Tessera_BenchSpmm.hpp"
#include "spmm/Tessera_BenchVerifySpmm.hpp"

namespace Tessera {
namespace Bench {

/// One matrix in one precision, for each number of columns: operands on the device, one row a system.
/// @tparam S  of A and B   @tparam Y  of C   @tparam Layout  of B and C
template <class S, class Y, class Offset, class Layout>
class SpmmCase {
 public:
  SpmmCase(const SpmmJob& job, Precision precision)
      : job_(job), precision_(precision), timer_(space_, job.options.repeat, job.options.budget) {
    const auto& csr = job.matrix.csr;
    // The product is unchanged: alpha takes back what the values were multiplied with.
    scale_ = fitting_scale(csr.values, precision);
    if (scale_ != 1) {
      job_.report.note("values do not fit " + std::string(to_string(precision)) + " and are multiplied by 2^" +
                       std::to_string(std::ilogb(scale_)) + ", alpha by its inverse");
    }
    std::vector<S> values(csr.values.size());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<S>(scale_ * csr.values[i]);
    o_.space = space_;
    o_.rows = csr.rows;
    o_.cols = csr.cols;
    o_.alpha = job.options.alpha / scale_;
    o_.beta = job.options.beta;
    o_.row_map = upload<Offset, Device>(space_, "row_map", csr.row_map);
    o_.entries = upload<int, Device>(space_, "entries", csr.entries);
    o_.values = upload<S, Device>(space_, "values", values);
    A_ = csr_view(o_.rows, o_.cols, o_.row_map, o_.entries, o_.values);
  }

  void run() {
    for (const std::int64_t n : job_.options.columns) {
      const std::string what = too_large(csr_bytes(), dense_bytes(n, false), memory_bytes(), Compat::is_host_v<Exec>);
      if (!what.empty()) {
        job_.report.note(where("left out", n) + ": " + what);
        continue;
      }
      guarded("operands", n, ExitNotSupported, [&] {
        make_dense(n);
        run_columns(n);
      });
      o_.B = {};
      o_.C = {};
    }
  }

 private:
  using Exec = Kokkos::DefaultExecutionSpace;
  using Operands = SpmmOperands<Exec, S, Y, Offset, Layout>;
  using Device = typename Operands::device_type;
  using Csr = CsrView<S, int, Offset, Device>;
  using Plan = SpmmPlan<Csr>;

  /// "bcsstk16: flash fp16 N=64".
  std::string where(const std::string& name, std::int64_t n) const {
    return job_.matrix.name + ": " + name + " " + to_string(precision_) + " N=" + std::to_string(n);
  }
  template <class F>
  void guarded(const std::string& name, std::int64_t n, Exit not_supported, const F& f) {
    job_.report.progress(name + " " + to_string(precision_) + " N=" + std::to_string(n));
    Bench::guarded(job_.report, where(name, n), not_supported, f);
  }

  template <class View>
  View allocate_dense(const std::string& name, std::int64_t rows, std::int64_t n) const {
    return View(Kokkos::view_alloc(Kokkos::WithoutInitializing, name), static_cast<std::size_t>(rows),
                static_cast<std::size_t>(n));
  }
  void make_dense(std::int64_t n) {
    o_.columns = n;
    o_.B = allocate_dense<typename Operands::b_type>("B", o_.cols, n);
    o_.C = allocate_dense<typename Operands::c_type>("C", o_.rows, n);
    fill_dense(space_, o_.B, dense_seed(job_.options.seed, DenseRole::B));
    Compat::fence(space_, "Tessera::bench operands");
  }

  void run_columns(std::int64_t n) {
    csr_name_.clear();
    for (const std::string& name :
         wanted_baselines(job_.options, job_.report, spmm_baseline_names<Operands>(), to_string(precision_))) {
      guarded(name, n, declined_baseline(job_.options), [&] { run_baseline(name); });
    }
    const std::vector<SpmmVariant> variants = spmm_variants(job_.options, precision_);
    if (variants.empty()) {
      job_.report.note(std::string("spmm has no algorithm for ") + to_string(precision_) + " on backend '" +
                           to_string(job_.options.backend) + "'",
                       ExitNotSupported);
    }
    for (const SpmmVariant& v : variants) {
      const std::string name = to_string(v.algorithm) + (v.name.empty() ? std::string() : "-" + v.name);
      guarded(name, n, v.named ? ExitNotSupported : ExitVerified, [&] { run_plan(v); });
    }
  }

  Record new_record() const {
    Record r;
    r.op = "spmm";
    r.precision = to_string(precision_);
    r.y_type = Tessera::Impl::to_string(Tessera::Impl::ScalarTraits<Y>::element);
    r.layout = std::is_same_v<Layout, Kokkos::LayoutLeft> ? "left" : "right";
    r.matrix = job_.matrix.name;
    r.rows = o_.rows;
    r.cols = o_.cols;
    r.nnz = job_.matrix.nnz();
    r.n = o_.columns;
    r.alpha = job_.options.alpha;
    r.beta = job_.options.beta;
    r.value_scale = scale_;
    r.offset_bits = static_cast<int>(8 * sizeof(Offset));
    return r;
  }

  /// B once and C once, or twice where it is read.
  double dense_bytes(std::int64_t n, bool reads_c) const {
    const double c = static_cast<double>(sizeof(Y)) * o_.rows;
    return static_cast<double>(n) * (static_cast<double>(sizeof(S)) * o_.cols + (reads_c ? 2 * c : c));
  }
  double csr_bytes() const {
    return static_cast<double>(job_.matrix.nnz()) * (sizeof(S) + sizeof(int)) +
           static_cast<double>(sizeof(Offset)) * (o_.rows + 1.0);
  }

  /// beta == 0 promises not to read C, so every element must be written over what poisons a sum.
  void reset_c() { fill_dense(space_, o_.C, dense_seed(job_.options.seed, DenseRole::C), o_.beta == 0); }

  /// Applies once to the first C and compares.
  void verify(Record& r, const std::function<void()>& apply) {
    reset_c();
    apply();
    SpmmCheck<Operands> check(o_, dense_seed(job_.options.seed, DenseRole::C),
                              SpmmRounding::of<S, Y>(precision_, r.kernel));
    const Verdict v = check.run(space_);
    if (std::isnan(r.error_over_bound) || v.error_over_bound > r.error_over_bound) {
      r.error_over_bound = v.error_over_bound;
    }
    if (!v.verified()) r.fault = v.fault;
  }

  /// Everything that is measured in the same way for all systems. The second comparison sees what many applies and an
  /// update left behind.
  void measure(Record& r, const std::function<void()>& apply, const std::function<void()>& update) {
    verify(r, apply);
    const Timing warm = timer_.warm(apply);
    r.seconds_median = warm.median;
    r.seconds_min = warm.minimum;
    r.samples = warm.samples;
    r.runs_per_sample = warm.runs_per_sample;
    if (job_.options.cold) {
      const Timing cold = timer_.cold(apply);
      r.seconds_cold_median = cold.median;
      r.seconds_cold_min = cold.minimum;
    }
    const auto nothing = [] {};
    if (update) r.update_seconds = timer_.blocking(5, nothing, update).median;
    verify(r, apply);
    r.verified = r.fault.empty();
    r.bytes += dense_bytes(o_.columns, o_.beta != 0);
    r.csr_bytes = csr_bytes() + dense_bytes(o_.columns, o_.beta != 0);
    r.gflops = 2e-9 * static_cast<double>(r.nnz) * static_cast<double>(r.n) / r.seconds_median;
  }

  void run_baseline(const std::string& name) {
    Record r = new_record();
    std::optional<Baseline> baseline;
    const Timing setup = timer_.blocking(
        3, [&] { baseline.reset(); }, [&] { baseline = make_spmm_baseline(o_, name); });
    r.role = "baseline";
    r.algorithm = name;
    r.backend = baseline->backend;
    r.kernel = baseline->kernel;
    r.why = baseline->why + (precision_ == Precision::TF32 ? ", in FP32" : "");
    r.workspace_bytes = baseline->workspace_bytes;
    if (baseline->has_setup) r.setup_seconds = setup.median;
    r.format_bytes = csr_bytes();
    r.padding_ratio = 0;
    r.bytes = r.format_bytes;
    measure(r, baseline->apply, nullptr);
    if (name == "kokkos-kernels" && r.verified) remember_csr(r);
    job_.report.add(r);
  }

  SpmmOptions plan_options(const SpmmVariant& v) const {
    SpmmOptions options;
    options.algorithm = v.algorithm;
    options.backend = job_.options.backend;
    options.selection = job_.options.selection;
    options.flash = v.flash;
    options.num_columns_hint = static_cast<int>(o_.columns);
    options.fallback = v.algorithm == SpmmAlgorithm::Auto;
    if (precision_ == Precision::TF32) options.compute = ComputeType::TF32;
    return options;
  }

  void run_plan(const SpmmVariant& v) {
    const SpmmOptions options = plan_options(v);
    Record r = new_record();
    std::optional<Plan> plan;
    const Timing setup = timer_.blocking(
        3, [&] { plan.reset(); }, [&] { plan.emplace(space_, A_, options); });
    r.setup_seconds = setup.median;
    r.role = "tessera";
    r.asked = to_string(v.algorithm);
    r.variant = v.name;
    describe(r, plan->statistics());
    r.matrix_instructions = matrix_instructions(*plan, r.backend);
    measure(
        r, [&] { plan->apply(space_, Op::NoTrans, o_.alpha, o_.B, o_.beta, o_.C); },
        [&] { plan->update_values(space_, A_.values()); });
    if (r.algorithm == "csr" && r.verified && csr_name_.empty()) {
      remember_csr(r);
    } else if (!csr_name_.empty() && r.algorithm != "csr") {
      const double saved = csr_seconds_ - r.seconds_median;
      r.break_even_against = csr_name_;
      r.break_even_applies = saved > 0 ? r.setup_seconds / saved : std::numeric_limits<double>::infinity();
    }
    job_.report.add(r);
  }

  void describe(Record& r, const Statistics& s) const {
    r.algorithm = s.algorithm;
    r.backend = s.backend;
    r.emulated = s.backend.rfind("emulated", 0) == 0;
    r.kernel = !s.atom.empty() ? s.atom : s.backend == "reference" ? "plain loops" : "parallel rows";
    r.why = s.why;
    r.format_bytes = static_cast<double>(s.format_bytes);
    r.map_bytes = static_cast<double>(s.map_bytes);
    r.workspace_bytes = static_cast<double>(s.workspace_bytes);
    r.padding_ratio = s.padding_ratio;
    r.matrix_unit_share = s.matrix_unit_share;
    r.launches = s.launches;
    r.classes = s.classes;
    r.bytes = r.format_bytes;
  }

  /// Of FlashSparse: a block times 16 columns of B where 8 rows of A are the narrow side of NVIDIA's m16n8 shapes, 8
  /// columns where 16 rows are the wide one; AMD's shapes are square.
  double matrix_instructions(const Plan& plan, const std::string& backend) const {
    const auto* format = plan.me_bcrs();
    if (format == nullptr) return Record::unknown;
    const bool square = backend == to_string(Backend::Hip) || backend == to_string(Backend::EmulatedAmd);
    const std::int64_t width = format->vector_length == 16 && !square ? 8 : 16;
    return static_cast<double>(format->blocks) * static_cast<double>((o_.columns + width - 1) / width);
  }

  void remember_csr(const Record& r) {
    csr_name_ = r.algorithm;
    csr_seconds_ = r.seconds_median;
  }

  const SpmmJob& job_;
  Precision precision_;
  Exec space_{};
  Timer<Exec> timer_;
  double scale_ = 1;
  Operands o_;
  Csr A_;
  std::string csr_name_;
  double csr_seconds_ = 0;
};

template <class S, class Y, class Offset>
void bench_spmm_layout(const SpmmJob& job, Precision precision) {
  if (job.options.layout_left) {
    SpmmCase<S, Y, Offset, Kokkos::LayoutLeft>(job, precision).run();
  } else {
    SpmmCase<S, Y, Offset, Kokkos::LayoutRight>(job, precision).run();
  }
}

/// Offsets of 32 bits while the entries allow them.
template <class S, class Y>
void bench_spmm_types(const SpmmJob& job, Precision precision) {
  const bool wide = job.options.offset_bits == 64 || job.matrix.nnz() > std::numeric_limits<std::int32_t>::max();
  if (wide) {
    bench_spmm_layout<S, Y, std::int64_t>(job, precision);
  } else {
    bench_spmm_layout<S, Y, int>(job, precision);
  }
}

}  // namespace Bench
}  // namespace Tessera

#endif
