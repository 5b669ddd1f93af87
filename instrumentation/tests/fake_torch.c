// SPDX-License-Identifier: Apache-2.0
/* libtorch_fake.so: its name is all that is wanted of it. */
__attribute__((visibility("default"))) int torch_fake(void) { return 0; }
