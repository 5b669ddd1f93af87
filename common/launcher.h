// SPDX-License-Identifier: Apache-2.0
// Whether a command starts several processes of one job (torchrun, mpirun, srun, ...), as far as
// its words tell: behind `env`, `nohup` and their like, and inside the line of `sh -c`. What a
// script or a program does by itself cannot be seen here; the agents notice it later, by processes
// that share a planted rank.
//
// Pure.
#ifndef SYNCLINE_COMMON_LAUNCHER_H_
#define SYNCLINE_COMMON_LAUNCHER_H_

#include <string>
#include <vector>

namespace syncline {

// The launcher's name ("torchrun", "torch.distributed.run"); empty: none is seen.
std::string LauncherIn(const std::vector<std::string>& command);

}  // namespace syncline

#endif  // SYNCLINE_COMMON_LAUNCHER_H_
