// SPDX-License-Identifier: Apache-2.0
/* Tasks as PyTorch and oneDNN nest them, for tests of what a recording leaves out. A line of stdin
 * begins STEPS steps; "done" is printed, and another line ends the program. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "instrumentation/tests/static_part.h"

static const struct itt_id none;
static struct static_part part;
static struct itt_domain *torch, *making, *dnnl, *own;

static void Work(long us) {
  struct timespec now, end;
  clock_gettime(CLOCK_MONOTONIC, &end);
  end.tv_nsec += us * 1000;
  end.tv_sec += end.tv_nsec / 1000000000;
  end.tv_nsec %= 1000000000;
  do {
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
}

/* Asks for the handle each time, as PyTorch does. */
static void Begin(struct itt_domain* domain, const char* text) {
  struct itt_string_handle* name = static_part_string(&part, text);
  ITT_CALL(&part, task_begin, (domain, none, none, name));
}
static void End(struct itt_domain* domain) { ITT_CALL(&part, task_end, (domain)); }

static void Task(struct itt_domain* domain, const char* text, long us) {
  Begin(domain, text);
  Work(us);
  End(domain);
}

static void Linear(int step) {
  struct itt_string_handle* key = static_part_string(&part, "shapes");
  Begin(torch, "aten::linear");
  Begin(torch, "aten::addmm");
  Task(making, "matmul", 0);
  Begin(dnnl, "matmul");
  ITT_CALL(&part, metadata_str_add, (dnnl, none, key, "a shape", 7));
  End(dnnl);
  Task(own, "inside", 0);
  Task(torch, "aten::slow", 2000);
  Task(torch, "aten::cold", step < 2 ? 4000 : 0);
  End(torch);
  End(torch);
}

int main(int argc, char** argv) {
  char line[16];
  const int steps = argc > 1 ? atoi(argv[1]) : 1;
  static_part_start(&part);
  if (!static_part_load(&part)) return 1;
  torch = static_part_domain(&part, "PyTorch");
  making = static_part_domain(&part, "dnnl::primitive::create");
  dnnl = static_part_domain(&part, "dnnl::primitive::execute");
  own = static_part_domain(&part, "own");
  for (int recording = 0; recording < 2; recording++) {
    if (!fgets(line, sizeof line, stdin)) return 1;
    for (int i = 0; i < steps; i++) {
      Begin(torch, "Optimizer.step#SGD.step");
      Task(torch, "aten::add_", 0);
      Begin(torch, "autograd::engine::evaluate_function: AddmmBackward0");
      Begin(torch, "AddmmBackward0");
      Task(torch, "aten::mm", 0);
      Begin(torch, "c10d::allreduce_");
      Task(torch, "aten::zero_", 0);
      End(torch);
      End(torch);
      End(torch);
      Linear(i);
      End(torch);
    }
    printf("done\n");
    fflush(stdout);
  }
  return fgets(line, sizeof line, stdin) ? 0 : 1;
}
