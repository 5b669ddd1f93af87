// SPDX-License-Identifier: Apache-2.0
// An ITT collector that a program has already, VTune's for instance, beside ours: ours gives it
// every call (instrumentation/itt/tee.h).
#ifndef SYNCLINE_COORDINATOR_CLI_OTHER_COLLECTOR_H_
#define SYNCLINE_COORDINATOR_CLI_OTHER_COLLECTOR_H_

#include <string>

#include "absl/status/status.h"
#include "coordinator/cli/environment.h"

namespace syncline::cli {

// By which programs find a collector, and the name of ours.
inline constexpr char kCollectorVariable[] = "INTEL_LIBITTNOTIFY64";
inline constexpr char kCollectorFile[] = "libsyncline_itt.so";

// Adds to `set` what makes `own` the program's collector, beside one that `current` names, or that
// `also` does (empty: none). A line that says why not, or what is left out; else empty.
std::string PlanCollectors(const Environment& current, const std::string& own,
                           const std::string& also, Environment* set);

// A collector of Syncline, of this installation or another: it is nobody's other one.
bool IsOurs(const std::string& collector);

// The same as lines of a shell script, where the collector is known only when they run.
std::string CollectorLines(const std::string& own, const std::string& also);

// Whether `collector` can be called by ours, tried in a child that is given `limit_ms`.
absl::Status TryCollector(const std::string& collector, int limit_ms = 5000);

// Empties `also`, what --also-collector names, when that cannot be called: the one of the
// environment has its place. A line that says so; else empty.
std::string DropUnusableOption(std::string* also);
// Leaves the collector of the environment in its place, out of the plan `set`, when it cannot be
// called. A line that says what follows from that; else empty.
std::string DropUnusableCollector(Environment* set);

}  // namespace syncline::cli

#endif  // SYNCLINE_COORDINATOR_CLI_OTHER_COLLECTOR_H_
