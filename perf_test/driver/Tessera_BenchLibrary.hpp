// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BENCH_LIBRARY_HPP
#define TESSERA_BENCH_LIBRARY_HPP

#include <dlfcn.h>

#include <string>

#include "driver/Tessera_BenchOptions.hpp"

// Sanitizers that replace functions of libc refuse RTLD_DEEPBIND.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define TESSERA_BENCH_SANITIZED 1
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TESSERA_BENCH_SANITIZED 1
#endif

namespace Tessera {
namespace Bench {

/// A library loaded at run time, and never unloaded: what it made may live until the program ends. Its own functions
/// come first for its own calls, so that a second version of a library that is linked can be loaded beside the first.
class SharedLibrary {
 public:
  /// @param file  with a folder, or else searched for as the loader does
  /// @throw BenchError  ExitInput: there is no such file, or it cannot be loaded
  explicit SharedLibrary(const std::string& file) : file_(file) {
#if defined(RTLD_DEEPBIND) && !defined(TESSERA_BENCH_SANITIZED)
    constexpr int own_first = RTLD_DEEPBIND;
#else
    constexpr int own_first = 0;
#endif
    library_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | own_first);
    if (library_ == nullptr) throw BenchError(ExitInput, "cannot load: " + fault());
  }

  /// Null if the library has none of this name.
  template <class F>
  void find(F*& function, const char* name) const {
    function = reinterpret_cast<F*>(dlsym(library_, name));
  }
  /// @throw BenchError  ExitInput: the library has none of this name
  template <class F>
  void require(F*& function, const char* name) const {
    find(function, name);
    if (function == nullptr) throw BenchError(ExitInput, file_ + " has no function " + name);
  }

 private:
  static std::string fault() {
    const char* text = dlerror();
    return text == nullptr ? "no reason given" : text;
  }
  std::string file_;
  void* library_ = nullptr;
};

}  // namespace Bench
}  // namespace Tessera

#endif
