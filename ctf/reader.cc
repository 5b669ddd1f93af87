// SPDX-License-Identifier: Apache-2.0
#include "ctf/reader.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "ctf/clocks.h"
#include "ctf/metadata.h"
#include "ctf/packet_index.h"
#include "ctf/scan.h"
#include "ctf/stream_chain.h"
#include "ctf/stream_summary.h"

namespace syncline::ctf {
namespace {

class CtfReader : public TraceReader, public ChainedReader {
 public:
  CtfReader(std::filesystem::path directory, std::shared_ptr<const TraceLayout> layout)
      : directory_(std::move(directory)), layout_(std::move(layout)) {
    std::error_code none;
    has_index_ = std::filesystem::is_directory(directory_ / "index", none);
  }

  void AddStreams() {
    const auto files = ListStreamFiles(directory_);
    if (!files.ok()) Unreadable(directory_, std::string(files.status().message()));
    for (const std::filesystem::path& file : files.value_or(std::vector<std::filesystem::path>())) {
      const absl::Status status = AddStream(file);
      if (!status.ok()) Unreadable(file, std::string(status.message()));
    }
    SayMissing();
    for (const std::string& warning : layout_->metadata->warnings) {
      losses_.push_back({LossReason::kUnreadable, kUnknownLo, kUnknownHi, std::nullopt,
                         (directory_ / "metadata").string(), warning});
    }
    SayUnplacedClocks();
  }

  std::span<const StreamInfo> streams() const override { return streams_; }
  std::vector<const EventClass*> classes() override {
    std::vector<const EventClass*> classes;
    for (const EventLayout* event : layout_->events) classes.push_back(&event->event_class);
    return classes;
  }
  const std::map<std::string, std::string>& environment() const override {
    return layout_->metadata->environment;
  }
  std::string clock_uuid() const override {
    return layout_->clock == nullptr ? std::string() : layout_->clock->uuid;
  }
  std::optional<int64_t> wall_clock_offset_ns() const override {
    if (layout_->clock == nullptr) return std::nullopt;
    return OffsetNs(*layout_->clock);
  }
  std::span<const Loss> losses() const override { return losses_; }

  std::optional<Uuid> uuid() const override { return layout_->metadata->uuid; }
  std::span<const std::optional<StreamPlace>> places() const override { return places_; }
  std::vector<PacketMark> MarksOf(size_t stream) const override {
    std::vector<PacketMark> marks;
    const auto source = FileReader::Open(files_[stream].path);
    if (!source.ok()) return marks;
    PacketWalker walker(*layout_, **source, streams_[stream].name);
    for (;;) {
      const auto packet = walker.Next();
      if (!packet.ok() || !packet->has_value()) return marks;
      const PacketHeader& header = (*packet)->header;
      if (!header.sequence) continue;
      PacketMark mark{*header.sequence, (*packet)->offset, header.begin_cycles};
      const auto size = static_cast<size_t>(((*packet)->content_bits + 7) / 8);
      const auto bytes = (*source)->Read(mark.offset, size);
      mark.whole = !(*packet)->cut && !(*packet)->open_ended && !(*packet)->loss && bytes.ok() &&
                   bytes->size() == size;
      if (mark.whole) {
        const auto* const text = reinterpret_cast<const char*>(bytes->data());
        mark.hash = std::hash<std::string_view>()({text, size});
      }
      marks.push_back(mark);
    }
  }
  void GoOnFrom(size_t stream, StreamBefore before) override {
    files_[stream].before = std::move(before);
  }
  const StreamBefore& before(size_t stream) const override { return files_[stream].before; }

  absl::StatusOr<std::unique_ptr<EventCursor>> Open(uint32_t stream_index, int64_t begin_ns,
                                                    int64_t end_ns) override {
    if (stream_index >= streams_.size()) {
      return absl::InvalidArgumentError(absl::StrCat("no stream ", stream_index));
    }
    const std::filesystem::path& path = files_[stream_index].path;
    SYNCLINE_ASSIGN_OR_RETURN(const uint64_t begin_byte, SeekStream(*layout_, path, begin_ns));
    SYNCLINE_ASSIGN_OR_RETURN(auto source, FileWindow::Open(path));
    return MakeCursor(layout_, std::move(source), streams_[stream_index],
                      {begin_ns, end_ns, begin_byte, UINT64_MAX, BatchRecords(),
                       files_[stream_index].before, has_index_ ? path : std::filesystem::path()});
  }

  absl::StatusOr<std::vector<Loss>> ScanShared(std::span<const Visit> visits) override {
    std::vector<ScanStream> streams;
    for (size_t i = 0; i < streams_.size(); ++i) {
      streams.push_back(
          {&streams_[i], &files_[i].path, files_[i].bytes, files_[i].before, has_index_});
    }
    return ScanStreams(layout_, streams, visits);
  }

 private:
  size_t BatchRecords() const {
    // Of all the trace's cursors together: one MiB, which a second-level cache holds.
    constexpr size_t kAllRecords = size_t{1} << 15;
    return std::clamp(kAllRecords / streams_.size(), size_t{32}, kBatchRecords);
  }

  void Unreadable(const std::filesystem::path& file, std::string why) {
    losses_.push_back({LossReason::kUnreadable, kUnknownLo, kUnknownHi, std::nullopt, file.string(),
                       std::move(why)});
  }

  // From the packet index where it fits, else from every packet's header.
  absl::Status AddStream(const std::filesystem::path& file) {
    StreamInfo info;
    info.index = static_cast<uint32_t>(streams_.size());
    info.name = file.filename().string();
    std::optional<uint64_t> cpu;
    std::optional<StreamPlace> place;
    uint64_t bytes = 0;
    SYNCLINE_ASSIGN_OR_RETURN(const std::optional<IndexedExtent> extent, IndexedOf(file, &bytes));
    if (extent) {
      stream_classes_.insert(extent->first.stream->id);
      info.packets = extent->packets;
      info.begin_ns = extent->begin_ns;
      info.end_ns = extent->end_ns;
      cpu = extent->cpu_id;
      SYNCLINE_RETURN_IF_ERROR(
          AskEvents(file, {true, extent->end_known, extent->resume_byte}, &info));
      place =
          PlaceOf(info, extent->first.stream->id, extent->first.stream_instance_id,
                  extent->first.lasting_sequence(), extent->last_sequence, extent->last_discarded);
      if (place) place->lost_behind = extent->beyond;  // said below, once
      if (extent->beyond > 0) {
        losses_.push_back({LossReason::kLostPackets, info.end_ns, extent->beyond_end_ns,
                           extent->beyond, info.name,
                           "its index lists packets behind the end of the file"});
      }
    } else {
      SYNCLINE_ASSIGN_OR_RETURN(const StreamSummary summary, SummarizeStream(*layout_, file));
      if (summary.packets == 0 && summary.file_bytes > 0) {
        return absl::DataLossError("no packet of this trace is in it");
      }
      info.packets = summary.packets;
      info.begin_ns = summary.begin_ns;
      info.end_ns = summary.end_ns;
      cpu = summary.cpu_id;
      SYNCLINE_RETURN_IF_ERROR(
          AskEvents(file, {summary.begin_known, summary.end_known, summary.resume_byte}, &info));
      if (summary.stream_id) stream_classes_.insert(*summary.stream_id);
      place = PlaceOf(info, summary.stream_id, summary.stream_instance_id, summary.first_sequence,
                      summary.last_sequence, summary.last_discarded);
      bytes = summary.file_bytes;
      if (summary.losses.empty()) SayUnheld(file, summary, "its index lists packets that are gone");
    }
    if (cpu) info.cpu = static_cast<uint32_t>(*cpu);
    streams_.push_back(std::move(info));
    files_.push_back({file, bytes, {}});
    places_.push_back(place);
    return absl::OkStatus();
  }

  // Says what the index lists and the stream does not hold, where nothing else tells.
  void SayUnheld(const std::filesystem::path& file, const StreamSummary& summary,
                 const std::string& detail) {
    std::optional<PacketIndex> index;
    if (has_index_) index = PacketIndex::OfStream(file);
    if (!index) return;
    const auto unheld = FindUnheld(*layout_, summary, &*index);
    if (!unheld.ok() || unheld->packets == 0) return;
    losses_.push_back({LossReason::kLostPackets, unheld->begin_ns, unheld->end_ns, unheld->packets,
                       file.filename().string(), detail});
  }

  // Says which streams are gone: an index without a stream.
  void SayMissing() {
    std::error_code error;
    std::vector<std::filesystem::path> gone;
    for (const auto& entry : std::filesystem::directory_iterator(directory_ / "index", error)) {
      const std::filesystem::path file = directory_ / entry.path().stem();
      const bool is_index = entry.path().extension() == ".idx";
      if (is_index && !std::filesystem::exists(file, error)) gone.push_back(file);
    }
    if (gone.empty()) return;
    std::sort(gone.begin(), gone.end());
    std::vector<std::filesystem::path> without;
    for (const File& file : files_) {
      if (!PacketIndex::OfStream(file.path)) without.push_back(file.path);
    }
    for (const auto& file : gone) {
      if (!TakeRenamed(file, &without)) SayUnheld(file, {}, "the file is gone; its index is there");
    }
  }

  // Whether one of the streams without an index fits that of `gone`; takes it out of them. Of many
  // only the first are tried.
  bool TakeRenamed(const std::filesystem::path& gone,
                   std::vector<std::filesystem::path>* without) const {
    constexpr size_t kTriedMax = 64;
    std::optional<PacketIndex> index = PacketIndex::OfStream(gone);
    if (!index) return false;
    for (size_t i = 0; i < std::min(without->size(), kTriedMax); ++i) {
      const auto source = FileReader::Open((*without)[i]);
      if (!source.ok()) continue;
      const auto extent = IndexedStream(*layout_, **source, *index).Extent();
      if (!extent.ok() || !extent->has_value()) continue;
      without->erase(without->begin() + static_cast<ptrdiff_t>(i));
      return true;
    }
    return false;
  }

  // What packet headers tell of a stream's times.
  struct Told {
    bool begin = false;
    bool end = false;
    uint64_t resume_byte = 0;  // where to look for its last events
  };
  // Events tell what the headers do not: a window or a timeline must hold all of them.
  absl::Status AskEvents(const std::filesystem::path& file, const Told& told,
                         StreamInfo* info) const {
    if (info->packets == 0) return absl::OkStatus();
    if (!told.begin) {
      SYNCLINE_ASSIGN_OR_RETURN(const auto cursor, EventsFrom(file, *info, 0));
      SYNCLINE_ASSIGN_OR_RETURN(const auto batch, cursor->NextBatch());
      info->begin_ns = batch.empty() ? info->end_ns : batch.front().time_ns;
    }
    if (!told.end) {
      SYNCLINE_ASSIGN_OR_RETURN(const auto cursor, EventsFrom(file, *info, told.resume_byte));
      for (;;) {
        SYNCLINE_ASSIGN_OR_RETURN(const auto batch, cursor->NextBatch());
        if (batch.empty()) break;
        info->end_ns = std::max(info->end_ns, batch.back().time_ns);
      }
    }
    info->end_ns = std::max(info->begin_ns, info->end_ns);
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<EventCursor>> EventsFrom(const std::filesystem::path& file,
                                                          const StreamInfo& info,
                                                          uint64_t begin_byte) const {
    SYNCLINE_ASSIGN_OR_RETURN(auto source, FileWindow::Open(file));
    return MakeCursor(layout_, std::move(source), info, {.begin_byte = begin_byte});
  }

  void SayUnplacedClocks() {
    for (const uint64_t id : stream_classes_) {
      if (!layout_->unplaced_clocks.contains(id)) continue;
      losses_.push_back(
          {LossReason::kUnreadable, kUnknownLo, kUnknownHi, std::nullopt,
           (directory_ / "metadata").string(),
           absl::StrCat("the clock of stream class ", id, " cannot be compared with \"",
                        layout_->clock->name,
                        "\" (another uuid or origin): its events are placed by that one's zero")});
    }
  }

  static std::optional<StreamPlace> PlaceOf(const StreamInfo& info,
                                            std::optional<uint64_t> stream_class,
                                            std::optional<uint64_t> instance,
                                            std::optional<uint64_t> first,
                                            std::optional<uint64_t> last,
                                            std::optional<uint64_t> discarded) {
    if (!stream_class || !instance || !first || !last || *last < *first) return std::nullopt;
    return StreamPlace{*stream_class, *instance,     *first,     *last, 0,
                       discarded,     info.begin_ns, info.end_ns};
  }

  absl::StatusOr<std::optional<IndexedExtent>> IndexedOf(const std::filesystem::path& file,
                                                         uint64_t* bytes) const {
    if (!has_index_) return std::nullopt;
    std::optional<PacketIndex> index = PacketIndex::OfStream(file);
    if (!index) return std::nullopt;
    SYNCLINE_ASSIGN_OR_RETURN(const auto source, FileReader::Open(file));
    *bytes = source->size();
    return IndexedStream(*layout_, *source, *index).Extent();
  }

  struct File {
    std::filesystem::path path;
    uint64_t bytes = 0;
    StreamBefore before;
  };

  std::filesystem::path directory_;
  std::shared_ptr<const TraceLayout> layout_;
  bool has_index_ = false;
  std::set<uint64_t> stream_classes_;  // that there are streams of
  std::vector<StreamInfo> streams_;
  std::vector<File> files_;                         // beside streams_
  std::vector<std::optional<StreamPlace>> places_;  // likewise
  std::vector<Loss> losses_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TraceReader>> OpenTrace(const std::filesystem::path& directory) {
  SYNCLINE_ASSIGN_OR_RETURN(auto metadata, LoadMetadata(directory));
  auto layout = BuildLayout(std::move(metadata));
  if (!layout.ok()) {
    return WithContext(layout.status(), absl::StrCat("\"", directory.string(), "\""));
  }
  auto reader = std::make_unique<CtfReader>(directory, std::move(layout).value());
  reader->AddStreams();
  TraceReader* const alone = reader.get();
  ChainStreams({&alone, 1});
  return std::unique_ptr<TraceReader>(std::move(reader));
}

}  // namespace syncline::ctf
