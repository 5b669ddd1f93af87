// SPDX-License-Identifier: Apache-2.0
// What PyTorch's and our hook's tasks are called, and what that makes of them. All that
// `syncline why` knows of spans by name stands here.
//
// Thread-safety: immutable after construction.
#ifndef SYNCLINE_ANALYSIS_WHY_TASK_NAMES_H_
#define SYNCLINE_ANALYSIS_WHY_TASK_NAMES_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/why/model.h"

namespace syncline::analysis::why {

enum class Role : uint8_t {
  // An operator: "aten::conv2d", "ConvolutionBackward0". All else that PyTorch names contains
  // operators and does no work of its own: DistributedDataParallel, FSDP, c10d, the autograd
  // engine, the optimizer, the loader, and what the program itself marks ("train_step").
  kOperator = 1 << 0,
  kLoader = 1 << 1,    // a batch is fetched: "enumerate(DataLoader)#..."
  kStep = 1 << 2,      // an optimizer's step
  kLaunch = 1 << 3,    // a collective is launched: "c10d::allreduce_"
  kForward = 1 << 4,   // a forward pass of the wrapped model begins
  kTransfer = 1 << 5,  // Gloo's thread carries a collective out: "gloo:all_reduce"
  kReceive = 1 << 6,   // something is received from one rank: "c10d::recv_"
  kWait = 1 << 7,      // the thread waits for a collective or a transfer, and does nothing else
};

// Of a task's name alone.
uint8_t RolesOf(std::string_view name);
// Our hook's mark of one garbage collection of Python.
bool IsGarbageCollection(std::string_view category, std::string_view name);
// A thread that carries collectives out, by what it is called: "pt_gloo_runloop", "gloo_tcp_loop".
bool IsTransferThread(std::string_view name);
// Our hook's mark of where a thread stands in Python: "python 7: f (a.py:3) < train (a.py:9) > wait
// (threading.py:320)" says that thread 7 is in `f`, the innermost function of the program's own,
// which `train` called, and in `wait`, which `f` calls.
struct StandsIn {
  int32_t tid = 0;
  bool keeps_lock = false;  // "python 7: keeps the lock": no more is known
  // The program's own frames, the innermost first: "f (a.py:3)"; empty: there is none.
  std::vector<std::string_view> own;
  std::string_view innermost;  // "wait (threading.py:320)"; own[0] where that is it
};
// Of the name of a task whose category is the hook's; nullopt: another mark.
std::optional<StandsIn> StandsInOf(std::string_view name);
std::optional<StandsIn> StandsInOf(std::string_view category, std::string_view name);
// "accelerator initialised: cuda" -> "cuda"; else empty.
std::string_view AcceleratorOf(std::string_view category, std::string_view name);

// The same by number, each name looked at once.
class TaskNames {
 public:
  explicit TaskNames(std::span<const std::string> names);

  bool Is(NameId name, Role role) const { return (roles_[name] & static_cast<uint8_t>(role)) != 0; }
  // An operator or a primitive; else a container.
  bool Works(const TaskSpan& span) const {
    return Is(span.name, Role::kOperator) || primitives_[span.category];
  }
  // Threads wait in C++, too, where no task says so: DistributedDataParallel.
  bool waits_unsaid() const { return waits_unsaid_; }
  bool IsMark(NameId category) const { return marks_[category]; }
  // A primitive that is made, or looked up in a cache.
  bool IsPreparation(NameId category) const { return preparations_[category]; }
  bool IsGarbageCollection(const TaskSpan& span) const {
    return marks_[span.category] && collections_[span.name];
  }

 private:
  std::vector<uint8_t> roles_;
  std::vector<bool> primitives_;
  std::vector<bool> preparations_;
  std::vector<bool> marks_;
  std::vector<bool> collections_;
  bool waits_unsaid_ = false;
};

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_TASK_NAMES_H_
