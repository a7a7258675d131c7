// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FORMATS_PACKED_PACKED_VALUES_HPP
#define TESSERA_FORMATS_PACKED_PACKED_VALUES_HPP

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/Tessera_Arena.hpp"
#include "core/Tessera_Pattern.hpp"
#include "formats/packed/Tessera_CellsSlots.hpp"
#include "formats/packed/Tessera_PackedCells.hpp"
#include "formats/packed/Tessera_PackedFill.hpp"
#include "formats/packed/Tessera_PackedSlots.hpp"

/// \file
/// Value classes: whether the numbers of a matrix fit into fewer bytes, bit for bit.

namespace Tessera {
namespace Impl {

/// What the device finds out; every member only ever grows, so that threads need no order.
struct PackedClassFound {
  static constexpr int slots = 1024, most = 256;
  std::uint32_t misfit[5];     // by PackedStorage; Full: a number is not finite
  std::uint32_t distinct;      // numbers in the table
  std::uint64_t table[slots];  // bits + 1 of distinct numbers, 0: free
};

/// Looks at all numbers, and stops early once nothing fits: for general numbers that is at once.
template <class Values>
struct PackedClassFunctor {
  using Value = typename Values::non_const_value_type;
  using Encoder = PackedEncoder<PackedTypes<Value, PackedStorage::Full>, Value>;
  template <class T>
  using View = typename Experimental::PackedSlices<typename Values::memory_space>::template View<T>;
  static constexpr int per_item = 32;

  Values values;
  View<PackedClassFound> found;
  std::int64_t items, count;

  KOKKOS_INLINE_FUNCTION bool open(int storage) const {
    return *static_cast<volatile const std::uint32_t*>(&found(0).misfit[storage]) == 0;
  }
  KOKKOS_INLINE_FUNCTION void misfit(PackedStorage storage) const { found(0).misfit[static_cast<int>(storage)] = 1; }

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t item) const {
    std::uint64_t last = 0;
    bool first = true;
    const std::uint64_t zeroth = Encoder::bits_of(values(0));
    for (int j = 0; j < per_item; ++j) {
      const std::int64_t i = item + j * items;
      if (i >= count) return;
      if (j % 4 == 0 && (!open(0) || (!open(1) && !open(2) && !open(3) && !open(4)))) return;
      const Value value = values(i);
      const std::uint64_t bits = Encoder::bits_of(value);
      if (!first && bits == last) continue;
      first = false;
      last = bits;
      const auto number = static_cast<double>(value);
      if (!(number - number == 0)) misfit(PackedStorage::Full);
      if (bits != zeroth) misfit(PackedStorage::Constant);
      if constexpr (sizeof(Value) == 8) {
        if (static_cast<double>(static_cast<float>(number)) != number) misfit(PackedStorage::Float);
      }
      const bool small = number >= -128 && number <= 127;
      const int whole = small ? static_cast<int>(number) : 0;
      const bool negative_zero = number == 0 && bits != 0;
      if (!small || static_cast<double>(whole) != number || negative_zero) misfit(PackedStorage::Integer);
      if (open(static_cast<int>(PackedStorage::Dictionary))) insert(bits);
    }
  }

  KOKKOS_INLINE_FUNCTION void insert(std::uint64_t bits) const {
    const std::uint64_t entry = bits + 1;  // finite numbers are not all ones
    std::uint64_t place = bits * 0x9e3779b97f4a7c15u >> 54;
    for (int probe = 0; probe < PackedClassFound::slots; ++probe, ++place) {
      std::uint64_t* const slot = &found(0).table[place % PackedClassFound::slots];
      std::uint64_t there = *static_cast<volatile std::uint64_t*>(slot);
      if (there == entry) return;
      if (there == 0) {
        there = Kokkos::atomic_compare_exchange(slot, std::uint64_t{0}, entry);
        if (there == 0) {
          if (Kokkos::atomic_fetch_add(&found(0).distinct, 1u) >= PackedClassFound::most) {
            misfit(PackedStorage::Dictionary);
          }
          return;
        }
        if (there == entry) return;
      }
      if (!open(static_cast<int>(PackedStorage::Dictionary))) return;
    }
    misfit(PackedStorage::Dictionary);
  }
};

/// The distinct numbers, as ascending bits.
inline std::vector<std::uint64_t> dictionary_of(const PackedClassFound& found) {
  std::vector<std::uint64_t> dictionary;
  for (const std::uint64_t entry : found.table) {
    if (entry != 0) dictionary.push_back(entry - 1);
  }
  std::sort(dictionary.begin(), dictionary.end());
  return dictionary;
}

/// The narrowest class that all numbers fit. @param bytes  of a number
KOKKOS_INLINE_FUNCTION PackedStorage packed_class_of(const std::uint32_t* misfit, int bytes) {
  const auto fits = [=](PackedStorage s) { return misfit[static_cast<int>(s)] == 0; };
  if (!fits(PackedStorage::Full)) return PackedStorage::Full;
  if (fits(PackedStorage::Constant)) return PackedStorage::Constant;
  if (fits(PackedStorage::Integer)) return PackedStorage::Integer;
  if (fits(PackedStorage::Dictionary)) return PackedStorage::Dictionary;
  return bytes == 8 && fits(PackedStorage::Float) ? PackedStorage::Float : PackedStorage::Full;
}

template <class Value, class F>
decltype(auto) dispatch_storage(PackedStorage storage, F&& f) {
  switch (storage) {
    case PackedStorage::Float:
      if constexpr (sizeof(Value) == 8) return f(PackedTypes<Value, PackedStorage::Float>{});
      break;
    case PackedStorage::Integer:
      return f(PackedTypes<Value, PackedStorage::Integer>{});
    case PackedStorage::Dictionary:
      return f(PackedTypes<Value, PackedStorage::Dictionary>{});
    default:
      break;
  }
  return f(PackedTypes<Value, PackedStorage::Full>{});
}

template <class Value, class Exec, class Memory, class Values>
void packed_fill_as(const Exec& space, const Experimental::PackedSlices<Memory>& p, const Values& values,
                    const PackedRowMap<Memory>& map, const PackedGate& gate) {
  const auto slices = gate.totals != nullptr ? gate.threads : static_cast<std::int64_t>(p.slices.extent(0));
  const std::int64_t slots = slices * p.lanes;
  if (p.storage == PackedStorage::Constant || slots == 0) return;
  const auto fill = [&](auto types) {
    using Types = decltype(types);
    PackedValueFunctor<Values, Types> f;
    f.values = values;
    f.map = map;
    f.slices = p.slices;
    f.parts = p.parts;
    f.packets = reinterpret_cast<unsigned char*>(p.packets.data());
    f.encode = {reinterpret_cast<const Value*>(p.dictionary.data()), p.dictionary_words};
    f.lanes = p.lanes;
    for (f.log_wave = 0; (1 << f.log_wave) < p.lanes;) ++f.log_wave;
    f.part_length = std::int64_t{p.split_steps} * p.lanes;
    f.gate = gate;
    Kokkos::parallel_for("Tessera::convert[packed] values", Kokkos::RangePolicy<Exec>(space, 0, slots), f);
  };
  if constexpr (std::is_same_v<Value, typename Values::non_const_value_type>) {
    dispatch_storage<Value>(p.storage, fill);
  } else {
    fill(PackedTypes<Value, PackedStorage::Full>{});  // rounded numbers are in no class
  }
}

/// Writes `values` (nnz numbers in CSR order) into the packets, in the class these have. One kernel, no wait. Compiled
/// once per type of numbers. @param gate  of a conversion that does not know its sizes yet
template <class Exec, class Memory, class Values>
void packed_fill(const Exec& space, const Experimental::PackedSlices<Memory>& p, const Values& values,
                 const PackedRowMap<Memory>& map, const PackedGate& gate) {
  switch (p.precision) {
    case Precision::FP64:
      return packed_fill_as<double>(space, p, values, map, gate);
    case Precision::FP16:
      return packed_fill_as<half_t>(space, p, values, map, gate);
    case Precision::BF16:
      return packed_fill_as<bhalf_t>(space, p, values, map, gate);
    default:
      return packed_fill_as<float>(space, p, values, map, gate);
  }
}

/// Numbers to their slots in cells.
template <class Values, class Value>
struct CellsValueFunctor {
  Values values;
  typename Experimental::PackedCells<typename Values::memory_space>::template View<std::uint32_t> slots;
  Value* out;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t k) const { out[slots(k)] = static_cast<Value>(values(k)); }
};

/// Writes `values` (nnz numbers in CSR order) into the packets of cells. One kernel, no wait. Compiled once per type of
/// numbers.
template <class Exec, class Memory, class Values>
void cells_scatter(const Exec& space, const Experimental::PackedCells<Memory>& p, const Values& values) {
  const auto scatter = [&](auto zero) {
    using Value = decltype(zero);
    const CellsValueFunctor<Values, Value> f{values, p.slots, reinterpret_cast<Value*>(p.packets.data())};
    Kokkos::parallel_for("Tessera::convert[cells] values",
                         Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(space, 0, p.nnz), f);
  };
  switch (p.precision) {
    case Precision::FP64:
      return scatter(double{});
    case Precision::FP16:
      return scatter(half_t{});
    case Precision::BF16:
      return scatter(bhalf_t{});
    default:
      return scatter(float{});
  }
}

/// Starts the search for a value class; `found` must be zero. Compiled once per type of numbers.
template <class Exec, class Values>
void packed_classify(const Exec& space, const Values& values,
                     const typename Arena<typename Values::memory_space>::template View<PackedClassFound>& found) {
  using Functor = PackedClassFunctor<Values>;
  Functor f;
  f.values = values;
  f.found = found;
  f.count = static_cast<std::int64_t>(values.extent(0));
  f.items = (f.count + Functor::per_item - 1) / Functor::per_item;
  if (f.count > 0) {
    Kokkos::parallel_for("Tessera::convert[packed] value class", Kokkos::RangePolicy<Exec>(space, 0, f.items), f);
  }
}

/// What the conversion of a pattern asks of the numbers.
template <class Memory>
class PackedNumbers {
 public:
  template <class T>
  using View = typename Arena<Memory>::template View<T>;

  virtual ~PackedNumbers() = default;
  virtual Precision precision() const = 0;
  virtual std::size_t bytes() const = 0;
  virtual void classify(const View<PackedClassFound>& found) const = 0;
  virtual void fill(const Experimental::PackedSlices<Memory>& p, const PackedRowMap<Memory>& map,
                    const PackedGate& gate) const = 0;
  /// Indices too, of numbers in full and of the precision that is stored.
  virtual void fill_slots(const Experimental::PackedSlices<Memory>& p,
                          const PackedIndexFunctor<PackedPlainPattern<Memory>>& index) const = 0;
  /// Pieces of cells too, of numbers of the precision that is stored.
  virtual void fill_cells(const CellsPieces<PackedPlainPattern<Memory>>& pieces) const = 0;
  virtual void scatter(const Experimental::PackedCells<Memory>& p) const = 0;
};

template <class Exec, class Values>
class PackedNumbersOf final : public PackedNumbers<typename Values::memory_space> {
 public:
  using Memory = typename Values::memory_space;
  using Value = typename Values::non_const_value_type;
  template <class T>
  using View = typename Arena<Memory>::template View<T>;

  PackedNumbersOf(const Exec& space, const Values& values) : space_(space), values_(values) {}
  Precision precision() const override { return ScalarTraits<Value>::precision; }
  std::size_t bytes() const override { return sizeof(Value); }
  void classify(const View<PackedClassFound>& found) const override { packed_classify(space_, values_, found); }
  void fill(const Experimental::PackedSlices<Memory>& p, const PackedRowMap<Memory>& map,
            const PackedGate& gate) const override {
    packed_fill(space_, p, values_, map, gate);
  }
  void fill_slots(const Experimental::PackedSlices<Memory>& p,
                  const PackedIndexFunctor<PackedPlainPattern<Memory>>& index) const override {
    packed_fill_slots(space_, p, values_, index);
  }
  void fill_cells(const CellsPieces<PackedPlainPattern<Memory>>& pieces) const override {
    cells_write(space_, pieces, values_);
  }
  void scatter(const Experimental::PackedCells<Memory>& p) const override { cells_scatter(space_, p, values_); }

 private:
  const Exec& space_;
  Values values_;
};

/// Whether no class of fewer bytes fits the numbers. One wait.
template <class Exec, class Memory>
bool packed_stays_full(const Exec& space, const KernelTable* backend, const PackedNumbers<Memory>& numbers) {
  typename Arena<Memory>::template View<PackedClassFound> found;
  const auto scratch =
      Arena<Memory>::make(space, backend, "Tessera::packed::scratch", Lifetime::Temporary,
                          [&](Arena<Memory>& arena) { found = arena.template take<PackedClassFound>(1); });
  Kokkos::deep_copy(
      space, typename Arena<Memory>::template View<char>(static_cast<char*>(scratch.get()), sizeof(PackedClassFound)),
      char(0));
  numbers.classify(found);
  PackedClassFound host{};
  fetch(space, backend, "Tessera::convert[packed] value class", host, found);
  return packed_class_of(host.misfit, static_cast<int>(numbers.bytes())) == PackedStorage::Full;
}

}  // namespace Impl
}  // namespace Tessera

#endif
