// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPGEMM_SPGEMM_HOST_HPP
#define TESSERA_SPGEMM_SPGEMM_HOST_HPP

#include <algorithm>
#include <atomic>
#include <string>

#include "core/Tessera_PlanScratch.hpp"
#include "core/Tessera_Shares.hpp"
#include "spgemm/Tessera_SpgemmRow.hpp"
#include "spgemm/Tessera_SpgemmRules.hpp"

/// \file
/// The rows of a product on the threads of a host: each thread has scratch of its own and takes shares of equal numbers
/// of products while there are some.

namespace Tessera {
namespace Impl {

/// A method, as the argument of a function.
template <class T>
struct SpgemmMethod {
  using type = T;
};

/// Entries of each row of C.
template <class Csr>
struct SpgemmCountRow {
  std::int32_t* count;
  template <class Method>
  void prepare(Method& method) const {
    method.prepare_count();
  }
  template <class Method>
  void operator()(Method& method, const SpgemmMatrices<Csr>& m, std::int64_t row) const {
    count[row] = static_cast<std::int32_t>(method.count(m, row));
  }
};
template <class Csr>
struct SpgemmFillRow {
  const typename Csr::size_type* row_map;
  typename Csr::ordinal_type* columns;
  typename Csr::value_type* values;
  template <class Method>
  void prepare(Method& method) const {
    method.prepare_sums();
  }
  template <class Method>
  void operator()(Method& method, const SpgemmMatrices<Csr>& m, std::int64_t row) const {
    method.fill(m, row, columns + row_map[row], values + row_map[row]);
  }
};
/// Where one thread goes through the rows in their order, the places of each row are known when its turn comes, and
/// nothing has to be counted before. row_map[0] is 0.
template <class Csr>
struct SpgemmOnceRow {
  typename Csr::size_type* row_map;
  typename Csr::ordinal_type* columns;
  typename Csr::value_type* values;
  template <class Method>
  void prepare(Method& method) const {
    method.prepare_sums();
  }
  template <class Method>
  void operator()(Method& method, const SpgemmMatrices<Csr>& m, std::int64_t row) const {
    const auto first = row_map[row];
    const std::int64_t n = method.fill(m, row, columns + first, values + first);
    row_map[row + 1] = first + static_cast<typename Csr::size_type>(n);
  }
};
template <class Csr>
struct SpgemmUpdateRow {
  const typename Csr::size_type* row_map;
  const typename Csr::ordinal_type* columns;
  typename Csr::value_type* values;
  template <class Method>
  void prepare(Method& method) const {
    method.prepare_sums();
  }
  template <class Method>
  void operator()(Method& method, const SpgemmMatrices<Csr>& m, std::int64_t row) const {
    const auto n = static_cast<std::int64_t>(row_map[row + 1] - row_map[row]);
    method.update(m, row, columns + row_map[row], n, values + row_map[row]);
  }
};

template <class Csr, class Method, class Row>
struct SpgemmWorker {
  SpgemmMatrices<Csr> matrices;
  SpgemmSizes sizes;
  Row row_of;
  Shares shares;
  char* scratch;
  std::size_t scratch_bytes;  ///< of a thread
  std::atomic<std::int64_t>* next;

  void operator()(const std::int64_t worker) const {
    char* const own = scratch + static_cast<std::size_t>(worker) * scratch_bytes;
    ScratchLayout cut(own);
    Method method(cut, sizes);
    row_of.prepare(method);
    // Rows without products are work, too.
    const auto work_before = [this](std::int64_t i) { return matrices.before[i] + i; };
    for (std::int64_t share = next->fetch_add(1); share < shares.count; share = next->fetch_add(1)) {
      const std::int64_t end = shares.begin(share + 1, work_before);
      for (std::int64_t row = shares.begin(share, work_before); row < end; ++row) row_of(method, matrices, row);
    }
  }
};

/// What a method needs, for refusals.
inline std::string spgemm_needed(SpgemmAlgorithm method, std::size_t each, std::size_t threads) {
  return std::string(to_string(method)) + " needs " + std::to_string(each) + " bytes of scratch per thread, " +
         std::to_string(spgemm_times(each, threads)) + " for all " + std::to_string(threads);
}

/// Scratch of all threads, kept from call to call.
template <class Exec>
class SpgemmThreads {
 public:
  /// @param each  bytes of a thread  @param most  of all; 0: no limit
  /// @throw NotSupported  one thread needs more
  void set_up(const Exec& space, SpgemmAlgorithm method, std::size_t each, std::size_t most, std::int64_t shares) {
    each_ = each;
    count_ = std::max<std::int64_t>(1, std::min<std::int64_t>(shares, space.concurrency()));
    require<NotSupported>(most == 0 || each <= most, [&] {
      return "spgemm: " + spgemm_needed(method, each, static_cast<std::size_t>(count_)) + ", max_workspace_bytes is " +
             std::to_string(most);
    });
    if (most > 0 && each > 0) count_ = std::min<std::int64_t>(count_, static_cast<std::int64_t>(most / each));
  }
  std::size_t bytes() const { return each_ * static_cast<std::size_t>(count_); }
  std::int64_t count() const { return count_; }

  template <class Method, class Csr, class Row>
  void run(const std::string& label, const Exec& space, const SpgemmMatrices<Csr>& m, const SpgemmSizes& sizes,
           const Shares& shares, const Row& row) {
    std::atomic<std::int64_t> next{0};
    const SpgemmWorker<Csr, Method, Row> worker{m, sizes, row, shares, scratch_.reserve(space, bytes()), each_, &next};
    Kokkos::parallel_for(label, Kokkos::RangePolicy<Exec, Kokkos::Schedule<Kokkos::Static>>(space, 0, count_), worker);
    Compat::fence(space, label);  // `next` must not go before
  }

 private:
  PlanScratch<Exec, typename Exec::memory_space> scratch_;
  std::size_t each_ = 0;
  std::int64_t count_ = 1;
};

}  // namespace Impl
}  // namespace Tessera

#endif
