// SPDX-License-Identifier: Apache-2.0
// What most sources include anyway, parsed once a build (SYNCLINE_PCH; see SynclineTargets.cmake).
// Sources still include what they use: the preset tsan has no precompiled headers.
#ifndef SYNCLINE_CMAKE_PRECOMPILED_H_
#define SYNCLINE_CMAKE_PRECOMPILED_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#endif  // SYNCLINE_CMAKE_PRECOMPILED_H_
