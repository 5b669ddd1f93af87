// SPDX-License-Identifier: Apache-2.0
#include "coordinator/certs/certs.h"

#include <arpa/inet.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <ctime>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/text.h"
#include "coordinator/certs/openssl_types.h"

namespace syncline::certs {
namespace {

constexpr int64_t kDaySeconds = 24 * 3600;

absl::StatusOr<std::string> TextOf(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  if (size <= 0) return OpenSslFailure("write PEM");
  return std::string(data, static_cast<size_t>(size));
}

absl::StatusOr<std::string> CertificateText(X509* certificate) {
  const UniqueBio bio(BIO_new(BIO_s_mem()));
  if (!PEM_write_bio_X509(bio.get(), certificate)) return OpenSslFailure("write a certificate");
  return TextOf(bio.get());
}

absl::Status AddName(X509_NAME* name, const char* field, std::string_view value) {
  if (!X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8,
                                  reinterpret_cast<const unsigned char*>(value.data()),
                                  static_cast<int>(value.size()), -1, 0)) {
    return OpenSslFailure("name a certificate");
  }
  return absl::OkStatus();
}

absl::Status AddExtension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const UniqueExtension extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  if (extension == nullptr || !X509_add_ext(certificate, extension.get(), -1)) {
    return OpenSslFailure("extend a certificate");
  }
  return absl::OkStatus();
}

int64_t UnixSeconds(const ASN1_TIME* time) {
  struct tm broken_down = {};
  if (!ASN1_TIME_to_tm(time, &broken_down)) return 0;
  return timegm(&broken_down);
}

// A version 3 certificate with a random serial number; not_before is a day before now.
absl::StatusOr<UniqueCertificate> Blank(EVP_PKEY* key, int64_t now_unix_s, int64_t not_after) {
  UniqueCertificate certificate(X509_new());
  unsigned char serial[16];
  if (certificate == nullptr || RAND_bytes(serial, sizeof serial) != 1) {
    return OpenSslFailure("make a certificate");
  }
  serial[0] &= 0x7f;  // positive, as RFC 5280 wants it
  BIGNUM* number = BN_bin2bn(serial, sizeof serial, nullptr);
  const bool made =
      BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate.get())) != nullptr &&
      X509_set_version(certificate.get(), X509_VERSION_3) &&
      ASN1_TIME_set(X509_getm_notBefore(certificate.get()), now_unix_s - kBackdateSeconds) &&
      ASN1_TIME_set(X509_getm_notAfter(certificate.get()), not_after) &&
      X509_set_pubkey(certificate.get(), key);
  BN_free(number);
  if (!made) return OpenSslFailure("make a certificate");
  return certificate;
}

bool IsIpAddress(const std::string& text) {
  in6_addr bytes;
  return inet_pton(AF_INET, text.c_str(), &bytes) == 1 ||
         inet_pton(AF_INET6, text.c_str(), &bytes) == 1;
}

std::string SubjectAltName(const Subject& subject) {
  if (subject.role == Role::kOperator) return absl::StrCat("URI:syncline:operator:", subject.name);
  std::string names = absl::StrCat("DNS:", subject.name);
  if (IsIpAddress(subject.address)) absl::StrAppend(&names, ",IP:", subject.address);
  return names;
}

}  // namespace

absl::StatusOr<std::string> MakeKey() {
  const UniqueKey key(EVP_EC_gen("P-256"));
  const UniqueBio bio(BIO_new(BIO_s_mem()));
  if (key == nullptr ||
      !PEM_write_bio_PrivateKey(bio.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr)) {
    return OpenSslFailure("make a private key");
  }
  return TextOf(bio.get());
}

absl::StatusOr<KeyPair> MakeAuthority(int64_t now_unix_s) {
  KeyPair authority;
  SYNCLINE_ASSIGN_OR_RETURN(authority.key, MakeKey());
  const UniqueKey key = ParseKey(authority.key);
  SYNCLINE_ASSIGN_OR_RETURN(
      const UniqueCertificate certificate,
      Blank(key.get(), now_unix_s, now_unix_s + kAuthorityDays * kDaySeconds));
  // A random tail in the name: a verifier that meets two fleets' authorities keeps them apart.
  std::string tail(4, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(tail.data()), 4) != 1) {
    return OpenSslFailure("name the authority");
  }
  X509* const x509 = certificate.get();
  X509_NAME* const name = X509_get_subject_name(x509);
  SYNCLINE_RETURN_IF_ERROR(AddName(name, "O", "Syncline"));
  SYNCLINE_RETURN_IF_ERROR(
      AddName(name, "CN", absl::StrCat("Syncline fleet ", absl::BytesToHexString(tail))));
  X509_set_issuer_name(x509, name);
  SYNCLINE_RETURN_IF_ERROR(
      AddExtension(x509, x509, NID_basic_constraints, "critical,CA:TRUE,pathlen:0"));
  SYNCLINE_RETURN_IF_ERROR(AddExtension(x509, x509, NID_key_usage, "critical,keyCertSign,cRLSign"));
  SYNCLINE_RETURN_IF_ERROR(AddExtension(x509, x509, NID_subject_key_identifier, "hash"));
  if (!X509_sign(x509, key.get(), EVP_sha256())) return OpenSslFailure("sign the authority");
  SYNCLINE_ASSIGN_OR_RETURN(authority.certificate, CertificateText(x509));
  return authority;
}

absl::StatusOr<std::string> IssueCertificate(const KeyPair& authority, const std::string& key,
                                             const Subject& subject, int64_t now_unix_s) {
  const UniqueCertificate issuer = ParseCertificate(authority.certificate);
  const UniqueKey issuer_key = ParseKey(authority.key);
  const UniqueKey own_key = ParseKey(key);
  if (issuer == nullptr || issuer_key == nullptr || own_key == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("A certificate or key is not readable PEM: ", OpenSslError()));
  }
  const int64_t not_after =
      std::min(now_unix_s + kLeafDays * kDaySeconds, UnixSeconds(X509_get0_notAfter(issuer.get())));
  SYNCLINE_ASSIGN_OR_RETURN(const UniqueCertificate certificate,
                            Blank(own_key.get(), now_unix_s, not_after));
  X509* const x509 = certificate.get();
  const bool node = subject.role == Role::kNode;
  X509_NAME* const name = X509_get_subject_name(x509);
  SYNCLINE_RETURN_IF_ERROR(AddName(name, "O", "Syncline"));
  SYNCLINE_RETURN_IF_ERROR(AddName(name, "OU", node ? kNodeUnit : kOperatorUnit));
  SYNCLINE_RETURN_IF_ERROR(AddName(name, "CN", subject.name));
  X509_set_issuer_name(x509, X509_get_subject_name(issuer.get()));
  // Agents are clients too when they probe each other; an operator never serves.
  const std::pair<int, std::string> extensions[] = {
      {NID_basic_constraints, "critical,CA:FALSE"},
      {NID_key_usage, "critical,digitalSignature"},
      {NID_ext_key_usage, node ? "serverAuth,clientAuth" : "clientAuth"},
      {NID_subject_key_identifier, "hash"},
      {NID_authority_key_identifier, "keyid"},
      {NID_subject_alt_name, SubjectAltName(subject)},
  };
  for (const auto& [nid, value] : extensions) {
    SYNCLINE_RETURN_IF_ERROR(AddExtension(x509, issuer.get(), nid, value));
  }
  if (!X509_sign(x509, issuer_key.get(), EVP_sha256())) {
    return OpenSslFailure("sign a certificate");
  }
  return CertificateText(x509);
}

absl::StatusOr<Description> Describe(std::string_view certificate_pem) {
  const UniqueCertificate certificate = ParseCertificate(certificate_pem);
  if (certificate == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("Not a PEM certificate: ", OpenSslError()));
  }
  Description description;
  X509_NAME* const subject = X509_get_subject_name(certificate.get());
  const auto field = [&](int nid) {
    const int index = X509_NAME_get_index_by_NID(subject, nid, -1);
    if (index < 0) return std::string();
    ASN1_STRING* const text = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, index));
    return std::string(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                       static_cast<size_t>(ASN1_STRING_length(text)));
  };
  description.name = field(NID_commonName);
  description.unit = field(NID_organizationalUnitName);
  description.not_before_unix_s = UnixSeconds(X509_get0_notBefore(certificate.get()));
  description.not_after_unix_s = UnixSeconds(X509_get0_notAfter(certificate.get()));
  return description;
}

}  // namespace syncline::certs
