// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Converts a small matrix to every format of the library and prints what lies where as one JSON object, from which
// cmake/draw_formats.py draws the figures of example/manual/formats.md. The value of an entry is its number in CSR
// order, counted from 1, so that a stored value says which entry it is, and 0 is padding.
//
//   06_formats [FILE.mtx or FILE.mtx.gz]

#include <cstdio>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <string>
#include <vector>

#include "Tessera.hpp"
#include "core/Tessera_KernelTables.hpp"

#ifndef TESSERA_EXAMPLE_DATA
#define TESSERA_EXAMPLE_DATA "example/data"
#endif

namespace {

// Formats for the lanes of a host, wherever the default execution space is.
using Exec = Kokkos::DefaultHostExecutionSpace;
using Memory = Exec::memory_space;
using Csr = Tessera::CsrView<double, int, std::int64_t, Exec::device_type>;

/// Members of JSON objects, one per line.
class Json {
 public:
  void open(const std::string& name = "") { start(name, "{"); }
  void open_list(const std::string& name = "") { start(name, "["); }
  void close() { end("}"); }
  void close_list() { end("]"); }
  void text(const std::string& name, const std::string& value) { start(name, "\"" + value + "\"", false); }
  void number(const std::string& name, long long value) { start(name, std::to_string(value), false); }
  template <class List>
  void list(const std::string& name, const List& values) {
    std::string all;
    for (const auto& v : values) all += (all.empty() ? "" : ", ") + std::to_string(static_cast<long long>(v));
    start(name, "[" + all + "]", false);
  }

 private:
  void start(const std::string& name, const std::string& what, bool nested = true) {
    std::printf("%s%s%*s%s%s", first_ ? "" : ",", depth_ > 0 ? "\n" : "", 2 * depth_, "",
                name.empty() ? "" : ("\"" + name + "\": ").c_str(), what.c_str());
    depth_ += nested;
    first_ = nested;
  }
  void end(const char* what) {
    --depth_;
    std::printf("\n%*s%s", 2 * depth_, "", what);
    first_ = false;
  }
  int depth_ = 0;
  bool first_ = true;
};

template <class View>
std::vector<long long> numbers(const View& view) {
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), view);
  std::vector<long long> all(host.extent(0));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<long long>(host(i));
  return all;
}

/// Element i of raw storage.
template <class T, class Raw>
long long stored(const Raw& raw, std::size_t i) {
  T value;
  std::memcpy(&value, reinterpret_cast<const char*>(raw.data()) + i * sizeof(T), sizeof(T));
  return static_cast<long long>(static_cast<double>(value));
}

// ---- DASP

/// A matrix instruction made up for the picture: 2 x 4 slots on 8 lanes. Real ones have 8 x 4 to 16 x 16, for which the
/// matrix of a picture is too small. Lane 4 r + k holds slot (r, k); indices are not rotated.
Tessera::DaspGeometry small_geometry() {
  Tessera::DaspGeometry g;
  g.lanes = 8;
  g.rows = 2;
  g.depth = 4;
  g.elements = 1;
  g.value_bytes = 8;
  g.slices = 1;
  g.atom = "2 x 4, made up";
  for (int slot = 0; slot < g.rows * g.depth; ++slot) {
    g.value_slot[slot] = static_cast<std::uint16_t>(slot);
    for (int tile = 0; tile < g.tiles; ++tile) g.index_slot[tile][slot] = static_cast<std::uint16_t>(slot);
  }
  for (int tile = 0; tile < g.tiles; ++tile) {
    for (int row = 0; row < g.rows; ++row) g.result_lane[tile][row] = static_cast<std::uint8_t>(tile * g.rows + row);
  }
  return g;
}

/// Slots of a step in the order tile, row, k: a lane's slots of the four tiles follow each other in words of 16 bytes.
std::vector<std::size_t> step_places(const Tessera::DaspGeometry& g, std::size_t step, bool index) {
  std::vector<std::size_t> places;
  const std::size_t word = index ? 4 : 16 / static_cast<std::size_t>(g.value_bytes);
  const auto lanes = static_cast<std::size_t>(g.lanes), elements = static_cast<std::size_t>(g.elements);
  const std::size_t slots = static_cast<std::size_t>(g.rows) * static_cast<std::size_t>(g.depth);
  for (std::size_t tile = 0; tile < std::size_t{g.tiles}; ++tile) {
    for (std::size_t q = 0; q < slots; ++q) {
      const std::size_t slot = index ? g.index_slot[tile][q] : g.value_slot[q];
      const std::size_t lane = slot / elements, own = tile * elements + slot % elements;
      places.push_back(step * g.tiles * slots + (own / word * lanes + lane) * word + own % word);
    }
  }
  return places;
}

void print_dasp(Json& out, const Exec& space, const Csr& A) {
  Tessera::DaspOptions options;
  options.max_medium_length = 20;
  options.min_pairs = 2;
  options.sort = Tessera::SortRange::Global;
  const auto d = Tessera::Experimental::to_dasp(space, A, small_geometry(), Tessera::Precision::FP64, options);
  out.open("dasp");
  out.text("instruction", d.geometry.atom);
  out.number("rows", d.geometry.rows);
  out.number("depth", d.geometry.depth);
  out.number("max_medium_length", options.max_medium_length);
  out.list("row_order", numbers(d.row_order));
  out.list("kernel_rows", d.kernel_rows);
  out.list("first_position", d.first_position);
  out.number("pair_ones_position", d.pair_ones_position);
  out.list("first_step", d.first_step);
  out.list("first_block", d.first_block);
  out.list("long_pieces", numbers(d.long_pieces));
  out.list("remainder", numbers(d.remainder));
  out.list("runs", numbers(d.runs));
  out.open_list("blocks");
  for (std::size_t b = 0; b < d.blocks.extent(0); ++b) {
    const Tessera::DaspBlock& block = d.blocks(b);
    out.open();
    out.number("first_step", block.first_step);
    out.number("steps", block.packed % 4096);
    out.number("irregular", block.irregular_low);
    out.number("row", block.row);
    out.close();
  }
  out.close_list();
  out.open_list("steps");
  for (std::size_t step = 0; step < static_cast<std::size_t>(d.steps); ++step) {
    std::vector<long long> columns, values;
    for (const std::size_t at : step_places(d.geometry, step, true)) columns.push_back(d.columns(at));
    for (const std::size_t at : step_places(d.geometry, step, false)) values.push_back(stored<double>(d.values, at));
    out.open();
    out.list("columns", columns);
    out.list("values", values);
    out.close();
  }
  out.close_list();
  std::vector<long long> values;
  for (std::size_t i = 0; i < static_cast<std::size_t>(d.irregular); ++i) {
    values.push_back(stored<double>(d.irregular_values, i));
  }
  out.list("irregular_columns", numbers(d.irregular_columns));
  out.list("irregular_values", values);
  out.close();
}

// ---- packed slices

void print_packed(Json& out, const Exec& space, const Csr& A) {
  constexpr int lanes = 8;  // of a host
  Tessera::PackedOptions options;
  options.value_classes = false;  // entry numbers would fit a byte
  options.max_steps = 4;
  options.split_steps = 4;
  const auto p = Tessera::Experimental::to_packed(space, A, lanes, Tessera::Precision::FP64,
                                                  Tessera::spmv_features(space, A), options);
  const auto* const bytes = reinterpret_cast<const unsigned char*>(p.packets.data());
  out.open("packed");
  out.number("lanes", lanes);
  out.open_list("parts");
  for (std::size_t i = 0; i < p.parts.extent(0); ++i) {
    const Tessera::PackedPart& part = p.parts(i);
    out.open();
    out.number("row", part.row);
    out.number("first", part.first);
    out.number("count", part.count);
    out.number("which", part.which);
    out.close();
  }
  out.close_list();
  out.open_list("slices");
  for (std::size_t i = 0; i < p.slices.extent(0); ++i) {
    const Tessera::PackedSlice& s = p.slices(i);
    const Tessera::PackedPacket packet(lanes, p.value_bytes());
    const std::size_t begin = std::size_t{s.packet} * Tessera::packed_unit;
    out.open();
    out.number("packet", s.packet);
    out.number("row", s.row);
    out.number("column", s.column);
    out.number("steps", s.steps());
    out.number("lanes_per_row", 1 << s.log_lanes());
    out.number("rows", s.rows());
    out.number("index_bytes", s.index() == Tessera::PackedIndexFree ? 0 : s.index() + 1);
    out.number("part", s.part());
    out.number("bytes", static_cast<long long>(packet.bytes(s)));
    std::vector<long long> values, indices, ids;
    for (int step = 0; step < s.steps(); ++step) {
      for (int lane = 0; lane < lanes; ++lane) {
        const std::size_t at = packet.element(s.steps(), step, lane, 0, 1);
        double value;
        std::memcpy(&value, bytes + begin + at * sizeof(value), sizeof(value));
        values.push_back(static_cast<long long>(value));
        // Forty columns fit one byte; other kinds of index are not printed.
        if (s.index() == Tessera::PackedIndex8) indices.push_back(bytes[begin + packet.indices(s) + at]);
      }
    }
    for (int row = 0; s.has_ids() && row < s.rows(); ++row) {
      std::uint16_t id;
      std::memcpy(&id, bytes + begin + packet.row_ids(s) + 2 * static_cast<std::size_t>(row), sizeof(id));
      ids.push_back(id);
    }
    out.list("values", values);
    out.list("indices", indices);
    out.list("row_ids", ids);
    out.close();
  }
  out.close_list();
  out.close();
}

// ---- CSR5

void print_csr5(Json& out, const Exec& space, const Csr& A) {
  Tessera::Csr5Options options;
  options.sigma = 4;
  const auto f = Tessera::Experimental::to_csr5(space, A, options);
  out.open("csr5");
  out.number("omega", f.shape.omega);
  out.number("sigma", f.shape.sigma);
  out.number("tiles", f.tiles);
  out.number("full", f.full);
  std::vector<long long> rows, empty, y_offset, seg_offset, flags;
  for (const long long word : numbers(f.tile_ptr)) {
    rows.push_back(word & Tessera::Experimental::Csr5Shape::row_mask);
    empty.push_back((word & Tessera::Experimental::Csr5Shape::empty_mask) != 0);
  }
  for (std::int64_t t = 0; t < f.full; ++t) {
    for (int lane = 0; lane < f.shape.omega; ++lane) {
      const std::uint32_t word = f.tile_desc(static_cast<std::size_t>(f.shape.word(t, 0, lane)));
      y_offset.push_back(f.shape.y_offset(word));
      seg_offset.push_back(f.shape.seg_offset(word));
      for (int j = 0; j < f.shape.sigma; ++j) {
        flags.push_back(f.shape.flags(f.tile_desc.data(), t, lane) >> (31 - j) & 1u);
      }
    }
  }
  out.list("tile_ptr", rows);
  out.list("has_empty_rows", empty);
  out.list("y_offset", y_offset);
  out.list("seg_offset", seg_offset);
  out.list("flags", flags);
  out.list("empty_ptr", numbers(f.empty_ptr));
  out.list("empty_offset", numbers(f.empty_offset));
  out.list("carry_end", numbers(f.carry_end));
  out.list("empty_row", numbers(f.empty_row));
  out.list("tail_row", numbers(f.tail_row));
  out.list("tail_begin", numbers(f.tail_begin));
  out.list("columns", numbers(f.columns));
  out.list("values", numbers(f.values));
  out.close();
}

// ---- the window formats of SpMM

void print_me_bcrs(Json& out, const Exec& space, const Csr& A) {
  const auto f = Tessera::Experimental::to_me_bcrs(space, A, Tessera::Precision::FP16, 8);
  out.open("me_bcrs");
  out.number("vector_length", f.vector_length);
  out.number("depth", f.depth);
  out.list("row_pointers", numbers(f.row_pointers));
  out.list("column_indices", numbers(f.column_indices));
  std::vector<long long> values;
  for (std::size_t i = 0; i < static_cast<std::size_t>(f.stored()); ++i) {
    values.push_back(stored<Tessera::half_t>(f.values, i));
  }
  out.list("values", values);
  out.close();
}

void print_panels(Json& out, const Exec& space, const Csr& A) {
  const Tessera::KernelTable& table = Tessera::kernel_table(Tessera::Backend::EmulatedNvidia);
  const Tessera::PanelGeometry* const g = table.spmm.panel_geometry(Tessera::Precision::FP16, 64);
  const auto f = Tessera::Experimental::to_panels(space, A, *g, Tessera::Precision::FP16);
  out.open("panels");
  out.text("instruction", g->atom);
  out.number("rows", g->rows);
  out.number("depth", g->depth);
  out.list("block_ptr", numbers(f.block_ptr));
  out.open_list("blocks");
  for (std::size_t b = 0; b < static_cast<std::size_t>(f.blocks); ++b) {
    const std::uint32_t* const packet = &f.packets(b * static_cast<std::size_t>(g->packet_words()));
    std::vector<long long> columns, bits, before, values;
    for (int k = 0; k < g->depth; ++k) columns.push_back(static_cast<std::int32_t>(packet[k]));
    for (int bit = 0; bit < g->rows * g->depth; ++bit) {
      bits.push_back(packet[g->bitmap_at() + bit / 32] >> bit % 32 & 1u);
    }
    for (int row = 0; row < g->rows; ++row) before.push_back(packet[g->prefix_at() + row / 4] >> row % 4 * 8 & 0xffu);
    const std::uint32_t begin = packet[g->begin_at()], count = packet[g->count_at()];
    for (std::uint32_t i = 0; i < g->stored_values(count); ++i) {
      values.push_back(stored<Tessera::half_t>(f.values, begin + i));
    }
    out.open();
    out.list("columns", columns);
    out.list("bitmap", bits);
    out.list("before", before);
    out.number("begin", begin);
    out.number("count", count);
    out.list("values", values);
    out.close();
  }
  out.close_list();
  out.close();
}

int run(const std::string& file) {
  auto host = Tessera::io::read_matrix_market<double>(file);
  // FP16 holds whole numbers up to 2048.
  if (host.cols > 255 || host.values.size() > 2048) {
    std::fprintf(stderr, "%s: a matrix of at most 255 columns and 2048 entries can be drawn\n", file.c_str());
    return 1;
  }
  for (std::size_t i = 0; i < host.values.size(); ++i) host.values[i] = static_cast<double>(i + 1);
  const auto view = [](auto& v) {
    using T = typename std::decay_t<decltype(v)>::value_type;
    return Kokkos::View<T*, Kokkos::LayoutLeft, Memory, Kokkos::MemoryTraits<Kokkos::Unmanaged>>(v.data(), v.size());
  };
  const Exec space;
  const Csr A(host.rows, host.cols, view(host.row_map), view(host.entries), view(host.values));
  Json out;
  out.open();
  out.open("csr");
  out.number("rows", host.rows);
  out.number("cols", host.cols);
  out.list("row_map", host.row_map);
  out.list("entries", host.entries);
  out.close();
  print_dasp(out, space, A);
  print_packed(out, space, A);
  print_csr5(out, space, A);
  print_me_bcrs(out, space, A);
  print_panels(out, space, A);
  out.close();
  std::printf("\n");
  return 0;
}

}  // namespace

int main(int argc, char* argv[]) {
  Kokkos::initialize(argc, argv);
  int status = 1;
  try {
    status = run(argc > 1 ? argv[1] : TESSERA_EXAMPLE_DATA "/neighbours.mtx");
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
  }
  Kokkos::finalize();
  return status;
}
