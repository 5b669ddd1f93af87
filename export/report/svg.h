// SPDX-License-Identifier: Apache-2.0
// A stretch of the timeline as a picture: one lane per thread (of TensorFlow's, its operators),
// nodes below each other, arrows for what one node sent to another, the step boundaries of the node
// that marks them drawn through all, with the clock bound as a shaded band where they cross another
// node's lanes.
//
// Self-contained SVG: no scripts, no external fonts. The same calls give the same bytes.
// Thread-safety: one thread.
#ifndef SYNCLINE_EXPORT_REPORT_SVG_H_
#define SYNCLINE_EXPORT_REPORT_SVG_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "timeline/builder.h"
#include "timeline/sink.h"

namespace syncline::report {

struct PictureOptions {
  std::string title;
  std::string subtitle;
  timeline::Interval range;
  TimelineTime zero;                  // where the axis reads 0
  std::optional<uint32_t> step_node;  // the node whose steps the boundaries are
  std::vector<TimelineTime> boundaries;
  // By node: how far a boundary may be off in this node's lanes, ns; absent: unknown.
  std::map<uint32_t, int64_t> bound_ns;
};

class PictureSink final : public timeline::SpanSink {
 public:
  explicit PictureSink(PictureOptions options) : options_(std::move(options)) {}

  void OnText(timeline::TextId id, std::string_view text) override;
  void OnTrack(const timeline::Track& track) override;
  void OnSpanEnd(const timeline::Span& span) override;
  void OnFlow(const timeline::Flow& flow) override;
  void OnHole(const timeline::Hole& hole) override;

  // After Finish. A picture without a single task says so.
  std::string Render() const;

 private:
  friend class Painter;
  struct Box {
    TimelineTime begin;
    TimelineTime end;
    uint16_t depth = 0;
    std::string name;  // as NamePattern has it
    bool clipped = false;
  };
  struct Lane {
    uint32_t node = 0;
    std::string process;
    std::string thread;
    bool operators = false;  // a profile's: nothing else of it is drawn
    uint64_t order = 0;      // as the tracks were announced
    int64_t busy_ns = 0;     // of outermost tasks
    std::vector<Box> boxes;
    std::vector<timeline::Interval> holes;
  };
  struct Arrow {
    bool tensor = false;  // else a message
    uint32_t from = 0;    // nodes
    uint32_t to = 0;
    TimelineTime sent;
    TimelineTime received;
  };

  PictureOptions options_;
  std::vector<Arrow> arrows_;
  std::vector<std::string> texts_{""};
  std::map<timeline::TrackId, timeline::Track> tracks_;
  std::map<uint32_t, std::string> nodes_;
  std::map<timeline::TrackId, Lane> lanes_;
  std::map<timeline::TrackId, std::vector<timeline::Interval>> process_holes_;
};

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_REPORT_SVG_H_
