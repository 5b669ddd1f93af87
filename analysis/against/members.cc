// SPDX-License-Identifier: Apache-2.0
#include "analysis/against/members.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace syncline::analysis::against {
namespace {

Member Of(const ProcessReport& process) {
  if (process.rank >= 0) return {process.rank, absl::StrCat("rank ", process.rank)};
  return {-1, process.name};
}

}  // namespace

std::vector<Member> MembersOf(const Report& report) {
  std::vector<Member> members;
  for (const NodeReport& node : report.nodes) {
    for (const ProcessReport& process : node.processes) {
      if ((report.ranks > 0) == (process.rank >= 0)) members.push_back(Of(process));
    }
  }
  std::sort(members.begin(), members.end());
  members.erase(std::unique(members.begin(), members.end()), members.end());
  return members;
}

std::optional<size_t> MemberOf(const ProcessReport& process, const Recording& recording) {
  const Member member = Of(process);
  const auto found = std::lower_bound(recording.members.begin(), recording.members.end(), member);
  if (found == recording.members.end() || *found != member) return std::nullopt;
  return static_cast<size_t>(found - recording.members.begin());
}

}  // namespace syncline::analysis::against
