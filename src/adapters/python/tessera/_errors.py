# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

"""Exceptions, by the names that they have in C++ (src/Tessera_Error.hpp)."""


class Error(RuntimeError):
    """Base of every exception Tessera raises. Arrays of the caller are as they were."""


class InvalidArgument(Error, ValueError):
    """Malformed CSR, an unknown name, operands that overlap."""


class DimensionMismatch(Error, ValueError):
    """Extents that do not fit together; the message carries every extent."""


class NotSupported(Error):
    """A combination that does not exist: types, a device that this build does not run on."""


class NotCompiled(Error):
    """The backend exists but was not enabled in this build."""


class StalePlan(Error):
    """Values do not belong to the plan, or it was closed by tessera.finalize()."""


class WorkspaceTooSmall(Error):
    """The workspace is smaller than the plan needs: members required and given, in bytes."""

    required: int
    given: int


class OutOfMemory(Error, MemoryError):
    """A result does not fit into memory: member required, in bytes."""

    required: int


class DeviceError(Error):
    """A call of the vendor failed; the message carries its code."""


class FileError(Error):
    """A file cannot be read, written or understood."""
