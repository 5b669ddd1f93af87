// SPDX-License-Identifier: Apache-2.0
// A fleet's certificates: one authority, one certificate per node, one per operator.
//
// There are two roles (design: local control by peer uid, every TCP port by mutual TLS). A *node*
// certificate lets an agent serve and names it by DNS SAN; an *operator* certificate lets somebody
// command agents. The role is the subject's OU; an operator's certificate is for clients only and
// carries no DNS name, so it can never pass for a node.
//
//   DIR/ca.pem, ca.key                          the key stays where the coordinator is (0600)
//   DIR/nodes/NAME/{ca.pem,node.pem,node.key}   copied to the node: its agent's --tls-dir
//   DIR/operator/{ca.pem,operator.pem,operator.key}
//
// Everything is back-dated by a day because nodes' clocks are wrong. Making is idempotent: what
// exists is kept, a key is never overwritten, and a certificate that is missing beside its key is
// made for that key.
//
// Thread-safety: functions without shared state; not for two processes on one DIR at once.
#ifndef SYNCLINE_COORDINATOR_CERTS_CERTS_H_
#define SYNCLINE_COORDINATOR_CERTS_CERTS_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace syncline::certs {

inline constexpr std::string_view kNodeUnit = "syncline node";
inline constexpr std::string_view kOperatorUnit = "syncline operator";
inline constexpr int64_t kBackdateSeconds = 24 * 3600;
inline constexpr int64_t kAuthorityDays = 3650;
inline constexpr int64_t kLeafDays = 825;

enum class Role : uint8_t { kNode, kOperator };

// Whom a certificate is for.
struct Subject {
  Role role = Role::kNode;
  std::string name;     // CN; for a node also the DNS SAN
  std::string address;  // a node's host part: becomes an extra SAN when it is an IP address
};

// PEM texts.
struct KeyPair {
  std::string certificate;
  std::string key;
};

// A new authority, valid from a day before `now_unix_s`.
absl::StatusOr<KeyPair> MakeAuthority(int64_t now_unix_s);
// A new private key (ECDSA P-256).
absl::StatusOr<std::string> MakeKey();
// A certificate of `subject` for `key`, signed by `authority`, valid from a day before `now_unix_s`
// and never longer than the authority.
absl::StatusOr<std::string> IssueCertificate(const KeyPair& authority, const std::string& key,
                                             const Subject& subject, int64_t now_unix_s);

// What was done for one subject.
struct Result {
  enum class Action : uint8_t { kCreated, kRenewed, kKept };
  std::string name;
  std::filesystem::path directory;
  Action action = Action::kCreated;
  std::string note;  // e.g. that a kept certificate expires soon
};

// Makes what is missing of the authority, the operator "operator" and all `nodes`.
absl::StatusOr<std::vector<Result>> InitFleet(const std::filesystem::path& directory,
                                              const std::vector<Subject>& nodes,
                                              int64_t now_unix_s);

// One more node or operator, or a new certificate for the key it already has. Operators other than
// "operator" get DIR/operators/NAME. FailedPrecondition when DIR has no authority or not its key.
absl::StatusOr<Result> Issue(const std::filesystem::path& directory, const Subject& subject,
                             int64_t now_unix_s);

// What a certificate says, for messages and checks.
struct Description {
  std::string name;  // CN
  std::string unit;  // OU
  int64_t not_before_unix_s = 0;
  int64_t not_after_unix_s = 0;
};
absl::StatusOr<Description> Describe(std::string_view certificate_pem);

// What a client needs to command agents.
struct Credentials {
  std::filesystem::path directory;
  std::string authority;  // PEM texts
  std::string certificate;
  std::string key;
};

// From DIR/operator, or DIR itself when it holds operator.pem. Checks role, validity, that the key
// belongs to the certificate and the certificate to the authority; errors say what to do.
absl::StatusOr<Credentials> LoadOperator(const std::filesystem::path& directory,
                                         int64_t now_unix_s);

}  // namespace syncline::certs

#endif  // SYNCLINE_COORDINATOR_CERTS_CERTS_H_
