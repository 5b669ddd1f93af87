// SPDX-License-Identifier: Apache-2.0
// The same for command lines.
#ifndef SYNCLINE_CMAKE_PRECOMPILED_COMMANDS_H_
#define SYNCLINE_CMAKE_PRECOMPILED_COMMANDS_H_

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cmake/precompiled.h"
#include "syncline/v1/agent.pb.h"

#endif  // SYNCLINE_CMAKE_PRECOMPILED_COMMANDS_H_
