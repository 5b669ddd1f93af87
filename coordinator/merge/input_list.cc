// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/input_list.h"

#include <algorithm>
#include <map>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/text.h"
#include "coordinator/merge/profile_file.h"
#include "coordinator/recording/recording.h"
#include "ctf/stream_summary.h"
#include "export/output_file.h"

namespace syncline::merge {
namespace {

namespace fs = std::filesystem;

constexpr size_t kNameBytesMax = 64;

// Bytes of the UTF-8 character that `text` begins with; 0: none does.
size_t CharacterBytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return 1;
  const size_t length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  return length;
}

Input ParseInput(const std::string& text) {
  Input input{.text = text, .name = {}, .directory = text};
  const size_t equals = text.find('=');
  // "a/b=c" is a path; a name has no slash.
  if (equals != std::string::npos && text.find('/') > equals && equals > 0) {
    input.name = text.substr(0, equals);
    input.directory = text.substr(equals + 1);
  }
  // Paths below it are shown without it: it must look the same in all of them.
  input.directory = input.directory.lexically_normal();
  if (!input.directory.has_filename()) input.directory = input.directory.parent_path();
  return input;
}

bool Exists(const fs::path& path) {
  std::error_code error;
  return fs::exists(fs::symlink_status(path, error));
}

// Sets what the input is by what lies there.
absl::Status Find(Input* found) {
  Input& input = *found;
  std::error_code error;
  const fs::file_status status = fs::status(input.directory, error);
  if (fs::is_regular_file(status)) {
    input.is_file = true;
    input.profiles = {input.directory};
    input.directory = input.directory.parent_path();
    if (input.directory.empty()) input.directory = ".";
    return absl::OkStatus();
  }
  if (fs::is_directory(status)) return absl::OkStatus();
  if (error && status.type() != fs::file_type::not_found) {
    return ErrnoStatus(error.value(), absl::StrCat("Cannot open ", input.text));
  }
  return absl::NotFoundError(absl::StrCat(
      "not a file or directory: ", input.directory.string(),
      input.name.empty()
          ? " (an input is a recording, a directory with CTF traces, or a profile)"
          : absl::StrCat(" (\"", input.text, "\" means that path, as node \"", input.name, "\")")));
}

absl::Status CheckName(const Input& input) {
  if (input.name.empty()) return absl::OkStatus();
  if (absl::StrContains(input.name, ',')) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", AsName(input.name), "\" cannot be a node's name: commas separate names (--nodes)"));
  }
  if (input.name.size() <= kNameBytesMax && AsName(input.name) == input.name) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", AsName(input.name),
                   "\" cannot be a node's name: it must be text of at "
                   "most ",
                   kNameBytesMax, " bytes"));
}

absl::Status CheckRecording(const Input& input, size_t inputs) {
  if (!input.name.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(input.text,
                     ": a recording is given without a name, because its nodes have names of their "
                     "own: ",
                     input.directory.string()));
  }
  if (inputs == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(input.text, " is a recording: it is merged alone, not with other inputs"));
}

// The profiles of a directory without traces.
std::vector<fs::path> ProfilesAlone(const fs::path& directory) {
  const auto traces = ctf::FindTraces(directory);
  const bool any = traces.ok() && !(traces->traces.empty() && traces->unreadable.empty());
  return any ? std::vector<fs::path>() : FindProfiles(directory);
}

// The recording that a path lies in: the nearest directory above it with a recording.json.
fs::path RecordingAround(const fs::path& absolute) {
  for (fs::path above = absolute; above.has_relative_path();) {
    above = above.parent_path();
    if (Exists(recording::Layout(above).RecordingJson())) return above;
  }
  return {};
}

// The path without links, as far as it exists.
fs::path Resolved(const fs::path& path) {
  std::error_code error;
  const fs::path resolved = fs::weakly_canonical(fs::absolute(path, error), error);
  return error ? fs::absolute(path, error).lexically_normal() : resolved;
}

bool LiesIn(const fs::path& path, const fs::path& directory) {
  return std::mismatch(directory.begin(), directory.end(), path.begin(), path.end()).first ==
         directory.end();
}

}  // namespace

std::string AsName(std::string_view text) {
  std::string name;
  while (!text.empty()) {
    const size_t bytes = CharacterBytes(text);
    const auto first = static_cast<unsigned char>(text.front());
    const bool fine = bytes > 0 && first >= 0x20 && first != 0x7f;
    name += fine ? text.substr(0, bytes) : "?";
    text.remove_prefix(std::max<size_t>(bytes, 1));
  }
  return name;
}

absl::StatusOr<InputList> ListInputs(const std::vector<std::string>& texts) {
  if (texts.empty()) return absl::InvalidArgumentError("nothing to merge: no input");
  InputList list;
  std::map<std::string, std::string> named;  // name of its files -> input
  for (const std::string& text : texts) {
    Input input = ParseInput(text);
    SYNCLINE_RETURN_IF_ERROR(Find(&input));
    SYNCLINE_RETURN_IF_ERROR(CheckName(input));
    if (!input.profiles.empty()) {
      list.is_profiles = true;
    } else if (Exists(recording::Layout(input.directory).RecordingJson())) {
      SYNCLINE_RETURN_IF_ERROR(CheckRecording(input, texts.size()));
      list.is_recording = true;
    } else {
      SYNCLINE_RETURN_IF_ERROR(recording::CheckNotHeadless(input.directory));
      input.profiles = ProfilesAlone(input.directory);
      list.is_profiles = list.is_profiles || !input.profiles.empty();
      const fs::path recording = RecordingAround(Resolved(input.directory));
      if (!recording.empty()) {
        list.notes.push_back(absl::StrCat(
            input.text, " is a part of the recording ", recording.string(),
            ". Given alone it is placed by its wall clock; `syncline merge ", recording.string(),
            "` places it by the clocks that were measured (--nodes chooses among its nodes)"));
      }
    }
    // One name joins profiles to one node.
    if (!input.name.empty() && input.profiles.empty()) {
      const auto [other, fresh] = named.try_emplace(FileNameOf(input.name), text);
      if (!fresh) {
        return absl::InvalidArgumentError(absl::StrCat(
            "the name ", input.name,
            " is given twice, or would name the same files: ", other->second, " and ", text,
            ". Every NAME=DIR is a node of its own; traces of one node go below one directory"));
      }
    }
    list.inputs.push_back(std::move(input));
  }
  for (const Input& input : list.inputs) {
    if (!list.is_profiles || !input.profiles.empty()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(input.text,
                     " is no profile: profiles are merged with each other only, not "
                     "with recordings or traces"));
  }
  return list;
}

absl::Status CheckOutput(const fs::path& out, const InputList& list) {
  const fs::path place = Resolved(out);
  const auto refuse = [&](const auto&... why) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot write the merge to ", out.string(), ": ", why...));
  };
  if (place == Resolved(".")) {
    return refuse("it is the working directory, and a new directory replaces it");
  }
  if (list.is_recording && place == Resolved(recording::Layout(list.inputs[0].directory).Out())) {
    return absl::OkStatus();
  }
  for (const Input& input : list.inputs) {
    const fs::path directory = Resolved(input.is_file ? input.profiles[0] : input.directory);
    if (LiesIn(place, directory)) {
      return refuse("it is inside the input ", input.directory.string(),
                    list.is_recording ? ", of which only out/ is for what is derived" : "",
                    "; name another --out");
    }
    if (LiesIn(directory, place)) {
      return refuse("the input ", input.directory.string(),
                    " is inside it, and a new directory replaces it; name another --out");
    }
  }
  const fs::path recording = RecordingAround(place);
  if (recording.empty()) return absl::OkStatus();
  return refuse("it is inside the recording ", recording.string(), "; name another --out");
}

}  // namespace syncline::merge
