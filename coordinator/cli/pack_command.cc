// SPDX-License-Identifier: Apache-2.0
// syncline pack: one file of a recording, to send.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "coordinator/cli/commands.h"
#include "coordinator/cli/context.h"
#include "coordinator/cli/parse.h"
#include "coordinator/cli/terminal.h"
#include "coordinator/pack/pack.h"

namespace syncline::cli {
namespace {

// One line on a terminal, which goes away again; nothing where it takes a moment only.
class PackView {
 public:
  explicit PackView(const Context* context)
      : context_(*context), shown_ns_(context->clock->RawNs() + kQuietNs) {}
  ~PackView() { Clear(); }
  PackView(const PackView&) = delete;
  PackView& operator=(const PackView&) = delete;

  void OnProgress(const pack::Progress& progress) {
    const int64_t now_ns = context_.clock->RawNs();
    if (!context_.ShowProgress() || now_ns < shown_ns_) return;
    shown_ns_ = now_ns + kPeriodNs;
    Clear();
    *context_.err << Styled(absl::StrCat("  packed ", FormatSize(progress.done_bytes), " of ",
                                         FormatSize(progress.total_bytes)),
                            Style::kDim, context_.ColourErr())
                  << '\n'
                  << std::flush;
    line_ = true;
  }

 private:
  static constexpr int64_t kQuietNs = 1'000'000'000;
  static constexpr int64_t kPeriodNs = 200'000'000;

  void Clear() {
    if (line_ && context_.err_is_terminal) *context_.err << "\x1b[1A\x1b[2K" << std::flush;
    line_ = false;
  }

  const Context& context_;
  int64_t shown_ns_;  // no line before this time
  bool line_ = false;
};

// What was done, and what was not.
void SayRedacted(const Context& context, const pack::PackResult& packed) {
  *context.err << "redacted: " << FormatCount(packed.replaced)
               << " different texts were replaced or left out; " << FormatCount(packed.sought)
               << " of them were looked for\n"
                  "  in every file and path of the pack (those under 8 bytes as whole words), and "
                  "none was found\n"
                  "  not looked for: "
               << FormatCount(packed.replaced - packed.sought)
               << " (under 4 bytes, without a letter, or public words such as PyTorch's); user "
                  "ids;\n"
                  "  in streams of traces, texts of 4 or 5 bytes\n"
                  "  unchanged: times, sizes, counts and other numbers; the recording's id; public "
                  "names such as\n"
                  "  PyTorch's operators; lengths of other names, and words in them that reports "
                  "go by (\"step\")\n";
}

int Pack(const Context& context, pack::PackOptions options) {
  absl::StatusOr<pack::PackResult> packed;
  {
    PackView view(&context);
    options.interrupt = context.interrupts->First();
    options.progress = [&view](const pack::Progress& progress) { view.OnProgress(progress); };
    packed = pack::Pack(options);
  }
  if (absl::IsCancelled(packed.status())) {
    PrintNote(context, "warning", "", "interrupted: nothing was written", "");
    return kInterrupted;
  }
  if (!packed.ok()) return Fail(context, packed.status());
  for (const pack::KindLeftOut& kind : packed->kinds_left_out) {
    PrintNote(context, "note", "",
              absl::StrCat("not in the pack, ", FormatCount(kind.files),
                           kind.files == 1 ? " file: " : " files: ", kind.what),
              "");
  }
  for (const pack::LeftOut& file : packed->left_out) {
    PrintNote(context, "warning", "",
              absl::StrCat("\"", Printable(file.path), "\" is not in the pack: it ", file.reason),
              "");
  }
  for (const std::string& node : packed->still_on_nodes) {
    PrintNote(context, "warning", node, "its data is still on the node, and not in the pack",
              absl::StrCat("`syncline fetch ", options.run.string(), "`, then pack again"));
  }
  if (!context.quiet && options.redact) SayRedacted(context, *packed);
  if (!context.quiet) {
    *context.err << FormatCount(packed->files) << " files, " << FormatSize(packed->unpacked_bytes)
                 << ", packed into " << FormatSize(packed->bytes) << '\n';
  }
  *context.out << packed->file.string() << '\n';
  return packed->left_out.empty() && packed->still_on_nodes.empty() ? kDone : kIncomplete;
}

}  // namespace

void RegisterPack(CLI::App* app, Context* context) {
  CLI::App* const pack = app->add_subcommand("pack", "Make one file of a recording, to send");
  const auto run = std::make_shared<std::string>();
  const auto output = std::make_shared<std::string>();
  pack->add_option("RUN", *run, "The directory of a recording")->required()->check(IsGiven);
  pack->add_option("-o,--output", *output,
                   "The file to make, .tar.gz or .tar.zst (default: RUN's name and .tar.gz,\n"
                   "here; with --redact redacted-ID.tar.gz). An existing file is never\n"
                   "replaced")
      ->type_name("FILE")
      ->check(IsGiven);
  const auto redact = std::make_shared<bool>(false);
  pack->add_flag("--redact", *redact,
                 "Replace names of hosts, users, jobs, commands, paths, addresses, and\n"
                 "what your program calls its tasks, threads and counters: the same name\n"
                 "by the same random one throughout. Profiles, logs and inventories are\n"
                 "left out");
  pack->footer(
      "Prints the file's path. `tar xf FILE` unpacks it; merge, report, events and why work on "
      "the\n"
      "directory that comes out. In it is what the recording consists of; out/ is left out, "
      "because\n"
      "merge makes it again. Other files in RUN, links, and files that hold a private key or a\n"
      "certificate are left out and named, and the command ends with 3. Only you can read the\n"
      "file until you change its mode.\n\n"
      "--redact takes only files that it can write anew, field by field; one line each says what\n"
      "is left out. A trace that is damaged, or that holds events of other programs, refuses the\n"
      "pack. At the end the finished file is searched for what was replaced; where something is\n"
      "found, the file is deleted. Numbers and public names are unchanged: who knows the job may\n"
      "recognise it. docs/guide.md says what exactly stays.\n\n"
      "Examples:\n"
      "  syncline pack run-20261121-093012-7f3a\n"
      "  syncline pack run-20261121-093012-7f3a -o /tmp/slow-job.tar.zst\n"
      "  syncline pack run-20261121-093012-7f3a --redact");
  pack->callback([=] {
    context->ends_in_good_order = true;
    context->action = [=] {
      return Pack(*context, {.run = *run, .output = *output, .redact = *redact});
    };
  });
}

}  // namespace syncline::cli
