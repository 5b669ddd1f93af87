// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/task_names.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

#include "analysis/names.h"
#include "analysis/onednn.h"

namespace syncline::analysis::why {
namespace {

constexpr std::string_view kPython = "python";
constexpr std::string_view kOurs = "syncline";
constexpr std::string_view kCollection = "garbage collection";
constexpr std::string_view kAccelerator = "accelerator initialised: ";
constexpr std::string_view kStands = "python ";
constexpr std::string_view kKeepsLock = "keeps the lock";
constexpr std::string_view kCalls = " > ";
constexpr std::string_view kCaller = " < ";
constexpr std::string_view kNoFrame = "-";

constexpr std::string_view kDataParallel = "DistributedDataParallel";
constexpr std::array<std::string_view, 8> kContainers = {
    kDataParallel, "FSDP::",           "_c10d_functional", "c10d::",
    "Optimizer",   "autograd::engine", "enumerate",        "torch.distributed"};

// PyTorch calls the derivative of an operator by its class: "MulBackward0".
bool IsDerivative(std::string_view name) {
  while (!name.empty() && name.back() >= '0' && name.back() <= '9') name.remove_suffix(1);
  return name.ends_with("Backward") && name.find(':') == std::string_view::npos;
}

bool IsOperator(std::string_view name) {
  const bool contains =
      std::any_of(kContainers.begin(), kContainers.end(),
                  [&](std::string_view container) { return name.starts_with(container); });
  return !contains && (name.find("::") != std::string_view::npos || IsDerivative(name));
}

}  // namespace

uint8_t RolesOf(std::string_view name) {
  uint8_t roles = 0;
  const auto add = [&](bool is, Role role) { roles |= is ? static_cast<uint8_t>(role) : 0; };
  add(IsOperator(name), Role::kOperator);
  add(name.starts_with("enumerate(DataLoader)"), Role::kLoader);
  add(name.starts_with("Optimizer.step"), Role::kStep);
  add(name.starts_with("c10d::"), Role::kLaunch);
  add(name.starts_with("c10d::recv"), Role::kReceive);
  add(name == "DistributedDataParallel.forward" || name.starts_with("FSDP::root_pre_forward"),
      Role::kForward);
  add(name.starts_with("gloo:"), Role::kTransfer);
  add(name == "Work.wait" || name == "_c10d_functional::wait_tensor", Role::kWait);
  return roles;
}

bool IsGarbageCollection(std::string_view category, std::string_view name) {
  return category == kPython && name == kCollection;
}

bool IsTransferThread(std::string_view name) { return name.find("gloo") != std::string_view::npos; }

std::optional<StandsIn> StandsInOf(std::string_view name) {
  if (!name.starts_with(kStands)) return std::nullopt;
  name.remove_prefix(kStands.size());
  StandsIn stands;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), stands.tid);
  if (error != std::errc()) return std::nullopt;
  name.remove_prefix(static_cast<size_t>(end - name.data()));
  if (!name.starts_with(": ")) return std::nullopt;
  name.remove_prefix(2);
  stands.keeps_lock = name == kKeepsLock;
  if (stands.keeps_lock) return stands;
  const size_t calls = name.find(kCalls);
  std::string_view own = name.substr(0, calls);
  if (own != kNoFrame) {
    for (size_t caller = own.find(kCaller); caller != std::string_view::npos;
         caller = own.find(kCaller)) {
      stands.own.push_back(own.substr(0, caller));
      own.remove_prefix(caller + kCaller.size());
    }
    stands.own.push_back(own);
  }
  const bool is_own = calls == std::string_view::npos;
  if (!is_own) stands.innermost = name.substr(calls + kCalls.size());
  if (is_own && !stands.own.empty()) stands.innermost = stands.own[0];
  return stands;
}

std::optional<StandsIn> StandsInOf(std::string_view category, std::string_view name) {
  return category == kOurs ? StandsInOf(name) : std::nullopt;
}

std::string_view AcceleratorOf(std::string_view category, std::string_view name) {
  if (category != kOurs || !name.starts_with(kAccelerator)) return {};
  return name.substr(kAccelerator.size());
}

TaskNames::TaskNames(std::span<const std::string> names) {
  for (const std::string& name : names) {
    roles_.push_back(RolesOf(name));
    primitives_.push_back(IsPrimitive(name));
    preparations_.push_back(IsPrimitive(name) && !IsExecution(name));
    marks_.push_back(analysis::IsMark(name));
    collections_.push_back(name == kCollection);
    waits_unsaid_ |= name.starts_with(kDataParallel);
  }
}

}  // namespace syncline::analysis::why
