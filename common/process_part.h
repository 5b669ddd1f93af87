// SPDX-License-Identifier: Apache-2.0
// What part a process has in a job, as agents tell it and recordings keep it. Empty: not known, or
// of no job. Pure.
#ifndef SYNCLINE_COMMON_PROCESS_PART_H_
#define SYNCLINE_COMMON_PROCESS_PART_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace syncline {

inline constexpr char kPartRank[] = "rank";
inline constexpr char kPartLauncher[] = "launcher";           // it starts ranks, and is none
inline constexpr char kPartLoaderWorker[] = "loader worker";  // of PyTorch's DataLoader
inline constexpr char kPartChild[] = "child";                 // another descendant of a rank

// Whether it is one of these.
bool IsPart(std::string_view text);

// Whether a process with a rank's number is that rank, as far as its part tells.
inline bool IsRankPart(std::string_view part) { return part.empty() || part == kPartRank; }

struct PartOfJob {
  std::string_view part;
  int32_t rank = -1;
  int32_t worker_id = -1;  // of a loader worker: its place among its rank's; -1: not said
};

// "rank 0", "launcher", "loader worker 3 of rank 0", "child of rank 0"; empty: nothing is known.
std::string PartText(const PartOfJob& process);

// "2 loader workers of rank 0".
std::string WorkersText(size_t count, int32_t rank);

// "b · 2 children of rank 0 · ffmpeg" of "b · child of rank 0 · ffmpeg".
std::string ChildrenText(size_t count, std::string_view one);

// All of a rank's loader workers together, and all of its children of one name, where the first of
// them stood; everybody else alone. A Process has `part`, `job`, `rank` and `name`.
template <class Process>
std::vector<std::vector<const Process*>> Folded(const std::vector<Process>& processes) {
  std::vector<std::vector<const Process*>> rows;
  std::map<std::tuple<std::string, int32_t, std::string>, size_t> row_of;
  for (const Process& process : processes) {
    size_t row = rows.size();
    const bool worker = process.part == kPartLoaderWorker;
    if (worker || process.part == kPartChild) {
      const std::string name = worker ? "" : process.name;
      row = row_of.try_emplace({process.job, process.rank, name}, row).first->second;
    }
    if (row == rows.size()) rows.emplace_back();
    rows[row].push_back(&process);
  }
  return rows;
}

// What such a row of `node` is called.
template <class Process>
std::string FoldedName(const std::string& node, const std::vector<const Process*>& row) {
  const Process& first = *row.front();
  if (row.size() == 1) return first.name;
  if (first.part != kPartLoaderWorker) return ChildrenText(row.size(), first.name);
  return node + " · " + WorkersText(row.size(), first.rank);
}

}  // namespace syncline

#endif  // SYNCLINE_COMMON_PROCESS_PART_H_
