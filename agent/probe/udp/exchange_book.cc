// SPDX-License-Identifier: Apache-2.0
#include "agent/probe/udp/exchange_book.h"

#include <algorithm>

namespace syncline::probe {
namespace {

// After so many questions without an answer the other side does not know; guessed.
constexpr uint8_t kAskedMax = 16;

}  // namespace

ExchangeBook::ExchangeBook(bool initiator, Stamper* stamper, StampLadder* ladder)
    : initiator_(initiator), stamper_(stamper), ladder_(ladder) {}

ExchangeBook::Entry& ExchangeBook::At(uint64_t sequence) {
  Entry& entry = entries_[sequence % kCapacity];
  if (entry.sequence != sequence) {
    entry = Entry{};
    entry.sequence = sequence;
  }
  return entry;
}

const ExchangeBook::Entry* ExchangeBook::Find(uint64_t sequence) const {
  const Entry& entry = entries_[sequence % kCapacity];
  return entry.sequence == sequence && sequence != ProbePacket::kNoSequence ? &entry : nullptr;
}

ExchangeBook::Entry* ExchangeBook::Find(uint64_t sequence) {
  return const_cast<Entry*>(static_cast<const ExchangeBook*>(this)->Find(sequence));
}

ExchangeBook::MaybeSample ExchangeBook::Sent(uint64_t sequence, int64_t before_raw_ns) {
  Entry& entry = At(sequence);
  entry.before_raw_ns = before_raw_ns;
  return Advance(&entry);
}

ExchangeBook::MaybeSample ExchangeBook::Received(uint64_t sequence, const Arrival& arrival) {
  ladder_->OnReceive(arrival.realtime_ns != 0);
  Entry& entry = At(sequence);
  entry.arrival = arrival;
  // What the initiator receives is the answer to what it sent.
  const auto before_raw_ns = initiator_ ? entry.before_raw_ns : std::nullopt;
  if (arrival.realtime_ns != 0) {
    entry.received_raw_ns =
        stamper_->ReceivedRawNs(arrival.realtime_ns, before_raw_ns, arrival.after_raw_ns);
  }
  if (arrival.hardware.ns != 0) {
    // The device had the packet before the kernel had.
    entry.hardware_received_raw_ns = stamper_->ReceivedRawNs(
        arrival.hardware, before_raw_ns, entry.received_raw_ns.value_or(arrival.after_raw_ns));
  }
  if (ladder_->hardware_clock() >= 0) {
    ladder_->OnHardwareReceive(entry.hardware_received_raw_ns.has_value());
  }
  return Advance(&entry);
}

ExchangeBook::MaybeSample ExchangeBook::TransmitStamped(uint64_t sequence, int64_t realtime_ns) {
  ladder_->OnTransmitStamp();
  Entry* entry = Find(sequence);
  if (entry == nullptr || !entry->before_raw_ns) return std::nullopt;
  entry->transmit_known = true;
  entry->sent_raw_ns = stamper_->SentRawNs(realtime_ns, *entry->before_raw_ns);
  return Advance(entry);
}

ExchangeBook::MaybeSample ExchangeBook::TransmitStampMissing(uint64_t sequence) {
  ladder_->OnTransmitStampMissing();
  Entry* entry = Find(sequence);
  if (entry == nullptr) return std::nullopt;
  entry->transmit_known = true;
  return Advance(entry);
}

ExchangeBook::MaybeSample ExchangeBook::HardwareStamped(uint64_t sequence,
                                                        const HardwareStamp& stamp) {
  Entry* entry = Find(sequence);
  if (entry == nullptr || !entry->before_raw_ns) return std::nullopt;
  entry->hardware_known = true;
  // The kernel had the packet before the device sent it.
  entry->hardware_sent_raw_ns =
      stamper_->SentRawNs(stamp, entry->sent_raw_ns.value_or(*entry->before_raw_ns));
  ladder_->OnHardwareTransmit(entry->hardware_sent_raw_ns.has_value());
  return Advance(entry);
}

ExchangeBook::MaybeSample ExchangeBook::HardwareStampMissing(uint64_t sequence) {
  ladder_->OnHardwareTransmit(false);
  Entry* entry = Find(sequence);
  if (entry == nullptr) return std::nullopt;
  entry->hardware_known = true;
  return Advance(entry);
}

ExchangeBook::MaybeSample ExchangeBook::Reported(uint64_t sequence, const HostStamps& remote) {
  Entry* entry = Find(sequence);
  if (entry == nullptr || entry->remote) return std::nullopt;
  entry->remote = remote;
  return Advance(entry);
}

std::optional<HostStamps> ExchangeBook::Own(uint64_t sequence) const {
  const Entry* entry = Find(sequence);
  return entry == nullptr ? std::nullopt : entry->own;
}

uint64_t ExchangeBook::NextToAsk() {
  Entry* best = nullptr;
  for (Entry& entry : entries_) {
    if (entry.sequence == ProbePacket::kNoSequence || !entry.before_raw_ns || !entry.arrival ||
        entry.remote || entry.asked >= kAskedMax) {
      continue;
    }
    // Those asked least, so that one whose stamps stay away does not keep the others waiting.
    if (best == nullptr || entry.asked < best->asked ||
        (entry.asked == best->asked && entry.sequence < best->sequence)) {
      best = &entry;
    }
  }
  if (best == nullptr) return ProbePacket::kNoSequence;
  ++best->asked;
  return best->sequence;
}

HostStamps ExchangeBook::OwnStamps(const Entry& entry) const {
  if (entry.hardware_sent_raw_ns && entry.hardware_received_raw_ns) {
    return {.received_raw_ns = *entry.hardware_received_raw_ns,
            .sent_raw_ns = *entry.hardware_sent_raw_ns,
            .source = clocksync::StampSource::kHardware};
  }
  if (entry.sent_raw_ns && entry.received_raw_ns) {
    return {.received_raw_ns = *entry.received_raw_ns,
            .sent_raw_ns = *entry.sent_raw_ns,
            .source = clocksync::StampSource::kKernel};
  }
  return {.received_raw_ns = entry.arrival->after_raw_ns,
          .sent_raw_ns = *entry.before_raw_ns,
          .source = entry.arrival->spinning ? clocksync::StampSource::kUserSpin
                                            : clocksync::StampSource::kUserBlocking};
}

bool ExchangeBook::IsFinal(const Entry& entry) const {
  if (!entry.before_raw_ns || !entry.arrival) return false;
  // Without the device's stamp of what was received, that of what was sent is of no use.
  const bool wants_hardware =
      ladder_->waits_for_hardware_stamp() && entry.hardware_received_raw_ns.has_value();
  return (entry.transmit_known || !ladder_->waits_for_transmit_stamp()) &&
         (entry.hardware_known || !wants_hardware);
}

ExchangeBook::MaybeSample ExchangeBook::Advance(Entry* entry) {
  if (!entry->own && IsFinal(*entry)) entry->own = OwnStamps(*entry);
  if (entry->done || !entry->own || !entry->remote) return std::nullopt;
  entry->done = true;
  const HostStamps& from = initiator_ ? *entry->own : *entry->remote;
  const HostStamps& to = initiator_ ? *entry->remote : *entry->own;
  return clocksync::ProbeSample{.t1_local_ns = from.sent_raw_ns,
                                .t2_remote_ns = to.received_raw_ns,
                                .t3_remote_ns = to.sent_raw_ns,
                                .t4_local_ns = from.received_raw_ns,
                                .source = std::max(from.source, to.source)};
}

}  // namespace syncline::probe
