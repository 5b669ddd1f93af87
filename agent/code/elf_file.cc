// SPDX-License-Identifier: Apache-2.0
#include "agent/code/elf_file.h"

#include <cxxabi.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <gelf.h>
#include <libelf.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"

namespace syncline::agent {
namespace {

constexpr char kDebugDirectory[] = "/usr/lib/debug/.build-id/";

struct ElfDeleter {
  void operator()(Elf* elf) const { elf_end(elf); }
};
struct DwarfDeleter {
  void operator()(Dwarf* dwarf) const { dwarf_end(dwarf); }
};

struct OpenElf {
  Descriptor fd;
  std::unique_ptr<Elf, ElfDeleter> elf;
};

absl::StatusOr<OpenElf> OpenAt(const std::string& path) {
  SYNCLINE_ASSIGN_OR_RETURN(OpenFile file, OpenRegular(path));
  Elf* const elf = elf_begin(file.fd.get(), ELF_C_READ_MMAP, nullptr);
  if (elf == nullptr || elf_kind(elf) != ELF_K_ELF) {
    elf_end(elf);
    return absl::InvalidArgumentError(absl::StrCat("\"", path, "\" is no ELF file"));
  }
  return OpenElf{std::move(file.fd), std::unique_ptr<Elf, ElfDeleter>(elf)};
}

// The path of its debug file below the debug directory; empty: it has no build id.
std::string DebugPath(Elf* elf) {
  const void* id = nullptr;
  const ssize_t length = dwelf_elf_gnu_build_id(elf, &id);
  if (length < 2) return "";
  const auto* const bytes = static_cast<const uint8_t*>(id);
  std::string path = kDebugDirectory;
  for (ssize_t i = 0; i < length; ++i) {
    absl::StrAppend(&path, absl::Hex(bytes[i], absl::kZeroPad2), i == 0 ? "/" : "");
  }
  return path + ".debug";
}

struct Segment {
  uint64_t offset = 0;
  uint64_t size = 0;
  uint64_t address = 0;
};

std::vector<Segment> SegmentsOf(Elf* elf) {
  std::vector<Segment> segments;
  size_t count = 0;
  if (elf_getphdrnum(elf, &count) != 0) return segments;
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr header;
    if (gelf_getphdr(elf, static_cast<int>(i), &header) == nullptr) continue;
    // Debug information puts functions that the linker has left out at 0, where no code is.
    if (header.p_type == PT_LOAD && (header.p_flags & PF_X) != 0) {
      segments.push_back({header.p_offset, header.p_filesz, header.p_vaddr});
    }
  }
  return segments;
}

// Of names for one function the one that people know: memcpy rather than __memcpy.
size_t Underscores(std::string_view name) {
  return std::min(name.find_first_not_of('_'), name.size());
}

struct Candidate {
  std::string_view name;
  uint64_t size = 0;

  bool IsBetterThan(const Candidate& other) const {
    if (other.name.empty()) return true;
    if (size != other.size) return size < other.size;
    const size_t mine = Underscores(name);
    const size_t others = Underscores(other.name);
    return mine != others ? mine < others : name < other.name;
  }
};

std::string Demangled(std::string_view name) {
  const std::string mangled(name);
  int status = -1;
  char* const text = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status);
  if (status != 0 || text == nullptr) return mangled;
  std::string demangled = text;
  std::free(text);
  return demangled;
}

// An address and its place in what was asked for, by address.
using Asked = std::vector<std::pair<uint64_t, size_t>>;

void TakeSymbols(Elf* elf, Elf_Scn* section, const GElf_Shdr& header, const Asked& asked,
                 std::vector<Candidate>* best) {
  Elf_Data* const data = elf_getdata(section, nullptr);
  if (data == nullptr || header.sh_entsize == 0) return;
  const size_t count = header.sh_size / header.sh_entsize;
  for (size_t i = 0; i < count; ++i) {
    GElf_Sym symbol;
    if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) break;
    const int type = GELF_ST_TYPE(symbol.st_info);
    if (symbol.st_shndx == SHN_UNDEF || symbol.st_size == 0) continue;
    if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE) continue;
    auto at = std::lower_bound(asked.begin(), asked.end(), std::pair(symbol.st_value, size_t{0}));
    if (at == asked.end() || at->first - symbol.st_value >= symbol.st_size) continue;
    const char* const name = elf_strptr(elf, header.sh_link, symbol.st_name);
    if (name == nullptr || *name == '\0') continue;
    const Candidate candidate{name, symbol.st_size};
    for (; at != asked.end() && at->first - symbol.st_value < symbol.st_size; ++at) {
      Candidate& known = (*best)[at->second];
      if (candidate.IsBetterThan(known)) known = candidate;
    }
  }
}

void TakeAllSymbols(Elf* elf, const Asked& asked, std::vector<Candidate>* best) {
  Elf_Scn* section = nullptr;
  while ((section = elf_nextscn(elf, section)) != nullptr) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr) continue;
    if (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM) continue;
    TakeSymbols(elf, section, header, asked, best);
  }
}

// A unit of compilation's code.
struct UnitRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  Dwarf_Off unit = 0;
};

std::vector<UnitRange> UnitsOf(Dwarf* dwarf) {
  std::vector<UnitRange> units;
  Dwarf_Off offset = 0;
  Dwarf_Off next = 0;
  size_t header_size = 0;
  while (dwarf_nextcu(dwarf, offset, &next, &header_size, nullptr, nullptr, nullptr) == 0) {
    Dwarf_Die die;
    if (dwarf_offdie(dwarf, offset + header_size, &die) != nullptr) {
      Dwarf_Addr base = 0;
      Dwarf_Addr begin = 0;
      Dwarf_Addr end = 0;
      for (ptrdiff_t at = 0; (at = dwarf_ranges(&die, at, &base, &begin, &end)) > 0;) {
        units.push_back({begin, end, offset + header_size});
      }
    }
    offset = next;
  }
  std::sort(units.begin(), units.end(),
            [](const UnitRange& a, const UnitRange& b) { return a.begin < b.begin; });
  return units;
}

std::optional<SourceLine> LineAt(Dwarf* dwarf, const std::vector<UnitRange>& units,
                                 uint64_t address) {
  auto behind =
      std::upper_bound(units.begin(), units.end(), address,
                       [](uint64_t value, const UnitRange& one) { return value < one.begin; });
  if (behind == units.begin() || address >= (--behind)->end) return std::nullopt;
  Dwarf_Die unit;
  if (dwarf_offdie(dwarf, behind->unit, &unit) == nullptr) return std::nullopt;
  Dwarf_Line* const row = dwarf_getsrc_die(&unit, address);
  int number = 0;
  if (row == nullptr || dwarf_lineno(row, &number) != 0 || number <= 0) return std::nullopt;
  const char* const file = dwarf_linesrc(row, nullptr, nullptr);
  if (file == nullptr) return std::nullopt;
  if (*file == '/') return SourceLine{file, number};
  Dwarf_Attribute attribute;
  const char* const directory = dwarf_formstring(dwarf_attr(&unit, DW_AT_comp_dir, &attribute));
  return SourceLine{directory == nullptr ? file : absl::StrCat(directory, "/", file), number};
}

class ElfutilsFile : public ElfFile {
 public:
  ElfutilsFile(OpenElf file, std::optional<OpenElf> debug)
      : file_(std::move(file)), debug_(std::move(debug)), segments_(SegmentsOf(file_.elf.get())) {}

  std::vector<std::string> Functions(std::span<const uint64_t> offsets) override {
    const Asked asked = AddressesOf(offsets);
    std::vector<Candidate> best(offsets.size());
    TakeAllSymbols(file_.elf.get(), asked, &best);
    if (debug_.has_value()) TakeAllSymbols(debug_->elf.get(), asked, &best);
    std::vector<std::string> names;
    for (const Candidate& one : best) {
      names.push_back(one.name.empty() ? std::string() : Demangled(one.name));
    }
    return names;
  }

  void Lines(std::span<const uint64_t> offsets,
             const std::function<void(size_t, const SourceLine&)>& found) override {
    Elf* const elf = debug_.has_value() ? debug_->elf.get() : file_.elf.get();
    const std::unique_ptr<Dwarf, DwarfDeleter> dwarf(dwarf_begin_elf(elf, DWARF_C_READ, nullptr));
    if (dwarf == nullptr) return;
    const std::vector<UnitRange> units = UnitsOf(dwarf.get());
    if (units.empty()) return;
    for (const auto& [address, index] : AddressesOf(offsets)) {
      if (const auto line = LineAt(dwarf.get(), units, address); line.has_value()) {
        found(index, *line);
      }
    }
  }

 private:
  Asked AddressesOf(std::span<const uint64_t> offsets) const {
    Asked asked;
    for (size_t i = 0; i < offsets.size(); ++i) {
      for (const Segment& segment : segments_) {
        if (offsets[i] < segment.offset || offsets[i] - segment.offset >= segment.size) continue;
        asked.emplace_back(offsets[i] - segment.offset + segment.address, i);
        break;
      }
    }
    std::sort(asked.begin(), asked.end());
    return asked;
  }

  OpenElf file_;
  std::optional<OpenElf> debug_;
  const std::vector<Segment> segments_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ElfFile>> ElfFile::Open(const std::string& root,
                                                       const std::string& path) {
  if (elf_version(EV_CURRENT) == EV_NONE) return absl::InternalError("libelf is too old");
  SYNCLINE_ASSIGN_OR_RETURN(OpenElf file, OpenAt(root + path));
  std::optional<OpenElf> debug;
  const std::string debug_path = DebugPath(file.elf.get());
  if (!debug_path.empty()) {
    if (auto opened = OpenAt(root + debug_path); opened.ok()) debug = *std::move(opened);
  }
  return std::make_unique<ElfutilsFile>(std::move(file), std::move(debug));
}

}  // namespace syncline::agent
