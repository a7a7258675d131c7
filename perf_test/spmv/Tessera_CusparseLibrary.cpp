// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "Tessera_Config.hpp"
#include "driver/Tessera_BenchLibrary.hpp"
#include "spmv/Tessera_BenchSpmv.hpp"

#if defined(TESSERA_HAVE_CUDA)
#include <memory>

#include "spmv/Tessera_BaselineCusparse.hpp"
#include "spmv/Tessera_CusparseLibrary.hpp"

namespace Tessera {
namespace Bench {
namespace {

std::unique_ptr<CusparseLibrary>& loaded_cusparse() {
  static std::unique_ptr<CusparseLibrary> library;
  return library;
}

std::string version_of(const CusparseLibrary& library, libraryPropertyType last) {
  std::string text;
  for (const libraryPropertyType part : {MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL}) {
    int value = 0;
    cusparse_check(library.get_property(part, &value));
    text += (text.empty() ? "" : ".") + std::to_string(value);
    if (part == last) break;
  }
  return text;
}

/// Those of the plan's interface of 12.8: earlier ones of these names take other arguments.
CusparseSpmvOpFunctions find_spmv_op(const SharedLibrary& from, const CusparseLibrary& library) {
  CusparseSpmvOpFunctions op;
  int major = 0, minor = 0;
  cusparse_check(library.get_property(MAJOR_VERSION, &major));
  cusparse_check(library.get_property(MINOR_VERSION, &minor));
  if (major < 12 || (major == 12 && minor < 8)) return op;
  from.find(op.apply, "cusparseSpMVOp");
  if (!op.complete()) return op;
  from.require(op.buffer_size, "cusparseSpMVOp_bufferSize");
  from.require(op.create_description, "cusparseSpMVOp_createDescr");
  from.require(op.destroy_description, "cusparseSpMVOp_destroyDescr");
  from.require(op.create_plan, "cusparseSpMVOp_createPlan");
  from.require(op.destroy_plan, "cusparseSpMVOp_destroyPlan");
  return op;
}

std::unique_ptr<CusparseLibrary> load(const std::string& file) {
  const SharedLibrary from(file);
  auto library = std::make_unique<CusparseLibrary>();
  from.require(library->create, "cusparseCreate");
  from.require(library->set_stream, "cusparseSetStream");
  from.require(library->get_property, "cusparseGetProperty");
  from.require(library->create_csr, "cusparseCreateCsr");
#if defined(TESSERA_BENCH_CUSPARSE_SELL)
  from.require(library->create_sliced_ell, "cusparseCreateSlicedEll");
#endif
  from.require(library->destroy_matrix, "cusparseDestroySpMat");
  from.require(library->create_vector, "cusparseCreateDnVec");
  from.require(library->destroy_vector, "cusparseDestroyDnVec");
  from.require(library->spmv, "cusparseSpMV");
  from.require(library->spmv_buffer_size, "cusparseSpMV_bufferSize");
#if CUSPARSE_VERSION >= 12300
  from.require(library->spmv_preprocess, "cusparseSpMV_preprocess");
#endif
  library->version = version_of(*library, PATCH_LEVEL);
  library->suffix = "@" + version_of(*library, MINOR_VERSION);
  library->spmv_op = find_spmv_op(from, *library);
  cusparse_check(library->create(&library->handle));
  return library;
}

}  // namespace

const CusparseLibrary& linked_cusparse() {
  static const CusparseLibrary library = [] {
    CusparseLibrary l;
    l.handle = shared_cusparse_handle();
    l.create = cusparseCreate;
    l.set_stream = cusparseSetStream;
    l.get_property = cusparseGetProperty;
    l.create_csr = cusparseCreateCsr;
#if defined(TESSERA_BENCH_CUSPARSE_SELL)
    l.create_sliced_ell = cusparseCreateSlicedEll;
#endif
    l.destroy_matrix = cusparseDestroySpMat;
    l.create_vector = cusparseCreateDnVec;
    l.destroy_vector = cusparseDestroyDnVec;
    l.spmv = cusparseSpMV;
    l.spmv_buffer_size = cusparseSpMV_bufferSize;
#if CUSPARSE_VERSION >= 12300
    l.spmv_preprocess = cusparseSpMV_preprocess;
#endif
    l.version = version_of(l, PATCH_LEVEL);
    return l;
  }();
  return library;
}

std::vector<const CusparseLibrary*> cusparse_libraries() {
  std::vector<const CusparseLibrary*> libraries = {&linked_cusparse()};
  if (loaded_cusparse() != nullptr) libraries.push_back(loaded_cusparse().get());
  return libraries;
}

void load_cusparse(const std::string& file) {
  if (loaded_cusparse() == nullptr) loaded_cusparse() = load(file);
}

}  // namespace Bench
}  // namespace Tessera
#else

namespace Tessera {
namespace Bench {

void load_cusparse(const std::string&) { throw BenchError(ExitNotSupported, "--cusparse: this build has no CUDA"); }

}  // namespace Bench
}  // namespace Tessera
#endif
