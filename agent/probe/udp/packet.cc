// SPDX-License-Identifier: Apache-2.0
#include "agent/probe/udp/packet.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace syncline::probe {
namespace {

constexpr uint32_t kMagic = 0x42504c53;  // "SLPB"
constexpr uint8_t kVersion = 1;
constexpr uint8_t kFlagSpin = 1;
constexpr uint8_t kFlagReport = 2;
constexpr size_t kSealedBytes = kPacketBytes - kMacBytes;

template <class T>
void Put(T value, size_t at, PacketBytes* bytes) {
  for (size_t i = 0; i < sizeof(T); ++i) (*bytes)[at + i] = static_cast<uint8_t>(value >> (8 * i));
}

template <class T>
T Get(std::span<const uint8_t> bytes, size_t at) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) value |= static_cast<T>(T{bytes[at + i]} << (8 * i));
  return value;
}

}  // namespace

PacketBytes EncodePacket(const ProbePacket& packet) {
  PacketBytes bytes{};
  const HostStamps report = packet.report.value_or(HostStamps{});
  Put<uint32_t>(kMagic, 0, &bytes);
  bytes[4] = kVersion;
  bytes[5] = static_cast<uint8_t>(packet.kind);
  bytes[6] =
      static_cast<uint8_t>((packet.spin ? kFlagSpin : 0) | (packet.report ? kFlagReport : 0));
  bytes[7] = packet.burst_remaining;
  Put<uint64_t>(packet.plan_id, 8, &bytes);
  Put<uint32_t>(packet.edge_id, 16, &bytes);
  bytes[20] = packet.report ? static_cast<uint8_t>(report.source) : 0;
  Put<uint64_t>(packet.sequence, 24, &bytes);
  Put<uint64_t>(packet.nonce, 32, &bytes);
  Put<uint64_t>(packet.report_sequence, 40, &bytes);
  Put<uint64_t>(static_cast<uint64_t>(report.received_raw_ns), 48, &bytes);
  Put<uint64_t>(static_cast<uint64_t>(report.sent_raw_ns), 56, &bytes);
  return bytes;
}

std::optional<ProbePacket> DecodePacket(std::span<const uint8_t> bytes) {
  if (bytes.size() != kPacketBytes) return std::nullopt;
  if (Get<uint32_t>(bytes, 0) != kMagic || bytes[4] != kVersion) return std::nullopt;
  ProbePacket packet;
  packet.kind = static_cast<ProbePacket::Kind>(bytes[5]);
  packet.spin = (bytes[6] & kFlagSpin) != 0;
  packet.burst_remaining = bytes[7];
  packet.plan_id = Get<uint64_t>(bytes, 8);
  packet.edge_id = Get<uint32_t>(bytes, 16);
  packet.sequence = Get<uint64_t>(bytes, 24);
  packet.nonce = Get<uint64_t>(bytes, 32);
  packet.report_sequence = Get<uint64_t>(bytes, 40);
  if ((bytes[6] & kFlagReport) != 0) {
    packet.report = HostStamps{.received_raw_ns = static_cast<int64_t>(Get<uint64_t>(bytes, 48)),
                               .sent_raw_ns = static_cast<int64_t>(Get<uint64_t>(bytes, 56)),
                               .source = static_cast<clocksync::StampSource>(bytes[20])};
    if (packet.report_sequence == ProbePacket::kNoSequence ||
        packet.report->source > clocksync::StampSource::kGrpc) {
      return std::nullopt;
    }
  }
  if (packet.kind != ProbePacket::Kind::kRequest && packet.kind != ProbePacket::Kind::kResponse) {
    return std::nullopt;
  }
  // One packet, one encoding: what is spare must be zero, so that it can get a meaning one day.
  const PacketBytes again = EncodePacket(packet);
  if (!std::equal(again.begin(), again.begin() + kSealedBytes, bytes.begin())) return std::nullopt;
  return packet;
}

PacketSealer::PacketSealer(const ProbeKey& key) {
  EVP_MAC* mac = EVP_MAC_fetch(nullptr, "HMAC", nullptr);
  EVP_MAC_CTX* context = EVP_MAC_CTX_new(mac);
  EVP_MAC_free(mac);
  char digest[] = "SHA256";
  const OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0), OSSL_PARAM_END};
  if (context == nullptr || EVP_MAC_init(context, key.data(), key.size(), parameters) != 1) {
    std::fputs("HMAC-SHA-256 is missing from this OpenSSL\n", stderr);
    std::abort();
  }
  context_ = context;
}

PacketSealer::PacketSealer(PacketSealer&& other) noexcept
    : context_(std::exchange(other.context_, nullptr)) {}

PacketSealer::~PacketSealer() { EVP_MAC_CTX_free(static_cast<EVP_MAC_CTX*>(context_)); }

std::array<uint8_t, kMacBytes> PacketSealer::Mac(std::span<const uint8_t> bytes) const {
  auto* context = static_cast<EVP_MAC_CTX*>(context_);
  std::array<uint8_t, EVP_MAX_MD_SIZE> digest{};
  size_t length = 0;
  // Without a key: begins anew under the one it has.
  if (EVP_MAC_init(context, nullptr, 0, nullptr) != 1 ||
      EVP_MAC_update(context, bytes.data(), kSealedBytes) != 1 ||
      EVP_MAC_final(context, digest.data(), &length, digest.size()) != 1) {
    std::fputs("HMAC-SHA-256 failed\n", stderr);
    std::abort();
  }
  std::array<uint8_t, kMacBytes> mac;
  std::copy_n(digest.begin(), kMacBytes, mac.begin());
  return mac;
}

void PacketSealer::Seal(PacketBytes* bytes) const {
  const auto mac = Mac(*bytes);
  std::copy(mac.begin(), mac.end(), bytes->begin() + kSealedBytes);
}

bool PacketSealer::IsGenuine(std::span<const uint8_t> bytes) const {
  const auto mac = Mac(bytes);
  return CRYPTO_memcmp(mac.data(), bytes.data() + kSealedBytes, kMacBytes) == 0;
}

}  // namespace syncline::probe
