// SPDX-License-Identifier: Apache-2.0
#include "ctf/stream_summary.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "ctf/byte_source.h"
#include "ctf/layout.h"
#include "ctf/packet_walker.h"

namespace syncline::ctf {
namespace {

// Deeper than any layout of LTTng's; keeps a loop of mounts from being walked for ever.
constexpr int kDirectoryDepthMax = 32;

bool HoldsMetadata(const std::filesystem::path& directory) {
  std::error_code error;
  return std::filesystem::exists(std::filesystem::symlink_status(directory / "metadata", error));
}

// What it leads to is found without it.
bool LeadsInto(const std::filesystem::path& root, const std::filesystem::path& link) {
  std::error_code error;
  const std::filesystem::path above = std::filesystem::canonical(root, error);
  const std::filesystem::path target = std::filesystem::canonical(link, error);
  return std::mismatch(above.begin(), above.end(), target.begin(), target.end()).first ==
         above.end();
}

void FindBelow(const std::filesystem::path& root, const std::filesystem::path& directory, int depth,
               FoundTraces* found) {
  std::error_code error;
  std::filesystem::directory_iterator entry(directory, error);
  for (const std::filesystem::directory_iterator end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->path().filename() == "metadata") found->traces.push_back(directory);
    if (!entry->is_directory(ignored)) continue;
    if (entry->is_symlink(ignored)) {  // a trace, but not the way to more: it may lead in a circle
      if (LeadsInto(root, entry->path())) continue;
      if (HoldsMetadata(entry->path())) {
        found->traces.push_back(entry->path());
      } else {
        found->links.push_back(entry->path());
      }
    } else if (depth == kDirectoryDepthMax) {
      found->unreadable.push_back({entry->path(), "too deep"});
    } else {
      FindBelow(root, entry->path(), depth + 1, found);
    }
  }
  if (error) found->unreadable.push_back({directory, error.message()});
}

// Short times go on from the packet before.
bool TellsWholeBegin(const PacketHeader& header) {
  const Node* const context = header.stream->nodes.root(Scope::kPacketContext);
  return header.begin_cycles && BitsOf(Role::kTimestampBegin, context) == 64;
}

}  // namespace

absl::StatusOr<StreamSummary> SummarizeStream(const TraceLayout& layout,
                                              const std::filesystem::path& file) {
  SYNCLINE_ASSIGN_OR_RETURN(const auto source, FileReader::Open(file));
  PacketWalker walker(layout, *source, file.filename().string());
  StreamSummary summary;
  summary.file_bytes = source->size();
  for (;;) {
    SYNCLINE_ASSIGN_OR_RETURN(const auto packet, walker.Next());
    if (!packet) break;
    if (summary.packets++ == 0) {
      summary.begin_ns = summary.end_ns = packet->begin_ns;
      summary.stream_id = packet->header.stream->id;
      summary.stream_instance_id = packet->header.stream_instance_id;
      summary.cpu_id = packet->header.cpu_id;
      summary.first_sequence = packet->header.lasting_sequence();
      summary.begin_known = packet->header.begin_cycles.has_value();
    }
    summary.end_known = packet->latest_ns().has_value();
    if (TellsWholeBegin(packet->header)) summary.resume_byte = packet->offset;
    summary.begin_ns = std::min(summary.begin_ns, packet->begin_ns);
    summary.end_ns = std::max(summary.end_ns, packet->end_ns.value_or(packet->begin_ns));
    if (!packet->open_ended) summary.content_bytes += (packet->content_bits + 7) / 8;
  }
  summary.last_sequence = walker.last_sequence();
  summary.last_discarded = walker.last_discarded();
  summary.sequence_gaps = walker.sequence_gaps();
  summary.discarded_events = walker.discarded_events();
  summary.discarded_events_valid = walker.discarded_events_valid();
  summary.closed = walker.closed();
  summary.losses.assign(walker.losses().begin(), walker.losses().end());
  return summary;
}

absl::StatusOr<StreamSummary> SummarizeStream(const Metadata& metadata,
                                              const std::filesystem::path& file) {
  // Not owned: the layout does not outlive this call.
  const std::shared_ptr<const Metadata> borrowed(std::shared_ptr<const Metadata>(), &metadata);
  SYNCLINE_ASSIGN_OR_RETURN(const auto layout, BuildPacketLayout(borrowed));
  return SummarizeStream(*layout, file);
}

absl::StatusOr<FoundTraces> FindTraces(const std::filesystem::path& root) {
  std::error_code error;
  if (!std::filesystem::is_directory(root, error)) {
    return absl::NotFoundError(
        absl::StrCat("Cannot look for traces: \"", root.string(), "\" is not a directory"));
  }
  FoundTraces found;
  FindBelow(root, root, 0, &found);
  std::sort(found.traces.begin(), found.traces.end());
  std::sort(found.links.begin(), found.links.end());
  std::sort(found.unreadable.begin(), found.unreadable.end(),
            [](const auto& a, const auto& b) { return a.directory < b.directory; });
  return found;
}

absl::StatusOr<std::vector<std::filesystem::path>> ListStreamFiles(
    const std::filesystem::path& trace) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  std::filesystem::directory_iterator entry(trace, error);
  for (const std::filesystem::directory_iterator end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    const std::string name = entry->path().filename().string();
    if (name == "metadata" || name.starts_with('.') || entry->is_directory(ignored)) continue;
    files.push_back(entry->path());
  }
  if (error) {
    return ErrnoStatus(error.value(), absl::StrCat("Cannot list \"", trace.string(), "\""));
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace syncline::ctf
