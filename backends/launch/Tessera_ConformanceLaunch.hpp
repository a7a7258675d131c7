// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_LAUNCH_CONFORMANCE_LAUNCH_HPP
#define TESSERA_LAUNCH_CONFORMANCE_LAUNCH_HPP

#include <cstddef>
#include <cstring>

#include "backends/launch/Tessera_Launch.hpp"
#include "backends/units/Tessera_Conformance.hpp"

/// \file
/// Launcher of the conformance test: one product per wave, one wave per thread block, on memory of the call's own.

namespace Tessera {
namespace Launch {

/// ConformanceArgs on the device.
template <class Atom>
struct ConformancePointers {
  const typename Atom::Operand *a, *b;
  const typename Atom::Accumulator* c;
  typename Atom::Accumulator* registers;
};

template <class Device, class Atom>
struct ConformanceBody {
  using Wave = typename Device::Wave;
  static constexpr int threads = Wave::lanes, bound = 0, shared = 0;
  static constexpr bool overlapping = false;

  template <class ThreadBlock>
  TESSERA_FUNCTION static void run(const ThreadBlock& thread_block, const ConformancePointers<Atom>& p) {
    thread_block.each_wave([&](unsigned) {
      const std::size_t i = thread_block.index();
      const Wave wave;
      conformance_case<typename Device::template Unit<Atom>>(
          wave, p.a + i * (Atom::m * Atom::k), p.b + i * (Atom::k * Atom::n), p.c + i * (Atom::m * Atom::n),
          p.registers + i * (Atom::lanes * Atom::c_registers));
    });
  }
};

/// Device memory of one call. Memory: allocate, release, upload, fill and download of a runtime.
template <class Device, class Memory>
class ConformanceBuffer {
 public:
  using Error = typename Device::Error;

  explicit ConformanceBuffer(std::size_t bytes) : bytes_(bytes) { error_ = Memory::allocate(&data_, bytes); }
  ConformanceBuffer(const ConformanceBuffer&) = delete;
  ConformanceBuffer& operator=(const ConformanceBuffer&) = delete;
  ~ConformanceBuffer() { Memory::release(data_); }

  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  Error upload(const void* from) { return failed() ? error_ : error_ = Memory::upload(data_, from, bytes_); }
  /// All ones are a NaN in every accumulator type: a register that is not written shows.
  Error fill_with_ones() { return failed() ? error_ : error_ = Memory::fill(data_, 0xff, bytes_); }
  Error download(void* to) { return failed() ? error_ : error_ = Memory::download(to, data_, bytes_); }

 private:
  bool failed() const { return error_ != Device::success; }

  std::size_t bytes_;
  void* data_ = nullptr;
  Error error_;
};

template <class Device, class Memory, class Atom>
typename Device::Error run_conformance(const ConformanceArgs& args) {
  using Operand = typename Atom::Operand;
  using Accumulator = typename Atom::Accumulator;
  const ConformanceSizes size = conformance_sizes<Atom>(args.cases);
  ConformanceBuffer<Device, Memory> a(size.a), b(size.b), c(size.c), registers(size.registers);
  typename Device::Error error = a.upload(args.a);
  if (error == Device::success) error = b.upload(args.b);
  if (error == Device::success) error = c.upload(args.c);
  if (error == Device::success) error = registers.fill_with_ones();
  if (error != Device::success) return error;
  const ConformancePointers<Atom> pointers{a.template as<const Operand>(), b.template as<const Operand>(),
                                           c.template as<const Accumulator>(), registers.template as<Accumulator>()};
  error = launch<Device, ConformanceBody<Device, Atom>>({args.cases}, nullptr, pointers);
  return error == Device::success ? registers.download(args.registers) : error;
}

/// Runs the one of these atoms that has the name.
template <class Device, class Memory, class... Atoms>
Status conformance(const char* name, const ConformanceArgs& args) noexcept {
  if (args.cases <= 0) return {};
  typename Device::Error error = Device::success;
  const bool known =
      ((std::strcmp(name, Atoms::name) == 0 && (error = run_conformance<Device, Memory, Atoms>(args), true)) || ...);
  if (!known) return {"conformance: not an atom of this backend"};
  return Device::status(error, "Tessera::conformance");
}

}  // namespace Launch
}  // namespace Tessera

#endif
