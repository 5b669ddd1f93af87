// SPDX-License-Identifier: Apache-2.0
// Owners for OpenSSL's objects and its error queue as text.
#ifndef SYNCLINE_COORDINATOR_CERTS_OPENSSL_TYPES_H_
#define SYNCLINE_COORDINATOR_CERTS_OPENSSL_TYPES_H_

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/text.h"

namespace syncline::certs {

template <auto Free>
struct Deleter {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};

using UniqueBio = std::unique_ptr<BIO, Deleter<BIO_free_all>>;
using UniqueKey = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;
using UniqueKeyContext = std::unique_ptr<EVP_PKEY_CTX, Deleter<EVP_PKEY_CTX_free>>;
using UniqueCertificate = std::unique_ptr<X509, Deleter<X509_free>>;
using UniqueExtension = std::unique_ptr<X509_EXTENSION, Deleter<X509_EXTENSION_free>>;
using UniqueStore = std::unique_ptr<X509_STORE, Deleter<X509_STORE_free>>;
using UniqueStoreContext = std::unique_ptr<X509_STORE_CTX, Deleter<X509_STORE_CTX_free>>;
using UniqueTlsContext = std::unique_ptr<SSL_CTX, Deleter<SSL_CTX_free>>;
using UniqueTls = std::unique_ptr<SSL, Deleter<SSL_free>>;

// The oldest entry of this thread's error queue, which is then emptied.
inline std::string OpenSslError() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return "no reason given";
  const char* reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : absl::StrCat("error ", code);
}

inline absl::Status OpenSslFailure(std::string_view what) {
  return absl::InternalError(absl::StrCat("Cannot ", AbslView(what), ": ", OpenSslError()));
}

inline UniqueBio ReadBio(std::string_view bytes) {
  return UniqueBio(BIO_new_mem_buf(bytes.data(), static_cast<int>(bytes.size())));
}

inline UniqueCertificate ParseCertificate(std::string_view pem) {
  const UniqueBio bio = ReadBio(pem);
  return UniqueCertificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
}

inline UniqueKey ParseKey(std::string_view pem) {
  const UniqueBio bio = ReadBio(pem);
  // An empty password callback: an encrypted key is refused instead of asking on the terminal.
  const auto no_password = [](char*, int, int, void*) { return -1; };
  return UniqueKey(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_password, nullptr));
}

}  // namespace syncline::certs

#endif  // SYNCLINE_COORDINATOR_CERTS_OPENSSL_TYPES_H_
