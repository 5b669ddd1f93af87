#include "ctf/stream_copies.h"

#include <map>
#include <tuple>
#include <utility>

#include "ctf/byte_source.h"
#include "ctf/packet_walker.h"

namespace syncline::ctf {
namespace {

// Of the first packet: stream class, stream instance, sequence number, begin, end, size.
using Number = std::optional<uint64_t>;
using Beginning = std::tuple<const StreamLayout*, Number, Number, Number, Number, Number>;

std::optional<Beginning> BeginningOf(const TraceLayout& layout, const std::filesystem::path& file) {
  const auto source = FileReader::Open(file);
  if (!source.ok()) return std::nullopt;
  PacketWalker walker(layout, **source, file.filename().string());
  const auto packet = walker.Next();
  if (!packet.ok() || !packet->has_value()) return std::nullopt;
  const PacketHeader& header = (*packet)->header;
  if (!header.stream_instance_id || !header.sequence || !header.begin_cycles) return std::nullopt;
  return Beginning(header.stream, header.stream_instance_id, header.sequence, header.begin_cycles,
                   header.end_cycles, header.content_bits);
}

}  // namespace

std::vector<std::optional<size_t>> FindCopies(const TraceLayout& layout,
                                              std::span<const StreamInfo> streams,
                                              std::span<const std::filesystem::path> files) {
  std::map<std::pair<std::optional<uint32_t>, int64_t>, std::vector<size_t>> alike;
  for (size_t i = 0; i < streams.size(); ++i) {
    if (streams[i].packets > 0) alike[{streams[i].cpu, streams[i].begin_ns}].push_back(i);
  }
  std::vector<std::optional<size_t>> originals(streams.size());
  for (const auto& [unused, group] : alike) {
    if (group.size() == 1) continue;
    std::map<Beginning, std::vector<size_t>> same;
    for (const size_t i : group) {
      if (const auto beginning = BeginningOf(layout, files[i])) same[*beginning].push_back(i);
    }
    for (const auto& [beginning, members] : same) {
      size_t original = members.front();
      for (const size_t i : members) {
        if (streams[i].packets > streams[original].packets) original = i;
      }
      for (const size_t i : members) {
        if (i != original) originals[i] = original;
      }
    }
  }
  return originals;
}

}  // namespace syncline::ctf
