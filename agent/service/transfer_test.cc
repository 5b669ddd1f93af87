// SPDX-License-Identifier: Apache-2.0
// What crosses the wire, without a wire: fetch streams, peer roles, how many clock exchanges run.
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "agent/service/clock_streams.h"
#include "agent/service/fetch_stream.h"
#include "agent/service/peer_role.h"
#include "common/checksum.h"
#include "common/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::agent {
namespace {

// A certificate with these attributes of the subject; its key and signature do not matter here.
std::string Pem(const std::vector<std::pair<const char*, const char*>>& subject) {
  X509* certificate = X509_new();
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509_NAME* name = X509_get_subject_name(certificate);
  for (const auto& [field, value] : subject) {
    X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(value), -1, -1, 0);
  }
  X509_set_pubkey(certificate, key);
  X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
  X509_sign(certificate, key, EVP_sha256());
  BIO* bio = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(bio, certificate);
  char* text = nullptr;
  const long length = BIO_get_mem_data(bio, &text);
  std::string pem(text, static_cast<size_t>(length));
  BIO_free(bio);
  EVP_PKEY_free(key);
  X509_free(certificate);
  return pem;
}

TEST(PeerOfCertificate, ReadsTheRole) {
  const Peer ann =
      PeerOfCertificate(Pem({{"O", "Syncline"}, {"OU", "syncline operator"}, {"CN", "ann"}}));
  EXPECT_EQ(ann.role, PeerRole::kOperator);
  EXPECT_EQ(ann.name, "ann");
  EXPECT_EQ(PeerOfCertificate(Pem({{"O", "Syncline"}, {"OU", "syncline node"}})).role,
            PeerRole::kNode);
}

TEST(PeerOfCertificate, AnythingElseHasNoRole) {
  for (const std::string& pem :
       {std::string(), std::string("garbage"), Pem({{"CN", "syncline operator"}}),
        Pem({{"O", "Evil"}, {"OU", "syncline operator"}}),
        Pem({{"O", "Syncline"}, {"OU", "syncline operator "}}),
        Pem({{"O", "Syncline"}, {"OU", "syncline node"}, {"OU", "syncline operator"}}),
        std::string(100'000, 'x')}) {
    EXPECT_EQ(PeerOfCertificate(pem).role, PeerRole::kNone);
  }
}

std::vector<ClockStreams::Stream> BeginAll(ClockStreams* streams, const Peer& peer, int count) {
  std::vector<ClockStreams::Stream> running;
  for (int i = 0; i < count; ++i) {
    if (auto stream = streams->Begin(peer)) running.push_back(*std::move(stream));
  }
  return running;
}

TEST(ClockStreams, NoNodeKeepsTheCoordinatorsOut) {
  ClockStreams streams;
  const Peer node = {.role = PeerRole::kNode, .name = "n1"};
  const auto held = BeginAll(&streams, node, 100);
  EXPECT_EQ(std::ssize(held), ClockStreams::kOneNodeMax);
  EXPECT_TRUE(streams.Begin({.role = PeerRole::kNode, .name = "n2"}).has_value());
  EXPECT_TRUE(streams.Begin({.role = PeerRole::kOperator, .name = "ann"}).has_value());
  std::vector<std::vector<ClockStreams::Stream>> of_all;
  for (int i = 2; i < 100; ++i) {
    of_all.push_back(
        BeginAll(&streams, {.role = PeerRole::kNode, .name = "n" + std::to_string(i)}, 100));
  }
  EXPECT_FALSE(streams.Begin({.role = PeerRole::kNode, .name = "n100"}).has_value());
  const auto operators = BeginAll(&streams, {.role = PeerRole::kOperator, .name = "ann"}, 100);
  EXPECT_EQ(std::ssize(operators), ClockStreams::kOperatorsMax);
}

TEST(ClockStreams, AnEndMakesRoom) {
  ClockStreams streams;
  const Peer node = {.role = PeerRole::kNode, .name = "n1"};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(std::ssize(BeginAll(&streams, node, 100)), ClockStreams::kOneNodeMax);
  }
}

class StreamRecordingTest : public testing::Test {
 protected:
  StreamRecordingTest() {
    std::string pattern = testing::TempDir() + "fetch-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    Put("trace/ust/uid/0/64-bit/syncline_0", std::string(700'000, 'a') + "end");
    Put("trace/empty", "");
    Put("node.json", "{}");
    Put("journal", "secret");
    std::filesystem::create_symlink("/etc/passwd", root_ / "trace/link");
  }
  ~StreamRecordingTest() override { std::filesystem::remove_all(root_); }
  void Put(const std::string& path, const std::string& bytes) {
    std::filesystem::create_directories((root_ / path).parent_path());
    ASSERT_TRUE(WriteFileAtomically(root_ / path, bytes).ok());
  }
  // Collects what is written, as a coordinator would.
  absl::Status Fetch(const v1::FetchRequest& request) {
    return StreamRecording(root_, request, [this](const v1::FetchChunk& chunk) {
      if (chunk.has_list()) {
        for (const auto& file : chunk.list().files()) listed_.push_back(file.path());
      }
      if (chunk.has_data()) {
        const v1::FileData& data = chunk.data();
        EXPECT_EQ(data.crc32c(), Crc32c(data.data()));
        EXPECT_LE(data.data().size(), 1u << 20);
        first_offset_.emplace(data.path(), data.offset_bytes());
        bytes_[data.path()] += data.data();
      }
      if (chunk.has_end()) ends_[chunk.end().path()] = chunk.end().sha256();
      return true;
    });
  }

  std::filesystem::path root_;
  std::vector<std::string> listed_;
  std::map<std::string, std::string> bytes_;
  std::map<std::string, uint64_t> first_offset_;
  std::map<std::string, std::string> ends_;
};

constexpr const char* kStream = "trace/ust/uid/0/64-bit/syncline_0";

TEST_F(StreamRecordingTest, EveryFileOfTheRecordingAndNoOther) {
  ASSERT_TRUE(Fetch({}).ok());
  EXPECT_THAT(listed_, testing::ElementsAre("node.json", "trace/empty", kStream));
  EXPECT_EQ(bytes_[kStream], std::string(700'000, 'a') + "end");
  EXPECT_EQ(ends_.size(), 3u);
  EXPECT_EQ(ends_["node.json"].size(), 32u);
}

TEST_F(StreamRecordingTest, GoesOnWhereItBrokeOffWithTheDigestOfTheWhole) {
  ASSERT_TRUE(Fetch({}).ok());
  const std::string whole_digest = ends_[kStream];
  bytes_.clear();
  first_offset_.clear();
  v1::FetchRequest request;
  v1::FetchResume& resume = *request.add_resume();
  resume.set_path(kStream);
  resume.set_offset_bytes(700'000);
  ASSERT_TRUE(Fetch(request).ok());
  EXPECT_EQ(first_offset_[kStream], 700'000u);
  EXPECT_EQ(bytes_[kStream], "end");
  EXPECT_EQ(ends_[kStream], whole_digest);
}

TEST_F(StreamRecordingTest, RefusesPlacesThatAreNotThere) {
  for (const auto& [path, offset] : std::map<std::string, uint64_t>{
           {"journal", 0}, {"../x", 0}, {"node.json", 3}, {"trace/link", 0}}) {
    v1::FetchRequest request;
    request.add_resume()->set_path(path);
    request.mutable_resume(0)->set_offset_bytes(offset);
    EXPECT_EQ(Fetch(request).code(), absl::StatusCode::kInvalidArgument) << path;
  }
  EXPECT_TRUE(listed_.empty());
}

TEST_F(StreamRecordingTest, EndsWhenNobodyListens) {
  int chunks = 0;
  const absl::Status status =
      StreamRecording(root_, {}, [&](const v1::FetchChunk&) { return ++chunks < 3; });
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(chunks, 3);
}

}  // namespace
}  // namespace syncline::agent
