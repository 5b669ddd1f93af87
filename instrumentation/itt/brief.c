// SPDX-License-Identifier: Apache-2.0
/* Operators inside of others that a recording leaves out because they are brief (record --detail).
 *
 * PyTorch marks each of its operators, and oneDNN its primitives: hundreds in a step, most of them
 * inside of another and of microseconds. What one takes is only known when it has ended, and events
 * are not written late; so it is left out until four of its calls were timed, and more than half of
 * those took the least time: not the mean, a call may have been interrupted. From then on its calls
 * are recorded. Half of what is learned counts in the next recording. Never left out are operators
 * that lie in no other operator, what PyTorch calls by such names but contains operators
 * (analysis/why/task_names.cc knows the same ones), and tasks in other domains. */
#define _GNU_SOURCE
#include <string.h>

#include "instrumentation/itt/internal.h"

#define CALLS_LEAST 4u
#define CALLS_MOST 64u /* then the older half is forgotten */
#define NAMES 65536u   /* later names are never left out */

enum kind { UNKNOWN, ALWAYS, OPERATOR, PRIMITIVE };

/* Of a name in a domain: oneDNN has the same names for making a primitive and executing
 * it, in two domains. More than two are not told apart, and never left out. 32 bytes. */
#define DOMAINS 2u
struct brief {
  const struct itt_domain* domain; /* NULL: free */
  uint32_t calls;                  /* that were left out */
  uint32_t long_calls;             /* of them */
  uint32_t session;                /* the last recording that left it out, or has it */
  uint32_t kept;                   /* the recording that has it; 0: none */
  uint32_t kind;
};
static struct brief* briefs; /* DOMAINS for each name, by its id */

void itt_brief_start(void) { briefs = syncline_reserve((size_t)NAMES * DOMAINS * sizeof *briefs); }

/* Again where another thread has begun the next recording meanwhile. */
void itt_brief_begins(void) {
  uint32_t us;
  do {
    us = __atomic_load_n(&syncline_operators_least_us, __ATOMIC_ACQUIRE);
    const uint64_t ticks = us && briefs ? syncline_cost_ticks_in((uint64_t)us * 1000) : 0;
    __atomic_store_n(&itt_shared.operators_least, ticks, __ATOMIC_SEQ_CST);
  } while (__atomic_load_n(&syncline_operators_least_us, __ATOMIC_SEQ_CST) != us);
}

static int BeginsWith(const char* text, const char* begin) {
  return strncmp(text, begin, strlen(begin)) == 0;
}

/* "ConvolutionBackward0" */
static int IsDerivative(const char* text) {
  static const char kBackward[] = "Backward";
  size_t bytes = strlen(text);
  while (bytes && text[bytes - 1] >= '0' && text[bytes - 1] <= '9') bytes--;
  const size_t end = sizeof kBackward - 1;
  return bytes > end && memcmp(text + bytes - end, kBackward, end) == 0 && !strchr(text, ':');
}

static enum kind KindOf(const char* domain, const char* text) {
  static const char* const kContainers[] = {
      "DistributedDataParallel", "FSDP::",    "_c10d_functional", "c10d::", "Optimizer",
      "autograd::engine",        "enumerate", "torch.distributed"};
  if (BeginsWith(domain, "dnnl") || BeginsWith(domain, "oneDNN")) return PRIMITIVE;
  if (strcmp(domain, "PyTorch") != 0) return ALWAYS;
  for (size_t i = 0; i < sizeof kContainers / sizeof *kContainers; i++) {
    if (BeginsWith(text, kContainers[i])) return ALWAYS;
  }
  return strstr(text, "::") || IsDerivative(text) ? OPERATOR : ALWAYS;
}

/* NULL: there is no room for it. */
static __attribute__((noinline)) struct brief* NewBrief(struct brief* of_name,
                                                        const struct itt_domain* domain,
                                                        const struct itt_string_handle* name) {
  for (uint32_t i = 0; i < DOMAINS; i++) {
    const struct itt_domain* expected = NULL;
    if (!__atomic_compare_exchange_n(&of_name[i].domain, &expected, domain, 0, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE) &&
        expected != domain) {
      continue;
    }
    const enum kind kind = domain->name && name->text ? KindOf(domain->name, name->text) : ALWAYS;
    __atomic_store_n(&of_name[i].kind, kind, __ATOMIC_RELEASE);
    return &of_name[i];
  }
  return NULL;
}

/* NULL: a task of that name is never left out, as far as is known. */
static struct brief* BriefOf(struct itt_thread* thread, const struct itt_domain* domain,
                             const struct itt_string_handle* name) {
  const uint32_t id = StringId(thread, name);
  if (id == 0 || id >= NAMES || !domain) return NULL;
  struct brief* of_name = &briefs[(size_t)id * DOMAINS];
  for (uint32_t i = 0; i < DOMAINS; i++) {
    if (__atomic_load_n(&of_name[i].domain, __ATOMIC_ACQUIRE) != domain) continue;
    return __atomic_load_n(&of_name[i].kind, __ATOMIC_ACQUIRE) == UNKNOWN
               ? NewBrief(of_name, domain, name)
               : &of_name[i];
  }
  return NewBrief(of_name, domain, name);
}

/* What lies in this task lies in an operator of this recording. */
static int IsInOperator(const struct itt_thread* thread, const struct itt_task* task) {
  if (task < thread->tasks) return 0;
  if (task->session == (thread->common->session | ITT_LEFT_OUT)) return 1;
  return task->session == thread->common->session && !task->has_id && (task->domain & 1) == 0 &&
         task->id.d2 == OPERATOR;
}

/* Of two threads' calls at once one may be forgotten: what counts is the proportion. */
static void Add(uint32_t* sum, uint32_t more) {
  __atomic_store_n(sum, __atomic_load_n(sum, __ATOMIC_RELAXED) + more, __ATOMIC_RELAXED);
}
static void Halve(struct brief* brief) {
  const uint32_t calls = __atomic_load_n(&brief->calls, __ATOMIC_RELAXED);
  const uint32_t long_calls = __atomic_load_n(&brief->long_calls, __ATOMIC_RELAXED);
  __atomic_store_n(&brief->calls, calls / 2, __ATOMIC_RELAXED);
  __atomic_store_n(&brief->long_calls, long_calls / 2, __ATOMIC_RELAXED);
}

/* The task is new. What is found out about it is kept in the place of its id, which it has not. */
int itt_leaves_out(struct itt_thread* thread, struct itt_task* task) {
  const struct itt_domain* domain = (const struct itt_domain*)task->domain;
  struct brief* brief = BriefOf(thread, domain, task->name);
  const uint32_t kind = brief ? __atomic_load_n(&brief->kind, __ATOMIC_ACQUIRE) : ALWAYS;
  task->has_id = 0;
  task->id.d2 = kind;
  if (kind == ALWAYS || !IsInOperator(thread, task - 1)) return 0;
  const uint32_t session = (uint32_t)thread->common->session;
  if (__atomic_load_n(&brief->kept, __ATOMIC_RELAXED) == session) return 0;
  if (__atomic_exchange_n(&brief->session, session, __ATOMIC_RELAXED) != session) Halve(brief);
  const uint32_t calls = __atomic_load_n(&brief->calls, __ATOMIC_RELAXED);
  if (calls >= CALLS_LEAST && 2 * __atomic_load_n(&brief->long_calls, __ATOMIC_RELAXED) > calls) {
    __atomic_store_n(&brief->kept, session, __ATOMIC_RELAXED);
    return 0;
  }
  task->session = session | ITT_LEFT_OUT;
  task->id.d3 = (uintptr_t)brief;
  task->id.d1 = syncline_cost_ticks();
  return 1;
}

void itt_left_out_ends(const struct itt_task* task) {
  struct brief* brief = (struct brief*)(uintptr_t)task->id.d3;
  const uint64_t ticks = syncline_cost_ticks() - task->id.d1;
  const uint64_t least = __atomic_load_n(&itt_shared.operators_least, __ATOMIC_RELAXED);
  if ((int64_t)ticks >= (int64_t)least) Add(&brief->long_calls, 1);
  Add(&brief->calls, 1);
  if (__atomic_load_n(&brief->calls, __ATOMIC_RELAXED) >= CALLS_MOST) Halve(brief);
}
