// SPDX-License-Identifier: Apache-2.0
#include "ctf/tsdl_lexer.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/text.h"

namespace syncline::ctf {
namespace {

bool IsWordStart(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsWord(char c) { return IsWordStart(c) || IsDigit(c); }

int DigitValue(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 16;
}

class Lexer {
 public:
  Lexer(std::string_view text, bool cut_is_end) : text_(text), cut_is_end_(cut_is_end) {}

  absl::StatusOr<std::vector<Token>> Run() {
    std::vector<Token> tokens;
    for (;;) {
      SYNCLINE_RETURN_IF_ERROR(SkipBlanks());
      Token token;
      token.line = line_;
      token.column = column_;
      if (pos_ >= text_.size()) {
        tokens.push_back(std::move(token));
        return tokens;
      }
      SYNCLINE_RETURN_IF_ERROR(Next(token));
      tokens.push_back(std::move(token));
    }
  }

 private:
  char Peek(size_t ahead = 0) const {
    return pos_ + ahead < text_.size() ? text_[pos_ + ahead] : '\0';
  }

  void Advance(size_t n = 1) {
    for (; n > 0 && pos_ < text_.size(); --n, ++pos_) {
      if (text_[pos_] == '\n') {
        ++line_;
        column_ = 1;
      } else {
        ++column_;
      }
    }
  }

  absl::Status Error(std::string_view message) const { return TsdlError(line_, column_, message); }

  absl::Status Cut(std::string_view message) {
    pos_ = text_.size();
    return cut_is_end_ ? absl::OkStatus() : Error(message);
  }

  absl::Status SkipBlanks() {
    while (pos_ < text_.size()) {
      if (std::isspace(static_cast<unsigned char>(Peek()))) {
        Advance();
      } else if (Peek() == '/' && Peek(1) == '/') {
        while (pos_ < text_.size() && Peek() != '\n') Advance();
      } else if (Peek() == '/' && Peek(1) == '*') {
        const size_t end = text_.find("*/", pos_ + 2);
        if (end == std::string_view::npos) return Cut("this comment never ends");
        Advance(end + 2 - pos_);
      } else {
        break;
      }
    }
    return absl::OkStatus();
  }

  absl::Status Next(Token& token) {
    const char c = Peek();
    if (c == 'L' && (Peek(1) == '"' || Peek(1) == '\'')) Advance();
    if (Peek() == '"' || Peek() == '\'') return Quoted(token);
    if (IsWordStart(c)) {
      const size_t start = pos_;
      while (IsWord(Peek())) Advance();
      token.kind = TokenKind::kIdentifier;
      token.text = std::string(text_.substr(start, pos_ - start));
      return absl::OkStatus();
    }
    if (IsDigit(c)) return Number(token);
    token.kind = TokenKind::kSymbol;
    for (const std::string_view symbol : {"...", ":=", "->"}) {
      if (text_.substr(pos_, symbol.size()) == symbol) {
        token.text = std::string(symbol);
        Advance(symbol.size());
        return absl::OkStatus();
      }
    }
    static constexpr std::string_view kSingle = "{}()[]<>;:,=.-+*";
    if (kSingle.find(c) == std::string_view::npos) {
      return Error(absl::StrCat("unexpected character 0x", absl::Hex(static_cast<uint8_t>(c))));
    }
    token.text = std::string(1, c);
    Advance();
    return absl::OkStatus();
  }

  absl::Status Number(Token& token) {
    uint64_t base = 10;
    if (Peek() == '0' && (Peek(1) == 'x' || Peek(1) == 'X')) {
      base = 16;
      Advance(2);
      if (DigitValue(Peek()) >= 16) return Error("hexadecimal digits expected");
    } else if (Peek() == '0' && (Peek(1) == 'b' || Peek(1) == 'B')) {
      base = 2;
      Advance(2);
    } else if (Peek() == '0') {
      base = 8;
    }
    uint64_t value = 0;
    while (IsDigit(Peek()) || (base == 16 && DigitValue(Peek()) < 16)) {
      const uint64_t digit = static_cast<uint64_t>(DigitValue(Peek()));
      if (digit >= base) return Error("this digit does not belong to the number's base");
      if (value > (UINT64_MAX - digit) / base) return Error("this number does not fit 64 bits");
      value = value * base + digit;
      Advance();
    }
    while (Peek() == 'u' || Peek() == 'U' || Peek() == 'l' || Peek() == 'L') Advance();
    if (IsWord(Peek())) return Error("a number may not run into a name");
    token.kind = TokenKind::kInteger;
    token.integer = value;
    return absl::OkStatus();
  }

  absl::Status Quoted(Token& token) {
    const char quote = Peek();
    Advance();
    token.kind = TokenKind::kString;
    while (Peek() != quote) {
      if (pos_ >= text_.size()) {
        if (cut_is_end_) token.kind = TokenKind::kEnd;
        return Cut("this string never ends");
      }
      if (Peek() == '\n') return Error("a string may not span lines");
      if (Peek() == '\\') {
        Advance();
        SYNCLINE_RETURN_IF_ERROR(Escape(token.text));
      } else {
        token.text.push_back(Peek());
        Advance();
      }
    }
    Advance();
    return absl::OkStatus();
  }

  absl::Status Escape(std::string& out) {
    static constexpr std::string_view kNames = "abfnrtv\\'\"?";
    static constexpr std::string_view kValues = "\a\b\f\n\r\t\v\\'\"?";
    const char c = Peek();
    if (const size_t i = kNames.find(c); i != std::string_view::npos && c != '\0') {
      out.push_back(kValues[i]);
      Advance();
      return absl::OkStatus();
    }
    int value = 0;
    int digits = 0;
    if (c == 'x') {
      Advance();
      for (; digits < 2 && DigitValue(Peek()) < 16; ++digits, Advance()) {
        value = value * 16 + DigitValue(Peek());
      }
    } else {
      for (; digits < 3 && DigitValue(Peek()) < 8; ++digits, Advance()) {
        value = value * 8 + DigitValue(Peek());
      }
    }
    if (digits == 0) return Error("unknown escape sequence");
    out.push_back(static_cast<char>(value));
    return absl::OkStatus();
  }

  std::string_view text_;
  bool cut_is_end_;
  size_t pos_ = 0;
  uint32_t line_ = 1;
  uint32_t column_ = 1;
};

}  // namespace

absl::StatusOr<std::vector<Token>> TokenizeTsdl(std::string_view text, bool cut_is_end) {
  return Lexer(text, cut_is_end).Run();
}

absl::Status TsdlError(uint32_t line, uint32_t column, std::string_view message) {
  return absl::InvalidArgumentError(
      absl::StrCat("metadata:", line, ":", column, ": ", AbslView(message)));
}

const Token& TokenCursor::Peek(size_t ahead) const {
  return tokens_[std::min(next_ + ahead, tokens_.size() - 1)];
}

const Token& TokenCursor::Take() {
  const Token& token = Peek();
  if (next_ + 1 < tokens_.size()) ++next_;
  return token;
}

bool TokenCursor::IsSymbol(std::string_view symbol, size_t ahead) const {
  return Peek(ahead).kind == TokenKind::kSymbol && Peek(ahead).text == symbol;
}

bool TokenCursor::IsWord(std::string_view word, size_t ahead) const {
  return Peek(ahead).kind == TokenKind::kIdentifier && Peek(ahead).text == word;
}

bool TokenCursor::TrySymbol(std::string_view symbol) {
  if (!IsSymbol(symbol)) return false;
  Take();
  return true;
}

bool TokenCursor::TryWord(std::string_view word) {
  if (!IsWord(word)) return false;
  Take();
  return true;
}

absl::Status TokenCursor::ExpectSymbol(std::string_view symbol) {
  if (TrySymbol(symbol)) return absl::OkStatus();
  return Error(absl::StrCat("expected \"", AbslView(symbol), "\""));
}

absl::StatusOr<std::string> TokenCursor::ExpectName() {
  if (Peek().kind != TokenKind::kIdentifier) return Error("expected a name");
  return Take().text;
}

absl::StatusOr<std::string> TokenCursor::ExpectPath() {
  SYNCLINE_ASSIGN_OR_RETURN(std::string path, ExpectName());
  while (TrySymbol(".") || TrySymbol("->")) {
    SYNCLINE_ASSIGN_OR_RETURN(const std::string name, ExpectName());
    absl::StrAppend(&path, ".", name);
  }
  return path;
}

bool TokenCursor::LeaveOut(size_t place) {
  int depth = 0;
  for (next_ = place; !AtEnd(); ++next_) {
    if (IsSymbol("{")) ++depth;
    if (IsSymbol("}")) --depth;
    if (depth > 0 || !IsSymbol(";")) continue;
    ++next_;
    return true;
  }
  return false;
}

absl::Status TokenCursor::Error(std::string_view message) const {
  const Token& token = Peek();
  std::string found;
  switch (token.kind) {
    case TokenKind::kEnd:
      found = "the end of the text";
      break;
    case TokenKind::kInteger:
      found = absl::StrCat(token.integer);
      break;
    case TokenKind::kIdentifier:
    case TokenKind::kString:
    case TokenKind::kSymbol:
      found = absl::StrCat("\"", token.text, "\"");
      break;
  }
  return TsdlError(token.line, token.column, absl::StrCat(AbslView(message), ", found ", found));
}

}  // namespace syncline::ctf
