// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "driver/Tessera_BenchSummary.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <utility>

namespace Tessera {
namespace Bench {
namespace {

/// The fastest rows of one matrix in one precision for one N; null: there is none.
struct Case {
  std::string precision, matrix;
  std::int64_t n = 1;
  const Record *automatic = nullptr, *other = nullptr, *baseline = nullptr;
};

/// In the order of the records.
std::vector<Case> cases_of(const std::vector<Record>& records) {
  std::vector<Case> cases;
  for (const Record& r : records) {
    if (!r.counts()) continue;
    auto at = std::find_if(cases.begin(), cases.end(), [&](const Case& c) {
      return c.precision == r.precision && c.n == r.n && c.matrix == r.matrix;
    });
    if (at == cases.end()) at = cases.insert(at, Case{r.precision, r.matrix, r.n});
    const Record*& best = r.role == "baseline" ? at->baseline : r.chosen_by_auto() ? at->automatic : at->other;
    if (best == nullptr || r.seconds_median < best->seconds_median) best = &r;
  }
  return cases;
}

using Group = std::pair<std::string, std::int64_t>;  ///< precision and N

/// The element of this precision and N, appended if there is none yet.
template <class T>
T& of_group(std::vector<T>& list, const Group& group) {
  const auto at = std::find_if(list.begin(), list.end(),
                               [&](const T& t) { return t.precision == group.first && t.n == group.second; });
  if (at != list.end()) return *at;
  list.emplace_back();
  list.back().precision = group.first;
  list.back().n = group.second;
  return list.back();
}

bool have_columns(const std::vector<Record>& records) { return !records.empty() && records.front().columns; }

/// Sum of logarithms.
struct Mean {
  double sum = 0;
  int count = 0;
  void add(double value) {
    if (!(value > 0)) return;
    sum += std::log(value);
    ++count;
  }
  double geometric() const { return count > 0 ? std::exp(sum / count) : Record::unknown; }
};

}  // namespace

namespace {

const char* const best_baseline = "best baseline";

/// One system on one matrix: its best times, and what ran at the best warm one.
struct Best {
  double warm, cold;
  const Record* record;
};
using Key = std::pair<Group, std::string>;                       ///< group and matrix, or group and system
using BestOfCases = std::map<Key, std::map<std::string, Best>>;  ///< by group and matrix, then by system

/// "cusparse" stands for the best of its CSR algorithms, each version of the library for itself.
std::string system_of(const Record& r) {
  if (r.algorithm.rfind("cusparse-alg", 0) != 0) return r.system();
  const std::size_t version = r.algorithm.find('@');
  return "cusparse" + (version == std::string::npos ? "" : r.algorithm.substr(version));
}

BestOfCases best_of_cases(const std::vector<Record>& records) {
  BestOfCases cases;
  for (const Record& r : records) {
    if (!r.counts()) continue;
    auto& systems = cases[{Group(r.precision, r.n), r.matrix}];
    const auto keep_best = [&](const std::string& name) {
      const auto [at, fresh] = systems.insert({name, {r.seconds_median, r.seconds_cold_median, &r}});
      if (fresh) return;
      Best& best = at->second;
      if (r.seconds_median < best.warm) best.record = &r;
      best.warm = std::fmin(best.warm, r.seconds_median);
      best.cold = std::fmin(best.cold, r.seconds_cold_median);
    };
    keep_best(system_of(r));
    if (r.role == "baseline") keep_best(best_baseline);
  }
  return cases;
}

/// Systems in the order of appearance: Tessera's, and those they are compared with.
struct Peers {
  std::vector<Key> tessera, against;
};

Peers peers_of(const std::vector<Record>& records) {
  Peers peers;
  const auto remember = [](std::vector<Key>& list, const Key& entry) {
    if (std::find(list.begin(), list.end(), entry) == list.end()) list.push_back(entry);
  };
  for (const Record& r : records) {
    if (!r.counts()) continue;
    const Key key(Group(r.precision, r.n), system_of(r));
    if (r.role == "tessera") remember(peers.tessera, key);
    if (r.role != "tessera" || key.second == "csr") remember(peers.against, key);
  }
  for (const Key& own : peers.tessera) {
    const auto foreign = std::count_if(peers.against.begin(), peers.against.end(),
                                       [&](const Key& b) { return b.first == own.first && b.second != "csr"; });
    if (foreign > 1) remember(peers.against, {own.first, best_baseline});
  }
  return peers;
}

/// As auto and the algorithm that it took.
bool same_kernel(const Record& a, const Record& b) {
  return a.role == b.role && a.algorithm == b.algorithm && a.variant == b.variant && a.backend == b.backend &&
         a.kernel == b.kernel;
}

Comparison compare_two(const BestOfCases& cases, const Key& own, const Key& other) {
  Comparison c;
  c.precision = own.first.first;
  c.n = own.first.second;
  c.label = own.second;
  c.against = other.second;
  double sum = 0, cold_sum = 0;
  for (const auto& one : cases) {
    if (one.first.first != own.first) continue;
    const auto a = one.second.find(own.second), b = one.second.find(other.second);
    if (a == one.second.end() || b == one.second.end()) continue;
    const double speedup = b->second.warm / a->second.warm;
    sum += std::log(speedup);
    if (!(speedup >= c.minimum)) {
      c.minimum = speedup;
      c.minimum_matrix = one.first.second;
    }
    cold_sum += std::log(b->second.cold / a->second.cold);
    const bool tie = same_kernel(*a->second.record, *b->second.record);
    c.ties += tie;
    c.wins += !tie && a->second.warm < b->second.warm;
    ++c.matrices;
  }
  c.geometric_mean = std::exp(sum / c.matrices);
  c.cold_geometric_mean = std::exp(cold_sum / c.matrices);
  return c;
}

}  // namespace

std::vector<Comparison> compare(const std::vector<Record>& records) {
  const BestOfCases cases = best_of_cases(records);
  const Peers peers = peers_of(records);
  std::vector<Comparison> result;
  for (const Key& own : peers.tessera) {
    for (const Key& other : peers.against) {
      if (own.first != other.first || own.second == other.second) continue;
      const Comparison c = compare_two(cases, own, other);
      if (c.matrices > 0) result.push_back(c);
    }
  }
  return result;
}

std::vector<Regret> regrets(const std::vector<Record>& records) {
  std::vector<Regret> result;
  for (const Case& c : cases_of(records)) {
    if (c.automatic == nullptr || c.other == nullptr) continue;
    result.push_back({c.precision, c.matrix, c.n, c.automatic->algorithm, c.other->label(), c.automatic->seconds_median,
                      c.other->seconds_median});
  }
  return result;
}

std::vector<RegretSummary> summarize_regrets(const std::vector<Regret>& regrets) {
  std::vector<RegretSummary> result;
  std::map<Group, Mean> means;
  for (const Regret& r : regrets) {
    const Group group(r.precision, r.n);
    RegretSummary& s = of_group(result, group);
    means[group].add(r.ratio());
    ++s.matrices;
    if (r.ratio() > s.worst) {
      s.worst = r.ratio();
      s.worst_matrix = r.matrix;
    }
  }
  for (RegretSummary& s : result) s.geometric_mean = means[{s.precision, s.n}].geometric();
  return result;
}

std::vector<AutoSummary> summarize_auto(const std::vector<Record>& records, const std::string& pattern) {
  struct Means {
    Mean speedup, rate, setup;
  };
  std::vector<AutoSummary> result;
  std::map<Group, Means> means;
  for (const Case& c : cases_of(records)) {
    if (c.automatic == nullptr || (!pattern.empty() && c.automatic->pattern != pattern)) continue;
    const Record& own = *c.automatic;
    const Group group(c.precision, c.n);
    AutoSummary& s = of_group(result, group);
    Means& m = means[group];
    s.pattern = pattern;
    ++s.matrices;
    m.rate.add(own.gbytes_per_second());
    const double applies = own.setup_applies();
    m.setup.add(applies);
    if (!(applies <= s.setup_applies_largest)) {
      s.setup_applies_largest = applies;
      s.setup_matrix = c.matrix;
    }
    if (c.baseline == nullptr) continue;
    ++s.compared;
    const double speedup = c.baseline->seconds_median / own.seconds_median;
    m.speedup.add(speedup);
    s.wins += speedup > 1;
    if (!(speedup >= s.speedup_minimum)) {
      s.speedup_minimum = speedup;
      s.minimum_matrix = c.matrix;
      s.minimum_baseline = c.baseline->label();
    }
  }
  for (AutoSummary& s : result) {
    const Means& m = means[{s.precision, s.n}];
    s.speedup_geometric_mean = m.speedup.geometric();
    s.gbytes_per_second = m.rate.geometric();
    s.setup_applies = m.setup.geometric();
  }
  return result;
}

std::vector<std::string> patterns_of(const std::vector<Record>& records) {
  std::vector<std::string> result;
  for (const Record& r : records) {
    if (r.pattern.empty() || std::find(result.begin(), result.end(), r.pattern) != result.end()) continue;
    result.push_back(r.pattern);
  }
  return result;
}

namespace {

/// "3 of 4", "3 of 4, 1 same" where both ran the same kernel, "same kernel" where they always did.
std::string wins_of(const Comparison& c) {
  if (c.ties == c.matrices) return "same kernel";
  const std::string wins = std::to_string(c.wins) + " of " + std::to_string(c.matrices);
  return c.ties > 0 ? wins + ", " + std::to_string(c.ties) + " same" : wins;
}

}  // namespace

void print_comparisons(const std::vector<Record>& records, std::size_t label_width, bool cold) {
  const std::vector<Comparison> comparisons = compare(records);
  if (comparisons.empty()) return;
  const int width = static_cast<int>(label_width);
  const bool emulated = std::any_of(records.begin(), records.end(), [](const Record& r) { return r.emulated; });
  std::printf("\nspeedup (time of the second over time of the first, geometric mean)%s\n",
              emulated ? "; emulated rows left out" : "");
  const bool columns = have_columns(records);
  std::printf("  %-*s %-22s %-5s", width, "algorithm", "against", "prec");
  if (columns) std::printf(" %5s", "N");
  std::printf(" %8s", "speedup");
  if (cold) std::printf(" %8s", "cold");
  std::printf(" %8s %12s\n", "minimum", "wins");
  for (const Comparison& c : comparisons) {
    std::printf("  %-*s %-22s %-5s", width, c.label.c_str(), c.against.c_str(), c.precision.c_str());
    if (columns) std::printf(" %5lld", static_cast<long long>(c.n));
    std::printf(" %8s", format_number("%.3f", c.geometric_mean).c_str());
    if (cold) std::printf(" %8s", format_number("%.3f", c.cold_geometric_mean).c_str());
    std::printf(" %8s %12s\n", format_number("%.3f", c.minimum).c_str(), wins_of(c).c_str());
  }
}

void print_auto(const std::vector<Record>& records, double stream_gbytes_per_second) {
  const std::vector<AutoSummary> all = summarize_auto(records);
  if (all.empty()) return;
  const std::vector<std::string> patterns = patterns_of(records);
  std::vector<std::vector<AutoSummary>> classes;
  if (patterns.size() > 1) {
    for (const std::string& pattern : patterns) classes.push_back(summarize_auto(records, pattern));
  }
  std::printf("\nauto against the fastest baseline of each matrix (geometric means)\n");
  const bool columns = have_columns(records);
  for (const AutoSummary& a : all) {
    std::printf("  %-5s", a.precision.c_str());
    if (columns) std::printf(" N=%-5lld", static_cast<long long>(a.n));
    if (a.compared > 0) {
      std::printf(" speedup %.3f on %d of %d, %d won, at least %.3f (%s on %s);", a.speedup_geometric_mean, a.compared,
                  a.matrices, a.wins, a.speedup_minimum, a.minimum_baseline.c_str(), a.minimum_matrix.c_str());
      for (const std::vector<AutoSummary>& one : classes) {
        for (const AutoSummary& c : one) {
          if (c.precision != a.precision || c.n != a.n || c.compared == 0) continue;
          std::printf(" %s %.3f, %d of %d won, at least %.3f;", c.pattern.c_str(), c.speedup_geometric_mean, c.wins,
                      c.compared, c.speedup_minimum);
        }
      }
    } else {
      std::printf(" no baseline;");
    }
    std::printf(" %s GB/s", format_number("%.1f", a.gbytes_per_second).c_str());
    const double share = a.gbytes_per_second / stream_gbytes_per_second;
    if (stream_gbytes_per_second > 0 && share > 1) {
      std::printf(", above the streaming read: partly from caches");
    } else if (stream_gbytes_per_second > 0) {
      std::printf(", %s of the streaming read", format_number("%.2f", share).c_str());
    }
    std::printf("; set-up in applies %s, at most %s (%s)\n", format_number("%.1f", a.setup_applies).c_str(),
                format_number("%.1f", a.setup_applies_largest).c_str(), a.setup_matrix.c_str());
  }
}

void print_regrets(const std::vector<Record>& records) {
  const std::vector<Regret> all = regrets(records);
  if (all.empty()) {
    std::printf("\nregret of auto: it was measured beside no other algorithm\n");
    return;
  }
  std::size_t longest = 6;
  for (const Regret& r : all) longest = std::max(longest, r.matrix.size());
  const int width = static_cast<int>(longest);
  std::printf("\nregret of auto (its time over the time of the fastest other algorithm measured)\n");
  // N = 1 for vectors.
  std::printf("  %-*s %-5s %5s %-8s %10s %-16s %10s %7s\n", width, "matrix", "prec", "N", "auto", "time", "fastest",
              "time", "regret");
  for (const Regret& r : all) {
    std::printf("  %-*s %-5s %5lld %-8s %10s %-16s %10s %7.3f\n", width, r.matrix.c_str(), r.precision.c_str(),
                static_cast<long long>(r.n), r.chosen.c_str(), format_seconds(r.seconds).c_str(), r.fastest.c_str(),
                format_seconds(r.fastest_seconds).c_str(), r.ratio());
  }
  for (const RegretSummary& s : summarize_regrets(all)) {
    const std::string columns = have_columns(records) ? " N=" + std::to_string(s.n) : std::string();
    std::printf("  %s%s: geometric mean %.3f, worst %.3f (%s), %d matri%s\n", s.precision.c_str(), columns.c_str(),
                s.geometric_mean, s.worst, s.worst_matrix.c_str(), s.matrices, s.matrices == 1 ? "x" : "ces");
  }
}

}  // namespace Bench
}  // namespace Tessera
