// SPDX-License-Identifier: Apache-2.0
// The write-ahead journal of one recording: what the agent is about to do to it, on disk before it
// is done, so that an agent that was killed finds its sessions, gates and files again. One JSON
// object a line, appended and synced. A torn last line is what a kill leaves; it is ignored. Not
// thread-safe.
#ifndef SYNCLINE_AGENT_RECORDING_JOURNAL_H_
#define SYNCLINE_AGENT_RECORDING_JOURNAL_H_

#include <filesystem>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/recording/journal.pb.h"

namespace syncline::agent {

// Adds what a line says to the sum of those before: its values replace earlier ones, and of its
// answers (prepared, started, stopped) each replaces an earlier one whole.
void AddToJournal(const journal::Entry& change, journal::Entry* sum);

// One line, with its newline.
absl::StatusOr<std::string> EncodeJournalEntry(const journal::Entry& entry);

// The sum of all whole lines: later values replace earlier ones. DataLoss: a line in the middle
// does not parse; NotFound-like emptiness is an entry without a state.
absl::StatusOr<journal::Entry> DecodeJournal(std::string_view bytes);

class Journal {
 public:
  explicit Journal(std::filesystem::path path) : path_(std::move(path)) {}

  // Durable when it returns OK.
  absl::Status Append(const journal::Entry& entry) const;
  absl::StatusOr<journal::Entry> Read() const;

 private:
  std::filesystem::path path_;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_RECORDING_JOURNAL_H_
