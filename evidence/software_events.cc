// SPDX-License-Identifier: Apache-2.0
#include "evidence/software_events.h"

#include "absl/strings/str_cat.h"
#include "evidence/words.h"

namespace syncline::evidence {
namespace {

constexpr size_t kEventsMax = 1 << 23;  // 20,000 a second for 7 minutes
constexpr size_t kOthersMax = 1 << 20;
constexpr uint64_t kCountMax = uint64_t{1} << 40;  // sums fit

uint64_t CountIn(Words* words) {
  const auto count = words->Number<uint64_t>();
  if (count > kCountMax) words->Fail();
  return count;
}

bool TakeEvent(size_t threads, Words* words, SoftwareEvents* events) {
  SoftwareEvent event{words->Index(threads), words->Ns(),
                      static_cast<SoftwareKind>(words->Index(kSoftwareKinds)), CountIn(words),
                      words->Ns()};
  return words->Keep(event, &events->events, kEventsMax);
}

bool TakeTotals(size_t threads, Words* words, SoftwareEvents* events) {
  SoftwareTotals totals{words->Index(threads), CountIn(words), CountIn(words), CountIn(words),
                        CountIn(words)};
  return words->Keep(totals, &events->totals, kOthersMax);
}

}  // namespace

std::optional<bool> TakeSoftwareLine(char kind, size_t threads, Words* words,
                                     SoftwareEvents* events) {
  switch (kind) {
    case 'W':
      events->kernel = words->Index(2) == 1;
      events->known |= words->Whole();
      return words->Whole();
    case 'w':
      return TakeEvent(threads, words, events);
    case 'l': {
      SoftwareLoss loss{words->Index(threads), words->Ns(), CountIn(words)};
      return words->Keep(loss, &events->losses, kOthersMax);
    }
    case 't':
      return TakeTotals(threads, words, events);
    case 'u': {
      const SoftwareWatched watched{words->Ns(), words->Ns(), words->Ns(), words->Ns()};
      if (words->Whole()) events->watched = watched;
      return words->Whole();
    }
    default:
      return std::nullopt;
  }
}

void AppendSoftwareHead(bool kernel, std::string* out) {
  absl::StrAppend(out, "W ", kernel ? 1 : 0, "\n");
}

void Append(const SoftwareEvent& event, std::string* out) {
  absl::StrAppend(out, "w ", event.thread, " ", event.at_ns, " ", static_cast<int>(event.kind));
  absl::StrAppend(out, " ", event.count, " ", event.away_ns, "\n");
}

void Append(const SoftwareLoss& loss, std::string* out) {
  absl::StrAppend(out, "l ", loss.thread, " ", loss.at_ns, " ", loss.count, "\n");
}

void Append(const SoftwareTotals& totals, std::string* out) {
  absl::StrAppend(out, "t ", totals.thread, " ", totals.minor_faults, " ", totals.major_faults);
  absl::StrAppend(out, " ", totals.blocked, " ", totals.preempted, "\n");
}

void Append(const SoftwareWatched& watched, std::string* out) {
  absl::StrAppend(out, "u ", watched.watched_ns, " ", watched.all_ns, " ", watched.cost_ns, " ");
  absl::StrAppend(out, watched.until_ns, "\n");
}

}  // namespace syncline::evidence
