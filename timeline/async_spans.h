// SPDX-License-Identifier: Apache-2.0
// Spans that do not nest: overlapped tasks, frames, user events, waits. Their ids pair begin and
// end, possibly from two threads.
//
// Every such span goes onto a *lane*, a track of its group on which nothing overlaps; lanes are
// made as concurrency needs them and share the group's name, so that viewers fold them into one.
//
// Thread-safety: one thread.
#ifndef SYNCLINE_TIMELINE_ASYNC_SPANS_H_
#define SYNCLINE_TIMELINE_ASYNC_SPANS_H_

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "timeline/emitter.h"
#include "timeline/schema.h"
#include "timeline/sink.h"
#include "timeline/thread_spans.h"

namespace syncline::timeline {

class AsyncSpans {
 public:
  // What pairs begin and end within one process.
  struct Key {
    uint8_t group = 0;   // kind of span, chosen by the caller
    uint64_t scope = 0;  // domain, or thread
    IttId id;
    auto operator<=>(const Key&) const = default;
  };
  struct Label {
    TextId name = kNoText;
    TextId category = kNoText;
    std::string group_name;  // the track's name
  };

  // Lanes become children of `parent`; `prototype` gives their node and process.
  AsyncSpans(Emitter* emitter, TrackId parent, Track prototype);

  void CoverageBegins(const Moment& moment) {
    coverage_begin_ = moment;
    covered_ = true;
  }
  void CoverageEnds(const Moment& moment);
  void Finish(const Moment& last) { CoverageEnds(last); }

  // A begin under a key that is open stacks on it (user events nest under one name). Returns the
  // new span, for its arguments; valid until the next call.
  Span* Begin(const Key& key, const Label& label, const Moment& moment);
  // An end without a begin: open since coverage began, when that is known; else dropped (false).
  bool End(const Key& key, const Label& label, const Moment& moment);
  // A whole span, reported afterwards.
  void Whole(const Label& label, const Moment& begin, const Moment& end,
             std::vector<Argument> arguments = {});
  Span* FindOpen(IttId id);
  bool IsOpen(const Key& key) const { return open_.contains(key); }

 private:
  struct Lane {
    TrackId track = kNoTrack;
    bool open = false;
    TimelineTime last_end{kUnknownLo};
  };
  struct Open {
    Span span;
    std::string group_name;
    size_t lane = 0;
  };

  size_t TakeLane(const std::string& group_name, TimelineTime begin);

  Emitter* emitter_;
  TrackId parent_;
  Track prototype_;
  std::map<std::string, std::vector<Lane>> lanes_;
  std::map<Key, std::vector<Open>> open_;
  Moment coverage_begin_;
  bool covered_ = false;
};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_ASYNC_SPANS_H_
