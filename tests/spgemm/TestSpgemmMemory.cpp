// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// What spgemm() keeps between calls, and the stock of arrays that it keeps it in.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "core/Tessera_KeptArrays.hpp"
#include "support/Tessera_TestSpgemmMemory.hpp"

namespace Tessera {
namespace Testing {

using Exec = Kokkos::DefaultHostExecutionSpace;

class SpgemmMemory : public ::testing::Test, protected SpgemmMemorySuite<Exec> {};
TEST_F(SpgemmMemory, KnownBeforehand) { known_beforehand(); }
TEST_F(SpgemmMemory, OneCallKeepsTheCap) { one_call_keeps_the_cap(); }
TEST_F(SpgemmMemory, UsedAgain) { used_again(); }
TEST_F(SpgemmMemory, Held) { held(); }
TEST_F(SpgemmMemory, Powers) { powers(); }
TEST_F(SpgemmMemory, GivenBack) { given_back(); }
TEST_F(SpgemmMemory, OtherSizes) { other_sizes(); }
TEST_F(SpgemmMemory, AfterExceptions) { after_exceptions(); }

// Hosts' own methods get huge pages and keep nothing.
TEST_F(SpgemmMemory, NotOnHosts) {
  release_kept_memory();
  const Device a(matrix("fem:nx=5:ny=4:nz=3"));
  spgemm(Exec(), a.view(), a.view());
  EXPECT_EQ(kept_memory_bytes(), 0u);
}

// Batches of rows by a table whose functions look at what they get, or fail.
class SpgemmBatches : public ::testing::Test, protected SpgemmMemorySuite<Exec> {
 protected:
  static inline const SpgemmTotals* totals = nullptr;
  static inline std::int64_t room = 0;  ///< of them, in totals
  static inline int good = 0;           ///< calls before one fails
  static const KernelTable& emulated() { return kernel_table(Backend::EmulatedNvidia); }
  KernelTable table = emulated();
  using Native = Impl::SpgemmNative<Csr>;
  static Native native(const KernelTable& by, const Device& a, const Device& b, std::size_t most) {
    return Native(Exec(), by, a.view(), b.view(), most, SpgemmTiles::Auto, Impl::Lifetime::Plan);
  }
};

// Also where lists of all rows have room, which are dealt to one thread block, and lists of fewer, which would be dealt
// to several, are looked at in the end, as parts have none.
TEST_F(SpgemmBatches, TotalsHaveRoom) {
  table.spgemm.look = [](const SpgemmArgs& args, Stream stream) noexcept {
    if (totals != args.partial) room = args.thread_blocks;  // the first look
    totals = args.partial;
    EXPECT_LE(args.thread_blocks, room);
    EXPECT_GE(args.thread_blocks * args.rows_per_block, args.A.rows);
    return emulated().spgemm.look(args, stream);
  };
  const Device a(matrix("uniform:rows=97:cols=400:per_row=30")), b(matrix("uniform:rows=400:cols=3000:per_row=20"));
  const std::size_t lists = native(table, a, b, 0).list_bytes(97);
  totals = nullptr;
  const auto batches = native(table, a, b, lists);
  EXPECT_TRUE(batches.batched());
  EXPECT_NE(totals, nullptr);
}

TEST_F(SpgemmBatches, CountedAgainAfterAnError) {
  table.spgemm.numbers = [](const SpgemmArgs& args, const SpgemmTotals& sizes, Stream stream) noexcept {
    return good-- > 0 ? emulated().spgemm.numbers(args, sizes, stream) : Status{"no"};
  };
  const Matrix A = matrix("uniform:rows=700:cols=700:per_row=4");
  const Device a(A);
  const auto wanted = multiply<Exec>(A, A, options(false));
  auto batches = native(table, a, a, 1);
  ASSERT_TRUE(batches.batched());
  const DeviceVector<Exec, int> rows("rows", 701), columns("columns", wanted.columns.size());
  const DeviceVector<Exec, double> values("values", wanted.columns.size());
  for (int turn = 0; turn < 2; ++turn) {
    Kokkos::deep_copy(rows, 0);
    EXPECT_EQ(batches.symbolic(Exec(), rows.data()), static_cast<std::int64_t>(wanted.columns.size()));
    EXPECT_EQ(to_host(rows), wanted.row_map);
    good = turn == 0 ? 1 : 1000;
    if (turn > 0) continue;
    EXPECT_THROW(batches.numeric(Exec(), rows.data(), columns.data(), values.data()), DeviceError);
  }
  batches.numeric(Exec(), rows.data(), columns.data(), values.data());
  EXPECT_TRUE(same_bits(to_host(values), wanted.values));
}

using Stock = Impl::KeptArrays;
using Turn = Stock::Turn;
using Array = Kokkos::View<double*, Kokkos::LayoutLeft, DeviceOf<Exec>>;
using Integers = Kokkos::View<int*, Kokkos::LayoutLeft, DeviceOf<Exec>>;
constexpr std::size_t plenty = 1 << 24;

class StockOfArrays : public ::testing::Test {
 protected:
  void SetUp() override { Stock::all().release(); }
  void TearDown() override { Stock::all().release(); }
};

// What was let go after a turn began may still be read by work that the turn did not wait for.
TEST_F(StockOfArrays, ATurnTakesWhatWasThereBefore) {
  const Turn early(plenty);
  Array a = early.take<Array>("a", 1000);
  const double* const first = a.data();
  a = {};
  EXPECT_NE(early.take<Array>("a", 1000).data(), first);
  const Turn late(plenty), later(plenty);
  a = late.take<Array>("a", 1000);
  EXPECT_TRUE(a.data() == first);
  a = {};
  Array b = later.take<Array>("a", 1000);
  EXPECT_NE(b.data(), first) << "it was late's in between";
}

TEST_F(StockOfArrays, OfTheSameTypeLabelAndAboutTheSameSize) {
  Turn(plenty).take<Array>("a", 100000);
  const double* const a = Turn(plenty).take<Array>("a", 100000).data();
  const void* const i = Turn(plenty).take<Integers>("a", 200000).data();
  EXPECT_NE(i, static_cast<const void*>(a));
  EXPECT_NE(Turn(plenty).take<Array>("b", 100000).data(), a);
  EXPECT_NE(Turn(plenty).take<Array>("a", 49000).data(), a) << "twice as much for less than half";
  const Array part = Turn(plenty).take<Array>("a", 99000);
  EXPECT_EQ(part.data(), a);
  EXPECT_EQ(part.extent(0), 99000u);
  EXPECT_EQ(Turn(0).take<Array>("a", 8).use_count(), 1) << "nothing is kept";
}

TEST_F(StockOfArrays, OldOnesGoFirst) {
  const std::size_t bytes = Stock::rounded(8000);
  const Turn turn(3 * bytes);
  const Array in_use = turn.take<Array>("in use", 1000);
  for (const char* label : {"a", "b", "c"}) turn.take<Array>(label, 1000);
  EXPECT_EQ(in_use.use_count(), 1) << "no longer kept";
  EXPECT_EQ(Stock::all().unused_bytes(), 3 * bytes);
  turn.take<Array>("large", 8000);
  EXPECT_EQ(Stock::all().unused_bytes(), 3 * bytes) << "more than may be kept";
  const Array c = Turn(3 * bytes).take<Array>("c", 1000);
  turn.take<Array>("d", 1000);
  EXPECT_EQ(Stock::all().unused_bytes(), 2 * bytes);
  EXPECT_EQ(c.use_count(), 2) << "a was older";
}

TEST_F(StockOfArrays, RoundsALittle) {
  for (std::size_t n : {0, 1, 256, 257, 8191, 8192, 8193, 1000000, 123456789}) {
    EXPECT_GE(Stock::rounded(n), n);
    EXPECT_LE(Stock::rounded(n), std::max<std::size_t>(n + n / 16 + 1, (n / 256 + 1) * 256)) << n;
    EXPECT_EQ(Stock::rounded(n) % 256, 0u);
    EXPECT_EQ(Stock::rounded(Stock::rounded(n)), Stock::rounded(n));
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Before it fails, what is kept is given back.
TEST_F(StockOfArrays, NoMemory) {
  Turn(plenty).take<Array>("a", 1000);
  const Turn turn(plenty);
  EXPECT_GT(Stock::all().unused_bytes(), 0u);
  try {
    turn.take<Array>("huge", std::size_t{1} << 55);
    ADD_FAILURE() << "no exception";
  } catch (const OutOfMemory& e) {
    EXPECT_EQ(e.required(), std::size_t{1} << 58);
  }
  EXPECT_EQ(Stock::all().unused_bytes(), 0u);
}
#endif

// Of several threads no two have one array at a time.
TEST_F(StockOfArrays, Threads) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int id = 0; id < 4; ++id) {
    threads.emplace_back([id, &wrong] {
      for (int turn = 0; turn < 300; ++turn) {
        const std::size_t n = 500 + static_cast<std::size_t>(turn * 37 % 400);
        const Array a = Turn(plenty).take<Array>("a", n);
        for (std::size_t i = 0; i < n; ++i) a.data()[i] = 1000 * id + turn;
        std::this_thread::yield();
        for (std::size_t i = 0; i < n; ++i) wrong += a.data()[i] != 1000 * id + turn;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace Testing
}  // namespace Tessera
