// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "driver/Tessera_BenchOperands.hpp"

#include <cstring>
#include <utility>

#include "Tessera_Compat.hpp"

namespace Tessera {
namespace Bench {
namespace {

using HostBytes = decltype(Kokkos::create_mirror_view(std::declval<const Kokkos::View<char*, Device>&>()));

template <class T>
void convert(char* to, const std::vector<double>& from) {
  for (std::size_t i = 0; i < from.size(); ++i) {
    const T value = static_cast<T>(from[i]);
    std::memcpy(to + i * sizeof(T), &value, sizeof(T));
  }
}

template <class T>
void convert(std::vector<double>& to, const char* from) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    T value;
    std::memcpy(&value, from + i * sizeof(T), sizeof(T));
    to[i] = static_cast<double>(value);
  }
}

DeviceArray send(const Exec& space, const char* name, std::size_t size, std::size_t element_bytes,
                 void (*fill)(char*, const void*), const void* from) {
  DeviceArray array(name, size, element_bytes);
  const HostBytes host = Kokkos::create_mirror_view(array.bytes());
  fill(host.data(), from);
  Kokkos::deep_copy(space, array.bytes(), host);
  Compat::fence(space, "Tessera::bench upload");
  return array;
}

template <class T>
void fill_numbers(char* to, const void* from) {
  convert<T>(to, *static_cast<const std::vector<double>*>(from));
}

}  // namespace

DeviceArray upload(const Exec& space, const char* name, const std::vector<double>& values, ElementType type) {
  const auto fill = type == ElementType::Double  ? fill_numbers<double>
                    : type == ElementType::Float ? fill_numbers<float>
                    : type == ElementType::Half  ? fill_numbers<half_t>
                                                 : fill_numbers<bhalf_t>;
  return send(space, name, values.size(), bytes_of(type), fill, &values);
}

DeviceArray upload(const Exec& space, const char* name, const std::vector<int>& values) {
  const auto fill = [](char* to, const void* from) {
    const auto& v = *static_cast<const std::vector<int>*>(from);
    if (!v.empty()) std::memcpy(to, v.data(), sizeof(int) * v.size());
  };
  return send(space, name, values.size(), sizeof(int), fill, &values);
}

DeviceArray upload_offsets(const Exec& space, const std::vector<std::int64_t>& offsets, int bits) {
  const auto wide = [](char* to, const void* from) {
    const auto& v = *static_cast<const std::vector<std::int64_t>*>(from);
    if (!v.empty()) std::memcpy(to, v.data(), 8 * v.size());
  };
  const auto narrow = [](char* to, const void* from) {
    const auto& v = *static_cast<const std::vector<std::int64_t>*>(from);
    for (std::size_t i = 0; i < v.size(); ++i) {
      const int value = static_cast<int>(v[i]);
      std::memcpy(to + i * sizeof(int), &value, sizeof(int));
    }
  };
  if (bits == 64) return send(space, "row_map", offsets.size(), 8, wide, &offsets);
  return send(space, "row_map", offsets.size(), 4, narrow, &offsets);
}

std::vector<double> download(const Exec& space, const DeviceArray& array, ElementType type) {
  const HostBytes host = Kokkos::create_mirror_view(array.bytes());
  Kokkos::deep_copy(space, host, array.bytes());
  Compat::fence(space, "Tessera::bench result");
  std::vector<double> values(array.size());
  switch (type) {
    case ElementType::Double:
      convert<double>(values, host.data());
      break;
    case ElementType::Float:
      convert<float>(values, host.data());
      break;
    case ElementType::Half:
      convert<half_t>(values, host.data());
      break;
    case ElementType::BHalf:
      convert<bhalf_t>(values, host.data());
      break;
  }
  return values;
}

void copy(const Exec& space, const DeviceArray& to, const DeviceArray& from) {
  Kokkos::deep_copy(space, to.bytes(), from.bytes());
}

}  // namespace Bench
}  // namespace Tessera
