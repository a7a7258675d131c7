// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CORE_SELECTION_HPP
#define TESSERA_CORE_SELECTION_HPP

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/Tessera_Backends.hpp"

/// \file
/// What the selections of all operations share: the result, and which backend a matrix can go to. Strongest first: the
/// options, then TESSERA_FORCE_BACKEND and the operation's TESSERA_FORCE_..., then the operation's rules. No rule ever
/// changes the precision.

namespace Tessera {
namespace Impl {

/// An algorithm that could be taken, and what an apply is predicted to cost, in a unit of the operation's.
template <class Algorithm>
struct Candidate {
  Algorithm algorithm;
  double cost;
};

/// What a selection decided.
template <class Algorithm>
struct Choice {
  std::shared_ptr<void> ahead;  // of a set-up: what has been enqueued before the algorithm was known
  Algorithm algorithm = Algorithm::Auto;
  Backend backend = Backend::Kokkos;
  Precision precision = Precision::FP64;
  bool fallback = false;
  bool predict = false;  ///< the matrix decides: see the operation's rules
  std::vector<Candidate<Algorithm>> candidates;
  std::string why, device;
  std::function<std::string()> explain;  ///< makes the text if `why` is empty: printing numbers takes microseconds

  std::string reason() const { return why.empty() && explain ? explain() : why; }
};

/// The backend that was asked for, and what follows from it for an execution space.
template <class Exec>
class BackendSelection {
 public:
  explicit BackendSelection(Backend option) : forced_(option != Backend::Auto ? option : forced_backend()) {
    emulated_ = forced_ == Backend::EmulatedNvidia || forced_ == Backend::EmulatedAmd;
    device_ = forced_ == Backend::Cuda || forced_ == Backend::Hip;
  }

  Backend forced() const { return forced_; }
  bool emulated() const { return emulated_; }
  static constexpr bool host() { return Compat::is_host_v<Exec>; }

  /// @throw NotSupported  a place where the backend cannot run; NotCompiled  it is not part of this build
  void check_place() const {
    if (device_) kernel_table(forced_);  // throws NotCompiled or NotSupported
    require<NotSupported>(!device_ || natural_backend<Exec>() == forced_, [&] {
      return "backend '" + std::string(to_string(forced_)) +
             "' needs Views in its device's memory; this matrix lives on " + Exec::name();
    });
    require<NotSupported>(!(emulated_ || forced_ == Backend::Reference) || host(), [&] {
      return "backend '" + std::string(to_string(forced_)) + "' runs on host execution spaces; this matrix lives on " +
             Exec::name();
    });
  }

  /// The backend with matrix units: the one asked for, else the space's own.
  Backend backend() const { return emulated_ || device_ ? forced_ : natural_backend<Exec>(); }
  /// Empty if backend() can be used.
  std::string why_not() const {
    for (const BackendInfo& info : available_backends()) {
      if (info.backend == backend()) {
        return info.usable ? "" : "backend '" + info.name + "' cannot be used: " + info.reason;
      }
    }
    return "no backend for " + std::string(Exec::name());
  }
  template <class Choice, class Algorithm>
  void take_backend(Choice& choice, Algorithm algorithm, std::string why) const {
    choice.algorithm = algorithm;
    choice.backend = backend();
    const KernelTable& table = kernel_table(choice.backend);
    choice.device = table.name;
    DeviceFacts facts;
    if (table.runtime.device_facts(facts).ok()) choice.device = facts.name;
    choice.why = std::move(why);
  }

 private:
  Backend forced_;
  bool emulated_ = false, device_ = false;
};

}  // namespace Impl
}  // namespace Tessera

#endif
