// SPDX-License-Identifier: Apache-2.0
/* Included before each file of what is loaded into foreign processes (CMakeLists.txt): binds these
 * functions by the versions that they have in old C libraries, too. glibc 2.32 to 2.34 moved them
 * into libc.so.6, under new versions; a program whose C library does not have those does not start
 * with us preloaded. In a container with an older system that inherits the environment that is
 * every program. Without #include lines: feature macros come later. */
#ifndef SYNCLINE_INSTRUMENTATION_OLD_GLIBC_H_
#define SYNCLINE_INSTRUMENTATION_OLD_GLIBC_H_

#if defined(__x86_64__)
#define SYNCLINE_OLDEST "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define SYNCLINE_OLDEST "GLIBC_2.17"
#endif

#ifdef SYNCLINE_OLDEST
#define SYNCLINE_BIND_OLDEST(name) __asm__(".symver " #name "," #name "@" SYNCLINE_OLDEST)
SYNCLINE_BIND_OLDEST(dladdr);
SYNCLINE_BIND_OLDEST(dlclose);
SYNCLINE_BIND_OLDEST(dlopen);
SYNCLINE_BIND_OLDEST(dlsym);
SYNCLINE_BIND_OLDEST(pthread_create);
SYNCLINE_BIND_OLDEST(pthread_key_create);
SYNCLINE_BIND_OLDEST(pthread_mutex_timedlock);
SYNCLINE_BIND_OLDEST(pthread_mutex_trylock);
SYNCLINE_BIND_OLDEST(pthread_setspecific);
SYNCLINE_BIND_OLDEST(pthread_sigmask);
SYNCLINE_BIND_OLDEST(sem_init);
SYNCLINE_BIND_OLDEST(sem_post);
#ifndef SYNCLINE_OWN_SEM_TIMEDWAIT /* this file is one that defines it */
SYNCLINE_BIND_OLDEST(sem_timedwait);
#endif
#endif

#endif /* SYNCLINE_INSTRUMENTATION_OLD_GLIBC_H_ */
