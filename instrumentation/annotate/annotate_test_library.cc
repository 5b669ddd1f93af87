// SPDX-License-Identifier: Apache-2.0
// A library that marks its work, compiled without optimization, so that every function of the
// header that it uses is one of the library's own.
#include <syncline/annotate.h>

extern "C" __attribute__((visibility("default"))) void AnnotateInLibrary();
extern "C" void AnnotateInLibrary() {
  static syncline::Counter loss("loss");
  const syncline::Collected collected;
  const syncline::Step step(1);
  const syncline::Phase phase("forward");
  const syncline::Region region("read");
  loss.Set(0.5);
}
