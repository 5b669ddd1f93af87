// SPDX-License-Identifier: Apache-2.0
#include "evidence/connection_samples.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "evidence/words.h"
#include "evidence/write.h"

namespace syncline::evidence {
namespace {

constexpr size_t kItemsMax = 1 << 22;  // of a kind
constexpr uint64_t kMost = 1'000'000'000'000'000'000;
constexpr uint64_t kRttUsMost = 3'600'000'000;
constexpr size_t kNotesMax = 100;

constexpr std::array<const char*, kConnectionValues> kNames = {
    "rtt_us",         "min_rtt_us",    "delivery_rate",
    "unsent_bytes",   "sent_bytes",    "retransmitted_bytes",
    "received_bytes", "sent_segments", "retransmitted_segments",
    "duplicates",     "busy_us",       "window_full_us",
    "buffer_short_us"};

// What can hardly be is damage, or what the kernel says when it knows nothing (min_rtt: ~0).
uint64_t MostOf(ConnectionValue value) {
  const bool rtt = value == ConnectionValue::kRttUs || value == ConnectionValue::kMinRttUs;
  return rtt ? kRttUsMost : kMost;
}

class ConnectionsParser {
 public:
  void Line(std::string_view line) {
    Words words(line);
    const std::string_view kind = words.Word();
    if (kind.size() != 1 || !Take(kind[0], &words)) ++found_.damaged_lines;
  }
  ConnectionSamples Finish() {
    FillIn();
    return std::move(found_);
  }

 private:
  bool Take(char kind, Words* words) {
    switch (kind) {
      // A damaged line of these two still takes its number: others refer to those behind it.
      case 'P':
        if (found_.processes.size() >= kItemsMax) return false;
        found_.processes.push_back(TakeIdentity(words));
        return words->Whole();
      case 'C':
        return TakeConnection(words);
      case 's':
        return TakeSample(words);
      case 'r':
        return TakeRound(words);
      case 'c':
        found_.cost_ns = words->Ns();
        return words->Whole();
      case 'N':
        return words->Keep(words->Text(), &found_.notes, kNotesMax);
      case 'E':
        found_.ended |= !words->More();
        return !words->More();
      default:  // of a later version, perhaps: what is not known is left out
        return false;
    }
  }

  bool TakeConnection(Words* words) {
    if (found_.connections.size() >= kItemsMax || found_.processes.empty()) return false;
    Connection& connection = found_.connections.emplace_back();
    connection.process = words->Index(found_.processes.size());
    connection.network_namespace = words->Number<uint64_t>();
    connection.local = words->Text();
    connection.remote = words->Text();
    if (words->Whole()) return true;
    connection = {};
    return false;
  }

  bool TakeRound(Words* words) {
    const int64_t at_ns = words->Ns();
    if (!found_.rounds_ns.empty() && at_ns < found_.rounds_ns.back()) return false;
    return words->Keep(at_ns, &found_.rounds_ns, kItemsMax);
  }

  // The last round in which a connection was as it was read before, where `next` is not the first
  // round since then; nullopt: it is.
  std::optional<int64_t> LastRoundBetween(const ConnectionSample& before,
                                          const ConnectionSample& next) const {
    const auto& rounds = found_.rounds_ns;
    const auto own = std::lower_bound(rounds.begin(), rounds.end(), before.until_ns);
    const auto behind = std::upper_bound(rounds.begin(), rounds.end(), next.at_ns);
    if (behind - own < 2) return std::nullopt;
    return *(behind - 1);
  }

  void FillIn() {
    std::vector<std::optional<ConnectionSample>> before(found_.connections.size());
    std::vector<ConnectionSample> filled;
    for (const ConnectionSample& sample : found_.samples) {
      std::optional<ConnectionSample>& last = before[sample.connection];
      const auto round = last.has_value() ? LastRoundBetween(*last, sample) : std::nullopt;
      if (round.has_value()) {
        last->at_ns = last->until_ns = *round;
        filled.push_back(*last);
      }
      last = sample;
      filled.push_back(sample);
    }
    std::stable_sort(filled.begin(), filled.end(),
                     [](const auto& a, const auto& b) { return a.at_ns < b.at_ns; });
    found_.samples = std::move(filled);
  }

  bool TakeSample(Words* words) {
    if (found_.samples.size() >= kItemsMax) return false;
    ConnectionSample sample;
    sample.connection = words->Index(found_.connections.size());
    words->Bracket(&sample.at_ns, &sample.until_ns);
    TakeNamed<ConnectionValue, uint64_t>(kNames, words, &sample.values);
    if (words->wrong()) return false;
    found_.samples.push_back(sample);
    return true;
  }

  ConnectionSamples found_;
};

}  // namespace

const char* ConnectionValueName(ConnectionValue value) {
  return kNames[static_cast<size_t>(value)];
}

void ConnectionValues::Set(ConnectionValue value, uint64_t amount) {
  values_[static_cast<size_t>(value)] = amount > MostOf(value) ? -1 : static_cast<int64_t>(amount);
}

absl::StatusOr<ConnectionSamples> ParseConnectionSamples(std::string_view text) {
  return ParseText<ConnectionsParser>(text, kConnectionsHead);
}

void AppendConnectionsHead(std::string* out) { absl::StrAppend(out, kConnectionsHead, "\n"); }

void Append(const Connection& connection, std::string* out) {
  absl::StrAppend(out, "C ", connection.process, " ", connection.network_namespace, " ",
                  Escaped(connection.local), " ", Escaped(connection.remote));
  out->push_back('\n');
}

void Append(const ConnectionSample& sample, std::string* out) {
  absl::StrAppend(out, "s ", sample.connection, " ", sample.at_ns, " ", sample.until_ns);
  AppendNamed<ConnectionValue>(kNames, sample.values, out);
  out->push_back('\n');
}

void AppendRound(int64_t at_ns, std::string* out) { absl::StrAppend(out, "r ", at_ns, "\n"); }

}  // namespace syncline::evidence
