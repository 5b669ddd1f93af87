// SPDX-License-Identifier: Apache-2.0
// Collectives that the files of several ranks show, matched by what the files say of them, and
// never by their order or the names of kernels.
//
// Two kernels are of one collective when their files say the same group, the same members, the same
// number in it (`Seq`) and, where both have it, the same `Comms Id`; and when they agree about what
// it is. PyTorch counts the collectives of a group alike on all of its ranks, so:
//   - a kernel without a number is not matched;
//   - nor is a collective that one rank shows twice (operations that were put into one launch share
//     numbers; windows may overlap), nor one of a rank that is no member of the group;
//   - a group of which one number stands for different collectives on two ranks, or in which there
//     are operations that are not NCCL's, is not matched at all: somebody counted otherwise.
// Sends and receives have a counter of their own, which counts what a rank itself sends and
// receives: of more than two ranks equal numbers say nothing. In a group of two they are one
// transfer as long as all numbers from 1 on are a send here and a receive there.
//
// Pure.
#ifndef SYNCLINE_COORDINATOR_MERGE_FILE_COLLECTIVES_H_
#define SYNCLINE_COORDINATOR_MERGE_FILE_COLLECTIVES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kineto/collectives.h"
#include "timeline/collectives.h"

namespace syncline::merge {

// What one file shows.
struct FileKernels {
  std::string file;  // for people
  uint32_t node = 0;
  std::optional<int32_t> rank;
  std::vector<kineto::CollectiveKernel> kernels;
};

// Who has to wait for whom.
enum class DataFlow : uint8_t {
  kNone,      // nothing that is certain
  kAll,       // nobody ends before everybody has begun
  kFromRoot,  // nobody ends before the root has begun
  kToRoot,    // the root does not end before everybody has begun
};

struct MatchedCollective {
  struct Member {
    uint32_t file = 0;     // of the input
    int32_t rank = 0;      // in the group; of the job where not all members are known
    int64_t begin_ns = 0;  // CLOCK_REALTIME of the node
    int64_t end_ns = 0;
    bool is_root = false;  // or the sender
  };
  uint32_t group = 0;  // of MatchedCollectives::groups
  int64_t number = 0;
  std::string name;  // as timeline::Collective::name; "transfer"
  DataFlow flow = DataFlow::kNone;
  std::optional<uint64_t> bytes;
  std::vector<Member> members;  // by rank; two or more
};

struct MatchedCollectives {
  std::vector<timeline::CollectiveGroup> groups;
  std::vector<MatchedCollective> collectives;  // by group and number
  std::vector<MatchedCollective> transfers;    // the sender is the root
  std::vector<uint64_t> kernels;               // of each file, that name their collective
  std::vector<uint64_t> without_number;        // of those, per file
  uint64_t repeated = 0;                       // collectives that a rank shows several times
  std::vector<bool> misplaced;  // of each file: kernels begin before their launch, so its device's
                                // times limit no clock
  uint64_t impossible = 0;      // kernels before their launch, or of no member of the group
  uint64_t alone = 0;           // collectives that only one of the ranks shows
  uint64_t transfers_left = 0;  // sends and receives that are not matched
  std::vector<std::string> disagreeing;  // groups, with why they are not matched
};

MatchedCollectives MatchFileCollectives(const std::vector<FileKernels>& files);

// "[0, 1, 2, 8]" as {0, 1, 2, 8}; nullopt: not all are there. Of `size` ranks that reach from the
// first to the last without a gap it is known who is behind the "...".
std::optional<std::vector<int64_t>> RanksOf(std::string_view text, std::optional<int64_t> size);

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_FILE_COLLECTIVES_H_
