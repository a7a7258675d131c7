// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_PYTHON_VIEWS_HPP
#define TESSERA_PYTHON_VIEWS_HPP

#include <Kokkos_Core.hpp>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>

#include "Tessera_CsrView.hpp"
#include "Tessera_Options.hpp"
#include "adapters/python/Tessera_PythonPlan.hpp"

/// \file
/// Arrays as Kokkos Views, and the choice of types: exactly those whose plans the library has compiled, so that nothing
/// of a plan is compiled here (core/Tessera_Compiled.hpp).

namespace Tessera {
namespace Python {

using Exec = Kokkos::DefaultExecutionSpace;
using Device = Exec::device_type;
using Memory = Device::memory_space;
template <class Scalar, class Offset>
using Matrix = CsrView<Scalar, int, Offset, Device>;
template <int Rank, class T>
using Strided = Kokkos::View<std::conditional_t<Rank == 1, T*, std::conditional_t<Rank == 2, T**, T***>>,
                             Kokkos::LayoutStride, Memory, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

/// The instance on a stream. Instances are kept until Kokkos is finalised: plans remember the last one they ran on, and
/// making one costs allocations.
const Exec& space_on(void* stream);

/// @throw DimensionMismatch  another rank
template <int Rank, class T>
Strided<Rank, T> strided(const char* name, const Array& a) {
  Impl::require<DimensionMismatch>(a.rank == Rank, [&] {
    return std::string(name) + " has " + std::to_string(a.rank) + " dimensions where " + std::to_string(Rank) +
           " are expected";
  });
  const auto n = [&](int d) { return static_cast<std::size_t>(a.extent[d]); };
  const auto s = [&](int d) { return static_cast<std::size_t>(a.stride[d]); };
  T* const data = static_cast<T*>(a.data);
  if constexpr (Rank == 1) return Strided<Rank, T>(data, Kokkos::LayoutStride(n(0), s(0)));
  if constexpr (Rank == 2) return Strided<Rank, T>(data, Kokkos::LayoutStride(n(0), s(0), n(1), s(1)));
  if constexpr (Rank == 3) return Strided<Rank, T>(data, Kokkos::LayoutStride(n(0), s(0), n(1), s(1), n(2), s(2)));
}

/// The caller keeps the arrays. @throw as CsrView
template <class Scalar, class Offset>
Matrix<Scalar, Offset> matrix_of(const AnyCsr& a) {
  using M = Matrix<Scalar, Offset>;
  constexpr std::int64_t limit = std::numeric_limits<int>::max();
  Impl::require<InvalidArgument>(a.rows >= 0 && a.cols >= 0 && a.rows <= limit && a.cols <= limit, [&] {
    return "a matrix of " + std::to_string(a.rows) + " x " + std::to_string(a.cols) +
           " has a size out of 0 ... 2^31 - 1";
  });
  const auto nnz = static_cast<std::size_t>(a.nnz);
  return M(static_cast<int>(a.rows), static_cast<int>(a.cols),
           typename M::row_map_type(static_cast<const Offset*>(a.indptr), static_cast<std::size_t>(a.rows) + 1),
           typename M::entries_type(static_cast<const int*>(a.indices), nnz),
           typename M::values_type(static_cast<const Scalar*>(a.data), nnz));
}

template <class Base, template <class> class Handle, class Scalar, class Offset, class... Rest>
std::unique_ptr<Base> make_as(void* stream, const AnyCsr& A, const Rest&... rest) {
  return std::make_unique<Handle<Matrix<Scalar, Offset>>>(space_on(stream), matrix_of<Scalar, Offset>(A), rest...);
}

/// A Handle<Matrix<Scalar, Offset>> of the types that A has.
template <class Base, template <class> class Handle, bool Half = true, class... Rest>
std::unique_ptr<Base> make_handle(void* stream, const AnyCsr& A, const Rest&... rest) {
  if (A.element == ElementType::Double) {
    if (A.wide) return make_as<Base, Handle, double, std::size_t>(stream, A, rest...);
    return make_as<Base, Handle, double, int>(stream, A, rest...);
  }
  if (A.element == ElementType::Float) {
    if (A.wide) return make_as<Base, Handle, float, std::size_t>(stream, A, rest...);
    return make_as<Base, Handle, float, int>(stream, A, rest...);
  }
  if constexpr (Half) {
    Impl::require<NotSupported>(!A.wide, [] {
      return std::string("matrices of 16-bit numbers have an indptr of 32 bits; convert it, or the numbers to float32");
    });
    if (A.element == ElementType::Half) return make_as<Base, Handle, half_t, int>(stream, A, rest...);
    return make_as<Base, Handle, bhalf_t, int>(stream, A, rest...);
  } else {
    throw NotSupported("sparse matrices of float64 or float32 are multiplied here, not of 16-bit numbers");
  }
}

/// f(X(), Y()) for operands of the types that plans of Scalar are compiled for: Scalar and Scalar, for 16 bits also
/// Scalar and float.
template <class Scalar, class F>
void with_operands(const char* operation, ElementType x, ElementType y, F&& f) {
  constexpr ElementType own = Impl::ScalarTraits<Scalar>::element;
  if (x == own && y == own) return f(Scalar(), Scalar());
  if constexpr (sizeof(Scalar) == 2) {
    if (x == own && y == ElementType::Float) return f(Scalar(), float());
  }
  const auto name = [](ElementType e) { return std::string(Impl::to_string(e)); };
  throw NotSupported(std::string(operation) + ": a matrix of " + name(own) + " takes operands of " + name(own) +
                     " and results of " + name(own) + (sizeof(Scalar) == 2 ? " or float" : "") + ", not operands of " +
                     name(x) + " with results of " + name(y));
}

template <class Options, class = void>
struct HasCompute : std::false_type {};
template <class Options>
struct HasCompute<Options, std::void_t<decltype(Options::compute)>> : std::true_type {};
template <class Options, class = void>
struct HasReuse : std::false_type {};
template <class Options>
struct HasReuse<Options, std::void_t<decltype(Options::reuse)>> : std::true_type {};

inline ComputeType compute_of(const std::string& name) {
  switch (parse_precision(name)) {
    case Precision::FP64:
      return ComputeType::FP64;
    case Precision::FP32:
      return ComputeType::FP32;
    case Precision::TF32:
      return ComputeType::TF32;
    case Precision::FP16:
      return ComputeType::FP16_FP32;
    case Precision::BF16:
      return ComputeType::BF16_FP32;
  }
  return ComputeType::Auto;
}

/// Options that plans have in common, those of them that this operation's have.
template <class Options>
Options common_options(const PlanOptions& from) {
  Options o;
  o.backend = parse_backend(from.backend);
  o.updatable = from.updatable;
  o.fallback = from.fallback;
  const auto one_of = [](const char* what, const std::string& name, const char* first, const char* second) {
    Impl::require<InvalidArgument>(name == first || name == second, [&] {
      return "unknown " + std::string(what) + " '" + name + "'; known: " + first + ", " + second;
    });
    return name == second;
  };
  o.selection = one_of("selection", from.selection, "predict", "measure") ? Selection::Measure : Selection::Predict;
  if constexpr (HasReuse<Options>::value) {
    o.reuse = one_of("reuse", from.reuse, "many", "once") ? Reuse::Once : Reuse::Many;
  }
  if constexpr (HasCompute<Options>::value) {
    if (from.compute != "auto") o.compute = compute_of(from.compute);
  }
  return o;
}

/// A plan, and what every operation's has.
template <class Base, class Plan>
class Handle : public Base {
 public:
  using Csr = typename Plan::csr_type;
  using Scalar = typename Csr::value_type;

  template <class Options>
  Handle(const Exec& space, const Csr& A, const Options& options) : plan_(space, A, natural(options)) {}
  void update_values(void* stream, const void* data, std::int64_t count) override {
    plan_.update_values(space_on(stream),
                        typename Csr::values_type(static_cast<const Scalar*>(data), static_cast<std::size_t>(count)));
  }
  Statistics statistics() const override { return plan_.statistics(); }

 protected:
  Plan plan_;

 private:
  /// Narrower types than the matrix's would want operands that nobody has compiled plans for.
  template <class Options>
  static const Options& natural(const Options& options) {
    if constexpr (HasCompute<Options>::value) {
      constexpr Precision own = Impl::ScalarTraits<Scalar>::precision;
      constexpr ComputeType compute = own == Precision::FP64   ? ComputeType::FP64
                                      : own == Precision::FP32 ? ComputeType::FP32
                                      : own == Precision::FP16 ? ComputeType::FP16_FP32
                                                               : ComputeType::BF16_FP32;
      const ComputeType c = options.compute;
      Impl::require<NotSupported>(
          c == ComputeType::Auto || c == compute || (c == ComputeType::TF32 && sizeof(Scalar) == 4), [] {
            return std::string("a matrix of ") + to_string(own) +
                   " is not multiplied in another precision (float32 is in tf32): convert data";
          });
    }
    return options;
  }
};

}  // namespace Python
}  // namespace Tessera

#endif
