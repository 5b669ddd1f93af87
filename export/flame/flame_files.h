// SPDX-License-Identifier: Apache-2.0
// Sampled stacks as files that flame graph viewers open: the tasks that were open on the thread,
// and under them the functions as far as they are known.
//
//   stacks.folded    "PROCESS;THREAD;TASK;...;FUNCTION SAMPLES", a line for each stack: what
//                    flamegraph.pl and its like read. Functions of the kernel end with _[k]
//   speedscope.json  https://www.speedscope.app/file-format-schema.json: a profile for each thread,
//                    its samples in order of time, weights in ns of processor time
//
// The same samples give the same bytes.
#ifndef SYNCLINE_EXPORT_FLAME_FLAME_FILES_H_
#define SYNCLINE_EXPORT_FLAME_FLAME_FILES_H_

#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "analysis/hot_code.h"

namespace syncline::flame {

std::string FoldedText(const analysis::SampledStacks& stacks);
std::string SpeedscopeJson(const analysis::SampledStacks& stacks);

// Both into `directory`, which is made. Errors: from errno.
absl::Status WriteFiles(const analysis::SampledStacks& stacks,
                        const std::filesystem::path& directory);

}  // namespace syncline::flame

#endif  // SYNCLINE_EXPORT_FLAME_FLAME_FILES_H_
