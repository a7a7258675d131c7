// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// The decoder of packed slices finds damaged formats.

#include <gtest/gtest.h>

#include "formats/packed/Tessera_FromPacked.hpp"
#include "formats/packed/Tessera_ToPacked.hpp"
#include "support/Tessera_TestCases.hpp"

namespace Tessera {
namespace Testing {

using namespace Tessera::Experimental;

// Wrong formats are found by the decoder; otherwise the tests of formats would prove little.
namespace {

auto convert(const Pattern& p, const PackedOptions& o) {
  using Exec = Kokkos::DefaultHostExecutionSpace;
  const auto A = make_matrix<double>(p, Data::Real, 1);
  const DeviceMatrix<Exec, double> device(A);
  const auto f = to_packed(Exec(), device.view(), 32, Precision::FP64, spmv_features(Exec(), device.view()), o);
  Exec().fence();
  return f;
}

/// The decoder refuses the format while `element`, which is a part of it, has another value.
template <class Format, class Element, class Value>
void expect_damage(const Format& format, Element& element, Value value, const std::string& what) {
  const auto kept = element;
  element = value;
  EXPECT_THROW(to_csr(format), InvalidArgument) << what;
  element = kept;
}

template <class Format>
unsigned char* packet_of(const Format& format, const PackedSlice& s) {
  return reinterpret_cast<unsigned char*>(format.packets.data()) + static_cast<std::size_t>(s.packet) * packed_unit;
}

const PackedPacket packet(32, 8);

}  // namespace

TEST(PackedDecoder, SeesDamagedSlices) {
  PackedOptions parts;
  parts.max_steps = parts.split_steps = 2;
  const auto f = convert(all_classes(600, 300), parts);
  ASSERT_GT(f.summary.parts, 2);
  ASSERT_GT(f.summary.id_rows, 0);
  const auto slices = static_cast<int>(f.slices.extent(0));
  int ids = static_cast<int>(f.summary.parts), full = ids;
  while (!f.slices(ids).has_ids() || f.slices(ids).rows() < 2) ++ids;
  PackedSlice& s = f.slices(ids);
  expect_damage(f, s.packet, s.packet + 1, "a gap between packets");
  expect_damage(f, s.packet, s.packet - 1, "overlapping packets");
  expect_damage(f, s.packed, s.packed + 1, "one step more");
  expect_damage(f, s.row, -5, "rows before the first");
  expect_damage(f, f.slices(slices - 1).row, static_cast<std::int32_t>(f.rows), "rows behind the last");
  expect_damage(f, f.parts(0).row, f.parts(f.summary.parts - 1).row, "a part of another row");
  expect_damage(f, f.parts(1).which, 0u, "a part twice");
  expect_damage(f, f.parts(0).count, f.parts(0).count + 1, "a part that is missing");
  auto* const id = reinterpret_cast<std::uint16_t*>(packet_of(f, s) + packet.row_ids(s));
  expect_damage(f, id[0], id[1], "a row twice");
  // A column beyond the last; padding inside a row; a value in padding.
  while (f.slices(full).index() != PackedIndex16 || f.slices(full).steps() < 2 || f.slices(full).rows() < 32) ++full;
  const PackedSlice& w = f.slices(full);
  auto* const index = reinterpret_cast<std::uint16_t*>(packet_of(f, w) + packet.indices(w));
  expect_damage(f, index[0], std::uint16_t{60000}, "a column out of range");
  expect_damage(f, index[0], std::uint16_t{0xffff}, "padding before an entry");
  EXPECT_NO_THROW(to_csr(f));
}

TEST(PackedDecoder, SeesDamagedMasks) {
  PackedOptions uneven;
  uneven.even_slices = false;
  const auto g = convert(stencil_with_gaps(), uneven);
  int masked = 0;
  while (!g.slices(masked).masked()) ++masked;
  PackedSlice& m = g.slices(masked);
  auto* const mask = reinterpret_cast<std::uint32_t*>(packet_of(g, m) + packet.high(m));
  auto* const offset = reinterpret_cast<std::uint32_t*>(packet_of(g, m) + packet.indices(m));
  int lane = 0;
  while ((mask[lane] & 1) != 0) ++lane;
  expect_damage(g, reinterpret_cast<double*>(packet_of(g, m))[2 * lane], 1.0, "padding that holds a value");
  expect_damage(g, mask[lane], mask[lane] | 1u << 31, "a mask beyond the steps");
  expect_damage(g, offset[0], 0xffffffffu, "an offset out of the matrix");
  EXPECT_NO_THROW(to_csr(g));
}

TEST(PackedDecoder, SeesDamagedShares) {
  PackedOptions blocks;
  blocks.column_blocks = 3;
  const auto h = convert(generate("random:rows=700:cols=600:lengths=uniform:mean=20"), blocks);
  ASSERT_EQ(h.shares.extent(0), 3u);
  PackedShare& share = h.shares(1);
  expect_damage(h, share.column, 0u, "a share of another column block");
  expect_damage(h, share.columns, share.columns - 1, "a share of too few columns");
  expect_damage(h, share.last, share.last - 1, "a slice in no share");
  expect_damage(h, share.first, share.first - 1, "a slice in two shares");
  expect_damage(h, share.ranks, 2u, "a share that nobody takes");
  EXPECT_NO_THROW(to_csr(h));
}

}  // namespace Testing
}  // namespace Tessera
