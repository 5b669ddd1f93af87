# SPDX-License-Identifier: Apache-2.0
# How every target of Syncline is declared: one place for warnings, sanitizers, include root, test limits.
find_package(absl REQUIRED)
find_package(GTest REQUIRED)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # Relative paths, so that several build folders of one checkout share their results.
  # Precompiled headers can be cached only with this sloppiness. CCACHE_DEPEND: the compiler says
  # which headers it read, so that nothing is preprocessed twice.
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_DEPEND=1 ${CCACHE_PROGRAM})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()

# Programs, more than a hundred with the tests, are linked several times as fast by mold. Libraries,
# which live in the training process, stay with the system's linker.
find_program(MOLD_PROGRAM mold)
if(MOLD_PROGRAM)
  string(APPEND CMAKE_EXE_LINKER_FLAGS " -fuse-ld=mold")
endif()

add_library(syncline_warnings INTERFACE)
target_compile_options(syncline_warnings INTERFACE -Wall -Wextra -Werror=return-type
                       $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor> -Wno-missing-field-initializers)
if(SYNCLINE_SANITIZE)
  add_compile_options(-fsanitize=${SYNCLINE_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=undefined)
  add_link_options(-fsanitize=${SYNCLINE_SANITIZE})
endif()
if(SYNCLINE_FUZZ)
  # Coverage of the libraries too: a fuzzer that sees only its own file is blind.
  add_compile_options(-fsanitize=fuzzer-no-link)
  add_link_options(-fsanitize=fuzzer-no-link)
endif()

# syncline_precompiled(target header [libs]): the target's C++ sources begin with cmake/HEADER, which
# needs libs, compiled once for all that name it. Parsing what everybody includes is a third of a build's time.
function(syncline_precompiled target header)
  if(NOT SYNCLINE_PCH)
    return()
  endif()
  set(maker syncline_${header})
  if(NOT TARGET ${maker})
    add_library(${maker} STATIC ${PROJECT_SOURCE_DIR}/cmake/precompiled.cc)
    target_include_directories(${maker} PRIVATE ${PROJECT_SOURCE_DIR})
    target_link_libraries(${maker} PRIVATE ${ARGN} syncline_warnings)
    target_compile_options(${maker} PRIVATE -fpch-preprocess -Wno-array-bounds
                           -Wno-stringop-overflow)
    get_target_property(kind ${target} TYPE)
    if(kind STREQUAL EXECUTABLE)  # compiled as the tests are: -fPIE, where libraries have -fPIC
      set_target_properties(${maker} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
      target_compile_options(${maker} PRIVATE -fPIE ${SYNCLINE_TEST_OPTIONS})
    endif()
    target_precompile_headers(${maker} PRIVATE <cmake/${header}.h>)
  endif()
  # gcc 12 knows system headers as such, and is silent on its own false alarms in them, only when it
  # parses them itself.
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess;-Wno-array-bounds;-Wno-stringop-overflow>)
  target_precompile_headers(${target} REUSE_FROM ${maker})
endfunction()

# syncline_library(name SOURCES a.cc ... [PUBLIC libs] [PRIVATE libs] [PRECOMPILED header libs]):
# one library: of the kind SYNCLINE_LIBRARIES.
function(syncline_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE;PRECOMPILED" ${ARGN})
  add_library(${name} ${SYNCLINE_LIBRARIES} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES DEFINE_SYMBOL "")  # the same objects, whatever they make
  add_library(syncline::${name} ALIAS ${name})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE} syncline_warnings)
  if(NOT ARG_PRECOMPILED)
    set(ARG_PRECOMPILED precompiled)
  endif()
  syncline_precompiled(${name} ${ARG_PRECOMPILED})
endfunction()

# syncline_program(name SOURCES ... LIBS ...): an executable in build/bin.
function(syncline_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} syncline_warnings)
  # Where scripts/package puts what a machine may lack; elsewhere the system's libraries are found.
  # An RPATH, unlike a RUNPATH, is also searched for what those libraries need.
  set_target_properties(${name} PROPERTIES INSTALL_RPATH "$ORIGIN/../lib/syncline")
  target_link_options(${name} PRIVATE -Wl,--disable-new-dtags)
endfunction()

# syncline_test(name [THREADS] SOURCES ... LIBS ... [LABEL unit] [TIMEOUT 60]): one gtest program, one
# ctest. THREADS: what it tests starts threads or lives among them, so that ThreadSanitizer has
# something to find: the label `threads`, and a part of the target `thread_tests`.
add_custom_target(thread_tests)
# A test's own code is compiled once for each run or two: optimizing it takes longer than that saves.
set(SYNCLINE_TEST_OPTIONS -O0)
function(syncline_test name)
  cmake_parse_arguments(ARG "THREADS" "LABEL;TIMEOUT" "SOURCES;LIBS" ${ARGN})
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  if(ARG_THREADS)
    list(APPEND ARG_LABEL threads)
    add_dependencies(thread_tests ${name})
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 60)
  endif()
  if(SYNCLINE_SANITIZE)  # ten to twenty times slower
    math(EXPR ARG_TIMEOUT "5 * ${ARG_TIMEOUT}")
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} GTest::gmock GTest::gtest_main syncline_warnings)
  target_compile_options(${name} PRIVATE ${SYNCLINE_TEST_OPTIONS})
  syncline_precompiled(${name} precompiled_tests GTest::gmock)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABEL}" TIMEOUT ${ARG_TIMEOUT}
                       WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
endfunction()

# syncline_fuzzer(name SOURCES fuzz.cc CORPUS dir LIBS ...): the source defines LLVMFuzzerTestOneInput.
# Every build compiles it; without SYNCLINE_FUZZ a small main replays the corpus as a ctest.
function(syncline_fuzzer name)
  cmake_parse_arguments(ARG "" "CORPUS" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} syncline_warnings)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  if(SYNCLINE_FUZZ)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    add_test(NAME ${name} COMMAND ${name} -runs=20000 -max_total_time=20
             ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_CORPUS})
  else()
    target_sources(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/fuzz/replay_main.cc)
    add_test(NAME ${name} COMMAND ${name} ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_CORPUS})
  endif()
  set_tests_properties(${name} PROPERTIES LABELS fuzz TIMEOUT 60)
endfunction()

# syncline_benchmark(name SOURCES ... LIBS ...): a Google Benchmark program in build/bench; never a test.
function(syncline_benchmark name)
  if(NOT SYNCLINE_BENCHMARKS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  find_package(benchmark REQUIRED)
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} benchmark::benchmark_main syncline_warnings)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
endfunction()
