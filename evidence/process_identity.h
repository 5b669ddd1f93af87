// SPDX-License-Identifier: Apache-2.0
// The line `P` of this folder's files other than samples.txt: who a process is.
//
// Thread-safety: no state.
#ifndef SYNCLINE_EVIDENCE_PROCESS_IDENTITY_H_
#define SYNCLINE_EVIDENCE_PROCESS_IDENTITY_H_

#include <cstdint>
#include <string>

namespace syncline::evidence {

class Words;

struct ProcessIdentity {
  int32_t pid = 0;  // as the agent sees it
  uint64_t start_ticks = 0;
  int64_t pid_namespace_inode = 0;  // 0: the agent may not see it
  int32_t own_pid = 0;
  std::string name;  // its comm
};

void Append(const ProcessIdentity& process, std::string* out);
// The words behind the `P`. Empty where they are damaged, which `words` then says.
ProcessIdentity TakeIdentity(Words* words);

}  // namespace syncline::evidence

#endif  // SYNCLINE_EVIDENCE_PROCESS_IDENTITY_H_
