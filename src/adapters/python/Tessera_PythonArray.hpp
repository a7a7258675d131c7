// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_PYTHON_ARRAY_HPP
#define TESSERA_PYTHON_ARRAY_HPP

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <initializer_list>

#include "adapters/python/Tessera_PythonPlan.hpp"

/// \file
/// Arrays of other Python libraries: taken without a copy, made where results go. NumPy's through the buffer protocol,
/// all others through DLPack.

namespace Tessera {
namespace Python {

namespace nb = nanobind;

/// Whose an array is, which says how a result is made and which stream is current.
enum class Library { NumPy, Torch, CuPy, Jax, Other };
/// What an array holds, as far as anybody here takes it.
enum class Number { Float64, Float32, Float16, BFloat16, Int32, Int64, Other };

/// An array of another library, which stays alive and where it is as long as this. Needs the GIL.
class Operand {
 public:
  enum class Access { Read, Write };

  /// @param name  in messages
  /// @throw nb::type_error  no array  @throw DimensionMismatch  more than three dimensions
  /// @throw NotSupported  a type that has no name here, a place that is not known
  /// @throw InvalidArgument  to be written, but read-only or of strides that no view has
  Operand(nb::handle object, const char* name, Access access);
  Operand(const Operand&) = delete;
  Operand& operator=(const Operand&) = delete;

  const Array& array() const noexcept { return array_; }
  Number number() const noexcept { return number_; }
  /// Its type in the words of its library, for messages.
  std::string type() const;
  Library library() const noexcept { return library_; }
  /// Elements in all.
  std::int64_t size() const noexcept;
  bool contiguous() const noexcept;

  /// @throw NotSupported  it does not hold one of the four types of numbers
  const Operand& require_numbers() const;
  /// @throw NotSupported  it is not where the plans of this build run; needs Kokkos
  const Operand& require_place() const;
  /// DLPack's number of the device.
  int device() const noexcept { return device_; }
  /// On which its library works now; null on hosts. @param given  of the caller, or None
  void* stream(nb::handle given) const;
  /// An array of the same library, type and device, row-major, not initialised.
  nb::object make_like(std::initializer_list<std::int64_t> extents) const;
  /// The same of the type that sums of such numbers have: float64 of float64, else float32.
  nb::object make_sums(std::initializer_list<std::int64_t> extents) const;
  /// The same of 32- or 64-bit integers, for the columns and offsets of a result.
  nb::object make_integers(bool wide, std::int64_t extent) const;

 private:
  void take(Access access);
  void take_buffer(Access access);
  void take_dlpack(Access access);
  void copy_strides(const std::int64_t* extents, const std::int64_t* strides, std::int64_t unit, int rank);
  bool plain() const noexcept;
  /// Whether neighbours of a row or a column are neighbours in memory. Of PyTorch's tensors without, DLPack may have
  /// forgotten a sign: the imaginary part of a conjugate is negated when it is read.
  bool unit_stride() const noexcept;
  /// Of these extents, rows side by side, with elements.
  bool row_major(std::initializer_list<std::int64_t> extents) const noexcept;

  nb::object object_;   ///< the caller's, or a copy of it
  nb::object capsule_;  ///< DLPack's: owns what it points to
  /// Given back whatever happens, in constructors too; obj is null without.
  struct Buffer : Py_buffer {
    Buffer() : Py_buffer{} {}
    ~Buffer() { PyBuffer_Release(this); }
  };
  Buffer buffer_;  ///< of NumPy
  const char* name_;
  Array array_;
  Number number_ = Number::Other;
  Library library_ = Library::Other;
  DeviceKind place_ = DeviceKind::Host;
  int device_ = 0;
};

}  // namespace Python
}  // namespace Tessera

#endif
