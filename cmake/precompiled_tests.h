// SPDX-License-Identifier: Apache-2.0
// The same for tests.
#ifndef SYNCLINE_CMAKE_PRECOMPILED_TESTS_H_
#define SYNCLINE_CMAKE_PRECOMPILED_TESTS_H_

#include "cmake/precompiled.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#endif  // SYNCLINE_CMAKE_PRECOMPILED_TESTS_H_
