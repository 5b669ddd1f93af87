// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pack/public_names.h"

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "clocksync/clock_model.h"
#include "common/text.h"
#include "coordinator/recording/recording.h"
#include "instrumentation/abi/events.h"
#include "timeline/collective_kinds.h"

namespace syncline::pack {
namespace {

using Texts = std::set<std::string, std::less<>>;

std::vector<std::string> WordsOf(std::string_view list) {
  return absl::StrSplit(AbslView(list), absl::ByAnyChar(" \n"), absl::SkipEmpty());
}

// One a line, because some hold blanks.
constexpr std::string_view kNames = R"(PyTorch
python
python3
syncline
syncline-agent
syncline-torch
syncline-ze
syncline-kineto
syncline-kinet
lttng-sessiond
lttng-consumerd
lttng-relayd
garbage collection
Work.wait
generation
accelerator initialised: cpu
accelerator initialised: cuda
accelerator initialised: mps
accelerator initialised: xpu
default_pg
step
steps
train_step
training_step
iteration
iter
epoch
batch
forward
backward
optimizer
train
training
annotations
number
pt_main_thread
pt_gloo_runloop
gloo_tcp_loop
pt_autograd_0
pt_nccl_watchdg
dnnl
dnnl::primitive
dnnl::primitive::create
dnnl::primitive::execute
oneDNN
DistributedDataParallel.forward
FullyShardedDataParallel.forward
torch.distributed.ddp.reducer::copy_bucket_to_grad
torch::distributed::reducer::mul_out
torch::autograd::AccumulateGrad
torch::autograd::GraphRoot
torch::autograd::CopyBackwards
torch::autograd::CopySlices
enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__
FSDP::root_pre_forward
gloo:all_reduce
gloo:broadcast
gloo:all_gather
gloo:reduce
gloo:reduce_scatter
gloo:gather
gloo:scatter
gloo:all_to_all
gloo:barrier
gloo:send
gloo:recv
)";

// Collectives and transfers as PyTorch's functions and our hook call them, and as NCCL does;
// oneDNN's primitives.
constexpr std::string_view kWords =
    "allreduce allreduce_coalesced broadcast allgather allgather_base allgather_coalesced "
    "allgather_into_tensor_coalesced all_gather_single all_gather_single_coalesced reduce "
    "reduce_scatter reduce_scatter_base reduce_scatter_tensor_coalesced reduce_scatter_single "
    "reduce_scatter_single_coalesced gather scatter alltoall alltoall_base all_to_all_single "
    "barrier send recv recv_anysource detach detach_ reorder convolution deconvolution "
    "inner_product matmul eltwise softmax pooling batch_normalization layer_normalization "
    "NCCL AllReduce AllGather ReduceScatter Broadcast Reduce AlltoAll Gather Scatter Send Recv "
    "group_normalization lrn rnn binary concat sum shuffle resampling reduction prelu gemm";

constexpr std::string_view kOptimizers =
    "ASGD Adadelta Adafactor Adagrad Adam AdamW Adamax LBFGS Muon NAdam RAdam RMSprop Rprop SGD "
    "SparseAdam ZeroRedundancyOptimizer";

// CTF's keywords and LTTng's headers. The fields of our events come to them: abi/events.h.
constexpr std::string_view kTraceWords =
    "CTF trace major minor byte_order le be native packet header context event fields env clock "
    "name freq offset offset_s absolute TRUE description stream id stream_id loglevel struct "
    "integer size align signed base encoding UTF8 none map value floating_point exp_dig mant_dig "
    "string enum variant magic uuid stream_instance_id timestamp_begin timestamp_end content_size "
    "packet_size packet_seq_num events_discarded cpu_id v compact extended timestamp monotonic "
    "values_length";

constexpr std::string_view kSchemaWords =
    "requested interrupted fetched finished adopted guard note warning blocker itt net python "
    "torch syncline ust kernel uid pid lttng-ust master worker chief ps evaluator";

// What files are called, and words of formats that no sample below shows.
constexpr std::string_view kFormatWords =
    "unix samples_of_remote recording json clocks models samples tuples nodes processes block "
    "names trace metadata "
    "evidence txt run redacted coordinator bit timeline_begin_ns timeline_end_ns cause SYNCBLK1 "
    "SYNCNAM1 SYNCSMPL SYNCTUPL true false null lo hi x map left out sentence lttng tracer_name "
    "tracer_major tracer_minor tracer_patchlevel tracer_buffering_scheme tracer_buffering_id "
    "architecture_bit_width hostname vpid vpid_datetime Monotonic Clock lost nodes time duration "
    "gloo Optimizer enumerate DataLoader FSDP root_pre_forward accelerator initialised execute "
    "Backward iteration iter c10d oneDNN";

Texts MakePublicNames() {
  Texts names;
  for (const absl::string_view name : absl::StrSplit(AbslView(kNames), '\n', absl::SkipEmpty())) {
    names.emplace(name);
  }
  for (const std::string& word : WordsOf(kWords)) names.insert(word);
  const auto operators = [&names](const char* space, std::string_view list) {
    for (const std::string& word : WordsOf(list)) {
      names.insert(absl::StrCat(space, "::", word));
      if (!word.ends_with('_')) names.insert(absl::StrCat(space, "::", word, "_"));
    }
  };
  operators("aten", kAtenOperators);
  operators("c10d", kC10dOperators);
  operators("_c10d_functional", kFunctionalOperators);
  operators("mkldnn", kMkldnnOperators);
  Texts evaluated = {"torch::autograd::AccumulateGrad", "torch::autograd::GraphRoot",
                     "torch::autograd::CopyBackwards", "torch::autograd::CopySlices"};
  for (const std::string& word : WordsOf(kDerivatives)) {
    evaluated.insert(absl::StrCat(word, "Backward"));
    for (int number = 0; number < 10; ++number) {
      evaluated.insert(absl::StrCat(word, "Backward", number));
    }
  }
  for (const std::string& name : evaluated) {
    names.insert(absl::StrCat("autograd::engine::evaluate_function: ", name));
    names.insert(name);
  }
  for (const std::string& optimizer : WordsOf(kOptimizers)) {
    for (const char* call : {"step", "zero_grad"}) {
      names.insert(absl::StrCat("Optimizer.", call, "#", optimizer, ".", call));
    }
  }
  return names;
}

const Texts& PublicNames() {
  static const auto* const kSet = new Texts(MakePublicNames());
  return *kSet;
}

bool IsIn(const Texts& texts, std::string_view text) { return texts.find(text) != texts.end(); }

Texts SetOf(std::string_view list) {
  Texts texts;
  for (std::string& word : WordsOf(list)) texts.insert(std::move(word));
  return texts;
}

Texts OurEvents() {
  Texts names;
  for (const abi::EventRow& row : abi::kEvents) {
    names.insert(absl::StrCat(AbslView(row.provider), ":", AbslView(row.name)));
  }
  return names;
}

Texts TraceWords() {
  Texts words = SetOf(kTraceWords);
  for (const abi::EventRow& row : abi::kEvents) {
    for (const std::string& name : abi::FieldNames(row)) words.insert(name);
  }
  return words;
}

void AddWords(std::string_view text, Texts* words) {
  const auto is_word = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && is_word(text[end])) ++end;
    if (end > at) words->emplace(text.substr(at, end - at));
    at = end + 1;
  }
}

// The formats' keys are what their writers write of a recording without any name.
void AddKeys(Texts* words) {
  recording::Recording recording;
  recording::NodeRecord node;
  node.processes.emplace_back();
  node.channels.emplace_back();
  node.streams.emplace_back();
  node.complaints.emplace_back();
  for (const auto state : {recording::NodeState::kComplete, recording::NodeState::kIncomplete,
                           recording::NodeState::kMissing, recording::NodeState::kLeft}) {
    node.state = state;
    recording.nodes.push_back(node);
  }
  AddWords(recording::FormatRecording(recording), words);
  AddWords(clocksync::ClockModel::Identity({"coordinator"}).ToJson(), words);
}

Texts MakeVocabulary() {
  Texts words;
  for (const std::string& name : PublicNames()) AddWords(name, &words);
  for (const std::string_view list : {kSchemaWords, kFormatWords}) AddWords(list, &words);
  for (const std::string& name : OurEvents()) AddWords(name, &words);
  // LTTng's fields bear a "_" in front.
  for (const std::string& word : TraceWords()) {
    words.insert(word);
    words.insert("_" + word);
    words.insert("__" + word);
  }
  AddKeys(&words);
  return words;
}

}  // namespace

bool IsPublicName(std::string_view text) {
  // "c10d::_allreduce__": PyTorch's word and underscores, and no other name means the same.
  return IsIn(PublicNames(), text) || !timeline::CollectiveOfLaunch(text).empty() ||
         !timeline::CollectiveOfWork(text).empty();
}

bool IsSchemaWord(std::string_view text) {
  static const auto* const kSet = new Texts(SetOf(kSchemaWords));
  return IsIn(*kSet, text) || text == "lost nodes" || text == "coordinator lost";
}

bool IsTraceWord(std::string_view word) {
  static const auto* const kSet = new Texts(TraceWords());
  while (word.starts_with('_')) word.remove_prefix(1);
  return IsIn(*kSet, word);
}

bool IsOurEvent(std::string_view name) {
  static const auto* const kSet = new Texts(OurEvents());
  return IsIn(*kSet, name);
}

bool IsVocabulary(std::string_view word) {
  static const auto* const kSet = new Texts(MakeVocabulary());
  return IsIn(*kSet, word);
}

}  // namespace syncline::pack
