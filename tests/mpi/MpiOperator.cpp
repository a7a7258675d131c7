// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// The operator of all tests with several processes.

#include "adapters/Tessera_TpetraOperator.hpp"

template class Tessera::TpetraOperator<double, Tpetra::Map<>::local_ordinal_type, Tpetra::Map<>::global_ordinal_type,
                                       Tpetra::Map<>::node_type>;
