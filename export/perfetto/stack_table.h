// SPDX-License-Identifier: Apache-2.0
// The stacks of code samples that one packet sequence has interned: functions, libraries, source
// files, frames and stacks, each written once.
//
// Thread-safety: one thread.
#ifndef SYNCLINE_EXPORT_PERFETTO_STACK_TABLE_H_
#define SYNCLINE_EXPORT_PERFETTO_STACK_TABLE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "export/perfetto/packet_buffer.h"
#include "export/perfetto/proto_writer.h"
#include "timeline/sink.h"

namespace syncline::perfetto {

class StackTable {
 public:
  // The number of `stack` (of CodeSample); what is new of it is appended to `interned`, an
  // InternedData. `texts`: by TextId.
  uint64_t Intern(const std::vector<timeline::CodeFrame>& stack,
                  const std::vector<std::string>& texts, ProtoWriter* interned);

 private:
  uint64_t InternFrame(const timeline::CodeFrame& frame, const std::vector<std::string>& texts,
                       ProtoWriter* interned);

  SeenTexts functions_;
  SeenTexts files_;
  SeenTexts libraries_;
  std::map<timeline::CodeFrame, uint64_t> frames_;
  std::map<std::vector<timeline::CodeFrame>, uint64_t> stacks_;
};

}  // namespace syncline::perfetto

#endif  // SYNCLINE_EXPORT_PERFETTO_STACK_TABLE_H_
