// SPDX-License-Identifier: Apache-2.0
/* What the training process tells LTTng-UST and our libraries, whoever tells it: `syncline run`, or
 * they. */
#ifndef SYNCLINE_INSTRUMENTATION_ABI_TRACER_H_
#define SYNCLINE_INSTRUMENTATION_ABI_TRACER_H_

#define SYNCLINE_TRACER_TIMEOUT_VARIABLE "LTTNG_UST_REGISTER_TIMEOUT"

/* In ms, unless the user chose one. LTTng-UST makes two limits of it. For so long a program waits,
 * at its start and at every fork, for a session daemon that hangs (LTTng's own default: 3 s). And
 * for so long, at least 10 ms, it waits for the daemon's answers when a recording begins; when it
 * gives up on one, the recording has nothing of this process. With 10 ms an overloaded machine lost
 * 24 of 360 programs that way. */
#define SYNCLINE_TRACER_TIMEOUT_MS "500"

/* Set, whatever to: LTTng-UST does not read the ELF headers of every library of the program, for
 * events (lttng_ust_statedump) that we do not use. It would do so at the program's start and in
 * every forked child, which goes on 5 ms later for that. */
#define SYNCLINE_TRACER_NO_LIBRARIES_VARIABLE "LTTNG_UST_WITHOUT_BADDR_STATEDUMP"

/* Names a second ITT collector, which our own gives every call too. */
#define SYNCLINE_ALSO_COLLECTOR_VARIABLE "SYNCLINE_ALSO_COLLECTOR"

#endif /* SYNCLINE_INSTRUMENTATION_ABI_TRACER_H_ */
