// SPDX-License-Identifier: Apache-2.0
// A job of ranks whose clocks are known, and the profiles that PyTorch would write of it, for
// tests.
#ifndef SYNCLINE_COORDINATOR_MERGE_PROFILED_JOB_TEST_H_
#define SYNCLINE_COORDINATOR_MERGE_PROFILED_JOB_TEST_H_

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace syncline::merge {

namespace fs = std::filesystem;
using nlohmann::json;

inline constexpr int64_t kMs = 1'000'000;
inline constexpr int64_t kEpoch = 1'790'857'026'000'000'000;

struct HostClock {
  int64_t offset_ns = 0;
  int64_t rate_ppm = 0;
  int64_t At(int64_t ns) const { return kEpoch + offset_ns + ns + ns / 1'000'000 * rate_ppm; }
};

// One job: its ranks' clocks, and the files that their profilers write.
class Job {
 public:
  explicit Job(std::vector<HostClock> clocks) : clocks_(std::move(clocks)), events_(size()) {
    for (int rank = 0; rank < size(); ++rank) {
      Event(rank, "user_annotation", "ProfilerStep#1", {}, 0, 900 * kMs);
    }
  }

  static constexpr int64_t kBaseNs = 1'000 * kMs;  // keeps the times of files positive

  int size() const { return static_cast<int>(clocks_.size()); }
  const HostClock& clock(int rank) const { return clocks_[static_cast<size_t>(rank)]; }

  struct Collective {
    std::string name = "allreduce";
    std::string group = "0";
    std::vector<int> ranks;
    int root = -1;  // in the group
    int elements = 1024;
    json more = json::object();  // in the kernel's arguments; null: without it
  };
  // `begins`, `ends`: of each of its ranks, true time; a rank without a begin has no kernel.
  void Add(const Collective& what, int64_t sequence, const std::vector<int64_t>& begins,
           const std::vector<int64_t>& ends) {
    for (size_t i = 0; i < what.ranks.size(); ++i) {
      if (begins[i] >= 0) AddKernel(what, sequence, what.ranks[i], begins[i], ends[i]);
    }
  }

  // All that take part begin within a millisecond; nobody ends before the last has begun, or for
  // rooted kinds before those that he needs.
  void AddAsItRuns(const Collective& what, int64_t sequence, int64_t at_ns, std::mt19937* random) {
    const auto some = [&](int64_t most) {
      return 1'000 + static_cast<int64_t>((*random)() % most);
    };
    std::vector<int64_t> begins, ends;
    for (size_t i = 0; i < what.ranks.size(); ++i) begins.push_back(at_ns + some(kMs));
    const int64_t last = *std::max_element(begins.begin(), begins.end());
    for (size_t i = 0; i < what.ranks.size(); ++i) {
      int64_t waits = last;
      if (what.root >= 0) {
        const bool from_root = what.name == "broadcast" || what.name == "scatter";
        const bool needs_all = !from_root && static_cast<int>(i) == what.root;
        const int64_t root = begins[static_cast<size_t>(what.root)];
        waits = needs_all ? last : from_root ? std::max(root, begins[i]) : begins[i];
      }
      ends.push_back(waits + some(100'000));
    }
    Add(what, sequence, begins, ends);
  }

  void AddKernel(const Collective& what, int64_t sequence, int rank, int64_t begin, int64_t end) {
    std::string text = "[";
    for (size_t i = 0; i < what.ranks.size(); ++i) {
      text += (i == 0 ? "" : ", ") + std::to_string(what.ranks[i]);
    }
    json about = {{"Collective name", what.name},
                  {"In msg nelems", what.elements},
                  {"Out msg nelems", what.elements},
                  {"Group size", what.ranks.size()},
                  {"dtype", "Float"},
                  {"In split size", "[]"},
                  {"Out split size", "[]"},
                  {"Process Group Name", what.group},
                  {"Process Group Ranks", text + "]"},
                  {"Seq", sequence}};
    about["Comms Id"] = std::hash<std::string>()(what.group + std::to_string(sequence) + text);
    for (const auto& [key, value] : what.more.items()) about[key] = value;
    for (auto at = about.begin(); at != about.end();) at = at->is_null() ? about.erase(at) : ++at;
    json described = about;
    described["Rank"] = what.root >= 0 ? what.root : rank;
    const int correlation = ++correlation_;
    Event(rank, "cpu_op", "record_param_comms", described, begin - 40'000, begin - 10'000);
    Event(rank, "cuda_runtime", "cudaLaunchKernel", {{"correlation", correlation}}, begin - 30'000,
          begin - 20'000);
    about["correlation"] = correlation;
    Event(rank, "kernel", "ncclDevKernel_" + std::to_string(rank), about, begin, end);
  }

  // Of each rank "rankN.json" in `directory`.
  std::vector<std::string> Write(const fs::path& directory) {
    fs::create_directories(directory);
    std::vector<std::string> paths;
    for (int rank = 0; rank < size(); ++rank) {
      json file = {{"baseTimeNanoseconds", kEpoch},
                   {"distributedInfo", {{"rank", rank}, {"world_size", size()}}},
                   {"traceEvents", events_[static_cast<size_t>(rank)]}};
      paths.push_back((directory / ("rank" + std::to_string(rank) + ".json")).string());
      std::ofstream(paths.back()) << file.dump();
    }
    return paths;
  }

  void Shuffle(std::mt19937* random) {
    for (json& events : events_) std::shuffle(events.begin(), events.end(), *random);
  }

 private:
  // Microseconds with three digits, as Kineto writes them.
  static json Us(int64_t ns) {
    char text[32];
    (void)snprintf(text, sizeof text, "%lld.%03lld", static_cast<long long>(ns / 1000),
                   static_cast<long long>(ns % 1000));
    return json::parse(text);
  }
  void Event(int rank, const std::string& category, const std::string& name, const json& arguments,
             int64_t begin, int64_t end) {
    const bool device = category == "kernel";
    const int64_t base = begin > 0 ? 10 * kMs : 0;  // after the begin of the profile
    const int64_t from = clock(rank).At(begin + base) - kEpoch;
    const int64_t to = clock(rank).At(end + base) - kEpoch;
    events_[static_cast<size_t>(rank)].push_back({{"ph", "X"},
                                                  {"cat", category},
                                                  {"name", name},
                                                  {"pid", device ? 0 : 100 + rank},
                                                  {"tid", 7},
                                                  {"ts", Us(from + kBaseNs)},
                                                  {"dur", Us(to - from)},
                                                  {"args", arguments}});
  }

  std::vector<HostClock> clocks_;
  std::vector<json> events_;
  int correlation_ = 0;
};

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_PROFILED_JOB_TEST_H_
