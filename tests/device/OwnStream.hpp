// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_TEST_OWN_STREAM_HPP
#define TESSERA_TEST_OWN_STREAM_HPP

#include <Kokkos_Core.hpp>

namespace Tessera {
namespace Testing {

/// An execution-space instance on a stream of its own.
class OwnStream {
 public:
  OwnStream() : stream_(make()), space_(stream_) {}
  ~OwnStream() {
    space_.fence();
    cudaStreamDestroy(stream_);
  }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  const Kokkos::Cuda& space() const { return space_; }
  cudaStream_t stream() const { return stream_; }

 private:
  static cudaStream_t make() {
    cudaStream_t stream = nullptr;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    return stream;
  }
  cudaStream_t stream_;
  Kokkos::Cuda space_;
};

}  // namespace Testing
}  // namespace Tessera

#endif
