// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "spmm/Tessera_BenchSpmm.hpp"

namespace Tessera {
namespace Bench {

void bench_spmm(const SpmmJob& job) {
  for (const Precision p : job.options.precisions) {
    switch (p) {
      case Precision::FP64:
        bench_spmm_fp64(job);
        break;
      case Precision::FP32:
      case Precision::TF32:
        bench_spmm_fp32(job, p);
        break;
      case Precision::FP16:
        bench_spmm_fp16(job);
        break;
      case Precision::BF16:
        bench_spmm_bf16(job);
        break;
    }
  }
}

}  // namespace Bench
}  // namespace Tessera
