# SPDX-License-Identifier: Apache-2.0
# Writes OUTPUT with the commit of SOURCE, when it changed: `--version` names it. Empty where the
# sources are no git checkout. Run with cmake -P.
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=10 --exclude=*
                OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(commit)
  set(commit " (commit ${commit})")
endif()
set(text "// SPDX-License-Identifier: Apache-2.0\n#define SYNCLINE_COMMIT_TEXT \"${commit}\"\n")
set(before "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} before)
endif()
if(NOT text STREQUAL before)
  file(WRITE ${OUTPUT} "${text}")
endif()
