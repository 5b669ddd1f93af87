// SPDX-License-Identifier: Apache-2.0
// Tokens of TSDL, the C-like language of CTF 1.8 metadata, with their positions for error messages.
#ifndef SYNCLINE_CTF_TSDL_LEXER_H_
#define SYNCLINE_CTF_TSDL_LEXER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace syncline::ctf {

enum class TokenKind : uint8_t { kEnd, kIdentifier, kInteger, kString, kSymbol };

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;      // identifier, symbol ("{", ":=", "..."), or a string's unescaped value
  uint64_t integer = 0;  // kInteger
  uint32_t line = 1;
  uint32_t column = 1;
};

// The tokens of `text`, ended by one kEnd. With `cut_is_end`, a comment or string that the end of
// the text cuts off ends the tokens instead of being an error.
absl::StatusOr<std::vector<Token>> TokenizeTsdl(std::string_view text, bool cut_is_end = false);

// InvalidArgument "metadata:LINE:COLUMN: message".
absl::Status TsdlError(uint32_t line, uint32_t column, std::string_view message);

// A cursor over tokens with the questions that a recursive descent asks.
class TokenCursor {
 public:
  explicit TokenCursor(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& Peek(size_t ahead = 0) const;
  const Token& Take();
  bool AtEnd() const { return Peek().kind == TokenKind::kEnd; }
  bool IsSymbol(std::string_view symbol, size_t ahead = 0) const;
  bool IsWord(std::string_view word, size_t ahead = 0) const;
  bool TrySymbol(std::string_view symbol);
  bool TryWord(std::string_view word);
  absl::Status ExpectSymbol(std::string_view symbol);
  absl::StatusOr<std::string> ExpectName();
  // name { "." name }, as dotted text.
  absl::StatusOr<std::string> ExpectPath();
  absl::Status Error(std::string_view message) const;
  // Where the next token stands, for LeaveOut().
  size_t place() const { return next_; }
  // Goes behind the declaration that begins at `place`: its ";" outside of all braces. False, and
  // at the end, when there is none.
  bool LeaveOut(size_t place);

 private:
  std::vector<Token> tokens_;  // ends with kEnd
  size_t next_ = 0;
};

}  // namespace syncline::ctf

#endif  // SYNCLINE_CTF_TSDL_LEXER_H_
