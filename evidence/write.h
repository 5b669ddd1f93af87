// SPDX-License-Identifier: Apache-2.0
// The text of evidence, line by line, as docs/recording-format.md describes it. What is written
// reads back (ParseEvidence) as the same values.
//
// Thread-safety: no state.
#ifndef SYNCLINE_EVIDENCE_WRITE_H_
#define SYNCLINE_EVIDENCE_WRITE_H_

#include <string>
#include <string_view>

#include "evidence/evidence.h"

namespace syncline::evidence {

inline constexpr char kHead[] = "syncline-evidence 1";

// Each appends one line. The number of a process, group or thread is how many of its kind were
// written before.
void AppendHead(std::string* out);
void Append(const Process& process, std::string* out);
void Append(const Group& group, std::string* out);
void Append(const Thread& thread, std::string* out);
void Append(const ThreadSample& sample, std::string* out);
void Append(const GroupSample& sample, std::string* out);
void Append(const MemorySample& sample, std::string* out);
void Append(const ProcessSample& sample, std::string* out);
void Append(const StealSample& sample, std::string* out);
void Append(const Gap& gap, std::string* out);
void Append(const Rate& rate, std::string* out);
// From here on `process` is in these groups.
void AppendGroups(uint32_t process, const std::vector<uint32_t>& groups, std::string* out);
// The same of groups that may limit memory, which are numbered apart.
void AppendMemoryGroup(const Group& group, std::string* out);
void AppendMemoryGroups(uint32_t process, const std::vector<uint32_t>& groups, std::string* out);
// A sample of a recorded process; its `cpu` is not written, `threads` only if known.
void AppendRecorded(const ProcessSample& sample, std::string* out);
// From here on the recorded `process` may use these CPUs.
void AppendAllowed(uint32_t process, uint32_t count, std::string_view cpus, std::string* out);
// What a page of memory costs, ns.
void AppendPageCost(int64_t page_ns, std::string* out);
void AppendNote(std::string_view note, std::string* out);
void AppendEnd(std::string* out);

// One word without blanks and control characters, never empty, from any bytes; and back.
std::string Escaped(std::string_view text);
std::string Unescaped(std::string_view word);

}  // namespace syncline::evidence

#endif  // SYNCLINE_EVIDENCE_WRITE_H_
