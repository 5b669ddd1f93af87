// SPDX-License-Identifier: Apache-2.0
/* libsyncline_torch.so: where the threads that train stand in Python (syncline_places.py says what
 * is written).
 *
 * All of it is C, and none of Python's bytecode runs here: between the first frame and the last no
 * other thread of Python's does, so no frame returns, and what it holds does not die in this
 * thread. Python's collector is off meanwhile, which would call finalizers of the program's here:
 * since Python 3.11 a frame object is made for who looks at it, and that may collect.
 *
 * A thread that waits, or computes in C without the interpreter's lock, is found at once. One that
 * runs Python, or C code that keeps the lock, gives it up when this thread has waited for it for
 * the switch interval (5 ms), and is found right there. If the lock was given away earlier, or
 * later (whoever takes it anew meanwhile has the interval to himself), where the threads were when
 * this one asked is not known. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "instrumentation/block/block.h"
#include "instrumentation/block/monotonic.h"
#include "instrumentation/torch/watch.h"

#define FRAMES_MAX 200
#define OWN_MAX 4      /* frames of the program's own in a text */
#define THREADS_MAX 64 /* that train in a process */
#define TEXTS_MAX 1000 /* a text that was said once stays in the process's tables */
#define TEXT_BYTES 1024
#define FUNCTION_BYTES 80
#define FILE_BYTES 60
#define AT_ONCE_NS 50000u       /* to get a lock that nobody keeps: measured */
#define SWITCH_LATE_NS 1000000u /* for the thread that keeps it to come to its next bytecode */

struct Thread {
  void* state; /* PyThreadState */
  uint64_t id; /* of the state, which may be another one at the same place */
  int32_t tid; /* as the kernel numbers it */
};

/* Guarded by the interpreter's lock, but for `count`. */
static struct {
  const struct syncline_torch_look_python* python;
  const char* const* libraries; /* folders, which end with a slash; ends with NULL */
  uint64_t interval_ns;
  struct Thread threads[THREADS_MAX];
  uint32_t count;
  uint64_t texts[2 * TEXTS_MAX]; /* hashes; 0: free */
  uint32_t texts_count;
} look = {.interval_ns = 5000000};

static int StopCollector(int (*disable)(void), int (*enable)(void)) {
  return disable && enable && disable();
}

SYNCLINE_EXPORT void* syncline_torch_frames(void* current_frames, syncline_torch_call call,
                                            int (*disable)(void), int (*enable)(void)) {
  const int collects = StopCollector(disable, enable);
  void* const frames = call(current_frames, NULL);
  if (collects) enable();
  return frames;
}

/* ---- texts */

/* Without a prefix that does not fit, and not in the middle of a character. */
static const char* Last(const char* text, size_t bytes) {
  const size_t length = strlen(text);
  if (length <= bytes) return text;
  text += length - bytes;
  while ((*text & 0xC0) == 0x80) text++;
  return text;
}

static const char* InPackages(const char* path) {
  static const char* const folders[] = {"/site-packages/", "/dist-packages/"};
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
    const char* const found = strstr(path, folders[i]);
    if (found) return found + strlen(folders[i]);
  }
  return NULL;
}

/* No library's, and no code that a library has made. */
static int IsOwn(const char* path) {
  if (*path == '<')
    return !strncmp(path, "<string>", 8) || !strncmp(path, "<stdin>", 7) ||
           !strncmp(path, "<ipython-input", 14);
  for (const char* const* folder = look.libraries; folder && *folder; folder++) {
    if (!strncmp(path, *folder, strlen(*folder))) return 0;
  }
  return !InPackages(path);
}

/* The last two parts of a path; of a package's what is behind the folder of all packages. */
static const char* FileText(const char* path) {
  const char* text = InPackages(path);
  if (!text) {
    text = path;
    int slashes = 0;
    for (const char* at = path + strlen(path); at > path; at--) {
      if (at[-1] == '/' && ++slashes == 2) {
        text = at;
        break;
      }
    }
  }
  return Last(text, FILE_BYTES);
}

struct Text {
  char bytes[TEXT_BYTES];
  size_t length;
};

static void Append(struct Text* text, const char* before, const char* function, const char* file,
                   int line) {
  const size_t left = sizeof text->bytes - text->length;
  const int wanted = snprintf(text->bytes + text->length, left, "%s%s (%s:%d)", before,
                              Last(function, FUNCTION_BYTES), FileText(file), line);
  if (wanted > 0 && (size_t)wanted < left) {
    text->length += (size_t)wanted;
  } else {
    text->bytes[text->length] = '\0';
  }
}

/* An attribute that is a text, and its object, which holds it; NULL: it has none. */
static const char* TextOf(void* object, const char* name, void** holder) {
  const char* text = NULL;
  *holder = look.python->attribute(object, name);
  if (*holder) text = look.python->as_utf8(*holder, NULL);
  if (text) return text;
  look.python->clear();
  if (*holder) look.python->release(*holder);
  *holder = NULL;
  return NULL;
}

/* What is said of one frame: appended where the program's own code is (1), else kept in `inner`
 * if it is the innermost. */
static int AppendFrame(void* code, int line, int is_inner, const char* before, struct Text* text,
                       struct Text* inner) {
  void* file_holder;
  void* name_holder;
  int is_own = 0;
  const char* const file = TextOf(code, "co_filename", &file_holder);
  if (!file) return 0;
  is_own = IsOwn(file);
  if (is_own || is_inner) {
    const char* name = TextOf(code, "co_qualname", &name_holder); /* from Python 3.11 on */
    if (!name) name = TextOf(code, "co_name", &name_holder);
    if (name) Append(is_own ? text : inner, is_own ? before : " > ", name, file, line);
    is_own = is_own && name;
    if (name_holder) look.python->release(name_holder);
  }
  look.python->release(file_holder);
  return is_own;
}

/* Behind what `text` holds; 0: the thread runs no Python. */
static int AppendPlace(void* state, struct Text* text) {
  struct Text inner = {.length = 0};
  void* seen[OWN_MAX]; /* code: what calls itself is there once */
  int own = 0;
  void* frame = look.python->frame(state);
  if (!frame) return 0;
  for (int i = 0; frame && i < FRAMES_MAX && own < OWN_MAX; i++) {
    void* const code = look.python->code(frame);
    int is_new = 1;
    for (int k = 0; k < own; k++) is_new = is_new && seen[k] != code;
    if (is_new &&
        AppendFrame(code, look.python->line(frame), i == 0, own ? " < " : "", text, &inner)) {
      seen[own++] = code;
    }
    look.python->release(code); /* its frame holds it */
    void* const caller = look.python->caller(frame);
    look.python->release(frame); /* it lives on: it has yet to return */
    frame = caller;
  }
  if (frame) look.python->release(frame);
  if (!own) {
    strcpy(text->bytes + text->length, "-");
    text->length++;
  }
  if (inner.length > 0 && text->length + inner.length < sizeof text->bytes) {
    memcpy(text->bytes + text->length, inner.bytes, inner.length + 1);
    text->length += inner.length;
  }
  return 1;
}

/* Whether the text may be said: it was, or there is room. */
static int MayBeSaid(const char* text) {
  uint64_t hash = 14695981039346656037u; /* FNV-1a */
  for (; *text; text++) hash = (hash ^ (unsigned char)*text) * 1099511628211u;
  hash += !hash;
  const size_t size = sizeof look.texts / sizeof *look.texts;
  size_t at = hash % size;
  for (; look.texts[at]; at = (at + 1) % size) {
    if (look.texts[at] == hash) return 1;
  }
  if (look.texts_count >= TEXTS_MAX) return 0;
  look.texts[at] = hash;
  look.texts_count++;
  return 1;
}

/* ---- looking */

SYNCLINE_EXPORT void syncline_torch_look_start(const struct syncline_torch_look_python* python,
                                               const char* const* libraries) {
  look.libraries = libraries;
  look.python = python;
}

SYNCLINE_EXPORT void syncline_torch_look_interval(uint64_t ns) { look.interval_ns = ns; }

SYNCLINE_EXPORT void syncline_torch_look_here(int on) {
  if (!look.python) return;
  void* const state = look.python->current();
  uint32_t at = 0;
  while (at < look.count && look.threads[at].state != state) at++;
  if (!on) {
    if (at == look.count) return;
    look.threads[at] = look.threads[look.count - 1];
    __atomic_store_n(&look.count, look.count - 1, __ATOMIC_RELEASE);
    return;
  }
  if (at == THREADS_MAX) return;
  const struct Thread thread = {state, look.python->id(state), (int32_t)syscall(SYS_gettid)};
  look.threads[at] = thread;
  if (at == look.count) __atomic_store_n(&look.count, at + 1, __ATOMIC_RELEASE);
}

SYNCLINE_EXPORT void syncline_torch_look_forked(void) { look.count = 0; }

static void Tell(const struct Thread* thread, int is_known) {
  struct Text text;
  const int head = snprintf(text.bytes, sizeof text.bytes, "python %d: ", (int)thread->tid);
  text.length = (size_t)head;
  if (!is_known) {
    strcpy(text.bytes + head, "keeps the lock");
  } else if (!AppendPlace(thread->state, &text)) {
    return;
  } else if (!MayBeSaid(text.bytes)) {
    strcpy(text.bytes + head, "other places");
  }
  syncline_torch_mark(text.bytes);
}

void syncline_torch_look(void) {
  if (!look.python || __atomic_load_n(&look.count, __ATOMIC_ACQUIRE) == 0) return;
  const struct syncline_torch_look_python* const python = look.python;
  const uint64_t asked_ns = syncline_monotonic_ns();
  const int lock = python->ensure();
  const uint64_t begin_ns = syncline_monotonic_ns();
  const uint64_t waited_ns = begin_ns - asked_ns;
  const int is_known = waited_ns < AT_ONCE_NS || (waited_ns >= look.interval_ns &&
                                                  waited_ns < look.interval_ns + SWITCH_LATE_NS);
  const int collects = StopCollector(python->disable, python->enable);
  for (void* state = python->threads(python->interpreter()); state; state = python->next(state)) {
    for (uint32_t i = 0; i < look.count; i++) {
      if (look.threads[i].state == state && look.threads[i].id == python->id(state)) {
        Tell(&look.threads[i], is_known);
      }
    }
  }
  if (collects) python->enable();
  syncline_torch_spent(syncline_monotonic_ns() - begin_ns);
  python->give_back(lock);
}

SYNCLINE_EXPORT int syncline_torch_look_text(char* bytes) {
  if (!look.python) return 0;
  struct Text text = {.length = 0};
  const int collects = StopCollector(look.python->disable, look.python->enable);
  const int found = AppendPlace(look.python->current(), &text);
  if (collects) look.python->enable();
  if (found) memcpy(bytes, text.bytes, text.length + 1);
  return found;
}
