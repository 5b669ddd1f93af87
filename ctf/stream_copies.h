// Files of one trace that hold the same stream: one that somebody saved beside it, say. Read twice,
// every event of it would be there twice.
//
// Told by what the trace itself says: two files whose first packets are of the same stream class
// and stream instance, and have the same sequence number, times and size, are the same stream.
// Traces whose packets name no instance or have no number are believed.
#ifndef SYNCLINE_CTF_STREAM_COPIES_H_
#define SYNCLINE_CTF_STREAM_COPIES_H_

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "common/event_cursor.h"
#include "ctf/layout.h"

namespace syncline::ctf {

// For each stream another one, as an index, that it is a copy of: the one with the most packets,
// and of those the first. nullopt: it is none. `files` lie beside `streams`; one that cannot be
// read is no copy. Only files of streams that begin at the same time on the same CPU are looked at.
std::vector<std::optional<size_t>> FindCopies(const TraceLayout& layout,
                                              std::span<const StreamInfo> streams,
                                              std::span<const std::filesystem::path> files);

}  // namespace syncline::ctf

#endif  // SYNCLINE_CTF_STREAM_COPIES_H_
