// SPDX-License-Identifier: Apache-2.0
/* What the hook (syncline_torch.py) calls, through ctypes; and what the files of
 * libsyncline_torch.so share. The interpreter's lock is held in all calls but `stop`. */
#ifndef SYNCLINE_INSTRUMENTATION_TORCH_WATCH_H_
#define SYNCLINE_INSTRUMENTATION_TORCH_WATCH_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Acts on the gate, which is `generation` now (0: nothing is recorded), outside the main thread.
 * Takes the interpreter's lock itself. */
typedef int (*syncline_torch_turn)(uint32_t generation);
/* Py_AddPendingCall, PyObject_CallObject, Py_DecRef, PyErr_ExceptionMatches, PyErr_Clear. */
typedef int (*syncline_torch_add_pending)(int (*call)(void*), void* argument);
typedef void* (*syncline_torch_call)(void* callable, void* arguments);
typedef void (*syncline_torch_release)(void* object);
typedef int (*syncline_torch_matches)(void* exception);
typedef void (*syncline_torch_clear)(void);

/* Makes the control block and the thread. `main_turn`, which lives as long as the process, is
 * called in the main thread, and says what it did by `acted`; an exception that leaves it is raised
 * in the program, but for `too_deep`: that it cannot be called there is no matter of the program's.
 * 0, or -1 when this process cannot be traced. */
int syncline_torch_start(syncline_torch_turn turn, void* main_turn, void* too_deep,
                         syncline_torch_add_pending add_pending, syncline_torch_call call,
                         syncline_torch_release release, syncline_torch_matches matches,
                         syncline_torch_clear clear);
/* Answers the agent's request for stacks; takes the interpreter's lock itself. */
typedef void (*syncline_torch_stacks_turn)(uint32_t number);
/* Before syncline_torch_start: what is called, by the thread, when the agent asks. */
void syncline_torch_stacks(syncline_torch_stacks_turn turn);
/* The main thread has acted on this value of the gate; or (`done` is 0) wants to be asked again. */
void syncline_torch_acted(uint32_t value, int done);
/* The interpreter goes away. Waits for a call of `turn` that is under way: without the
 * interpreter's lock. */
void syncline_torch_stop(void);
/* In a forked child, which has no thread of ours. */
int syncline_torch_again(void);

/* The gate: 0 while nothing is recorded. */
uint32_t syncline_torch_gate(void);

/* ---- where threads stand: look.c. */

/* What `current_frames` (sys._current_frames) returns, or NULL with an exception; without Python's
 * collector meanwhile. CPython 3.11 holds the lock of its list of threads while it makes frame
 * objects, which may collect: a finalizer of the program's that lets another thread run, which
 * then begins or ends, would stop the program for good (CPython's issue 106883). `disable` and
 * `enable`: PyGC_Disable and PyGC_Enable, or NULL before Python 3.10, which has no need of it. */
void* syncline_torch_frames(void* current_frames, syncline_torch_call call, int (*disable)(void),
                            int (*enable)(void));

/* PyGILState_Ensure, PyGILState_Release, PyInterpreterState_Main, PyInterpreterState_ThreadHead,
 * PyThreadState_Next, PyThreadState_Get, PyThreadState_GetID, PyThreadState_GetFrame,
 * PyFrame_GetBack, PyFrame_GetCode, PyFrame_GetLineNumber, PyObject_GetAttrString,
 * PyUnicode_AsUTF8AndSize, Py_DecRef, PyErr_Clear, PyGC_Disable, PyGC_Enable: Python 3.9 has them,
 * but for the last two, which are NULL there. */
struct syncline_torch_look_python {
  int (*ensure)(void);
  void (*give_back)(int lock);
  void* (*interpreter)(void);
  void* (*threads)(void* interpreter);
  void* (*next)(void* state);
  void* (*current)(void);
  uint64_t (*id)(void* state);
  void* (*frame)(void* state);
  void* (*caller)(void* frame);
  void* (*code)(void* frame);
  int (*line)(void* frame);
  void* (*attribute)(void* object, const char* name);
  const char* (*as_utf8)(void* text, intptr_t* bytes);
  syncline_torch_release release;
  syncline_torch_clear clear;
  int (*disable)(void);
  int (*enable)(void);
};
/* Once. Both live as long as the process. `libraries`: folders whose code is not the program's own;
 * each ends with a slash, the list with NULL. */
void syncline_torch_look_start(const struct syncline_torch_look_python* python,
                               const char* const* libraries);
/* Of the program (sys.getswitchinterval), which may change it. */
void syncline_torch_look_interval(uint64_t ns);
/* Whether this thread is looked at. */
void syncline_torch_look_here(int on);
/* In a forked child, whose threads are others. */
void syncline_torch_look_forked(void);
/* Where this thread stands, as a mark says it behind "python TID: ", into 1024 bytes. For tests. 0:
 * it runs no Python. */
int syncline_torch_look_text(char* bytes);
/* Marks where these threads stand. Without the interpreter's lock, which it takes. */
void syncline_torch_look(void);

/* ---- `syncline run --kineto` only: profile.c. */

/* Begins and ends profiles by the gate; how many ms to sleep unless it changes, 0: until then. */
typedef int (*syncline_torch_profile_turn)(uint32_t generation);
int syncline_torch_profile_start(syncline_torch_profile_turn turn);
/* As syncline_torch_stop. */
void syncline_torch_profile_stop(void);
/* Whether a profile runs, which the process must not end with. */
void syncline_torch_profile_runs(int runs);
/* How many events of ours the process has written. */
uint64_t syncline_torch_profile_events(void);
/* In a forked child: it is never profiled. */
void syncline_torch_profile_forked(void);

/* ---- events: docs/event-schema.md. Texts end with NUL. Nothing happens while nothing is recorded.
 */
void syncline_torch_operators(int on);
void syncline_torch_group(const char* group, const char* description, const char* ranks,
                          int32_t rank, uint32_t size, uint64_t sequence);
void syncline_torch_collective(const char* group, const char* name, uint64_t sequence,
                               uint64_t bytes);
/* Of what this thread broadcasts in the group from now on, until it says -1. */
void syncline_torch_root(const char* group, int32_t root);
/* The transfer's id; 0: not recorded. */
uint64_t syncline_torch_transfer_begin(const char* group, const char* name, int32_t peer,
                                       int32_t tag, uint64_t bytes);
/* The program has waited for it, so long. */
void syncline_torch_transfer_end(uint64_t id, int32_t peer, uint64_t waited_ns);
/* The hook itself took so long, measured by itself: part of the process's cost. */
void syncline_torch_spent(uint64_t ns);

/* ---- tasks of the hook's own: tasks.c, and garbage.c from gc_start on. */

/* Before the others; `collector` is the file that INTEL_LIBITTNOTIFY64 names. 0, or -1: there are
 * none. */
int syncline_torch_tasks_start(const char* collector);
/* A task of no length, of the domain "syncline". 1: it is in the recording. */
int syncline_torch_mark(const char* text);
/* This thread waits for a collective or a transfer: a task "Work.wait" of the domain "PyTorch",
 * unless it lies in one. Both do nothing where there are no tasks. */
void syncline_torch_wait_begin(void);
void syncline_torch_wait_end(void);

/* PyUnicode_AsUTF8AndSize, PyErr_Clear, Py_IncRef, PyDict_GetItemString, PyLong_AsLong,
 * PyList_Size, PyList_GetItem, PyList_SetSlice, PyList_Append. */
struct syncline_torch_gc_python {
  const char* (*unicode_as_utf8)(void* text, intptr_t* bytes);
  void (*err_clear)(void);
  void (*inc_ref)(void* object);
  void* (*dict_get_item_string)(void* dict, const char* key);
  long (*long_as_long)(void* number);
  intptr_t (*list_size)(void* list);
  void* (*list_get_item)(void* list, intptr_t at);
  int (*list_set_slice)(void* list, intptr_t begin, intptr_t end, void* items);
  int (*list_append)(void* list, void* item);
};
/* The PyMethodDef of what is put into gc.callbacks, or NULL. `none` is Python's None. */
const void* syncline_torch_gc_start(const struct syncline_torch_gc_python* functions, void* none);
/* Puts it at the end of the list, unless it is there. */
void syncline_torch_gc_put(void* list, void* callback);
/* Takes it out of the list, wherever it is. 0, or -1: not now, a collection is under way. */
int syncline_torch_gc_take(void* list, void* callback);
/* In a forked child. */
void syncline_torch_gc_forked(void);

int syncline_torch_events_start(void);

/* ---- shared by the threads. */

/* A detached thread without signals. 0, or -1. */
int syncline_torch_thread(void* (*body)(void*));
/* Until the gate is no longer `value`, or `limit_ns` have passed (0: no limit). */
void syncline_torch_wait(const volatile uint32_t* gate, uint32_t value, uint64_t limit_ns);

#ifdef __cplusplus
}
#endif

#endif /* SYNCLINE_INSTRUMENTATION_TORCH_WATCH_H_ */
