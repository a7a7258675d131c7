// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_ERROR_HPP
#define TESSERA_ERROR_HPP

#include <cstddef>
#include <stdexcept>
#include <string>

/// \file
/// Exceptions. Everything that can be detected is thrown before a kernel is launched, so an exception leaves every
/// user array as it was. Messages carry the offending numbers and, where there is one, the way out.

namespace Tessera {

/// One for each class below.
enum class ErrorCode {
  InvalidArgument,
  DimensionMismatch,
  NotSupported,
  NotCompiled,
  StalePlan,
  WorkspaceTooSmall,
  OutOfMemory,
  DeviceError,
  FileError
};

/// Base of every exception Tessera throws.
class Error : public std::runtime_error {
 public:
  /// what() is "Tessera: " and the message.
  Error(ErrorCode code, const std::string& message) : std::runtime_error("Tessera: " + message), code_(code) {}
  /// Which class it is, for callers that catch the base.
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

namespace Impl {
/// One class per code, so that users can catch exactly what they can handle.
template <ErrorCode Code>
class ErrorOf : public Error {
 public:
  explicit ErrorOf(const std::string& message) : Error(Code, message) {}
};
}  // namespace Impl

/// Malformed CSR, null pointer, negative size, unknown name.
class InvalidArgument : public Impl::ErrorOf<ErrorCode::InvalidArgument> {
  using ErrorOf::ErrorOf;
};
/// Extents that do not fit together; the message carries every extent.
class DimensionMismatch : public Impl::ErrorOf<ErrorCode::DimensionMismatch> {
  using ErrorOf::ErrorOf;
};
/// A combination that does not exist; the message names the nearest one that does.
class NotSupported : public Impl::ErrorOf<ErrorCode::NotSupported> {
  using ErrorOf::ErrorOf;
};
/// The backend exists but was not enabled in this build.
class NotCompiled : public Impl::ErrorOf<ErrorCode::NotCompiled> {
  using ErrorOf::ErrorOf;
};
/// Values or graph do not belong to the plan.
class StalePlan : public Impl::ErrorOf<ErrorCode::StalePlan> {
  using ErrorOf::ErrorOf;
};
/// The caller's workspace is smaller than `workspace_bytes()`.
class WorkspaceTooSmall : public Impl::ErrorOf<ErrorCode::WorkspaceTooSmall> {
 public:
  /// In bytes.
  WorkspaceTooSmall(std::size_t required, std::size_t given)
      : ErrorOf("workspace of " + std::to_string(given) + " bytes given, " + std::to_string(required) +
                " bytes required"),
        required_(required),
        given_(given) {}
  /// Bytes that the plan needs.
  std::size_t required() const noexcept { return required_; }
  /// Bytes of the caller's workspace.
  std::size_t given() const noexcept { return given_; }

 private:
  std::size_t required_, given_;
};
/// A result, or what a plan keeps, does not fit into the memory there is; inputs are as they were.
class OutOfMemory : public Impl::ErrorOf<ErrorCode::OutOfMemory> {
 public:
  /// @param what  what the memory was for  @param fault  in the words of who refused it
  OutOfMemory(const std::string& what, std::size_t required, const std::string& fault)
      : ErrorOf(what + " needs " + std::to_string(required) + " bytes, which there are not: " + fault),
        required_(required) {}
  /// Bytes that were asked for.
  std::size_t required() const noexcept { return required_; }

 private:
  std::size_t required_;
};
/// A vendor call failed; the message carries the vendor's code, the kernel and the device.
class DeviceError : public Impl::ErrorOf<ErrorCode::DeviceError> {
  using ErrorOf::ErrorOf;
};
/// A file cannot be read, written or understood; the message reads "FILE:LINE: fault" (line 0: the file as a whole).
class FileError : public Impl::ErrorOf<ErrorCode::FileError> {
 public:
  /// Line 0: the file as a whole.
  FileError(const std::string& file, std::size_t line, const std::string& fault)
      : ErrorOf(file + ":" + std::to_string(line) + ": " + fault), file_(file), line_(line) {}
  /// Its name, as it was given.
  const std::string& file() const noexcept { return file_; }
  /// The line, counted from 1, or 0.
  std::size_t line() const noexcept { return line_; }

 private:
  std::string file_;
  std::size_t line_;
};

namespace Impl {
/// Throws `Exception(message)` unless `condition`; `message` is a callable so that the text costs nothing when unused.
template <class Exception, class Message>
inline void require(bool condition, Message&& message) {
  if (!condition) throw Exception(message());
}
}  // namespace Impl
}  // namespace Tessera

#endif
