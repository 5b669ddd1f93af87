// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/profile_file.h"

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"
#include "common/text.h"
#include "kineto/trace.h"
#include "kineto/unpack.h"
#include "spans/table.h"
#include "xspace/space.h"

namespace syncline::merge {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 2> kPackedEndings = {".gz", ".zst"};
constexpr std::array<std::string_view, 2> kEndings = {".json", ".xplane.pb"};
// Of files that may be anything.
constexpr std::array<std::string_view, 2> kTableEndings = {".csv", ".jsonl"};
constexpr std::string_view kPyTorchEnding = ".pt.trace";
constexpr std::string_view kParquet = "PAR1";
constexpr size_t kRankDigitsMax = 7;
constexpr int64_t kTimeMaxNs = int64_t{1} << 61;  // sums of two fit

bool DropEnding(std::string_view ending, std::string* name) {
  if (name->size() <= ending.size() || !name->ends_with(ending)) return false;
  name->resize(name->size() - ending.size());
  return true;
}

bool DropAny(const std::array<std::string_view, 2>& endings, std::string* name) {
  return std::any_of(endings.begin(), endings.end(),
                     [&](std::string_view ending) { return DropEnding(ending, name); });
}

std::span<const uint8_t> BytesOf(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

std::string_view TextOf(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// As both Kineto's files and XSpaces say it.
template <class Reader>
std::optional<timeline::ClockInterval> CoveredOf(const Reader& reader) {
  const auto begin = reader.profile_begin_ns();
  const auto end = reader.profile_end_ns();
  if (!begin.has_value() || !end.has_value() || *begin < 0 || *end < *begin || *end > kTimeMaxNs) {
    return std::nullopt;
  }
  return timeline::ClockInterval{*begin, *end};
}

ProfileFile OfKineto(std::unique_ptr<kineto::Trace> trace) {
  ProfileFile file;
  ProfilePart& part = file.parts.emplace_back();
  part.profiler = timeline::Profiler::kKineto;
  part.events = trace->events();
  part.covered = CoveredOf(*trace);
  part.rank = trace->rank();
  part.world_size = trace->world_size();
  part.pid = trace->pid();
  part.process_name = trace->process_name();
  part.kineto = trace.get();
  part.reader = std::move(trace);
  return file;
}

ProfileFile OfXSpace(std::unique_ptr<xspace::Space> space) {
  ProfileFile file;
  ProfilePart& part = file.parts.emplace_back();
  const bool jax = space->environment().contains(xspace::kJaxVersion);
  part.profiler = jax ? timeline::Profiler::kJax : timeline::Profiler::kTensorFlow;
  part.events = space->streams().empty() ? 0 : space->events();
  part.covered = CoveredOf(*space);
  part.pid = space->pid();
  for (const std::string& warning : space->warnings()) {
    file.notes.push_back(absl::StrCat("its profiler says: ", warning));
  }
  part.reader = std::move(space);
  return file;
}

absl::StatusOr<ProfileFile> OfPackedXSpace(std::string_view bytes, std::string source) {
  SYNCLINE_ASSIGN_OR_RETURN(kineto::Unpacked unpacked, kineto::Unpack(bytes));
  ProfileFile file = OfXSpace(xspace::Space::Take(std::move(unpacked.text), source));
  if (unpacked.damage.empty()) return file;
  file.parts[0].losses.push_back(
      {LossReason::kTruncated, 0, 0, std::nullopt, std::move(source),
       absl::StrCat("it cannot be unpacked to its end: ", unpacked.damage)});
  return file;
}

absl::StatusOr<ProfileFile> OfTable(std::string_view text, spans::Format format) {
  SYNCLINE_ASSIGN_OR_RETURN(auto processes, spans::ReadTable(text, format));
  ProfileFile file;
  for (std::unique_ptr<spans::Process>& process : processes) {
    ProfilePart& part = file.parts.emplace_back();
    part.profiler = timeline::Profiler::kTable;
    part.events = process->events();
    part.rank = process->rank();
    part.node = process->node();
    part.reader = std::move(process);
  }
  return file;
}

std::string HeadOf(std::string_view bytes) {
  return kineto::IsPacked(bytes) ? kineto::UnpackHead(bytes)
                                 : std::string(bytes.substr(0, kineto::kHeadBytes));
}

bool MayBeProfile(const fs::path& path) {
  std::string name = path.filename().string();
  DropAny(kPackedEndings, &name);
  if (DropAny(kEndings, &name)) return true;
  if (!DropAny(kTableEndings, &name)) return false;
  const auto mapped = MappedFile::Open(path);
  return mapped.ok() && spans::FormatOf(HeadOf(TextOf(mapped->bytes()))).has_value();
}

absl::StatusOr<ProfileFile> OpenAny(const fs::path& path) {
  SYNCLINE_ASSIGN_OR_RETURN(const MappedFile mapped, MappedFile::Open(path));
  const std::string_view text = TextOf(mapped.bytes());
  const bool packed = kineto::IsPacked(text);
  const std::string head = HeadOf(text);
  if (xspace::IsXSpace(BytesOf(head))) {
    if (packed) return OfPackedXSpace(text, path.filename().string());
    SYNCLINE_ASSIGN_OR_RETURN(auto space, xspace::Space::Open(path));
    return OfXSpace(std::move(space));
  }
  if (const auto format = spans::FormatOf(head)) {
    if (!packed) return OfTable(text, *format);
    SYNCLINE_ASSIGN_OR_RETURN(const kineto::Unpacked unpacked, kineto::Unpack(text));
    if (unpacked.damage.empty()) return OfTable(unpacked.text, *format);
    return absl::DataLossError(absl::StrCat("it cannot be unpacked to its end: ", unpacked.damage));
  }
  if (head.starts_with(kParquet)) {
    return absl::InvalidArgumentError(
        "Parquet is not read: write the table as CSV, with "
        "`python3 -c \"import pandas; pandas.read_parquet('spans.parquet', "
        "dtype_backend='numpy_nullable')"
        ".to_csv('spans.csv', index=False)\"`");
  }
  const size_t first = head.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && head[first] != '{' && head[first] != '[') {
    return absl::InvalidArgumentError(
        "it is no profile of PyTorch (JSON), no XSpace of TensorFlow or JAX (.xplane.pb), and no "
        "table of spans (CSV or JSON lines with the columns rank, step, name, start_ns, "
        "duration_ns and kind)");
  }
  SYNCLINE_ASSIGN_OR_RETURN(auto trace, kineto::Trace::Open(path));
  return OfKineto(std::move(trace));
}

}  // namespace

std::vector<fs::path> FindProfiles(const fs::path& directory) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::recursive_directory_iterator
           entry(directory, fs::directory_options::skip_permission_denied, error),
       end;
       !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_regular_file(ignored) && MayBeProfile(entry->path())) {
      found.push_back(entry->path());
    }
  }
  std::sort(found.begin(), found.end());
  // JAX writes the same for Perfetto beside it: "vm.trace.json.gz".
  const std::set<fs::path> all(found.begin(), found.end());
  std::erase_if(found, [&](const fs::path& path) {
    std::string stem = path.filename().string();
    return DropEnding(".gz", &stem) && DropEnding(".trace.json", &stem) &&
           all.contains(path.parent_path() / (stem + ".xplane.pb"));
  });
  return found;
}

absl::StatusOr<ProfileFile> OpenProfileFile(const fs::path& path) {
  SYNCLINE_ASSIGN_OR_RETURN(ProfileFile file, OpenAny(path));
  for (ProfilePart& part : file.parts) {
    for (const Loss& loss : part.reader->losses()) part.losses.push_back(loss);
    if (!part.rank.has_value()) part.rank = RankOfPath(path);
  }
  return file;
}

std::string StemOf(const fs::path& path) {
  std::string stem = path.filename().string();
  DropAny(kPackedEndings, &stem);
  if (!DropAny(kEndings, &stem)) DropAny(kTableEndings, &stem);
  DropEnding(kPyTorchEnding, &stem);
  return stem;
}

std::optional<int32_t> RankOfName(std::string_view name) {
  constexpr std::string_view kRank = "rank";
  const std::string lower = absl::AsciiStrToLower(AbslView(name));
  for (size_t at = lower.find(kRank); at != std::string::npos; at = lower.find(kRank, at + 1)) {
    size_t begin = at + kRank.size();
    if (begin < lower.size() && (lower[begin] == '_' || lower[begin] == '-')) ++begin;
    size_t end = begin;
    while (end < lower.size() && absl::ascii_isdigit(static_cast<unsigned char>(lower[end]))) ++end;
    int32_t rank = 0;
    if (end > begin && end - begin <= kRankDigitsMax &&
        absl::SimpleAtoi(lower.substr(begin, end - begin), &rank)) {
      return rank;
    }
  }
  return std::nullopt;
}

std::optional<int32_t> RankOfPath(const fs::path& path) {
  if (const auto rank = RankOfName(StemOf(path))) return rank;
  const fs::path profile = path.parent_path().parent_path();
  if (profile.filename() != "profile" || profile.parent_path().filename() != "plugins") {
    return std::nullopt;
  }
  return RankOfName(profile.parent_path().parent_path().filename().string());
}

}  // namespace syncline::merge
