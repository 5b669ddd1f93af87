// SPDX-License-Identifier: Apache-2.0
#include "export/parquet/table_writer.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status.h"
#include "export/parquet/script.h"
#include "export/text/json_text.h"

extern char** environ;

namespace syncline::parquet {
namespace {

struct Ends {
  Descriptor ours{-1};
  Descriptor childs{-1};
};

absl::StatusOr<Ends> DataSocket() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return ErrnoStatus(errno, "cannot create a socket");
  }
  // A batch is megabytes; with the default of some 200 KiB the two sides mostly wait.
  const int bytes = 4 << 20;
  ::setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  return Ends{Descriptor(ends[0]), Descriptor(ends[1])};
}

absl::StatusOr<Ends> ReplyPipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "cannot create a pipe");
  return Ends{Descriptor(ends[0]), Descriptor(ends[1])};
}

// 0 when it could not be started.
pid_t Spawn(const std::string& python, const WriterOptions& options, int data, int replies) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, data, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, replies, STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  // -I: nothing of the user's environment or of this directory gets into the interpreter.
  std::vector<std::string> words = {python,
                                    "-I",
                                    "-c",
                                    kWriteTablesScript,
                                    options.directory.string(),
                                    absl::StrCat(options.threads)};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  return error == 0 ? child : 0;
}

}  // namespace

TableWriter::TableWriter(pid_t child, Descriptor data, Descriptor replies)
    : child_(child), data_(std::move(data)), replies_(std::move(replies)) {}

absl::StatusOr<std::unique_ptr<TableWriter>> TableWriter::Start(const WriterOptions& options) {
  std::vector<std::string> reasons;
  for (const std::string& python : options.pythons) {
    SYNCLINE_ASSIGN_OR_RETURN(Ends data, DataSocket());
    SYNCLINE_ASSIGN_OR_RETURN(Ends replies, ReplyPipe());
    const pid_t child = Spawn(python, options, data.childs.get(), replies.childs.get());
    if (child == 0) {
      reasons.push_back(absl::StrCat(python, ": cannot be started"));
      continue;
    }
    data.childs = Descriptor(-1);
    replies.childs = Descriptor(-1);
    std::unique_ptr<TableWriter> writer(
        new TableWriter(child, std::move(data.ours), std::move(replies.ours)));
    const std::string reply = writer->ReadReply();
    if (reply.starts_with("ready ")) return writer;
    reasons.push_back(absl::StrCat(
        python, ": ", reply.starts_with("error ") ? reply.substr(6) : "ended without a reply"));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "writing Parquet needs Python with pyarrow, and none was found:\n  ",
      absl::StrJoin(reasons, "\n  "),
      "\nInstall it (`python3 -m venv V && V/bin/pip install pyarrow`) and name that interpreter "
      "in SYNCLINE_PYTHON"));
}

void TableWriter::End() {
  if (child_ <= 0) return;
  data_ = Descriptor(-1);
  replies_ = Descriptor(-1);
  int status = 0;
  while (::waitpid(child_, &status, 0) < 0 && errno == EINTR) {
  }
  child_ = 0;
}

TableWriter::~TableWriter() {
  if (child_ > 0) ::kill(child_, SIGKILL);  // after Finish() there is none
  End();
}

std::string TableWriter::ReadReply() {
  std::string line;
  for (char c = 0;;) {
    const ssize_t n = ::read(replies_.get(), &c, 1);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0 || c == '\n') return line;
    line.push_back(c);
  }
}

bool TableWriter::Send(std::string_view bytes) {
  while (!bytes.empty() && !broken_) {
    const ssize_t n = ::send(data_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    broken_ = n < 0;
    if (n > 0) bytes.remove_prefix(static_cast<size_t>(n));
  }
  return !broken_;
}

bool TableWriter::Send(const std::vector<std::string_view>& pieces) {
  for (const std::string_view piece : pieces) {
    if (!Send(piece)) return false;
  }
  return true;
}

void TableWriter::Write(const std::string& path, const std::vector<std::string>& texts,
                        std::span<Table> pieces) {
  const std::lock_guard lock(mutex_);
  header_.clear();
  buffers_.Clear();
  for (Table& piece : pieces) {
    if (piece.rows() == 0 && &piece != &pieces.front()) continue;
    absl::StrAppend(&header_, header_.empty() ? "" : "]},", "{\"rows\":", piece.rows(),
                    ",\"columns\":[");
    for (size_t i = 0; i < piece.columns.size(); ++i) {
      if (i > 0) header_.push_back(',');
      piece.columns[i].Encode(texts, &scratch_, &header_, &buffers_);
    }
  }
  std::string path_json;
  text::AppendJsonString(path, &path_json);
  header_ = absl::StrCat("{\"path\":", path_json, ",\"bytes\":", buffers_.bytes(), ",\"pieces\":[",
                         header_, "]}]}\n");
  if (Send(header_)) Send(buffers_.pieces());
  for (Table& piece : pieces) {
    for (Column& column : piece.columns) column.Clear();
  }
}

absl::Status TableWriter::Finish() {
  ::shutdown(data_.get(), SHUT_WR);
  const std::string reply = ReadReply();
  End();
  if (reply == "done" && !broken_) return absl::OkStatus();
  const std::string why = reply.starts_with("error ") ? reply.substr(6) : "its writer was killed";
  const std::string message = absl::StrCat("cannot write the Parquet tables: ", why);
  // Python's text for ENOSPC and EDQUOT.
  const bool full = why.find("No space left") != std::string::npos ||
                    why.find("quota exceeded") != std::string::npos;
  return full ? absl::ResourceExhaustedError(message) : absl::InternalError(message);
}

}  // namespace syncline::parquet
