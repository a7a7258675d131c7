// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_COMPAT_HPP
#define TESSERA_COMPAT_HPP

#include <Kokkos_Core.hpp>
#include <cstdint>
#include <exception>
#include <string>
#include <type_traits>
#include <utility>

#include "Tessera_Error.hpp"

/// \file
/// Everything that differs between Kokkos 3.4 and 5. The only place with tests of KOKKOS_VERSION.

#ifndef KOKKOS_VERSION
#error "Tessera needs Kokkos 3.4 or newer"
#elif KOKKOS_VERSION < 30400
#error "Tessera needs Kokkos 3.4 or newer"
#endif

// Views of Kokkos 4.7 are made of [[no_unique_address]] members, which nvcc 12.9 to 13.1 lays out in device code
// otherwise than g++ does: all compiles, and kernels read wrong memory (perf_test/notes/cxx20.md).
#if defined(KOKKOS_ENABLE_CUDA) && defined(__CUDACC_VER_MAJOR__) && KOKKOS_VERSION >= 40699
#if defined(MDSPAN_IMPL_USE_ATTRIBUTE_NO_UNIQUE_ADDRESS) && \
    !defined(MDSPAN_IMPL_USE_FAKE_ATTRIBUTE_NO_UNIQUE_ADDRESS) && !defined(KOKKOS_ENABLE_IMPL_VIEW_LEGACY)
#if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1209 && \
    __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ <= 1301
#error "This nvcc miscompiles Views of this Kokkos in C++20: Kokkos 4.7.02 or 5.0, CUDA 13.2 or C++17 would do"
#endif
#endif
#endif

namespace Tessera {
namespace Compat {

template <class T>
inline constexpr bool is_view_v = Kokkos::is_view<T>::value;

/// An enumerator in 3.x, a constexpr member later.
template <class V>
inline constexpr int view_rank = static_cast<int>(V::rank);

/// Waits for the instance; the label exists in tools since 3.6.
template <class Exec>
void fence(const Exec& exec, const std::string& label) {
#if KOKKOS_VERSION >= 30600
  exec.fence(label);
#else
  (void)label;
  exec.fence();
#endif
}

/// Waits for everything on all instances and streams.
inline void fence_all(const std::string& label) {
#if KOKKOS_VERSION >= 30600
  Kokkos::fence(label);
#else
  (void)label;
  Kokkos::fence();
#endif
}

/// Names a region for profiling tools (Kokkos' own ScopedRegion came in 4.1).
class ScopedRegion {
 public:
  explicit ScopedRegion(const std::string& name) { Kokkos::Profiling::pushRegion(name); }
  ~ScopedRegion() { Kokkos::Profiling::popRegion(); }
  ScopedRegion(const ScopedRegion&) = delete;
  ScopedRegion& operator=(const ScopedRegion&) = delete;
};

/// What tools call the device and instance of a kernel.
template <class Exec>
std::uint32_t tool_device_id(const Exec& exec) {
  return Kokkos::Tools::Experimental::device_id(exec);
}

namespace Impl {
template <class Exec>
auto cuda_stream(const Exec& e, int) -> decltype(static_cast<void*>(e.cuda_stream())) {
  return static_cast<void*>(e.cuda_stream());
}
template <class Exec>
void* cuda_stream(const Exec&, long) {
  return nullptr;
}
template <class Exec>
auto hip_stream(const Exec& e, int) -> decltype(static_cast<void*>(e.hip_stream())) {
  return static_cast<void*>(e.hip_stream());
}
template <class Exec>
void* hip_stream(const Exec&, long) {
  return nullptr;
}
template <class Exec, class = void>
struct IsCuda : std::false_type {};
template <class Exec>
struct IsCuda<Exec, std::void_t<decltype(std::declval<const Exec&>().cuda_stream())>> : std::true_type {};
template <class Exec, class = void>
struct IsHip : std::false_type {};
template <class Exec>
struct IsHip<Exec, std::void_t<decltype(std::declval<const Exec&>().hip_stream())>> : std::true_type {};
}  // namespace Impl

/// Detected by their streams, so that no Kokkos macro and no name that moved (Experimental::HIP) is needed.
template <class Exec>
inline constexpr bool is_cuda_v = Impl::IsCuda<Exec>::value;
template <class Exec>
inline constexpr bool is_hip_v = Impl::IsHip<Exec>::value;

/// The vendor stream of an instance; null on hosts. Two instances with the same stream are ordered among themselves.
template <class Exec>
void* native_stream(const Exec& exec) {
  if constexpr (is_hip_v<Exec>) return Impl::hip_stream(exec, 0);
  return Impl::cuda_stream(exec, 0);
}

/// The inverse of native_stream. On hosts, the default instance.
template <class Exec>
Exec instance_on(void* stream) {
  if constexpr (is_cuda_v<Exec>) {
    return Exec(static_cast<decltype(std::declval<const Exec&>().cuda_stream())>(stream));
  } else if constexpr (is_hip_v<Exec>) {
    return Exec(static_cast<decltype(std::declval<const Exec&>().hip_stream())>(stream));
  } else {
    (void)stream;
    return Exec();
  }
}

/// The number of the device that an instance runs on; 0 on hosts.
template <class Exec>
int device_id(const Exec& exec) {
  if constexpr (is_cuda_v<Exec>) return exec.cuda_device();
  if constexpr (is_hip_v<Exec>) return exec.hip_device();
  (void)exec;
  return 0;
}

/// Kokkos::initialize without a command line. threads 0, device -1: Kokkos' own choice.
inline void initialize(int threads, int device) {
#if KOKKOS_VERSION >= 30700
  Kokkos::InitializationSettings settings;
  if (threads > 0) settings.set_num_threads(threads);
  if (device >= 0) settings.set_device_id(device);
  Kokkos::initialize(settings);
#else
  Kokkos::initialize(Kokkos::InitArguments(threads > 0 ? threads : -1, -1, device));
#endif
}

/// Whether only the host thread that initialised Kokkos may launch: before 3.7 OpenMP's instance belongs to one.
template <class Exec>
inline constexpr bool one_host_thread =
#if defined(KOKKOS_ENABLE_OPENMP) && KOKKOS_VERSION < 30700
    std::is_same_v<Exec, Kokkos::OpenMP>;
#else
    false;
#endif

/// Whether code of this execution space runs on the host.
template <class Exec>
inline constexpr bool is_host_v =
    Kokkos::SpaceAccessibility<Kokkos::DefaultHostExecutionSpace, typename Exec::memory_space>::accessible &&
    !is_cuda_v<Exec> && !is_hip_v<Exec>;

/// Whether kernels run on OpenMP's threads and have ended when parallel_for returns.
template <class Exec>
inline constexpr bool is_openmp_v =
#ifdef KOKKOS_ENABLE_OPENMP
    std::is_same_v<Exec, Kokkos::OpenMP>;
#else
    false;
#endif

template <class Exec>
inline constexpr bool is_serial_v =
#ifdef KOKKOS_ENABLE_SERIAL
    std::is_same_v<Exec, Kokkos::Serial>;
#else
    false;
#endif

/// Uninitialised View. @param where  nothing, or an instance on which the allocation is ordered
/// @throw OutOfMemory  instead of Kokkos' own exception
template <class View, class... Where>
View allocate_view(const std::string& label, std::size_t n, const Where&... where) {
  try {
    return View(Kokkos::view_alloc(where..., Kokkos::WithoutInitializing, label), n);
  } catch (const std::exception& refusal) {
    throw OutOfMemory(label, n * sizeof(typename View::value_type), refusal.what());
  }
}
/// View of zeros. @throw OutOfMemory  as above
template <class View, class... Extents>
View allocate_zeros(const std::string& label, const Extents... n) {
  try {
    return View(label, static_cast<std::size_t>(n)...);
  } catch (const std::exception& refusal) {
    throw OutOfMemory(label, (sizeof(typename View::value_type) * ... * static_cast<std::size_t>(n)), refusal.what());
  }
}
/// Uninitialised and ordered on `exec` where the Kokkos version can.
template <class View, class Exec>
View allocate(const Exec& exec, const std::string& label, std::size_t n) {
#if KOKKOS_VERSION >= 30600
  return allocate_view<View>(label, n, exec);
#else
  (void)exec;
  return allocate_view<View>(label, n);
#endif
}

/// A property of policies: the functor travels as the kernel's argument, whatever its size (up to 4 kB). Kokkos' CUDA
/// copies functors above 512 bytes to constant memory instead, and waits for the kernel that used it last.
using LightWeight = Kokkos::Experimental::WorkItemProperty::HintLightWeight_t;

/// One thread stores a value where the host looks, after all that it stored before.
KOKKOS_INLINE_FUNCTION void publish_to_host(std::int64_t* place, std::int64_t value) {
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  __threadfence_system();
#else
  Kokkos::memory_fence();
#endif
  *static_cast<volatile std::int64_t*>(place) = value;
}

/// Size of a Kokkos team: one thread on hosts (their teams share a core), `wanted` on devices.
template <class Exec>
constexpr int team_size(int wanted) {
  return is_host_v<Exec> ? 1 : wanted;
}

/// The level of a team's scratch beyond 32 KiB, which hosts grant at level 0 no more since Kokkos 5.1 (their levels are
/// the same memory).
template <class Exec>
inline constexpr int large_scratch_level = is_host_v<Exec> ? 1 : 0;

}  // namespace Compat
}  // namespace Tessera

#endif
