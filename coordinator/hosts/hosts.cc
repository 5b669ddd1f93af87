// SPDX-License-Identifier: Apache-2.0
#include "coordinator/hosts/hosts.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/status.h"
#include "common/text.h"
#include "coordinator/recording/recording.h"

namespace syncline::hosts {
namespace {

absl::Status BadAddress(std::string_view address, std::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("\"", AbslView(address), "\" is not an address: ", AbslView(why)));
}

absl::Status ParsePort(std::string_view text, std::string_view address, uint16_t* port) {
  uint32_t number = 0;
  const bool digits = !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
  if (!digits || !absl::SimpleAtoi(AbslView(text), &number) || number == 0 || number > 65535) {
    return BadAddress(
        address, absl::StrCat("the port \"", AbslView(text), "\" is not a number from 1 to 65535"));
  }
  *port = static_cast<uint16_t>(number);
  return absl::OkStatus();
}

bool IsHostCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == '_';
}

// Before a colon these say how gRPC reads what follows: "dns:7611" is no port of the host "dns".
bool IsSchemeOfGrpc(std::string_view host) {
  constexpr std::string_view kSchemes[] = {"dns",  "ipv4",          "ipv6",  "passthrough",
                                           "unix", "unix-abstract", "vsock", "xds"};
  return std::any_of(std::begin(kSchemes), std::end(kSchemes), [&](std::string_view scheme) {
    return absl::EqualsIgnoreCase(AbslView(host), AbslView(scheme));
  });
}

// host, host:port, [v6], [v6]:port, unix:/path
absl::Status ParseTarget(std::string_view address, Node* node) {
  constexpr std::string_view kUnix = "unix:";
  if (address.substr(0, kUnix.size()) == kUnix) {
    node->socket_path = address.substr(kUnix.size());
    if (node->socket_path.empty() || node->socket_path[0] != '/') {
      return BadAddress(address, "a Unix socket needs an absolute path, unix:/path");
    }
    return absl::OkStatus();
  }
  std::string_view port;
  if (!address.empty() && address.front() == '[') {
    const size_t close = address.find(']');
    if (close == std::string_view::npos) return BadAddress(address, "\"]\" is missing");
    node->host = address.substr(1, close - 1);
    const bool v6 = node->host.find(':') != std::string::npos &&
                    std::all_of(node->host.begin(), node->host.end(),
                                [](char c) { return IsHostCharacter(c) || c == ':' || c == '%'; });
    if (!v6) return BadAddress(address, "brackets are for IPv6 addresses, [fe80::2]:7611");
    const std::string_view rest = address.substr(close + 1);
    if (rest.empty()) return absl::OkStatus();
    if (rest.front() != ':') return BadAddress(address, "only \":port\" may follow \"]\"");
    return ParsePort(rest.substr(1), address, &node->port);
  }
  const size_t colon = address.find(':');
  if (colon != std::string_view::npos && address.find(':', colon + 1) != std::string_view::npos) {
    return BadAddress(address, absl::StrCat("an IPv6 address needs brackets, [", AbslView(address),
                                            "] or [fe80::2]:7611"));
  }
  node->host = address.substr(0, colon);
  if (node->host.empty()) return BadAddress(address, "the host is missing");
  if (!std::all_of(node->host.begin(), node->host.end(), IsHostCharacter)) {
    return BadAddress(address, "it is neither a DNS name nor an IP address");
  }
  if (IsSchemeOfGrpc(node->host)) {
    return BadAddress(
        address, absl::StrCat("a host \"", node->host, "\" needs its full name, as in ", node->host,
                              ".example.org, or its IP address"));
  }
  if (colon == std::string_view::npos) return absl::OkStatus();
  port = address.substr(colon + 1);
  return ParsePort(port, address, &node->port);
}

absl::Status ParseLine(const std::vector<std::string_view>& words, Node* node) {
  if (words[0].find(':') != std::string_view::npos) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", AbslView(words[0]), "\" is an address without a name before it; a line is ",
        "`name address[:port] [role=...]`"));
  }
  SYNCLINE_RETURN_IF_ERROR(recording::CheckNodeName(words[0]));
  node->name = words[0];
  if (words.size() < 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        "node \"", node->name, "\" has no address; a line is `name address[:port] [role=...]`"));
  }
  SYNCLINE_RETURN_IF_ERROR(ParseTarget(words[1], node));
  for (size_t i = 2; i < words.size(); ++i) {
    constexpr std::string_view kRole = "role=";
    if (words[i].substr(0, kRole.size()) != kRole) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", AbslView(words[i]), "\" is not understood; only role=... may follow ",
                       "the address"));
    }
    if (!node->role.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("node \"", node->name, "\" has two roles; remove one of role=", node->role,
                       " and ", AbslView(words[i])));
    }
    node->role = words[i].substr(kRole.size());
    if (node->role.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "\"role=\" of node \"", node->name, "\" is empty; give a role (role=worker) or omit it"));
    }
  }
  return absl::OkStatus();
}

// "node[01-16,20]x" -> node01x ... node16x, node20x. Appends the names to `names`.
absl::Status ExpandRange(std::string_view item, std::vector<std::string>* names) {
  const size_t open = item.find('[');
  if (open == std::string_view::npos) {
    names->emplace_back(item);
    return absl::OkStatus();
  }
  const auto refuse = [&](std::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("\"", AbslView(item), "\": ", AbslView(why)));
  };
  const size_t close = item.find(']', open);
  if (close == std::string_view::npos) return refuse("\"]\" is missing");
  const std::string_view inside = item.substr(open + 1, close - open - 1);
  if (inside.find(':') != std::string_view::npos) {
    return refuse("an IPv6 address needs a name: put it into a hosts file (--hosts FILE)");
  }
  for (absl::string_view part : absl::StrSplit(AbslView(inside), ',')) {
    const std::vector<std::string> ends = absl::StrSplit(part, '-');
    uint64_t first = 0;
    uint64_t last = 0;
    if (ends.size() > 2 || !absl::SimpleAtoi(ends.front(), &first) ||
        !absl::SimpleAtoi(ends.back(), &last)) {
      return refuse("a range is [01-16] or [1,2,7-9]");
    }
    if (last < first) return refuse("the range ends before it begins");
    if (last - first >= kNodesMax || names->size() + (last - first) >= kNodesMax) {
      return refuse(absl::StrCat("more than ", kNodesMax, " nodes"));
    }
    for (uint64_t number = first; number <= last; ++number) {
      const std::string digits = absl::StrFormat("%0*d", ends.front().size(), number);
      const std::string name =
          absl::StrCat(AbslView(item.substr(0, open)), digits, AbslView(item.substr(close + 1)));
      SYNCLINE_RETURN_IF_ERROR(ExpandRange(name, names));
    }
  }
  return absl::OkStatus();
}

// Splits at commas outside brackets, then expands the ranges.
absl::StatusOr<std::vector<std::string>> ExpandList(std::string_view list) {
  std::vector<std::string> names;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && list[i] == '[') ++depth;
    if (i < list.size() && list[i] == ']') --depth;
    if (i < list.size() && (list[i] != ',' || depth > 0)) continue;
    const std::string_view item =
        StdView(absl::StripAsciiWhitespace(AbslView(list.substr(begin, i - begin))));
    if (!item.empty()) SYNCLINE_RETURN_IF_ERROR(ExpandRange(item, &names));
    begin = i + 1;
  }
  if (names.empty()) return absl::InvalidArgumentError("The list of hosts is empty");
  return names;
}

}  // namespace

std::string Node::Address() const {
  if (local()) return absl::StrCat("unix:", socket_path);
  if (host.find(':') != std::string::npos) return absl::StrCat("[", host, "]:", port);
  return absl::StrCat(host, ":", port);
}

absl::StatusOr<std::vector<Node>> ParseHosts(std::string_view text, std::string_view file_name) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // as Windows' editors begin files
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  std::vector<Node> nodes;
  std::map<std::string, int> line_of_name;
  std::map<std::string, std::string> name_of_address;
  int line_number = 0;
  for (absl::string_view line : absl::StrSplit(AbslView(text), '\n')) {
    ++line_number;
    const auto refuse = [&](const absl::Status& status) {
      return WithContext(status, absl::StrCat(AbslView(file_name), ":", line_number));
    };
    line = line.substr(0, line.find('#'));
    std::vector<std::string_view> words;
    for (absl::string_view word : absl::StrSplit(line, absl::ByAnyChar(" \t\r\v\f"))) {
      if (!word.empty()) words.push_back(StdView(word));
    }
    if (words.empty()) continue;
    Node node;
    if (const absl::Status parsed = ParseLine(words, &node); !parsed.ok()) return refuse(parsed);
    const auto [same_name, new_name] = line_of_name.emplace(node.name, line_number);
    if (!new_name) {
      return refuse(absl::InvalidArgumentError(
          absl::StrCat("node \"", node.name, "\" is already in line ", same_name->second,
                       "; every node needs a name of its own")));
    }
    const auto [same_address, new_address] = name_of_address.emplace(node.Address(), node.name);
    if (!new_address) {
      return refuse(absl::InvalidArgumentError(
          absl::StrCat("node \"", node.name, "\" has the address of \"", same_address->second,
                       "\"; one agent is one node")));
    }
    if (nodes.size() >= kNodesMax) {
      return refuse(absl::InvalidArgumentError(absl::StrCat("more than ", kNodesMax, " nodes")));
    }
    nodes.push_back(std::move(node));
  }
  if (nodes.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        AbslView(file_name), ": no nodes; a line is `name address[:port] [role=...]`"));
  }
  return nodes;
}

absl::StatusOr<std::vector<Node>> ParseHostList(std::string_view list) {
  SYNCLINE_ASSIGN_OR_RETURN(const std::vector<std::string> items, ExpandList(list));
  std::vector<Node> nodes;
  std::map<std::string, bool> seen;
  for (const std::string& item : items) {
    Node node;
    SYNCLINE_RETURN_IF_ERROR(ParseTarget(item, &node));
    if (node.local()) {
      return BadAddress(item, "a Unix socket needs a name: put it into a hosts file");
    }
    node.name = node.host;
    SYNCLINE_RETURN_IF_ERROR(recording::CheckNodeName(node.name));
    if (!seen.emplace(node.name, true).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "\"", node.name, "\" is named twice; several agents of one machine need names of ",
          "their own, in a hosts file (--hosts FILE)"));
    }
    nodes.push_back(std::move(node));
  }
  return nodes;
}

absl::StatusOr<std::vector<Node>> SelectHosts(const std::vector<Node>& all, std::string_view list) {
  SYNCLINE_ASSIGN_OR_RETURN(const std::vector<std::string> names, ExpandList(list));
  std::vector<Node> selected;
  for (const std::string& name : names) {
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const Node& node) { return node.name == name; });
    if (found == all.end()) {
      return absl::NotFoundError(absl::StrCat("no node \"", name, "\" in it"));
    }
    if (std::find(selected.begin(), selected.end(), *found) == selected.end()) {
      selected.push_back(*found);
    }
  }
  return selected;
}

absl::StatusOr<Node> ParseAddress(std::string_view name, std::string_view address) {
  Node node;
  SYNCLINE_RETURN_IF_ERROR(recording::CheckNodeName(name));
  node.name = name;
  SYNCLINE_RETURN_IF_ERROR(ParseTarget(address, &node));
  return node;
}

}  // namespace syncline::hosts
