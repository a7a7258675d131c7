// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "Tessera_Types.hpp"

namespace Tessera {
namespace {

/// Names are an interface: they stand in result files and environment variables.
template <class Enum, class Parse>
void expect_names(const std::vector<std::pair<Enum, std::string>>& names, Parse parse) {
  std::set<std::string> different;
  for (const auto& [value, name] : names) {
    EXPECT_EQ(to_string(value), name);
    EXPECT_EQ(parse(name), value) << name;
    different.insert(name);
  }
  EXPECT_EQ(different.size(), names.size());
  EXPECT_STREQ(to_string(static_cast<Enum>(99)), "?");
}

/// A wrong name is answered with that name and every right one.
template <class Enum, class Parse>
void expect_refused(const std::vector<std::pair<Enum, std::string>>& names, Parse parse, const std::string& what) {
  for (const std::string& bad : {std::string("no-such-name"), std::string(), std::string("?"), names[0].second + " ",
                                 " " + names[0].second, std::string("AUTO"), names[1].second + names[1].second}) {
    try {
      parse(bad);
      ADD_FAILURE() << "'" << bad << "' was taken for a " << what;
    } catch (const InvalidArgument& e) {
      const std::string message = e.what();
      EXPECT_EQ(e.code(), ErrorCode::InvalidArgument);
      EXPECT_NE(message.find("unknown " + what + " '" + bad + "'"), std::string::npos) << message;
      for (const auto& name : names) EXPECT_NE(message.find(name.second), std::string::npos) << message;
    }
  }
}

TEST(Names, SpmvAlgorithm) {
  const std::vector<std::pair<SpmvAlgorithm, std::string>> names = {
      {SpmvAlgorithm::Auto, "auto"}, {SpmvAlgorithm::Dasp, "dasp"},           {SpmvAlgorithm::Csr, "csr"},
      {SpmvAlgorithm::Csr5, "csr5"}, {SpmvAlgorithm::PackedSlices, "packed"}, {SpmvAlgorithm::Bsr, "bsr"}};
  expect_names(names, parse_spmv_algorithm);
  expect_refused(names, parse_spmv_algorithm, "SpMV algorithm");
}

TEST(Names, Backend) {
  const std::vector<std::pair<Backend, std::string>> names = {{Backend::Auto, "auto"},
                                                              {Backend::Kokkos, "kokkos"},
                                                              {Backend::Reference, "reference"},
                                                              {Backend::EmulatedNvidia, "emulated-nvidia"},
                                                              {Backend::EmulatedAmd, "emulated-amd"},
                                                              {Backend::Cuda, "cuda"},
                                                              {Backend::Hip, "hip"}};
  expect_names(names, parse_backend);
  expect_refused(names, parse_backend, "backend");
}

TEST(Names, Precision) {
  const std::vector<std::pair<Precision, std::string>> names = {{Precision::FP64, "fp64"},
                                                                {Precision::FP32, "fp32"},
                                                                {Precision::TF32, "tf32"},
                                                                {Precision::FP16, "fp16"},
                                                                {Precision::BF16, "bf16"}};
  expect_names(names, parse_precision);
  expect_refused(names, parse_precision, "precision");
}

TEST(Names, ElementType) {
  EXPECT_STREQ(Impl::to_string(ElementType::Double), "double");
  EXPECT_STREQ(Impl::to_string(ElementType::Float), "float");
  EXPECT_STREQ(Impl::to_string(ElementType::Half), "half_t");
  EXPECT_STREQ(Impl::to_string(ElementType::BHalf), "bhalf_t");
  EXPECT_STREQ(Impl::to_string(static_cast<ElementType>(99)), "?");
}

TEST(ParseOp, ModesOfKokkosKernels) {
  for (const char* mode : {"N", "n", "C", "c"}) EXPECT_EQ(parse_op(mode), Op::NoTrans);  // C: conjugated only
  for (const char* mode : {"T", "t"}) EXPECT_EQ(parse_op(mode), Op::Trans);
  for (const char* mode : {"H", "h"}) EXPECT_EQ(parse_op(mode), Op::ConjTrans);
}

TEST(ParseOp, OtherModesAreRefusedByName) {
  for (const std::string mode : {"", "X", "NT", "N ", "Transpose", "0"}) {
    try {
      parse_op(mode);
      ADD_FAILURE() << "'" << mode << "' was taken for a mode";
    } catch (const InvalidArgument& e) {
      const std::string message = e.what();
      EXPECT_NE(message.find("'" + mode + "'"), std::string::npos) << message;
      for (const char* known : {"N (A)", "T (transpose)", "C (conjugate)", "H (conjugate transpose)"}) {
        EXPECT_NE(message.find(known), std::string::npos) << message;
      }
    }
  }
}

TEST(ScalarTraits, ElementTypesOfTheInterface) {
  using Impl::ScalarTraits;
  static_assert(ScalarTraits<double>::supported && ScalarTraits<float>::supported && ScalarTraits<half_t>::supported &&
                    ScalarTraits<bhalf_t>::supported,
                "four element types");
  static_assert(!ScalarTraits<int>::supported && !ScalarTraits<long double>::supported &&
                    !ScalarTraits<const double>::supported && !ScalarTraits<std::uint16_t>::supported,
                "and no other");
  EXPECT_EQ(ScalarTraits<double>::precision, Precision::FP64);
  EXPECT_EQ(ScalarTraits<float>::precision, Precision::FP32);
  EXPECT_EQ(ScalarTraits<half_t>::precision, Precision::FP16);
  EXPECT_EQ(ScalarTraits<bhalf_t>::precision, Precision::BF16);
  EXPECT_EQ(ScalarTraits<double>::element, ElementType::Double);
  EXPECT_EQ(ScalarTraits<float>::element, ElementType::Float);
  EXPECT_EQ(ScalarTraits<half_t>::element, ElementType::Half);
  EXPECT_EQ(ScalarTraits<bhalf_t>::element, ElementType::BHalf);
}

}  // namespace
}  // namespace Tessera
