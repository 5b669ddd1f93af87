// SPDX-License-Identifier: Apache-2.0
/* The part of Intel's ITT API that a collector meets: structures and numbers, as its users have
 * them in memory. Names are ours; layouts and values are the API's (version 3, x86-64 and other
 * LP64 systems).
 *
 * Every program or library that uses ITT carries a *static part* with one itt_global of its own. At
 * its first call it opens the library named in INTEL_LIBITTNOTIFY64 and calls
 * `__itt_api_init(global, groups)`; the collector writes its functions into the table that the
 * global points to.
 */
#ifndef SYNCLINE_INSTRUMENTATION_ITT_ITT_ABI_H_
#define SYNCLINE_INSTRUMENTATION_ITT_ITT_ABI_H_

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum itt_group {
  ITT_GROUP_NONE = 0,
  ITT_GROUP_LEGACY = 1 << 0,
  ITT_GROUP_CONTROL = 1 << 1,
  ITT_GROUP_THREAD = 1 << 2,
  ITT_GROUP_MARK = 1 << 3,
  ITT_GROUP_SYNC = 1 << 4,
  ITT_GROUP_FSYNC = 1 << 5,
  ITT_GROUP_JIT = 1 << 6,
  ITT_GROUP_MODEL = 1 << 7,
  ITT_GROUP_COUNTER = 1 << 8,
  ITT_GROUP_FRAME = 1 << 9,
  ITT_GROUP_STITCH = 1 << 10,
  ITT_GROUP_HEAP = 1 << 11,
  ITT_GROUP_STRUCTURE = 1 << 12,
  ITT_GROUP_SUPPRESS = 1 << 13,
  ITT_GROUP_ARRAYS = 1 << 14,
  ITT_GROUP_MODULE = 1 << 15,
  ITT_GROUP_ALL = -1
};

/* Passed by value: 24 bytes, on the stack. All zero: none. */
struct itt_id {
  unsigned long long d1, d2, d3;
};

/* extra1 and extra2 of all objects are VTune's when both of us run: not touched. */
struct itt_domain {
  volatile int flags; /* 0: the callers skip every call for this domain */
  const char* name;
  void* name_wide;
  int extra1;
  void* extra2;
  struct itt_domain* next;
};

struct itt_string_handle {
  const char* text;
  void* text_wide;
  int extra1;
  void* extra2;
  struct itt_string_handle* next;
};

/* What a `__itt_counter` points to when the static part made it. It leaves extra1, extra2
 * uninitialised. */
struct itt_counter_info {
  const char* name;
  void* name_wide;
  const char* domain;
  void* domain_wide;
  int type;
  long index;
  int extra1;
  void* extra2;
  struct itt_counter_info* next;
};

struct itt_histogram {
  const struct itt_domain* domain;
  const char* name;
  void* name_wide;
  int x_type;
  int y_type;
  int extra1;
  void* extra2;
  struct itt_histogram* next;
};

struct itt_clock_info {
  unsigned long long frequency_hz;
  unsigned long long base;
};
typedef void (*itt_clock_info_function)(struct itt_clock_info* info, void* data);

struct itt_clock_domain {
  struct itt_clock_info info;
  itt_clock_info_function function;
  void* function_data;
  int extra1;
  void* extra2;
  struct itt_clock_domain* next;
};

struct itt_track;
struct itt_track_group {
  struct itt_string_handle* name;
  struct itt_track* tracks;
  int type;
  int extra1;
  void* extra2;
  struct itt_track_group* next;
};

struct itt_track {
  struct itt_string_handle* name;
  struct itt_track_group* group;
  int type;
  int extra1;
  void* extra2;
  struct itt_track* next;
};

enum itt_metadata_type {
  ITT_METADATA_UNKNOWN = 0,
  ITT_METADATA_U64,
  ITT_METADATA_S64,
  ITT_METADATA_U32,
  ITT_METADATA_S32,
  ITT_METADATA_U16,
  ITT_METADATA_S16,
  ITT_METADATA_FLOAT,
  ITT_METADATA_DOUBLE
};

/* What is said of a counter. Texts, also as wide ones; from ITT_CONTEXT_TID on numbers of 64 bits.
 */
enum itt_context_type {
  ITT_CONTEXT_UNKNOWN = 0,
  ITT_CONTEXT_NAME,
  ITT_CONTEXT_NAME_WIDE,
  ITT_CONTEXT_DEVICE,
  ITT_CONTEXT_DEVICE_WIDE,
  ITT_CONTEXT_UNITS,
  ITT_CONTEXT_UNITS_WIDE,
  ITT_CONTEXT_PCI_ADDRESS,
  ITT_CONTEXT_PCI_ADDRESS_WIDE,
  ITT_CONTEXT_TID,
  ITT_CONTEXT_MAXIMUM,
  ITT_CONTEXT_IS_BANDWIDTH,
  ITT_CONTEXT_IS_LATENCY,
  ITT_CONTEXT_IS_OCCUPANCY,
  ITT_CONTEXT_IS_OF_THREAD,
  ITT_CONTEXT_IS_ABSOLUTE,
  ITT_CONTEXT_IS_CPU_INSTRUCTIONS,
  ITT_CONTEXT_IS_CPU_CYCLES,
  ITT_CONTEXT_TYPES
};

struct itt_context_metadata {
  int type;
  void* value; /* the text, or where the number is */
};

enum itt_scope {
  ITT_SCOPE_UNKNOWN = 0,
  ITT_SCOPE_GLOBAL,
  ITT_SCOPE_TRACK_GROUP,
  ITT_SCOPE_TRACK,
  ITT_SCOPE_TASK,
  ITT_SCOPE_MARKER
};

enum itt_collection_scope { ITT_COLLECT_HOST = 1, ITT_COLLECT_OFFLOAD = 2 };

#define ITT_TIMESTAMP_NONE (~0ull)

/* One function of the API. `*function` starts as an initialiser; null_function is for collectors
 * that do not want the call (NULL for most). The list ends where name is NULL. */
struct itt_api_info {
  const char* name;
  void** function;
  void* init_function;
  void* null_function;
  int group;
};

struct itt_global {
  unsigned char magic[8];
  unsigned long version_major;
  unsigned long version_minor;
  unsigned long version_build; /* the same for years: says nothing about what follows */
  volatile long api_initialized;
  volatile long mutex_initialized;
  volatile long atomic_counter;
  pthread_mutex_t mutex; /* recursive; held while the collector is initialised */
  void* library;
  void* error_handler;
  const char** library_path;
  struct itt_api_info* api_list;
  struct itt_global* next;
  void* threads;
  struct itt_domain* domains;
  struct itt_string_handle* strings;
  int state;
  struct itt_counter_info* counters;
  unsigned int processor_trace_events;
  struct itt_histogram* histograms; /* only when "__itt_histogram_create" is in api_list */
};

#define ITT_MAGIC "\xED\xAB\xAB\xEC\x0D\xEE\xDA\x30"

#ifdef __cplusplus
}
#endif

#endif /* SYNCLINE_INSTRUMENTATION_ITT_ITT_ABI_H_ */
