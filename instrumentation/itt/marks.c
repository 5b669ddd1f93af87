// SPDX-License-Identifier: Apache-2.0
/* Frames, markers, user events, synchronisation objects; names of threads; pause and resume. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "instrumentation/itt/internal.h"

static const struct itt_id none;

/* ---- frames
 * ---------------------------------------------------------------------------------------- */

typedef int (*FrameEvent)(const struct syncline_itt_where* at, const struct itt_id* id);

static void Frame(FrameEvent event, const struct itt_domain* domain, const struct itt_id* id) {
  struct itt_thread* thread = ItThread();
  uint64_t cost;
  if (!thread || Quiet(thread) || Enter(thread, &cost) != ITT_RECORD) return;
  struct syncline_itt_where at = At(thread);
  at.domain = Carried(DomainId(thread, domain));
  Leave(thread, cost, event(&at, id ? id : &none));
}

static void FrameBeginV3(const struct itt_domain* domain, struct itt_id* id) {
  Frame(itt_shared.emit->frame_begin, domain, id);
}
static void FrameEndV3(const struct itt_domain* domain, struct itt_id* id) {
  Frame(itt_shared.emit->frame_end, domain, id);
}

/* The times come from __itt_get_timestamp, which gave out the trace clock. */
static void FrameSubmitV3(const struct itt_domain* domain, struct itt_id* id,
                          unsigned long long begin, unsigned long long end) {
  struct itt_thread* thread = ItThread();
  uint64_t cost;
  if (!thread || Quiet(thread) || Enter(thread, &cost) != ITT_RECORD) return;
  struct syncline_itt_where at = At(thread);
  at.domain = Carried(DomainId(thread, domain));
  if (end == ITT_TIMESTAMP_NONE) end = syncline_clock_ns();
  Leave(thread, cost, itt_shared.emit->frame_submit(&at, id ? id : &none, begin, end));
}

/* An id that the caller holds as a pointer or a number; 0 when it is none of ours. */
static uint32_t HeldName(uint64_t held) {
  return held >= 1 && held <= syncline_name_count() ? (uint32_t)held : 0;
}

/* The old form: what the caller holds is the id of the frame's name. */
static void* FrameCreate(const char* name) {
  return (void*)(uintptr_t)(name ? itt_name(SYNCLINE_NAME_FRAME, name, strlen(name)) : 0);
}

static void OldFrame(FrameEvent event, const void* frame) {
  struct itt_thread* thread = ItThread();
  const uint32_t name = HeldName((uintptr_t)frame);
  uint64_t cost;
  if (!thread || Quiet(thread) || !name || Enter(thread, &cost) != ITT_RECORD) return;
  struct syncline_itt_where at = At(thread);
  at.domain = name;
  syncline_name_announce(thread->common, name);
  Leave(thread, cost, event(&at, &none));
}
static void FrameBegin(void* frame) { OldFrame(itt_shared.emit->frame_begin, frame); }
static void FrameEnd(void* frame) { OldFrame(itt_shared.emit->frame_end, frame); }

/* ---- markers and events
 * ---------------------------------------------------------------------------- */

static void Marker(const struct itt_domain* domain, struct itt_id id,
                   struct itt_string_handle* name, int scope) {
  struct itt_thread* thread = ItThread();
  uint64_t cost;
  if (!thread || Quiet(thread) || Enter(thread, &cost) != ITT_RECORD) return;
  struct syncline_itt_where at = At(thread);
  at.domain = Carried(DomainId(thread, domain));
  at.name = Carried(StringId(thread, name));
  Leave(thread, cost, itt_shared.emit->marker(&at, (uint8_t)scope, &id));
}

static void MarkerEx(const struct itt_domain* domain, struct itt_clock_domain* clock,
                     unsigned long long timestamp, struct itt_id id, struct itt_string_handle* name,
                     int scope) {
  (void)clock, (void)timestamp;
  Marker(domain, id, name, scope);
}

/* Events and the old marks: the number that the caller holds is the id of the name. */
static int EventCreate(const char* name, int bytes) {
  if (!name) return 0;
  return (int)itt_name(SYNCLINE_NAME_EVENT, name,
                       bytes > 0 ? strnlen(name, (size_t)bytes) : strlen(name));
}

static int MarkCreate(const char* name) { return EventCreate(name, 0); }

typedef int (*NamedEvent)(const struct syncline_itt_where* at);

static int Event(NamedEvent event, int held) {
  struct itt_thread* thread = ItThread();
  const uint32_t name = held > 0 ? HeldName((uint64_t)held) : 0;
  uint64_t cost;
  if (!thread || Quiet(thread) || !name || Enter(thread, &cost) != ITT_RECORD) return 0;
  struct syncline_itt_where at = At(thread);
  at.name = name;
  syncline_name_announce(thread->common, name);
  Leave(thread, cost, event(&at));
  return 0;
}
static int EventStart(int event) { return Event(itt_shared.emit->event_start, event); }
static int EventEnd(int event) { return Event(itt_shared.emit->event_end, event); }

static int MarkerOfThread(const struct syncline_itt_where* at) {
  return itt_shared.emit->marker(at, ITT_SCOPE_TRACK, &none);
}
static int MarkerOfProcess(const struct syncline_itt_where* at) {
  return itt_shared.emit->marker(at, ITT_SCOPE_GLOBAL, &none);
}
static int Mark(int mark, const char* parameter) {
  (void)parameter;
  return Event(MarkerOfThread, mark);
}
static int MarkGlobal(int mark, const char* parameter) {
  (void)parameter;
  return Event(MarkerOfProcess, mark);
}

/* ---- synchronisation
 * ------------------------------------------------------------------------------- */

enum { SYNC_PREPARE = 1, SYNC_CANCEL = 2, SYNC_ACQUIRED = 3, SYNC_RELEASING = 4 };

/* Names of objects by address. Addresses come and go by the million: beyond the limit they are
 * nameless. */
static struct side_table sync_names = {NULL, 1u << 18};

static void NameSync(const void* object, const char* text, size_t bytes) {
  const uint32_t name = itt_name(SYNCLINE_NAME_SYNC, text, bytes);
  struct syncline_thread* common = name && object ? itt_occupy() : NULL;
  if (!common) return;
  itt_lock();
  side_put(&sync_names, (uintptr_t)object, name);
  itt_unlock();
  itt_release(common);
}

static void SyncCreate(void* object, const char* type, const char* name, int attribute) {
  (void)attribute;
  char text[512];
  const char* between = type && *type && name && *name ? " " : "";
  int bytes = snprintf(text, sizeof text, "%s%s%s", type ? type : "", between, name ? name : "");
  if (bytes > (int)sizeof text - 1) bytes = sizeof text - 1;
  if (bytes > 0) NameSync(object, text, (size_t)bytes);
}

static void SyncRename(void* object, const char* name) {
  if (name) NameSync(object, name, strlen(name));
}

static void SyncDestroy(void* object) {
  struct side_entry* entry = side_find(&sync_names, (uintptr_t)object);
  if (entry) __atomic_store_n(&entry->value, 0, __ATOMIC_RELAXED);
}

static void Sync(uint8_t kind, const void* object) {
  struct itt_thread* thread = ItThread();
  uint64_t cost;
  if (!thread || Quiet(thread) || Enter(thread, &cost) != ITT_RECORD) return;
  const struct side_entry* entry = side_find(&sync_names, (uintptr_t)object);
  struct syncline_itt_where at = At(thread);
  at.name = entry ? __atomic_load_n(&entry->value, __ATOMIC_RELAXED) : 0;
  syncline_name_announce(thread->common, at.name);
  Leave(thread, cost, itt_shared.emit->sync(&at, kind, (uintptr_t)object));
}
static void SyncPrepare(void* object) { Sync(SYNC_PREPARE, object); }
static void SyncCancel(void* object) { Sync(SYNC_CANCEL, object); }
static void SyncAcquired(void* object) { Sync(SYNC_ACQUIRED, object); }
static void SyncReleasing(void* object) { Sync(SYNC_RELEASING, object); }

/* ---- threads, pause and resume
 * --------------------------------------------------------------------- */

static void ThreadSetName(const char* name) {
  struct itt_thread* thread = ItThread();
  if (!thread || thread->common->busy) return;
  thread->common->busy = 1;
  syncline_thread_rename(thread->common, name);
  thread->common->busy = 0;
}

static int ThrNameSet(const char* name, int bytes) {
  char text[64];
  if (!name) return 0;
  const size_t limit = bytes > 0 && (size_t)bytes < sizeof text ? (size_t)bytes : sizeof text - 1;
  const size_t used = strnlen(name, limit);
  memcpy(text, name, used);
  text[used] = 0;
  ThreadSetName(text);
  return 0;
}

static void ThreadIgnore(void) {
  struct itt_thread* thread = ItThread();
  if (!thread) return;
  thread->common->ignored = 1;
  thread->record_gate = 0;
}

static void SetPaused(int paused) {
  struct itt_thread* thread = ItThread();
  if (!thread || thread->common->busy) return;
  /* Act on the gate first, so that the pause is written into the recording that is on. */
  if (*itt_shared.gate != thread->generation) itt_enter_slow(thread);
  thread->common->busy = 1;
  syncline_set_paused(thread->common, paused);
  thread->common->busy = 0;
}
static void Pause(void) { SetPaused(1); }
static void Resume(void) { SetPaused(0); }
static void PauseScoped(int scope) {
  if (scope & ITT_COLLECT_HOST) SetPaused(1);
}
static void ResumeScoped(int scope) {
  if (scope & ITT_COLLECT_HOST) SetPaused(0);
}

const struct itt_binding itt_mark_bindings[] = {
    {"__itt_frame_create", FrameCreate},
    {"__itt_event_create", EventCreate},
    {"__itt_mark_create", MarkCreate},
    {"__itt_sync_create", SyncCreate},
    {"__itt_frame_begin_v3", FrameBeginV3},
    {"__itt_frame_end_v3", FrameEndV3},
    {"__itt_frame_submit_v3", FrameSubmitV3},
    {"__itt_frame_begin", FrameBegin},
    {"__itt_frame_end", FrameEnd},
    {"__itt_marker", Marker},
    {"__itt_marker_ex", MarkerEx},
    {"__itt_event_start", EventStart},
    {"__itt_event_end", EventEnd},
    {"__itt_mark", Mark},
    {"__itt_mark_global", MarkGlobal},
    {"__itt_sync_set_name", SyncCreate},
    {"__itt_sync_rename", SyncRename},
    {"__itt_sync_destroy", SyncDestroy},
    {"__itt_sync_prepare", SyncPrepare},
    {"__itt_sync_cancel", SyncCancel},
    {"__itt_sync_acquired", SyncAcquired},
    {"__itt_sync_releasing", SyncReleasing},
    {"__itt_notify_sync_prepare", SyncPrepare},
    {"__itt_notify_sync_cancel", SyncCancel},
    {"__itt_notify_sync_acquired", SyncAcquired},
    {"__itt_notify_sync_releasing", SyncReleasing},
    {"__itt_thread_set_name", ThreadSetName},
    {"__itt_thread_ignore", ThreadIgnore},
    {"__itt_thr_name_set", ThrNameSet},
    {"__itt_thr_ignore", ThreadIgnore},
    {"__itt_pause", Pause},
    {"__itt_resume", Resume},
    {"__itt_detach", Pause},
    {"__itt_pause_scoped", PauseScoped},
    {"__itt_resume_scoped", ResumeScoped},
    {NULL, NULL},
};
