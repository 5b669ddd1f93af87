// SPDX-License-Identifier: Apache-2.0
#include "common/utf8.h"

#include <gtest/gtest.h>

namespace syncline {
namespace {

TEST(Utf8Test, OnlyWhatCanBePrintedIsLeft) {
  EXPECT_EQ(OnlyPrintable("", '?'), "");
  EXPECT_EQ(OnlyPrintable("a\n\x7f\x1b[31m", '?'), "a???[31m");
  EXPECT_EQ(OnlyPrintable("\u00e9\u2603\U0001f600", '?'), "\u00e9\u2603\U0001f600");
  EXPECT_EQ(OnlyPrintable("a\u009b31m", ' '), "a 31m");  // C1: a terminal's other ESC [
  EXPECT_EQ(OnlyPrintable("a\xff\xc3", '?'), "a\ufffd\ufffd");
  EXPECT_EQ(OnlyPrintable("\xed\xa0\x80", '?'), "\ufffd\ufffd\ufffd");  // a surrogate
  EXPECT_EQ(OnlyPrintable(std::string_view("\0", 1), '?'), "?");
}

TEST(Utf8Test, BytesThatAreNoTextAreReplacedOneByOne) {
  EXPECT_EQ(RepairedUtf8(""), "");
  EXPECT_EQ(RepairedUtf8("M\u00fcller\n"), "M\u00fcller\n") << "good text stays, controls too";
  EXPECT_EQ(RepairedUtf8("M\xfcller"), "M\ufffdller");
  EXPECT_EQ(RepairedUtf8("cut \xe2\x82"), "cut \ufffd\ufffd");
  EXPECT_EQ(RepairedUtf8("\xed\xa0\x80"), "\ufffd\ufffd\ufffd") << "a surrogate is none";
  EXPECT_EQ(RepairedUtf8(RepairedUtf8("\xff\xfe")), RepairedUtf8("\xff\xfe"));
}

TEST(Utf8Test, CutsInFrontOfACharacter) {
  EXPECT_EQ(CutText("a\u2603b", 3), "a");
  EXPECT_EQ(CutText("a\u2603b", 4), "a\u2603");
  EXPECT_EQ(CutText("a\u2603b", 9), "a\u2603b");
}

}  // namespace
}  // namespace syncline
