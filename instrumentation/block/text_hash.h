// SPDX-License-Identifier: Apache-2.0
/* The hash of a name's text, for tables of names. */
#ifndef SYNCLINE_INSTRUMENTATION_BLOCK_TEXT_HASH_H_
#define SYNCLINE_INSTRUMENTATION_BLOCK_TEXT_HASH_H_

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t syncline_text_load(const char* at, size_t bytes) {
  uint64_t word = 0;
  memcpy(&word, at, bytes);
  return word;
}

/* Both halves of a 128-bit product: every bit of the input reaches every bit of the result. */
static inline uint64_t syncline_text_mix(uint64_t a, uint64_t b) {
  const unsigned __int128 product = (unsigned __int128)a * b;
  return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Sixteen bytes a step; the last step reads the last sixteen, overlapping what was read. On the
 * path of every __itt_string_handle_create, which PyTorch calls for each operator. */
static inline uint32_t syncline_text_hash(uint8_t kind, const char* text, size_t bytes) {
  uint64_t h = 0x9E3779B97F4A7C15ull ^ kind;
  uint64_t a = 0, b = 0;
  if (bytes > 16) {
    for (size_t at = 0; at + 16 < bytes; at += 16) {
      h = syncline_text_mix(syncline_text_load(text + at, 8) ^ h,
                            syncline_text_load(text + at + 8, 8) ^ 0xA0761D6478BD642Full);
    }
    a = syncline_text_load(text + bytes - 16, 8);
    b = syncline_text_load(text + bytes - 8, 8);
  } else if (bytes >= 8) {
    a = syncline_text_load(text, 8);
    b = syncline_text_load(text + bytes - 8, 8);
  } else if (bytes >= 4) {
    a = syncline_text_load(text, 4);
    b = syncline_text_load(text + bytes - 4, 4);
  } else if (bytes > 0) {
    a = (uint64_t)(unsigned char)text[0] << 16 | (uint64_t)(unsigned char)text[bytes / 2] << 8 |
        (unsigned char)text[bytes - 1];
  }
  h = syncline_text_mix(a ^ h, b ^ bytes ^ 0xE7037ED1A0B428DBull);
  return (uint32_t)(h ^ h >> 32);
}

#endif /* SYNCLINE_INSTRUMENTATION_BLOCK_TEXT_HASH_H_ */
