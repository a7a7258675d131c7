// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMV_CSR5_SPMV_HPP
#define TESSERA_SPMV_CSR5_SPMV_HPP

#include <cmath>
#include <cstdint>

#include "core/Tessera_VectorOperand.hpp"
#include "formats/csr5/Tessera_Csr5.hpp"
#include "spmv/Tessera_CsrSpmv.hpp"

/// \file
/// y := alpha A x + beta y from CSR5, in Kokkos, on every back end. Lanes of a tile sum their entries one after another
/// and store the rows that lie inside a lane; rows across lanes are put together by a segmented sum, rows across tiles
/// by a second kernel from two partial sums per tile.
///
/// Where it differs from the paper: the segmented sum adds what belongs to a row instead of subtracting prefix sums,
/// which would let one row's magnitude, infinity or NaN into another; instead of atomic additions to y the sums of a
/// row are carried in an array and added in the order of the tiles. So each element of y is read and written once.

namespace Tessera {
namespace Impl {

/// What all parts of the product share.
template <class Scalar, class X, class Y>
struct Csr5Product {
  using Sum = AccumulatorOf<Scalar, typename X::non_const_value_type, typename Y::non_const_value_type>;

  Experimental::Csr5Data<Scalar> a;
  X x;
  Y y;
  Sum alpha, beta;

  KOKKOS_INLINE_FUNCTION Sum entry(std::int64_t k) const {
    return widen<Sum>(a.values[k]) * widen<Sum>(x(a.columns[k]));
  }
  KOKKOS_INLINE_FUNCTION void store(std::int64_t row, Sum sum) const { store_scaled(&y(row), alpha, sum, beta); }
  /// Partial sum of the row that comes into a tile from the one before (the tail is the last tile).
  KOKKOS_INLINE_FUNCTION Sum& lead(std::int64_t t) const { return static_cast<Sum*>(a.carries)[t]; }
  /// Partial sum of the row that starts in a tile and goes on in the next.
  KOKKOS_INLINE_FUNCTION Sum& trail(std::int64_t t) const { return static_cast<Sum*>(a.carries)[a.tiles + t]; }

  KOKKOS_INLINE_FUNCTION std::int64_t tile_row(std::int64_t t) const {
    return a.tile_ptr[t] & Experimental::Csr5Shape::row_mask;
  }
  /// A tile in the midst of one row, whose lanes have no flags to look at.
  KOKKOS_INLINE_FUNCTION bool inside_a_row(std::int64_t t) const { return tile_row(t) == tile_row(t + 1); }
  /// Whether a row starts with the tile.
  KOKKOS_INLINE_FUNCTION bool starts(std::int64_t t) const {
    return (a.shape.flags(a.tile_desc, t, 0) & 0x80000000u) != 0;
  }
  /// Row of the segment e + 1 of a tile.
  KOKKOS_INLINE_FUNCTION std::int32_t segment_row(std::int64_t t, std::uint32_t e) const {
    const std::uint32_t pointer = a.tile_ptr[t];
    const auto next = static_cast<std::int32_t>(pointer & Experimental::Csr5Shape::row_mask) + 1;
    return next + ((pointer & Experimental::Csr5Shape::empty_mask) != 0 ? a.empty_offset[a.empty_ptr[t] + e]
                                                                        : static_cast<std::int32_t>(e));
  }

  /// The last segment of a tile, which started in it.
  KOKKOS_INLINE_FUNCTION void finish_last(std::int64_t t, std::int64_t row, Sum sum) const {
    if (a.carry_end[t] != 0) {
      trail(t) = sum;
    } else {
      store(row, sum);
    }
  }
  /// The first segment of a tile; `only`: also its last.
  KOKKOS_INLINE_FUNCTION void finish_first(std::int64_t t, bool only, Sum sum) const {
    if (!starts(t)) {
      lead(t) = sum;
    } else if (only) {
      finish_last(t, tile_row(t), sum);
    } else {
      store(tile_row(t), sum);
    }
  }
  KOKKOS_INLINE_FUNCTION void finish_tail(std::int64_t s, Sum sum) const {
    if (s == 0 && !starts(a.full)) {
      lead(a.full) = sum;
    } else {
      store(a.tail_row[s], sum);
    }
  }
  KOKKOS_INLINE_FUNCTION std::int64_t tail_begin(std::int64_t s) const {
    return s < a.tail_rows ? a.full * a.shape.tile() + a.tail_begin[s] : a.nnz;
  }
};

/// Devices: a team, `groups` tiles or rows of the tail, one lane per thread. What lanes tell each other goes through
/// scratch, so that nothing depends on the width of a wave.
template <class Exec, class Scalar, class X, class Y>
struct Csr5TeamFunctor : Csr5Product<Scalar, X, Y> {
  using Product = Csr5Product<Scalar, X, Y>;
  using Sum = typename Product::Sum;
  using member = typename Kokkos::TeamPolicy<Exec>::member_type;
  using Sums = Kokkos::View<Sum*, typename Exec::scratch_memory_space, Kokkos::MemoryUnmanaged>;
  using Rows = Kokkos::View<std::int32_t*, typename Exec::scratch_memory_space, Kokkos::MemoryUnmanaged>;
  static constexpr int groups = 4;
  static constexpr int empty_per_team = 1024;

  std::int64_t tile_teams, tail_teams;

  Csr5TeamFunctor(const Product& p, bool with_empty_rows)
      : Product(p), tile_teams((p.a.full + groups - 1) / groups), tail_teams((p.a.tail_rows + groups - 1) / groups) {
    if (!with_empty_rows) this->a.empty_rows = 0;
  }
  std::int64_t teams() const {
    return tile_teams + tail_teams + (this->a.empty_rows + empty_per_team - 1) / empty_per_team;
  }
  std::size_t scratch_bytes() const {
    const auto lanes = static_cast<std::size_t>(groups * this->a.shape.omega);
    return 2 * Sums::shmem_size(lanes) + 2 * Rows::shmem_size(lanes);
  }

  /// A lane on its way through its entries.
  struct Lane {
    std::uint32_t flags;  // of the entries to come, the next in the highest bit
    std::uint32_t segment;
    std::int32_t row;  // of the last row that started in this lane, -1: none
    Sum first, sum;    // what belongs to a row that started before the lane; the rest since the last start
  };

  /// N entries from slot j on. All loads come before the first use and before the stores to y, which compilers could
  /// not move them across.
  template <int N>
  KOKKOS_INLINE_FUNCTION void take(std::int64_t t, std::int64_t at, Lane& lane) const {
    const int omega = this->a.shape.omega;
    Sum product[N];
    for (int n = 0; n < N; ++n) product[n] = this->entry(at + n * omega);
    if ((lane.flags >> (32 - N)) == 0) {
      for (int n = 0; n < N; ++n) lane.sum += product[n];
      lane.flags <<= N;
      return;
    }
    for (int n = 0; n < N; ++n) {
      if ((lane.flags & 0x80000000u) != 0) {
        if (lane.row >= 0) {
          this->store(lane.row, lane.sum);
        } else {
          lane.first = lane.sum;
        }
        lane.sum = Sum(0);
        lane.row = this->segment_row(t, lane.segment++);
      }
      lane.flags <<= 1;
      lane.sum += product[n];
    }
  }

  KOKKOS_INLINE_FUNCTION void operator()(const member& team) const {
    const std::int64_t rank = team.league_rank();
    const int lanes = groups * this->a.shape.omega;
    if (rank >= tile_teams + tail_teams) {
      const std::int64_t begin = (rank - tile_teams - tail_teams) * empty_per_team, end = begin + empty_per_team;
      Kokkos::parallel_for(Kokkos::TeamThreadRange(team, begin, end < this->a.empty_rows ? end : this->a.empty_rows),
                           [&](const std::int64_t i) { this->store(this->a.empty_row[i], Sum(0)); });
      return;
    }
    const Sums first(team.team_scratch(0), lanes), last(team.team_scratch(0), lanes);
    const Rows row(team.team_scratch(0), lanes), seg(team.team_scratch(0), lanes);
    if (rank < tile_teams) {
      Kokkos::parallel_for(Kokkos::TeamThreadRange(team, lanes), [&](const int i) {
        const std::int64_t t = rank * groups + (i >> this->a.shape.lane_bits);
        if (t < this->a.full) lane_sums(t, i, first, last, row, seg);
      });
      team.team_barrier();
      Kokkos::parallel_for(Kokkos::TeamThreadRange(team, lanes), [&](const int i) {
        const std::int64_t t = rank * groups + (i >> this->a.shape.lane_bits);
        if (t < this->a.full) segment_sums(t, i, first, last, row, seg);
      });
    } else {
      const std::int64_t base = (rank - tile_teams) * groups;
      Kokkos::parallel_for(Kokkos::TeamThreadRange(team, lanes), [&](const int i) {
        const int omega = this->a.shape.omega;
        const std::int64_t s = base + (i >> this->a.shape.lane_bits);
        if (s >= this->a.tail_rows) return;
        const std::int64_t end = this->tail_begin(s + 1);
        Sum sum = 0;
        for (std::int64_t k = this->tail_begin(s) + (i & (omega - 1)); k < end; k += omega) sum += this->entry(k);
        first(i) = sum;
      });
      team.team_barrier();
      Kokkos::parallel_for(Kokkos::TeamThreadRange(team, groups), [&](const int g) {
        const int omega = this->a.shape.omega;
        if (base + g >= this->a.tail_rows) return;
        Sum sum = 0;
        for (int k = 0; k < omega; ++k) sum += first(g * omega + k);
        this->finish_tail(base + g, sum);
      });
    }
  }

  KOKKOS_INLINE_FUNCTION void lane_sums(std::int64_t t, int i, const Sums& first, const Sums& last, const Rows& row,
                                        const Rows& seg) const {
    const Experimental::Csr5Shape& s = this->a.shape;
    const int own = i & (s.omega - 1);
    Lane lane{0u, 0u, -1, Sum(0), Sum(0)};
    int following = s.omega - 1 - own;
    if (!this->inside_a_row(t)) {
      const std::uint32_t word = this->a.tile_desc[s.word(t, 0, own)];
      lane.flags = s.flags(this->a.tile_desc, t, own);
      if (own == 0) lane.flags &= 0x7fffffffu;
      lane.segment = s.y_offset(word);
      following = s.seg_offset(word);
    }
    std::int64_t at = t * s.tile() + own;
    int left = s.sigma;
    for (; left >= 8; left -= 8, at += 8 * s.omega) take<8>(t, at, lane);
    if (left >= 4) take<4>(t, at, lane), left -= 4, at += 4 * s.omega;
    if (left >= 2) take<2>(t, at, lane), left -= 2, at += 2 * s.omega;
    if (left >= 1) take<1>(t, at, lane);
    first(i) = lane.row >= 0 ? lane.first : lane.sum;
    last(i) = lane.sum;
    row(i) = lane.row;
    seg(i) = following;
  }

  /// Lanes in which a row started add what the following lanes have of it; lane 0 does so for the first segment. One
  /// after another: most rows end in the next lane.
  KOKKOS_INLINE_FUNCTION void segment_sums(std::int64_t t, int i, const Sums& first, const Sums& last, const Rows& row,
                                           const Rows& seg) const {
    const int omega = this->a.shape.omega, own = i & (omega - 1), following = seg(i);
    const bool to_the_end = own + following == omega - 1;
    const int end = to_the_end ? following : following + 1;
    if (row(i) >= 0) {
      Sum sum = last(i);
      for (int k = 1; k <= end; ++k) sum += first(i + k);
      if (to_the_end) {
        this->finish_last(t, row(i), sum);
      } else {
        this->store(row(i), sum);
      }
    }
    if (own == 0) {
      Sum sum = first(i);
      if (row(i) < 0) {
        for (int k = 1; k <= end; ++k) sum += first(i + k);
      }
      this->finish_first(t, row(i) < 0 && to_the_end, sum);
    }
  }
};

/// Hosts: a thread, a tile of Omega lanes, which stand in a vector register; or a row of the tail; or a few empty rows.
template <int Omega, class Scalar, class X, class Y>
struct Csr5HostFunctor : Csr5Product<Scalar, X, Y> {
  using Product = Csr5Product<Scalar, X, Y>;
  using Sum = typename Product::Sum;
  static constexpr int empty_per_unit = 512;

  Csr5HostFunctor(const Product& p, bool with_empty_rows) : Product(p) {
    if (!with_empty_rows) this->a.empty_rows = 0;
  }
  std::int64_t units() const {
    return this->a.full + this->a.tail_rows + (this->a.empty_rows + empty_per_unit - 1) / empty_per_unit;
  }

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t unit) const {
    if (unit < this->a.full) {
      if (this->inside_a_row(unit)) {
        inner_tile(unit);
      } else {
        tile(unit);
      }
    } else if (unit < this->a.full + this->a.tail_rows) {
      const std::int64_t s = unit - this->a.full, end = this->tail_begin(s + 1);
      Sum sum = 0;
      for (std::int64_t k = this->tail_begin(s); k < end; ++k) sum += this->entry(k);
      this->finish_tail(s, sum);
    } else {
      const std::int64_t begin = (unit - this->a.full - this->a.tail_rows) * empty_per_unit;
      for (std::int64_t i = begin; i < begin + empty_per_unit && i < this->a.empty_rows; ++i) {
        this->store(this->a.empty_row[i], Sum(0));
      }
    }
  }
  KOKKOS_INLINE_FUNCTION void add(std::int64_t at, Sum (&sum)[Omega]) const {
    for (int l = 0; l < Omega; ++l) sum[l] += this->entry(at + l);
  }
  KOKKOS_INLINE_FUNCTION void inner_tile(const std::int64_t t) const {
    const std::int64_t base = t * this->a.shape.tile();
    Sum sum[Omega] = {};
    for (int j = 0; j < this->a.shape.sigma; ++j) add(base + j * Omega, sum);
    Sum total = sum[0];
    for (int l = 1; l < Omega; ++l) total += sum[l];
    this->finish_first(t, true, total);
  }
  KOKKOS_INLINE_FUNCTION void tile(const std::int64_t t) const {
    const Experimental::Csr5Shape& s = this->a.shape;
    const std::int64_t base = t * s.tile();
    std::uint32_t flags[Omega], segment[Omega], any = 0;
    std::int32_t row[Omega];
    Sum sum[Omega] = {}, first[Omega] = {};
    for (int l = 0; l < Omega; ++l) {
      flags[l] = s.flags(this->a.tile_desc, t, l);
      if (l == 0) flags[l] &= 0x7fffffffu;
      any |= flags[l];
      segment[l] = s.y_offset(this->a.tile_desc[s.word(t, 0, l)]);
      row[l] = -1;
    }
    for (int j = 0; j < s.sigma; ++j) {
      const std::uint32_t slot = 0x80000000u >> j;
      if ((any & slot) != 0) {
        for (int l = 0; l < Omega; ++l) {
          if ((flags[l] & slot) == 0) continue;
          if (row[l] >= 0) {
            this->store(row[l], sum[l]);
          } else {
            first[l] = sum[l];
          }
          sum[l] = Sum(0);
          row[l] = this->segment_row(t, segment[l]++);
        }
      }
      add(base + j * Omega, sum);
    }
    Sum open = 0;
    std::int64_t open_row = -1;  // -1: the tile's first segment
    for (int l = 0; l < Omega; ++l) {
      if (row[l] < 0) {
        open += sum[l];
        continue;
      }
      open += first[l];
      if (open_row < 0) {
        this->finish_first(t, false, open);
      } else {
        this->store(open_row, open);
      }
      open = sum[l];
      open_row = row[l];
    }
    if (open_row < 0) {
      this->finish_first(t, true, open);
    } else {
      this->finish_last(t, open_row, open);
    }
  }
};

/// Rows that lie in several tiles: the sums of their tiles in order; one thread per row, or a team for a long one.
template <class Exec, class Scalar, class X, class Y>
struct Csr5CarryFunctor : Csr5Product<Scalar, X, Y> {
  using Product = Csr5Product<Scalar, X, Y>;
  using Sum = typename Product::Sum;
  using member = typename Kokkos::TeamPolicy<Exec>::member_type;
  static constexpr int tiles_per_team = 256;

  std::int64_t long_spans;
  int longest;  // in tiles, of the rows that a thread finishes

  Csr5CarryFunctor(const Product& p, std::int64_t longs, int limit) : Product(p), long_spans(longs), longest(limit) {}

  /// Hosts.
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t t) const {
    const std::int64_t end = this->a.carry_end[t];
    if (end == 0) return;
    Sum sum = this->trail(t);
    for (std::int64_t k = t + 1; k <= end; ++k) sum += this->lead(k);
    this->store(this->tile_row(t + 1), sum);
  }
  /// Devices.
  KOKKOS_INLINE_FUNCTION void operator()(const member& team) const {
    if (team.league_rank() < long_spans) {
      const std::int64_t t = this->a.long_spans[team.league_rank()], end = this->a.carry_end[t];
      Sum sum = 0;
      Kokkos::parallel_reduce(
          Kokkos::TeamThreadRange(team, t + 1, end + 1), [&](const std::int64_t k, Sum& s) { s += this->lead(k); },
          sum);
      Kokkos::single(Kokkos::PerTeam(team), [&]() { this->store(this->tile_row(t + 1), this->trail(t) + sum); });
      return;
    }
    const std::int64_t begin = (team.league_rank() - long_spans) * tiles_per_team, end = begin + tiles_per_team;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, begin, end < this->a.full ? end : this->a.full),
                         [&](const std::int64_t t) {
                           if (static_cast<std::int64_t>(this->a.carry_end[t]) - t <= longest) (*this)(t);
                         });
  }
};

template <class Scalar, class Memory, class X, class Y>
Csr5Product<Scalar, X, Y> csr5_product(const Experimental::Csr5<Scalar, Memory>& f, double alpha, const X& x,
                                       double beta, const Y& y) {
  using Product = Csr5Product<Scalar, X, Y>;
  using Sum = typename Product::Sum;
  return Product{f.data(), x, y, static_cast<Sum>(alpha), static_cast<Sum>(beta)};
}
/// alpha * 0 + 1 * y leaves an empty row as it is.
inline bool csr5_needs_empty_rows(double alpha, double beta) { return !(beta == 1 && std::isfinite(alpha)); }

/// The kernels for devices; they run on hosts too (slowly), where tests can look at them.
template <class Exec, class Scalar, class Memory, class X, class Y>
void csr5_spmv_teams(const Exec& space, double alpha, const Experimental::Csr5<Scalar, Memory>& f, const X& x,
                     double beta, const Y& y) {
  using Tiles = Csr5TeamFunctor<Exec, Scalar, X, Y>;
  using Carry = Csr5CarryFunctor<Exec, Scalar, X, Y>;
  using Policy = Kokkos::TeamPolicy<Exec>;
  const auto product = csr5_product(f, alpha, x, beta, y);
  const Tiles tiles(product, csr5_needs_empty_rows(alpha, beta));
  Kokkos::parallel_for(
      "Tessera::spmv[csr5]",
      Policy(space, static_cast<int>(tiles.teams()), Compat::team_size<Exec>(Tiles::groups * f.shape.omega))
          .set_scratch_size(0, Kokkos::PerTeam(static_cast<int>(tiles.scratch_bytes()))),
      tiles);
  if (f.spans == 0) return;
  const auto longs = static_cast<std::int64_t>(f.long_spans.extent(0));
  const std::int64_t teams = longs + (f.full + Carry::tiles_per_team - 1) / Carry::tiles_per_team;
  Kokkos::parallel_for("Tessera::spmv[csr5] carry",
                       Policy(space, static_cast<int>(teams), Compat::team_size<Exec>(Carry::tiles_per_team)),
                       Carry(product, longs, f.long_span));
}

/// The kernels for hosts.
template <int Omega, class Exec, class Scalar, class Memory, class X, class Y>
void csr5_spmv_threads(const Exec& space, double alpha, const Experimental::Csr5<Scalar, Memory>& f, const X& x,
                       double beta, const Y& y) {
  const auto product = csr5_product(f, alpha, x, beta, y);
  const Csr5HostFunctor<Omega, Scalar, X, Y> tiles(product, csr5_needs_empty_rows(alpha, beta));
  Kokkos::parallel_for("Tessera::spmv[csr5]", Kokkos::RangePolicy<Exec>(space, 0, tiles.units()), tiles);
  if (f.spans == 0) return;
  Kokkos::parallel_for("Tessera::spmv[csr5] carry", Kokkos::RangePolicy<Exec>(space, 0, f.full),
                       Csr5CarryFunctor<Exec, Scalar, X, Y>(product, 0, 0));
}

/// y := alpha A x + beta y for rank-1 x[cols], y[rows] of any stride.
///
/// Sums in double if A, x or y is double, else in float; a narrower y is rounded once. beta == 0 does not read y, alpha
/// == 0 does not read A and x. Bytes: nnz (v + 4) + 4 nnz packets / sigma + 4 per tile, 16 per tile for the partial
/// sums, y once, x once if it stays in cache. One launch, two if rows lie in several tiles; no allocation, no wait.
/// Deterministic: no floating-point atomics, every sum in an order that the format alone decides. Applies of one format
/// share its scratch and must not run at the same time. The caller checks extents and types (Impl::check_extents).
/// Source: Liu & Vinter, ICS'15, section 4; the differences stand at the head of this file.
template <class Exec, class Scalar, class Memory, class X, class Y>
void csr5_spmv(const Exec& space, double alpha, const Experimental::Csr5<Scalar, Memory>& f, const X& x, double beta,
               const Y& y) {
  using Sum = AccumulatorOf<Scalar, typename X::non_const_value_type, typename Y::non_const_value_type>;
  if (f.rows == 0) return;
  if (alpha == 0 || f.nnz == 0) {
    return scale_dense<Sum>(space, "Tessera::spmv[scale]", beta, dense_of(vectors_of(y)));
  }
  if constexpr (Compat::is_host_v<Exec>) {
    if (f.shape.omega == 8) return csr5_spmv_threads<8>(space, alpha, f, x, beta, y);
    if (f.shape.omega == 4) return csr5_spmv_threads<4>(space, alpha, f, x, beta, y);
  }
  csr5_spmv_teams(space, alpha, f, x, beta, y);
}

}  // namespace Impl
}  // namespace Tessera

#endif
