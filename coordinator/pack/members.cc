// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pack/members.h"

#include <algorithm>
#include <optional>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/text.h"

namespace syncline::pack {
namespace {

namespace fs = std::filesystem;

std::string_view TextOf(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

// Every packet of a stream begins with CTF's magic number, in either byte order. A file that does
// not is not known to be a trace.
bool IsStream(std::string_view bytes) {
  return bytes.empty() || bytes.starts_with("\xc1\x1f\xfc\xc1") ||
         bytes.starts_with("\xc1\xfc\x1f\xc1");
}

// nullopt: a recording has no such file. `path` is relative to the recording.
std::optional<MemberKind> KindOf(const fs::path& path, const recording::Recording& recording) {
  std::vector<std::string> parts(path.begin(), path.end());
  const std::string& name = parts.back();
  if (parts.size() == 1 && name == "recording.json") return MemberKind::kRecordingJson;
  if (parts.size() == 1 && name == "stacks.json") return MemberKind::kStacks;
  if (parts.size() == 2 && parts[0] == "clocks") {
    if (name == "models.json") return MemberKind::kModels;
    if (name == "probes.json") return MemberKind::kProbes;
    if (name.ends_with(".samples")) return MemberKind::kSamples;
    if (name.ends_with(".tuples")) return MemberKind::kTuples;
  }
  if (parts.size() < 3 || parts[0] != "nodes") return std::nullopt;
  const auto is_its = [&](const recording::NodeRecord& node) { return node.name == parts[1]; };
  if (std::none_of(recording.nodes.begin(), recording.nodes.end(), is_its)) return std::nullopt;
  const std::string& folder = parts[2];
  if (parts.size() == 3 && name == "node.json") return MemberKind::kNodeJson;
  if (parts.size() == 3 && name == "agent.log") return MemberKind::kAgentLog;
  if (parts.size() > 3 && folder == "trace") {
    if (name == "metadata") return MemberKind::kMetadata;
    return name.ends_with(".idx") ? MemberKind::kIndex : MemberKind::kStream;
  }
  if (parts.size() > 4 && folder == "vtune") return MemberKind::kVtune;
  if (parts.size() != 4) return std::nullopt;
  if (folder == "processes" && name.ends_with(".block")) return MemberKind::kBlock;
  if (folder == "processes" && name.ends_with(".names")) return MemberKind::kNames;
  if (folder == "evidence" && name == "samples.txt") return MemberKind::kEvidence;
  if (folder == "evidence" && name == "code.txt") return MemberKind::kCode;
  if (folder == "evidence" && name == "devices.txt") return MemberKind::kDevices;
  if (folder == "evidence" && name == "connections.txt") return MemberKind::kConnections;
  if (folder == "evidence" && name == "scheduling.txt") return MemberKind::kScheduling;
  if (folder != "xspace" && folder != "kineto") return std::nullopt;
  if (name == "profiles.json") return MemberKind::kProfileList;
  if (folder == "xspace" && name.ends_with(".pb")) return MemberKind::kXSpace;
  if (folder == "kineto" && (name.ends_with(".json") || name.ends_with(".json.gz"))) {
    return MemberKind::kKineto;
  }
  return std::nullopt;
}

// Takes the file in, or says why not.
void Look(const fs::path& file, const std::string& path, const recording::Recording& recording,
          Members* found) {
  const std::optional<MemberKind> kind = KindOf(fs::path(path), recording);
  if (!kind.has_value()) {
    found->left_out.push_back({path, "is no file of a recording"});
    return;
  }
  const absl::StatusOr<MappedFile> mapped = MappedFile::Open(file);
  if (!mapped.ok()) {
    found->left_out.push_back({path, absl::StrCat("cannot be read: ", mapped.status().message())});
  } else if (HoldsPem(TextOf(*mapped))) {
    found->left_out.push_back({path, "holds a private key or a certificate"});
  } else if (*kind == MemberKind::kStream && !IsStream(TextOf(*mapped))) {
    found->left_out.push_back({path, "is no stream of a trace"});
  } else {
    found->members.push_back({*kind, path, mapped->bytes().size()});
  }
}

}  // namespace

bool HoldsPem(std::string_view bytes) {
  constexpr std::string_view kBegin = "-----BEGIN ";
  constexpr size_t kLine = 64;
  for (size_t at = bytes.find(kBegin); at != std::string_view::npos;
       at = bytes.find(kBegin, at + kBegin.size())) {
    const std::string_view line = bytes.substr(at, kLine);
    if (line.find("PRIVATE KEY") != line.npos || line.find("CERTIFICATE") != line.npos) return true;
  }
  return false;
}

absl::StatusOr<Members> FindMembers(const fs::path& run, const recording::Recording& recording) {
  Members found;
  std::error_code error;
  fs::recursive_directory_iterator entry(run, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    const std::string path = entry->path().lexically_relative(run).generic_string();
    if (path == "out") {
      entry.disable_recursion_pending();
      continue;
    }
    std::error_code unknown;
    const fs::file_status status = entry->symlink_status(unknown);
    if (fs::is_directory(status)) continue;
    if (fs::is_regular_file(status)) {
      Look(entry->path(), path, recording, &found);
    } else {
      found.left_out.push_back({path, "is a link or a device, not a file"});
    }
  }
  if (error) {
    return absl::UnavailableError(
        absl::StrCat("cannot list the files of \"", run.string(), "\": ", error.message()));
  }
  const auto by_path = [](const auto& a, const auto& b) { return a.path < b.path; };
  std::sort(found.members.begin(), found.members.end(), by_path);
  std::sort(found.left_out.begin(), found.left_out.end(), by_path);
  return found;
}

}  // namespace syncline::pack
