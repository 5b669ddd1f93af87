// SPDX-License-Identifier: Apache-2.0
#include "agent/recording/member_block.h"

#include <fcntl.h>

#include <cerrno>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"
#include "instrumentation/abi/control_block.h"

namespace syncline::agent {
namespace {

using control_block::Block;

// Not synced: it is written while processes come and go, which are waited for.
absl::Status WriteQuickly(const std::filesystem::path& path, std::string_view bytes) {
  const Descriptor fd(
      ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (fd.get() < 0)
    return ErrnoStatus(errno, absl::StrCat("Cannot create \"", path.string(), "\""));
  return AppendWhole(fd.get(), bytes, path);
}

}  // namespace

absl::StatusOr<Block> MemberBlock::Read() const {
  if (live_.has_value()) return live_->Read();
  return *last_;
}

bool MemberBlock::HasExited() const {
  if (!live_.has_value()) return last_->facts.state == control_block::ProcessState::kExited;
  const auto state = live_->ReadState();
  return state.ok() && *state == control_block::ProcessState::kExited;
}

absl::Status MemberBlock::SetGeneration(uint32_t generation) {
  return live_.has_value() ? live_->SetGeneration(generation) : absl::OkStatus();
}

absl::Status MemberBlock::SetLeftOut(const LeftOut& left_out) {
  if (!live_.has_value()) return absl::OkStatus();
  return live_->SetLeftOut(left_out.operators_least_us,
                           left_out.messages ? SYNCLINE_LEFT_OUT_MESSAGES : 0);
}

absl::Status MemberBlock::Remove() {
  return live_.has_value() ? live_->Remove() : absl::OkStatus();
}

absl::Status MemberBlock::Write(const std::filesystem::path& directory, const Budget& budget,
                                bool synced) const {
  absl::Status first_error;
  const auto keep = [&](const absl::StatusOr<std::string>& bytes, const std::string& name) {
    absl::Status status = bytes.status();
    if (status.ok()) status = budget(bytes->size());
    if (status.ok()) {
      status = synced ? WriteFileAtomically(directory / name, *bytes, 0600)
                      : WriteQuickly(directory / name, *bytes);
    }
    if (first_error.ok()) first_error = status;
  };
  keep(live_->ReadBlockBytes(), control_block::BlockFileName(live_->id()));
  keep(live_->ReadNamesBytes(), control_block::NamesFileName(live_->id()));
  return first_error;
}

absl::Status MemberBlock::CopyInto(const std::filesystem::path& directory,
                                   const Budget& budget) const {
  return live_.has_value() ? Write(directory, budget, /*synced=*/true) : absl::OkStatus();
}

absl::Status MemberBlock::CloseInto(const std::filesystem::path& directory, const Budget& budget) {
  if (!live_.has_value()) return absl::OkStatus();
  SYNCLINE_ASSIGN_OR_RETURN(Block block, live_->Read());
  SYNCLINE_RETURN_IF_ERROR(Write(directory, budget, /*synced=*/false));
  last_ = std::move(block);
  live_.reset();
  return absl::OkStatus();
}

}  // namespace syncline::agent
