// SPDX-License-Identifier: Apache-2.0
// The files of a fleet's certificates: what is kept, what is made, what a client loads.
#include <algorithm>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/files.h"
#include "common/status.h"
#include "coordinator/certs/certs.h"
#include "coordinator/certs/openssl_types.h"
#include "coordinator/recording/recording.h"

namespace syncline::certs {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kSecretMode = 0600;
constexpr unsigned kSecretDirectoryMode = 0700;
constexpr int64_t kExpirySoonSeconds = int64_t{30} * 24 * 3600;

std::string Date(int64_t unix_s) {
  return absl::FormatTime("%Y-%m-%d", absl::FromUnixSeconds(unix_s), absl::UTCTimeZone());
}

bool Exists(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// Whether `certificate` was issued by `authority` for `key`. Times are not looked at.
absl::Status CheckBelongs(const std::string& authority, const std::string& certificate,
                          const std::string& key, const fs::path& directory) {
  const UniqueCertificate issuer = ParseCertificate(authority);
  const UniqueCertificate own = ParseCertificate(certificate);
  const UniqueKey own_key = ParseKey(key);
  ERR_clear_error();
  const auto refuse = [&](std::string_view why) {
    return absl::FailedPreconditionError(
        absl::StrCat("Certificates in \"", directory.string(), "\": ", AbslView(why)));
  };
  if (issuer == nullptr) return refuse("ca.pem is not a PEM certificate");
  if (own == nullptr) return refuse("the certificate is not PEM");
  if (own_key == nullptr) return refuse("the key is not a readable PEM private key");
  if (X509_check_private_key(own.get(), own_key.get()) != 1) {
    ERR_clear_error();
    return refuse("the key does not belong to the certificate; issue it again");
  }
  if (X509_verify(own.get(), X509_get0_pubkey(issuer.get())) != 1) {
    ERR_clear_error();
    return refuse("the certificate was not issued by ca.pem (of another fleet?); issue it again");
  }
  return absl::OkStatus();
}

// Reads the authority, or makes it when there is nothing at all.
absl::StatusOr<KeyPair> Authority(const fs::path& directory, bool make, int64_t now_unix_s) {
  const fs::path certificate_path = directory / "ca.pem";
  const fs::path key_path = directory / "ca.key";
  if (!Exists(certificate_path) && !Exists(key_path)) {
    if (!make) {
      return absl::FailedPreconditionError(
          absl::StrCat("\"", directory.string(), "\" has no authority (ca.pem, ca.key): ",
                       "`syncline certs init DIR --hosts FILE` makes one"));
    }
    SYNCLINE_ASSIGN_OR_RETURN(const KeyPair made, MakeAuthority(now_unix_s));
    SYNCLINE_RETURN_IF_ERROR(WriteFileAtomically(key_path, made.key, kSecretMode));
    SYNCLINE_RETURN_IF_ERROR(WriteFileAtomically(certificate_path, made.certificate));
    return made;
  }
  if (!Exists(certificate_path) || !Exists(key_path)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "\"", directory.string(), "\" has only one of ca.pem and ca.key: certificates are issued ",
        "where the authority's key is kept; restore the missing file, or use another DIR"));
  }
  KeyPair authority;
  SYNCLINE_ASSIGN_OR_RETURN(authority.certificate, ReadFile(certificate_path));
  SYNCLINE_ASSIGN_OR_RETURN(authority.key, ReadFile(key_path));
  SYNCLINE_RETURN_IF_ERROR(
      CheckBelongs(authority.certificate, authority.certificate, authority.key, directory));
  return authority;
}

fs::path DirectoryOf(const fs::path& root, const Subject& subject) {
  if (subject.role == Role::kNode) return root / "nodes" / subject.name;
  return subject.name == "operator" ? root / "operator" : root / "operators" / subject.name;
}

std::string ExpiryNote(const std::string& certificate, int64_t now_unix_s) {
  const absl::StatusOr<Description> description = Describe(certificate);
  if (!description.ok()) return std::string(description.status().message());
  if (description->not_after_unix_s <= now_unix_s) {
    return absl::StrCat("expired on ", Date(description->not_after_unix_s),
                        "; renew it with `syncline certs issue`");
  }
  if (description->not_after_unix_s <= now_unix_s + kExpirySoonSeconds) {
    return absl::StrCat("expires on ", Date(description->not_after_unix_s),
                        "; renew it with `syncline certs issue`");
  }
  return "";
}

absl::StatusOr<Result> Make(const fs::path& root, const KeyPair& authority, const Subject& subject,
                            bool renew, int64_t now_unix_s) {
  const std::string stem = subject.role == Role::kNode ? "node" : "operator";
  Result result{subject.name, DirectoryOf(root, subject)};
  const fs::path certificate_path = result.directory / (stem + ".pem");
  const fs::path key_path = result.directory / (stem + ".key");
  SYNCLINE_RETURN_IF_ERROR(MakeDirectories(result.directory.parent_path(), kSecretDirectoryMode));
  SYNCLINE_RETURN_IF_ERROR(MakeDirectories(result.directory, kSecretDirectoryMode));

  std::string key;
  if (Exists(key_path)) {
    SYNCLINE_ASSIGN_OR_RETURN(key, ReadFile(key_path));
    result.action =
        Exists(certificate_path) && !renew ? Result::Action::kKept : Result::Action::kRenewed;
  } else {
    SYNCLINE_ASSIGN_OR_RETURN(key, MakeKey());
    SYNCLINE_RETURN_IF_ERROR(WriteFileAtomically(key_path, key, kSecretMode));
  }
  std::string certificate;
  if (result.action == Result::Action::kKept) {
    SYNCLINE_ASSIGN_OR_RETURN(certificate, ReadFile(certificate_path));
    SYNCLINE_RETURN_IF_ERROR(
        CheckBelongs(authority.certificate, certificate, key, result.directory));
    result.note = ExpiryNote(certificate, now_unix_s);
  } else {
    SYNCLINE_ASSIGN_OR_RETURN(certificate, IssueCertificate(authority, key, subject, now_unix_s));
    SYNCLINE_RETURN_IF_ERROR(WriteFileAtomically(certificate_path, certificate));
  }
  SYNCLINE_RETURN_IF_ERROR(WriteFileAtomically(result.directory / "ca.pem", authority.certificate));
  return result;
}

}  // namespace

absl::StatusOr<std::vector<Result>> InitFleet(const fs::path& directory,
                                              const std::vector<Subject>& nodes,
                                              int64_t now_unix_s) {
  SYNCLINE_RETURN_IF_ERROR(MakeDirectories(directory, kSecretDirectoryMode));
  SYNCLINE_ASSIGN_OR_RETURN(const KeyPair authority, Authority(directory, true, now_unix_s));
  std::vector<Result> results;
  std::vector<Subject> subjects = {{Role::kOperator, "operator", ""}};
  subjects.insert(subjects.end(), nodes.begin(), nodes.end());
  for (const Subject& subject : subjects) {
    SYNCLINE_RETURN_IF_ERROR(recording::CheckNodeName(subject.name));
    SYNCLINE_ASSIGN_OR_RETURN(Result result,
                              Make(directory, authority, subject, false, now_unix_s));
    results.push_back(std::move(result));
  }
  return results;
}

absl::StatusOr<Result> Issue(const fs::path& directory, const Subject& subject,
                             int64_t now_unix_s) {
  SYNCLINE_RETURN_IF_ERROR(recording::CheckNodeName(subject.name));
  SYNCLINE_ASSIGN_OR_RETURN(const KeyPair authority, Authority(directory, false, now_unix_s));
  return Make(directory, authority, subject, true, now_unix_s);
}

absl::StatusOr<Credentials> LoadOperator(const fs::path& directory, int64_t now_unix_s) {
  Credentials credentials;
  credentials.directory = Exists(directory / "operator.pem") ? directory : directory / "operator";
  const fs::path& found = credentials.directory;
  const auto read = [&](const char* name, std::string* text) {
    absl::StatusOr<std::string> bytes = ReadFile(found / name, 1 << 20);
    if (!bytes.ok()) {
      return WithContext(bytes.status(),
                         absl::StrCat("No operator certificate in \"", directory.string(),
                                      "\" (`syncline certs init DIR --hosts FILE` makes one)"));
    }
    *text = *std::move(bytes);
    return absl::OkStatus();
  };
  SYNCLINE_RETURN_IF_ERROR(read("operator.pem", &credentials.certificate));
  SYNCLINE_RETURN_IF_ERROR(read("operator.key", &credentials.key));
  SYNCLINE_RETURN_IF_ERROR(read("ca.pem", &credentials.authority));
  SYNCLINE_RETURN_IF_ERROR(
      CheckBelongs(credentials.authority, credentials.certificate, credentials.key, found));
  SYNCLINE_ASSIGN_OR_RETURN(const Description description, Describe(credentials.certificate));
  const auto refuse = [&](std::string_view why) {
    return absl::FailedPreconditionError(absl::StrCat(
        "The operator certificate \"", (found / "operator.pem").string(), "\" ", AbslView(why)));
  };
  if (description.unit != kOperatorUnit) {
    return refuse(absl::StrCat("has the wrong role: \"", description.unit, "\" instead of \"",
                               AbslView(kOperatorUnit), "\""));
  }
  if (description.not_after_unix_s <= now_unix_s) {
    return refuse(absl::StrCat("expired on ", Date(description.not_after_unix_s),
                               ": `syncline certs issue DIR --operator ", description.name,
                               "` renews it"));
  }
  if (description.not_before_unix_s > now_unix_s) {
    return refuse(absl::StrCat("is valid only from ", Date(description.not_before_unix_s),
                               ": is this machine's clock slow?"));
  }
  return credentials;
}

}  // namespace syncline::certs
