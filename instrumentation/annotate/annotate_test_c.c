// SPDX-License-Identifier: Apache-2.0
// A C file of a program whose other files are C++: both share one static part.
#include <syncline/annotate.h>

void AnnotateInC(void);
void AnnotateInC(void) {
  static struct syncline_counter queue = SYNCLINE_COUNTER("queue");
  syncline_pause();
  syncline_resume();
  syncline_step_begin(17);
  syncline_phase_begin("forward");
  syncline_region_begin("read", 3);
  syncline_phase_end();
  syncline_counter_set(&queue, 1.5);
  syncline_counter_set(&queue, 2.5);
  syncline_step_end();
  syncline_region_end("read", 3);
}
