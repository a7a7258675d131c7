// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_LAUNCH_SPGEMM_TURN_HPP
#define TESSERA_LAUNCH_SPGEMM_TURN_HPP

#include "backends/interface/Tessera_Macros.hpp"

/// \file
/// Launches of a stage beside each other.

namespace Tessera {
namespace Launch {

/// Launches of a stage work on different rows: only the first waits for the stage before, the others wait for each
/// other when their work is done, so that the last rows of one are not waited for.
enum class SpgemmTurn { First, Later };

template <class ThreadBlock, class Work>
TESSERA_FUNCTION void spgemm_in_turn(const ThreadBlock& thread_block, SpgemmTurn turn, const Work& work) {
  if (turn == SpgemmTurn::First) {
    thread_block.template wait_for_previous_launch<false>();
    thread_block.start_next_launch();  // not before: it does not wait for the stage before
    work();
  } else {
    thread_block.start_next_launch();
    work();
    // One thread block is enough, and the others make room.
    if (thread_block.index() + 1 == thread_block.thread_blocks()) {
      thread_block.template wait_for_previous_launch<false>();
    }
  }
}

}  // namespace Launch
}  // namespace Tessera

#endif
