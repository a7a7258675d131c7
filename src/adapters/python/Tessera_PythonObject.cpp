// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "adapters/python/Tessera_PythonObject.hpp"

#include <chrono>
#include <thread>

namespace Tessera {
namespace Python {
namespace {

std::mutex library_lock;
std::thread::id kokkos_thread;
bool finalized = false;
Closable* first_object = nullptr;

}  // namespace

Released::~Released() {
  try {
    PyEval_RestoreThread(state_);
  } catch (...) {  // pthread_exit's unwinding, which must not be caught and left
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
  }
}

Alone::Alone() : lock_(library_lock) {}

Running::Running() {
  // While this thread waited, another one may have closed the plan.
  Impl::require<StalePlan>(!finalized, [] { return std::string("Tessera was finalized"); });
  static const bool one_thread = build_facts().one_thread;
  Impl::require<NotSupported>(!one_thread || std::this_thread::get_id() == kokkos_thread, [] {
    return std::string(
        "this Kokkos has OpenMP and is older than 3.7: only the thread that made the first plan may use it");
  });
}

void choose_kokkos(int threads, int device) {
  Impl::require<InvalidArgument>(!kokkos_initialized(), [] {
    return std::string("Kokkos is initialised already: call tessera.initialize() before the first plan is made");
  });
  Impl::require<StalePlan>(!finalized, [] { return std::string("Tessera was finalized"); });
  initialize_kokkos(threads, device);
  kokkos_thread = std::this_thread::get_id();
}

void ensure_kokkos(int device) {
  Impl::require<StalePlan>(!finalized, [] { return std::string("Tessera was finalized"); });
  if (kokkos_initialized()) return;
  choose_kokkos(0, build_facts().device == DeviceKind::Host ? -1 : device);
}

void end_kokkos() {
  const std::lock_guard<std::mutex> lock(library_lock);
  Closable::close_all();
  finalized = true;
  if (kokkos_initialized()) finalize_kokkos();
}

Closable::Closable() : next_(first_object) {
  if (next_ != nullptr) next_->previous_ = this;
  first_object = this;
}
Closable::~Closable() {
  (previous_ != nullptr ? previous_->next_ : first_object) = next_;
  if (next_ != nullptr) next_->previous_ = previous_;
}
void Closable::close_all() {
  for (Closable* c = first_object; c != nullptr; c = c->next_) c->close();
}

CsrOperands::CsrOperands(nb::handle indptr, nb::handle indices, nb::handle data, std::int64_t rows, std::int64_t cols) {
  const auto take = [](nb::handle h, const char* name) {
    auto operand = std::make_unique<Operand>(h, name, Operand::Access::Read);
    Impl::require<InvalidArgument>(operand->contiguous(),
                                   [&] { return std::string(name) + " must be one contiguous row"; });
    return operand;
  };
  indptr_ = take(indptr, "indptr");
  indices_ = take(indices, "indices");
  data_ = take(data, "data");
  type_ = data_->require_numbers().type();
  Impl::require<NotSupported>(indices_->number() == Number::Int32,
                              [&] { return "indices must be int32, not " + indices_->type(); });
  Impl::require<NotSupported>(indptr_->number() == Number::Int32 || indptr_->number() == Number::Int64,
                              [&] { return "indptr must be int32 or int64, not " + indptr_->type(); });
  ensure_kokkos(data_->device());
  for (const auto* o : {indptr_.get(), indices_.get(), data_.get()}) o->require_place();
  Impl::require<DimensionMismatch>(rows >= 0 && indptr_->size() == rows + 1, [&] {
    return "indptr has " + std::to_string(indptr_->size()) + " elements, " + std::to_string(rows) + " rows need " +
           std::to_string(rows + 1);
  });
  Impl::require<DimensionMismatch>(indices_->size() == data_->size(), [&] {
    return "indices has " + std::to_string(indices_->size()) + " elements, data has " + std::to_string(data_->size());
  });
  arrays_ = {rows,
             cols,
             data_->size(),
             indptr_->array().data,
             indptr_->number() == Number::Int64,
             indices_->array().data,
             data_->array().data,
             data_->array().element};
}

std::unique_ptr<Operand> CsrOperands::new_data(nb::handle data) const {
  auto operand = std::make_unique<Operand>(data, "data", Operand::Access::Read);
  operand->require_numbers().require_place();
  Impl::require<InvalidArgument>(operand->contiguous(), [] { return std::string("data must be one contiguous row"); });
  Impl::require<NotSupported>(operand->array().element == arrays_.element, [&] {
    return "update_values: the plan was made with data of " + type_ + ", these are " + operand->type();
  });
  return operand;
}

void CsrOperands::swap(std::unique_ptr<Operand>& data) noexcept {
  data_.swap(data);
  arrays_.data = data_->array().data;
}

PlanOptions plan_options(nb::handle keywords) {
  PlanOptions o;
  for (const auto& [key, value] : nb::borrow<nb::dict>(keywords)) {
    const auto name = nb::cast<std::string>(key);
    const auto take = [&, &given = value](auto& option, const char* type) {
      if (nb::try_cast(given, option)) return;
      const std::string found = nb::type_name(given.type()).c_str();
      throw nb::type_error((name + " must be " + type + ", not " + found).c_str());
    };
    const auto text = [&](std::string& option) { take(option, "a string"); };
    const auto flag = [&](bool& option) { take(option, "True or False"); };
    if (name == "algorithm") {
      text(o.algorithm);
    } else if (name == "backend") {
      text(o.backend);
    } else if (name == "compute") {
      text(o.compute);
    } else if (name == "selection") {
      text(o.selection);
    } else if (name == "reuse") {
      text(o.reuse);
    } else if (name == "reordering") {
      text(o.reordering);
    } else if (name == "values") {
      text(o.values);
    } else if (name == "num_columns_hint" || name == "inner_hint" || name == "dimension_hint") {
      take(o.width_hint, "a whole number below 2^31");
    } else if (name == "prepare_transpose") {
      flag(o.prepare_transpose);
    } else if (name == "updatable") {
      flag(o.updatable);
    } else if (name == "fallback") {
      flag(o.fallback);
    } else if (name == "scale_by_values") {
      flag(o.scale_by_values);
    } else if (name == "prepare_backward") {
      flag(o.prepare_backward);
    } else {
      throw InvalidArgument("no option has the name '" + name +
                            "'; known: algorithm, backend, compute, selection, reuse, reordering, values, "
                            "num_columns_hint, inner_hint, dimension_hint, prepare_transpose, updatable, fallback, "
                            "scale_by_values, prepare_backward");
    }
  }
  return o;
}

Op op_of(const char* name) {
  if (name[0] != '\0' && name[1] == '\0') {
    if (name[0] == 'N') return Op::NoTrans;
    if (name[0] == 'T') return Op::Trans;
  }
  return parse_op(name);
}

nb::dict dict_of(const Statistics& s) {
  nb::dict d;
  d["operation"] = s.operation;
  d["algorithm"] = s.algorithm;
  d["backend"] = s.backend;
  d["atom"] = s.atom;
  d["compute"] = s.compute;
  d["device"] = s.device;
  d["why"] = s.why;
  d["rows"] = s.rows;
  d["cols"] = s.cols;
  d["nnz"] = s.nnz;
  d["stored"] = s.stored;
  d["padding_ratio"] = s.padding_ratio;
  d["matrix_unit_share"] = s.matrix_unit_share;
  d["row_mean"] = s.row_mean;
  d["row_max"] = s.row_max;
  d["format_bytes"] = s.format_bytes;
  d["map_bytes"] = s.map_bytes;
  d["workspace_bytes"] = s.workspace_bytes;
  d["csr_bytes"] = s.csr_bytes;
  d["setup_seconds"] = s.setup_seconds;
  d["launches"] = s.launches;
  d["fallback_taken"] = s.fallback_taken;
  d["transpose_prepared"] = s.transpose_prepared;
  d["deterministic"] = s.deterministic;
  nb::list classes;
  for (const ClassShare& c : s.classes) {
    nb::dict one;
    one["name"] = c.name;
    one["rows"] = c.rows;
    one["nnz"] = c.nnz;
    classes.append(one);
  }
  d["classes"] = classes;
  return d;
}

}  // namespace Python
}  // namespace Tessera
