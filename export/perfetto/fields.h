// SPDX-License-Identifier: Apache-2.0
// Field numbers of Perfetto's protos (protos/perfetto/trace/...), which never change.
#ifndef SYNCLINE_EXPORT_PERFETTO_FIELDS_H_
#define SYNCLINE_EXPORT_PERFETTO_FIELDS_H_

#include <cstdint>

namespace syncline::perfetto {

namespace packet {
inline constexpr uint32_t kProcessTree = 2;
inline constexpr uint32_t kClockSnapshot = 6;
inline constexpr uint32_t kTimestamp = 8;
inline constexpr uint32_t kSequenceId = 10;
inline constexpr uint32_t kTrackEvent = 11;
inline constexpr uint32_t kInternedData = 12;
inline constexpr uint32_t kSequenceFlags = 13;
inline constexpr uint32_t kProcessDescriptor = 43;
inline constexpr uint32_t kTimestampClockId = 58;
inline constexpr uint32_t kDefaults = 59;
inline constexpr uint32_t kTrackDescriptor = 60;
inline constexpr uint32_t kFirstOnSequence = 87;
inline constexpr uint64_t kStateCleared = 1;
inline constexpr uint64_t kNeedsState = 2;
}  // namespace packet
namespace process_tree {
inline constexpr uint32_t kThread = 2;
inline constexpr uint32_t kTid = 1;
inline constexpr uint32_t kName = 2;
inline constexpr uint32_t kPid = 3;
}  // namespace process_tree
namespace process_descriptor {
inline constexpr uint32_t kPid = 1;
inline constexpr uint32_t kCommand = 2;
inline constexpr uint32_t kName = 6;
}  // namespace process_descriptor
namespace defaults {
inline constexpr uint32_t kTrackEventDefaults = 11;
inline constexpr uint32_t kTrackUuid = 11;
inline constexpr uint32_t kTimestampClockId = 58;
}  // namespace defaults
namespace snapshot {
inline constexpr uint32_t kClock = 1;
inline constexpr uint32_t kClockId = 1;
inline constexpr uint32_t kTimestamp = 2;
inline constexpr uint32_t kIsIncremental = 3;
inline constexpr uint64_t kRealtime = 1;
inline constexpr uint64_t kBoottime = 6;
inline constexpr uint64_t kSequenceLocal = 64;  // clocks from 64 on are a sequence's own
inline constexpr uint64_t kTimeline = 128;      // clocks from 128 on are the whole file's
}  // namespace snapshot
namespace descriptor {
inline constexpr uint32_t kUuid = 1;
inline constexpr uint32_t kName = 2;
inline constexpr uint32_t kParent = 5;
inline constexpr uint32_t kCounter = 8;
inline constexpr uint32_t kChildOrdering = 11;
inline constexpr uint32_t kRank = 12;  // among the children of one parent
inline constexpr uint32_t kDescription = 14;
inline constexpr uint32_t kMerging = 15;  // of tracks of one name
inline constexpr uint32_t kCounterUnitName = 6;
inline constexpr uint64_t kByRank = 3;
inline constexpr uint64_t kNeverMerged = 2;
}  // namespace descriptor
namespace event {
inline constexpr uint32_t kCategoryIid = 3;
inline constexpr uint32_t kAnnotation = 4;
inline constexpr uint32_t kType = 9;
inline constexpr uint32_t kNameIid = 10;
inline constexpr uint32_t kCategory = 22;
inline constexpr uint32_t kName = 23;
inline constexpr uint32_t kDoubleCounter = 44;
inline constexpr uint32_t kFlowId = 47;
inline constexpr uint32_t kCallstackIid = 56;  // older readers leave it out
}  // namespace event
namespace interned {
inline constexpr uint32_t kCategory = 1;
inline constexpr uint32_t kName = 2;
inline constexpr uint32_t kAnnotationName = 3;
inline constexpr uint32_t kFunctionName = 5;
inline constexpr uint32_t kFrame = 6;
inline constexpr uint32_t kCallstack = 7;
inline constexpr uint32_t kMappingPath = 17;
inline constexpr uint32_t kSourcePath = 18;
inline constexpr uint32_t kMapping = 19;
inline constexpr uint32_t kIid = 1;  // of each of them
inline constexpr uint32_t kText = 2;
}  // namespace interned
namespace frame {
inline constexpr uint32_t kFunctionIid = 2;
inline constexpr uint32_t kMappingIid = 3;
inline constexpr uint32_t kSourcePathIid = 5;
inline constexpr uint32_t kLine = 6;
}  // namespace frame
namespace callstack {
inline constexpr uint32_t kFrameIid = 2;  // the outermost first
}  // namespace callstack
namespace mapping {
inline constexpr uint32_t kPathIid = 7;  // of a part of its path
}  // namespace mapping
namespace annotation {
inline constexpr uint32_t kNameIid = 1;
inline constexpr uint32_t kUint = 3;
inline constexpr uint32_t kInt = 4;
inline constexpr uint32_t kDouble = 5;
inline constexpr uint32_t kText = 6;
inline constexpr uint32_t kName = 10;
inline constexpr uint32_t kArray = 12;
}  // namespace annotation

}  // namespace syncline::perfetto

#endif  // SYNCLINE_EXPORT_PERFETTO_FIELDS_H_
