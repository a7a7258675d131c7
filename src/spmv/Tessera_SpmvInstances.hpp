// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMV_SPMV_INSTANCES_HPP
#define TESSERA_SPMV_SPMV_INSTANCES_HPP

#include "core/Tessera_Compiled.hpp"
#include "spmv/Tessera_SpmvOperation.hpp"

/// \file
/// What of SpMV is compiled once (core/Tessera_Compiled.hpp).

// What depends on the type of offsets alone: features and conversions of patterns, and what depends on no type.
#define TESSERA_SPMV_PATTERN(Extern, Offset)                                                                         \
  Extern template SpmvFeatures spmv_pattern_features(const Compiled::Exec&, const Compiled::Pattern<Offset>&,        \
                                                     const KernelTable*);                                            \
  Extern template TransposedPattern<Compiled::Pattern<Offset>> transposed_pattern(const Compiled::Exec&,             \
                                                                                  const Compiled::Pattern<Offset>&); \
  Extern template void packed_pattern(                                                                               \
      const Compiled::Exec&, const Compiled::Pattern<Offset>&, const PackedNumbers<Compiled::Memory>&,               \
      const SpmvFeatures&, const PackedOptions&, bool, const KernelTable*, const DeviceFacts&,                       \
      Experimental::PackedSlices<Compiled::Memory>&, const std::shared_ptr<PackedAhead<Compiled::Memory>>&);         \
  Extern template SpmvFeatures packed_features_ahead(const Compiled::Exec&, const Compiled::Pattern<Offset>&,        \
                                                     const KernelTable*, PackedAhead<Compiled::Memory>&);            \
  Extern template void cells_pattern(const Compiled::Exec&, const Compiled::Pattern<Offset>&,                        \
                                     const PackedNumbers<Compiled::Memory>&, bool, const KernelTable*,               \
                                     Experimental::PackedCells<Compiled::Memory>&);                                  \
  Extern template void packed_widen<Compiled::Pattern<Offset>>(                                                      \
      const Compiled::Exec&, Experimental::PackedSlices<Compiled::Memory>&, const KernelTable*);                     \
  Extern template std::shared_ptr<void> dasp_pattern(const Compiled::Exec&, const Compiled::Pattern<Offset>&,        \
                                                     const DaspOptions&, bool, const KernelTable*,                   \
                                                     Experimental::Dasp<Compiled::Memory>&);                         \
  Extern template void* csr5_pattern(const Compiled::Exec&, const Compiled::Pattern<Offset>&, std::size_t,           \
                                     const KernelTable*, Experimental::Csr5Pattern<Compiled::Memory>&);

// What depends on the type of numbers alone: filling them in, and CSR5's product with consecutive vectors of that type.
#define TESSERA_SPMV_VALUES(Extern, Scalar)                                                                            \
  Extern template void packed_fill(const Compiled::Exec&, const Experimental::PackedSlices<Compiled::Memory>&,         \
                                   const Compiled::Values<Scalar>&, const PackedRowMap<Compiled::Memory>&,             \
                                   const PackedGate&);                                                                 \
  Extern template void packed_fill_slots(const Compiled::Exec&, const Experimental::PackedSlices<Compiled::Memory>&,   \
                                         const Compiled::Values<Scalar>&,                                              \
                                         const PackedIndexFunctor<PackedPlainPattern<Compiled::Memory>>&);             \
  Extern template void cells_scatter(const Compiled::Exec&, const Experimental::PackedCells<Compiled::Memory>&,        \
                                     const Compiled::Values<Scalar>&);                                                 \
  Extern template void cells_write(const Compiled::Exec&, const CellsPieces<PackedPlainPattern<Compiled::Memory>>&,    \
                                   const Compiled::Values<Scalar>&);                                                   \
  Extern template void packed_classify(const Compiled::Exec&, const Compiled::Values<Scalar>&,                         \
                                       const Arena<Compiled::Memory>::View<PackedClassFound>&);                        \
  Extern template void dasp_fill_values(const Compiled::Exec&, const Experimental::Dasp<Compiled::Memory>&,            \
                                        const Compiled::Values<Scalar>&, const Compiled::Pattern<int>::entries_type&); \
  Extern template void csr5_spmv(const Compiled::Exec&, double, const Experimental::Csr5<Scalar, Compiled::Memory>&,   \
                                 const Compiled::Vector<const Scalar>&, double, const Compiled::Vector<Scalar>&);

#define TESSERA_SPMV_BODY(Scalar, Offset) PlanBody<SpmvOperation<Compiled::Matrix<Scalar, Offset>>>
#define TESSERA_SPMV_APPLY(Extern, Scalar, Offset, X, Y)                                                          \
  Extern template void TESSERA_SPMV_BODY(Scalar, Offset)::apply(const Exec&, Op, double, const Vectors<const X>&, \
                                                                double, const Vectors<Y>&) const;

// Plans, with vectors of the matrix's type; 16-bit matrices also with y of float, those of float with vectors of
// double.
#define TESSERA_SPMV_double(Extern, Offset)                \
  Extern template class TESSERA_SPMV_BODY(double, Offset); \
  TESSERA_SPMV_APPLY(Extern, double, Offset, double, double)
#define TESSERA_SPMV_float(Extern, Offset)                \
  Extern template class TESSERA_SPMV_BODY(float, Offset); \
  TESSERA_SPMV_APPLY(Extern, float, Offset, float, float) \
  TESSERA_SPMV_APPLY(Extern, float, Offset, double, double)
#define TESSERA_SPMV_half_t(Extern, Offset)                  \
  Extern template class TESSERA_SPMV_BODY(half_t, Offset);   \
  TESSERA_SPMV_APPLY(Extern, half_t, Offset, half_t, half_t) \
  TESSERA_SPMV_APPLY(Extern, half_t, Offset, half_t, float)
#define TESSERA_SPMV_bhalf_t(Extern, Offset)                    \
  Extern template class TESSERA_SPMV_BODY(bhalf_t, Offset);     \
  TESSERA_SPMV_APPLY(Extern, bhalf_t, Offset, bhalf_t, bhalf_t) \
  TESSERA_SPMV_APPLY(Extern, bhalf_t, Offset, bhalf_t, float)

#ifdef TESSERA_COMPILED_SPMV
namespace Tessera {
namespace Impl {
// clang-format off
TESSERA_SPMV_PATTERN(extern, int)
TESSERA_SPMV_PATTERN(extern, std::size_t)
TESSERA_SPMV_VALUES(extern, double)
TESSERA_SPMV_VALUES(extern, float)
TESSERA_SPMV_VALUES(extern, half_t)
TESSERA_SPMV_VALUES(extern, bhalf_t)
TESSERA_SPMV_double(extern, int)
TESSERA_SPMV_double(extern, std::size_t)
TESSERA_SPMV_float(extern, int)
TESSERA_SPMV_float(extern, std::size_t)
TESSERA_SPMV_half_t(extern, int)
TESSERA_SPMV_bhalf_t(extern, int)
// clang-format on
}  // namespace Impl
}  // namespace Tessera
#endif

#endif
