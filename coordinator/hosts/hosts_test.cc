// SPDX-License-Identifier: Apache-2.0
#include "coordinator/hosts/hosts.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::hosts {
namespace {

using testing::HasSubstr;

std::string ErrorOf(std::string_view text) {
  const auto nodes = ParseHosts(text, "hosts.txt");
  EXPECT_EQ(nodes.status().code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(nodes.status().message());
}

std::vector<std::string> NamesOf(std::string_view list) {
  const auto nodes = ParseHostList(list);
  EXPECT_TRUE(nodes.ok()) << nodes.status();
  std::vector<std::string> names;
  if (nodes.ok()) {
    for (const Node& node : *nodes) names.push_back(node.name);
  }
  return names;
}

TEST(Hosts, ReadsNamesAddressesPortsAndRoles) {
  const auto nodes = ParseHosts(
      "# the job\n"
      "\n"
      "master-0  10.77.0.1   role=master # the first\r\n"
      "\tworker-0 w0.example.org:7700 role=worker\n"
      "six [fe80::2]:99\n"
      "six-default [::1]\n"
      "here unix:/run/agent.sock",
      "hosts.txt");
  ASSERT_TRUE(nodes.ok()) << nodes.status();
  ASSERT_EQ(nodes->size(), 5u);
  EXPECT_EQ((*nodes)[0], (Node{"master-0", "10.77.0.1", 7611, "", "master"}));
  EXPECT_EQ((*nodes)[1], (Node{"worker-0", "w0.example.org", 7700, "", "worker"}));
  EXPECT_EQ((*nodes)[2].Address(), "[fe80::2]:99");
  EXPECT_EQ((*nodes)[3].Address(), "[::1]:7611");
  EXPECT_EQ((*nodes)[4].Address(), "unix:/run/agent.sock");
  EXPECT_TRUE((*nodes)[4].local());
}

TEST(Hosts, AByteOrderMarkIsNoPartOfAName) {
  const auto nodes = ParseHosts(
      "\xef\xbb\xbf"
      "a 10.0.0.1\n",
      "hosts.txt");
  ASSERT_TRUE(nodes.ok()) << nodes.status();
  EXPECT_EQ(nodes->front().name, "a");
}

TEST(Hosts, ErrorsNameFileLineAndReason) {
  EXPECT_THAT(ErrorOf("a 1.2.3.4\n\na 1.2.3.5\n"), HasSubstr("hosts.txt:3: node \"a\" is already"));
  EXPECT_THAT(ErrorOf("a 1.2.3.4\nb 1.2.3.4:7611\n"), HasSubstr("hosts.txt:2"));
  EXPECT_THAT(ErrorOf("# x\na\n"), HasSubstr("hosts.txt:2: node \"a\" has no address"));
  EXPECT_THAT(ErrorOf("a 1.2.3.4:0"), HasSubstr("port"));
  EXPECT_THAT(ErrorOf("a 1.2.3.4:65536"), HasSubstr("port"));
  EXPECT_THAT(ErrorOf("a 1.2.3.4:+1"), HasSubstr("port"));
  EXPECT_THAT(ErrorOf("a 1.2.3.4:"), HasSubstr("port"));
  EXPECT_THAT(ErrorOf("a :7611"), HasSubstr("host is missing"));
  EXPECT_THAT(ErrorOf("a fe80::2"), HasSubstr("brackets"));
  EXPECT_THAT(ErrorOf("a ::1"), HasSubstr("an IPv6 address needs brackets, [::1]"));
  EXPECT_THAT(ErrorOf("a [::1]:port"), HasSubstr("the port \"port\" is not a number"));
  EXPECT_THAT(ErrorOf("::1 role=x"), HasSubstr("\"::1\" is an address without a name"));
  EXPECT_THAT(ErrorOf("[::1]:7611"), HasSubstr("a line is `name address"));
  EXPECT_THAT(ErrorOf("a 1.2.3.4 role="), HasSubstr("\"role=\" of node \"a\" is empty"));
  EXPECT_THAT(ErrorOf("a 1.2.3.4 role=x role=y"), HasSubstr("has two roles"));
  EXPECT_THAT(ErrorOf("a [fe80::2"), HasSubstr("\"]\" is missing"));
  EXPECT_THAT(ErrorOf("a [host]:1"), HasSubstr("IPv6"));
  EXPECT_THAT(ErrorOf("a unix:relative"), HasSubstr("absolute"));
  EXPECT_THAT(ErrorOf("a 1.2.3.4 rank=3"), HasSubstr("rank=3"));
  EXPECT_THAT(ErrorOf("a/b 1.2.3.4"), HasSubstr("cannot be a node's name"));
  EXPECT_THAT(ErrorOf("coordinator 1.2.3.4"), HasSubstr("cannot be a node's name"));
  EXPECT_THAT(ErrorOf("# nothing\n"), HasSubstr("no nodes"));
}

TEST(Hosts, AHostThatGrpcWouldTakeForAKindOfAddressNeedsItsFullName) {
  for (const char* host : {"unix", "dns", "IPv4"}) {
    EXPECT_THAT(ErrorOf(std::string("n ") + host), HasSubstr("needs its full name")) << host;
    EXPECT_FALSE(ParseHostList(host).ok()) << host;
  }
  EXPECT_TRUE(ParseHosts("dns dns.example.org\nunix-1 unix-1:7611", "hosts.txt").ok());
}

TEST(Hosts, ExpandsListsAndRanges) {
  EXPECT_EQ(NamesOf("a,b"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(NamesOf("n[08-11], x"), (std::vector<std::string>{"n08", "n09", "n10", "n11", "x"}));
  EXPECT_EQ(NamesOf("r[1,3-4]-[1-2]"),
            (std::vector<std::string>{"r1-1", "r1-2", "r3-1", "r3-2", "r4-1", "r4-2"}));
  EXPECT_EQ(ParseHostList("a:99")->front().port, 99);
}

TEST(Hosts, BadListsAreRefused) {
  for (const char* bad : {"", ",", "n[1-", "n[3-1]", "n[a-b]", "n[1-2-3]", "n[0-99999999]", "a,a",
                          "[::1]", "n[]", "unix:/x", "n[0-9999][0-9999]"}) {
    EXPECT_FALSE(ParseHostList(bad).ok()) << bad;
  }
  EXPECT_THAT(std::string(ParseHostList("[::1]").status().message()), HasSubstr("hosts file"));
}

TEST(Hosts, SelectsFromAFile) {
  const auto all = ParseHosts("n1 10.0.0.1\nn2 10.0.0.2\nn3 10.0.0.3\n", "f");
  const auto some = SelectHosts(*all, "n[2-3]");
  ASSERT_TRUE(some.ok());
  ASSERT_EQ(some->size(), 2u);
  EXPECT_EQ((*some)[0].host, "10.0.0.2");
  EXPECT_EQ(SelectHosts(*all, "n9").status().code(), absl::StatusCode::kNotFound);
}

TEST(Hosts, AddressesRoundTrip) {
  for (const char* address : {"10.0.0.1:7611", "[fe80::2]:99", "unix:/run/a.sock", "h.org:1"}) {
    EXPECT_EQ(ParseAddress("n", address)->Address(), address);
  }
}

}  // namespace
}  // namespace syncline::hosts
