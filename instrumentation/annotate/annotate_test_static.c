// SPDX-License-Identifier: Apache-2.0
// A statically linked program: there is no C library that a collector could share with it.
#include <syncline/annotate.h>

int main(void) {
  syncline_step_begin(1);
  syncline_step_end();
  return syncline_annotate_1.state == SYNCLINE_OFF ? 0 : 1;
}
