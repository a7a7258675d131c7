// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_SDDMM_SDDMM_STORE_HPP
#define TESSERA_KERNELS_SDDMM_SDDMM_STORE_HPP

#include <cstdint>

#include "backends/interface/Tessera_Half.hpp"
#include "backends/interface/Tessera_SddmmArgs.hpp"
#include "backends/interface/Tessera_StoreResult.hpp"
#include "backends/units/Tessera_Wave.hpp"

/// \file
/// What the kernels of SDDMM share: operands of one head, words of their rows, and how a sum reaches P.

namespace Tessera {

/// The operands of one head, in the types that a kernel is compiled for.
template <class Value_, class Sum_>
class SddmmHead {
 public:
  using Value = Value_;
  using Sum = Sum_;
  static constexpr int width = 16 / static_cast<int>(sizeof(Value));  ///< elements of a word

  TESSERA_FUNCTION SddmmHead(const SddmmDense& dense, std::int64_t head)
      : x_(reinterpret_cast<const char*>(static_cast<const Value*>(dense.x) + head * dense.x_head)),
        y_(reinterpret_cast<const char*>(static_cast<const Value*>(dense.y) + head * dense.y_head)),
        scale_(dense.scale),
        slots_(dense.slots),
        x_bytes_(static_cast<std::int32_t>(dense.ldx * static_cast<std::int64_t>(sizeof(Value)))),
        y_bytes_(static_cast<std::int32_t>(dense.ldy * static_cast<std::int64_t>(sizeof(Value)))),
        alpha_(static_cast<Sum>(dense.alpha)),
        beta_(static_cast<Sum>(dense.beta)),
        scale_type_(dense.scale_type),
        wide_(sizeof(Value) != 2 || dense.p_type == ElementType::Float) {
    const std::int64_t size = wide_ ? static_cast<std::int64_t>(sizeof(Sum)) : 2;
    p_ = static_cast<char*>(dense.p) + head * dense.p_head * size;
  }

  TESSERA_FUNCTION const char* x(std::int32_t row) const { return x_ + std::int64_t{row} * x_bytes_; }
  /// Bytes from row 0 to row `row` of X.
  TESSERA_FUNCTION std::int64_t x_distance(std::int32_t row) const { return std::int64_t{row} * x_bytes_; }
  TESSERA_FUNCTION const char* y(std::int32_t row) const { return y_ + y_distance(row); }
  TESSERA_FUNCTION std::int64_t y_distance(std::int32_t row) const { return std::int64_t{row} * y_bytes_; }

  /// Whether P := alpha sum, in the type of the sums and in CSR order: a case of its own, since for short K the end is
  /// a good part of all instructions.
  TESSERA_FUNCTION bool plain() const { return scale_ == nullptr && slots_.of == nullptr && beta_ == Sum(0) && wide_; }
  TESSERA_FUNCTION Sum alpha() const { return alpha_; }
  /// P, where it has the type of the sums.
  TESSERA_FUNCTION Sum* sums() const { return reinterpret_cast<Sum*>(p_); }

  /// P of an entry := alpha sum [* S] + beta P.
  TESSERA_FUNCTION void store(std::int64_t entry, Sum sum) const {
    if (scale_ != nullptr) sum *= scale(entry);
    const std::int64_t at = slots_(entry);
    if constexpr (sizeof(Value) != 2) {
      store_scaled(reinterpret_cast<Sum*>(p_) + at, alpha_, sum, beta_);
    } else if (wide_) {
      store_scaled(reinterpret_cast<float*>(p_) + at, alpha_, sum, beta_);
    } else {
      store_scaled(reinterpret_cast<Value*>(p_) + at, alpha_, sum, beta_);
    }
  }

 private:
  TESSERA_FUNCTION Sum scale(std::int64_t entry) const {
    switch (scale_type_) {
      case ElementType::Double:
        return static_cast<Sum>(static_cast<const double*>(scale_)[entry]);
      case ElementType::Float:
        return static_cast<Sum>(static_cast<const float*>(scale_)[entry]);
      case ElementType::Half:
        return static_cast<Sum>(static_cast<float>(static_cast<const half_t*>(scale_)[entry]));
      default:
        return static_cast<Sum>(static_cast<float>(static_cast<const bhalf_t*>(scale_)[entry]));
    }
  }

  const char* x_;
  const char* y_;
  const void* scale_;
  SddmmSlots slots_;
  char* p_;
  std::int32_t x_bytes_, y_bytes_;
  Sum alpha_, beta_;
  ElementType scale_type_;
  bool wide_;  ///< P has the type of the sums
};

/// Sixteen bytes of a row. Exact: there are so many; else zeros where `on` does not hold.
template <bool Exact, class Wave, class RowWord>
TESSERA_FUNCTION void sddmm_load(const char* from, bool on, RowWord& to) {
  if constexpr (Exact) {
    // Loads that keep their order: all of a batch are under way before the first is waited for.
    const Word w = Wave::load_written(reinterpret_cast<const Word*>(from));
    TESSERA_UNROLL
    for (int j = 0; j < 4; ++j) to.w[j] = w.w[j];
  } else {
    Wave::template load_if<false, 16>(from, on, 0, to.w);
  }
}

}  // namespace Tessera

#endif
