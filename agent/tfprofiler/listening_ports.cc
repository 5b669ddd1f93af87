// SPDX-License-Identifier: Apache-2.0
#include "agent/tfprofiler/listening_ports.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "agent/host/proc_links.h"
#include "common/files.h"
#include "common/text.h"

namespace syncline::agent {
namespace {

constexpr uint64_t kProcFileBytesMax = 32 << 20;
constexpr absl::string_view kStateListen = "0A";
constexpr size_t kWordDigits = 8;  // the kernel prints addresses as 32-bit words in its own order
constexpr std::string_view kCollectiveThread = "collective_ops\n";  // of TensorFlow's own naming
constexpr std::array<const char*, 2> kLibraries = {"libtensorflow", "_pywrap_tensorflow"};
// jaxlib's, by version.
constexpr std::array<const char*, 3> kJaxLibraries = {"/jaxlib/libjax_", "/jaxlib/_jax.",
                                                      "/jaxlib/xla_extension"};

std::optional<uint32_t> ParseHex(absl::string_view digits) {
  uint32_t value = 0;
  if (!absl::SimpleHexAtoi(digits, &value)) return std::nullopt;
  return value;
}

// "0100007F" or four such words; empty: not an address.
std::string ParseAddress(absl::string_view digits) {
  std::array<uint32_t, 4> words{};
  const size_t count = digits.size() / kWordDigits;
  if (digits.size() % kWordDigits != 0 || (count != 1 && count != 4)) return "";
  for (size_t i = 0; i < count; ++i) {
    const auto word = ParseHex(digits.substr(i * kWordDigits, kWordDigits));
    if (!word.has_value()) return "";
    words[i] = *word;
  }
  char text[INET6_ADDRSTRLEN] = "";
  return ::inet_ntop(count == 1 ? AF_INET : AF_INET6, words.data(), text, sizeof text) == nullptr
             ? ""
             : text;
}

std::optional<ListeningSocket> ParseTcpLine(absl::string_view line) {
  // sl local remote state queues timer retransmits uid timeout inode ...
  const std::vector<absl::string_view> fields = absl::StrSplit(line, ' ', absl::SkipEmpty());
  if (fields.size() < 10 || fields[3] != kStateListen) return std::nullopt;
  const std::pair<absl::string_view, absl::string_view> local =
      absl::StrSplit(fields[1], absl::MaxSplits(':', 1));
  ListeningSocket socket;
  socket.address = ParseAddress(local.first);
  const auto port = ParseHex(local.second);
  if (socket.address.empty() || !port.has_value() || *port == 0 || *port > 0xffff) {
    return std::nullopt;
  }
  socket.port = static_cast<uint16_t>(*port);
  if (!absl::SimpleAtoi(fields[9], &socket.inode)) return std::nullopt;
  return socket;
}

enum class Framework : uint8_t { kNone, kTensorFlow, kJax };

Framework FrameworkOf(const std::filesystem::path& directory) {
  const auto maps = ReadFile(directory / "maps", kProcFileBytesMax);
  if (!maps.ok()) return Framework::kNone;
  const auto has = [&](const char* library) { return maps->find(library) != std::string::npos; };
  if (std::any_of(kLibraries.begin(), kLibraries.end(), has)) return Framework::kTensorFlow;
  if (std::any_of(kJaxLibraries.begin(), kJaxLibraries.end(), has)) return Framework::kJax;
  return Framework::kNone;
}

bool RunsCollectives(const std::filesystem::path& directory) {
  std::error_code error;
  for (std::filesystem::directory_iterator it(directory / "task", error), end; !error && it != end;
       it.increment(error)) {
    const auto name = ReadFile(it->path() / "comm", kProcFileBytesMax);
    if (name.ok() && *name == kCollectiveThread) return true;
  }
  return false;
}

std::vector<ListeningSocket> SocketsOf(const std::filesystem::path& proc, int32_t pid) {
  const std::set<uint64_t> open = OpenSockets(proc, pid);
  std::vector<ListeningSocket> sockets;
  if (open.empty()) return sockets;
  for (const char* table : {"net/tcp", "net/tcp6"}) {
    const auto text = ReadFile(proc / std::to_string(pid) / table, kProcFileBytesMax);
    if (!text.ok()) continue;
    for (ListeningSocket& socket : ParseTcpTable(*text)) {
      if (open.count(socket.inode) != 0) sockets.push_back(std::move(socket));
    }
  }
  return sockets;
}

}  // namespace

std::vector<ListeningSocket> ParseTcpTable(std::string_view text) {
  std::vector<ListeningSocket> sockets;
  for (absl::string_view line : absl::StrSplit(AbslView(text), '\n')) {
    if (auto socket = ParseTcpLine(line)) sockets.push_back(*std::move(socket));
  }
  return sockets;
}

std::vector<TensorFlowProcess> FindTensorFlow(const std::filesystem::path& proc,
                                              uint32_t only_uid) {
  std::vector<TensorFlowProcess> found;
  std::map<uint64_t, uint64_t> oldest;  // socket -> start of the oldest process that has it
  auto processes = ListProcesses(proc).value_or(std::vector<ProcessEntry>());
  for (ProcessEntry& entry : processes) {
    if (only_uid != 0 && entry.uid != only_uid) continue;
    const std::filesystem::path directory = proc / std::to_string(entry.pid);
    const Framework framework = FrameworkOf(directory);
    if (framework == Framework::kNone) continue;
    TensorFlowProcess process;
    process.jax = framework == Framework::kJax;
    process.net_namespace = NetNamespaceOf(proc, entry.pid);
    process.sockets = SocketsOf(proc, entry.pid);
    process.runs_collectives = RunsCollectives(directory);
    for (const ListeningSocket& socket : process.sockets) {
      const auto [it, first] = oldest.emplace(socket.inode, entry.start_ticks);
      it->second = std::min(it->second, entry.start_ticks);
    }
    process.entry = std::move(entry);
    found.push_back(std::move(process));
  }
  const auto only_inherited = [&oldest](TensorFlowProcess& process) {
    const bool listened = !process.sockets.empty();
    std::erase_if(process.sockets, [&](const ListeningSocket& socket) {
      return oldest[socket.inode] < process.entry.start_ticks;
    });
    return listened && process.sockets.empty();
  };
  std::erase_if(found, only_inherited);
  return found;
}

}  // namespace syncline::agent
