// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BENCH_CASE_HPP
#define TESSERA_BENCH_CASE_HPP

#include <exception>
#include <string>
#include <vector>

#include "Tessera_Compat.hpp"
#include "Tessera_Error.hpp"
#include "driver/Tessera_BenchOptions.hpp"
#include "driver/Tessera_BenchReport.hpp"

/// \file
/// What the cases of all operations share.

namespace Tessera {
namespace Bench {

/// Baselines asked for out of those that exist here; the report learns of those that do not.
std::vector<std::string> wanted_baselines(const BenchOptions& options, Report& report,
                                          const std::vector<std::string>& existing, const std::string& precision);

/// The status of a baseline that declines: out of "all", that is no shortcoming of the run.
Exit declined_baseline(const BenchOptions& options);

/// Runs f. A system that fails is reported, with `what` before its message, and the others still run.
/// @param not_supported  the status where the library says that it does not offer this
template <class F>
void guarded(Report& report, const std::string& what, Exit not_supported, const F& f) {
  const auto note = [&](const std::exception& e, Exit status) { report.note(what + ": " + e.what(), status); };
  try {
    f();
  } catch (const BenchError&) {
    throw;
  } catch (const NotSupported& e) {
    note(e, not_supported);
  } catch (const NotCompiled& e) {
    note(e, not_supported);
  } catch (const InvalidArgument& e) {
    note(e, ExitUsage);
  } catch (const std::exception& e) {
    note(e, ExitFailure);
  }
}

/// A host array in the device's memory, converted.
template <class T, class Device, class Exec, class From>
Kokkos::View<T*, Device> upload(const Exec& space, const char* name, const std::vector<From>& from) {
  auto to = Compat::allocate<Kokkos::View<T*, Device>>(space, name, from.size());
  auto host = Kokkos::create_mirror_view(to);
  for (std::size_t i = 0; i < from.size(); ++i) host(i) = static_cast<T>(from[i]);
  Kokkos::deep_copy(space, to, host);
  Compat::fence(space, "Tessera::bench upload");
  return to;
}

}  // namespace Bench
}  // namespace Tessera

#endif
