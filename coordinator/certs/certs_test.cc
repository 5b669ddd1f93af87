// SPDX-License-Identifier: Apache-2.0
#include "coordinator/certs/certs.h"

#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <string>

#include "common/files.h"
#include "coordinator/certs/openssl_types.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::certs {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr int64_t kNow = 1'795'000'000;  // 2026-11-18
constexpr int64_t kDay = 24 * 3600;

// X509_V_OK, or why `certificate` is refused at `time` for `purpose`.
int Verify(const std::string& authority, const std::string& certificate, int64_t time,
           int purpose) {
  const UniqueCertificate root = ParseCertificate(authority);
  const UniqueCertificate leaf = ParseCertificate(certificate);
  const UniqueStore store(X509_STORE_new());
  X509_STORE_add_cert(store.get(), root.get());
  const UniqueStoreContext context(X509_STORE_CTX_new());
  X509_STORE_CTX_init(context.get(), store.get(), leaf.get(), nullptr);
  X509_VERIFY_PARAM_set_time(X509_STORE_CTX_get0_param(context.get()), time);
  X509_STORE_CTX_set_purpose(context.get(), purpose);
  X509_verify_cert(context.get());
  return X509_STORE_CTX_get_error(context.get());
}

unsigned ModeOf(const fs::path& path) {
  struct stat info = {};
  EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
  return info.st_mode & 0777;
}

std::string Slurp(const fs::path& path) {
  const auto text = ReadFile(path);
  EXPECT_TRUE(text.ok()) << text.status();
  return text.ok() ? *text : "";
}

class Certs : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::path(testing::TempDir()) /
                 (std::string("syncline_certs_") +
                  testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }

  void Init(std::vector<Subject> nodes) {
    const auto made = InitFleet(directory_, nodes, kNow);
    ASSERT_TRUE(made.ok()) << made.status();
  }
  fs::path directory_;
};

TEST_F(Certs, NodesAndOperatorsVerifyInTheirRolesOnly) {
  Init({{Role::kNode, "n1", "10.0.0.1"}});
  const std::string authority = Slurp(directory_ / "ca.pem");
  const std::string node = Slurp(directory_ / "nodes/n1/node.pem");
  const std::string person = Slurp(directory_ / "operator/operator.pem");
  EXPECT_EQ(Verify(authority, node, kNow, X509_PURPOSE_SSL_SERVER), X509_V_OK);
  EXPECT_EQ(Verify(authority, node, kNow, X509_PURPOSE_SSL_CLIENT), X509_V_OK);
  EXPECT_EQ(Verify(authority, person, kNow, X509_PURPOSE_SSL_CLIENT), X509_V_OK);
  EXPECT_EQ(Verify(authority, person, kNow, X509_PURPOSE_SSL_SERVER), X509_V_ERR_INVALID_PURPOSE);
  EXPECT_EQ(Describe(node)->unit, kNodeUnit);
  EXPECT_EQ(Describe(node)->name, "n1");
  EXPECT_EQ(Describe(person)->unit, kOperatorUnit);
}

TEST_F(Certs, AreBackDatedByADayAndEnd) {
  Init({{Role::kNode, "n1", "h"}});
  const std::string authority = Slurp(directory_ / "ca.pem");
  const std::string node = Slurp(directory_ / "nodes/n1/node.pem");
  const auto at = [&](int64_t time) {
    return Verify(authority, node, time, X509_PURPOSE_SSL_SERVER);
  };
  EXPECT_EQ(at(kNow - kDay + 1), X509_V_OK);
  EXPECT_EQ(at(kNow - 2 * kDay), X509_V_ERR_CERT_NOT_YET_VALID);
  EXPECT_EQ(at(kNow + (kLeafDays - 1) * kDay), X509_V_OK);
  EXPECT_EQ(at(kNow + (kLeafDays + 1) * kDay), X509_V_ERR_CERT_HAS_EXPIRED);
}

TEST_F(Certs, TheNameIsInTheCertificateAndAnIpAddressToo) {
  Init({{Role::kNode, "n1", "10.0.0.1"}, {Role::kNode, "n2", "fe80::2"}, {Role::kNode, "n3", "h"}});
  const auto leaf = [&](const char* name) {
    return ParseCertificate(Slurp(directory_ / "nodes" / name / "node.pem"));
  };
  EXPECT_EQ(X509_check_host(leaf("n1").get(), "n1", 0, 0, nullptr), 1);
  EXPECT_EQ(X509_check_host(leaf("n1").get(), "n2", 0, 0, nullptr), 0);
  EXPECT_EQ(X509_check_ip_asc(leaf("n1").get(), "10.0.0.1", 0), 1);
  EXPECT_EQ(X509_check_ip_asc(leaf("n2").get(), "fe80::2", 0), 1);
  const UniqueCertificate person = ParseCertificate(Slurp(directory_ / "operator/operator.pem"));
  EXPECT_EQ(
      X509_check_host(person.get(), "operator", 0, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, nullptr),
      0);
}

TEST_F(Certs, KeysAreSecret) {
  Init({{Role::kNode, "n1", "h"}});
  EXPECT_EQ(ModeOf(directory_ / "ca.key"), 0600u);
  EXPECT_EQ(ModeOf(directory_ / "nodes/n1/node.key"), 0600u);
  EXPECT_EQ(ModeOf(directory_ / "operator/operator.key"), 0600u);
  EXPECT_FALSE(fs::exists(directory_ / "nodes/n1/ca.key"));
}

TEST_F(Certs, ASecondInitKeepsEverythingAndMakesWhatIsMissing) {
  Init({{Role::kNode, "n1", "h"}});
  const std::string authority = Slurp(directory_ / "ca.pem");
  const std::string key = Slurp(directory_ / "nodes/n1/node.key");
  const std::string certificate = Slurp(directory_ / "nodes/n1/node.pem");
  const auto again =
      InitFleet(directory_, {{Role::kNode, "n1", "h"}, {Role::kNode, "n2", "h"}}, kNow + 100);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ((*again)[1].action, Result::Action::kKept);
  EXPECT_EQ((*again)[2].action, Result::Action::kCreated);
  EXPECT_EQ(Slurp(directory_ / "ca.pem"), authority);
  EXPECT_EQ(Slurp(directory_ / "nodes/n1/node.key"), key);
  EXPECT_EQ(Slurp(directory_ / "nodes/n1/node.pem"), certificate);
  fs::remove(directory_ / "nodes/n1/node.pem");
  Init({{Role::kNode, "n1", "h"}});
  EXPECT_EQ(Slurp(directory_ / "nodes/n1/node.key"), key);
  EXPECT_EQ(
      Verify(authority, Slurp(directory_ / "nodes/n1/node.pem"), kNow, X509_PURPOSE_SSL_SERVER),
      X509_V_OK);
}

TEST_F(Certs, IssueRenewsForTheSameKey) {
  Init({{Role::kNode, "n1", "h"}});
  const std::string key = Slurp(directory_ / "nodes/n1/node.key");
  const auto renewed = Issue(directory_, {Role::kNode, "n1", "h"}, kNow + 800 * kDay);
  ASSERT_TRUE(renewed.ok()) << renewed.status();
  EXPECT_EQ(renewed->action, Result::Action::kRenewed);
  EXPECT_EQ(Slurp(directory_ / "nodes/n1/node.key"), key);
  EXPECT_EQ(Verify(Slurp(directory_ / "ca.pem"), Slurp(directory_ / "nodes/n1/node.pem"),
                   kNow + 1500 * kDay, X509_PURPOSE_SSL_SERVER),
            X509_V_OK);
}

TEST_F(Certs, WithoutTheAuthoritysKeyNothingIsIssued) {
  EXPECT_THAT(std::string(Issue(directory_, {Role::kNode, "n", ""}, kNow).status().message()),
              HasSubstr("certs init"));
  Init({});
  fs::remove(directory_ / "ca.key");
  const auto refused = InitFleet(directory_, {}, kNow);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("only one of"));
}

TEST_F(Certs, ACertificateOfAnotherFleetIsNoticed) {
  Init({{Role::kNode, "n1", "h"}});
  fs::remove(directory_ / "ca.key");
  fs::remove(directory_ / "ca.pem");
  const auto refused = InitFleet(directory_, {{Role::kNode, "n1", "h"}}, kNow);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("not issued by ca.pem"));
}

TEST_F(Certs, OperatorsAreLoadedFromBothPlaces) {
  Init({});
  EXPECT_TRUE(LoadOperator(directory_, kNow).ok());
  EXPECT_TRUE(LoadOperator(directory_ / "operator", kNow).ok());
  ASSERT_TRUE(Issue(directory_, {Role::kOperator, "ann", ""}, kNow).ok());
  EXPECT_TRUE(LoadOperator(directory_ / "operators/ann", kNow).ok());
}

TEST_F(Certs, WhyAnOperatorCannotBeLoadedIsSaid) {
  const auto message = [&](int64_t now) {
    return std::string(LoadOperator(directory_, now).status().message());
  };
  EXPECT_THAT(message(kNow), HasSubstr("No operator certificate"));
  Init({{Role::kNode, "n1", "h"}});
  EXPECT_THAT(message(kNow + 1000 * kDay), HasSubstr("expired on"));
  EXPECT_THAT(message(kNow - 3 * kDay), HasSubstr("clock slow"));
  const fs::path own = directory_ / "operator";
  fs::copy_file(directory_ / "nodes/n1/node.pem", own / "operator.pem",
                fs::copy_options::overwrite_existing);
  EXPECT_THAT(message(kNow), HasSubstr("does not belong"));
  fs::copy_file(directory_ / "nodes/n1/node.key", own / "operator.key",
                fs::copy_options::overwrite_existing);
  EXPECT_THAT(message(kNow), HasSubstr("wrong role"));
}

}  // namespace
}  // namespace syncline::certs
