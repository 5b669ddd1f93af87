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
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "timeline/emitter.h"
#include "timeline/first_fit.h"
#include "timeline/schema.h"
#include "timeline/sink.h"
#include "timeline/thread_spans.h"

namespace syncline::timeline {

class AsyncSpans {
 public:
  static constexpr uint8_t kOverlappedTasks = 1;  // Key::group
  // What pairs begin and end within one process.
  struct Key {
    uint8_t group = 0;   // kind of span, chosen by the caller
    uint64_t scope = 0;  // domain, or thread
    IttId id;
    auto operator<=>(const Key&) const = default;
  };
  struct ById {
    bool operator()(const Key& a, const Key& b) const {
      return std::tie(a.id, a.group, a.scope) < std::tie(b.id, b.group, b.scope);
    }
  };
  struct Label {
    TextId name = kNoText;
    TextId category = kNoText;
    std::string_view group_name;  // the track's name; valid during the call
  };

  // Lanes become children of `parent`; `prototype` gives their node and process.
  AsyncSpans(Emitter* emitter, TrackId parent, Track prototype);

  void CoverageBegins(const Moment& moment) {
    coverage_begin_ = moment;
    covered_ = true;
  }
  void CoverageEnds(const Moment& moment);
  // Events of the process may have been lost until then: what was open meanwhile is suspect, and
  // what turns out to be open may have begun then.
  void Lost(const Moment& until);
  void Finish(const Moment& last) { CoverageEnds(last); }

  // A begin under a key that is open stacks on it (user events nest under one name). Returns the
  // new span, for its arguments; valid until the next call.
  Span* Begin(const Key& key, const Label& label, const Moment& moment);
  // An end without a begin: open since coverage began, when that is known; else dropped (false).
  bool End(const Key& key, const Label& label, const Moment& moment);
  // A whole span, reported afterwards.
  void Whole(const Label& label, const Moment& begin, const Moment& end,
             std::vector<Argument> arguments = {});
  // The newest under the first key with this id. nullptr: none is open.
  Span* FindOpen(IttId id);
  bool IsOpen(const Key& key) const { return open_.contains(key); }
  // Whether one is open under the key, but for the one that began then on this track.
  bool IsOpenBeside(const Key& key, TrackId track, TimelineTime begin) const;

 private:
  struct Lanes {
    std::vector<TrackId> tracks;
    FirstFit used;  // beside `tracks`
  };
  struct Lane {
    Lanes* lanes = nullptr;  // in lanes_
    size_t number = 0;

    TrackId track() const { return lanes->tracks[number]; }
    void UsedUntil(TimelineTime end) const { lanes->used.Set(number, end); }
  };
  struct Open {
    Span span;
    Lane lane;
  };

  // A lane that is free from `begin` on; in use now.
  Lane TakeLane(std::string_view group_name, TimelineTime begin);
  bool IsSuspect(const Span& span) const {
    return lost_until_ns_ != kUnknownLo && span.node_begin.ns <= lost_until_ns_;
  }
  // A span that is over already, on a lane of its own.
  void PushWhole(Span span, std::string_view group_name);

  Emitter* emitter_;
  TrackId parent_;
  Track prototype_;
  std::map<std::string, Lanes, std::less<>> lanes_;
  std::map<Key, std::vector<Open>, ById> open_;
  Moment coverage_begin_;
  bool covered_ = false;
  int64_t lost_until_ns_ = kUnknownLo;
};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_ASYNC_SPANS_H_
