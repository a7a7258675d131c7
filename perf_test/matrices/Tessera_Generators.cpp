// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "Tessera_Generators.hpp"

#include <cerrno>
#include <cstdlib>
#include <locale>
#include <sstream>

#include "Tessera_GeneratorsDetail.hpp"

namespace Tessera {
namespace Matrices {
namespace Detail {

namespace {

// strtod and printf would follow the C locale's decimal separator, and a spec must not.
bool parse_real(const std::string& text, double& value) {
  std::istringstream stream(text);
  stream.imbue(std::locale::classic());
  stream >> std::noskipws >> value;
  return !stream.fail() && stream.peek() == std::istringstream::traits_type::eof();
}
std::string format_real(double value) {
  std::ostringstream stream;
  stream.imbue(std::locale::classic());
  stream << value;
  return stream.str();
}
bool parse_integer(const std::string& text, std::int64_t& value) {
  if (text.empty() || text.find_first_not_of("-0123456789") != std::string::npos) return false;
  char* end = nullptr;
  errno = 0;
  value = std::strtoll(text.c_str(), &end, 10);
  return errno == 0 && end != text.c_str() && *end == '\0';
}
std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (char c : text) {
    if (c == separator)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

}  // namespace

Key integer_key(const std::string& name, std::int64_t value, std::int64_t low, std::int64_t high) {
  return {{name, std::to_string(value), std::to_string(low) + ".." + std::to_string(high)},
          Key::Kind::Integer,
          static_cast<double>(low),
          static_cast<double>(high)};
}
Key real_key(const std::string& name, double value, double low, double high) {
  return {
      {name, format_real(value), "real " + format_real(low) + ".." + format_real(high)}, Key::Kind::Real, low, high};
}
Key choice_key(const std::string& name, const std::string& choices) {
  return {{name, choices.substr(0, choices.find('|')), choices}, Key::Kind::Choice, 0, 0};
}
Key seed_key(std::int64_t value) { return integer_key("seed", value, 0, std::int64_t(1) << 40); }

std::int64_t Options::integer64(const std::string& key) const {
  std::int64_t value = 0;
  parse_integer(values_.at(key), value);
  return value;
}
double Options::real(const std::string& key) const {
  double value = 0;
  parse_real(values_.at(key), value);
  return value;
}
void Options::check(bool condition, const std::string& rule) const {
  Impl::require<InvalidArgument>(condition, [&] {
    std::string message = "generator " + generator_ + " needs " + rule + "; given";
    for (const auto& value : values_) message += " " + value.first + "=" + value.second;
    return message;
  });
}

void draw_distinct(Rng& rng, int count, int cols, std::vector<int>& row) {
  if (count <= 0) return;
  if (4 * static_cast<std::int64_t>(count) >= cols) {
    // Selection sampling: rejection would need ever more draws as the row fills up.
    int wanted = count;
    for (int c = 0; c < cols && wanted > 0; ++c) {
      if (rng.below(cols - c) < wanted) {
        row.push_back(c);
        --wanted;
      }
    }
    return;
  }
  while (static_cast<int>(row.size()) < count) {
    for (int missing = count - static_cast<int>(row.size()); missing > 0; --missing) row.push_back(rng.below(cols));
    sort_unique(row);
  }
}

Pattern by_edges(int nodes, std::vector<std::uint64_t>&& edges, bool symmetric) {
  const std::size_t n = static_cast<std::size_t>(nodes);
  std::vector<std::int64_t> row_end(n + 1, 0), column_end(symmetric ? 0 : n + 1, 0);
  // For a symmetric pattern both sorts have the same buckets.
  for (std::uint64_t e : edges) {
    ++row_end[e >> 32];
    ++(symmetric ? row_end : column_end)[e & 0xffffffffu];
  }
  const auto start_positions = [](std::vector<std::int64_t>& counts) {
    std::int64_t sum = 0;
    for (std::int64_t& c : counts) {
      const std::int64_t count = c;
      c = sum;
      sum += count;
    }
  };
  start_positions(row_end);
  if (symmetric)
    column_end = row_end;
  else
    start_positions(column_end);
  const std::vector<std::int64_t> row_begin(row_end);
  std::vector<int> from(static_cast<std::size_t>(row_end[n]));
  for (std::uint64_t e : edges) {
    const std::uint32_t a = static_cast<std::uint32_t>(e >> 32), b = static_cast<std::uint32_t>(e);
    from[column_end[b]++] = static_cast<int>(a);
    if (symmetric) from[column_end[a]++] = static_cast<int>(b);
  }
  std::vector<std::uint64_t>().swap(edges);

  // Columns arrive in ascending order, so a repetition is always the row's latest entry.
  Pattern pattern;
  pattern.entries.resize(from.size());
  std::int64_t k = 0;
  for (int c = 0; c < nodes; ++c) {
    for (; k < column_end[c]; ++k) {
      const int r = from[k];
      if (row_end[r] == row_begin[r] || pattern.entries[row_end[r] - 1] != c) pattern.entries[row_end[r]++] = c;
    }
  }
  std::vector<int>().swap(from);

  pattern.rows = pattern.cols = nodes;
  pattern.row_map.assign(n + 1, 0);
  auto out = pattern.entries.begin();
  for (std::size_t r = 0; r < n; ++r) {
    out = std::copy(pattern.entries.begin() + row_begin[r], pattern.entries.begin() + row_end[r], out);
    pattern.row_map[r + 1] = out - pattern.entries.begin();
  }
  pattern.entries.resize(static_cast<std::size_t>(pattern.row_map[n]));
  return pattern;
}

namespace {

const std::vector<Generator>& all_generators() {
  static const std::vector<Generator> all = [] {
    std::vector<Generator> list;
    for (auto* table : {&mesh_generators, &graph_generators, &row_generators, &shape_generators}) {
      for (Generator& g : (*table)()) {
        for (const Key& key : g.keys) g.info.keys.push_back(key.info);
        list.push_back(std::move(g));
      }
    }
    return list;
  }();
  return all;
}

struct Alias {
  const char* name;
  const char* spec;
  const char* stands_for;
};
// The numbers are those of published measurements: changing one makes old and new results incomparable.
constexpr Alias aliases[] = {
    {"stencil2d5_1000", "stencil2d:nx=1000:ny=1000:points=5", "ecology1, ecology2"},
    {"stencil2d5_2000", "stencil2d:nx=2000:ny=2000:points=5", "G3_circuit, ecology2 at four times the size"},
    {"stencil3d7_128", "stencil3d:nx=128:ny=128:nz=128:points=7", "atmosmodd, atmosmodl"},
    {"stencil3d7_160", "stencil3d:nx=160:ny=160:nz=160:points=7", "atmosmodd, atmosmodl at three times the size"},
    {"stencil3d27_100", "stencil3d:nx=100:ny=100:nz=100:points=27", "nlpkkt80; the HPCG problem"},
    {"mc2depi_like", "markov2d:nx=725:ny=725:gap=300", "mc2depi"},
    {"rmat18", "rmat:scale=18:degree=16:symmetric=0:seed=18", "the Graph500 and GAP R-MAT inputs"},
    {"rmat19", "rmat:scale=19:degree=16:symmetric=0:seed=19", "the Graph500 and GAP R-MAT inputs"},
    {"kron20", "rmat:scale=20:degree=16:symmetric=1:seed=20", "kron_g500-logn20"},
    {"web_like",
     "web:n=1000000:tail=1.45:longest=4700:local=0.65:window=200:hub_power=3:empty=0:"
     "seed=777",
     "webbase-1M"},
    {"fem3_like", "block_grid:nx=20:ny=40:nodes=66666:dof=3:missing=8:seed=0", "cant, consph, shipsec1"},
    {"circuit_like",
     "circuit:n=700000:long_every=100000:long_min=12000:long_max=41999:medium=0.002:near=20:"
     "far=2000:dense_cols=0:seed=31",
     "ASIC_680k, rajat31"},
    {"chem_like",
     "chem:n=200000:group=8:run=1:median=54:sigma=0.9:shortest=4:longest=1404:local=0.7:"
     "window=3000:seed=5",
     "Ga41As41H72, Si41Ge41H72"},
    {"uniform_1m", "uniform:rows=1048576:cols=1048576:per_row=16:exact=0:seed=11", "no structure at all"},
    {"arxiv_like", "community:n=169343:edges=1300000:alpha=0.62:local=0.55:size=600:symmetric=0:seed=101",
     "ogbn-arxiv"},
    {"collab_like", "community:n=235868:edges=1330000:alpha=0.4:local=0.75:size=150:symmetric=1:seed=102",
     "ogbl-collab"},
    {"ddi_like", "community:n=4267:edges=1500000:alpha=0.42:local=0:size=4267:symmetric=1:seed=103", "ogbl-ddi"},
    {"proteins_like", "community:n=132534:edges=44000000:alpha=0.35:local=0.75:size=3000:symmetric=1:seed=104",
     "ogbn-proteins"},
    {"reddit_half", "community:n=232965:edges=33000000:alpha=0.45:local=0.6:size=4000:symmetric=1:seed=105",
     "Reddit with about half its edges"},
    {"products_half", "community:n=1224514:edges=34000000:alpha=0.45:local=0.65:size=400:symmetric=1:seed=106",
     "ogbn-products with half its nodes"},
};

using Settings = std::vector<std::pair<std::string, std::string>>;
struct Spec {
  std::string name;
  Settings settings;
};

Spec parse_spec(const std::string& text) {
  std::vector<std::string> parts = split(text, ':');
  if (parts.size() > 1 && parts[0] == "gen") parts.erase(parts.begin());
  Spec spec{parts[0], {}};
  for (std::size_t p = 1; p < parts.size(); ++p) {
    const std::size_t equals = parts[p].find('=');
    Impl::require<InvalidArgument>(equals != std::string::npos && equals > 0, [&] {
      return "generator spec \"" + text + "\": \"" + parts[p] + "\" is not key=value (NAME[:key=value[:key=value...]])";
    });
    const std::string key = parts[p].substr(0, equals);
    for (const auto& earlier : spec.settings)
      Impl::require<InvalidArgument>(earlier.first != key,
                                     [&] { return "generator spec \"" + text + "\": key " + key + " is given twice"; });
    spec.settings.emplace_back(key, parts[p].substr(equals + 1));
  }
  return spec;
}

const Alias* find_alias(const std::string& name) {
  for (const Alias& alias : aliases)
    if (name == alias.name) return &alias;
  return nullptr;
}
const Generator& find_generator(const std::string& name) {
  for (const Generator& g : all_generators())
    if (name == g.info.name) return g;
  std::string known;
  for (const Generator& g : all_generators()) known += " " + g.info.name;
  known += "; aliases:";
  for (const Alias& alias : aliases) known += std::string(" ") + alias.name;
  throw InvalidArgument("no generator \"" + name + "\"; generators:" + known);
}

bool acceptable(const Key& key, const std::string& value) {
  if (key.kind == Key::Kind::Integer) {
    std::int64_t number = 0;
    return parse_integer(value, number) && static_cast<double>(number) >= key.low &&
           static_cast<double>(number) <= key.high;
  }
  if (key.kind == Key::Kind::Real) {
    double number = 0;
    return parse_real(value, number) && number >= key.low && number <= key.high;
  }
  for (const std::string& choice : split(key.info.accepts, '|'))
    if (value == choice) return true;
  return false;
}

void apply(const Generator& generator, const Settings& settings, std::map<std::string, std::string>& values) {
  for (const auto& setting : settings) {
    const auto key = std::find_if(generator.keys.begin(), generator.keys.end(),
                                  [&](const Key& k) { return k.info.name == setting.first; });
    Impl::require<InvalidArgument>(key != generator.keys.end(), [&] {
      std::string message = "generator " + generator.info.name + " has no key \"" + setting.first + "\"; keys:";
      for (const Key& k : generator.keys) message += " " + k.info.name;
      return message;
    });
    Impl::require<InvalidArgument>(acceptable(*key, setting.second), [&] {
      return "generator " + generator.info.name + ": " + setting.first + "=\"" + setting.second +
             "\" is not accepted; allowed: " + key->info.accepts;
    });
    values[setting.first] = setting.second;
  }
}

}  // namespace
}  // namespace Detail

Pattern generate(const std::string& text) {
  using namespace Detail;
  const Spec spec = parse_spec(text);
  const Alias* alias = find_alias(spec.name);
  const Spec base = alias ? parse_spec(alias->spec) : Spec{spec.name, {}};
  const Generator& generator = find_generator(base.name);
  std::map<std::string, std::string> values;
  for (const Key& key : generator.keys) values[key.info.name] = key.info.default_value;
  apply(generator, base.settings, values);
  apply(generator, spec.settings, values);
  return generator.make(Options(generator.info.name, std::move(values)));
}

std::vector<GeneratorInfo> generators() {
  using namespace Detail;
  std::vector<GeneratorInfo> list;
  for (const Generator& g : all_generators()) list.push_back(g.info);
  for (const Alias& alias : aliases) {
    const Spec base = parse_spec(alias.spec);
    GeneratorInfo info = find_generator(base.name).info;
    for (GeneratorKey& key : info.keys)
      for (const auto& setting : base.settings)
        if (setting.first == key.name) key.default_value = setting.second;
    info.name = alias.name;
    info.summary = std::string("The pattern ") + alias.spec + ".";
    info.stands_for = alias.stands_for;
    info.alias_of = alias.spec;
    list.push_back(std::move(info));
  }
  return list;
}

}  // namespace Matrices
}  // namespace Tessera
