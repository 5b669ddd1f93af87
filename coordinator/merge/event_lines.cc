// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/event_lines.h"

#include <algorithm>
#include <condition_variable>
#include <limits>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "common/status.h"
#include "coordinator/merge/ordered_events.h"

namespace syncline::merge {
namespace {

constexpr size_t kWrittenBytes = 1 << 18;
constexpr size_t kChunkBytes = 1 << 18;
// Between the threads and who takes their lines: enough for what one has while another has little.
constexpr size_t kChunksOfAll = 64;
constexpr size_t kChunksMin = 2;  // of a thread

void AppendLine(const text::EventView& event, OrderedEvents* events, text::EventText* lines) {
  events->Prepare(*lines);
  if (!lines->AppendUndecoded(event)) lines->Append(events->Decoded());
}

// Lines of one share, in order.
struct Chunk {
  struct Line {
    int64_t time_ns = 0;
    size_t end = 0;  // in `text`
  };
  text::TextBuffer text;
  std::vector<Line> lines;

  void Clear() {
    text.Clear();
    lines.clear();
  }
};

// Where a thread leaves its chunks. Each side that waits is woken when it has something to do for a
// while, not for each chunk.
class Handover {
 public:
  // Room for so many chunks.
  explicit Handover(size_t room) : chunks_(room) {}

  // Swaps `chunk` for an empty one; false: nobody wants more.
  bool Put(Chunk* chunk) {
    std::unique_lock lock(mutex_);
    if (full_ == chunks_.size()) {
      changed_.wait(lock, [this] { return IsDrained() || closed_; });
    }
    if (closed_) return false;
    std::swap(chunks_[(first_ + full_++) % chunks_.size()], *chunk);
    if (IsFilled()) changed_.notify_one();
    return true;
  }
  // Behind the last chunk.
  void End() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_one();
  }
  // Swaps `chunk`, which is cleared, for the next one; false: there is none.
  bool Take(Chunk* chunk) {
    chunk->Clear();
    std::unique_lock lock(mutex_);
    if (full_ == 0) changed_.wait(lock, [this] { return IsFilled() || ended_; });
    if (full_ == 0) return false;
    std::swap(chunks_[first_], *chunk);
    first_ = (first_ + 1) % chunks_.size();
    --full_;
    if (IsDrained()) changed_.notify_one();
    return true;
  }
  void Close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_one();
  }

 private:
  bool IsFilled() const { return 2 * full_ >= chunks_.size(); }
  bool IsDrained() const { return 2 * full_ <= chunks_.size(); }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Chunk> chunks_;  // a ring, `full_` of them from `first_` on
  size_t first_ = 0;
  size_t full_ = 0;
  bool ended_ = false;
  bool closed_ = false;
};

// A share, the thread that makes lines of it, and the one that takes them.
class Producer {
 public:
  Producer(const OpenedInputs& inputs, const LineOptions& options, size_t producers)
      : events_(inputs, options.shown, options.names),
        lines_(options.style, options.ids, text::EventText::kLinesMax / producers),
        handover_(std::max(kChunksOfAll / producers, kChunksMin)) {}
  ~Producer() { handover_.Close(); }

  absl::Status Open(StreamShare share) { return events_.OpenShare(share); }
  void Start() {
    thread_ = std::jthread([this] {
      status_ = Run();
      handover_.End();
    });
  }

  // For the taker: whether there is a next line. Waits for it.
  absl::StatusOr<bool> Find() {
    if (next_ < chunk_.lines.size()) return true;
    next_ = begin_ = 0;
    if (handover_.Take(&chunk_)) return true;
    if (!status_.ok()) return status_;
    return false;
  }
  int64_t time_ns() const { return chunk_.lines[next_].time_ns; }
  // Appends the lines up to `until_ns`, with those of that time or without, as far as they are at
  // hand; at least one. Returns how many.
  size_t TakeUntil(int64_t until_ns, bool with, text::TextBuffer* out) {
    const size_t first = next_;
    do {
      ++next_;
    } while (next_ < chunk_.lines.size() &&
             (time_ns() < until_ns || (with && time_ns() == until_ns)));
    const size_t end = chunk_.lines[next_ - 1].end;
    out->Put(chunk_.text.text().substr(begin_, end - begin_));
    begin_ = end;
    return next_ - first;
  }

  // After the last line.
  const OrderedEvents& events() const { return events_; }

 private:
  absl::Status Run() {
    Chunk chunk;
    for (;;) {
      SYNCLINE_ASSIGN_OR_RETURN(const text::EventView* event, events_.Next());
      if (event == nullptr) break;
      const int64_t time_ns = event->time.ns;
      AppendLine(*event, &events_, &lines_);
      chunk.lines.push_back({time_ns, lines_.buffer()->size()});
      if (lines_.buffer()->size() < kChunkBytes) continue;
      if (!HandOver(&chunk)) return absl::OkStatus();
    }
    if (!chunk.lines.empty()) HandOver(&chunk);
    return absl::OkStatus();
  }

  bool HandOver(Chunk* chunk) {
    std::swap(chunk->text, *lines_.buffer());
    if (!handover_.Put(chunk)) return false;
    std::swap(chunk->text, *lines_.buffer());
    return true;
  }

  OrderedEvents events_;
  text::EventText lines_;
  absl::Status status_;
  Handover handover_;
  // The taker's.
  Chunk chunk_;
  size_t next_ = 0;   // line
  size_t begin_ = 0;  // of it, in the text
  std::jthread thread_;
};

absl::StatusOr<LinesWritten> WriteAlone(const OpenedInputs& inputs, const LineOptions& options,
                                        const WriteLines& write) {
  LinesWritten written;
  OrderedEvents events(inputs, options.shown, options.names);
  SYNCLINE_RETURN_IF_ERROR(events.Open());
  text::EventText lines(options.style, options.ids);
  for (;;) {
    SYNCLINE_ASSIGN_OR_RETURN(const text::EventView* event, events.Next());
    if (event == nullptr) break;
    AppendLine(*event, &events, &lines);
    ++written.events;
    if (lines.buffer()->size() < kWrittenBytes) continue;
    SYNCLINE_ASSIGN_OR_RETURN(written.to_the_end, write(lines.buffer()));
    if (!written.to_the_end) return written;
  }
  written.is_complete = events.IsComplete();
  written.undecided = events.undecided();
  SYNCLINE_RETURN_IF_ERROR(write(lines.buffer()).status());
  return written;
}

// The next line of all is the earliest, of the first share where times are equal.
absl::StatusOr<LinesWritten> WriteInOrder(std::vector<std::unique_ptr<Producer>>& producers,
                                          const WriteLines& write) {
  LinesWritten written;
  text::TextBuffer out;
  std::vector<Producer*> heads;  // in the order of their shares
  for (const auto& producer : producers) {
    SYNCLINE_ASSIGN_OR_RETURN(const bool any, producer->Find());
    if (any) heads.push_back(producer.get());
  }
  while (!heads.empty()) {
    size_t first = 0;
    size_t second = heads.size();  // the first one behind it, and whether it comes after `first`
    for (size_t i = 1; i < heads.size(); ++i) {
      if (heads[i]->time_ns() < heads[first]->time_ns()) {
        second = std::exchange(first, i);
      } else if (second == heads.size() || heads[i]->time_ns() < heads[second]->time_ns()) {
        second = i;
      }
    }
    const int64_t until_ns =
        second == heads.size() ? std::numeric_limits<int64_t>::max() : heads[second]->time_ns();
    written.events += heads[first]->TakeUntil(until_ns, first < second, &out);
    SYNCLINE_ASSIGN_OR_RETURN(const bool more, heads[first]->Find());
    if (!more) heads.erase(heads.begin() + static_cast<ptrdiff_t>(first));
    if (out.size() < kWrittenBytes) continue;
    SYNCLINE_ASSIGN_OR_RETURN(written.to_the_end, write(&out));
    if (!written.to_the_end) return written;
  }
  for (const auto& producer : producers) {
    written.is_complete = written.is_complete && producer->events().IsComplete();
    written.undecided += producer->events().undecided();
  }
  SYNCLINE_RETURN_IF_ERROR(write(&out).status());
  return written;
}

}  // namespace

absl::StatusOr<LinesWritten> WriteEventLines(const OpenedInputs& inputs, const LineOptions& options,
                                             const WriteLines& write) {
  const std::vector<StreamShare> shares = ShareStreams(inputs, options.threads);
  if (shares.size() == 1) return WriteAlone(inputs, options, write);
  std::vector<std::unique_ptr<Producer>> producers;
  for (const StreamShare& share : shares) {
    producers.push_back(std::make_unique<Producer>(inputs, options, shares.size()));
    SYNCLINE_RETURN_IF_ERROR(producers.back()->Open(share));
  }
  for (const auto& producer : producers) producer->Start();
  return WriteInOrder(producers, write);
}

}  // namespace syncline::merge
