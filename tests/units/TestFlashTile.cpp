// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// FlashSparse's SpMM kernel on emulated units, through the tables of the backends, from formats that the test lays out
// itself with plain loops.

#include <algorithm>
#include <limits>
#include <map>
#include <random>

#include "backends/kernels/spmm/Tessera_FlashSpmmKernel.hpp"
#include "backends/reference/Tessera_Reference.hpp"
#include "support/Tessera_TestCheck.hpp"
#include "units/AtomFixture.hpp"

namespace Tessera {
namespace Testing {
namespace {

const double nan_value = std::nan("");

/// A unit, a precision and a vector length that it offers.
template <class Vendor_, class Atom_, Precision precision_, int length_>
struct Offer {
  using Vendor = Vendor_;
  using Atom = Atom_;
  using Value = typename Atom::Operand;
  static constexpr Precision precision = precision_;
  static constexpr int length = length_;
  static constexpr bool nvidia = Atom::lanes == 32;
  static const KernelTable& table() { return nvidia ? *emulated_nvidia_table() : *emulated_amd_table(); }
  static double operand(Value value) { return Testing::operand<Atom>(value); }
};
template <Precision p, int length>
using OnNvidia =
    Offer<FlashNvidia,
          std::conditional_t<p == Precision::FP16, FlashNvidia::FP16,
                             std::conditional_t<p == Precision::BF16, FlashNvidia::BF16, FlashNvidia::TF32>>,
          p, length>;
template <Precision p>
using OnAmd = Offer<FlashAmd,
                    std::conditional_t<p == Precision::FP16, FlashAmd::FP16,
                                       std::conditional_t<p == Precision::BF16, FlashAmd::BF16, FlashAmd::TF32>>,
                    p, 16>;
using Offers =
    testing::Types<OnNvidia<Precision::FP16, 8>, OnNvidia<Precision::BF16, 8>, OnNvidia<Precision::TF32, 8>,
                   OnNvidia<Precision::FP16, 16>, OnNvidia<Precision::BF16, 16>, OnNvidia<Precision::TF32, 16>,
                   OnAmd<Precision::FP16>, OnAmd<Precision::BF16>, OnAmd<Precision::TF32>>;
struct OfferName {
  template <class O>
  static std::string GetName(int) {
    return std::string(O::Atom::name) + "_" + std::to_string(O::length) + "x1";
  }
};

struct Entry {
  int row, col;
  double value;
};

/// Entries of a matrix whose column 0 is empty; every third window or so has no entry, one row is long.
std::vector<Entry> entries(int rows, int cols, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> value(-1, 1);
  std::uniform_int_distribution<int> column(1, cols - 1), length(0, 6);
  std::vector<Entry> all;
  for (int row = 0; row < rows; ++row) {
    if (row / 16 % 3 == 1) continue;
    std::map<int, double> in_row;
    const int count = row == 3 ? 57 : length(engine);
    for (int i = 0; i < count; ++i) in_row[column(engine)] = value(engine);
    for (const auto& e : in_row) all.push_back({row, e.first, e.second});
  }
  return all;
}

/// How windows are laid out.
struct Layout {
  bool padded = false;
  int max_blocks = 0;  ///< 0: whole windows, and no parts at all
  bool reversed = false;
};

/// ME-BCRS or SR-BCRS by definition.
template <class O>
struct Format {
  using Value = typename O::Value;
  int depth = 0;
  SpmmFlashArgs args;
  std::vector<std::int32_t> pointers, columns, order;
  std::vector<Value> values;
  std::vector<SpmmPart> parts;
  std::vector<SpmmSplit> splits;
  int partials = 0;

  Format(int rows, const std::vector<Entry>& all, const Layout& layout)
      : depth(O::table().spmm.flash_depth(O::precision, O::length)) {
    const int windows = (rows + O::length - 1) / O::length;
    if (layout.reversed) {
      for (int i = 0; i < rows; ++i) order.push_back(rows - 1 - i);
    }
    pointers.push_back(0);
    for (int w = 0; w < windows; ++w) {
      std::map<int, std::map<int, double>> vectors;  // column -> row of the window -> value
      for (const Entry& e : all) {
        const int place = layout.reversed ? rows - 1 - e.row : e.row;
        if (place / O::length == w) vectors[e.col][place % O::length] = e.value;
      }
      std::vector<std::pair<int, std::map<int, double>>> list(vectors.begin(), vectors.end());
      while (layout.padded && list.size() % static_cast<std::size_t>(depth) != 0) list.push_back({-1, {}});
      const int count = static_cast<int>(list.size());
      for (int first = 0; first < count; first += depth) {
        const int width = std::min(depth, count - first);
        for (int row = 0; row < O::length; ++row) {
          for (int k = 0; k < width; ++k) {
            const auto& vector = list[static_cast<std::size_t>(first + k)].second;
            values.push_back(Value(vector.count(row) != 0 ? static_cast<float>(vector.at(row)) : 0.0f));
          }
        }
      }
      for (const auto& v : list) columns.push_back(v.first);
      pointers.push_back(static_cast<std::int32_t>(columns.size()));
      if (layout.max_blocks > 0) cut(w, (count + depth - 1) / depth, layout.max_blocks);
    }
    const std::size_t behind = static_cast<std::size_t>(O::length * depth);
    values.insert(values.end(), behind, Value(static_cast<float>(nan_value)));  // not to be read
    columns.insert(columns.end(), behind, 0);

    args.precision = O::precision;
    args.vector_length = O::length;
    args.depth = depth;
    args.rows = rows;
    args.windows = windows;
    args.row_order = order.empty() ? nullptr : order.data();
    args.row_pointers = pointers.data();
    args.column_indices = columns.data();
    args.values = values.data();
    args.split.parts = layout.max_blocks > 0 ? parts.data() : nullptr;
    args.split.part_count = layout.max_blocks > 0 ? static_cast<std::int64_t>(parts.size()) : windows;
    args.split.splits = splits.data();
    args.split.split_count = static_cast<std::int64_t>(splits.size());
  }
  Format(const Format&) = delete;
  Format& operator=(const Format&) = delete;

 private:
  void cut(int window, int blocks, int max_blocks) {
    const int count = std::max(1, (blocks + max_blocks - 1) / max_blocks);
    if (count > 1) splits.push_back({window, partials, count});
    for (int i = 0; i < count; ++i) {
      const int first = i * max_blocks;
      parts.push_back({window, static_cast<std::uint32_t>(first), std::min(max_blocks, blocks - first),
                       count > 1 ? partials++ : -1});
    }
  }
};

/// B with nothing but NaN around what may enter a sum: the row before, row 0 and what follows each row's end. The last
/// row ends the allocation, as sanitizers notice.
template <class Value>
struct DenseB {
  std::int64_t n, ld;
  std::vector<Word> storage;
  Value* first;

  DenseB(int rows, std::int64_t n_, unsigned seed) : n(n_) {
    const std::int64_t unit = 16 / static_cast<std::int64_t>(sizeof(Value));
    ld = (n + unit - 1) / unit * unit + (seed % 2) * unit;
    storage.resize(static_cast<std::size_t>((rows + 1) * ld / unit));
    first = reinterpret_cast<Value*>(storage.data()) + ld;
    for (std::int64_t i = -ld; i < rows * ld; ++i) first[i] = Value(static_cast<float>(nan_value));
    std::mt19937 engine(seed);
    std::uniform_real_distribution<float> value(-1, 1);
    for (int row = 1; row < rows; ++row) {
      for (std::int64_t j = 0; j < n; ++j) at(row, j) = Value(value(engine));
    }
  }
  Value& at(std::int64_t row, std::int64_t column) { return first[row * ld + column]; }
};

/// What alpha A B + beta C is, and what an error is measured against.
struct Wanted {
  std::vector<double> value, magnitude;  ///< per element of C; the second: sums of magnitudes
  std::vector<int> length;               ///< of the rows of A

  Wanted(std::int64_t rows, std::int64_t n)
      : value(static_cast<std::size_t>(rows * n)), magnitude(value.size()), length(static_cast<std::size_t>(rows), 0) {}
};

/// Fills C, with NaN where it must not be read, and adds up what is wanted.
template <class O, class C>
Wanted fill_and_multiply(const std::vector<Entry>& all, DenseB<typename O::Value>& b, Scaling s, std::int64_t rows,
                         C* c, std::int64_t ldc) {
  const std::int64_t n = b.n;
  Wanted wanted(rows, n);
  std::mt19937 engine(9);
  std::uniform_real_distribution<float> value(-1, 1);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      C& old = c[i * ldc + j];
      old = C(s.beta == 0 ? static_cast<float>(nan_value) : value(engine));
      wanted.value[i * n + j] = s.beta == 0 ? 0 : s.beta * plain(old);
      wanted.magnitude[i * n + j] = std::fabs(wanted.value[i * n + j]);
    }
  }
  for (const Entry& e : all) {
    ++wanted.length[e.row];
    const double a = O::operand(typename O::Value(static_cast<float>(e.value)));
    for (std::int64_t j = 0; j < n; ++j) {
      const double term = s.alpha * a * O::operand(b.at(e.col, j));
      wanted.value[e.row * n + j] += term;
      wanted.magnitude[e.row * n + j] += std::fabs(term);
    }
  }
  return wanted;
}

/// C := alpha A B + beta C, checked against sums in double and for what lies around C. Returns C.
template <class O, class C>
std::vector<C> check(Format<O>& format, const std::vector<Entry>& all, DenseB<typename O::Value>& b,
                     FlashMapping mapping, Scaling s, std::int64_t gap, int offset) {
  const std::int64_t rows = format.args.rows, n = b.n, ldc = n + gap;
  std::vector<C> memory(static_cast<std::size_t>(rows * ldc + 8), C(77.0f));
  C* const c = memory.data() + offset;
  const Wanted wanted = fill_and_multiply<O>(all, b, s, rows, c, ldc);

  SpmmFlashArgs args = format.args;
  args.coalesced = mapping == FlashMapping::Coalesced;
  args.split.partial_ld = (n + 3) / 4 * 4;
  std::vector<float> partials(static_cast<std::size_t>(format.partials * O::length * args.split.partial_ld),
                              static_cast<float>(nan_value));
  args.split.partials = partials.data();
  args.dense.b = b.first;
  args.dense.c = c;
  args.dense.ldb = b.ld;
  args.dense.ldc = ldc;
  args.dense.columns = n;
  args.dense.c_type = std::is_same<C, float>::value    ? ElementType::Float
                      : std::is_same<C, half_t>::value ? ElementType::Half
                                                       : ElementType::BHalf;
  args.dense.alpha = s.alpha;
  args.dense.beta = s.beta;
  const Status status = O::table().spmm.flash(args, nullptr);
  EXPECT_TRUE(status.ok()) << status.message;

  const double v = sizeof(C) == 2 ? TypeFacts<C>::roundoff() : 0;
  const double tiny = std::max(TypeFacts<C>::tiny(), TypeFacts<float>::tiny());
  std::vector<C> result;
  int wrong = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      const std::size_t at = static_cast<std::size_t>(i * n + j);
      const double got = plain(c[i * ldc + j]);
      const double bound =
          Reference::spmv_bound(wanted.length[static_cast<std::size_t>(i)], TypeFacts<float>::roundoff(),
                                wanted.magnitude[at], v, wanted.value[at], tiny);
      if (!(std::fabs(got - wanted.value[at]) <= bound) && ++wrong < 4) {
        ADD_FAILURE() << "C(" << i << ", " << j << ") of " << rows << " x " << n << " is " << got << ", wanted "
                      << wanted.value[at] << ", allowed " << bound;
      }
      result.push_back(c[i * ldc + j]);
    }
  }
  std::int64_t touched = 0;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(memory.size()); ++i) {
    const std::int64_t at = i - offset;
    const bool inside = at >= 0 && at < rows * ldc && at % ldc < n;
    if (!inside && plain(memory[static_cast<std::size_t>(i)]) != 77) ++touched;
  }
  EXPECT_EQ(touched, 0) << "elements beside C were written";
  EXPECT_EQ(wrong, 0) << "alpha " << s.alpha << ", beta " << s.beta << ", mapping " << static_cast<int>(mapping);
  return result;
}

constexpr FlashMapping mappings[] = {FlashMapping::Direct, FlashMapping::Coalesced};
constexpr int widths[] = {1, 3, 8, 15, 16, 17, 32, 64, 100};
constexpr int cols = 150;

template <class O>
class FlashTileTest : public testing::Test {};
TYPED_TEST_SUITE(FlashTileTest, Offers, OfferName);

TYPED_TEST(FlashTileTest, DepthIsTheInstructionsK) {
  using O = TypeParam;
  EXPECT_EQ(O::table().spmm.flash_depth(O::precision, O::length), O::Atom::k);
  EXPECT_EQ(O::table().spmm.flash_depth(O::precision, 4), 0);
  EXPECT_EQ(O::table().spmm.flash_depth(Precision::FP64, O::length), 0);
}

TYPED_TEST(FlashTileTest, AnyWidthMappingAndLayout) {
  using O = TypeParam;
  for (const int rows : {1, 37, 64}) {
    const std::vector<Entry> all = entries(rows, cols, 3);
    for (const bool padded : {false, true}) {
      Format<O> format(rows, all, {padded, 0, false});
      for (const int n : widths) {
        DenseB<typename O::Value> b(cols, n, static_cast<unsigned>(n + rows));
        for (const FlashMapping mapping : mappings) {
          check<O, float>(format, all, b, mapping, {1, 0}, 0, 0);
          check<O, typename O::Value>(format, all, b, mapping, {2.5, -1}, 4, 0);
        }
      }
    }
  }
}

TYPED_TEST(FlashTileTest, EveryCountOfVectorsInTheLastBlock) {
  using O = TypeParam;
  const int depth = O::Atom::k;
  for (int count = 1; count <= 2 * depth + 1; ++count) {
    std::vector<Entry> all;
    for (int i = 0; i < count; ++i) all.push_back({i * 5 % O::length, 2 * i + 1, 1 + 0.01 * i});
    for (const bool padded : {false, true}) {
      Format<O> format(O::length, all, {padded, 0, false});
      DenseB<typename O::Value> b(cols, 19, 1);
      for (const FlashMapping mapping : mappings) check<O, float>(format, all, b, mapping, {1, 1}, 0, 0);
    }
  }
}

TYPED_TEST(FlashTileTest, SplitWindows) {
  using O = TypeParam;
  const std::vector<Entry> all = entries(70, cols, 4);
  for (const int max_blocks : {1, 2, 3, 100}) {
    for (const bool reversed : {false, true}) {
      Format<O> format(70, all, {max_blocks == 3, max_blocks, reversed});
      EXPECT_EQ(format.splits.empty(), max_blocks == 100);
      for (const int n : {5, 32, 100}) {
        DenseB<typename O::Value> b(cols, n, 2);
        for (const FlashMapping mapping : mappings) {
          check<O, float>(format, all, b, mapping, {-1, 2.5}, 1, 1);
          check<O, typename O::Value>(format, all, b, mapping, {2.5, 0}, 0, 0);
        }
      }
    }
  }
}

TYPED_TEST(FlashTileTest, RowsInAnotherOrder) {
  using O = TypeParam;
  for (const int rows : {9, 37, 50}) {
    const std::vector<Entry> all = entries(rows, cols, 5);
    Format<O> format(rows, all, {false, 0, true});
    for (const int n : {1, 33, 64}) {
      DenseB<typename O::Value> b(cols, n, 2);
      for (const FlashMapping mapping : mappings) check<O, float>(format, all, b, mapping, {1, 1}, 0, 0);
    }
  }
}

TYPED_TEST(FlashTileTest, ScalingsAndAnyAlignmentOfC) {
  using O = TypeParam;
  const std::vector<Entry> all = entries(37, cols, 6);
  Format<O> format(37, all, {});
  for (const int n : {7, 20}) {
    DenseB<typename O::Value> b(cols, n, 3);
    for (const FlashMapping mapping : mappings) {
      for (const Scaling s : scalings()) {
        for (const int offset : {0, 1, 2}) {
          check<O, float>(format, all, b, mapping, s, offset, offset);
          check<O, typename O::Value>(format, all, b, mapping, s, 3 - offset, offset);
        }
      }
    }
  }
}

TYPED_TEST(FlashTileTest, NothingToDo) {
  using O = TypeParam;
  for (const int max_blocks : {0, 2}) {
    for (const int rows : {0, 1, 16, 21}) {  // without an entry, C is scaled
      Format<O> format(rows, {}, {false, max_blocks, false});
      DenseB<typename O::Value> b(cols, 9, 1);
      for (const FlashMapping mapping : mappings) {
        check<O, float>(format, {}, b, mapping, {1, 2.5}, 1, 1);
        check<O, float>(format, {}, b, mapping, {1, 0}, 1, 1);
      }
    }
    const std::vector<Entry> all = entries(20, cols, 6);
    Format<O> format(20, all, {false, max_blocks, false});
    DenseB<typename O::Value> none(cols, 0, 1);
    check<O, float>(format, all, none, FlashMapping::Coalesced, {1, 0}, 3, 0);
  }
}

/// A column's sums do not depend on how many columns a wave takes, nor on how lanes read B.
TYPED_TEST(FlashTileTest, SameBitsWhateverTheWidthAndMapping) {
  using O = TypeParam;
  const std::vector<Entry> all = entries(40, cols, 7);
  Format<O> format(40, all, {false, 3, false});
  DenseB<typename O::Value> wide(cols, 100, 8);
  const std::vector<float> reference = check<O, float>(format, all, wide, FlashMapping::Coalesced, {1, 0}, 0, 0);
  for (const int n : {3, 16, 32, 64, 100}) {
    DenseB<typename O::Value> b(cols, n, 8);
    for (int row = 0; row < cols; ++row) {
      for (int j = 0; j < n; ++j) b.at(row, j) = wide.at(row, j);
    }
    for (const FlashMapping mapping : mappings) {
      const std::vector<float> c = check<O, float>(format, all, b, mapping, {1, 0}, 0, 0);
      int different = 0;
      for (int i = 0; i < 40; ++i) {
        for (int j = 0; j < n; ++j) {
          different += std::memcmp(&c[static_cast<std::size_t>(i * n + j)],
                                   &reference[static_cast<std::size_t>(i * 100 + j)], sizeof(float)) != 0;
        }
      }
      EXPECT_EQ(different, 0) << n << " columns";
    }
  }
}

/// Infinities reach the rows that have an entry in their column, not the others of the window.
TYPED_TEST(FlashTileTest, InfinitiesReachTheRowsThatHaveTheirColumn) {
  using O = TypeParam;
  const int rows = 2 * O::length;
  const std::vector<Entry> all = {{0, 5, 1.0}, {1, 6, 2.0}, {O::length, 6, 3.0}};
  Format<O> format(rows, all, {});
  DenseB<typename O::Value> b(cols, 4, 1);
  for (int j = 0; j < 4; ++j) b.at(6, j) = typename O::Value(1.0f);
  b.at(5, 2) = typename O::Value(std::numeric_limits<float>::infinity());
  b.at(5, 0) = typename O::Value(4.0f);
  std::vector<float> c(static_cast<std::size_t>(rows * 4), 1);
  SpmmFlashArgs args = format.args;
  args.dense = {b.first, c.data(), b.ld, 4, 4, ElementType::Float, 1, 0};
  for (const FlashMapping mapping : mappings) {
    args.coalesced = mapping == FlashMapping::Coalesced;
    ASSERT_TRUE(O::table().spmm.flash(args, nullptr).ok());
    EXPECT_EQ(c[2], std::numeric_limits<float>::infinity());
    for (int i = 1; i < O::length; ++i) EXPECT_EQ(c[static_cast<std::size_t>(i * 4 + 2)], i == 1 ? 2 : 0);
    EXPECT_EQ(c[0], 4);
    EXPECT_EQ(c[4], 2);
    for (int j = 0; j < 4; ++j) EXPECT_EQ(c[static_cast<std::size_t>(O::length * 4 + j)], 3);
  }
}

TYPED_TEST(FlashTileTest, Refusals) {
  using O = TypeParam;
  Format<O> format(3, {{0, 1, 1.0}}, {});
  const auto refused = [&](auto change) {
    SpmmFlashArgs args = format.args;
    args.dense.c_type = ElementType::Float;
    change(args);
    return !O::table().spmm.flash(args, nullptr).ok();
  };
  EXPECT_FALSE(refused([](SpmmFlashArgs&) {}));
  EXPECT_TRUE(refused([](SpmmFlashArgs& a) { a.vector_length = 4; }));
  EXPECT_TRUE(refused([](SpmmFlashArgs& a) { a.depth *= 2; }));
  EXPECT_TRUE(refused([](SpmmFlashArgs& a) { a.precision = Precision::FP64; }));
  EXPECT_TRUE(refused([](SpmmFlashArgs& a) { a.dense.c_type = ElementType::Double; }));
  EXPECT_TRUE(refused([](SpmmFlashArgs& a) { a.split.windows_per_part = 2; }));
  EXPECT_TRUE(refused([](SpmmFlashArgs& a) { a.dense.ldb = std::int64_t{1} << 30; }));
  EXPECT_TRUE(refused([](SpmmFlashArgs& a) {
                a.dense.c_type = O::precision == Precision::FP16 ? ElementType::BHalf : ElementType::Half;
              }) ||
              O::precision == Precision::BF16);
}

/// Places of a few lanes in literal numbers, from sections 4.1 and 4.2 of the paper.
TEST(FlashTileLiterals, LanesOfTheSwappedInstruction) {
  using Half = FlashTile<Sm80_M16N8K8_F32_F16, true>;
  using Single = FlashTile<Sm80_M16N8K4_F32_TF32, true>;
  static_assert(Half::window_rows == 8 && Half::extent == 16 && Half::depth == 8 && Half::run == 2, "");
  static_assert(Single::window_rows == 8 && Single::extent == 16 && Single::depth == 4 && Single::run == 1, "");
  for (int g = 0; g < 8; ++g) {
    for (int t = 0; t < 4; ++t) {
      const int lane = 4 * g + t;
      for (int i = 0; i < 2; ++i) {  // the block's word number `lane`: row g, column vectors 2t and 2t + 1
        EXPECT_EQ(Half::sparse(lane, i).along, g);
        EXPECT_EQ(Half::sparse(lane, i).k, 2 * t + i);
      }
      for (int i = 0; i < 4; ++i) {
        EXPECT_EQ(Half::dense(lane, i).along, g + 8 * (i / 2));
        EXPECT_EQ(Half::dense(lane, i).k, 2 * t + i % 2);
        EXPECT_EQ(Half::result_row(lane, i), 2 * t + i % 2);
        EXPECT_EQ(Half::result_along(lane, i), g + 8 * (i / 2));
      }
      EXPECT_EQ(Single::sparse(lane, 0).along, g);
      EXPECT_EQ(Single::sparse(lane, 0).k, t);
      EXPECT_EQ(Single::dense(lane, 1).along, g + 8);
      EXPECT_EQ(Single::dense(lane, 1).k, t);
    }
  }
}
TEST(FlashTileLiterals, WindowsOfSixteenRows) {
  static_assert(FlashTile<Sm80_M16N8K8_F32_F16, false>::window_rows == 16, "");
  static_assert(FlashTile<Sm80_M16N8K8_F32_F16, false>::extent == 8, "");
  static_assert(FlashTile<Sm80_M16N8K8_F32_F16, false>::sparse_rows == 2, "");
  static_assert(FlashTile<Gfx90a_M16N16K16_F32_F16, true>::window_rows == 16, "");
  static_assert(FlashTile<Gfx90a_M16N16K16_F32_F16, true>::run == 4, "");
  static_assert(FlashTile<Gfx90a_M16N16K4_F32, true>::depth == 4, "");
  EXPECT_EQ((FlashTile<Gfx90a_M16N16K16_F32_F16, true>::dense(35, 3).along), 3);
  EXPECT_EQ((FlashTile<Gfx90a_M16N16K16_F32_F16, true>::dense(35, 3).k), 11);
}

}  // namespace
}  // namespace Testing
}  // namespace Tessera
