// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pack/kept_names.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "absl/strings/ascii.h"
#include "common/text.h"

namespace syncline::pack {
namespace {

// Names that are kept when they are exactly these: domains, oneDNN's primitives, collectives and
// transfers as PyTorch calls them, and what Syncline's hook writes.
constexpr std::string_view kNames[] = {
    "PyTorch",
    "python",
    "syncline",
    "garbage collection",
    "generation",
    "default_pg",
    "detach",
    "detach_",
    "reorder",
    "convolution",
    "deconvolution",
    "inner_product",
    "matmul",
    "eltwise",
    "softmax",
    "pooling",
    "batch_normalization",
    "layer_normalization",
    "group_normalization",
    "lrn",
    "rnn",
    "binary",
    "concat",
    "sum",
    "shuffle",
    "resampling",
    "reduction",
    "prelu",
    "gemm",
    "allreduce",
    "allreduce_coalesced",
    "broadcast",
    "allgather",
    "allgather_base",
    "allgather_coalesced",
    "allgather_into_tensor_coalesced",
    "all_gather_single",
    "all_gather_single_coalesced",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_base",
    "reduce_scatter_tensor_coalesced",
    "reduce_scatter_single",
    "reduce_scatter_single_coalesced",
    "gather",
    "scatter",
    "alltoall",
    "alltoall_base",
    "all_to_all_single",
    "barrier",
    "send",
    "recv",
    "recv_anysource",
    "DistributedDataParallel.forward",
    "FullyShardedDataParallel.forward",
};

// What begins like this is the framework's to its end, but for the parts that KeptPrefix() knows.
constexpr std::string_view kPrefixes[] = {
    "aten::",
    "c10d::",
    "c10::",
    "autograd::",
    "torch::",
    "torch.",
    "prim::",
    "prims::",
    "gloo:",
    "nccl:",
    "mpi:",
    "ucc:",
    "_c10d_functional::",
    "quantized::",
    "dnnl",
    "oneDNN",
    "mkldnn::",
    "onednn::",
    "ProfilerStep#",
    "accelerator initialised: ",
    "cpu,reorder,",
    "cpu,convolution,",
    "cpu,matmul,",
    "cpu,inner_product,",
    "cpu,eltwise,",
    "cpu,softmax,",
    "cpu,pooling,",
    "cpu,batch_normalization,",
    "cpu,layer_normalization,",
    "cpu,deconvolution,",
    "cpu,binary,",
    "cpu,sum,",
    "cpu,concat,",
    "cpu,reduction,",
    "cpu,rnn,",
    "cpu,lrn,",
    "cpu,shuffle,",
    "cpu,resampling,",
    "cpu,prelu,",
};

// The classes of PyTorch behind '#' in the names of optimizers and loaders.
constexpr std::string_view kClasses[] = {
    "SGD",
    "Adam",
    "AdamW",
    "Adamax",
    "Adagrad",
    "Adadelta",
    "ASGD",
    "LBFGS",
    "NAdam",
    "RAdam",
    "Rprop",
    "RMSprop",
    "SparseAdam",
    "Adafactor",
    "Muon",
    "ZeroRedundancyOptimizer",
    "_SingleProcessDataLoaderIter",
    "_MultiProcessingDataLoaderIter",
};

constexpr std::string_view kWords[] = {
    "step", "steps",     "iter",    "iteration", "iterations",  "gloo",  "nccl",
    "pt",   "tf",        "python",  "torch",     "syncline",    "job",   "replica",
    "task", "device",    "cpu",     "gpu",       "worker",      "chief", "master",
    "ps",   "evaluator", "trainer", "localhost", "coordinator",
};

template <size_t n>
bool IsAmong(const std::string_view (&list)[n], std::string_view text) {
  return std::find(std::begin(list), std::end(list), text) != std::end(list);
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// "MulBackward0": derivatives of PyTorch's own operators end with a digit; those of classes that
// the program defines do not.
bool IsOwnDerivative(std::string_view name) {
  if (name.empty() || !IsDigit(name.back())) return false;
  while (!name.empty() && IsDigit(name.back())) name.remove_suffix(1);
  return name.ends_with("Backward") && std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c));
         });
}

// "Optimizer.step#SGD.step": all of it where the class is PyTorch's, else up to the class.
size_t UpToClass(std::string_view name) {
  const size_t hash = name.find('#');
  if (hash == name.npos) return name.size();
  const std::string_view rest = name.substr(hash + 1);
  return IsAmong(kClasses, rest.substr(0, rest.find('.'))) ? name.size() : hash + 1;
}

}  // namespace

size_t KeptPrefix(std::string_view name) {
  constexpr std::string_view kFunction = "autograd::engine::evaluate_function: ";
  if (name.starts_with(kFunction)) {
    return kFunction.size() + KeptPrefix(name.substr(kFunction.size()));
  }
  if (IsAmong(kNames, name) || IsOwnDerivative(name)) return name.size();
  if (name.starts_with("Optimizer.") || name.starts_with("enumerate(DataLoader)")) {
    return UpToClass(name);
  }
  if (name.starts_with("FSDP::")) return std::min(name.find(' '), name.size());  // then a module
  for (const std::string_view prefix : kPrefixes) {
    // "torch::autograd::CppNode<MyFunction>": the program's class.
    if (name.starts_with(prefix)) return std::min(name.find('<'), name.size());
  }
  return 0;
}

bool IsKeptWord(std::string_view word) {
  const std::string lower = absl::AsciiStrToLower(AbslView(word));
  return IsAmong(kWords, lower) || lower.starts_with("optim");
}

size_t KeptEnding(std::string_view word) {
  constexpr std::string_view kBackward = "Backward";
  if (word.ends_with(kBackward)) return kBackward.size();
  const std::string lower = absl::AsciiStrToLower(AbslView(word));
  for (const std::string_view ending : {"step", "iteration"}) {
    if (std::string_view(lower).ends_with(ending)) return ending.size();
  }
  return 0;
}

}  // namespace syncline::pack
