// SPDX-License-Identifier: Apache-2.0
/* itt_plugin.so: a library with a static part whose objects lie in its own memory, for unloading.
 */
#include <stdio.h>
#include <string.h>

#include "instrumentation/tests/traps.h"

__attribute__((visibility("default"))) struct TrapPart plugin_part;
static struct itt_domain domain;
static struct itt_string_handle name;
static char domain_text[32], name_text[32];

__attribute__((visibility("default"))) void plugin_start(int number) {
  snprintf(domain_text, sizeof domain_text, "plugin %d", number);
  snprintf(name_text, sizeof name_text, "task of plugin %d", number);
  static_part_start(&plugin_part.part);
  domain.flags = 1;
  domain.name = domain_text;
  name.text = name_text;
  plugin_part.part.global.domains = plugin_part.domain = &domain;
  plugin_part.part.global.strings = plugin_part.name = &name;
  static_part_load(&plugin_part.part);
}
