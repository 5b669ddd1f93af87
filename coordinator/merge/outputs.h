// SPDX-License-Identifier: Apache-2.0
// What a merge can be written as, by the words of --format, and the sinks that write it.
//
// Thread-safety: one thread.
#ifndef SYNCLINE_COORDINATOR_MERGE_OUTPUTS_H_
#define SYNCLINE_COORDINATOR_MERGE_OUTPUTS_H_

#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/merge/inputs.h"
#include "coordinator/merge/merge.h"
#include "export/parquet/table_writer.h"
#include "timeline/cut_sink.h"
#include "timeline/sink.h"

namespace syncline::merge {

struct Format {
  const char* name;  // the word that `merge --format` takes
  const char* help;  // what it is, for people
};
// `--format`, its help, its completion and its refusal read this.
std::span<const Format> Formats();
// Their names, with `separator` between them.
std::string FormatNames(std::string_view separator);
// InvalidArgument, with the words that there are, for one that there is not.
absl::Status CheckFormats(const std::vector<std::string>& formats);

// The name of the node's CSV in vtune/.
std::string VtuneFileName(const OpenedInputs& inputs, size_t node);

// How many threads are meant when `asked` are asked for, at least one; 0: one per processor.
unsigned ThreadsOf(unsigned asked);

bool Wants(const MergeOptions& options, std::string_view format);

// The sinks of the formats that are timelines (ctf is none: write_ctf.h; nor are events:
// write_tables.h).
class Outputs {
 public:
  // Below `staging`; what lies outside of `shown` is cut. `inputs` outlives this.
  static absl::StatusOr<Outputs> Open(const MergeOptions& options, const OpenedInputs& inputs,
                                      timeline::Interval shown,
                                      const std::filesystem::path& staging);

  const std::vector<timeline::TimelineSink*>& sinks() const { return pushed_to_; }
  // What was written, by name in `staging`.
  const std::vector<std::string>& files() const { return files_; }
  // Where Parquet's other tables go; nullptr without Parquet. Its Finish() is the caller's, behind
  // the last table.
  parquet::TableWriter* tables() const { return tables_.get(); }
  // After the timeline was built. ResourceExhausted where the disk is full.
  absl::Status Close();

 private:
  void Add(std::string name, timeline::Interval shown,
           std::unique_ptr<timeline::TimelineSink> sink);
  absl::Status OpenPerfetto(const OpenedInputs& inputs, timeline::Interval shown,
                            const std::filesystem::path& staging);
  absl::Status OpenParquet(const MergeOptions& options, const OpenedInputs& inputs,
                           timeline::Interval shown, const std::filesystem::path& staging);

  std::unique_ptr<std::ofstream> perfetto_file_;
  std::unique_ptr<parquet::TableWriter> tables_;
  std::vector<std::unique_ptr<timeline::TimelineSink>> writers_;
  std::vector<std::unique_ptr<timeline::CutSink>> cuts_;  // beside writers_
  std::vector<timeline::TimelineSink*> pushed_to_;
  std::vector<std::string> files_;
};

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_OUTPUTS_H_
