// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPGEMM_SPGEMM_BODY_HPP
#define TESSERA_SPGEMM_SPGEMM_BODY_HPP

#include <algorithm>
#include <limits>
#include <string>

#include "Tessera_Statistics.hpp"
#include "core/Tessera_Arena.hpp"
#include "core/Tessera_Backends.hpp"
#include "core/Tessera_Plan.hpp"
#include "core/Tessera_Selection.hpp"
#include "spgemm/Tessera_SpgemmBinned.hpp"
#include "spgemm/Tessera_SpgemmDia.hpp"
#include "spgemm/Tessera_SpgemmEll.hpp"
#include "spgemm/Tessera_SpgemmHash.hpp"
#include "spgemm/Tessera_SpgemmHost.hpp"
#include "spgemm/Tessera_SpgemmLongRows.hpp"
#include "spgemm/Tessera_SpgemmMerge.hpp"
#include "spgemm/Tessera_SpgemmNative.hpp"
#include "spgemm/Tessera_SpgemmRules.hpp"
#include "spgemm/Tessera_SpgemmSpa.hpp"

namespace Tessera {
namespace Impl {

struct SpgemmSumCounts {
  const std::int32_t* count;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t row, std::int64_t& sum) const { sum += count[row]; }
};
/// Over the rows and one more.
template <class Offset>
struct SpgemmOffsets {
  using value_type = std::int64_t;
  const std::int32_t* count;
  std::int64_t rows;
  Offset* row_map;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t row, std::int64_t& sum, const bool final) const {
    if (final) row_map[row] = static_cast<Offset>(sum);
    if (row < rows) sum += count[row];
  }
};

/// The backend whose pool of memory this space uses, or null: a View of Kokkos costs a device two waits.
template <class Exec>
const KernelTable* spgemm_pool() {
  if constexpr (Compat::is_host_v<Exec>) return nullptr;
  try {
    return &kernel_table(natural_backend<Exec>());
  } catch (const NotCompiled&) {
    return nullptr;
  } catch (const NotSupported&) {  // by this device
    return nullptr;
  }
}

/// The work of SpgemmPlan, for the matrix types that plans are compiled for. How one is made: Tessera_SpgemmSetUp.hpp.
template <class Csr>
class SpgemmBody {
 public:
  using Exec = typename Csr::execution_space;
  using Scalar = typename Csr::value_type;
  using Ordinal = typename Csr::ordinal_type;
  using Offset = typename Csr::size_type;

  /// @param once  both phases follow on this instance, numbers are not updated, and it is gone before the instance is
  SpgemmBody(const Exec& space, const Csr& A, const Csr& B, const SpgemmOptions& options, bool once);

  /// Enqueues what symbolic() needs no row map for, in a plan that multiplies once: the caller can allocate beside it.
  /// Nothing by the methods of hosts.
  /// @return entries that C has at most, if arrays for as many are small enough for finish_once(); else -1
  std::int64_t start_once(const Exec& space);
  /// Bytes of results that may be kept for later calls: what a backend's pool keeps of scratch; 0: none on hosts.
  std::size_t kept_bytes() const;
  /// Both phases, into arrays for as many entries as start_once() said. @return nnz(C)
  std::int64_t finish_once(const Exec& space, Offset* row_map, Ordinal* columns, Scalar* values);
  std::int64_t symbolic(const Exec& space, Offset* row_map);
  void numeric(const Exec& space, const Offset* row_map, Ordinal* columns, Scalar* values);
  /// Other numbers from now on. @throw StalePlan
  void take(const Csr& A, const Csr& B);
  /// Those of C, of the matrices taken.
  void update(const Exec& space, const Offset* row_map, const Ordinal* columns, Scalar* values);

  std::int64_t rows() const { return static_cast<std::int64_t>(A_.rows()); }
  std::int64_t cols() const { return sizes_.cols; }
  /// -1: not known yet.
  std::int64_t nnz() const { return nnz_; }
  std::int64_t products() const { return products_; }
  /// From set-up on, of all phases.
  std::size_t workspace_bytes() const {
    const bool lists = algorithm_ == SpgemmAlgorithm::Binned && backend_ == Backend::Kokkos;
    return threads_.bytes() + native_.most_bytes(once_) + pieces_.most_bytes(once_) + dia_.bytes() + ell_.bytes() +
           (lists ? binned_.most_bytes(rows(), products_) : 0);
  }
  SpgemmAlgorithm algorithm() const { return algorithm_; }
  Statistics statistics() const;

 private:
  [[noreturn]] void refuse_on_devices(const Exec& space);
  bool look_natively(const Exec& space, const BackendSelection<Exec>& place, const SpgemmOptions& options);
  /// Takes pieces_ instead of native_ where A has few, long rows. @param piece  entries; 0: it has not
  bool cut_rows(const Exec& space, const KernelTable& backend, SpgemmTiles tiles, std::int64_t piece);
  void look(const Exec& space);
  void choose(const Exec& space, const SpgemmOptions& options);
  SpgemmAlgorithm decide(const Exec& space, const SpgemmOptions& options);
  bool has_format() const { return algorithm_ == SpgemmAlgorithm::Dia || algorithm_ == SpgemmAlgorithm::Ell; }
  /// @param most_pairs  of diagonals, for Dia
  void make_format(const Exec& space, const SpgemmOptions& options,
                   double most_pairs = std::numeric_limits<double>::infinity());
  /// @param write  the columns of C; else they are read
  void multiply_formats(const Exec& space, const Offset* row_map, Ordinal* columns, bool write, Scalar* values);
  void make_words(const Exec& space);
  static void require_fits(std::int64_t entries);
  /// Bytes of a thread.
  template <class Method>
  std::size_t scratch_of() const {
    ScratchLayout scratch;
    const Method counted(scratch, sizes_);
    return scratch.bytes();
  }
  std::size_t scratch_of_method() const {
    std::size_t each = 0;
    with_method([&](auto method) { each = scratch_of<typename decltype(method)::type>(); });
    return each;
  }
  SpgemmMatrices<Csr> matrices() const {
    return {A_, B_, sorted_, before_.data(), {first_word_.data(), word_.data(), word_bits_.data()}};
  }
  template <class Row>
  void run(const char* label, const Exec& space, const Row& row);
  template <class F>
  void with_method(const F& f) const;

  Csr A_, B_;
  bool once_;
  template <class T>
  using View = Kokkos::View<T*, Kokkos::LayoutLeft, typename Csr::memory_space>;
  std::shared_ptr<void> storage_, counts_;  ///< of what is per row
  typename Arena<typename Csr::memory_space>::template View<std::int64_t> before_;
  typename Arena<typename Csr::memory_space>::template View<std::int32_t> count_;
  View<std::int64_t> first_word_;
  View<std::uint32_t> word_;
  View<std::uint64_t> word_bits_;
  std::int64_t words_ = 0;  ///< of B
  SpgemmSizes sizes_;
  std::int64_t products_ = 0;
  bool sorted_ = true;
  SpgemmBinned<Csr> binned_;
  SpgemmNative<Csr> native_;
  SpgemmLongRows<Csr> pieces_;  ///< instead of native_, for A of few, long rows
  SpgemmDia<Csr> dia_;
  SpgemmEll<Csr> ell_;
  Backend backend_ = Backend::Kokkos;  ///< else native_ is what Binned is
  SpgemmAlgorithm algorithm_ = SpgemmAlgorithm::Auto;
  std::string why_;
  Shares shares_;
  SpgemmThreads<Exec> threads_;
  std::int64_t nnz_ = -1;
  double setup_seconds_ = 0;
};

template <class Csr>
void SpgemmBody<Csr>::multiply_formats(const Exec& space, const Offset* row_map, Ordinal* columns, bool write,
                                       Scalar* values) {
  if (algorithm_ == SpgemmAlgorithm::Dia) {
    dia_.numeric(space, A_, B_, row_map, write ? columns : nullptr, values);
  } else {
    ell_.numeric(space, A_, B_, row_map, columns, write, values);
  }
  Compat::fence(space, "Tessera::spgemm formats");
}

/// f(SpgemmMethod of the method).
template <class Csr>
template <class F>
void SpgemmBody<Csr>::with_method(const F& f) const {
  switch (algorithm_) {
    case SpgemmAlgorithm::Hash:
      return f(SpgemmMethod<SpgemmHash<Csr>>{});
    case SpgemmAlgorithm::Heap:
      return f(SpgemmMethod<SpgemmHeap<Csr>>{});
    case SpgemmAlgorithm::Coo:
      return f(SpgemmMethod<SpgemmCoo<Csr>>{});
    default:
      return f(SpgemmMethod<SpgemmSpa<Csr>>{});
  }
}

template <class Csr>
template <class Row>
void SpgemmBody<Csr>::run(const char* label, const Exec& space, const Row& row) {
  if (products_ == 0 && rows() == 0) return;
  with_method([&](auto method) {
    threads_.template run<typename decltype(method)::type>(label, space, matrices(), sizes_, shares_, row);
  });
}

template <class Csr>
void SpgemmBody<Csr>::require_fits(std::int64_t entries) {
  require<NotSupported>(entries <= spgemm_most_entries<Offset>(), [&] {
    return "spgemm: C has " + std::to_string(entries) +
           " entries, more than offsets of 32 bits may count: use 64-bit offsets";
  });
}

template <class Csr>
std::size_t SpgemmBody<Csr>::kept_bytes() const {
  if (Compat::is_host_v<Exec> && backend_ == Backend::Kokkos) return 0;
  const KernelTable* const pool = backend_ != Backend::Kokkos ? &kernel_table(backend_) : spgemm_pool<Exec>();
  DeviceFacts facts;
  if (pool == nullptr || !pool->runtime.device_facts(facts).ok()) facts.memory_bytes = 0;
  return std::max(std::size_t{256} << 20, facts.memory_bytes / 32);
}

template <class Csr>
std::int64_t SpgemmBody<Csr>::start_once(const Exec& space) {
  if (Compat::is_host_v<Exec> && backend_ == Backend::Kokkos) {
    const bool rows_in_order = algorithm_ != SpgemmAlgorithm::Binned && !has_format() && threads_.count() == 1;
    return rows_in_order && spgemm_may_reserve<Scalar, Ordinal, Offset>(products_) ? products_ : -1;
  }
  if constexpr (SpgemmNative<Csr>::possible) {
    if (backend_ == Backend::Kokkos || pieces_.used() || native_.batched()) return -1;
    native_.find(space, true);
    const auto most = static_cast<std::size_t>(native_.most_entries());
    if (most <= spgemm_little / (sizeof(Ordinal) + sizeof(Scalar))) return native_.most_entries();
  }
  return -1;
}
template <class Csr>
std::int64_t SpgemmBody<Csr>::finish_once(const Exec& space, Offset* row_map, Ordinal* columns, Scalar* values) {
  const Compat::ScopedRegion region("Tessera::spgemm once");
  if constexpr (Compat::is_host_v<Exec>) {
    if (backend_ == Backend::Kokkos) {
      row_map[0] = 0;
      run("Tessera::spgemm once", space, SpgemmOnceRow<Csr>{row_map, columns, values});
      return nnz_ = static_cast<std::int64_t>(row_map[rows()]);
    }
  }
  if constexpr (SpgemmNative<Csr>::possible) nnz_ = native_.finish(space, row_map, columns, values);
  Compat::fence(space, "Tessera::spgemm once");
  return nnz_;
}

template <class Csr>
std::int64_t SpgemmBody<Csr>::symbolic(const Exec& space, Offset* row_map) {
  const Compat::ScopedRegion region("Tessera::spgemm symbolic");
  nnz_ = -1;  // until it is known again: if this throws, nothing is left of what was found before
  if constexpr (SpgemmNative<Csr>::possible) {
    if (backend_ != Backend::Kokkos) {
      const std::int64_t entries =
          pieces_.used() ? pieces_.symbolic(space, row_map, once_) : native_.symbolic(space, row_map);
      if (!once_) Compat::fence(space, "Tessera::spgemm symbolic");
      require_fits(entries);
      return nnz_ = entries;
    }
  }
  const auto range = [&](std::int64_t n) {
    return Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(space, 0, n);
  };
  View<std::int32_t> owner;  // of the counts
  const std::int32_t* count = count_.data();
  std::int64_t sum = 0;
  if (algorithm_ == SpgemmAlgorithm::Binned) {
    sum = binned_.count(space, A_, B_, before_.data(), count_.data());
  } else if (has_format()) {
    algorithm_ == SpgemmAlgorithm::Dia ? dia_.count(space, count_.data()) : ell_.count(space, count_.data());
    Kokkos::parallel_reduce("Tessera::spgemm entries", range(rows()), SpgemmSumCounts{count}, sum);
    Compat::fence(space, "Tessera::spgemm entries");
  } else if constexpr (Compat::is_host_v<Exec>) {
    owner = Compat::allocate<View<std::int32_t>>(space, "Tessera::spgemm entries", static_cast<std::size_t>(rows()));
    count = owner.data();
    run("Tessera::spgemm symbolic", space, SpgemmCountRow<Csr>{owner.data()});
    Kokkos::parallel_reduce("Tessera::spgemm entries", range(rows()), SpgemmSumCounts{count}, sum);
  }
  require_fits(sum);
  nnz_ = sum;
  Kokkos::parallel_scan("Tessera::spgemm offsets", range(rows() + 1), SpgemmOffsets<Offset>{count, rows(), row_map});
  Compat::fence(space, "Tessera::spgemm: counts are released");
  return nnz_;
}

template <class Csr>
void SpgemmBody<Csr>::numeric(const Exec& space, const Offset* row_map, Ordinal* columns, Scalar* values) {
  if (backend_ != Backend::Kokkos) {
    if constexpr (SpgemmNative<Csr>::possible) {
      pieces_.used() ? pieces_.numeric(space, A_, B_, row_map, columns, values)
                     : native_.numeric(space, row_map, columns, values);
    }
    Compat::fence(space, "Tessera::spgemm numeric");
  } else if (algorithm_ == SpgemmAlgorithm::Binned) {
    binned_.fill(space, A_, B_, row_map, columns);
    binned_.update(space, A_, B_, row_map, columns, values);
    Compat::fence(space, "Tessera::spgemm numeric");
  } else if (has_format()) {
    multiply_formats(space, row_map, columns, true, values);
  } else if constexpr (Compat::is_host_v<Exec>) {
    run("Tessera::spgemm numeric", space, SpgemmFillRow<Csr>{row_map, columns, values});
  }
}

template <class Csr>
void SpgemmBody<Csr>::take(const Csr& A, const Csr& B) {
  require<StalePlan>(same_pattern(A, A_) && same_pattern(B, B_), [] {
    return std::string("spgemm: the matrices have other sizes or other pattern arrays than the plan was made for");
  });
  A_ = A;
  B_ = B;
}

template <class Csr>
void SpgemmBody<Csr>::update(const Exec& space, const Offset* row_map, const Ordinal* columns, Scalar* values) {
  if (backend_ != Backend::Kokkos) {
    if constexpr (SpgemmNative<Csr>::possible) {
      pieces_.used() ? pieces_.update(space, A_, B_, row_map, columns, values)
                     : native_.update(space, A_, B_, row_map, columns, values);
    }
    Compat::fence(space, "Tessera::spgemm update");
  } else if (algorithm_ == SpgemmAlgorithm::Binned) {
    binned_.update(space, A_, B_, row_map, columns, values);
    Compat::fence(space, "Tessera::spgemm update");
  } else if (has_format()) {
    multiply_formats(space, row_map, const_cast<Ordinal*>(columns), false, values);  // which are read
  } else if constexpr (Compat::is_host_v<Exec>) {
    run("Tessera::spgemm update", space, SpgemmUpdateRow<Csr>{row_map, columns, values});
  }
}

template <class Csr>
Statistics SpgemmBody<Csr>::statistics() const {
  Statistics s;
  s.operation = "spgemm";
  s.algorithm = to_string(algorithm_);
  s.backend = to_string(backend_);
  s.compute = to_string(ScalarTraits<Scalar>::precision);
  s.device = Exec::name();
  s.why = why_;
  s.rows = rows();
  s.cols = cols();
  s.nnz = s.stored = std::max<std::int64_t>(nnz_, 0);
  s.row_mean = s.rows > 0 ? static_cast<double>(s.nnz) / static_cast<double>(s.rows) : 0;
  s.csr_bytes = csr_bytes(A_) + csr_bytes(B_);
  s.format_bytes = s.csr_bytes + 8 * (before_.extent(0) + first_word_.extent(0) + word_bits_.extent(0)) +
                   4 * count_.extent(0) * (has_format() ? 1 : 1 + SpgemmBinned<Csr>::words_per_row) +
                   4 * word_.extent(0) + binned_.bytes() + native_.peak_bytes() + pieces_.peak_bytes() + dia_.bytes() +
                   ell_.bytes();
  s.workspace_bytes = workspace_bytes();
  s.setup_seconds = setup_seconds_;
  if (backend_ != Backend::Kokkos) {
    s.launches = pieces_.used() ? pieces_.launches() : native_.launches();
  } else {
    s.launches = algorithm_ == SpgemmAlgorithm::Binned ? 2 * (SpgemmTables::count + 1) : has_format() ? 3 : 1;
  }
  s.classes = {{"products", s.rows, products_}};
  if constexpr (SpgemmNative<Csr>::possible) {
    if (native_.windows() > 0) s.classes.push_back({"windows on matrix units", native_.windows(), 0});
  }
  return s;
}

}  // namespace Impl
}  // namespace Tessera

#endif
