// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "adapters/python/Tessera_PythonArray.hpp"

#include <cstring>
#include <string>

namespace Tessera {
namespace Python {
namespace {

// DLPack's structures, as its specification lays them out (versions 0 and 1).
struct DlTensor {
  void* data;
  std::int32_t device_type, device_id, ndim;
  std::uint8_t code, bits;
  std::uint16_t lanes;
  std::int64_t *shape, *strides;
  std::uint64_t byte_offset;
};
struct DlManaged {
  DlTensor tensor;
  void* context;
  void (*deleter)(DlManaged*);
};
struct DlVersioned {
  std::uint32_t major, minor;
  void* context;
  void (*deleter)(DlVersioned*);
  std::uint64_t flags;
  DlTensor tensor;
};
constexpr std::uint64_t read_only_flag = 1;

/// Objects of other libraries, looked up once. Never given back: they may be used until the interpreter is gone.
PyObject* keep(nb::object object) { return object.release().ptr(); }
PyObject* attribute(const char* module, const char* name) { return keep(nb::module_::import_(module).attr(name)); }

PyObject* numpy_type() {
  static PyObject* const type = attribute("numpy", "ndarray");
  return type;
}

/// A class of a module, if the process has loaded that; null before.
PyObject* loaded_class(const char* module, const char* name, PyObject*& known) {
  if (known != nullptr) return known;
  PyObject* const modules = PyImport_GetModuleDict();
  PyObject* const found = PyDict_GetItemString(modules, module);
  if (found == nullptr || !nb::hasattr(nb::handle(found), name)) return nullptr;
  return known = keep(nb::handle(found).attr(name));
}

Library library_of(nb::handle object) {
  static PyObject *torch = nullptr, *cupy = nullptr, *jax = nullptr;
  const auto is = [&](PyObject* type) {
    return type != nullptr && PyObject_TypeCheck(object.ptr(), reinterpret_cast<PyTypeObject*>(type));
  };
  if (is(numpy_type())) return Library::NumPy;
  if (is(loaded_class("torch", "Tensor", torch))) return Library::Torch;
  if (is(loaded_class("cupy", "ndarray", cupy))) return Library::CuPy;
  // JAX' arrays are of a private class; the public one knows them.
  PyObject* const jax_type = loaded_class("jax", "Array", jax);
  if (jax_type != nullptr && PyObject_IsInstance(object.ptr(), jax_type) == 1) return Library::Jax;
  PyErr_Clear();
  return Library::Other;
}

Number number_of(char kind, int bits) {
  if (kind == 'f' && bits == 64) return Number::Float64;
  if (kind == 'f' && bits == 32) return Number::Float32;
  if (kind == 'f' && bits == 16) return Number::Float16;
  if (kind == 'b' && bits == 16) return Number::BFloat16;
  if (kind == 'i' && bits == 32) return Number::Int32;
  if (kind == 'i' && bits == 64) return Number::Int64;
  return Number::Other;
}

/// Of Python's letters for native numbers, behind '=' where they are not aligned; others (">d": not this machine's byte
/// order) are nobody's.
Number number_of(const char* format, Py_ssize_t bytes) {
  if (format != nullptr && format[0] == '=') ++format;
  if (format == nullptr || format[0] == '\0' || format[1] != '\0') return Number::Other;
  const int bits = static_cast<int>(8 * bytes);
  if (std::strchr("dfe", format[0]) != nullptr) return number_of('f', bits);
  if (std::strchr("ilq", format[0]) != nullptr) return number_of('i', bits);
  return Number::Other;
}

ElementType element_of(Number n) {
  switch (n) {
    case Number::Float64:
      return ElementType::Double;
    case Number::Float16:
      return ElementType::Half;
    case Number::BFloat16:
      return ElementType::BHalf;
    default:
      return ElementType::Float;
  }
}

}  // namespace

Operand::Operand(nb::handle object, const char* name, Access access) : object_(nb::borrow(object)), name_(name) {
  library_ = library_of(object);
  take(access);
  const bool negated = library_ == Library::Torch && !unit_stride() && nb::cast<bool>(object.attr("is_neg")());
  if (negated || !plain()) {
    Impl::require<InvalidArgument>(access == Access::Read, [&] {
      return std::string(name) + (negated ? " is written, but is a view with the sign turned: resolve_neg()"
                                          : " is written, but is not aligned to its elements, or has strides that are "
                                            "not positive multiples of them");
    });
    // A reversed or repeated view, or numbers between two addresses of numbers: rare enough for a copy.
    Impl::require<NotSupported>(library_ == Library::NumPy || library_ == Library::Torch || library_ == Library::CuPy,
                                [&] { return std::string(name) + " has strides that need a contiguous copy"; });
    PyBuffer_Release(&buffer_);
    object_ = object.attr(negated ? "resolve_neg" : library_ == Library::Torch ? "contiguous" : "copy")();
    take(access);
  }
  array_.element = element_of(number_);
}

void Operand::take(Access access) {
  if (library_ == Library::NumPy) {
    take_buffer(access);
  } else {
    take_dlpack(access);
  }
}

void Operand::take_buffer(Access access) {
  const int flags = PyBUF_STRIDES | PyBUF_FORMAT | (access == Access::Write ? PyBUF_WRITABLE : 0);
  if (PyObject_GetBuffer(object_.ptr(), &buffer_, flags) != 0) {
    buffer_.obj = nullptr;
    PyErr_Clear();
    Impl::require<InvalidArgument>(access == Access::Read || nb::cast<bool>(object_.attr("flags").attr("writeable")),
                                   [&] { return std::string(name_) + " is written, but read-only"; });
    throw NotSupported(std::string(name_) + " holds " + type() + ", which Python's buffers have no name for");
  }
  number_ = number_of(buffer_.format, buffer_.itemsize);
  array_.data = buffer_.buf;
  std::int64_t extents[3] = {}, strides[3] = {};
  for (int d = 0; d < buffer_.ndim && d < 3; ++d) {
    extents[d] = buffer_.shape[d];
    strides[d] = buffer_.strides[d];
  }
  copy_strides(extents, strides, buffer_.itemsize, buffer_.ndim);
}

void Operand::take_dlpack(Access access) {
  const nb::handle object = object_;
  if (library_ == Library::Torch) {
    static PyObject* const to_dlpack = attribute("torch.utils.dlpack", "to_dlpack");
    static PyObject* const recording = attribute("torch", "is_grad_enabled");
    // Within torch.no_grad() nobody asks for a gradient, and a detach() costs half of what all else here does.
    const bool wanted = nb::handle(object.attr("requires_grad")).ptr() == Py_True;
    Impl::require<InvalidArgument>(!wanted || nb::handle(nb::handle(recording)()).ptr() != Py_True, [&] {
      return std::string(name_) +
             " requires a gradient, which plans know nothing of: detach() it, or use tessera.torch";
    });
    capsule_ = nb::handle(to_dlpack)(object);  // orders no streams: work is enqueued on the current one
  } else {
    if (!nb::hasattr(object, "__dlpack__")) {
      throw nb::type_error((std::string(name_) + " is not an array: it has neither a buffer nor __dlpack__").c_str());
    }
    const nb::object device = object.attr("__dlpack_device__")();
    int kind = 0;
    if (!nb::isinstance<nb::tuple>(device) || nb::len(device) != 2 || !nb::try_cast(nb::object(device[0]), kind)) {
      throw nb::type_error((std::string(name_) + ": __dlpack_device__ gave no device").c_str());
    }
    const bool host = kind == static_cast<int>(DeviceKind::Host);
    Impl::require<NotSupported>(host || library_ == Library::CuPy, [&] {
      return std::string(name_) +
             " is on a device and neither PyTorch's nor CuPy's, so that its stream is not known; "
             "pass cupy.from_dlpack(" +
             name_ + "), which copies nothing";
    });
    capsule_ = host ? object.attr("__dlpack__")() : object.attr("__dlpack__")(nb::arg("stream") = -1);
  }
  const auto* const versioned =
      PyCapsule_IsValid(capsule_.ptr(), "dltensor_versioned")
          ? static_cast<DlVersioned*>(PyCapsule_GetPointer(capsule_.ptr(), "dltensor_versioned"))
          : nullptr;
  if (versioned == nullptr && !PyCapsule_IsValid(capsule_.ptr(), "dltensor")) {
    throw nb::type_error((std::string(name_) + ": __dlpack__ gave no tensor").c_str());
  }
  const DlTensor& t = versioned != nullptr
                          ? versioned->tensor
                          : static_cast<DlManaged*>(PyCapsule_GetPointer(capsule_.ptr(), "dltensor"))->tensor;
  Impl::require<InvalidArgument>(
      access == Access::Read ||
          (library_ != Library::Jax && (versioned == nullptr || (versioned->flags & read_only_flag) == 0)),
      [&] { return std::string(name_) + " is written, but read-only"; });
  constexpr int cuda_managed = 13, cuda_host = 3;
  place_ = t.device_type == cuda_managed ? DeviceKind::Cuda
           : t.device_type == cuda_host  ? DeviceKind::Host
                                         : static_cast<DeviceKind>(t.device_type);
  device_ = t.device_id;
  // DLPack's codes: 0 signed integers, 2 floating point, 4 bfloat.
  const char kind = t.lanes != 1 ? '?' : t.code == 0 ? 'i' : t.code == 2 ? 'f' : t.code == 4 ? 'b' : '?';
  number_ = number_of(kind, t.bits);
  array_.data = static_cast<char*>(t.data) + t.byte_offset;
  std::int64_t compact[3] = {1, 1, 1};
  for (int d = t.ndim < 3 ? t.ndim - 2 : 1; d >= 0 && t.strides == nullptr; --d)
    compact[d] = compact[d + 1] * t.shape[d + 1];
  copy_strides(t.shape, t.strides != nullptr ? t.strides : compact, 1, t.ndim);
}

/// unit: of the strides, in elements. A stride that fits no element, or that is none, is kept as 0 (plain() sees it).
void Operand::copy_strides(const std::int64_t* extents, const std::int64_t* strides, std::int64_t unit, int rank) {
  Impl::require<DimensionMismatch>(rank <= 3, [&] {
    return std::string(name_) + " has " + std::to_string(rank) + " dimensions; up to 3 are taken";
  });
  array_.rank = rank;
  for (int d = 0; d < rank; ++d) {
    array_.extent[d] = extents[d];
    const bool any = extents[d] <= 1;  // of one element any stride will do
    array_.stride[d] = any ? 1 : strides[d] % unit == 0 ? strides[d] / unit : 0;
  }
  for (int d = rank - 1; d >= 0; --d) {
    // Kokkos computes how far a View reaches from all strides.
    if (array_.extent[d] <= 1) array_.stride[d] = d + 1 < rank ? array_.stride[d + 1] * array_.extent[d + 1] : 1;
    if (array_.extent[d] <= 1 && array_.stride[d] < 1) array_.stride[d] = 1;
  }
}

bool Operand::plain() const noexcept {
  if (size() == 0) return true;
  // Only NumPy's have an itemsize here, and it copies whatever it is asked to.
  const std::uintptr_t bytes = number_ == Number::Other ? 0 : static_cast<std::uintptr_t>(buffer_.itemsize);
  if (bytes > 0 && reinterpret_cast<std::uintptr_t>(array_.data) % bytes != 0) return false;
  for (int d = 0; d < array_.rank; ++d) {
    if (array_.extent[d] > 1 && array_.stride[d] < 1) return false;
  }
  return true;
}

bool Operand::unit_stride() const noexcept {
  for (int d = 0; d < array_.rank; ++d) {
    if (array_.extent[d] > 1 && array_.stride[d] == 1) return true;
  }
  return false;
}

std::int64_t Operand::size() const noexcept {
  std::int64_t n = 1;
  for (int d = 0; d < array_.rank; ++d) n *= array_.extent[d];
  return n;
}

bool Operand::contiguous() const noexcept {
  return array_.rank == 1 && (array_.extent[0] <= 1 || array_.stride[0] == 1);
}

std::string Operand::type() const {
  return nb::hasattr(object_, "dtype") ? nb::str(nb::object(object_.attr("dtype"))).c_str() : "another type";
}

const Operand& Operand::require_numbers() const {
  Impl::require<NotSupported>(number_ != Number::Other && number_ != Number::Int32 && number_ != Number::Int64, [&] {
    return std::string(name_) + " must hold float64, float32, float16 or bfloat16 in this machine's byte order, not " +
           type();
  });
  return *this;
}

const Operand& Operand::require_place() const {
  static const BuildFacts facts = build_facts();
  const auto name = [](DeviceKind k) {
    return k == DeviceKind::Host   ? std::string("the host")
           : k == DeviceKind::Cuda ? std::string("a CUDA device")
           : k == DeviceKind::Rocm ? std::string("a ROCm device")
                                   : "a device of DLPack's kind " + std::to_string(static_cast<int>(k));
  };
  Impl::require<NotSupported>(place_ == facts.device, [&] {
    return std::string(name_) + " is on " + name(place_) + ", but this build of Tessera runs its plans on " +
           name(facts.device) + " (Kokkos' default execution space is " + facts.space + ")";
  });
  Impl::require<NotSupported>(place_ == DeviceKind::Host || device_ == device_id(), [&] {
    return std::string(name_) + " is on device " + std::to_string(device_) + ", Tessera runs on device " +
           std::to_string(device_id()) + " (tessera.initialize(device=...) chooses, before the first plan)";
  });
  return *this;
}

void* Operand::stream(nb::handle given) const {
  if (!given.is_none()) {
    std::uintptr_t pointer = 0;
    if (!nb::try_cast(given, pointer)) throw nb::type_error("stream must be a raw pointer as int, or None");
    return reinterpret_cast<void*>(pointer);
  }
  if (place_ == DeviceKind::Host) return nullptr;
  if (library_ == Library::Torch) {
    static PyObject* const current = attribute("torch._C", "_cuda_getCurrentRawStream");
    return reinterpret_cast<void*>(nb::cast<std::uintptr_t>(nb::handle(current)(device_)));
  }
  static PyObject* const current = attribute("cupy.cuda", "get_current_stream");
  return reinterpret_cast<void*>(nb::cast<std::uintptr_t>(nb::handle(current)().attr("ptr")));
}

namespace {

nb::object tuple_of(std::initializer_list<std::int64_t> extents) {
  nb::object shape = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(extents.size())));
  Py_ssize_t d = 0;
  for (const std::int64_t n : extents) PyTuple_SET_ITEM(shape.ptr(), d++, PyLong_FromLongLong(n));
  return shape;
}

}  // namespace

bool Operand::row_major(std::initializer_list<std::int64_t> extents) const noexcept {
  if (static_cast<int>(extents.size()) != array_.rank || size() == 0) return false;
  std::int64_t stride = 1;
  for (int d = array_.rank - 1; d >= 0; --d) {
    if (array_.extent[d] != extents.begin()[d] || array_.stride[d] != stride) return false;
    stride *= array_.extent[d];
  }
  return true;
}

nb::object Operand::make_like(std::initializer_list<std::int64_t> extents) const {
  if (library_ == Library::Torch && row_major(extents)) {
    // Keeps strides, and takes 1 to 2 us less than the other.
    static PyObject* const like = attribute("torch", "empty_like");
    return nb::handle(like)(object_);
  }
  const nb::object shape = tuple_of(extents);
  if (library_ == Library::Torch) return object_.attr("new_empty")(shape);
  if (library_ == Library::CuPy) {
    static PyObject* const empty = attribute("cupy", "empty");
    return nb::handle(empty)(shape, object_.attr("dtype"));
  }
  static PyObject* const empty = attribute("numpy", "empty");
  if (library_ == Library::NumPy) return nb::handle(empty)(shape, object_.attr("dtype"));
  // Others have types of their own.
  Impl::require<NotSupported>(number_ != Number::BFloat16, [&] {
    return std::string(name_) + ": no NumPy array of bfloat16 can be made for the result; give out";
  });
  return nb::handle(empty)(shape, number_ == Number::Float64   ? "float64"
                                  : number_ == Number::Float32 ? "float32"
                                                               : "float16");
}

nb::object Operand::make_sums(std::initializer_list<std::int64_t> extents) const {
  if (number_ == Number::Float64 || number_ == Number::Float32) return make_like(extents);
  const nb::object shape = tuple_of(extents);
  if (library_ == Library::Torch) {
    static PyObject* const single = attribute("torch", "float32");
    return object_.attr("new_empty")(shape, nb::arg("dtype") = nb::handle(single));
  }
  return nb::module_::import_(library_ == Library::CuPy ? "cupy" : "numpy").attr("empty")(shape, "float32");
}

nb::object Operand::make_integers(bool wide, std::int64_t extent) const {
  const nb::object shape = tuple_of({extent});
  const char* const name = wide ? "int64" : "int32";
  if (library_ == Library::Torch) {
    return object_.attr("new_empty")(shape, nb::arg("dtype") = nb::module_::import_("torch").attr(name));
  }
  return nb::module_::import_(library_ == Library::CuPy ? "cupy" : "numpy").attr("empty")(shape, name);
}

}  // namespace Python
}  // namespace Tessera
