// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pack/redact.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/files.h"
#include "common/status.h"
#include "common/text.h"
#include "control_block/block_file.h"
#include "coordinator/pack/redact_files.h"
#include "ctf/metadata.h"

namespace syncline::pack {
namespace {

namespace fs = std::filesystem;

// What files and directories of a recording are called, and what stands in place of sentences.
constexpr std::string_view kOurWords[] = {
    "recording.json", "clocks",
    "models",         "probes",
    "samples",        "tuples",
    "nodes",          "node",
    "agent",          "processes",
    "block",          "names",
    "trace",          "kernel",
    "64-bit",         "32-bit",
    "index",          "metadata",
    "archives",       "evidence",
    "xspace",         "kineto",
    "profiles",       "json",
    "syncline",       "syncline-evidence",
    "run-",           "coordinator",
    "redacted",       kRemovedText,
};

// A machine's name is made of these. What is not, would not be looked for as a word of its own.
bool IsHostName(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) {
                       return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' ||
                              c == '.' || c == '_';
                     }) &&
         std::any_of(text.begin(), text.end(),
                     [](char c) { return absl::ascii_isalpha(static_cast<unsigned char>(c)); });
}

void AddHost(std::string_view host, std::set<std::string>* hosts) {
  if (!IsHostName(host) || host == recording::kCoordinatorName || host == "localhost") return;
  hosts->emplace(host);
}

// HOST:PORT, of agents that are called by name.
void AddAddress(const std::string& address, std::set<std::string>* hosts) {
  if (!address.starts_with("unix:")) AddHost(address.substr(0, address.rfind(':')), hosts);
}

absl::Status AddHostsOf(const fs::path& run, const Member& member, std::set<std::string>* hosts) {
  const fs::path file = run / member.path;
  if (member.kind == MemberKind::kMetadata) {
    const auto metadata = ctf::LoadMetadata(file.parent_path());
    if (!metadata.ok()) return metadata.status();
    const auto fact = (*metadata)->environment.find("hostname");
    if (fact != (*metadata)->environment.end()) AddHost(fact->second, hosts);
  } else if (member.kind == MemberKind::kBlock) {
    SYNCLINE_ASSIGN_OR_RETURN(const MappedFile mapped, MappedFile::Open(file));
    SYNCLINE_ASSIGN_OR_RETURN(const control_block::Block block,
                              control_block::ParseBlock(mapped.bytes()));
    AddHost(block.facts.hostname, hosts);
  }
  return absl::OkStatus();
}

// Names the file in front of what is wrong with it.
absl::Status Of(const Member& member, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat("cannot redact \"", member.path, "\": ", status.message()));
}

bool IsNumbers(MemberKind kind) {
  return kind == MemberKind::kStream || kind == MemberKind::kIndex || kind == MemberKind::kBlock ||
         kind == MemberKind::kNames || kind == MemberKind::kSamples || kind == MemberKind::kTuples;
}

}  // namespace

Redactor::Redactor(fs::path run, const std::set<std::string>& hosts)
    : run_(std::move(run)), names_(hosts) {
  for (const std::string_view word : kOurWords) words_.emplace(word);
}

absl::StatusOr<Redactor> Redactor::Create(const fs::path& run,
                                          const recording::Recording& recording, Members* members) {
  for (const Member& member : members->members) {
    if (member.kind == MemberKind::kKineto && member.path.ends_with(".gz")) {
      return Of(member, absl::UnimplementedError("compressed profiles cannot be redacted"));
    }
  }
  const auto is_log = [](const Member& member) { return member.kind == MemberKind::kAgentLog; };
  std::erase_if(members->members, is_log);
  std::set<std::string> hosts;
  std::set<std::string, std::less<>> types;
  AddHost(recording.created_by.host, &hosts);
  for (const recording::NodeRecord& node : recording.nodes) {
    AddHost(node.name, &hosts);
    AddAddress(node.address, &hosts);
  }
  for (const Member& member : members->members) {
    const absl::Status added = AddHostsOf(run, member, &hosts);
    if (!added.ok()) return Of(member, added);
    if (member.kind != MemberKind::kXSpace) continue;
    SYNCLINE_ASSIGN_OR_RETURN(const MappedFile mapped, MappedFile::Open(run / member.path));
    AddOperatorTypes(mapped.bytes(), &types);
  }
  Redactor made(run, hosts);
  made.names_.KeepOperatorTypes(std::move(types));
  return made;
}

absl::Status Redactor::Collect(const Member& member) {
  NewPath(member);
  return Replace(member).status();
}

const Leftovers& Redactor::leftovers() {
  if (!leftovers_) leftovers_.emplace(names_.originals(), names_.kept(), words_);
  return *leftovers_;
}

std::string Redactor::NewPath(const Member& member) {
  std::vector<std::string> parts = absl::StrSplit(member.path, '/');
  if (parts.size() == 2 && parts[0] == "clocks") {
    const std::string ending = fs::path(parts[1]).extension();
    if (ending != ".samples" && ending != ".tuples") return member.path;
    const std::string stem = parts[1].substr(0, parts[1].size() - ending.size());
    const size_t dashes = ending == ".tuples" ? std::string::npos : stem.find("--");
    if (dashes == std::string::npos) return absl::StrCat("clocks/", names_.Host(stem), ending);
    return absl::StrCat("clocks/", names_.Host(stem.substr(0, dashes)), "--",
                        names_.Host(stem.substr(dashes + 2)), ending);
  }
  if (parts.size() < 3 || parts[0] != "nodes") return member.path;
  const size_t rest = parts[0].size() + parts[1].size() + parts[2].size() + 3;
  std::string path = absl::StrCat("nodes/", names_.Host(parts[1]), "/", parts[2]);
  if (parts.size() == 3) return path;
  const std::string below = member.path.substr(rest);
  return absl::StrCat(path, "/", parts[2] == "trace" ? RedactTracePath(below, &names_) : below);
}

absl::StatusOr<std::string> Redactor::PathOf(const Member& member) {
  std::string path = NewPath(member);
  if (const auto left = leftovers().Find(path, false)) {
    return absl::InternalError(absl::StrCat("the name of \"", member.path, "\" still holds a ",
                                            *left, ": nothing was packed"));
  }
  return path;
}

absl::StatusOr<Redacted> Redactor::Redact(const Member& member) {
  SYNCLINE_ASSIGN_OR_RETURN(Redacted redacted, Replace(member));
  const std::span<const uint8_t> bytes = redacted.bytes();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (const auto left = leftovers().Find(text, IsNumbers(member.kind))) {
    return absl::InternalError(absl::StrCat("\"", member.path, "\" still holds a name of a ", *left,
                                            " after it was redacted: nothing was packed"));
  }
  return redacted;
}

absl::StatusOr<Redacted> Redactor::ReplaceStream(const Member& member) {
  const fs::path file = run_ / member.path;
  const std::string directory = file.parent_path().string();
  if (layout_of_ != directory) {
    const auto metadata = ctf::LoadMetadata(directory);
    if (!metadata.ok()) return Of(member, metadata.status());
    auto layout = ctf::BuildLayout(*metadata);
    if (!layout.ok()) return Of(member, layout.status());
    layout_ = *std::move(layout);
    layout_of_ = directory;
  }
  SYNCLINE_ASSIGN_OR_RETURN(PrivateFile bytes, PrivateFile::Open(file));
  const absl::Status redacted = RedactStream(layout_, bytes.bytes(), &names_);
  if (!redacted.ok()) return Of(member, redacted);
  return Redacted(std::move(bytes));
}

absl::StatusOr<Redacted> Redactor::Replace(const Member& member) {
  if (member.kind == MemberKind::kStream) return ReplaceStream(member);
  SYNCLINE_ASSIGN_OR_RETURN(PrivateFile file, PrivateFile::Open(run_ / member.path));
  std::optional<absl::StatusOr<std::string>> text;  // where the file is made anew
  absl::Status written = absl::OkStatus();
  switch (member.kind) {
    case MemberKind::kRecordingJson:
    case MemberKind::kModels:
    case MemberKind::kProbes:
    case MemberKind::kNodeJson:
    case MemberKind::kProfileList:
      text = RedactJson(file.text(), &names_, &words_);
      break;
    case MemberKind::kMetadata:
      text = RedactMetadata(file.text(), &names_, &words_);
      break;
    case MemberKind::kEvidence:
      text = RedactEvidence(file.text(), &names_);
      break;
    case MemberKind::kSamples:
      written = RedactSamples(file.bytes(), &names_);
      break;
    case MemberKind::kTuples:
      written = RedactTuples(file.bytes(), &names_);
      break;
    case MemberKind::kBlock:
      written = RedactBlock(file.bytes(), &names_);
      break;
    case MemberKind::kNames:
      written = RedactNames(file.bytes(), &names_);
      break;
    case MemberKind::kXSpace:
      written = RedactXSpace(file.bytes(), &names_, &words_);
      break;
    case MemberKind::kKineto:
      written = RedactKineto(file.bytes(), &names_, &words_);
      break;
    case MemberKind::kIndex:  // numbers only
      break;
    default:
      written = absl::UnimplementedError("files of its kind cannot be redacted");
  }
  if (text.has_value()) written = text->status();
  if (!written.ok()) return Of(member, written);
  return text.has_value() ? Redacted(**std::move(text)) : Redacted(std::move(file));
}

}  // namespace syncline::pack
