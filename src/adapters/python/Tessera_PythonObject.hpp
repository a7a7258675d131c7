// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_PYTHON_OBJECT_HPP
#define TESSERA_PYTHON_OBJECT_HPP

#include <nanobind/nanobind.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "adapters/python/Tessera_PythonArray.hpp"
#include "adapters/python/Tessera_PythonPlan.hpp"

/// \file
/// What the Python classes of all plans do alike: keep the arrays of their matrix alive, run without the GIL one at a
/// time, and let go of Kokkos' memory before Kokkos ends.

namespace Tessera {
namespace Python {

/// Without the GIL. A daemon thread that wants it back while the interpreter ends waits for the end of the process, as
/// from Python 3.14 on: before, Python ends such a thread by pthread_exit, which no noexcept function lets through.
class Released {
 public:
  Released() : state_(PyEval_SaveThread()) {}
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;
  ~Released();

 private:
  PyThreadState* state_;
};
/// While it lives, other Python threads run and no other one is in the library: Kokkos' hosts take one caller at a
/// time.
class Alone {
 public:
  Alone();

 private:
  Released released_;  // first: who waits for the lock must not hold the GIL
  std::unique_lock<std::mutex> lock_;
};
/// To launch something. @throw NotSupported  this thread must not  @throw StalePlan  end_kokkos() was called
class Running : public Alone {
 public:
  Running();
};

/// Initialises Kokkos. @throw InvalidArgument  it is already
void choose_kokkos(int threads, int device);
/// Closes all plans, then Kokkos if it was initialised here. No plan is made or applied from then on.
void end_kokkos();
/// Initialises Kokkos with its defaults, on `device`, unless it is. @throw StalePlan  finalize() was called
void ensure_kokkos(int device);

/// In a list of all, so that finalize() finds those that are still there. Made and destroyed with the GIL.
class Closable {
 public:
  Closable();
  virtual ~Closable();
  Closable(const Closable&) = delete;
  Closable& operator=(const Closable&) = delete;
  /// Lets go of everything that Kokkos allocated.
  virtual void close() = 0;
  static void close_all();

 private:
  Closable *previous_ = nullptr, *next_ = nullptr;
};

/// The arrays of a matrix in compressed rows, on their device, kept.
class CsrOperands {
 public:
  /// @throw as Operand; DimensionMismatch  the arrays do not fit each other or rows
  CsrOperands(nb::handle indptr, nb::handle indices, nb::handle data, std::int64_t rows, std::int64_t cols);
  /// To take the place of the old numbers. @throw NotSupported, DimensionMismatch
  std::unique_ptr<Operand> new_data(nb::handle data) const;
  /// Leaves the old numbers in `data`, to be let go with the GIL; itself needs none.
  void swap(std::unique_ptr<Operand>& data) noexcept;
  const AnyCsr& arrays() const noexcept { return arrays_; }
  const Operand& data() const noexcept { return *data_; }

 private:
  std::unique_ptr<Operand> indptr_, indices_, data_;
  AnyCsr arrays_;
};

/// From the keyword arguments of a constructor. @throw InvalidArgument  an option of that name there is none of
PlanOptions plan_options(nb::handle keywords);
/// "N", "T", "H"; as parse_op.
Op op_of(const char* name);
nb::dict dict_of(const Statistics& statistics);

/// @tparam Plan  of AnyPlan's descent
template <class Plan>
class PlanObject : public Closable {
 public:
  using Make = std::unique_ptr<Plan> (*)(void*, const AnyCsr&, const PlanOptions&);

  PlanObject(Make make, nb::handle indptr, nb::handle indices, nb::handle data, std::int64_t rows, std::int64_t cols,
             bool check, nb::handle stream, nb::handle keywords)
      : matrix_(indptr, indices, data, rows, cols) {
    const PlanOptions options = plan_options(keywords);
    void* const on = matrix_.data().stream(stream);
    const Running running;
    if (check) check_csr(on, matrix_.arrays());
    plan_ = make(on, matrix_.arrays(), options);
  }
  ~PlanObject() override {
    if (plan_ == nullptr) return;
    const Alone alone;
    plan_.reset();
  }
  void close() override { plan_.reset(); }

  /// @throw StalePlan  after finalize()
  Plan& plan() const {
    Impl::require<StalePlan>(plan_ != nullptr, [] { return std::string("Tessera was finalized"); });
    return *plan_;
  }
  const AnyCsr& arrays() const noexcept { return matrix_.arrays(); }
  nb::tuple shape() const { return nb::make_tuple(arrays().rows, arrays().cols); }

  void update_values(nb::handle data, nb::handle stream) {
    Plan& to = plan();
    std::unique_ptr<Operand> numbers = matrix_.new_data(data);
    void* const on = numbers->stream(stream);
    const Running running;
    to.update_values(on, numbers->array().data, numbers->size());
    matrix_.swap(numbers);  // before another thread's: the plan reads the numbers that came last
  }
  nb::dict statistics() const { return dict_of(plan().statistics()); }
  std::size_t workspace_bytes(std::int64_t columns) const { return plan().workspace_bytes(columns); }

 private:
  CsrOperands matrix_;
  std::unique_ptr<Plan> plan_;
};

/// The members that all plans have, with their texts.
template <class Class>
Class& define_common(Class& c) {
  using Object = typename Class::Type;
  c.def_prop_ro("shape", &Object::shape, "(rows, columns) of the matrix.")
      .def_prop_ro(
          "nnz", [](const Object& o) { return o.arrays().nnz; }, "Entries of the matrix.")
      .def("statistics", &Object::statistics, "What was chosen, why, and what it costs: a dict, keys as in C++.")
      .def("workspace_bytes", &Object::workspace_bytes, nb::arg("columns") = 1,
           "Scratch that an apply to so many columns (SddmmPlan, AttentionPlan: of so long rows) needs at most.")
      .def("update_values", &Object::update_values, nb::arg("data"), nb::arg("stream").none() = nb::none(),
           "New numbers for the same pattern, in the order and of the type of the old ones.\n\n"
           "The plan keeps this array from now on. Raises StalePlan if the plan was made with updatable=False.");
  return c;
}

void define_products(nb::module_& m);
void define_sddmm(nb::module_& m);
void define_attention(nb::module_& m);
void define_spgemm(nb::module_& m);

}  // namespace Python
}  // namespace Tessera

#endif
