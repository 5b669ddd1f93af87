// SPDX-License-Identifier: Apache-2.0
// Starting VTune as the user whose process it attaches to: a child of the agent's becomes that
// user, and then VTune. It ends its collection when the agent that started it is gone.
// Thread-safety: no state.
#ifndef SYNCLINE_AGENT_VTUNE_VTUNE_CHILD_H_
#define SYNCLINE_AGENT_VTUNE_VTUNE_CHILD_H_

#include <cstdint>

namespace syncline::agent {

inline constexpr char kVtuneChildFlag[] = "--vtune-as";

// In the child: becomes `uid`, with that user's groups (VTune's driver asks for one) and home, if
// it is not, and then the program argv[0]. Returns only when it cannot; what to exit with.
int RunVtuneChild(uint32_t uid, char** argv);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_VTUNE_VTUNE_CHILD_H_
