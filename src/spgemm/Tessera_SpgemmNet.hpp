// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPGEMM_SPGEMM_NET_HPP
#define TESSERA_SPGEMM_SPGEMM_NET_HPP

#include <vector>

#include "spgemm/Tessera_SpgemmModel.hpp"

/// \file
/// MatNet in small [Xie et al., "IA-SpGEMM", PPoPP'19, section 4]: a branch per density image, dense layers for the
/// features, softmax over the methods.

namespace Tessera {
namespace Impl {

/// What a branch sees of an image: of each cell the root of its density over that of the densest, as 0 to 15.
std::vector<unsigned char> spgemm_image_levels(const std::vector<float>& density);

}  // namespace Impl
}  // namespace Tessera

#endif
