// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BENCH_SPMV_CASE_HPP
#define TESSERA_BENCH_SPMV_CASE_HPP

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "Tessera_Spmv.hpp"
#include "driver/Tessera_BenchCase.hpp"
#include "driver/Tessera_BenchTimer.hpp"
#include "spmv/Tessera_Baselines.hpp"
#include "spmv/Tessera_BenchSpmv.hpp"
#include "spmv/Tessera_BenchVerify.hpp"

namespace Tessera {
namespace Bench {

/// One matrix in one precision: operands on the device, the right answer on the host, one row a system.
/// @tparam S  of A and x   @tparam Y  of y
template <class S, class Y, class Offset>
class SpmvCase {
 public:
  SpmvCase(const SpmvJob& job, Precision precision)
      : job_(job), precision_(precision), timer_(space_, job.options.repeat, job.options.budget) {
    job_.report.progress(std::string(to_string(precision)) + " reference");
    const auto& csr = job.matrix.csr;
    // The product is unchanged: alpha takes back what the values were multiplied with.
    scale_ = fitting_scale(csr.values, precision);
    if (scale_ != 1) {
      job_.report.note("values do not fit " + std::string(to_string(precision)) + " and are multiplied by 2^" +
                       std::to_string(std::ilogb(scale_)) + ", alpha by its inverse");
    }
    std::vector<S> values(csr.values.size()), x(job.x.size());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<S>(scale_ * csr.values[i]);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<S>(job.x[i]);
    first_y_.assign(static_cast<std::size_t>(csr.rows), static_cast<Y>(0.0));
    if (job.options.beta != 0) {
      for (std::size_t i = 0; i < first_y_.size(); ++i) first_y_[i] = static_cast<Y>(job.y[i]);
    }
    const double alpha = job.options.alpha / scale_;
    verifier_.emplace(csr.rows, csr.row_map, csr.entries, values, alpha, x, job.options.beta, first_y_);
    // beta == 0 promises not to read y, so every row must be written over what poisons a sum.
    if (job.options.beta == 0) {
      first_y_.assign(first_y_.size(), static_cast<Y>(std::numeric_limits<double>::quiet_NaN()));
    }

    o_.space = space_;
    o_.rows = csr.rows;
    o_.cols = csr.cols;
    o_.alpha = alpha;
    o_.beta = job.options.beta;
    o_.row_map = upload<Offset>("row_map", csr.row_map);
    o_.entries = upload<int>("entries", csr.entries);
    o_.values = upload<S>("values", values);
    o_.x = upload<S>("x", x);
    o_.y = upload<Y>("y", first_y_);
    first_y_device_ = upload<Y>("first y", first_y_);
    A_ = csr_view(o_.rows, o_.cols, o_.row_map, o_.entries, o_.values);
  }

  void run() {
    for (const std::string& name :
         wanted_baselines(job_.options, job_.report, baseline_names<Operands>(), to_string(precision_))) {
      guarded(name, declined_baseline(job_.options), [&] { run_baseline(name); });
    }
    const std::vector<SpmvVariant> variants = spmv_variants(job_.options, precision_);
    if (variants.empty()) {
      job_.report.note(std::string("spmv has no algorithm for ") + to_string(precision_) + " on backend '" +
                           to_string(job_.options.backend) + "'",
                       ExitNotSupported);
    }
    for (const SpmvVariant& v : variants) {
      guarded(to_string(v.algorithm), ExitNotSupported, [&] { run_plan(v); });
    }
  }

 private:
  using Exec = Kokkos::DefaultExecutionSpace;
  using Operands = SpmvOperands<Exec, S, Y, Offset>;
  using Csr = CsrView<S, int, Offset, typename Operands::device_type>;
  using Plan = SpmvPlan<Csr>;

  template <class T, class From>
  Kokkos::View<T*, typename Operands::device_type> upload(const char* name, const std::vector<From>& from) {
    return Bench::upload<T, typename Operands::device_type>(space_, name, from);
  }

  template <class F>
  void guarded(const std::string& name, Exit not_supported, const F& f) {
    job_.report.progress(name + " " + to_string(precision_));
    Bench::guarded(job_.report, job_.matrix.name + ": " + name + " " + to_string(precision_), not_supported, f);
  }

  Record new_record() const {
    Record r;
    r.op = "spmv";
    r.precision = to_string(precision_);
    r.y_type = Tessera::Impl::to_string(Tessera::Impl::ScalarTraits<Y>::element);
    r.matrix = job_.matrix.name;
    r.rows = o_.rows;
    r.cols = o_.cols;
    r.nnz = job_.matrix.nnz();
    r.alpha = job_.options.alpha;
    r.beta = job_.options.beta;
    r.value_scale = scale_;
    r.offset_bits = static_cast<int>(8 * sizeof(Offset));
    return r;
  }

  double vector_bytes() const {
    const double y = static_cast<double>(sizeof(Y)) * o_.rows;
    return static_cast<double>(sizeof(S)) * o_.cols + (o_.beta != 0 ? 2 * y : y);
  }
  double csr_bytes() const {
    return static_cast<double>(job_.matrix.nnz()) * (sizeof(S) + sizeof(int)) +
           static_cast<double>(sizeof(Offset)) * (o_.rows + 1.0);
  }

  void reset_y() { Kokkos::deep_copy(space_, o_.y, first_y_device_); }

  /// Applies once to the first y and compares.
  void verify(Record& r, const std::function<void()>& apply) {
    reset_y();
    apply();
    auto host = Kokkos::create_mirror_view(o_.y);
    Kokkos::deep_copy(space_, host, o_.y);
    Compat::fence(space_, "Tessera::bench result");
    result_.resize(static_cast<std::size_t>(o_.rows));
    for (std::size_t i = 0; i < result_.size(); ++i) result_[i] = host(i);
    const Verdict v = verifier_->check(result_);
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
    if (update)
      r.update_seconds = timer_
                             .blocking(
                                 5, [] {}, update)
                             .median;
    verify(r, apply);
    r.verified = r.fault.empty();
    r.bytes += vector_bytes();
    r.csr_bytes = csr_bytes() + vector_bytes();
    r.gflops = 2e-9 * static_cast<double>(r.nnz) / r.seconds_median;
  }

  void run_baseline(const std::string& name) {
    Record r = new_record();
    std::optional<Baseline> baseline;
    constexpr double slow_setup = 0.5;  // a conversion on the host, not the first use of a library
    const Timing setup = timer_.blocking(
        3, [&] { baseline.reset(); }, [&] { baseline = make_baseline(o_, name); }, slow_setup);
    r.role = "baseline";
    r.algorithm = name;
    r.backend = baseline->backend;
    r.kernel = baseline->kernel;
    r.why = baseline->why;
    r.workspace_bytes = baseline->workspace_bytes;
    if (baseline->has_setup) r.setup_seconds = setup.median;
    r.format_bytes = baseline->format_bytes > 0 ? baseline->format_bytes : csr_bytes();
    r.padding_ratio = baseline->padding_ratio;
    r.bytes = r.format_bytes;
    measure(r, baseline->apply, nullptr);
    if (name == "kokkos-kernels" && r.verified) remember_csr(r);
    job_.report.add(r);
  }

  void run_plan(const SpmvVariant& v) {
    SpmvOptions options;
    options.algorithm = v.algorithm;
    options.backend = job_.options.backend;
    options.selection = job_.options.selection;
    options.dasp = v.dasp;
    options.packed.value_classes = job_.options.value_classes;
    options.fallback = v.algorithm == SpmvAlgorithm::Auto;
    Record r = new_record();
    std::optional<Plan> plan;
    r.setup_seconds = timer_
                          .blocking(
                              3, [&] { plan.reset(); }, [&] { plan.emplace(space_, A_, options); })
                          .median;
    const Statistics s = plan->statistics();
    r.role = "tessera";
    r.asked = to_string(v.algorithm);
    r.algorithm = s.algorithm;
    r.variant = v.name;
    r.backend = s.backend;
    r.emulated = s.backend.rfind("emulated", 0) == 0;
    r.kernel = kernel_name(s);
    r.why = s.why;
    r.format_bytes = static_cast<double>(s.format_bytes);
    r.map_bytes = static_cast<double>(s.map_bytes);
    r.workspace_bytes = static_cast<double>(s.workspace_bytes);
    r.padding_ratio = s.padding_ratio;
    r.matrix_unit_share = s.matrix_unit_share;
    r.launches = s.launches;
    r.classes = s.classes;
    r.bytes = r.format_bytes;
    measure(
        r, [&] { plan->apply(space_, Op::NoTrans, o_.alpha, o_.x, o_.beta, o_.y); },
        [&] { plan->update_values(space_, A_.values()); });
    if (r.algorithm == "csr" && r.verified && csr_name_.empty()) {
      remember_csr(r);
    } else if (!csr_name_.empty() && r.algorithm != "csr") {
      const double saved = csr_seconds_ - r.seconds_median;
      r.break_even_against = csr_name_;
      r.break_even_applies = saved > 0 ? r.setup_seconds / saved : std::numeric_limits<double>::infinity();
    }
    const std::string system = r.system();
    job_.report.add(r);
    write_result(system);
  }

  void remember_csr(const Record& r) {
    csr_name_ = r.algorithm;
    csr_seconds_ = r.seconds_median;
  }

  static std::string kernel_name(const Statistics& s) {
    if (!s.atom.empty()) return s.atom;
    if (s.backend == "reference") return "plain loops";
    return s.algorithm == "packed" ? "slices" : s.algorithm == "csr5" ? "tiles" : "parallel rows";
  }

  void write_result(const std::string& system) {
    const BenchOptions& options = job_.options;
    if (options.write_result.empty()) return;
    std::string suffix;
    const auto add = [&](bool several, const std::string& part) {
      if (several) suffix += (suffix.empty() ? "" : "_") + part;
    };
    add(options.matrices.size() > 1, job_.matrix.name);
    add(spmv_variants(options, precision_).size() > 1, system);
    add(options.precisions.size() > 1, to_string(precision_));
    using Number = std::conditional_t<std::is_same_v<Y, double>, double, float>;
    std::vector<Number> numbers(result_.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<Number>(result_[i]);
    try {
      write_vector(with_suffix(options.write_result, suffix), numbers);
    } catch (const Error& e) {
      throw BenchError(ExitInput, e.what());
    }
  }

  const SpmvJob& job_;
  Precision precision_;
  Exec space_{};
  Timer<Exec> timer_;
  double scale_ = 1;
  Operands o_;
  Csr A_;
  std::vector<Y> first_y_, result_;
  Kokkos::View<Y*, typename Operands::device_type> first_y_device_;
  std::optional<SpmvVerifier<S, Y>> verifier_;
  std::string csr_name_;
  double csr_seconds_ = 0;
};

/// Offsets of 32 bits while the entries allow them.
template <class S, class Y>
void bench_spmv_types(const SpmvJob& job, Precision precision) {
  const bool wide = job.options.offset_bits == 64 || job.matrix.nnz() > std::numeric_limits<std::int32_t>::max();
  if (wide) {
    SpmvCase<S, Y, std::int64_t>(job, precision).run();
  } else {
    SpmvCase<S, Y, int>(job, precision).run();
  }
}

}  // namespace Bench
}  // namespace Tessera

#endif
