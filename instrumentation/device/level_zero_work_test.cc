// SPDX-License-Identifier: Apache-2.0
// What is kept of a program's commands, with a loader and a recorder of the test's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

extern "C" {
#include "instrumentation/block/block.h"
#include "instrumentation/device/level_zero.h"
#include "instrumentation/device/level_zero_done.h"
}

namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint64_t kMask = (1u << 22) - 1;
constexpr uint64_t kTickNs = 50;

struct Event {
  std::atomic<int> alive = 1;
  std::atomic<int> is_set = 0;
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;
};

struct Recorded {
  std::mutex mutex;
  std::vector<std::string> said;          // in order
  std::vector<struct device_work> works;  // without texts
  uint64_t lost = 0;
  uint64_t refused = 0;
  int events = 0;  // that are alive
};
Recorded* recorded;
volatile uint32_t gate_value;
bool compared_wrong;                // every other time, by 3 us
std::function<void(Event*)> asked;  // of an event, with the answer already found

ze_event_handle_t AsEvent(Event* event) { return reinterpret_cast<ze_event_handle_t>(event); }
Event* OfEvent(ze_event_handle_t handle) {
  auto* event = reinterpret_cast<Event*>(handle);
  EXPECT_EQ(event->alive, 1);
  return event;
}
template <typename Handle>
Handle As(uintptr_t number) {
  return reinterpret_cast<Handle>(number << 4);  // NOLINT(performance-no-int-to-ptr)
}

level_zero_calls Loader() {
  level_zero_calls calls = {};
  calls.kernel_name = [](ze_kernel_handle_t, size_t* bytes, char* name) {
    if (name != nullptr) std::memcpy(name, "kernel", 7);
    *bytes = 7;
    return ZE_RESULT_SUCCESS;
  };
  calls.pool_create = [](ze_context_handle_t, const ze_event_pool_desc_t*, uint32_t,
                         ze_device_handle_t*, ze_event_pool_handle_t* pool) {
    *pool = As<ze_event_pool_handle_t>(77);
    return ZE_RESULT_SUCCESS;
  };
  calls.pool_destroy = [](ze_event_pool_handle_t) { return ZE_RESULT_SUCCESS; };
  calls.event_create = [](ze_event_pool_handle_t, const ze_event_desc_t*,
                          ze_event_handle_t* event) {
    *event = AsEvent(new Event);
    ++recorded->events;
    return ZE_RESULT_SUCCESS;
  };
  calls.event_destroy = [](ze_event_handle_t event) {
    delete OfEvent(event);
    --recorded->events;
    return ZE_RESULT_SUCCESS;
  };
  calls.event_reset = [](ze_event_handle_t event) {
    OfEvent(event)->is_set = 0;
    return ZE_RESULT_SUCCESS;
  };
  calls.event_status = [](ze_event_handle_t event) {
    const ze_result_t answer =
        OfEvent(event)->is_set != 0 ? ZE_RESULT_SUCCESS : ZE_RESULT_NOT_READY;
    if (asked) asked(OfEvent(event));
    return answer;
  };
  calls.event_times = [](ze_event_handle_t handle, ze_kernel_timestamp_result_t* times) {
    const Event* event = OfEvent(handle);
    times->global.kernelStart = event->begin_ns / kTickNs & kMask;
    times->global.kernelEnd = event->end_ns / kTickNs & kMask;
    return ZE_RESULT_SUCCESS;
  };
  calls.device_properties = [](ze_device_handle_t, ze_device_properties_t* properties) {
    properties->timerResolution = 1'000'000'000 / kTickNs;
    properties->kernelTimestampValidBits = 22;
    std::strcpy(properties->name, "GPU");
    return ZE_RESULT_SUCCESS;
  };
  calls.device_times = [](ze_device_handle_t, uint64_t* host, uint64_t* ticks) {
    *host = 0;
    static bool late = false;
    late = !late;
    *ticks = syncline_clock_ns() / kTickNs + (compared_wrong && late ? 60 : 0);
    return ZE_RESULT_SUCCESS;
  };
  return calls;
}

}  // namespace

extern "C" {
int device_launch(uint64_t, const char* name) {
  const std::lock_guard lock(recorded->mutex);
  recorded->said.push_back(std::string("asked ") + name);
  return 1;
}
void device_work(const struct device_work* work) {
  const std::lock_guard lock(recorded->mutex);
  recorded->said.push_back(std::string(work->queue) + " did " + work->name);
  recorded->works.push_back(*work);
}
void device_refused(uint64_t) { ++recorded->refused; }
void device_lost(const char*, uint64_t count) { recorded->lost += count; }
void device_spent(uint64_t) {}
}

namespace {

// A list has its own number, the device is one, and so is the context.
class LevelZero : public testing::Test {
 protected:
  LevelZero() {
    recorded = &here_;
    gate_value = 1;
    syncline_gate = &gate_value;
    const level_zero_calls calls = Loader();
    LevelZeroUses(&calls);
    LevelZeroRecords(1);
  }
  ~LevelZero() override {
    LevelZeroContextEnds(context_);
    LevelZeroTell(UINT64_MAX);
    LevelZeroRecords(0);
    EXPECT_EQ(here_.events, 0);
  }
  ze_command_list_handle_t List(bool immediate) {
    static std::atomic<uintptr_t> last = 100;
    auto list = As<ze_command_list_handle_t>(++last);
    LevelZeroListIsMade(list, context_, device_, immediate ? 1 : 0);
    return list;
  }
  // The event that the command signals.
  Event* Append(ze_command_list_handle_t list, Event* own = nullptr, bool well = true,
                const char* name = nullptr) {
    ze_event_handle_t event = AsEvent(own);
    level_zero_command* command =
        LevelZeroAppends(list, SYNCLINE_DEVICE_KERNEL, name,
                         name == nullptr ? As<ze_kernel_handle_t>(5) : nullptr, 0, &event);
    LevelZeroAppended(list, command, well ? 1 : 0);
    return reinterpret_cast<Event*>(event);
  }
  // It is done now.
  static void Finish(Event* event, uint64_t length_ns = 0) {
    event->end_ns = syncline_clock_ns();
    event->begin_ns = event->end_ns - length_ns;
    event->is_set = 1;
  }

  // Also what was done just now. How much is not done.
  static size_t Read() {
    const size_t left = LevelZeroRead();
    const size_t untold = LevelZeroTell(0);
    LevelZeroTell(UINT64_MAX);
    return left - untold;
  }

  Recorded here_;
  ze_context_handle_t context_ = As<ze_context_handle_t>(1);
  ze_device_handle_t device_ = As<ze_device_handle_t>(2);
};

TEST_F(LevelZero, AnEventOfOurOwnSaysWhenAKernelRan) {
  ze_command_list_handle_t list = List(true);
  const uint64_t before_ns = syncline_clock_ns();
  Event* event = Append(list);
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(Read(), 1);
  EXPECT_THAT(here_.said, ElementsAre("asked kernel"));
  Finish(event);
  EXPECT_EQ(Read(), 0);
  ASSERT_EQ(here_.works.size(), 1);
  EXPECT_GE(here_.works[0].end_ns + here_.works[0].bound_ns, before_ns);
  EXPECT_LE(here_.works[0].begin_ns, here_.works[0].end_ns);
  EXPECT_EQ(Append(list), event) << "it is used again";
  EXPECT_EQ(event->is_set, 0);
  LevelZeroListIsEmptied(list, 1);
}

TEST_F(LevelZero, ARefusedCommandIsNoWork) {
  ze_command_list_handle_t list = List(true);
  Append(list, nullptr, false);
  Event own;
  Append(list, &own, false);
  EXPECT_EQ(here_.refused, 2);
  EXPECT_EQ(Read(), 0);
}

TEST_F(LevelZero, WhatTheProgramTakesBackIsReadBefore) {
  ze_command_list_handle_t list = List(true);
  Event done;
  Event early;
  Append(list, &done);
  Append(list, &early);
  Finish(&done);
  LevelZeroEventEnds(AsEvent(&done), 0);
  LevelZeroEventEnds(AsEvent(&early), 1);
  early.alive = 0;
  EXPECT_EQ(Read(), 0);
  EXPECT_EQ(here_.works.size(), 1);
  EXPECT_EQ(here_.lost, 1);
}

TEST_F(LevelZero, AnEventThatEndsBeforeTheCallReturnsIsLetGo) {
  ze_command_list_handle_t list = List(true);
  Event own;
  ze_event_handle_t event = AsEvent(&own);
  level_zero_command* command =
      LevelZeroAppends(list, SYNCLINE_DEVICE_COPY, "copy", nullptr, 8, &event);
  ASSERT_NE(command, nullptr);
  Finish(&own);
  Read();  // it may have been set before
  LevelZeroEventEnds(event, 1);
  own.alive = 0;
  LevelZeroAppended(list, command, 1);
  EXPECT_EQ(Read(), 0);
  EXPECT_EQ(here_.lost, 1);
}

TEST_F(LevelZero, AnEventThatIsUsedAnewTooEarlyIsNotBelievedAgain) {
  ze_command_list_handle_t list = List(true);
  Event own;
  Append(list, &own);
  Append(list, &own);  // before the first is over
  Finish(&own);        // the first, or the second?
  EXPECT_EQ(Read(), 0);
  EXPECT_EQ(here_.lost, 2);
  EXPECT_THAT(here_.works, IsEmpty());
  LevelZeroEventEnds(AsEvent(&own), 1);
  Append(list, &own);  // another one at its address
  Finish(&own);
  EXPECT_EQ(Read(), 0);
  EXPECT_EQ(here_.works.size(), 1);
}

TEST_F(LevelZero, AnEventThatAnotherSignalsIsNotBelieved) {
  ze_command_list_handle_t list = List(true);
  Event own;
  Append(list, &own);
  Finish(&own);
  LevelZeroSignalsToo(AsEvent(&own));  // what it said before is
  EXPECT_EQ(Read(), 0);
  EXPECT_EQ(here_.works.size(), 1);
  Append(list, &own);
  EXPECT_EQ(here_.lost, 1);
}

TEST_F(LevelZero, EachExecutionOfAListIsWorkOfItsOwn) {
  ze_command_list_handle_t list = List(false);
  auto queue = As<ze_command_queue_handle_t>(9);
  LevelZeroQueueIsMade(queue);
  Event* first = Append(list);
  Event own;
  Append(list, &own, true, "fill");
  EXPECT_THAT(here_.said, IsEmpty());
  for (int i = 0; i < 2; ++i) {
    here_.said.clear();
    LevelZeroExecutes(queue, 1, &list);
    EXPECT_EQ(first->is_set, 0) << "ours is reset for it";
    LevelZeroExecuted(1, &list, 1);
    Finish(first);
    Finish(&own);
    LevelZeroEventEnds(AsEvent(&own), 0);
    own.is_set = 0;
    EXPECT_EQ(Read(), 0);
    ASSERT_EQ(here_.said.size(), 4);
    EXPECT_EQ(here_.said[1], "asked fill");
    EXPECT_THAT(here_.said[3], testing::HasSubstr("did fill"));
  }
  LevelZeroExecutes(queue, 1, &list);
  LevelZeroExecuted(1, &list, 0);
  EXPECT_EQ(here_.refused, 2);
  LevelZeroListIsEmptied(list, 1);
  EXPECT_EQ(here_.lost, 0);
}

TEST_F(LevelZero, TheNextExecutionReadsWhatTheOneBeforeDid) {
  ze_command_list_handle_t list = List(false);
  auto queue = As<ze_command_queue_handle_t>(9);
  Event* event = Append(list);
  for (int i = 0; i < 3; ++i) {
    LevelZeroExecutes(queue, 1, &list);
    LevelZeroExecuted(1, &list, 1);
    Finish(event);
  }
  LevelZeroListIsEmptied(list, 1);
  Read();
  EXPECT_EQ(here_.works.size(), 3);
  EXPECT_EQ(here_.lost, 0);
}

TEST_F(LevelZero, AnExecutionThatOvertakesAnotherIsLostWithIt) {
  ze_command_list_handle_t list = List(false);
  auto queue = As<ze_command_queue_handle_t>(9);
  Event* event = Append(list);
  for (int i = 0; i < 2; ++i) {
    LevelZeroExecutes(queue, 1, &list);
    LevelZeroExecuted(1, &list, 1);
  }
  Finish(event);
  EXPECT_EQ(Read(), 0);
  EXPECT_EQ(here_.lost, 2);
  EXPECT_THAT(here_.works, IsEmpty());
  LevelZeroListIsEmptied(list, 0);
  EXPECT_EQ(Append(list), event) << "nothing of it is under way any more";
  LevelZeroExecutes(queue, 1, &list);
  LevelZeroExecuted(1, &list, 1);
  Finish(event);
  EXPECT_EQ(Read(), 0);
  EXPECT_EQ(here_.works.size(), 1);
  LevelZeroListIsEmptied(list, 1);
}

TEST_F(LevelZero, AfterHalfATurnOfTheClockNothingIsKnown) {
  ze_command_list_handle_t list = List(true);
  Event late;
  Append(list, &late);
  Finish(&late);
  const uint64_t begin_ns = syncline_clock_ns();
  while (syncline_clock_ns() < begin_ns + kMask * kTickNs / 2) {
  }
  EXPECT_EQ(Read(), 0);
  EXPECT_EQ(here_.lost, 1);
  EXPECT_THAT(here_.works, IsEmpty());
}

TEST_F(LevelZero, WhatWasPutIntoAListUnrecordedIsLost) {
  LevelZeroRecords(0);
  ze_command_list_handle_t list = List(false);
  EXPECT_EQ(Append(list), nullptr);
  EXPECT_EQ(Append(list, nullptr, false), nullptr);  // refused
  LevelZeroRecords(1);
  auto queue = As<ze_command_queue_handle_t>(9);
  LevelZeroExecutes(queue, 1, &list);
  LevelZeroExecuted(1, &list, 1);
  EXPECT_EQ(here_.lost, 1);
}

TEST_F(LevelZero, EventsOfOtherProcessesAreLeftAlone) {
  auto pool = As<ze_event_pool_handle_t>(30);
  LevelZeroLeavesPool(pool, 1);
  Event shared;
  LevelZeroEventIsMade(pool, AsEvent(&shared));
  ze_command_list_handle_t list = List(true);
  Append(list, &shared);
  shared.alive = 0;  // who asks for it now is found out
  EXPECT_EQ(Read(), 0);
  EXPECT_EQ(here_.lost, 1);
  LevelZeroEventEnds(AsEvent(&shared), 1);
  LevelZeroLeavesPool(pool, 0);
  EXPECT_THAT(here_.said, IsEmpty());
}

TEST_F(LevelZero, TimesOutsideOfTheCallAreLost) {
  ze_command_list_handle_t list = List(true);
  Event stale;
  Finish(&stale);
  stale.begin_ns -= 5'000'000;
  stale.end_ns -= 5'000'000;
  Append(list, &stale);
  EXPECT_EQ(Read(), 0);
  EXPECT_EQ(here_.lost, 1);
  EXPECT_THAT(here_.works, IsEmpty());
}

TEST_F(LevelZero, WorkIsToldInTheDevicesOrder) {
  ze_command_list_handle_t list = List(true);
  std::vector<Event> events(50);
  for (Event& event : events) Append(list, &event);
  const uint64_t begin_ns = syncline_clock_ns();
  while (syncline_clock_ns() < begin_ns + events.size() * 1'000) {
  }
  for (size_t i = 0; i < events.size(); ++i) {
    events[i].begin_ns = begin_ns + i * 1'000;
    events[i].end_ns = events[i].begin_ns + 1'000;
    events[i].is_set = 1;
  }
  EXPECT_EQ(Read(), 0);
  ASSERT_EQ(here_.works.size(), events.size());
  for (size_t i = 1; i < events.size(); ++i) {
    EXPECT_GE(here_.works[i].begin_ns, here_.works[i - 1].end_ns) << i;
  }
}

TEST_F(LevelZero, WhatFollowsDirectlyDoesNotOverlapThoughTheClocksAreComparedAnew) {
  ze_command_list_handle_t list = List(true);
  compared_wrong = true;
  std::vector<Event> events(6);
  for (Event& event : events) Append(list, &event);
  uint64_t at_ns = syncline_clock_ns();
  for (Event& event : events) {
    event.begin_ns = at_ns;
    at_ns += 6'000'000;
    event.end_ns = at_ns;
    while (syncline_clock_ns() < at_ns) {
    }
    event.is_set = 1;
    Read();
  }
  compared_wrong = false;
  ASSERT_EQ(here_.works.size(), events.size());
  for (size_t i = 1; i < events.size(); ++i) {
    EXPECT_GE(here_.works[i].begin_ns, here_.works[i - 1].end_ns) << i;
    EXPECT_LT(here_.works[i].begin_ns, here_.works[i - 1].end_ns + 10'000) << i;
  }
}

TEST_F(LevelZero, WhatEndsDuringAReadIsToldAfterWhatCameBefore) {
  ze_command_list_handle_t list = List(true);
  std::vector<Event> events(2);
  for (Event& event : events) Append(list, &event);
  // The first of the two that is asked still runs then, and is over before the other one is asked.
  std::vector<Event*> order;
  asked = [&](Event* event) {
    if (!order.empty()) return;
    Event* const other = event == &events[0] ? &events[1] : &events[0];
    order = {event, other};
    const uint64_t asked_ns = syncline_clock_ns();
    while (syncline_clock_ns() < asked_ns + 2'000) {  // or it ended before it was appended
    }
    Finish(event);
    Finish(other);
    event->begin_ns = (event->end_ns -= 1'000);
  };
  EXPECT_EQ(LevelZeroRead(), 2);
  EXPECT_THAT(here_.works, IsEmpty());
  asked = nullptr;
  while (LevelZeroRead() > 0) {  // until the clocks' bound is past, too
  }
  ASSERT_EQ(here_.works.size(), 2);
  EXPECT_LT(here_.works[0].begin_ns, here_.works[1].begin_ns);
}

TEST_F(LevelZero, ThreadsDoNotDisturbEachOther) {
  std::atomic<bool> stop = false;
  std::thread reader([&] {
    while (!stop) LevelZeroRead();
  });
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 3; ++thread) {
    threads.emplace_back([this] {
      ze_command_list_handle_t list = List(true);
      for (int i = 0; i < 2'000; ++i) {
        Event own;
        Append(list, &own);
        Finish(&own, 100);
        LevelZeroEventEnds(AsEvent(&own), 1);
        own.alive = 0;
      }
      LevelZeroListIsEmptied(list, 1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  stop = true;
  reader.join();
  EXPECT_EQ(Read(), 0);
  EXPECT_EQ(here_.works.size() + here_.lost, 6'000);
}

}  // namespace
