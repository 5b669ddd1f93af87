#include "agent/kineto/kineto_profiles.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/node/process_table.h"
#include "common/files.h"
#include "common/status.h"

namespace syncline::agent {
namespace {

using xspace::ProfileRecord;
using xspace::ProfileState;

constexpr char kFolder[] = "kineto";
constexpr char kListSuffix[] = ".pieces";
constexpr char kFileSuffix[] = ".kineto.json";
constexpr auto kWatchPeriod = std::chrono::milliseconds(250);
constexpr int64_t kPollNs = 50'000'000;
// A piece of the largest size takes a few seconds to be put together and written.
constexpr int64_t kGiveUpNs = 30'000'000'000;
constexpr uint64_t kListBytesMax = 4 << 20;
constexpr uint64_t kFileBytesMax = uint64_t{1} << 30;
constexpr size_t kCopyBytes = 1 << 20;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

// A directory of the user's that nobody else may write to; -1: there is none.
int OpenFolder(const std::filesystem::path& runtime, uint32_t uid) {
  const int fd =
      ::open((runtime / kFolder).c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return -1;
  struct stat info;
  if (::fstat(fd, &info) == 0 && info.st_uid == uid && (info.st_mode & 0022) == 0) return fd;
  ::close(fd);
  return -1;
}

std::vector<std::string> NamesIn(int directory, std::string_view suffix) {
  std::vector<std::string> names;
  const int again = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (again < 0) return names;
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::fdopendir(again), ::closedir);
  while (const dirent* entry = listing ? ::readdir(listing.get()) : nullptr) {
    const std::string name = static_cast<const char*>(entry->d_name);
    if (name.ends_with(suffix)) names.push_back(name);
  }
  return names;
}

// A regular file of the user's, no larger than `bytes_max`.
absl::StatusOr<int> OpenFile(int directory, const std::string& name, uint32_t uid,
                             uint64_t bytes_max) {
  const int fd = ::openat(directory, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("Cannot open \"", name, "\""));
  struct stat info;
  const bool fits = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == uid &&
                    static_cast<uint64_t>(info.st_size) <= bytes_max;
  if (fits) return fd;
  ::close(fd);
  return absl::InvalidArgumentError(
      absl::StrCat("\"", name, "\" is no file of user ", uid, " of at most ", bytes_max, " bytes"));
}

absl::StatusOr<std::string> ReadSmall(int directory, const std::string& name, uint32_t uid) {
  SYNCLINE_ASSIGN_OR_RETURN(const int opened, OpenFile(directory, name, uid, kListBytesMax));
  const Descriptor from(opened);
  struct stat info;
  if (::fstat(from.get(), &info) != 0) return ErrnoStatus(errno, "Cannot look at \"" + name + "\"");
  std::string text(static_cast<size_t>(info.st_size), '\0');
  const ssize_t got = ::read(from.get(), text.data(), text.size());
  if (got < 0) return ErrnoStatus(errno, absl::StrCat("Cannot read \"", name, "\""));
  text.resize(static_cast<size_t>(got));
  return text;
}

// How many bytes.
absl::StatusOr<uint64_t> Copy(int directory, const std::string& name, uint32_t uid,
                              const std::filesystem::path& to) {
  SYNCLINE_ASSIGN_OR_RETURN(const int opened, OpenFile(directory, name, uid, kFileBytesMax));
  const Descriptor from(opened);
  const Descriptor into(
      ::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (into.get() < 0) return ErrnoStatus(errno, absl::StrCat("Cannot make \"", to.string(), "\""));
  std::vector<char> buffer(kCopyBytes);
  uint64_t bytes = 0;
  for (;;) {
    const ssize_t got = ::read(from.get(), buffer.data(), buffer.size());
    if (got < 0) return ErrnoStatus(errno, absl::StrCat("Cannot read \"", name, "\""));
    bytes += static_cast<uint64_t>(got);
    if (got == 0 || bytes > kFileBytesMax) return bytes;
    for (ssize_t done = 0; done < got;) {
      const ssize_t put =
          ::write(into.get(), buffer.data() + done, static_cast<size_t>(got - done));
      if (put < 0) return ErrnoStatus(errno, absl::StrCat("Cannot write \"", to.string(), "\""));
      done += put;
    }
  }
}

}  // namespace

void KinetoProfiles::RemoveLeftovers() {
  for (const auto& [uid, runtime] : directories_()) {
    const Descriptor folder(OpenFolder(runtime, uid));
    if (folder.get() < 0) continue;
    for (const char* const suffix : {kListSuffix, kFileSuffix}) {
      for (const std::string& name : NamesIn(folder.get(), suffix)) {
        ::unlinkat(folder.get(), name.c_str(), 0);
      }
    }
  }
}

void KinetoProfiles::Begin(const ProfileWindow& window) {
  {
    const std::lock_guard lock(mutex_);
    if (recording_id_ == window.recording_id) return;
  }
  watcher_ = {};  // it may want the mutex before it ends
  const std::lock_guard lock(mutex_);
  RemoveLeftovers();
  recording_id_ = window.recording_id;
  directory_ = window.directory / kFolder;
  begun_realtime_ns_ = clock_->RealtimeNs();
  records_.clear();
  taken_.clear();
  watcher_ = std::jthread([this](const std::stop_token& stop) { Watch(stop); });
}

void KinetoProfiles::Watch(const std::stop_token& stop) {
  std::condition_variable_any wake;
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    Take();
    wake.wait_for(lock, stop, kWatchPeriod, [] { return false; });
  }
}

int KinetoProfiles::Take() {
  for (const auto& [uid, runtime] : directories_()) {
    const Descriptor folder(OpenFolder(runtime, uid));
    if (folder.get() >= 0) TakeFrom(uid, folder.get());
  }
  int awaited = 0;
  std::vector<ProcessEntry> processes;
  for (const auto& [key, record] : records_) {
    if (record.end_realtime_ns != 0) continue;
    if (processes.empty()) processes = ListProcesses(proc_);
    awaited += static_cast<int>(
        std::any_of(processes.begin(), processes.end(), [&](const ProcessEntry& process) {
          return process.own_pid == record.own_pid &&
                 process.pid_namespace == record.pid_namespace_inode &&
                 process.start_ticks == record.start_ticks;
        }));
  }
  return awaited;
}

void KinetoProfiles::TakeFrom(uint32_t uid, int directory) {
  for (const std::string& name : NamesIn(directory, kListSuffix)) {
    const auto text = ReadSmall(directory, name, uid);
    const auto listed = text.ok() ? xspace::ParseProfileList(*text)
                                  : absl::StatusOr<std::vector<ProfileRecord>>(text.status());
    if (!listed.ok()) continue;  // it is replaced in one piece: not ours
    for (const ProfileRecord& record : *listed) {
      // Of the recording before, which gave it up.
      if (record.begin_realtime_ns >= begun_realtime_ns_) TakePiece(uid, directory, record);
    }
  }
}

void KinetoProfiles::TakePiece(uint32_t uid, int directory, ProfileRecord record) {
  const Key key(record.pid_namespace_inode, record.own_pid, record.start_ticks, record.piece);
  if (taken_.count(key) != 0) return;
  const std::string file = std::exchange(record.file, {});
  ProfileRecord& kept = records_[key];
  kept = record;
  if (file.empty()) return;
  taken_.insert(key);
  absl::StatusOr<uint64_t> copied =
      absl::InvalidArgumentError(absl::StrCat("\"", file, "\" is no name of a profile"));
  if (file.find('/') == std::string::npos && file.front() != '.' && file.ends_with(kFileSuffix)) {
    const absl::Status made = MakeDirectories(directory_, 0700);
    copied =
        made.ok() ? Copy(directory, file, uid, directory_ / file) : absl::StatusOr<uint64_t>(made);
    ::unlinkat(directory, file.c_str(), 0);
  }
  if (copied.ok()) {
    kept.file = file;
    kept.bytes = *copied;
  } else {
    kept.state = ProfileState::kFailed;
    kept.failure = std::string(copied.status().message());
  }
}

std::vector<v1::Complaint> KinetoProfiles::Complain() const {
  std::vector<v1::Complaint> complaints;
  std::set<std::pair<int32_t, std::string>> said;
  for (const auto& [key, record] : records_) {
    const bool whole = record.state == ProfileState::kComplete;
    if (whole || record.failure.empty()) continue;
    if (!said.emplace(record.own_pid, record.failure).second) continue;
    v1::Complaint& complaint = complaints.emplace_back();
    complaint.set_severity(v1::Complaint::WARNING);
    complaint.set_pid(record.own_pid);
    complaint.set_what(absl::StrCat("Process ", record.own_pid,
                                    " gave no Kineto profile for a while: ", record.failure));
    complaint.set_fix("the rest of the recording is not touched by it; docs/pytorch.md");
  }
  return complaints;
}

std::vector<v1::Complaint> KinetoProfiles::Collect() {
  watcher_ = {};
  const std::lock_guard lock(mutex_);
  if (recording_id_.empty()) return {};
  recording_id_.clear();
  const int64_t give_up_ns = clock_->MonotonicNs() + kGiveUpNs;
  while (Take() > 0 && clock_->MonotonicNs() < give_up_ns) clock_->SleepNs(kPollNs);
  if (records_.empty()) return {};
  std::vector<ProfileRecord> records;
  for (auto& [key, record] : records_) {
    if (record.end_realtime_ns == 0) record.end_realtime_ns = clock_->RealtimeNs();
    log_->Line(record.failure.empty() ? LogLevel::kInfo : LogLevel::kWarning, "kineto",
               {{"pid", absl::StrCat(record.own_pid)},
                {"piece", absl::StrCat(record.piece)},
                {"state", std::string(xspace::ProfileStateName(record.state))},
                {"bytes", absl::StrCat(record.bytes)},
                {"failure", record.failure}});
    records.push_back(record);
  }
  absl::Status kept = MakeDirectories(directory_, 0700);
  if (kept.ok()) {
    kept = WriteFileAtomically(directory_ / "profiles.json",
                               xspace::FormatProfileList(std::move(records)), 0600);
  }
  log_->Failure("kineto", kept);
  return Complain();
}

}  // namespace syncline::agent
