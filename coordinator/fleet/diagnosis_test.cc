// SPDX-License-Identifier: Apache-2.0
// The handshake against a server on the other end of a socket pair: no network, no clock but
// OpenSSL's own, so times are set through the certificates.
#include "coordinator/fleet/diagnosis.h"

#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <thread>

#include "coordinator/certs/openssl_types.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::fleet {
namespace {

using certs::Role;
using testing::HasSubstr;

constexpr int64_t kDay = 24 * 3600;

certs::KeyPair IssueAt(const certs::KeyPair& authority, const certs::Subject& subject,
                       int64_t now) {
  certs::KeyPair pair;
  pair.key = *certs::MakeKey();
  pair.certificate = *certs::IssueCertificate(authority, pair.key, subject, now);
  return pair;
}

class Diagnosis : public testing::Test {
 protected:
  void SetUp() override {
    // A Unix socket raises it where TCP only fails later.
    std::signal(SIGPIPE, SIG_IGN);
    server_time_ = now_;
    authority_ = *certs::MakeAuthority(now_ - 1000 * kDay);
    UseOperator(IssueAt(authority_, {Role::kOperator, "operator", ""}, now_));
    UseNode(IssueAt(authority_, {Role::kNode, "n1", ""}, now_));
    server_trusts_ = authority_.certificate;
  }
  void UseOperator(const certs::KeyPair& pair) {
    credentials_.authority = authority_.certificate;
    credentials_.certificate = pair.certificate;
    credentials_.key = pair.key;
  }
  void UseNode(const certs::KeyPair& pair) { node_pair_ = pair; }

  // What the diagnosis says of a server that shows `node_pair_` and trusts `server_trusts_`.
  std::string Message() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    std::thread server([this, fd = ends[1]] { Serve(fd); });
    const absl::Status status =
        DiagnoseHandshake(ends[0], {"n1", "10.0.0.1"}, credentials_, {.now_unix_s = now_});
    ::close(ends[0]);
    server.join();
    return status.ok() ? "" : std::string(status.message());
  }

  void Serve(int fd) {
    const certs::UniqueTlsContext context(SSL_CTX_new(TLS_server_method()));
    SSL_CTX_use_certificate(context.get(), certs::ParseCertificate(node_pair_.certificate).get());
    SSL_CTX_use_PrivateKey(context.get(), certs::ParseKey(node_pair_.key).get());
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()),
                        certs::ParseCertificate(server_trusts_).get());
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    X509_VERIFY_PARAM_set_time(SSL_CTX_get0_param(context.get()), server_time_);
    const certs::UniqueTls tls(SSL_new(context.get()));
    SSL_set_fd(tls.get(), fd);
    if (SSL_accept(tls.get()) == 1 && !hangs_up_) SSL_write(tls.get(), "x", 1);
    ::close(fd);
  }

  const int64_t now_ = 1'795'000'000;  // 2026-11-18
  int64_t server_time_ = 0;
  bool hangs_up_ = false;  // as gRPC does: refuses us without an alert
  certs::KeyPair authority_;
  certs::KeyPair node_pair_;
  certs::Credentials credentials_;
  std::string server_trusts_;
};

TEST_F(Diagnosis, NothingIsWrong) { EXPECT_EQ(Message(), ""); }

TEST_F(Diagnosis, TheNodesCertificateHasExpired) {
  UseNode(IssueAt(authority_, {Role::kNode, "n1", ""}, now_ - 900 * kDay));
  EXPECT_THAT(Message(), HasSubstr("its certificate has expired"));
}

TEST_F(Diagnosis, TheNodesCertificateIsNotYetValid) {
  UseNode(IssueAt(authority_, {Role::kNode, "n1", ""}, now_ + 5 * kDay));
  EXPECT_THAT(Message(), HasSubstr("its certificate is not yet valid"));
}

TEST_F(Diagnosis, TheNodesClockIsTwoDaysSlow) {
  server_time_ = now_ - 2 * kDay;
  EXPECT_THAT(Message(), HasSubstr("the node's clock is slow"));
}

TEST_F(Diagnosis, TheNodesClockIsYearsFast) {
  server_time_ = now_ + 1000 * kDay;
  EXPECT_THAT(Message(), HasSubstr("the node's clock is fast"));
}

TEST_F(Diagnosis, TheNodeIsOfAnotherFleet) {
  UseNode(IssueAt(*certs::MakeAuthority(now_), {Role::kNode, "n1", ""}, now_));
  EXPECT_THAT(Message(), HasSubstr("another authority"));
}

TEST_F(Diagnosis, WeAreOfAnotherFleet) {
  server_trusts_ = certs::MakeAuthority(now_)->certificate;
  EXPECT_THAT(Message(), HasSubstr("does not know the authority"));
}

TEST_F(Diagnosis, AnotherNodeAnswers) {
  UseNode(IssueAt(authority_, {Role::kNode, "n2", ""}, now_));
  EXPECT_THAT(Message(), HasSubstr("is for \"n2\", not for \"n1\""));
}

TEST_F(Diagnosis, AnOperatorsCertificateServes) {
  UseNode(IssueAt(authority_, {Role::kOperator, "n1", ""}, now_));
  EXPECT_THAT(Message(), HasSubstr("wrong role"));
}

TEST_F(Diagnosis, SomethingElseListens) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  ASSERT_EQ(::write(ends[1], "HTTP/1.1 400 Bad Request\r\n\r\n", 28), 28);
  const absl::Status status =
      DiagnoseHandshake(ends[0], {"n1", "10.0.0.1"}, credentials_, {.now_unix_s = now_});
  EXPECT_THAT(std::string(status.message()), HasSubstr("does not speak TLS"));
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(Diagnosis, AConnectionThatIsClosedAtOnce) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  ::shutdown(ends[1], SHUT_WR);
  const absl::Status status =
      DiagnoseHandshake(ends[0], {"n1", "10.0.0.1"}, credentials_, {.now_unix_s = now_});
  EXPECT_THAT(std::string(status.message()), HasSubstr("closes them"));
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(Diagnosis, TheNodeHangsUpOnSeeingOurCertificate) {
  hangs_up_ = true;
  EXPECT_THAT(Message(), HasSubstr("closes the connection after receiving our certificate"));
}

TEST_F(Diagnosis, ALocalSocketThatIsNotThere) {
  hosts::Node node{"n1"};
  node.socket_path = testing::TempDir() + "/no-such-agent.sock";
  const absl::Status status = Diagnose(node, credentials_, {.now_unix_s = now_});
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("is the agent running"));
}

}  // namespace
}  // namespace syncline::fleet
