// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include <initializer_list>

#include "Tessera_RowSoftmax.hpp"
#include "adapters/python/Tessera_PythonViews.hpp"

namespace Tessera {
namespace Python {
namespace {

/// f(pattern, T()) with the pattern's offsets as wide as they are, and the one type that all arrays have.
template <class F>
void with_pattern(const AnyCsr& A, std::initializer_list<const Array*> arrays, F&& f) {
  const ElementType element = (*arrays.begin())->element;
  for (const Array* a : arrays) {
    Impl::require<NotSupported>(a->element == element, [&] {
      return std::string("row_softmax: all arrays must have numbers of one type, not ") + Impl::to_string(element) +
             " and " + Impl::to_string(a->element);
    });
  }
  const auto on = [&](const auto& pattern) {
    if (element == ElementType::Double) return f(pattern, double());
    if (element == ElementType::Float) return f(pattern, float());
    if (element == ElementType::Half) return f(pattern, half_t());
    return f(pattern, bhalf_t());
  };
  // Columns and numbers of the pattern are not looked at, whatever their type.
  if (A.wide) {
    on(matrix_of<float, std::size_t>(A));
  } else {
    on(matrix_of<float, int>(A));
  }
}

}  // namespace

void row_softmax(void* stream, const AnyCsr& A, const Array& x, const Array& y) {
  const Exec& space = space_on(stream);
  with_pattern(A, {&x, &y}, [&](const auto& pattern, auto type) {
    using T = decltype(type);
    if (x.rank == 2) {
      Tessera::row_softmax(space, pattern, strided<2, const T>("x", x), strided<2, T>("out", y));
    } else {
      Tessera::row_softmax(space, pattern, strided<1, const T>("x", x), strided<1, T>("out", y));
    }
  });
}

void row_softmax_backward(void* stream, const AnyCsr& A, const Array& y, const Array& dy, const Array& dx) {
  const Exec& space = space_on(stream);
  with_pattern(A, {&y, &dy, &dx}, [&](const auto& pattern, auto type) {
    using T = decltype(type);
    if (y.rank == 2) {
      Tessera::row_softmax_backward(space, pattern, strided<2, const T>("y", y), strided<2, const T>("grad_y", dy),
                                    strided<2, T>("out", dx));
    } else {
      Tessera::row_softmax_backward(space, pattern, strided<1, const T>("y", y), strided<1, const T>("grad_y", dy),
                                    strided<1, T>("out", dx));
    }
  });
}

}  // namespace Python
}  // namespace Tessera
