// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPGEMM_SPGEMM_BODY_HPP
#define TESSERA_SPGEMM_SPGEMM_BODY_HPP

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "Tessera_Device.hpp"
#include "Tessera_Statistics.hpp"
#include "core/Tessera_Arena.hpp"
#include "core/Tessera_Backends.hpp"
#include "core/Tessera_HugePages.hpp"
#include "core/Tessera_Plan.hpp"
#include "core/Tessera_Selection.hpp"
#include "spgemm/Tessera_SpgemmBinned.hpp"
#include "spgemm/Tessera_SpgemmChoice.hpp"
#include "spgemm/Tessera_SpgemmDia.hpp"
#include "spgemm/Tessera_SpgemmEll.hpp"
#include "spgemm/Tessera_SpgemmHash.hpp"
#include "spgemm/Tessera_SpgemmHost.hpp"
#include "spgemm/Tessera_SpgemmLongRows.hpp"
#include "spgemm/Tessera_SpgemmLook.hpp"
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

/// The work of SpgemmPlan, for the matrix types that plans are compiled for.
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
  void update(const Exec& space, const Csr& A, const Csr& B, const Offset* row_map, const Ordinal* columns,
              Scalar* values);

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
SpgemmBody<Csr>::SpgemmBody(const Exec& space, const Csr& A, const Csr& B, const SpgemmOptions& options, bool once)
    : A_(A), B_(B), once_(once) {
  const auto begin = std::chrono::steady_clock::now();
  const Compat::ScopedRegion region("Tessera::spgemm setup");
  require<DimensionMismatch>(static_cast<std::int64_t>(A.cols()) == static_cast<std::int64_t>(B.rows()), [&] {
    return "spgemm: A must have as many columns as B has rows; A is " + std::to_string(A.rows()) + " x " +
           std::to_string(A.cols()) + ", B is " + std::to_string(B.rows()) + " x " + std::to_string(B.cols());
  });
  algorithm_ = options.algorithm != SpgemmAlgorithm::Auto ? options.algorithm : forced_spgemm_algorithm();
  const bool asked = algorithm_ != SpgemmAlgorithm::Auto;
  const BackendSelection<Exec> place(options.backend);
  place.check_place();
  if (!asked && (!Compat::is_host_v<Exec> || place.emulated())) algorithm_ = SpgemmAlgorithm::Binned;
  require<NotSupported>(options.backend == Backend::Auto || options.backend == Backend::Kokkos ||
                            (algorithm_ == SpgemmAlgorithm::Binned && options.backend != Backend::Reference),
                        [&] {
                          return std::string("spgemm: ") + to_string(algorithm_) + " has no backend '" +
                                 to_string(options.backend) + "': Binned has those of devices and emulated ones";
                        });
  if (!Compat::is_host_v<Exec> && algorithm_ != SpgemmAlgorithm::Binned && !has_format()) refuse_on_devices(space);
  why_ = std::string(to_string(algorithm_)) + (asked ? " was asked for" : " is what devices have, emulated or not");
  if (!look_natively(space, place, options)) {
    look(space);
    choose(space, options);
  }
  if (!asked && !Compat::is_host_v<Exec>) {
    decide(space, options);
    if (has_format()) {
      native_ = SpgemmNative<Csr>();
      pieces_ = SpgemmLongRows<Csr>();
      backend_ = Backend::Kokkos;
    }
  }
  setup_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (verbose()) {
    std::fprintf(stderr, "Tessera: spgemm, %lld products: %s\n", static_cast<long long>(products()), why_.c_str());
  }
}

/// A method of hosts, with the memory that it would take.
template <class Csr>
void SpgemmBody<Csr>::refuse_on_devices(const Exec& space) {
  look(space);
  throw NotSupported(
      "spgemm: " + spgemm_needed(algorithm_, scratch_of_method(), static_cast<std::size_t>(space.concurrency())) +
      " that run at once here: it runs on host execution spaces, these matrices live on " + Exec::name() +
      "; ask for Binned");
}

/// Whether a backend does what Binned is.
template <class Csr>
bool SpgemmBody<Csr>::look_natively(const Exec& space, const BackendSelection<Exec>& place,
                                    const SpgemmOptions& options) {
  if constexpr (SpgemmNative<Csr>::possible) {
    if (algorithm_ != SpgemmAlgorithm::Binned || place.forced() == Backend::Kokkos) return false;
    if (!place.emulated() && (place.host() || !place.why_not().empty())) return false;
    const KernelTable& backend = kernel_table(place.backend());
    const bool may_cut = options.max_workspace_bytes == 0;
    bool cut = may_cut && cut_rows(space, backend, options.tiles, spgemm_piece_by_sizes(A_, B_));
    if (!cut) {
      native_ = SpgemmNative<Csr>(space, backend, A_, B_, options.max_workspace_bytes, options.tiles,
                                  once_ ? Lifetime::Temporary : Lifetime::Plan);
      const std::int64_t piece = may_cut ? native_.wanted_piece(static_cast<std::int64_t>(B_.cols())) : 0;
      if (piece > 0) native_ = SpgemmNative<Csr>();  // before others are there
      cut = cut_rows(space, backend, options.tiles, piece);
    }
    // Its lists may not be complete, and phases may come on other instances.
    if (!once_) Compat::fence(space, "Tessera::spgemm look");
    sizes_.cols = static_cast<std::int64_t>(B_.cols());
    products_ = cut ? pieces_.products() : native_.products();
    if (!(cut ? pieces_.ordered() : native_.ordered())) {
      why_ += ", columns of B descend or repeat: by Kokkos";
      native_ = SpgemmNative<Csr>();
      pieces_ = SpgemmLongRows<Csr>();
      return false;
    }
    backend_ = place.backend();
    if (cut) why_ += ", rows of A in pieces of " + std::to_string(pieces_.piece()) + " entries";
    return true;
  }
  return false;
}

template <class Csr>
bool SpgemmBody<Csr>::cut_rows(const Exec& space, const KernelTable& backend, SpgemmTiles tiles, std::int64_t piece) {
  if (piece == 0) return false;
  pieces_ = SpgemmLongRows<Csr>(space, backend, A_, B_, piece, tiles, once_ ? Lifetime::Temporary : Lifetime::Plan);
  return true;
}

template <class Csr>
void SpgemmBody<Csr>::look(const Exec& space) {
  const auto range = [&](std::int64_t n) {
    return Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(space, 0, n);
  };
  const auto n_rows = static_cast<std::size_t>(rows());
  const bool binned = algorithm_ == SpgemmAlgorithm::Binned;
  std::int32_t* lists = nullptr;
  const KernelTable* const pool = spgemm_pool<Exec>();
  storage_ = Arena<typename Csr::memory_space>::make(
      space, pool, "Tessera::spgemm rows", Lifetime::Plan, [&](Arena<typename Csr::memory_space>& arena) {
        before_ = arena.template take<std::int64_t>(n_rows + 1);
        if (!binned) return;
        count_ = arena.template take<std::int32_t>(n_rows);
        lists = arena.template take<std::int32_t>(n_rows * SpgemmBinned<Csr>::words_per_row).data();
      });
  const SpgemmLook<Csr> base{CsrArrays<Csr>(A_), CsrArrays<Csr>(B_), before_.data()};
  sizes_.cols = static_cast<std::int64_t>(B_.cols());
  Kokkos::parallel_reduce("Tessera::spgemm products", range(rows()), SpgemmProducts<Csr>(base),
                          Kokkos::Max<std::int64_t>(sizes_.products), Kokkos::Max<std::int64_t>(sizes_.entries));
  if (rows() > 0) {
    Kokkos::parallel_scan("Tessera::spgemm products", range(rows() + 1), SpgemmSumProducts{before_.data()}, products_);
  }
  std::int64_t descents = 0, copies = 0, starts[3] = {};
  const auto n = static_cast<std::int64_t>(B_.nnz());
  const SpgemmOrder<Csr> order(base, n);
  if constexpr (Compat::is_host_v<Exec>) {
    Kokkos::parallel_reduce("Tessera::spgemm order", range((n + order.piece - 1) / order.piece), order, descents,
                            copies, words_);
    Kokkos::parallel_reduce("Tessera::spgemm row starts", range(static_cast<std::int64_t>(B_.rows())),
                            SpgemmRowStarts<Csr>(base), starts[0], starts[1], starts[2]);
  } else {
    Kokkos::parallel_reduce("Tessera::spgemm order", range(std::max<std::int64_t>(n, B_.rows())),
                            SpgemmOrderOfRows<Csr>{order, SpgemmRowStarts<Csr>(base)}, descents, copies, words_);
  }
  Compat::fence(space, "Tessera::spgemm");
  // Of no rows the most is no number.
  sizes_.products = std::max<std::int64_t>(sizes_.products, 0);
  sizes_.entries = std::max<std::int64_t>(sizes_.entries, 0);
  words_ += starts[2];
  sorted_ = descents + starts[0] == 0;
  if (binned) binned_ = SpgemmBinned<Csr>(B_, sorted_ && copies + starts[1] == 0, sorted_, lists, pool);
}

template <class Csr>
void SpgemmBody<Csr>::make_words(const Exec& space) {
  if constexpr (Compat::is_host_v<Exec>) {
    const auto rows_of_b = static_cast<std::size_t>(B_.rows()), n = static_cast<std::size_t>(words_);
    first_word_ = allocate_large<View<std::int64_t>>("Tessera::spgemm rows of words", rows_of_b + 1);
    word_ = allocate_large<View<std::uint32_t>>("Tessera::spgemm words", n);
    word_bits_ = allocate_large<View<std::uint64_t>>("Tessera::spgemm bits", n);
    SpgemmMakeWords<Csr> make(SpgemmLook<Csr>{CsrArrays<Csr>(A_), CsrArrays<Csr>(B_), nullptr});
    make.first_word = first_word_.data();
    make.word = word_.data();
    make.bits = word_bits_.data();
    Kokkos::parallel_scan(
        "Tessera::spgemm words",
        Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(space, 0, static_cast<std::int64_t>(rows_of_b) + 1),
        make);
  }
}

template <class Csr>
void SpgemmBody<Csr>::choose(const Exec& space, const SpgemmOptions& options) {
  if (algorithm_ == SpgemmAlgorithm::Binned) {
    why_ += ", " + std::to_string(binned_.lanes()) + " lanes per row";
    return;
  }
  if (has_format()) return make_format(space, options);
  if constexpr (Compat::is_host_v<Exec>) {
    shares_ = Shares::of(space, rows(), products_ + rows(), 5000, 200000);
    const auto threads = static_cast<std::size_t>(std::min<std::int64_t>(shares_.count, space.concurrency()));
    if (algorithm_ == SpgemmAlgorithm::Auto) {
      const SpgemmAlgorithm wanted = decide(space, options);
      if (has_format()) return;
      const std::string model = why_;
      const SpgemmScratchBytes all{threads * scratch_of<SpgemmSpa<Csr>>(), threads * scratch_of<SpgemmHash<Csr>>()};
      algorithm_ = predict_spgemm(all, csr_bytes(A_) + csr_bytes(B_), options.max_workspace_bytes, wanted, why_);
      why_ += "; " + model;
    }
    const std::size_t each = scratch_of_method();
    require<NotSupported>(sorted_ || algorithm_ != SpgemmAlgorithm::Heap, [&] {
      return "spgemm: Heap merges rows of B, and the columns of some descend: sort them, or use Spa (" +
             spgemm_needed(algorithm_, each, threads) + ")";
    });
    const auto limit = static_cast<std::int64_t>(std::numeric_limits<std::uint32_t>::max());
    require<NotSupported>(algorithm_ != SpgemmAlgorithm::Coo || sizes_.products < limit, [&] {
      return "spgemm: Coo counts the products of a row in 32 bits, one has " + std::to_string(sizes_.products) +
             ": use Spa or Hash (" + spgemm_needed(algorithm_, each, threads) + ")";
    });
    if (algorithm_ == SpgemmAlgorithm::Spa) sizes_.scattered = spgemm_scattered(A_, B_);
    // Rows of few products do without words.
    if (algorithm_ == SpgemmAlgorithm::Spa && sorted_ && 2 * words_ <= static_cast<std::int64_t>(B_.nnz()) &&
        products_ > spgemm_short_products * rows()) {
      make_words(space);
    }
    threads_.set_up(space, algorithm_, each, options.max_workspace_bytes, shares_.count);
  }
}

/// By a model, which may take a format if there is room for it. @return what the model wants
template <class Csr>
SpgemmAlgorithm SpgemmBody<Csr>::decide(const Exec& space, const SpgemmOptions& options) {
  const SpgemmVerdict verdict =
      spgemm_decide(space, pattern_of(A_), pattern_of(B_), products_, options.model, spgemm_pool<Exec>());
  const std::string why = std::exchange(why_, verdict.why);
  const SpgemmAlgorithm before = std::exchange(algorithm_, verdict.algorithm);
  if (has_format()) {
    sizes_.entries = std::max(sizes_.entries, verdict.longest);  // a backend did not look at it
    try {
      make_format(space, options, verdict.most_pairs);
      return algorithm_;
    } catch (const NotSupported& refusal) {
      dia_ = SpgemmDia<Csr>();
      ell_ = SpgemmEll<Csr>();
      why_ += std::string(", but ") + refusal.what();
    }
  }
  algorithm_ = before;
  if (!Compat::is_host_v<Exec>) why_ = why_ == to_string(before) ? why : why + "; " + why_;
  return verdict.algorithm;
}

template <class Csr>
void SpgemmBody<Csr>::make_format(const Exec& space, const SpgemmOptions& options, double most_pairs) {
  const std::size_t room = spgemm_format_room(csr_bytes(A_) + csr_bytes(B_), options.max_workspace_bytes);
  const KernelTable* const pool = spgemm_pool<Exec>();
  if (algorithm_ == SpgemmAlgorithm::Dia) {
    dia_ = SpgemmDia<Csr>(space, A_, B_, room, pool, most_pairs);
    why_ += ", " + dia_.what();
  } else {
    ell_ = SpgemmEll<Csr>(space, A_, B_, sizes_.entries, room, pool);
    why_ += ", " + ell_.what();
  }
  counts_ = Arena<typename Csr::memory_space>::make(
      space, pool, "Tessera::spgemm entries", Lifetime::Plan,
      [&](auto& arena) { count_ = arena.template take<std::int32_t>(static_cast<std::size_t>(rows())); });
}

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
  require<NotSupported>(
      static_cast<std::uint64_t>(entries) <= static_cast<std::uint64_t>(std::numeric_limits<Offset>::max()), [&] {
        return "spgemm: C has " + std::to_string(entries) +
               " entries, more than offsets of this type count: use 64-bit offsets";
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
void SpgemmBody<Csr>::update(const Exec& space, const Csr& A, const Csr& B, const Offset* row_map,
                             const Ordinal* columns, Scalar* values) {
  require<StalePlan>(same_pattern(A, A_) && same_pattern(B, B_), [] {
    return std::string("spgemm: the matrices have other sizes or other pattern arrays than the plan was made for");
  });
  A_ = A;
  B_ = B;
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
