// SPDX-License-Identifier: Apache-2.0
#include "evidence/write.h"

#include "absl/strings/str_cat.h"

namespace syncline::evidence {
namespace {

constexpr char kDigits[] = "0123456789abcdef";

int ValueOf(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  return -1;
}

void AppendMembership(char kind, uint32_t process, const std::vector<uint32_t>& groups,
                      std::string* out) {
  absl::StrAppend(out, std::string(1, kind), " ", process);
  for (const uint32_t group : groups) absl::StrAppend(out, " ", group);
  out->push_back('\n');
}

}  // namespace

std::string Escaped(std::string_view text) {
  std::string word = "=";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= ' ' || byte == 0x7f || c == '%') {
      word.push_back('%');
      word.push_back(kDigits[byte >> 4]);
      word.push_back(kDigits[byte & 15]);
    } else {
      word.push_back(c);
    }
  }
  return word;
}

std::string Unescaped(std::string_view word) {
  std::string text;
  for (size_t i = word.starts_with('=') ? 1 : 0; i < word.size(); ++i) {
    const bool escape = word[i] == '%' && i + 2 < word.size();
    const int high = escape ? ValueOf(word[i + 1]) : -1;
    const int low = escape ? ValueOf(word[i + 2]) : -1;
    if (high >= 0 && low >= 0) {
      text.push_back(static_cast<char>(high * 16 + low));
      i += 2;
    } else {
      text.push_back(word[i]);
    }
  }
  return text;
}

void AppendHead(std::string* out) { absl::StrAppend(out, kHead, "\n"); }

void Append(const Process& process, std::string* out) {
  absl::StrAppend(out, "P ", static_cast<int>(process.relation), " ", process.pid, " ",
                  process.parent_pid, " ", process.start_ticks);
  absl::StrAppend(out, " ", process.pid_namespace_inode, " ", process.own_pid, " ", process.uid,
                  " ", Escaped(process.name));
  for (const uint32_t group : process.groups) absl::StrAppend(out, " ", group);
  out->push_back('\n');
}

void Append(const Group& group, std::string* out) {
  absl::StrAppend(out, "G ", group.version, " ", Escaped(group.path), "\n");
}

void Append(const Thread& thread, std::string* out) {
  absl::StrAppend(out, "T ", thread.process, " ", thread.tid, " ", thread.own_tid, " ",
                  Escaped(thread.name), "\n");
}

void Append(const ThreadSample& sample, std::string* out) {
  absl::StrAppend(out, "t ", sample.thread, " ", sample.at_ns, " ", sample.until_ns);
  absl::StrAppend(out, " ", sample.on_cpu_ns, " ", sample.run_queue_ns, " ", sample.cpu);
  if (sample.state != 0) {
    absl::StrAppend(out, " ", std::string(1, sample.state), " ", sample.major_faults);
    if (sample.minor_faults >= 0) absl::StrAppend(out, " ", sample.minor_faults);
    if (sample.minor_faults >= 0 && sample.clock_khz > 0) {
      absl::StrAppend(out, " ", sample.clock_khz);
    }
  }
  out->push_back('\n');
}

void Append(const GroupSample& sample, std::string* out) {
  absl::StrAppend(out, "g ", sample.group, " ", sample.at_ns, " ", sample.until_ns, " ",
                  sample.periods);
  absl::StrAppend(out, " ", sample.throttled_periods, " ", sample.throttled_ns, " ",
                  sample.quota_ns, " ", sample.period_ns, "\n");
}

void Append(const MemorySample& sample, std::string* out) {
  absl::StrAppend(out, "m ", sample.group, " ", sample.at_ns, " ", sample.until_ns, " ",
                  sample.full);
  absl::StrAppend(out, " ", sample.limit_bytes, "\n");
}

void Append(const ProcessSample& sample, std::string* out) {
  absl::StrAppend(out, "p ", sample.process, " ", sample.at_ns, " ", sample.until_ns);
  absl::StrAppend(out, " ", sample.cpu_ns, " ", sample.cpu, "\n");
}

void Append(const StealSample& sample, std::string* out) {
  absl::StrAppend(out, "s ", sample.process, " ", sample.at_ns, " ", sample.until_ns, " ",
                  sample.busy_ns);
  absl::StrAppend(out, " ", sample.stolen_ns, "\n");
}

void Append(const Gap& gap, std::string* out) {
  absl::StrAppend(out, "H ", gap.begin_ns, " ", gap.end_ns, "\n");
}

void Append(const Rate& rate, std::string* out) {
  absl::StrAppend(out, "R ", rate.at_ns, " ", rate.period_ns, " ", Escaped(rate.reason), "\n");
}

void AppendGroups(uint32_t process, const std::vector<uint32_t>& groups, std::string* out) {
  AppendMembership('M', process, groups, out);
}

void AppendMemoryGroup(const Group& group, std::string* out) {
  absl::StrAppend(out, "L ", group.version, " ", Escaped(group.path), "\n");
}

void AppendMemoryGroups(uint32_t process, const std::vector<uint32_t>& groups, std::string* out) {
  AppendMembership('B', process, groups, out);
}

void AppendRecorded(const ProcessSample& sample, std::string* out) {
  absl::StrAppend(out, "u ", sample.process, " ", sample.at_ns, " ", sample.until_ns, " ",
                  sample.cpu_ns);
  const bool bytes = sample.read_bytes >= 0;
  if (sample.threads > 0 || bytes) absl::StrAppend(out, " ", sample.threads);
  if (bytes) absl::StrAppend(out, " ", sample.read_bytes);
  out->push_back('\n');
}

void AppendAllowed(uint32_t process, uint32_t count, std::string_view cpus, std::string* out) {
  absl::StrAppend(out, "A ", process, " ", count, " ", Escaped(cpus), "\n");
}

void AppendPageCost(int64_t page_ns, std::string* out) {
  absl::StrAppend(out, "K ", page_ns, "\n");
}

void AppendNote(std::string_view note, std::string* out) {
  absl::StrAppend(out, "N ", Escaped(note), "\n");
}

void AppendEnd(std::string* out) { absl::StrAppend(out, "E\n"); }

}  // namespace syncline::evidence
