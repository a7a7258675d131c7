// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_HOST_HOST_PACKED_KERNEL_HPP
#define TESSERA_HOST_HOST_PACKED_KERNEL_HPP

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "backends/host/Tessera_HostNumbers.hpp"
#include "backends/host/Tessera_HostPackedPacket.hpp"
#include "backends/interface/Tessera_PackedLayout.hpp"
#include "backends/interface/Tessera_StoreResult.hpp"

/// \file
/// One vector times packed slices on a host thread. A chunk of a lane fills a register of 16 bytes (two doubles, four
/// floats), which every x86-64 and ARMv8 has, so values are loaded as they lie and lanes need no shuffles before the
/// end of a slice. Neighbouring slices of one kind are done in one loop: short rows leave a slice only some forty
/// entries, over which a call and a dispatch would not pay.

namespace Tessera {
namespace Impl {

/// x and y of one column, x of stride 1, no hub columns. Sums and y are floats or doubles; a y of 16-bit numbers has
/// the type of x. half_t: where host_packed_fast_fp16(). args.columns: of the partial sums, one of which is written.
template <class Types, int Lanes>
class PackedHostKernel {
 public:
  using Value = typename Types::Value;
  using Sum = typename Types::Sum;

  explicit PackedHostKernel(const SpmvPackedArgs& args)
      : p_(args),
        x_(static_cast<const Value*>(args.x)),
        alpha_(static_cast<Sum>(args.alpha)),
        beta_(static_cast<Sum>(args.beta)),
        narrow_(sizeof(Value) == 2 && args.y_type != ElementType::Float),
        overwrites_(beta_ == Sum(0) && args.y_stride == 1),
        values_{static_cast<const Value*>(args.dictionary)} {}

  void run(std::uint32_t begin, std::uint32_t end) const {
    while (begin < end) {
      const PackedSlice s = p_.slices[begin];
      if (is_short(s.packed)) {
        begin = short_of(s, begin, end, std::make_integer_sequence<int, short_most>());
        continue;
      }
      if (s.index() == PackedEmpty) {
        if constexpr (sizeof(Value) == 2) {
          if (narrow_) host_packed_empty<Value>(p_, s, alpha_, beta_, 1);
        }
        if (!narrow_) host_packed_empty<Sum>(p_, s, alpha_, beta_, 1);
        ++begin;
        continue;
      }
      switch (s.group()) {
        case 1:
          begin = s.index() == PackedIndexFree ? free_run(begin, end) : run_of<1>(s.index(), begin, end);
          break;
        case 2:
          begin = run_of<2>(s.index(), begin, end);
          break;
        default:
          begin = run_of<3>(s.index(), begin, end);
      }
    }
  }

 private:
  using Values = PackedHostValues<Types>;
  using Stored = typename Values::Stored;
  using Vector = HostVector<Sum>;
  template <int N>
  using Int = std::integral_constant<int, N>;
  static constexpr int value_bytes = Types::value_bytes, chunk = value_bytes == 8 ? 2 : 4, width = Vector::width;
  static constexpr int lane_vectors = Lanes / width;
  static constexpr std::uint32_t kind_mask = 7u << 13 | 3u << 19;
  static constexpr std::uint32_t short_most = 8;  ///< steps of a slice that has code of its own
  /// Values and indices of a packet lie in two places of the same pages, which hardware prefetchers follow badly.
  static constexpr int ahead = 4096;  // bytes

  template <int N, class F>
  TESSERA_HOST_INLINE static void unrolled(F&& f) {
    unrolled(std::forward<F>(f), std::make_integer_sequence<int, N>());
  }
  template <class F, int... I>
  TESSERA_HOST_INLINE static void unrolled(F&& f, std::integer_sequence<int, I...>) {
    (f(Int<I>{}), ...);
  }
  TESSERA_HOST_INLINE static void prefetch(const unsigned char* p) {
#if defined(__GNUC__)
    __builtin_prefetch(p);
#endif
  }

  static const unsigned char* aligned(const unsigned char* packet) {
#if defined(__GNUC__)
    return static_cast<const unsigned char*>(__builtin_assume_aligned(packet, packed_unit));
#else
    return packet;
#endif
  }

  template <int Group>
  std::uint32_t run_of(int index, std::uint32_t begin, std::uint32_t end) const {
    switch (index) {
      case PackedIndex8:
        return indexed_run<PackedIndex8, Group>(begin, end);
      case PackedIndex16:
        return indexed_run<PackedIndex16, Group>(begin, end);
      case PackedIndex24:
        return indexed_run<PackedIndex24, Group>(begin, end);
      default:
        return indexed_run<PackedIndex32, Group>(begin, end);
    }
  }

  /// The slices from `begin` on that are of its kind.
  template <int Index, int Group>
  std::uint32_t indexed_run(std::uint32_t begin, std::uint32_t end) const {
    using Indices = PackedHostIndices<Index>;
    constexpr int kept = Group > 1 ? 4 : Lanes < 8 ? Lanes : 8;  // lanes whose sums stay in registers
    const std::uint32_t kind = p_.slices[begin].packed & kind_mask;
    const PackedPacket packet(Lanes, value_bytes);
    do {
      const PackedSlice s = p_.slices[begin];
      const unsigned char* const base = p_.packets + static_cast<std::size_t>(s.packet) * packed_unit;
      const int steps = s.steps(), known = s.full_steps(), full = known / chunk, whole = steps / chunk;
      const int rest = steps % chunk;
      const unsigned char* const low = base + static_cast<std::size_t>(steps) * (Group * Lanes * value_bytes);
      const Value* const x = x_ + s.column;
      Vector lanes[Group][lane_vectors];
      unrolled<Lanes / kept>([&](auto pass) TESSERA_HOST_LAMBDA {
        constexpr int first = decltype(pass)::value * kept;
        const Stored* v = reinterpret_cast<const Stored*>(base);
        Indices index{reinterpret_cast<const typename Indices::Low*>(low),
                      low + static_cast<std::size_t>(steps) * (Lanes * 2)};
        const unsigned char* fetch = base + ahead;
        const auto skip = [&](auto size) TESSERA_HOST_LAMBDA {
          constexpr int n = decltype(size)::value * Lanes, bytes = n * (value_bytes * Group + Index + 1);
          if constexpr (first == 0) {
            for (int i = 0; i < bytes; i += 64) prefetch(fetch + i);
            fetch += bytes;
          }
          if constexpr (value_bytes > 0) v += Group * n;
          index.skip(n);
        };
        // Narrower numbers of x, and rows that share indices, wait for other things than loads.
        constexpr bool at_once = Group == 1 && sizeof(Value) == 8;
        const auto trusted = [&](int k)
                                 TESSERA_HOST_LAMBDA -> const Value& { return x[index.template known<at_once>(k)]; };
        const auto tested = [&](int k) TESSERA_HOST_LAMBDA {
          const std::uint32_t i = index.template known<at_once>(k);
          return host_select(x, i, i != Indices::padding);
        };
        Vector sum[Group][kept];
        unrolled<Group * kept>([&](auto i) TESSERA_HOST_LAMBDA {
          sum[decltype(i)::value / kept][decltype(i)::value % kept] = Vector::zero();
        });
        int c = 0;
        for (; c < full; ++c) {
          add<first, kept>(v, sum, trusted);
          skip(Int<chunk>{});
        }
        for (; c < whole; ++c) {
          add<first, kept>(v, sum, tested);
          skip(Int<chunk>{});
        }
        to_lanes<first, kept>(sum, lanes);
        if (rest != 0) {
          if (known == steps) {
            if (chunk == 4 && (rest & 2)) add_tail<2, first, kept>(v, lanes, trusted), skip(Int<2>{});
            if (rest & 1) add_tail<1, first, kept>(v, lanes, trusted);
          } else {
            if (chunk == 4 && (rest & 2)) add_tail<2, first, kept>(v, lanes, tested), skip(Int<2>{});
            if (rest & 1) add_tail<1, first, kept>(v, lanes, tested);
          }
        }
      });
      finish(s, base, lanes);
      ++begin;
    } while (begin < end && (p_.slices[begin].packed & kind_mask) == kind && !is_short(p_.slices[begin].packed));
    return begin;
  }

  /// Whether a slice has one lane per row, an entry in each slot, few steps and narrow indices, and y is overwritten:
  /// most slices of matrices of short rows, over whose loops and choices a core takes as long as over their entries.
  TESSERA_HOST_INLINE bool is_short(std::uint32_t packed) const {
    constexpr std::uint32_t any_steps = 1023, index_8_or_16 = 1u << 13, contiguous = 1u << 16;
    constexpr std::uint32_t all_full = 1u << 27 | std::uint32_t{Lanes - 1} << 21;
    return overwrites_ && (packed & ~(any_steps | index_8_or_16 | contiguous)) == all_full &&
           (packed & any_steps) - 1 < short_most;
  }
  template <int... Steps>
  std::uint32_t short_of(const PackedSlice& s, std::uint32_t begin, std::uint32_t end,
                         std::integer_sequence<int, Steps...>) const {
    using Run = std::uint32_t (PackedHostKernel::*)(std::uint32_t, std::uint32_t) const;
    static constexpr Run runs[2][short_most] = {{&PackedHostKernel::short_run<PackedIndex8, Steps + 1>...},
                                                {&PackedHostKernel::short_run<PackedIndex16, Steps + 1>...}};
    return (this->*runs[s.index()][s.steps() - 1])(begin, end);
  }
  /// The slices from `begin` on that are like it, without loops over their steps. The same additions in the same order
  /// as in indexed_run.
  template <int Index, int Steps>
  std::uint32_t short_run(std::uint32_t begin, std::uint32_t end) const {
    constexpr int slots = Lanes * Steps, whole = Steps / chunk, rest = Steps % chunk;
    constexpr int index_at = slots * value_bytes, ids_at = index_at + slots * (Index + 1);
    const std::uint32_t packed = p_.slices[begin].packed;
    const bool has_ids = p_.slices[begin].has_ids();
    const Sum alpha = alpha_;  // not read again after each store to y
    do {
      const PackedSlice s = p_.slices[begin];
      const unsigned char* const base = aligned(p_.packets + static_cast<std::size_t>(s.packet) * packed_unit);
      unrolled<(ids_at + 63) / 64>([&](auto i)
                                       TESSERA_HOST_LAMBDA { prefetch(base + ahead + decltype(i)::value * 64); });
      const Value* const x = x_ + s.column;
      using Low = typename PackedHostIndices<Index>::Low;
      const auto from = [&](int step) TESSERA_HOST_LAMBDA {
        const PackedHostIndices<Index> index{reinterpret_cast<const Low*>(base + index_at + step * Lanes * (Index + 1)),
                                             nullptr};
        return [x, index](int k)
                   TESSERA_HOST_LAMBDA -> const Value& { return x[index.template known<(sizeof(Value) > 2)>(k)]; };
      };
      const auto at = [&](int step) TESSERA_HOST_LAMBDA {
        return reinterpret_cast<const Stored*>(base + step * Lanes * value_bytes);
      };
      Vector lanes[1][lane_vectors];
      if constexpr (whole > 0) {
        Vector sum[1][Lanes];
        unrolled<Lanes>([&](auto i) TESSERA_HOST_LAMBDA { sum[0][decltype(i)::value] = Vector::zero(); });
        unrolled<whole>([&](auto c) TESSERA_HOST_LAMBDA {
          constexpr int step = decltype(c)::value * chunk;
          add<0, Lanes>(at(step), sum, from(step));
        });
        to_lanes<0, Lanes>(sum, lanes);
      } else {
        unrolled<lane_vectors>([&](auto i) TESSERA_HOST_LAMBDA { lanes[0][decltype(i)::value] = Vector::zero(); });
      }
      constexpr int two = whole * chunk, one = Steps - 1;
      if constexpr (chunk == 4 && (rest & 2) != 0) add_tail<2, 0, Lanes>(at(two), lanes, from(two));
      if constexpr ((rest & 1) != 0) add_tail<1, 0, Lanes>(at(one), lanes, from(one));
      overwrite(alpha, s.row, has_ids ? base + ids_at : nullptr, lanes[0]);
      ++begin;
    } while (begin < end && p_.slices[begin].packed == packed);
    return begin;
  }
  /// Results of Lanes rows to y. @param ids  of the rows; null: they are consecutive
  TESSERA_HOST_INLINE void overwrite(Sum alpha, std::int64_t row, const unsigned char* ids,
                                     const Vector (&lanes)[lane_vectors]) const {
    const auto each = [&](auto* y) TESSERA_HOST_LAMBDA {
      using Y = std::remove_pointer_t<decltype(y)>;
      if (ids == nullptr) {
        unrolled<lane_vectors>([&](auto i) TESSERA_HOST_LAMBDA {
          const Vector scaled = lanes[decltype(i)::value].times(alpha);
          if constexpr (sizeof(Y) == 2) {
            scaled.store(y + decltype(i)::value * width);
          } else {
            std::memcpy(y + decltype(i)::value * width, &scaled.v, sizeof(scaled.v));
          }
        });
        return;
      }
      const HostEightBytes<2> id{ids};
      unrolled<lane_vectors>([&](auto i) TESSERA_HOST_LAMBDA {
        const Vector scaled = lanes[decltype(i)::value].times(alpha);
        if constexpr (sizeof(Y) == 2) {
          scaled.template scatter<Y>([&](int n)
                                         TESSERA_HOST_LAMBDA { return y + id.get(decltype(i)::value * width + n); });
        } else {
          for (int n = 0; n < width; ++n) y[id.get(decltype(i)::value * width + n)] = scaled.v[n];
        }
      });
    };
    if constexpr (sizeof(Value) == 2) {
      if (narrow_) return each(static_cast<Value*>(p_.y) + row);
    }
    each(static_cast<Sum*>(p_.y) + row);
  }

  std::uint32_t free_run(std::uint32_t begin, std::uint32_t end) const {
    const PackedPacket packet(Lanes, value_bytes);
    do {
      const PackedSlice s = p_.slices[begin];
      const unsigned char* const base = p_.packets + static_cast<std::size_t>(s.packet) * packed_unit;
      const Stored* v = reinterpret_cast<const Stored*>(base);
      const int steps = s.steps(), whole = steps / chunk, rest = steps % chunk;
      const auto* offsets =
          reinterpret_cast<const std::uint32_t*>(base + static_cast<std::size_t>(steps) * (Lanes * value_bytes));
      const Value* const x = x_ + s.row;
      const auto offset = [&](int k) TESSERA_HOST_LAMBDA {
        return static_cast<std::ptrdiff_t>(static_cast<std::int32_t>(offsets[k] ^ 0x80000000u));
      };
      const unsigned char* fetch = base + ahead;
      Vector lanes[1][lane_vectors], sum[1][Lanes];
      unrolled<Lanes>([&](auto i) TESSERA_HOST_LAMBDA { sum[0][decltype(i)::value] = Vector::zero(); });
      const auto skip = [&](auto size) TESSERA_HOST_LAMBDA {
        constexpr int n = decltype(size)::value, bytes = n * Lanes * value_bytes;
        for (int i = 0; i < bytes; i += 64) prefetch(fetch + i);
        fetch += bytes;
        if constexpr (value_bytes > 0) v += n * Lanes;
        offsets += n;
      };
      if (s.units() == Lanes && !s.masked()) {
        const auto at = [&](auto size) TESSERA_HOST_LAMBDA {
          constexpr int n = decltype(size)::value;
          return [x, o = Offsets<n>(offset)](int k) TESSERA_HOST_LAMBDA { return x[o.at[k % n] + k / n]; };
        };
        for (int c = 0; c < whole; ++c) {
          if constexpr (HostTurned<Value>::possible) {
            add_turned(v, sum, [&](int k) TESSERA_HOST_LAMBDA { return x + offset(k); });
          } else {
            add<0, Lanes>(v, sum, at(Int<chunk>{}));
          }
          skip(Int<chunk>{});
        }
        to_lanes<0, Lanes>(sum, lanes);
        if (chunk == 4 && (rest & 2)) add_tail<2, 0, Lanes>(v, lanes, at(Int<2>{})), skip(Int<2>{});
        if constexpr (sizeof(Value) == 2) {
          if (rest & 1) add_last(v, lanes, x + offset(0));
        } else {
          if (rest & 1) add_tail<1, 0, Lanes>(v, lanes, at(Int<1>{}));
        }
      } else {
        const auto* const masks = reinterpret_cast<const std::uint32_t*>(base + packet.high(s));
        std::uint32_t mask[Lanes];
        for (int l = 0; l < Lanes; ++l) mask[l] = l >= s.units() ? 0 : s.masked() ? masks[l] : ~0u;
        int step = 0;
        const auto at = [&](auto size) TESSERA_HOST_LAMBDA {
          constexpr int n = decltype(size)::value;
          return [&](int k) TESSERA_HOST_LAMBDA {
            return host_select(x, offset(k % n) + k / n, (mask[k / n] >> (step + k % n) & 1u) != 0);
          };
        };
        for (int c = 0; c < whole; ++c) add<0, Lanes>(v, sum, at(Int<chunk>{})), skip(Int<chunk>{}), step += chunk;
        to_lanes<0, Lanes>(sum, lanes);
        if (chunk == 4 && (rest & 2)) add_tail<2, 0, Lanes>(v, lanes, at(Int<2>{})), skip(Int<2>{}), step += 2;
        if (rest & 1) add_tail<1, 0, Lanes>(v, lanes, at(Int<1>{}));
      }
      finish(s, base, lanes);
      ++begin;
    } while (begin < end && (p_.slices[begin].packed & kind_mask) == PackedIndexFree << 13);
    return begin;
  }
  template <int N>
  struct Offsets {
    std::ptrdiff_t at[N];
    template <class F>
    TESSERA_HOST_INLINE explicit Offsets(F&& f) {
      for (int i = 0; i < N; ++i) at[i] = f(i);
    }
  };

  /// A chunk of the lanes from First on. x(k): what the entry at place k of the chunk is multiplied with.
  template <int First, int Kept, int Group, class X>
  TESSERA_HOST_INLINE void add(const Stored* v, Vector (&sum)[Group][Kept], X&& x) const {
    unrolled<Kept*(chunk / width)>([&](auto i) TESSERA_HOST_LAMBDA {
      constexpr int n = decltype(i)::value, l = n / (chunk / width), k = First * chunk + n * width;
      const Vector xs = Vector::gather([&](int j) TESSERA_HOST_LAMBDA -> decltype(auto) { return x(k + j); });
      unrolled<Group>([&](auto r) TESSERA_HOST_LAMBDA {
        sum[decltype(r)::value][l].add_product(values_.vector(v + decltype(r)::value * Lanes * chunk, k), xs);
      });
    });
  }
  /// A chunk of all lanes, which are neighbours in x: from(k) is where those of step k begin.
  template <class From>
  TESSERA_HOST_INLINE void add_turned(const Stored* v, Vector (&sum)[1][Lanes], From&& from) const {
    constexpr int some = HostTurned<Value>::lanes, vectors = chunk / width;
    unrolled<Lanes / some * vectors>([&](auto part) TESSERA_HOST_LAMBDA {
      constexpr int first = decltype(part)::value / vectors * some, step = decltype(part)::value % vectors * width;
      const HostTurned<Value> xs([&](int k) TESSERA_HOST_LAMBDA { return from(step + k) + first; });
      unrolled<some>([&](auto i) TESSERA_HOST_LAMBDA {
        constexpr int l = first + decltype(i)::value;
        sum[0][l].add_product(values_.vector(v, l * chunk + step), xs.lane(decltype(i)::value));
      });
    });
  }
  /// Sums of the lanes, a vector for `width` of them.
  template <int First, int Kept, int Group>
  TESSERA_HOST_INLINE static void to_lanes(const Vector (&sum)[Group][Kept], Vector (&lanes)[Group][lane_vectors]) {
    unrolled<Group*(Kept / width)>([&](auto i) TESSERA_HOST_LAMBDA {
      constexpr int r = decltype(i)::value / (Kept / width), j = decltype(i)::value % (Kept / width);
      if constexpr (width == 2) {
        lanes[r][First / width + j] = Vector::pairs(sum[r][2 * j], sum[r][2 * j + 1]);
      } else {
        lanes[r][First / width + j] = Vector::pairs(Vector::pairs(sum[r][4 * j], sum[r][4 * j + 1]),
                                                    Vector::pairs(sum[r][4 * j + 2], sum[r][4 * j + 3]));
      }
    });
  }
  /// The last steps, fewer than a chunk.
  template <int Size, int First, int Kept, int Group, class X>
  TESSERA_HOST_INLINE void add_tail(const Stored* v, Vector (&lanes)[Group][lane_vectors], X&& x) const {
    const auto product = [&](int r, int k, Vector xs) TESSERA_HOST_LAMBDA {
      Vector p = Vector::zero();
      p.add_product(values_.vector(v + r * Lanes * Size, k), xs);
      return p;
    };
    unrolled<Kept / width>([&](auto i) TESSERA_HOST_LAMBDA {
      constexpr int j = First / width + decltype(i)::value;
      if constexpr (Size == 1) {
        const Vector xs = Vector::gather([&](int n) TESSERA_HOST_LAMBDA -> decltype(auto) { return x(j * width + n); });
        unrolled<Group>([&](auto r) TESSERA_HOST_LAMBDA {
          lanes[decltype(r)::value][j].add_product(values_.vector(v + decltype(r)::value * Lanes, j * width), xs);
        });
      } else {
        const Vector a =
            Vector::gather([&](int n) TESSERA_HOST_LAMBDA -> decltype(auto) { return x(2 * j * width + n); });
        const Vector b =
            Vector::gather([&](int n) TESSERA_HOST_LAMBDA -> decltype(auto) { return x((2 * j + 1) * width + n); });
        unrolled<Group>([&](auto r) TESSERA_HOST_LAMBDA {
          constexpr int at = decltype(r)::value;
          lanes[at][j].add(Vector::pairs(product(at, 2 * j * width, a), product(at, (2 * j + 1) * width, b)));
        });
      }
    });
  }

  /// The last step of all lanes, which are neighbours in x from `from` on. (Numbers of 32 and 64 bits are gathered as
  /// fast.)
  TESSERA_HOST_INLINE void add_last(const Stored* v, Vector (&lanes)[1][lane_vectors], const Value* from) const {
    unrolled<lane_vectors>([&](auto i) TESSERA_HOST_LAMBDA {
      constexpr int k = decltype(i)::value * width;
      lanes[0][decltype(i)::value].add_product(values_.vector(v, k), Vector::load(from + k));
    });
  }

  template <int Group>
  TESSERA_HOST_INLINE void finish(const PackedSlice& s, const unsigned char* base,
                                  Vector (&lanes)[Group][lane_vectors]) const {
    const int log = s.log_lanes(), rows = s.units();
    const auto* const ids = reinterpret_cast<const std::uint16_t*>(base + PackedPacket(Lanes, value_bytes).row_ids(s));
    if constexpr (sizeof(Value) == 2) {
      if (narrow_ && log == 0 && rows == Lanes && beta_ == Sum(0)) {
        unrolled<Group * lane_vectors>([&](auto i) TESSERA_HOST_LAMBDA {
          constexpr int at = decltype(i)::value / lane_vectors, j = decltype(i)::value % lane_vectors;
          const Vector scaled = lanes[at][j].times(alpha_);
          Value* const y = static_cast<Value*>(p_.y) + (s.row + at) * p_.y_stride;
          if (!s.contiguous()) {
            const std::uint16_t* const id = ids + j * width;
            scaled.template scatter<Value>([&](int n) TESSERA_HOST_LAMBDA { return y + id[n] * p_.y_stride; });
          } else if (Group == 1 && p_.y_stride == 1) {
            scaled.store(y + j * width);
          } else {
            scaled.template scatter<Value>(
                [&](int n) TESSERA_HOST_LAMBDA { return y + (j * width + n) * Group * p_.y_stride; });
          }
        });
        return;
      }
    }
    if (log == 0 && rows == Lanes && beta_ == Sum(0) && !narrow_) {
      unrolled<Group * lane_vectors>([&](auto i) TESSERA_HOST_LAMBDA {
        constexpr int at = decltype(i)::value / lane_vectors, j = decltype(i)::value % lane_vectors;
        const Vector scaled = lanes[at][j].times(alpha_);
        Sum* const y = static_cast<Sum*>(p_.y) + (s.row + at) * p_.y_stride;
        if (s.contiguous()) {
          for (int n = 0; n < width; ++n) y[(j * width + n) * Group * p_.y_stride] = scaled.v[n];
        } else {
          for (int n = 0; n < width; ++n) y[ids[j * width + n] * p_.y_stride] = scaled.v[n];
        }
      });
      return;
    }
    unrolled<Group>([&](auto r) TESSERA_HOST_LAMBDA {
      constexpr int at = decltype(r)::value;
      Sum sums[Lanes];
      std::memcpy(sums, lanes[at], sizeof(sums));
      if (log > 0) {
        for (int t = 0, n = Lanes / 2; t < log; ++t, n /= 2) {
          for (int l = 0; l < n; ++l) sums[l] = sums[2 * l] + sums[2 * l + 1];
        }
        if (Group == 1 && s.part()) {
          static_cast<Sum*>(p_.partials)[static_cast<std::size_t>(s.row) * static_cast<std::size_t>(p_.columns)] =
              sums[0];
          return;
        }
      }
      if constexpr (sizeof(Value) == 2) {
        if (narrow_) return store_narrow(s.row + at, rows, s.contiguous() ? nullptr : ids, Group, sums);
      }
      Sum* const y = static_cast<Sum*>(p_.y) + (s.row + at) * p_.y_stride;
      if (s.contiguous()) {
        if (rows == Lanes) {
          for (int q = 0; q < Lanes; ++q) store(y + q * Group * p_.y_stride, sums[q]);
        } else {
          for (int q = 0; q < rows; ++q) store(y + q * Group * p_.y_stride, sums[q]);
        }
      } else if (rows == Lanes) {
        for (int q = 0; q < Lanes; ++q) store(y + ids[q] * p_.y_stride, sums[q]);
      } else {
        for (int q = 0; q < rows; ++q) store(y + ids[q] * p_.y_stride, sums[q]);
      }
    });
  }
  TESSERA_HOST_INLINE void store(Sum* y, Sum sum) const { store_scaled(y, alpha_, sum, beta_); }
  /// The sums of rows to a y of 16-bit numbers, all rounded at once.
  void store_narrow(std::int64_t row, int rows, const std::uint16_t* ids, int step, Sum (&sums)[Lanes]) const {
    Value* const y = static_cast<Value*>(p_.y) + row * p_.y_stride;
    const auto at = [&](int q) { return (ids != nullptr ? ids[q] : q * step) * p_.y_stride; };
    if (beta_ == Sum(0)) {
      for (int q = 0; q < Lanes; ++q) sums[q] *= alpha_;
    } else {
      for (int q = 0; q < rows; ++q) sums[q] = scaled_sum(alpha_, sums[q], beta_, y[at(q)]);
    }
    Value narrow[Lanes];
    for (int q = 0; q < Lanes; q += width) Vector::load(sums + q).store(narrow + q);
    for (int q = 0; q < rows; ++q) y[at(q)] = narrow[q];
  }

  const SpmvPackedArgs& p_;
  const Value* x_;
  Sum alpha_, beta_;
  bool narrow_, overwrites_;
  Values values_;
};

}  // namespace Impl
}  // namespace Tessera

#endif
