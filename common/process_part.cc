// SPDX-License-Identifier: Apache-2.0
#include "common/process_part.h"

#include "absl/strings/str_cat.h"

namespace syncline {

bool IsPart(std::string_view text) {
  return text == kPartRank || text == kPartLauncher || text == kPartLoaderWorker ||
         text == kPartChild;
}

std::string PartText(const PartOfJob& process) {
  if (process.part == kPartLauncher) return kPartLauncher;
  const std::string rank = process.rank >= 0 ? absl::StrCat("rank ", process.rank) : "";
  if (process.part != kPartLoaderWorker && process.part != kPartChild) return rank;
  std::string text(process.part);
  if (process.worker_id >= 0) absl::StrAppend(&text, " ", process.worker_id);
  if (!rank.empty()) absl::StrAppend(&text, " of ", rank);
  return text;
}

std::string WorkersText(size_t count, int32_t rank) {
  std::string text = absl::StrCat(count, count == 1 ? " loader worker" : " loader workers");
  if (rank >= 0) absl::StrAppend(&text, " of rank ", rank);
  return text;
}

std::string ChildrenText(size_t count, std::string_view one) {
  const std::string child = kPartChild;
  const std::string text(one);
  const size_t at = text.find(child + " of rank ");
  if (at == std::string::npos) return absl::StrCat(text, " (", count, ")");
  return absl::StrCat(text.substr(0, at), count, " children", text.substr(at + child.size()));
}

}  // namespace syncline
