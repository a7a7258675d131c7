// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include <gtest/gtest.h>

#include <Kokkos_Core.hpp>
#include <cstddef>
#include <string>
#include <type_traits>

#include "Tessera_Compat.hpp"

namespace Tessera {
namespace {

using Host = Kokkos::DefaultHostExecutionSpace;

TEST(Compat, ViewsAreRecognised) {
  static_assert(Compat::is_view_v<Kokkos::View<double*>> && Compat::is_view_v<Kokkos::View<const int**, Host>>, "");
  static_assert(!Compat::is_view_v<double*> && !Compat::is_view_v<std::string>, "");
}

TEST(Compat, RankIsANumberInEveryVersion) {
  static_assert(Compat::view_rank<Kokkos::View<double>> == 0, "");
  static_assert(Compat::view_rank<Kokkos::View<double*, Host>> == 1, "");
  static_assert(Compat::view_rank<Kokkos::View<double* [3], Host>> == 2, "");
  static_assert(std::is_same_v<decltype(Compat::view_rank<Kokkos::View<double>>), const int>, "");
}

/// Instances as the vendors' execution spaces have them; the streams are numbers here.
struct CudaLike {
  using memory_space = Kokkos::HostSpace;
  void* cuda_stream() const { return reinterpret_cast<void*>(std::size_t{0x40}); }
};
struct HipLike {
  using memory_space = Kokkos::HostSpace;
  void* hip_stream() const { return reinterpret_cast<void*>(std::size_t{0x80}); }
};

TEST(Compat, StreamsTellTheVendor) {
  static_assert(Compat::is_cuda_v<CudaLike> && !Compat::is_hip_v<CudaLike>, "");
  static_assert(!Compat::is_cuda_v<HipLike> && Compat::is_hip_v<HipLike>, "");
  static_assert(!Compat::is_cuda_v<Host> && !Compat::is_hip_v<Host>, "");
  static_assert(Compat::is_host_v<Host> && !Compat::is_host_v<CudaLike> && !Compat::is_host_v<HipLike>, "");
  EXPECT_EQ(Compat::native_stream(CudaLike()), reinterpret_cast<void*>(std::size_t{0x40}));
  EXPECT_EQ(Compat::native_stream(HipLike()), reinterpret_cast<void*>(std::size_t{0x80}));
  EXPECT_EQ(Compat::native_stream(Host()), nullptr);
}

#ifdef KOKKOS_ENABLE_CUDA
TEST(Compat, KokkosCudaIsRecognised) {
  static_assert(Compat::is_cuda_v<Kokkos::Cuda> && !Compat::is_host_v<Kokkos::Cuda>, "");
  EXPECT_EQ(Compat::native_stream(Kokkos::Cuda()), static_cast<void*>(Kokkos::Cuda().cuda_stream()));
}
#endif

TEST(Compat, AllocateGivesAnOwnedViewOfThatLength) {
  const auto v = Compat::allocate<Kokkos::View<double*, Host>>(Host(), "a label", 17);
  EXPECT_EQ(v.extent(0), 17u);
  EXPECT_EQ(v.label(), "a label");
  EXPECT_EQ(v.use_count(), 1);
  v(16) = 1.5;
  EXPECT_EQ(v(16), 1.5);
  EXPECT_EQ((Compat::allocate<Kokkos::View<int*, Host>>(Host(), "none", 0).extent(0)), 0u);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(Compat, RefusedMemoryIsAnErrorOfTessera) {
  try {
    Compat::allocate<Kokkos::View<double*, Host>>(Host(), "huge", std::size_t{1} << 55);
    ADD_FAILURE() << "no exception";
  } catch (const OutOfMemory& e) {
    EXPECT_EQ(e.required(), std::size_t{1} << 58);
    EXPECT_NE(std::string(e.what()).find("huge"), std::string::npos) << e.what();
  }
}
#endif

TEST(Compat, FenceAndRegionsCanBeNested) {
  const Compat::ScopedRegion outer("Tessera::test outer");
  {
    const Compat::ScopedRegion inner("Tessera::test inner");
    Compat::fence(Host(), "Tessera::test fence");
  }
  static_assert(!std::is_copy_constructible_v<Compat::ScopedRegion> && !std::is_copy_assignable_v<Compat::ScopedRegion>,
                "a region ends once");
}

TEST(Compat, TeamsOfOneThreadOnHosts) {
  static_assert(Compat::team_size<Host>(128) == 1, "");
  static_assert(Compat::team_size<CudaLike>(128) == 128, "");
  static_assert(Compat::team_size<HipLike>(256) == 256, "");
}

}  // namespace
}  // namespace Tessera
