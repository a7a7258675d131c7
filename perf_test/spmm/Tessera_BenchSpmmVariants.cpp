// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include <algorithm>

#include "Tessera_Compat.hpp"
#include "spmm/Tessera_BenchSpmm.hpp"

namespace Tessera {
namespace Bench {
namespace {

/// Whether FlashSparse's instructions know the precision.
bool has_flash(Precision p) { return p == Precision::TF32 || p == Precision::FP16 || p == Precision::BF16; }

/// "all": what can serve this precision and backend.
std::vector<SpmmVariant> all_algorithms(const BenchOptions& options, Precision precision) {
  const Backend b = options.backend;
  const bool host = Compat::is_host_v<Kokkos::DefaultExecutionSpace>;
  const bool portable = b == Backend::Auto || b == Backend::Kokkos;
  const bool unit = b != Backend::Kokkos && b != Backend::Reference && !(b == Backend::Auto && host);
  std::vector<SpmmVariant> result;
  const auto add = [&](bool wanted, SpmmAlgorithm a) {
    if (wanted) result.push_back({a, {}, "", false});
  };
  // CPUs and plain CSR do not round to TF32: their rows would be those of FP32.
  add((portable || b == Backend::Reference) && precision != Precision::TF32, SpmmAlgorithm::Csr);
  add(portable && (precision != Precision::TF32 || unit), SpmmAlgorithm::GeSpmm);
  add(unit && has_flash(precision), SpmmAlgorithm::FlashSparse);
  add(unit, SpmmAlgorithm::Panels);
  add(b == Backend::Auto, SpmmAlgorithm::Auto);
  return result;
}

std::vector<SpmmVariant> algorithms(const BenchOptions& options, Precision precision) {
  std::vector<SpmmVariant> result;
  const auto add = [&](const SpmmVariant& v) {
    const auto at = std::find_if(result.begin(), result.end(),
                                 [&](const SpmmVariant& other) { return other.algorithm == v.algorithm; });
    if (at == result.end()) {
      result.push_back(v);
    } else {
      at->named = at->named || v.named;
    }
  };
  for (const std::string& name : options.algorithms) {
    if (name == "all") {
      for (const SpmmVariant& v : all_algorithms(options, precision)) add(v);
    } else {
      add({parse_spmm_algorithm(name), {}, "", true});
    }
  }
  if (options.regret) add({SpmmAlgorithm::Auto, {}, "", true});
  std::stable_sort(result.begin(), result.end(), [](const SpmmVariant& l, const SpmmVariant& r) {
    return (l.algorithm == SpmmAlgorithm::Csr) > (r.algorithm == SpmmAlgorithm::Csr);
  });
  return result;
}

}  // namespace

std::vector<SpmmVariant> spmm_variants(const BenchOptions& options, Precision precision) {
  std::vector<SpmmVariant> variants;
  for (const SpmmVariant& plain : algorithms(options, precision)) {
    variants.push_back(plain);
    if (plain.algorithm != SpmmAlgorithm::FlashSparse || !options.ablation) continue;
    // The comparisons of the paper's sections 4.2 to 4.4, each against the row before them.
    for (const char* name : {"16x1", "direct", "sr"}) {
      SpmmVariant v = plain;
      v.name = name;
      v.named = false;  // AMD's units have windows of 16 rows only
      if (v.name == "16x1") v.flash.vector_length = 16;
      if (v.name == "direct") v.flash.mapping = FlashMapping::Direct;
      if (v.name == "sr") v.flash.padded = true;
      variants.push_back(v);
    }
  }
  return variants;
}

std::string too_large(double matrix_bytes, double dense_bytes, double memory, bool host) {
  // Hosts share their memory with others and swap before they fail.
  const double limit = (host ? 0.6 : 0.9) * memory;
  const double wanted = 3 * matrix_bytes + (host ? 1 : 2) * dense_bytes;
  if (memory <= 0 || wanted <= limit) return {};
  return format_number("an estimated %.1f GB", 1e-9 * wanted) + " do not fit into " +
         format_number("%.1f GB, ", 1e-9 * limit) + (host ? "60 % of the memory" : "90 % of the device's memory");
}

}  // namespace Bench
}  // namespace Tessera
