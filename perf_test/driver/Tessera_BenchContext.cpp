// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "driver/Tessera_BenchContext.hpp"

#include <unistd.h>

#include <ctime>
#include <fstream>
#include <sstream>

#include "Tessera_Device.hpp"
#include "driver/Tessera_BenchTimer.hpp"

#if defined(TESSERA_HAVE_KOKKOSKERNELS)
#include <KokkosKernels_config.h>
#endif
#if defined(TESSERA_HAVE_CUDA)
#include <cuda_runtime_api.h>
#include <cusparse.h>
#endif

namespace Tessera {
namespace Bench {
namespace {

using Exec = Kokkos::DefaultExecutionSpace;

std::string version(int number, int major_unit, int minor_unit) {
  return std::to_string(number / major_unit) + "." + std::to_string(number % major_unit / minor_unit) + "." +
         std::to_string(number % minor_unit);
}

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.compare(0, 10, "model name") == 0 && line.find(": ") != std::string::npos) {
      return line.substr(line.find(": ") + 2);
    }
  }
  return "unknown processor";
}

std::string device() {
  if (Compat::is_host_v<Exec>) return processor();
  const Backend backend = Compat::is_hip_v<Exec> ? Backend::Hip : Backend::Cuda;
  try {
    return device_facts(backend).name;
  } catch (const Error& e) {
    return std::string(Exec::name()) + " device (" + e.what() + ")";
  }
}

std::string compiler() {
  std::ostringstream out;
#if defined(__CUDACC__)
  out << "nvcc " << __CUDACC_VER_MAJOR__ << '.' << __CUDACC_VER_MINOR__ << " with ";
#endif
#if defined(__clang__)
  out << "clang " << __clang_version__;
#elif defined(__GNUC__)
  out << "gcc " << __VERSION__;
#endif
#if !defined(__OPTIMIZE__)
  out << ", not optimised";
#endif
  return out.str();
}

std::string date() {
  const std::time_t time = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&time, &utc);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

/// Eight streams, so that a host's one sum does not wait for itself and every device's loads are contiguous.
struct SumFunctor {
  Kokkos::View<const double*, Exec::memory_space> v;
  std::int64_t part;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i, double& sum) const {
    const double low = (v(i) + v(i + part)) + (v(i + 2 * part) + v(i + 3 * part));
    sum += low + ((v(i + 4 * part) + v(i + 5 * part)) + (v(i + 6 * part) + v(i + 7 * part)));
  }
};

double stream_rate() {
  const std::int64_t size = std::int64_t(Compat::is_host_v<Exec> ? 256 : 2048) << 17;
  const Exec space;
  const Kokkos::View<double*, Exec::memory_space> values("Tessera::bench::stream", static_cast<std::size_t>(size));
  Timer<Exec> timer(space, 10, 5);
  double sum = 0;
  const Timing t = timer.warm([&] {
    Kokkos::parallel_reduce("Tessera::bench stream", Kokkos::RangePolicy<Exec>(space, 0, size / 8),
                            SumFunctor{values, size / 8}, sum);
  });
  return 1e-9 * 8 * static_cast<double>(size) / t.median;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> BenchContext::texts() const {
  return {{"device", device},
          {"execution_space", execution_space},
          {"tessera", tessera},
          {"kokkos", kokkos},
          {"kokkos_kernels", kokkos_kernels},
          {"cuda", cuda},
          {"compiler", compiler},
          {"date", date}};
}

BenchContext make_context(const BenchOptions& options) {
  BenchContext c;
  c.device = device();
  c.host = Compat::is_host_v<Exec>;
  c.execution_space = Exec::name();
  if (c.host) c.execution_space += ", concurrency " + std::to_string(Exec().concurrency());
  c.tessera = TESSERA_VERSION_STRING;
  c.kokkos = version(KOKKOS_VERSION, 10000, 100);
#if defined(KOKKOSKERNELS_VERSION)
  c.kokkos_kernels = version(KOKKOSKERNELS_VERSION, 10000, 100);
#elif defined(TESSERA_HAVE_KOKKOSKERNELS)
  c.kokkos_kernels = "of Kokkos " + c.kokkos;  // older ones carry no version of their own
#endif
#if defined(TESSERA_HAVE_CUDA)
  int runtime = 0;
  cudaRuntimeGetVersion(&runtime);
  c.cuda = version(runtime, 1000, 10) + ", cuSPARSE " + version(CUSPARSE_VERSION, 1000, 100);
#endif
  c.compiler = compiler();
  c.date = date();
  if (options.ceiling) c.stream_gbytes_per_second = stream_rate();
  return c;
}

double memory_bytes() {
  if (Compat::is_host_v<Exec>) {
    const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? static_cast<double>(pages) * static_cast<double>(size) : 0;
  }
#if defined(TESSERA_HAVE_CUDA)
  std::size_t free = 0, total = 0;
  if (Compat::is_cuda_v<Exec> && cudaMemGetInfo(&free, &total) == cudaSuccess) return static_cast<double>(total);
#endif
  return 0;
}

std::string missing_device() {
#if defined(TESSERA_HAVE_CUDA)
  if (Compat::is_cuda_v<Exec>) {
    int devices = 0;
    const cudaError_t status = cudaGetDeviceCount(&devices);
    if (status != cudaSuccess) return std::string("no CUDA device: ") + cudaGetErrorString(status);
    if (devices == 0) return "no CUDA device";
  }
#endif
  return {};
}

}  // namespace Bench
}  // namespace Tessera
