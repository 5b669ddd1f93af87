// SPDX-License-Identifier: Apache-2.0
#include "agent/service/peer_role.h"

#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>
#include <vector>

namespace syncline::agent {
namespace {

constexpr size_t kPemBytesMax = 64 << 10;

struct BioDeleter {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
struct CertificateDeleter {
  void operator()(X509* certificate) const { X509_free(certificate); }
};

// All values of one attribute of the subject.
std::vector<std::string> SubjectValues(X509_NAME* subject, int nid) {
  std::vector<std::string> values;
  for (int i = -1; (i = X509_NAME_get_index_by_NID(subject, nid, i)) >= 0;) {
    const ASN1_STRING* data = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, i));
    unsigned char* utf8 = nullptr;
    const int length = ASN1_STRING_to_UTF8(&utf8, data);
    if (length < 0) continue;
    values.emplace_back(reinterpret_cast<const char*>(utf8), static_cast<size_t>(length));
    OPENSSL_free(utf8);
  }
  return values;
}

}  // namespace

Peer PeerOfCertificate(std::string_view pem) {
  Peer peer;
  if (pem.size() > kPemBytesMax) return peer;
  const std::unique_ptr<BIO, BioDeleter> bio(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  const std::unique_ptr<X509, CertificateDeleter> certificate(
      PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  if (certificate == nullptr) return peer;
  X509_NAME* subject = X509_get_subject_name(certificate.get());
  const auto names = SubjectValues(subject, NID_commonName);
  if (!names.empty()) peer.name = names.front();
  const auto organizations = SubjectValues(subject, NID_organizationName);
  const auto units = SubjectValues(subject, NID_organizationalUnitName);
  if (organizations != std::vector<std::string>{"Syncline"} || units.size() != 1) return peer;
  if (units.front() == "syncline operator") peer.role = PeerRole::kOperator;
  if (units.front() == "syncline node") peer.role = PeerRole::kNode;
  return peer;
}

}  // namespace syncline::agent
