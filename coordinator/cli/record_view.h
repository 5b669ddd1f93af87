// SPDX-License-Identifier: Apache-2.0
// A recording being made, as seen on a terminal: phases, what will be traced, live counters,
// transfers.
#ifndef SYNCLINE_COORDINATOR_CLI_RECORD_VIEW_H_
#define SYNCLINE_COORDINATOR_CLI_RECORD_VIEW_H_

#include <map>
#include <string>

#include "coordinator/cli/context.h"
#include "coordinator/record/observer.h"

namespace syncline::cli {

class RecordView : public record::Observer {
 public:
  // `window_ns` 0: open-ended.
  RecordView(const Context* context, int64_t window_ns)
      : context_(*context), window_ns_(window_ns) {}
  ~RecordView() override { EndBlock(); }

  void OnPhase(std::string_view what) override;
  void OnNode(const std::string& node, const v1::DescribeResponse& description) override;
  void OnNote(std::string_view severity, const std::string& node, std::string_view what,
              std::string_view fix) override;
  void OnCounters(int64_t elapsed_ns, std::span<const record::NodeCounters> counters) override;
  void OnFetched(const std::string& node, uint64_t done_bytes, uint64_t total_bytes) override;

 private:
  // Lines that replace themselves on a terminal.
  void ShowBlock(const std::string& lines);
  void EndBlock();

  const Context& context_;
  const int64_t window_ns_;
  int block_lines_ = 0;
  int64_t fetch_shown_ns_ = 0;
  std::map<std::string, std::pair<uint64_t, uint64_t>> fetched_;
};

}  // namespace syncline::cli

#endif  // SYNCLINE_COORDINATOR_CLI_RECORD_VIEW_H_
