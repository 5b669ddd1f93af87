// SPDX-License-Identifier: Apache-2.0
#include "evidence/process_identity.h"

#include "absl/strings/str_cat.h"
#include "evidence/words.h"
#include "evidence/write.h"

namespace syncline::evidence {

void Append(const ProcessIdentity& process, std::string* out) {
  absl::StrAppend(out, "P ", process.pid, " ", process.start_ticks, " ",
                  process.pid_namespace_inode, " ", process.own_pid);
  absl::StrAppend(out, " ", Escaped(process.name), "\n");
}

ProcessIdentity TakeIdentity(Words* words) {
  ProcessIdentity process;
  process.pid = words->Number<int32_t>();
  process.start_ticks = words->Number<uint64_t>();
  process.pid_namespace_inode = words->Number<int64_t>();
  process.own_pid = words->Number<int32_t>();
  process.name = words->Text();
  return words->Whole() ? process : ProcessIdentity{};
}

}  // namespace syncline::evidence
