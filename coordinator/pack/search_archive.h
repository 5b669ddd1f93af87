// SPDX-License-Identifier: Apache-2.0
// The last look at a pack without names: every member of the file as whoever gets it unpacks it,
// its path and its contents.
#ifndef SYNCLINE_COORDINATOR_PACK_SEARCH_ARCHIVE_H_
#define SYNCLINE_COORDINATOR_PACK_SEARCH_ARCHIVE_H_

#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/pack/leftovers.h"

namespace syncline::pack {

struct Leftover {
  std::string name;
  std::string member;
};

// The first name that is left; nullopt: there is none. Cancelled after an interrupt; DataLoss when
// the file cannot be read to its end.
absl::StatusOr<std::optional<Leftover>> SearchArchive(const std::filesystem::path& file,
                                                      const Leftovers& leftovers,
                                                      const std::stop_token& interrupt);

}  // namespace syncline::pack

#endif  // SYNCLINE_COORDINATOR_PACK_SEARCH_ARCHIVE_H_
