// SPDX-License-Identifier: Apache-2.0
#include "coordinator/fleet/diagnosis.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/text.h"
#include "coordinator/certs/openssl_types.h"

namespace syncline::fleet {
namespace {

using certs::OpenSslError;

std::string Day(int64_t unix_s) {
  return absl::FormatTime("%Y-%m-%d %H:%M UTC", absl::FromUnixSeconds(unix_s), absl::UTCTimeZone());
}

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

absl::Status ConnectFailure(int error_number, const hosts::Node& node) {
  const std::string target = node.Address();
  switch (error_number) {
    case ECONNREFUSED:
      return absl::UnavailableError(absl::StrCat(
          "nothing listens on ", target, ": is the agent running there (`syncline-agent`)?"));
    case ENOENT:
      return absl::UnavailableError(
          absl::StrCat("there is no socket ", node.socket_path, ": is the agent running?"));
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(
          absl::StrCat("no permission to connect to ", target, ": the agent serves its own user"));
    case ETIMEDOUT:
      return absl::UnavailableError(absl::StrCat(
          target, " does not answer: is the machine up, and is the port open in its firewall?"));
    case EHOSTUNREACH:
    case ENETUNREACH:
      return absl::UnavailableError(absl::StrCat("there is no route to ", target));
    default:
      return absl::UnavailableError(absl::StrCat("cannot connect to ", target, ": ",
                                                 std::generic_category().message(error_number)));
  }
}

// 0 or an errno.
int ConnectWithin(int fd, const sockaddr* address, socklen_t size,
                  std::chrono::milliseconds limit) {
  if (::connect(fd, address, size) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd waiting{fd, POLLOUT, 0};
  const int ready = ::poll(&waiting, 1, static_cast<int>(limit.count()));
  if (ready == 0) return ETIMEDOUT;
  if (ready < 0) return errno;
  int error_number = 0;
  socklen_t error_size = sizeof error_number;
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error_number, &error_size);
  return error_number;
}

int OpenSocket(int family) {
  return ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

absl::Status DiagnoseLocal(const hosts::Node& node, const DiagnosisOptions& options) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (node.socket_path.size() >= sizeof address.sun_path) {
    return absl::InvalidArgumentError(
        absl::StrCat("the path of the socket is too long: ", node.socket_path));
  }
  std::memcpy(address.sun_path, node.socket_path.data(), node.socket_path.size());
  const Socket socket(OpenSocket(AF_UNIX));
  const int error_number = ConnectWithin(socket.get(), reinterpret_cast<sockaddr*>(&address),
                                         sizeof address, options.timeout);
  if (error_number != 0) return ConnectFailure(error_number, node);
  // The agent closes connections of other users without a word.
  ucred agent{};
  socklen_t size = sizeof agent;
  const bool known = ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &agent, &size) == 0;
  if (!known || ::geteuid() == 0 || agent.uid == ::geteuid()) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("the agent at ", node.Address(), " runs as user ", agent.uid,
                   " and serves its own user and root only; this is user ", ::geteuid()));
}

// Remembers whom the peer's certificate names: after a refusal OpenSSL no longer has it.
int RememberPeerName(int ok, X509_STORE_CTX* context) {
  const auto* tls =
      static_cast<SSL*>(X509_STORE_CTX_get_ex_data(context, SSL_get_ex_data_X509_STORE_CTX_idx()));
  const X509* leaf = X509_STORE_CTX_get0_cert(context);
  char name[256] = "";
  X509_NAME_get_text_by_NID(X509_get_subject_name(leaf), NID_commonName, name, sizeof name);
  *static_cast<std::string*>(SSL_get_app_data(tls)) = name;
  return ok;
}

absl::Status Refused(std::string_view why) { return absl::UnauthenticatedError(AbslView(why)); }

// The node's certificate did not please us.
absl::Status PeerRefused(const std::string& peer_name, long verify_result, const hosts::Node& node,
                         const DiagnosisOptions& options) {
  const std::string issue =
      absl::StrCat("`syncline certs issue DIR --node ", node.name, "`, then copy it there");
  switch (verify_result) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return Refused(absl::StrCat("its certificate has expired by this machine's clock (",
                                  Day(options.now_unix_s), "): renew it with ", issue));
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return Refused(absl::StrCat(
          "its certificate is not yet valid by this machine's clock (", Day(options.now_unix_s),
          "): this clock is slow, or the certificates were made where the ", "clock was fast"));
    case X509_V_ERR_HOSTNAME_MISMATCH:
      return Refused(absl::StrCat("its certificate is for \"", peer_name, "\", not for \"",
                                  node.name, "\": wrong address in the hosts file, or the wrong ",
                                  "certificate there; a correct one: ", issue));
    case X509_V_ERR_INVALID_PURPOSE:
      return Refused(absl::StrCat("its certificate has the wrong role (an operator's?): an agent ",
                                  "needs a node's, ", issue));
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return Refused(absl::StrCat("its certificate is of another authority than our ca.pem (",
                                  "another fleet, or the authority was created again): ", issue));
    default:
      return Refused(absl::StrCat("its certificate is refused: ",
                                  X509_verify_cert_error_string(verify_result)));
  }
}

// The node refused our certificate: an alert arrived. `reason` is OpenSSL's code of it.
absl::Status WeAreRefused(int reason) {
  switch (reason) {
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
      return Refused(
          "it says that our operator certificate has expired, which by our clock it has not: the "
          "node's clock is fast; correct it there (date, chrony)");
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
      return Refused(
          "it refuses our operator certificate, probably as not yet valid: the node's clock is "
          "slow by more than a day; correct it there (date, chrony)");
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
      return Refused(
          "it does not know the authority of our operator certificate: the node has another "
          "fleet's ca.pem; copy DIR/nodes/NAME there again");
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
      return Refused("it refuses the role of our certificate: commands need an operator's");
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
    case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
      return Refused("it refuses our operator certificate; the agent's log says why");
    default:
      return absl::OkStatus();
  }
}

bool IsNoTls(int reason) {
  return reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_PACKET_LENGTH_TOO_LONG ||
         reason == SSL_R_HTTP_REQUEST || reason == SSL_R_UNEXPECTED_MESSAGE;
}

absl::Status TlsFailure(SSL* tls, int tls_error, const hosts::Node& node,
                        const DiagnosisOptions& options) {
  const long verify_result = SSL_get_verify_result(tls);
  if (verify_result != X509_V_OK) {
    ERR_clear_error();
    return PeerRefused(*static_cast<std::string*>(SSL_get_app_data(tls)), verify_result, node,
                       options);
  }
  const int reason = ERR_GET_REASON(ERR_peek_error());
  const absl::Status refused = WeAreRefused(reason);
  if (!refused.ok()) {
    ERR_clear_error();
    return refused;
  }
  if (IsNoTls(reason)) {
    ERR_clear_error();
    return absl::UnavailableError(absl::StrCat("something listens on ", node.Address(),
                                               " that does not speak TLS: not a syncline agent"));
  }
  if (tls_error == SSL_ERROR_SYSCALL || tls_error == SSL_ERROR_ZERO_RETURN ||
      reason == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
    ERR_clear_error();
    // gRPC's server sends no alert. Its certificate was verified, so it is our node, and what it
    // saw last is our certificate. (SSL_is_init_finished is false again after a broken read.)
    if (SSL_get0_peer_certificate(tls) != nullptr) {
      return Refused(
          "it is the node of our fleet, but closes the connection after receiving our certificate: "
          "the node's clock is wrong (by that clock our certificate is not yet valid, or has "
          "expired) or the node's ca.pem is another fleet's; check the node's clock (date) and the "
          "agent's log");
    }
    return absl::UnavailableError(
        absl::StrCat("it accepts connections on ", node.Address(),
                     " and closes them: not a syncline agent, or one that is shutting down"));
  }
  return absl::UnavailableError(absl::StrCat("the TLS handshake fails: ", OpenSslError()));
}

absl::StatusOr<certs::UniqueTlsContext> ClientContext(const certs::Credentials& credentials,
                                                      int64_t now_unix_s) {
  certs::UniqueTlsContext context(SSL_CTX_new(TLS_client_method()));
  const certs::UniqueCertificate root = certs::ParseCertificate(credentials.authority);
  const certs::UniqueCertificate own = certs::ParseCertificate(credentials.certificate);
  const certs::UniqueKey key = certs::ParseKey(credentials.key);
  if (context == nullptr || root == nullptr || own == nullptr || key == nullptr ||
      !X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), root.get()) ||
      SSL_CTX_use_certificate(context.get(), own.get()) != 1 ||
      SSL_CTX_use_PrivateKey(context.get(), key.get()) != 1) {
    return certs::OpenSslFailure("use the operator certificate");
  }
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, &RememberPeerName);
  X509_VERIFY_PARAM_set_time(SSL_CTX_get0_param(context.get()), now_unix_s);
  return context;
}

// Waits until the handshake can go on; false at the deadline.
bool WaitFor(int socket, int tls_error, int64_t limit_ms) {
  pollfd waiting{socket, static_cast<short>(tls_error == SSL_ERROR_WANT_WRITE ? POLLOUT : POLLIN),
                 0};
  return limit_ms > 0 && ::poll(&waiting, 1, static_cast<int>(limit_ms)) > 0;
}

int64_t SteadyMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

absl::Status DiagnoseHandshake(int socket, const hosts::Node& node,
                               const certs::Credentials& credentials,
                               const DiagnosisOptions& options) {
  ERR_clear_error();
  const absl::StatusOr<certs::UniqueTlsContext> context =
      ClientContext(credentials, options.now_unix_s);
  if (!context.ok()) return context.status();
  const certs::UniqueTls tls(SSL_new(context->get()));
  std::string peer_name;
  SSL_set_app_data(tls.get(), &peer_name);
  static constexpr unsigned char kHttp2[] = {2, 'h', '2'};
  SSL_set_alpn_protos(tls.get(), kHttp2, sizeof kHttp2);
  SSL_set_tlsext_host_name(tls.get(), node.name.c_str());
  SSL_set1_host(tls.get(), node.name.c_str());
  SSL_set_fd(tls.get(), socket);
  const int64_t deadline_ms = SteadyMs() + options.timeout.count();
  // In TLS 1.3 the server's opinion of our certificate comes after our half of the handshake, so
  // the first byte of its answer (an alert, or HTTP/2's settings) is awaited too.
  bool shaken = false;
  for (;;) {
    char byte = 0;
    const int result = shaken ? SSL_read(tls.get(), &byte, 1) : SSL_connect(tls.get());
    if (result == 1) {
      if (shaken) return absl::OkStatus();
      shaken = true;
      continue;
    }
    const int error = SSL_get_error(tls.get(), result);
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) {
      return TlsFailure(tls.get(), error, node, options);
    }
    if (!WaitFor(socket, error, deadline_ms - SteadyMs())) {
      if (shaken) return absl::OkStatus();
      return absl::UnavailableError(
          absl::StrCat(node.Address(),
                       " accepts the connection but sends nothing: the agent hangs or is stopped, "
                       "or something else listens there"));
    }
  }
}

absl::Status Diagnose(const hosts::Node& node, const certs::Credentials& credentials,
                      const DiagnosisOptions& options) {
  if (node.local()) return DiagnoseLocal(node, options);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int resolved =
      ::getaddrinfo(node.host.c_str(), absl::StrCat(node.port).c_str(), &hints, &found);
  if (resolved != 0) {
    return absl::NotFoundError(absl::StrCat("the host \"", node.host, "\" is unknown (",
                                            ::gai_strerror(resolved),
                                            "): check the hosts file or the name service"));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, &::freeaddrinfo);
  int error_number = ETIMEDOUT;
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
    const Socket socket(OpenSocket(address->ai_family));
    error_number =
        ConnectWithin(socket.get(), address->ai_addr, address->ai_addrlen, options.timeout);
    if (error_number == 0) return DiagnoseHandshake(socket.get(), node, credentials, options);
  }
  return ConnectFailure(error_number, node);
}

}  // namespace syncline::fleet
