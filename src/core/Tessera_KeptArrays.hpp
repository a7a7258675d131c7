// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CORE_KEPT_ARRAYS_HPP
#define TESSERA_CORE_KEPT_ARRAYS_HPP

#include <algorithm>
#include <any>
#include <cstdint>
#include <mutex>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "Tessera_Compat.hpp"
#include "core/Tessera_HugePages.hpp"

/// \file
/// Arrays of results that are used again by later calls. What an ordinary View costs a device, about 50 us to allocate
/// and as long to release, is more than a small product.

namespace Tessera {
namespace Impl {

/// A stock of managed Views. Results share the ownership of arrays with it, so they are ordinary Views; what nobody but
/// the stock owns any more can be handed out again. All arrays that the stock shares, used or not, are at most as many
/// bytes as its last user allowed: older ones are left to their users alone, who release them as any View.
class KeptArrays {
 public:
  /// Of the process. Never destroyed; Kokkos::finalize empties it.
  static KeptArrays& all() {
    static KeptArrays* const stock = [] {
      Kokkos::push_finalize_hook([] { all().release(); });
      return new KeptArrays;
    }();
    return *stock;
  }

  /// What one call takes from the stock. Its construction waits for the device if there is anything to be taken: work
  /// that was enqueued before the last owner let go may still read an array, on any stream. A View of Kokkos waits so
  /// when it is released. Arrays that were let go later are left to later calls.
  class Turn {
   public:
    /// @param most  bytes that may be kept; 0: nothing is taken or kept
    explicit Turn(std::size_t most) : most_(most) {
      if (most == 0) return;
      seen_ = all().unused();
      if (!seen_.empty()) Compat::fence_all("Tessera: kept arrays");
    }
    /// Uninitialised; with room for some more elements if it is kept. @throw OutOfMemory  even without what was kept
    template <class View>
    View take(const std::string& label, std::size_t n) const {
      if (most_ == 0) return allocate_large<View>(label, n);
      const auto part = [n](const View& whole) {
        return View(Kokkos::subview(whole, std::make_pair(std::size_t{0}, n)));
      };
      constexpr std::size_t element = sizeof(typename View::value_type);
      View whole;
      if (all().find(seen_, label, n * element, whole)) return part(whole);
      const std::size_t bytes = rounded(n * element);
      const bool kept = bytes <= most_;
      try {
        whole = allocate_large<View>(label, kept ? bytes / element : n);
      } catch (const OutOfMemory&) {
        all().release();
        return allocate_large<View>(label, n);
      }
      if (kept) all().add(whole, label, bytes, most_);
      return part(whole);
    }

   private:
    std::size_t most_;
    std::vector<std::uint64_t> seen_;  ///< without another owner before the wait
  };

  /// Lets go of all arrays: those that nobody uses are released, the others become their users' own.
  void release() {
    std::vector<Array> gone;  // is released without the lock
    const std::lock_guard<std::mutex> lock(guard_);
    gone.swap(arrays_);
  }
  /// Of arrays that nobody uses.
  std::size_t unused_bytes() const {
    const std::lock_guard<std::mutex> lock(guard_);
    std::size_t bytes = 0;
    for (const Array& a : arrays_) bytes += a.used() ? 0 : a.bytes;
    return bytes;
  }
  /// Bytes that are allocated for as many: a sixteenth more at most, so that results that grow a little find room.
  static std::size_t rounded(std::size_t bytes) {
    std::size_t step = 256;
    while (step * 32 <= bytes) step *= 2;
    return (std::max<std::size_t>(bytes, 1) + step - 1) / step * step;
  }

 private:
  static constexpr std::size_t most_arrays = 64, little = std::size_t{1} << 16;

  struct Array {
    std::any view;
    int (*owners)(const std::any&);
    std::string label;
    std::size_t bytes;
    std::uint64_t number;  ///< a new one whenever it is handed out
    bool used() const { return owners(view) > 1; }
  };
  template <class View>
  static int owners(const std::any& view) {
    return std::any_cast<const View&>(view).use_count();
  }

  std::vector<std::uint64_t> unused() const {
    const std::lock_guard<std::mutex> lock(guard_);
    std::vector<std::uint64_t> numbers;
    for (const Array& a : arrays_) {
      if (!a.used()) numbers.push_back(a.number);
    }
    return numbers;
  }
  /// The smallest of those seen that is large enough, and not much too large, for a result may stay for long. What was
  /// seen unused and has its number still is unused.
  template <class View>
  bool find(const std::vector<std::uint64_t>& seen, const std::string& label, std::size_t bytes, View& view) {
    const std::lock_guard<std::mutex> lock(guard_);
    Array* best = nullptr;
    for (Array& a : arrays_) {
      const bool fits = a.bytes >= bytes && a.bytes <= std::max(2 * bytes, little) && a.label == label;
      if (!fits || (best != nullptr && best->bytes <= a.bytes)) continue;
      if (a.view.type() == typeid(View) && std::count(seen.begin(), seen.end(), a.number) > 0) best = &a;
    }
    if (best == nullptr) return false;
    best->number = ++last_number_;
    view = std::any_cast<const View&>(best->view);
    return true;
  }
  template <class View>
  void add(const View& view, const std::string& label, std::size_t bytes, std::size_t most) {
    std::vector<Array> gone;  // is released without the lock
    const std::lock_guard<std::mutex> lock(guard_);
    std::size_t sum = bytes;
    for (const Array& a : arrays_) sum += a.bytes;
    while (!arrays_.empty() && (sum > most || arrays_.size() >= most_arrays)) {
      const auto older = [](const Array& a, const Array& b) { return a.number < b.number; };
      const auto oldest = std::min_element(arrays_.begin(), arrays_.end(), older);
      sum -= oldest->bytes;
      gone.push_back(std::move(*oldest));
      arrays_.erase(oldest);
    }
    arrays_.push_back({view, &owners<View>, label, bytes, ++last_number_});
  }

  mutable std::mutex guard_;
  std::vector<Array> arrays_;
  std::uint64_t last_number_ = 0;
};

}  // namespace Impl
}  // namespace Tessera

#endif
