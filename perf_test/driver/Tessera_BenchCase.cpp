// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "driver/Tessera_BenchCase.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "Tessera_Compat.hpp"
#include "Tessera_Error.hpp"
#include "driver/Tessera_BenchTimer.hpp"

namespace Tessera {
namespace Bench {
namespace {

bool contains(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

/// One product, measured.
class Case {
 public:
  Case(const Job& job, Precision precision, Product& product)
      : job_(job), precision_(precision), product_(product), timer_(Exec(), job.options.repeat, job.options.budget) {
    product.describe(blank_);
    blank_.precision = to_string(precision);
    blank_.matrix = job.matrix.name;
    blank_.nnz = job.matrix.nnz();
    blank_.alpha = job.options.alpha;
    blank_.beta = job.options.beta;
    name_ = case_name(precision, blank_.columns ? blank_.n : 0);
  }

  void run() {
    const Exit declined = contains(job_.options.baselines, "all") ? ExitVerified : ExitNotSupported;
    for (const std::string& name : wanted_baselines()) attempt(name, declined, [&] { run_baseline(name); });
    const std::vector<Variant> variants = product_.variants();
    if (variants.empty()) {
      job_.report.note(blank_.op + " has no algorithm for " + to_string(precision_) + " on backend '" +
                           to_string(job_.options.backend) + "'",
                       ExitNotSupported);
    }
    several_ = variants.size() > 1;
    for (std::size_t i = 0; i < variants.size(); ++i) {
      const Variant& v = variants[i];
      const std::string name = v.algorithm + (v.name.empty() ? std::string() : "-" + v.name);
      attempt(name, v.named ? ExitNotSupported : ExitVerified, [&] { run_plan(v, i); });
    }
  }

 private:
  void attempt(const std::string& name, Exit not_supported, const std::function<void()>& f) {
    guarded(job_, name + " " + name_, not_supported, f);
  }

  /// Those asked for out of those that exist here; the report learns of those that do not.
  std::vector<std::string> wanted_baselines() const {
    const std::vector<std::string>& asked = job_.options.baselines;
    if (contains(asked, "none")) return {};
    const std::vector<std::string> existing = product_.baselines();
    if (contains(asked, "all")) {
      if (existing.empty()) job_.report.note("no baseline of this build knows " + name_ + " with these operands");
      return existing;
    }
    std::vector<std::string> wanted;
    for (const std::string& name : find_operation(job_.options.op).baselines) {
      const bool algorithm = name.rfind("cusparse-alg", 0) == 0;
      if (!contains(asked, name) && !(algorithm && contains(asked, "cusparse"))) continue;
      const std::size_t before = wanted.size();
      for (const std::string& own : existing) {
        if (own == name || own.rfind(name + "@", 0) == 0) wanted.push_back(own);  // @: of another version of a library
      }
      if (wanted.size() == before) {
        job_.report.note("baseline '" + name + "' is not in this build or has no " + name_ + " with these operands",
                         ExitNotSupported);
      }
    }
    return wanted;
  }

  /// Applies once to the first result and compares.
  void verify(Record& r, const System& system) {
    product_.reset();
    system.apply();
    if (system.finish) system.finish();
    const Verdict v = product_.check(r.kernel);
    if (std::isnan(r.error_over_bound) || v.error_over_bound > r.error_over_bound) {
      r.error_over_bound = v.error_over_bound;
    }
    if (!v.verified()) r.fault = v.fault;
  }

  /// Everything that is measured in the same way for all systems. The second comparison sees what many applies and an
  /// update left behind.
  void measure(Record& r, const System& system) {
    verify(r, system);
    const Timing warm = timer_.warm(system.apply);
    r.seconds_median = warm.median;
    r.seconds_min = warm.minimum;
    r.samples = warm.samples;
    r.runs_per_sample = warm.runs_per_sample;
    if (job_.options.cold) {
      const Timing cold = timer_.cold(system.apply);
      r.seconds_cold_median = cold.median;
      r.seconds_cold_min = cold.minimum;
    }
    if (system.update) {
      const std::function<void()> nothing = [] {};
      r.update_seconds = timer_.blocking(5, nothing, system.update).median;
    }
    verify(r, system);
    r.verified = r.fault.empty();
    r.bytes = r.format_bytes + product_.dense_bytes();
    r.csr_bytes = product_.matrix_bytes() + product_.dense_bytes();
    r.gflops = 1e-9 * product_.flops() / r.seconds_median;
    if (product_.row_bytes() > 0) r.gather_bytes = product_.row_bytes() * fetched_rows(r);
  }

  /// Sets the system up, several times, and keeps the last. @return seconds
  double set_up(std::optional<System>& system, const std::function<System()>& make, double long_enough) {
    const std::function<void()> drop = [&] { system.reset(); }, emplace = [&] { system = make(); };
    return timer_.blocking(9, drop, emplace, long_enough).median;
  }

  void run_baseline(const std::string& name) {
    Record r = blank_;
    std::optional<System> system;
    constexpr double slow_setup = 0.5;  // a conversion on the host, not the first use of a library
    const double setup = set_up(
        system, [&] { return product_.make_baseline(name); }, slow_setup);
    r.role = "baseline";
    r.algorithm = name;
    r.backend = system->backend;
    r.kernel = system->kernel;
    r.why = system->why;
    r.workspace_bytes = system->workspace_bytes;
    if (system->has_setup) r.setup_seconds = setup;
    r.format_bytes = system->format_bytes > 0 ? system->format_bytes : product_.matrix_bytes();
    r.padding_ratio = system->padding_ratio;
    measure(r, *system);
    if (name == "kokkos-kernels" && r.verified) remember_csr(r);
    job_.report.add(r);
  }

  void run_plan(const Variant& v, std::size_t index) {
    Record r = blank_;
    std::optional<System> system;
    r.setup_seconds = set_up(
        system, [&] { return product_.make_plan(index); }, std::numeric_limits<double>::infinity());
    r.role = "tessera";
    r.asked = v.algorithm;
    r.variant = v.name;
    describe(r, system->statistics());
    if (system->matrix_instructions) r.matrix_instructions = system->matrix_instructions();
    measure(r, *system);
    if (r.algorithm == "csr" && r.verified && csr_name_.empty()) {
      remember_csr(r);
    } else if (!csr_name_.empty() && r.algorithm != "csr") {
      const double saved = csr_seconds_ - r.seconds_median;
      r.break_even_against = csr_name_;
      r.break_even_applies = saved > 0 ? r.setup_seconds / saved : std::numeric_limits<double>::infinity();
    }
    job_.report.add(r);
    write_result(r.system());
  }

  static void describe(Record& r, const Statistics& s) {
    r.algorithm = s.algorithm;
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
  }

  /// One per entry, or per column vector of a window.
  static double fetched_rows(const Record& r) {
    double rows = static_cast<double>(r.nnz);
    for (const ClassShare& c : r.classes) {
      if (c.name == "vectors" || c.name == "dense columns") rows += static_cast<double>(c.rows - c.nnz);
    }
    return rows;
  }

  static std::string kernel_name(const Statistics& s) {
    if (!s.atom.empty()) return s.atom;
    if (s.backend == "reference") return "plain loops";
    if (s.algorithm == "bsr") return "blocks";
    return s.algorithm == "packed" ? "slices" : s.algorithm == "csr5" ? "tiles" : "parallel rows";
  }

  void remember_csr(const Record& r) {
    csr_name_ = r.algorithm;
    csr_seconds_ = r.seconds_median;
  }

  void write_result(const std::string& system) const {
    const BenchOptions& options = job_.options;
    if (options.write_result.empty()) return;
    std::string suffix;
    const auto add = [&](bool several, const std::string& part) {
      if (several) suffix += (suffix.empty() ? "" : "_") + part;
    };
    add(options.matrices.size() > 1, job_.matrix.name);
    add(blank_.columns && options.columns.size() > 1, "N" + std::to_string(blank_.n));
    add(several_, system);
    add(options.precisions.size() > 1, to_string(precision_));
    try {
      product_.write_result(with_suffix(options.write_result, suffix));
    } catch (const Error& e) {
      throw BenchError(ExitInput, e.what());
    }
  }

  const Job& job_;
  Precision precision_;
  Product& product_;
  Timer<Exec> timer_;
  Record blank_;
  std::string name_;
  bool several_ = false;
  std::string csr_name_;
  double csr_seconds_ = 0;
};

}  // namespace

void run_case(const Job& job, Precision precision, Product& product) { Case(job, precision, product).run(); }

void guarded(const Job& job, const std::string& what, Exit not_supported, const std::function<void()>& f) {
  job.report.progress(what);
  const auto note = [&](const std::exception& e, Exit status) {
    job.report.note(job.matrix.name + ": " + what + ": " + e.what(), status);
  };
  try {
    f();
  } catch (const BenchError&) {
    throw;
  } catch (const NotSupported& e) {
    note(e, not_supported);
  } catch (const NotCompiled& e) {
    note(e, not_supported);
  } catch (const InvalidArgument& e) {
    note(e, ExitUsage);
  } catch (const std::exception& e) {
    note(e, ExitFailure);
  }
}

std::string case_name(Precision precision, std::int64_t columns) {
  const std::string name = to_string(precision);
  return columns > 0 ? name + " N=" + std::to_string(columns) : name;
}

ElementType operand_type(Precision precision) {
  switch (precision) {
    case Precision::FP64:
      return ElementType::Double;
    case Precision::FP16:
      return ElementType::Half;
    case Precision::BF16:
      return ElementType::BHalf;
    default:
      return ElementType::Float;
  }
}

ElementType result_type(Precision precision, const BenchOptions& options) {
  const ElementType type = operand_type(precision);
  return bytes_of(type) == 2 && !options.y_as_operand ? ElementType::Float : type;
}

CsrOperand make_csr(const Job& job, Precision precision, double& scale, bool values_read) {
  const auto& csr = job.matrix.csr;
  job.report.progress(std::string(to_string(precision)) + " operands");
  // The product is unchanged: alpha takes back what the values were multiplied with.
  scale = values_read ? fitting_scale(csr.values, precision) : 1;
  if (scale != 1) {
    job.report.note("values do not fit " + std::string(to_string(precision)) + " and are multiplied by 2^" +
                    std::to_string(std::ilogb(scale)) + ", alpha by its inverse");
  }
  std::vector<double> values = csr.values;
  for (double& v : values) v *= scale;
  CsrOperand A;
  A.rows = csr.rows;
  A.cols = csr.cols;
  // Offsets of 32 bits while the entries allow them.
  const bool wide = job.options.offset_bits == 64 || job.matrix.nnz() > std::numeric_limits<std::int32_t>::max();
  A.offset_bits = wide ? 64 : 32;
  A.element = operand_type(precision);
  A.row_map = upload_offsets(A.space, csr.row_map, A.offset_bits);
  A.entries = upload(A.space, "entries", csr.entries);
  A.values = upload(A.space, "values", values, A.element);
  return A;
}

void write_dense_result(const std::string& file, std::int64_t rows, std::int64_t columns,
                        const std::vector<double>& values, ElementType type) {
  if (type == ElementType::Double) {
    io::write_matrix_market(file, io::HostDense<double>{rows, columns, values});
    return;
  }
  io::HostDense<float> dense{rows, columns, std::vector<float>(values.size())};
  for (std::size_t i = 0; i < values.size(); ++i) dense.values[i] = static_cast<float>(values[i]);
  io::write_matrix_market(file, dense);
}

}  // namespace Bench
}  // namespace Tessera
