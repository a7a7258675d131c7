// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_PYTHON_PLAN_HPP
#define TESSERA_PYTHON_PLAN_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "Tessera_Statistics.hpp"
#include "Tessera_Types.hpp"

/// \file
/// What stands between the Python module, which knows no Kokkos, and the library's plans, which know no Python: arrays
/// as pointers with sizes, plans with their types erased. One .cpp per operation makes its plans.
///
/// Nothing here may be called at the same time by two threads (Tessera_PythonObject.hpp has the lock).

namespace Tessera {
namespace Python {

/// Up to three dimensions. Strides in elements, positive where an extent is larger than 1.
struct Array {
  void* data = nullptr;                      ///< where the build's plans run
  int rank = 0;                              ///< 1, 2 or 3
  std::int64_t extent[3] = {0, 0, 0};        ///< per dimension
  std::int64_t stride[3] = {1, 1, 1};        ///< per dimension
  ElementType element = ElementType::Float;  ///< of the numbers
};

/// A matrix in compressed rows, its arrays contiguous.
struct AnyCsr {
  std::int64_t rows = 0, cols = 0, nnz = 0;
  const void* indptr = nullptr;              ///< rows + 1 numbers of 64 bits, if wide, or 32
  bool wide = false;                         ///< 16-bit matrices have none
  const void* indices = nullptr;             ///< nnz numbers of 32 bits
  const void* data = nullptr;                ///< nnz numbers
  ElementType element = ElementType::Float;  ///< of data
};

/// The options of every operation, by the names that their enumerators have in text; each operation reads its own.
struct PlanOptions {
  std::string algorithm = "auto", backend = "auto", compute = "auto", selection = "predict", reuse = "many";
  std::string reordering = "none", values = "none";
  int width_hint = 64;  ///< num_columns_hint, inner_hint, dimension_hint
  bool prepare_transpose = false, updatable = true, fallback = true, scale_by_values = false, prepare_backward = false;
};

/// Base of plans whose types are erased. Streams are the vendor's, null on hosts.
class AnyPlan {
 public:
  virtual ~AnyPlan() = default;
  /// nnz numbers of the matrix's type. @throw StalePlan
  virtual void update_values(void* stream, const void* data, std::int64_t count) = 0;
  /// Of the plan.
  virtual Statistics statistics() const = 0;
  /// Of applies to so many columns.
  virtual std::size_t workspace_bytes(std::int64_t columns) const = 0;
};

/// y := alpha op(A) x + beta y, with vectors or matrices.
class AnyProduct : public AnyPlan {
 public:
  /// @throw as SpmvPlan::apply and SpmmPlan::apply
  virtual void apply(void* stream, Op op, double alpha, const Array& x, double beta, const Array& y) const = 0;
};

/// p := alpha <x_i, y_j> [* s_ij] + beta p.
class AnySddmm : public AnyPlan {
 public:
  /// @throw as SddmmPlan::apply
  virtual void apply(void* stream, Op op_y, double alpha, const Array& x, const Array& y, double beta,
                     const Array& p) const = 0;
};

/// o := softmax(scale q k^T [+ A] [* A]) v on the pattern of A, and its gradients.
class AnyAttention : public AnyPlan {
 public:
  /// What the backward pass reads of the forward pass, and what it writes.
  struct Gradients {
    const Array *o, *lse, *d_o;    ///< read
    const Array *d_q, *d_k, *d_v;  ///< written
    const Array* d_values;         ///< written; null: not wanted
  };
  /// @param lse  null: not wanted  @throw as AttentionPlan::apply; NotSupported  operands of other types
  virtual void apply(void* stream, double scale, const Array& q, const Array& k, const Array& v, const Array& o,
                     const Array* lse) const = 0;
  /// @throw as AttentionPlan::backward; NotSupported  operands of other types
  virtual void backward(void* stream, double scale, const Array& q, const Array& k, const Array& v,
                        const Gradients& g) const = 0;
};

/// C := A B, once: in two phases, so that the caller can allocate C in between, or in one.
class AnySpgemm {
 public:
  virtual ~AnySpgemm() = default;
  /// Writes rows + 1 offsets as wide as A's. @return entries of C
  virtual std::int64_t symbolic(void* stream, void* indptr) = 0;
  /// Writes as many columns of 32 bits and numbers.
  virtual void numeric(void* stream, const void* indptr, void* indices, void* data) const = 0;
  /// Entries that C has at most, where both phases may be one; else -1.
  virtual std::int64_t most() const = 0;
  /// Both phases, in place of them, into arrays for most() entries. @return entries of C
  virtual std::int64_t once(void* stream, void* indptr, void* indices, void* data) = 0;
  /// Of the plan.
  virtual Statistics statistics() const = 0;
};

/// @throw as the constructors of the plans; NotSupported also for offsets of 64 bits with 16-bit numbers
std::unique_ptr<AnyProduct> make_spmv(void* stream, const AnyCsr& A, const PlanOptions& options);
/// See make_spmv.
std::unique_ptr<AnyProduct> make_spmm(void* stream, const AnyCsr& A, const PlanOptions& options);
/// See make_spmv.
std::unique_ptr<AnySddmm> make_sddmm(void* stream, const AnyCsr& S, const PlanOptions& options);
/// See make_spmv; offsets have 32 bits.
std::unique_ptr<AnyAttention> make_attention(void* stream, const AnyCsr& A, const PlanOptions& options);
/// See make_spmv; A and B have the same types.
std::unique_ptr<AnySpgemm> make_spgemm(void* stream, const AnyCsr& A, const AnyCsr& B, const PlanOptions& options);

/// y := softmax of the rows of x, numbers of the entries of a pattern; of A only rows, nnz and indptr count.
/// @throw as Tessera::row_softmax; NotSupported  x and y of two types
void row_softmax(void* stream, const AnyCsr& A, const Array& x, const Array& y);
/// dx from dy and the result y. @throw as Tessera::row_softmax_backward; NotSupported  of several types
void row_softmax_backward(void* stream, const AnyCsr& A, const Array& y, const Array& dy, const Array& dx);

/// @throw InvalidArgument  the fault and its place, as Tessera::validate finds it
void check_csr(void* stream, const AnyCsr& A);

/// DLPack's kinds of devices.
enum class DeviceKind : int { Host = 1, Cuda = 2, Rocm = 10 };

/// Where this build's plans run.
struct BuildFacts {
  DeviceKind device = DeviceKind::Host;
  std::string space;        ///< Kokkos' name of the execution space
  bool one_thread = false;  ///< of the host may call Kokkos: the one that initialised it
};
/// Of this build; needs no initialisation.
BuildFacts build_facts();

/// Initialises Kokkos unless the process has done so. 0 threads, device -1: Kokkos' own choice.
void initialize_kokkos(int threads, int device);
/// Whether Kokkos is usable, whoever initialised it.
bool kokkos_initialized();
/// Undoes initialize_kokkos; nothing if Kokkos was there before.
void finalize_kokkos();
/// Of the device that plans run on, 0 on hosts.
int device_id();
/// Of the execution space.
int concurrency();
/// Waits for what is on the stream.
void fence(void* stream);

}  // namespace Python
}  // namespace Tessera

#endif
