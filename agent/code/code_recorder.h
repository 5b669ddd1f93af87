// SPDX-License-Identifier: Apache-2.0
// The code samples of a recording (CodeSampler) as a source of evidence: a thread that empties the
// rings while the window lasts, finds out what the addresses are called behind its end, and writes
// evidence/code.txt. A recording never fails for it. The samples are on the disk as they come: of a
// killed agent they stay, without names.
//
// Thread-safe.
#ifndef SYNCLINE_AGENT_CODE_CODE_RECORDER_H_
#define SYNCLINE_AGENT_CODE_CODE_RECORDER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "agent/code/code_sampler.h"
#include "agent/code/software_ring.h"
#include "agent/code/symbol_child.h"
#include "agent/code/thread_event.h"
#include "agent/evidence/runtime_directories.h"
#include "agent/evidence/threaded_source.h"
#include "agent/host/log.h"
#include "agent/probe/clock.h"

namespace syncline::agent {

struct CodeOptions {
  CodeSamplerOptions sampler;
  SymbolOptions symbols;
  OpenThreadEvent open = OpenPerfEvent;
  OpenSoftwareRing open_software = OpenPerfSoftwareRing;
  uint64_t bytes_max = 256 << 20;  // of the file
};

class CodeRecorder : public ThreadedSource {
 public:
  // Neither clock nor log is owned; both outlive this.
  CodeRecorder(RuntimeDirectories directories, Clock* clock, Log* log, CodeOptions options);

  bool IsWanted(const v1::PrepareRequest& request) const override { return request.sample_code(); }
  // What the kernel lets it see, now.
  v1::EvidenceOffer Offer() const;

 private:
  class Run;
  std::unique_ptr<EvidenceRun> MakeRun(const std::vector<uint32_t>& left_out) override;

  const RuntimeDirectories directories_;
  Clock* const clock_;
  const CodeOptions options_;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_CODE_CODE_RECORDER_H_
