// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPGEMM_SPGEMM_SET_UP_HPP
#define TESSERA_SPGEMM_SPGEMM_SET_UP_HPP

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>

#include "Tessera_Device.hpp"
#include "core/Tessera_HugePages.hpp"
#include "core/Tessera_Selection.hpp"
#include "spgemm/Tessera_SpgemmBody.hpp"
#include "spgemm/Tessera_SpgemmChoice.hpp"
#include "spgemm/Tessera_SpgemmLook.hpp"
#include "spgemm/Tessera_SpgemmRules.hpp"

/// \file
/// How a SpgemmBody is made: the look at A and B, the choice of an algorithm, formats and words of B.

namespace Tessera {
namespace Impl {

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
  if (!once_) Compat::fence(space, "Tessera::spgemm formats");  // phases may come on other instances
}

}  // namespace Impl
}  // namespace Tessera

#endif
