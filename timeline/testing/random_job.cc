// SPDX-License-Identifier: Apache-2.0
#include "timeline/testing/random_job.h"

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace syncline::timeline::testing {
namespace {

constexpr int kStreams = 3;
constexpr int kThreads = 4;    // keys 1 to 4; the last one works at collectives
constexpr int kTaskNames = 6;  // ids 1 to 6
constexpr char kNames[] =
    "name 1 epoch\nname 2 step 1\nname 3 kernel\nname 4 copy\nname 5 domain\nname 6 wait\n"
    "name 10 c10d::allreduce_\nname 11 gloo:all_reduce\nname 12 allreduce\nname 13 0\n"
    "name 14 default_pg\nname 15 0-1\nname 16 send\nname 17 recv\n";

class Node {
 public:
  Node(const RandomJobOptions& options, int rank)
      : options_(options), rank_(rank), random_(2 * options.seed + static_cast<unsigned>(rank)) {}

  std::string Text();

 private:
  struct Event {
    int64_t time_ns;
    int stream;
    std::string text;
  };
  struct Open {
    int name;
    uint64_t id;
  };
  struct Thread {
    int64_t now_ns = 0;
    int stream = 0;
    std::vector<Open> tasks;
    unsigned number = 65500;  // of the next begin or end
  };

  int Dice(int sides) { return std::uniform_int_distribution<int>(0, sides - 1)(random_); }
  // An event of the thread; fields follow its key.
  template <class... Fields>
  void Say(int thread, const char* name, const Fields&... fields) {
    Thread& who = threads_[static_cast<size_t>(thread)];
    who.now_ns += 1 + Dice(40);
    if (Dice(30) == 0) who.stream = Dice(kStreams);
    events_.push_back({who.now_ns, who.stream, absl::StrCat(name, " thread=", thread, fields...)});
  }
  // " number=N"; nothing of the threads of older libraries. Now and then one is missing.
  std::string Number(int thread);
  void Task(int thread);
  void Attached(int thread);
  void Aside(int thread);
  void Step();
  void Lose(std::string* streams);

  RandomJobOptions options_;
  int rank_;
  std::mt19937 random_;
  std::vector<Thread> threads_{kThreads + 1};
  std::vector<Event> events_;
  uint64_t next_id_ = 1;
  uint64_t sequence_ = 0;
  uint64_t position_ = 0;
};

std::string Node::Number(int thread) {
  if (thread % 2 == 0) return "";
  unsigned& number = threads_[static_cast<size_t>(thread)].number;
  if (Dice(100) == 0) ++number;
  return absl::StrCat(" number=", number++ % 65536);
}

// Begins or ends a task: few last for long.
void Node::Task(int thread) {
  std::vector<Open>& tasks = threads_[static_cast<size_t>(thread)].tasks;
  const bool begins = tasks.empty() || (tasks.size() < 5 && Dice(2) == 0);
  if (!begins) {
    const Open task = tasks.back();
    tasks.pop_back();
    Say(thread, "syncline_itt:task_end", " domain=5 name=", task.name, " depth=", tasks.size(),
        Number(thread));
    return;
  }
  const Open task{1 + Dice(kTaskNames), Dice(4) == 0 ? next_id_++ : 0};
  const size_t depth = tasks.size();
  tasks.push_back(task);
  if (task.id != 0) {
    Say(thread, "syncline_itt:task_begin_id", " domain=5 name=", task.name, " depth=", depth,
        Number(thread), " d1=", task.id, " d2=0 d3=0 p1=", task.id / 2, " p2=0 p3=0");
  } else {
    Say(thread, "syncline_itt:task_begin", " domain=5 name=", task.name, " depth=", depth,
        Number(thread));
  }
}

// Something that is said of a task, or beside it.
void Node::Attached(int thread) {
  const std::vector<Open>& tasks = threads_[static_cast<size_t>(thread)].tasks;
  const uint64_t id = tasks.empty() ? next_id_ - 1 : tasks.front().id;
  const std::string ids = absl::StrCat(" d1=", id, " d2=0 d3=0");
  switch (Dice(5)) {
    case 0:
      Say(thread, "syncline_itt:metadata_u64", " domain=5 key=3 depth=", Dice(4), ids, " values=[",
          Dice(9), ",7]");
      break;
    case 1:
      Say(thread, "syncline_itt:metadata_text", " domain=5 key=4 depth=0", ids, " text=\"say ",
          Dice(5), "\"");
      break;
    case 2:
      Say(thread, "syncline_itt:marker", " domain=5 name=2 scope=", 1 + Dice(4), ids);
      break;
    case 3:
      Say(thread, "syncline_itt:relation", " domain=5 kind=2", ids, " e1=1 e2=0 e3=0");
      break;
    default:
      Say(thread, "syncline_itt:counter_u64", " domain=5 name=", 1 + Dice(2), " value=", Dice(99));
      break;
  }
}

// What need not nest, and what the program does to the recording.
void Node::Aside(int thread) {
  const std::string ids = absl::StrCat(" d1=", 1000 + Dice(3), " d2=0 d3=0");
  switch (Dice(9)) {
    case 0:
      Say(thread, "syncline_itt:task_begin_overlapped", " domain=5 name=3", ids, " p1=0 p2=0 p3=0");
      break;
    case 1:
      Say(thread, "syncline_itt:task_end_overlapped", " domain=5 name=3", ids);
      break;
    case 2:
      Say(thread, "syncline_itt:frame_begin", " domain=5", ids);
      break;
    case 3:
      Say(thread, "syncline_itt:frame_end", " domain=5", ids);
      break;
    case 4:
      Say(thread, Dice(2) == 0 ? "syncline_itt:event_start" : "syncline_itt:event_end", " name=6");
      break;
    case 5:
      Say(thread, "syncline_itt:sync", " kind=", 1 + Dice(4), " object=", 70 + Dice(2), " name=0");
      break;
    case 6: {
      const int64_t now_ns = threads_[static_cast<size_t>(thread)].now_ns;
      Say(thread, "syncline_itt:frame_submit", " domain=5", ids, " begin=", now_ns / 2 + 1,
          " end=", now_ns);
      break;
    }
    case 7:
      if (Dice(20) == 0) Say(thread, "syncline:pause");
      break;
    default:
      if (Dice(8) == 0) Say(thread, "syncline:resume");
      break;
  }
}

// Both ranks do the same: an all-reduce, a transfer, a message.
void Node::Step() {
  constexpr int kMain = 1;
  const size_t depth = threads_[kMain].tasks.size();
  if (sequence_ % 5 == 0) {
    Say(kMain, "syncline_torch:group", " group=13 description=14 ranks=15 rank=", rank_,
        " size=2 sequence=", sequence_);
    Say(kMain, "syncline_net:connection",
        " connection=5 sent=0 received=0 retransmits=", sequence_ / 5,
        " rtt_us=9 local_port=10 remote_port=10 local=\"10.0.0.", rank_, "\" remote=\"10.0.0.",
        1 - rank_, "\"");
  }
  Say(kMain, "syncline_torch:collective", " group=13 name=12 sequence=", sequence_, " bytes=64");
  Say(kMain, "syncline_itt:task_begin", " domain=5 name=10 depth=", depth);
  threads_[kThreads].now_ns = threads_[kMain].now_ns;
  Say(kThreads, "syncline_itt:task_begin", " domain=5 name=11 depth=0");
  Say(kMain, "syncline_itt:task_end", " domain=5 name=10 depth=", depth);
  Say(kThreads, "syncline_itt:task_end", " domain=5 name=11 depth=0");
  Say(kMain, "syncline_torch:transfer_begin", " d1=", sequence_, " group=13 name=", 16 + rank_,
      " peer=", 1 - rank_, " tag=0 bytes=8");
  Say(kMain, "syncline_torch:transfer_end", " d1=", sequence_, " peer=-1");
  Say(kMain, rank_ == 0 ? "syncline_net:send" : "syncline_net:receive",
      " connection=5 begin=", position_, " bytes=9 since=", threads_[kMain].now_ns);
  position_ += 9;
  ++sequence_;
}

// The streams, less what is lost of them.
void Node::Lose(std::string* streams) {
  for (int stream = 0; stream < kStreams; ++stream) {
    absl::StrAppend(streams, "stream cpu", stream, "\n");
    int64_t lost_since_ns = 0;
    int lost = 0;
    for (const Event& event : events_) {
      if (event.stream != stream) continue;
      // One loss is of several events.
      const bool loses = lost > 0 ? Dice(3) > 0 : Dice(1000) < options_.lost_per_mille;
      if (loses) {
        if (lost++ == 0) lost_since_ns = event.time_ns;
        continue;
      }
      if (lost > 0 && options_.loss_is_declared) {
        absl::StrAppend(streams, "loss discarded ", lost_since_ns, " ", event.time_ns, " ", lost,
                        "\n");
      }
      lost = 0;
      absl::StrAppend(streams, event.time_ns, " ", event.text, "\n");
    }
  }
}

std::string Node::Text() {
  std::string text =
      absl::StrCat("node ", rank_ == 0 ? "a" : "b", " shift 0\nenv tracer_buffering_scheme uid\n",
                   "env tracer_buffering_id 0\nprocess key=1 uid=0 pid=", 10 + rank_,
                   " pidns=5 ticks=7 rank=", rank_, " command=\"train\"\n", kNames);
  for (int thread = 1; thread <= kThreads; ++thread) {
    absl::StrAppend(&text, "thread ", thread, " ", 10 + thread, " t", thread, "\n");
  }
  events_.push_back({1, 0, "syncline:on generation=1 process=1 pid=+10 pidns=5 start_ticks=7"});
  int64_t step_ns = 100 + 40 * rank_;
  for (;;) {
    // The thread that is furthest behind.
    int thread = 1;
    for (int i = 2; i < kThreads; ++i) {
      if (threads_[static_cast<size_t>(i)].now_ns < threads_[static_cast<size_t>(thread)].now_ns) {
        thread = i;
      }
    }
    const int64_t now_ns = threads_[static_cast<size_t>(thread)].now_ns;
    if (now_ns >= options_.length_ns) break;
    if (thread == 1 && now_ns >= step_ns) {
      Step();
      step_ns += 2000;
    }
    const int what = Dice(20);
    if (what < 14) {
      Task(thread);
    } else if (what < 17) {
      Attached(thread);
    } else if (what < 19) {
      Aside(thread);
    } else {
      threads_[static_cast<size_t>(thread)].now_ns += Dice(20) == 0 ? Dice(20'000) : Dice(500);
    }
  }
  events_.push_back({options_.length_ns + 1000, 0,
                     absl::StrCat("syncline:off generation=1 process=1 events=", events_.size() + 1,
                                  " lost=0 cost_ns=5")});
  std::stable_sort(events_.begin(), events_.end(),
                   [](const Event& a, const Event& b) { return a.time_ns < b.time_ns; });
  Lose(&text);
  return text;
}

}  // namespace

std::string RandomJob(const RandomJobOptions& options) {
  return absl::StrCat("window 0 ", options.length_ns, "\n", Node(options, 0).Text(),
                      Node(options, 1).Text());
}

}  // namespace syncline::timeline::testing
