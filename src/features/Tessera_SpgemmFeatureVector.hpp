// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FEATURES_SPGEMM_FEATURE_VECTOR_HPP
#define TESSERA_FEATURES_SPGEMM_FEATURE_VECTOR_HPP

#include <array>
#include <cstdint>

/// \file
/// What the models of SpGEMM's choice see of a product C = A B: numbers in one order, which the benchmark writes for
/// training (`tessera_bench --op spgemm --features`), cmake/train_spgemm.py learns from, and plans compute.

namespace Tessera {
namespace Impl {

/// Of each matrix in this order.
enum SpgemmFeature {
  SpgemmRows,
  SpgemmCols,
  SpgemmNnz,
  SpgemmDensity,
  SpgemmLongest,
  SpgemmShortest,
  SpgemmMean,
  SpgemmVariance,
  SpgemmCv,
  SpgemmDiagonalCount,
  SpgemmDiagonalRatio,
  SpgemmDiaFill,
  SpgemmEllFill,
  SpgemmFeaturesOfMatrix,
  // Of both: after those of A and of B.
  SpgemmProductCount = 2 * SpgemmFeaturesOfMatrix,
  SpgemmCompression,     ///< products per entry of C, estimated
  SpgemmDiaWork,         ///< multiplications of DIA, rows x diagonals of A x diagonals of B, per product
  SpgemmEllWork,         ///< slots that ELL goes through, rows x longest of A x longest of B, per product
  SpgemmWidth,           ///< columns of C per product
  SpgemmProductsPerRow,  ///< of A
  SpgemmFeatureCount
};

using SpgemmFeatureVector = std::array<double, SpgemmFeatureCount>;

/// As statistics() and tables name it, as "dia_fill of A".
constexpr const char* spgemm_feature_names[] = {"rows of A",
                                                "columns of A",
                                                "entries of A",
                                                "density of A",
                                                "longest row of A",
                                                "shortest row of A",
                                                "entries per row of A",
                                                "variance of A",
                                                "CV of A",
                                                "diagonals of A",
                                                "diagonal ratio of A",
                                                "DIA fill of A",
                                                "ELL fill of A",
                                                "rows of B",
                                                "columns of B",
                                                "entries of B",
                                                "density of B",
                                                "longest row of B",
                                                "shortest row of B",
                                                "entries per row of B",
                                                "variance of B",
                                                "CV of B",
                                                "diagonals of B",
                                                "diagonal ratio of B",
                                                "DIA fill of B",
                                                "ELL fill of B",
                                                "products",
                                                "compression",
                                                "DIA work",
                                                "ELL work",
                                                "columns per product",
                                                "products per row"};
static_assert(sizeof(spgemm_feature_names) / sizeof(*spgemm_feature_names) == SpgemmFeatureCount, "a name per feature");

/// @param features  as Tessera::SpgemmFeatures, of which this floor need not know how they were counted
template <class Features>
void put_spgemm_features(const Features& features, double* to) {
  const double numbers[SpgemmFeaturesOfMatrix] = {static_cast<double>(features.rows),
                                                  static_cast<double>(features.cols),
                                                  static_cast<double>(features.nnz),
                                                  features.density(),
                                                  static_cast<double>(features.longest),
                                                  static_cast<double>(features.shortest),
                                                  features.mean,
                                                  features.variance,
                                                  features.cv(),
                                                  static_cast<double>(features.diagonals),
                                                  features.diagonal_ratio(),
                                                  features.dia_fill(),
                                                  features.ell_fill()};
  for (int i = 0; i < SpgemmFeaturesOfMatrix; ++i) to[i] = numbers[i];
}

template <class Features>
SpgemmFeatureVector spgemm_feature_vector(const Features& a, const Features& b, std::int64_t products,
                                          double compression) {
  SpgemmFeatureVector v{};
  put_spgemm_features(a, v.data());
  put_spgemm_features(b, v.data() + SpgemmFeaturesOfMatrix);
  const double all = products > 0 ? static_cast<double>(products) : 1, each = static_cast<double>(a.rows) / all;
  v[SpgemmProductCount] = static_cast<double>(products);
  v[SpgemmCompression] = compression;
  v[SpgemmDiaWork] = each * static_cast<double>(a.diagonals) * static_cast<double>(b.diagonals);
  v[SpgemmEllWork] = each * static_cast<double>(a.longest) * static_cast<double>(b.longest);
  v[SpgemmWidth] = static_cast<double>(b.cols) / all;
  v[SpgemmProductsPerRow] = all / static_cast<double>(a.rows > 0 ? a.rows : 1);
  return v;
}

}  // namespace Impl
}  // namespace Tessera

#endif
