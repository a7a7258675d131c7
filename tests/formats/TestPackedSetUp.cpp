// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// What a conversion to packed slices asks of a backend's runtime: memory that it borrows keeps its zeros, nothing is
// needed twice, and the format is the one that is made without a backend.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "features/Tessera_SpmvFeatures.hpp"
#include "formats/packed/Tessera_FromPacked.hpp"
#include "formats/packed/Tessera_PackedUpdate.hpp"
#include "support/Tessera_TestCases.hpp"
#include "support/Tessera_TestCheck.hpp"

namespace Tessera {
namespace Testing {

/// A runtime on the host that counts.
struct CountingRuntime {
  static inline int borrowed = 0, kept = 0, spoiled = 0, allocated = 0;
  static inline bool dirty = false;
  static constexpr std::size_t room = std::size_t{1} << 22;

  static Status borrow(std::size_t bytes, Stream, void** memory) noexcept {
    *memory = bytes <= room ? std::malloc(room) : nullptr;
    if (*memory == nullptr) return {};
    std::memset(*memory, 0xcd, room);
    std::memset(*memory, 0, borrowed_zero_bytes);
    ++borrowed;
    return {};
  }
  static void give_back(void* memory, bool is_spoiled) noexcept {
    const char* const bytes = static_cast<const char*>(memory);
    (is_spoiled ? spoiled : kept) += 1;
    dirty |= !is_spoiled && std::any_of(bytes, bytes + borrowed_zero_bytes, [](char c) { return c != 0; });
    std::free(memory);
  }
  static Status allocate(std::size_t bytes, Stream, void** memory) noexcept {
    ++allocated;
    *memory = std::malloc(bytes + 1);
    std::memset(*memory, 0xcd, bytes);
    return {};
  }
  static Status await(const std::int64_t* number, std::int64_t wanted, Stream) noexcept {
    return *number == wanted ? Status{} : Status{"a kernel ended without an answer"};
  }
  static KernelTable table() {
    KernelTable t;
    t.runtime.borrow = borrow;
    t.runtime.give_back = give_back;
    t.runtime.allocate = allocate;
    t.runtime.release = [](void* memory, Stream, bool) noexcept { std::free(memory); };
    t.runtime.open_mailbox = [](void** memory) noexcept -> Status { return allocate(mailbox_bytes, nullptr, memory); };
    t.runtime.close_mailbox = [](void* memory) noexcept { std::free(memory); };
    t.runtime.await = await;
    borrowed = kept = spoiled = allocated = 0;
    dirty = false;
    return t;
  }
};

using Exec = Kokkos::DefaultExecutionSpace;

TEST(PackedSetUp, BorrowedMemoryKeepsItsZeros) {
  if (!Compat::is_host_v<Exec>) GTEST_SKIP() << "this runtime has memory of the host";
  const Exec space;
  std::size_t shift = 0;  // with sanitizers a pattern meets every second option, the next one the others
  for (const Pattern& pattern : {all_classes(200, 20), generate(three_dof)}) {
    const auto A = make_matrix<double>(pattern, Data::Real, 7);
    const DeviceMatrix<Exec, double> device(A);
    std::size_t turn = shift++;
    for (const Named<PackedOptions>& o : packed_option_sets()) {
      if (fewer_cases && turn++ % 2 != 0) continue;
      SCOPED_TRACE(o.name);
      const KernelTable table = CountingRuntime::table();
      const SpmvFeatures f = spmv_features(space, device.view(), &table);
      auto p = Experimental::to_packed(space, device.view(), 32, Precision::FP64, f, o.options, true, &table);
      p.done();
      EXPECT_EQ(CountingRuntime::kept, CountingRuntime::borrowed);
      EXPECT_GE(CountingRuntime::borrowed, 1);
      EXPECT_FALSE(CountingRuntime::dirty);
      const auto plain = Experimental::to_packed(space, device.view(), 32, Precision::FP64, f, o.options, true);
      EXPECT_EQ(p.summary.units, plain.summary.units);
      EXPECT_EQ(p.format_bytes(), plain.format_bytes());
      const auto B = Experimental::to_csr(p), C = Experimental::to_csr(plain);
      EXPECT_EQ(B.entries, C.entries);
      EXPECT_EQ(B.bits, C.bits);
    }
  }
}

// The order of rows that is enqueued before the features are known gives the same format, and what was lent is clean.
TEST(PackedSetUp, OrderAhead) {
  if (!Compat::is_host_v<Exec>) GTEST_SKIP() << "this runtime has memory of the host";
  using Ahead = Impl::PackedAhead<Exec::memory_space>;
  const Exec space;
  int used = 0, unused = 0;
  std::size_t shift = 0;  // with sanitizers a pattern meets every second option, the next one the others
  for (const Pattern& pattern : {all_classes(200, 20), generate(three_dof), generate("stencil2d:nx=41:ny=31")}) {
    const auto A = make_matrix<double>(pattern, Data::Real, 7);
    const DeviceMatrix<Exec, double> device(A);
    bool updatable = false;
    std::size_t turn = shift++;
    for (const Named<PackedOptions>& o : packed_option_sets()) {
      if (fewer_cases && turn++ % 2 != 0) continue;
      SCOPED_TRACE(o.name);
      updatable = !updatable;
      const KernelTable table = CountingRuntime::table();
      Impl::PackedKnown known{};
      known.options = o.options;
      known.device.wave = known.lanes = 32;
      known.device.compute_units = 2;
      known.rows = A.rows, known.cols = A.cols, known.nnz = static_cast<std::int64_t>(A.entries.size());
      known.value_bytes = 8;
      const auto ahead = std::make_shared<Ahead>(known, updatable);
      const SpmvFeatures f = Impl::packed_features_ahead(space, Impl::pattern_of(device.view()), &table, *ahead);
      const bool fits = ahead->fits(Impl::packed_shape(o.options, f, 32, 8, 1, false), true, updatable);
      (fits ? used : unused) += 1;
      auto p = Experimental::to_packed(space, device.view(), 32, Precision::FP64, f, o.options, updatable, &table, {},
                                       ahead);
      p.done();
      ahead->done();
      const auto plain = Experimental::to_packed(space, device.view(), 32, Precision::FP64, f, o.options, updatable);
      EXPECT_EQ(p.format_bytes(), plain.format_bytes());
      EXPECT_EQ(p.map_bytes(), plain.map_bytes());
      ASSERT_EQ(p.slices.extent(0), plain.slices.extent(0));
      EXPECT_EQ(std::memcmp(p.slices.data(), plain.slices.data(), sizeof(PackedSlice) * p.slices.extent(0)), 0);
      const auto B = Experimental::to_csr(p), C = Experimental::to_csr(plain);
      EXPECT_EQ(B.entries, C.entries);
      EXPECT_EQ(B.bits, C.bits);
      EXPECT_EQ(CountingRuntime::spoiled, 0);
      EXPECT_FALSE(CountingRuntime::dirty);
    }
  }
  EXPECT_GE(used, 20);
  EXPECT_GE(unused, 5);
}

// Sizes alone say where an order ahead would be in the way: of even slices, of few diagonals, of columns by use.
TEST(PackedSetUp, WhereOrderAhead) {
  const auto worthwhile = [](std::int64_t rows, std::int64_t nnz, int value_bytes, const PackedOptions& o = {}) {
    Impl::PackedKnown known{};
    known.options = o;
    known.device.shared_bytes = 232448;
    known.rows = known.cols = rows;
    known.nnz = nnz;
    known.lanes = 32;
    known.value_bytes = value_bytes;
    return known.worthwhile();
  };
  EXPECT_TRUE(worthwhile(1000000, 4808000, 8));
  EXPECT_FALSE(worthwhile(1000000, 4996000, 8));  // five diagonals
  EXPECT_FALSE(worthwhile(20000, 300000, 8));
  EXPECT_TRUE(worthwhile(20000, 301000, 8));
  EXPECT_TRUE(worthwhile(262144, 3940070, 8));
  EXPECT_FALSE(worthwhile(262144, 3940070, 4));
  EXPECT_FALSE(worthwhile(0, 0, 8));
  PackedOptions o;
  o.hubs = 64;
  EXPECT_FALSE(worthwhile(1000000, 4808000, 8, o));
}

// Of a conversion that nobody waited for, or that failed, the memory may still be in use.
TEST(PackedSetUp, UnfinishedMemoryIsNotKept) {
  if (!Compat::is_host_v<Exec>) GTEST_SKIP() << "this runtime has memory of the host";
  const Exec space;
  PackedOptions o;
  o.even_slices = false;
  const auto A = make_matrix<double>(all_classes(600, 20), Data::Real, 7);
  const DeviceMatrix<Exec, double> device(A);
  const KernelTable table = CountingRuntime::table();
  const SpmvFeatures f = spmv_features(space, device.view(), &table);
  EXPECT_EQ(CountingRuntime::kept, 1);
  { const auto p = Experimental::to_packed(space, device.view(), 32, Precision::FP64, f, o, true, &table); }
  EXPECT_EQ(CountingRuntime::kept, 1);
  EXPECT_EQ(CountingRuntime::spoiled, 1);
}

// One list of offsets: where all rows keep to it, numbers are stored in full, and a word has a bit for each lane.
TEST(PackedSetUp, Diagonals) {
  const Exec space;
  const auto variant = [&](const Pattern& p, int lanes, PackedStorage storage = PackedStorage::Full, bool open = true) {
    auto A = make_matrix<double>(p, Data::Real, 7);
    fill_class(A.values, storage, 7);
    const DeviceMatrix<Exec, double> device(A);
    PackedOptions o;
    o.least_diagonals = 0;
    o.diagonals = open;
    const SpmvFeatures f = spmv_features(space, device.view());
    auto packed = Experimental::to_packed(space, device.view(), lanes, Precision::FP64, f, o);
    packed.done();
    EXPECT_EQ(packed.storage, storage);
    EXPECT_EQ(Experimental::to_csr(packed).entries, A.entries);
    return packed.variant;
  };
  const Pattern grid = generate("stencil2d:nx=41:ny=31");
  EXPECT_EQ(variant(grid, 32), PackedVariant::Diagonals);
  EXPECT_EQ(variant(grid, 8), PackedVariant::Diagonals);
  EXPECT_EQ(variant(with_unsorted_columns(generate("diagonal:rows=300:cols=300")), 32), PackedVariant::Diagonals);
  EXPECT_NE(variant(grid, 64), PackedVariant::Diagonals);
  EXPECT_NE(variant(grid, 32, PackedStorage::Full, false), PackedVariant::Diagonals);
  EXPECT_NE(variant(grid, 32, PackedStorage::Integer), PackedVariant::Diagonals);
  Pattern other = grid;  // one row has a column that no other has
  other.entries[static_cast<std::size_t>(other.row_map[700])] -= 1;
  EXPECT_NE(variant(other, 32), PackedVariant::Diagonals);
}

// Rows without entries, eight per lane of a slice: of each sort window that has one per lane as few slices as can be,
// whether it has other rows or not, but for the last window, whose own order may pad little.
TEST(PackedSetUp, RowsWithoutEntries) {
  const Exec space;
  PackedOptions o;
  o.even_slices = false;
  for (const int window : {504, 4092}) {
    o.window = window;
    for (const char* spec : {"random:rows=9000:cols=700:lengths=uniform:mean=0.1", "dense_row:rows=5000:cols=300",
                             "empty:rows=9000:cols=3", "random:rows=9000:cols=40:lengths=geometric:mean=0.6",
                             "random:rows=9000:cols=90:lengths=geometric:mean=12"}) {
      const auto A = make_matrix<double>(generate(spec), Data::Real, 5);
      const DeviceMatrix<Exec, double> device(A);
      std::vector<std::int64_t> empty;  // of each window
      for (int i = 0; i < A.rows; ++i) {
        if (i % window == 0) empty.push_back(0);
        empty.back() += A.length(i) == 0;
      }
      for (const int lanes : {8, 32, 64}) {
        SCOPED_TRACE(std::string(spec) + ", lanes " + std::to_string(lanes) + ", window " + std::to_string(window));
        const SpmvFeatures f = spmv_features(space, device.view());
        auto p = Experimental::to_packed(space, device.view(), lanes, Precision::FP64, f, o);
        p.done();
        const auto B = Experimental::to_csr(p);
        EXPECT_EQ(B.entries, A.entries);
        EXPECT_TRUE(std::equal(A.row_map.begin(), A.row_map.end(), B.row_map.begin(), B.row_map.end()));
        const auto rows_of = [&](std::int64_t rows) { return rows < lanes ? 0 : rows; };
        const auto slices_of = [&](std::int64_t rows) { return (rows_of(rows) + 8 * lanes - 1) / (8 * lanes); };
        std::int64_t slices = 0, rows = 0, found = 0, rows_found = 0;
        for (const std::int64_t n : empty) slices += slices_of(n), rows += rows_of(n);
        for (const PackedSlice& s : to_host(p.slices)) {
          if (s.index() != PackedEmpty) continue;
          ++found;
          rows_found += s.rows();
        }
        EXPECT_TRUE(found == slices || found == slices - slices_of(empty.back())) << found << " of " << slices;
        EXPECT_TRUE(rows_found == rows || rows_found == rows - rows_of(empty.back())) << rows_found << " of " << rows;
      }
    }
  }
}

// Two slices per wave where all rows are about as short: not where one is longer, half of them have no entry, or few
// are there.
TEST(PackedSetUp, TwoShortSlices) {
  const Exec space;
  const auto pairs = [&](Pattern p, long long least, std::int64_t none = 0) {
    for (std::int64_t i = 0; i < none; ++i) p.row_map.push_back(p.row_map.back());
    p.rows += none;
    const auto A = make_matrix<double>(p, Data::Real, 7);
    const DeviceMatrix<Exec, double> device(A);
    PackedOptions o;
    o.least_pairs = least;
    auto packed =
        Experimental::to_packed(space, device.view(), 32, Precision::FP64, spmv_features(space, device.view()), o);
    packed.done();
    EXPECT_TRUE(!packed.pairs || packed.variant == PackedVariant::ShortSlices);
    return packed.pairs;
  };
  const Pattern three = generate("uniform:rows=340000:cols=50:per_row=3");
  EXPECT_TRUE(pairs(three, 340000));
  EXPECT_FALSE(pairs(three, 340001));
  EXPECT_TRUE(pairs(three, 340000, 10000));
  EXPECT_FALSE(pairs(three, 340000, 400000));
  EXPECT_FALSE(pairs(generate("uniform:rows=340000:cols=50000:per_row=3"), 0));  // x has no locality
  EXPECT_TRUE(pairs(generate("uniform:rows=340000:cols=50000:per_row=1"), 0));
  Pattern longer = three;
  --longer.row_map[170000];
  EXPECT_FALSE(pairs(longer, 0));
}

// Room for packets is by estimate: one allocation suffices, and two where rows of one step each are rounded up to a
// whole wave. Threads are by estimate, too: here there are 250 slices, and threads for 130.
TEST(PackedSetUp, RoomByEstimate) {
  if (!Compat::is_host_v<Exec>) GTEST_SKIP() << "this runtime has memory of the host";
  const Exec space;
  const auto A = make_matrix<double>(pattern_of_lengths(std::vector<int>(2000, 17), 3001), Data::Real, 7);
  const DeviceMatrix<Exec, double> device(A);
  for (const bool suffices : {true, false}) {
    PackedOptions o;
    o.even_slices = o.value_classes = false;
    o.max_steps = suffices ? 8 : 1;
    const KernelTable table = CountingRuntime::table();
    const SpmvFeatures f = spmv_features(space, device.view(), &table);
    const int before = CountingRuntime::allocated;
    auto p = Experimental::to_packed(space, device.view(), 32, Precision::FP64, f, o, true, &table);
    p.done();
    EXPECT_EQ(CountingRuntime::allocated - before, suffices ? 3 : 4) << "mailbox, structure, packets";
    EXPECT_EQ(8 * p.packets.extent(0), static_cast<std::size_t>(p.summary.units) * packed_unit);
    const Experimental::PackedCsr back = Experimental::to_csr(p);
    EXPECT_EQ(back.entries, A.entries);
    EXPECT_EQ(std::memcmp(back.bits.data(), A.values.data(), 8 * A.values.size()), 0);
    if (suffices) {
      EXPECT_LT(Impl::packed_likely_slices(Impl::packed_shape(o, f, 32, 8, 1, false), f.nnz), p.summary.slices);
    }
  }
}

// Columns are in the order of their use, by powers of two, and in their own inside one of these.
TEST(PackedSetUp, RenumberedByUse) {
  const Exec space;
  const auto A = make_matrix<double>("web:n=3001:longest=900", Data::Real, 1);
  const DeviceMatrix<Exec, double> device(A);
  std::vector<std::int64_t> uses(static_cast<std::size_t>(A.cols), 0);
  for (const int c : A.entries) ++uses[static_cast<std::size_t>(c)];
  PackedOptions o;
  const SpmvFeatures f = spmv_features(space, device.view());
  const auto convert = [&] { return Experimental::to_packed(space, device.view(), 32, Precision::FP64, f, o, true); };
  for (const int wrong : {-2, 2}) {
    o.renumber = wrong;
    EXPECT_THROW(convert(), InvalidArgument);
  }
  o.renumber = 1;
  const auto p = convert(), again = convert();
  Compat::fence(space, "test");
  EXPECT_TRUE(p.renumbered && p.copies_hubs);
  EXPECT_EQ(Experimental::to_csr(p).entries, A.entries);
  const auto order = to_host(p.hub_columns);
  ASSERT_EQ(order.size(), uses.size());
  EXPECT_EQ(order, to_host(again.hub_columns));
  const auto kind = [&](std::uint32_t c) { return uses[c] == 0 ? 0 : 1 + std::min(std::ilogb(uses[c]), 14); };
  for (std::size_t i = 1; i < order.size(); ++i) {
    const int before = kind(order[i - 1]), here = kind(order[i]);
    ASSERT_TRUE(before > here || (before == here && order[i - 1] < order[i])) << i;
  }
  // What lies near of an x of three columns' room: two are used twice, four once.
  Impl::ColumnUse use{};
  use.columns[13] = 2, use.entries[13] = 4, use.columns[14] = 4, use.entries[14] = 4;
  const int bytes = static_cast<int>(Impl::packed_near_bytes / 3);
  EXPECT_NEAR(Impl::packed_near_share(use, 8, bytes), 5.0 / 8, 1e-3);
}

#ifndef TESSERA_TEST_FEWER_TYPES  // which link no packed slices of FP32
// By itself, in FP32 and below, only where values are in full: in fewer bytes they save more.
TEST(PackedSetUp, RenumberedByRule) {
  const Exec space;
  DeviceFacts facts;
  facts.wave = 32, facts.compute_units = 132, facts.shared_bytes = 227 << 10;
  for (const Data data : {Data::Real, Data::Integers}) {
    const auto A = make_matrix<float>("web:n=3001:longest=900", data, 1);
    const DeviceMatrix<Exec, float> device(A);
    SpmvFeatures f = spmv_features(space, device.view());
    f.nnz = 4000000, f.cols = 262144, f.mean = 15;  // as if it were large
    f.cv = 7, f.sectors = 0.95, f.narrow = 0;
    for (const bool classes : {true, false}) {
      PackedOptions o;
      o.value_classes = classes;
      const auto p = Experimental::to_packed(space, device.view(), 32, Precision::FP32, f, o, true, nullptr, facts);
      Compat::fence(space, "test");
      EXPECT_EQ(p.renumbered, data == Data::Real || !classes);
      EXPECT_EQ(p.hub_columns.extent(0), p.renumbered ? static_cast<std::size_t>(A.cols) : 0);
      EXPECT_EQ(Experimental::to_csr(p).entries, A.entries);
    }
  }
}
#endif

// More sort windows than a device works on at once: small teams order them, and groups of windows are counted.
TEST(PackedSetUp, ManySortWindows) {
  const Exec space;
  constexpr int windows = 5000;
  std::vector<int> lengths(12 * windows);
  for (std::size_t i = 0; i < lengths.size(); ++i)
    lengths[i] = static_cast<int>(i * i % 11 + (i % 4999 == 7 ? 300 : 0));
  const auto A = make_matrix<double>(pattern_of_lengths(lengths, 3001), Data::Real, 7);
  const DeviceMatrix<Exec, double> device(A);
  PackedOptions o;
  o.even_slices = o.value_classes = false;
  o.natural_padding = 0;
  o.window = 12, o.max_steps = 2, o.split_steps = 2;
  const SpmvFeatures f = spmv_features(space, device.view());
  const auto p = Experimental::to_packed(space, device.view(), 32, Precision::FP64, f, o, true);
  Compat::fence(space, "test");
  EXPECT_EQ(p.summary.split_rows, 13);
  EXPECT_EQ(p.summary.parts, 13 * 5);
  const auto B = Experimental::to_csr(p);
  EXPECT_EQ(B.row_map, std::vector<std::int64_t>(A.row_map.begin(), A.row_map.end()));
  EXPECT_EQ(B.entries, A.entries);
}

TEST(PackedSetUp, OptionsOutOfRange) {
  const Exec space;
  const auto A = make_matrix<double>("diagonal:rows=3:cols=3", Data::Real, 1);
  const DeviceMatrix<Exec, double> device(A);
  const SpmvFeatures f = spmv_features(space, device.view());
  const auto expect_refusal = [&](const auto& change) {
    PackedOptions o;
    change(o);
    EXPECT_THROW(Experimental::to_packed(space, device.view(), 32, Precision::FP64, f, o), InvalidArgument);
  };
  for (const int steps : {-1, 64, 1000}) {
    expect_refusal([=](PackedOptions& o) { o.max_steps = steps; });
    expect_refusal([=](PackedOptions& o) { o.split_steps = steps; });
  }
  for (const int window : {-12, 1, 11, 4093, 4096}) expect_refusal([=](PackedOptions& o) { o.window = window; });
  for (const int hubs : {-2, 65537}) expect_refusal([=](PackedOptions& o) { o.hubs = hubs; });
  for (const int blocks : {-2, 129}) expect_refusal([=](PackedOptions& o) { o.column_blocks = blocks; });
  for (const int shares : {-2, 65}) expect_refusal([=](PackedOptions& o) { o.cells = shares; });
  for (const double p : {-0.01, std::nan("")}) expect_refusal([=](PackedOptions& o) { o.natural_padding = p; });
}

}  // namespace Testing
}  // namespace Tessera
