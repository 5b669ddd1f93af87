// SPDX-License-Identifier: Apache-2.0
// A tracepoint provider with every field type that LTTng-UST offers: what a real recording can
// contain. `chars` is never empty: babeltrace2 2.0.4 prints the previous event's text for an empty
// text sequence.
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER syncline_test

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./every_type_provider.h"

#if !defined(SYNCLINE_TESTS_CTF_EVERY_TYPE_PROVIDER_H_) || \
    defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define SYNCLINE_TESTS_CTF_EVERY_TYPE_PROVIDER_H_

#include <lttng/tracepoint.h>
#include <stdint.h>

// clang-format off
LTTNG_UST_TRACEPOINT_ENUM(
  syncline_test, colour,
  LTTNG_UST_TP_ENUM_VALUES(
    lttng_ust_field_enum_value("red", 0)
    lttng_ust_field_enum_value("green", 1)
    lttng_ust_field_enum_range("blueish", 2, 5)
    lttng_ust_field_enum_range("overlap", 4, 9)
    lttng_ust_field_enum_value("negative", -3)
    lttng_ust_field_enum_auto("auto")))

LTTNG_UST_TRACEPOINT_EVENT(
  syncline_test, integers,
  LTTNG_UST_TP_ARGS(int64_t, value),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_integer(int8_t, i8, (int8_t)value)
    lttng_ust_field_integer(uint8_t, u8, (uint8_t)value)
    lttng_ust_field_integer(int16_t, i16, (int16_t)value)
    lttng_ust_field_integer(uint16_t, u16, (uint16_t)value)
    lttng_ust_field_integer(int32_t, i32, (int32_t)value)
    lttng_ust_field_integer(uint32_t, u32, (uint32_t)value)
    lttng_ust_field_integer(int64_t, i64, value)
    lttng_ust_field_integer(uint64_t, u64, (uint64_t)value)
    lttng_ust_field_integer_hex(uint32_t, hex, (uint32_t)value)
    lttng_ust_field_integer_network(uint16_t, net16, (uint16_t)value)
    lttng_ust_field_integer_network(int32_t, net32, (int32_t)value)
    lttng_ust_field_integer_network_hex(uint32_t, nethex, (uint32_t)value)))

LTTNG_UST_TRACEPOINT_EVENT(
  syncline_test, reals_and_texts,
  LTTNG_UST_TP_ARGS(double, value, const char*, text),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_float(float, f32, (float)value)
    lttng_ust_field_float(double, f64, value)
    lttng_ust_field_string(text, text)
    lttng_ust_field_string(none, "")))

LTTNG_UST_TRACEPOINT_EVENT(
  syncline_test, arrays,
  LTTNG_UST_TP_ARGS(const int32_t*, values, uint32_t, count, const char*, text),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_array(int32_t, fixed, values, 3)
    lttng_ust_field_array_hex(int16_t, hex, values, 4)
    lttng_ust_field_array_text(char, word, text, 8)
    lttng_ust_field_sequence(int32_t, numbers, values, uint32_t, count)
    lttng_ust_field_sequence(uint8_t, bytes, values, uint8_t, count)
    lttng_ust_field_sequence_text(char, chars, text, uint16_t, count + 1)
    lttng_ust_field_array_network(uint32_t, net, values, 2)))

LTTNG_UST_TRACEPOINT_EVENT(
  syncline_test, enums,
  LTTNG_UST_TP_ARGS(int, value),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_enum(syncline_test, colour, int, plain, value)
    lttng_ust_field_enum(syncline_test, colour, int8_t, small, (int8_t)value)))

LTTNG_UST_TRACEPOINT_EVENT(
  syncline_test, empty, LTTNG_UST_TP_ARGS(), LTTNG_UST_TP_FIELDS())
// clang-format on

#endif  // SYNCLINE_TESTS_CTF_EVERY_TYPE_PROVIDER_H_

#include <lttng/tracepoint-event.h>
