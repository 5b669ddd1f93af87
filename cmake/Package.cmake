# SPDX-License-Identifier: Apache-2.0
# What scripts/package makes: a Debian package, and an archive that runs from any directory.
set(CPACK_PACKAGE_NAME syncline)
set(CPACK_PACKAGE_VENDOR "The Syncline authors")
set(CPACK_PACKAGE_CONTACT "The Syncline authors <syncline@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_FILE_NAME syncline-${PROJECT_VERSION}-linux-x86_64)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS lttng-tools)
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
    "Records distributed training jobs on all nodes at once through LTTng, merges\nthe traces into one timeline with proven error bounds, and says which rank is\nlate and why.")
include(CPack)
