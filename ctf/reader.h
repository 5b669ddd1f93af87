// SPDX-License-Identifier: Apache-2.0
// A CTF trace as a TraceReader: one directory with its metadata and streams.
//
//   SYNCLINE_ASSIGN_OR_RETURN(auto reader, ctf::OpenTrace(directory));
//   for (const StreamInfo& stream : reader->streams()) {
//     SYNCLINE_ASSIGN_OR_RETURN(auto cursor, reader->Open(stream.index));
//     for (;;) {
//       SYNCLINE_ASSIGN_OR_RETURN(auto batch, cursor->NextBatch());
//       if (batch.empty()) break;
//       for (const EventRecord& record : batch) cursor->Decode(record, &values);
//     }
//     cursor->losses();
//   }
//
// Times are the trace clock's own (LTTng: CLOCK_MONOTONIC), in ns, without the clock's offset,
// which wall_clock_offset_ns() tells. Everything readable is read; what is not is in losses(): of
// the reader (streams that cannot be opened) and of each cursor (packets and events). A cursor's
// loss may end at kUnknownHi or begin at kUnknownLo: nothing bounds it there.
//
// Memory: a cursor holds one batch of records and maps a window of its file while it stands inside
// one packet; no file stays open. The batches of a trace with many streams are smaller, so that all
// of them together stay below 1 MiB as long as that leaves 32 records to each. Cursors keep what
// they need of the trace alive and may outlive the reader.
#ifndef SYNCLINE_CTF_READER_H_
#define SYNCLINE_CTF_READER_H_

#include <filesystem>
#include <memory>

#include "absl/status/statusor.h"
#include "common/event_cursor.h"
#include "ctf/byte_source.h"
#include "ctf/layout.h"
#include "ctf/packet_walker.h"

namespace syncline::ctf {

// NotFound: "not a CTF trace: no metadata file". InvalidArgument: metadata that does not parse.
absl::StatusOr<std::unique_ptr<TraceReader>> OpenTrace(const std::filesystem::path& directory);

inline constexpr size_t kBatchRecords = 1024;

// Events with time in [begin_ns, end_ns), of packets that begin in [begin_byte, end_byte).
struct CursorRange {
  int64_t begin_ns = kUnknownLo;
  int64_t end_ns = kUnknownHi;
  uint64_t begin_byte = 0;  // where a packet begins
  uint64_t end_byte = UINT64_MAX;
  size_t batch_records = kBatchRecords;  // at most so many at a time
  StreamBefore before;                   // what the stream goes on from
  std::filesystem::path indexed;         // as PacketRange's
};

// A cursor over any bytes that hold packets of `layout`; OpenTrace's own are made so.
std::unique_ptr<EventCursor> MakeCursor(std::shared_ptr<const TraceLayout> layout,
                                        std::unique_ptr<ByteSource> source, StreamInfo info,
                                        CursorRange range = {});

}  // namespace syncline::ctf

#endif  // SYNCLINE_CTF_READER_H_
