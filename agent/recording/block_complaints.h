// SPDX-License-Identifier: Apache-2.0
// What the gate has to say of processes and of users, in the words for people.
#ifndef SYNCLINE_AGENT_RECORDING_BLOCK_COMPLAINTS_H_
#define SYNCLINE_AGENT_RECORDING_BLOCK_COMPLAINTS_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "agent/host/process_table.h"
#include "control_block/block_file.h"
#include "syncline/v1/agent.pb.h"

namespace syncline::agent {

v1::Complaint MakeComplaint(v1::Complaint::Severity severity, int32_t pid, std::string what,
                            std::string fix);

// Of a process. It is stopped as the recording is prepared or begins.
v1::Complaint StoppedComplaint(const ProcessEntry& entry);
// It is stopped as the recording ends, after it had been recorded.
v1::Complaint StillComplaint(const ProcessEntry& entry);
// It has a control block, and /proc does not show it.
v1::Complaint UnreachableComplaint(const control_block::BlockId& id);
// It became another program, which made a control block of its own. `entry`: what /proc says of it;
// null when the new program has ended, too.
v1::Complaint ReplacedComplaint(const control_block::BlockId& id, const ProcessEntry* entry);
// It became another program, which made none.
v1::Complaint LeftComplaint(const ProcessEntry& entry);

// For want of descriptors. `what` cannot be done; `why`: the error.
v1::Complaint DescriptorComplaint(absl::string_view what, absl::string_view why);

// Of a user. `blocks` are in the name of others' processes, `one` among them.
v1::Complaint ForeignComplaint(uint32_t uid, size_t blocks, const ProcessEntry& one);
// `names`, of which there is one at least, lie where other users' runtime directories should.
v1::Complaint PlantedComplaint(uint32_t owner, const std::vector<std::string>& names);
// Nothing of the user is recorded, for the reason of `why`.
v1::Complaint SkippedComplaint(uint32_t uid, const std::filesystem::path& directory,
                               const absl::Status& why);
v1::Complaint TooManyComplaint(uint32_t uid, const std::filesystem::path& directory, size_t blocks,
                               size_t blocks_max);
// So many of the user's were open at a time in the window, and more came.
v1::Complaint CrowdedComplaint(uint32_t uid, size_t blocks_max);
v1::Complaint UnlistedComplaint(uint32_t uid, const std::filesystem::path& directory,
                                size_t blocks);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_RECORDING_BLOCK_COMPLAINTS_H_
