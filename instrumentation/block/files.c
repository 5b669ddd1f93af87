// SPDX-License-Identifier: Apache-2.0
/* The files of the control block: made so that nobody else can plant, read or change them, and so
 * that touching them later cannot raise SIGBUS (space is taken before it is used). */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "instrumentation/block/facts.h"
#include "instrumentation/block/internal.h"
#include "instrumentation/block/monotonic.h"

#define BLOCK_BYTES \
  (sizeof(struct syncline_block) + SYNCLINE_BLOCK_THREADS * sizeof(struct syncline_thread_slot))
#define NAMES_STEP (64u << 10)
#define NAMES_TRIES_SAVED 1000u
#define COUNTERS_BYTES 4096u

size_t syncline_read_small_file(const char* path, char* out, size_t out_bytes) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  size_t used = 0;
  while (used + 1 < out_bytes) {
    ssize_t n = read(fd, out + used, out_bytes - 1 - used);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    used += (size_t)n;
  }
  close(fd);
  out[used] = 0;
  return used;
}

/* Field 22 of /proc/self/stat. The command in field 2 may hold blanks and brackets: count from its
 * end. */
static uint64_t StartTicks(void) {
  char stat_text[1024];
  if (!syncline_read_small_file("/proc/self/stat", stat_text, sizeof stat_text)) return 0;
  char* at = strrchr(stat_text, ')');
  for (int field = 2; at && field < 22; field++) at = strchr(at + 1, ' ');
  uint64_t ticks = 0; /* not by strtoull, which new C libraries give under a name of their own */
  for (at = at ? at + 1 : NULL; at && *at >= '0' && *at <= '9'; at++) {
    ticks = ticks * 10 + (uint64_t)(*at - '0');
  }
  return ticks;
}

static const char* FromEnvironment(const char* name, void* context) {
  (void)context;
  return getenv(name);
}

static void FillFacts(struct syncline_block* block) {
  memcpy(block->magic, SYNCLINE_BLOCK_MAGIC, sizeof block->magic);
  block->version = SYNCLINE_BLOCK_VERSION;
  block->header_bytes = sizeof *block;
  block->pid = getpid();
  block->uid = geteuid();
  struct stat info;
  if (syscall(SYS_newfstatat, AT_FDCWD, "/proc/self/ns/pid", &info, 0) == 0) {
    block->pid_namespace = info.st_ino;
  }
  block->start_ticks = StartTicks();
  block->started_monotonic_ns = syncline_monotonic_ns();
  syncline_facts_from_environment(block, FromEnvironment, NULL);
  char text[4096];
  gethostname(text, sizeof text - 1);
  text[sizeof text - 1] = 0;
  syncline_copy_text(block->hostname, sizeof block->hostname, text);
  size_t n = syncline_read_small_file("/proc/sys/kernel/random/boot_id", text, 40);
  if (n > 0 && text[n - 1] == '\n') text[n - 1] = 0;
  syncline_copy_text(block->boot_id, sizeof block->boot_id, n ? text : "");
  ssize_t length = readlink("/proc/self/exe", text, sizeof text - 1);
  text[length > 0 ? length : 0] = 0;
  syncline_copy_text(block->executable, sizeof block->executable, text);
  n = syncline_read_small_file("/proc/self/cmdline", text, sizeof text);
  syncline_redact_command_line(text, n, block->command_line, sizeof block->command_line);
}

/* By system call, here and above: as functions these are younger than what we may need. */
static int Stat(int fd, struct stat* info) { return (int)syscall(SYS_fstat, fd, info); }

/* A file that only this user can have made: regular, ours, closed to others, not a link. */
static int OpenOwn(int directory, const char* name, int flags) {
  int fd = openat(directory, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | flags, 0600);
  struct stat info;
  if (fd >= 0 && (Stat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != geteuid() ||
                  (info.st_mode & 077) != 0)) {
    close(fd);
    return -1;
  }
  return fd;
}

/* Takes the space now: a full tmpfs must not become SIGBUS in somebody's training loop, nor a file
 * size limit SIGXFSZ. */
static int Back(int fd, uint64_t bytes) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes) return -1;
  int result;
  do {
    result = posix_fallocate(fd, 0, (off_t)bytes);
  } while (result == EINTR);
  return result == 0 ? 0 : -1;
}

static void* MapShared(int fd, size_t bytes) {
  void* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return memory == MAP_FAILED ? NULL : memory;
}

static int OpenDirectory(const char* path) {
  if (mkdir(path, 0700) != 0 && errno != EEXIST) return -1;
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat info;
  if (fd >= 0 && (Stat(fd, &info) != 0 || info.st_uid != geteuid() || (info.st_mode & 077) != 0)) {
    close(fd);
    return -1;
  }
  return fd;
}

/* Containers of one user have a /dev/shm each, thus counters each, and may still write into one
 * trace: keys that begin anywhere among four billion do not meet. */
static uint32_t RandomStart(const struct syncline_files* files) {
  uint32_t start = 0;
  if (syscall(SYS_getrandom, &start, sizeof start, GRND_NONBLOCK) != sizeof start) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    start = (uint32_t)now.tv_nsec * 2654435761u ^ (uint32_t)getpid() ^
            (uint32_t)((uintptr_t)files->counters >> 12);
  }
  return start ? start : 1;
}

static int MakeCounters(struct syncline_files* files, int directory) {
  int fd = OpenOwn(directory, "counters", O_CREAT);
  if (fd < 0) return -1;
  if (Back(fd, COUNTERS_BYTES) == 0) files->counters = MapShared(fd, COUNTERS_BYTES);
  close(fd);
  if (!files->counters) return -1;
  uint32_t untouched = 0;
  __atomic_compare_exchange_n(&files->counters[0], &untouched, RandomStart(files), 0,
                              __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return 0;
}

/* Files are made under another name and renamed, so that the agent never sees half a block; an
 * older file of the same name (the process made one, then called exec) is replaced. */
static int MakeNames(struct syncline_files* files, int directory) {
  char made[128], name[128];
  snprintf(name, sizeof name, "%s.names", files->stem);
  snprintf(made, sizeof made, "%s.names.new", files->stem);
  unlinkat(directory, made, 0);
  int fd = OpenOwn(directory, made, O_CREAT | O_EXCL);
  if (fd < 0) return -1;
  if (Back(fd, NAMES_STEP) == 0) files->names = MapShared(fd, SYNCLINE_NAMES_LIMIT);
  close(fd);
  if (!files->names || renameat(directory, made, directory, name) != 0) {
    unlinkat(directory, made, 0);
    return -1;
  }
  files->names_bytes_backed = NAMES_STEP;
  struct syncline_names_header* header = (struct syncline_names_header*)files->names;
  memcpy(header->magic, SYNCLINE_NAMES_MAGIC, sizeof header->magic);
  header->version = SYNCLINE_BLOCK_VERSION;
  header->limit_bytes = SYNCLINE_NAMES_LIMIT;
  return 0;
}

static int MakeBlock(struct syncline_files* files, int directory,
                     const struct syncline_block* facts) {
  char made[128], name[128];
  snprintf(name, sizeof name, "%s.block", files->stem);
  snprintf(made, sizeof made, "%s.block.new", files->stem);
  unlinkat(directory, made, 0);
  int fd = OpenOwn(directory, made, O_CREAT | O_EXCL);
  if (fd < 0) return -1;
  if (Back(fd, BLOCK_BYTES) == 0) files->block = MapShared(fd, BLOCK_BYTES);
  close(fd);
  if (files->block) {
    memcpy(files->block, facts, sizeof *facts);
    files->slots = (struct syncline_thread_slot*)(files->block + 1);
    files->block->process_key = syncline_files_next_key(files);
    files->block->names_bytes = sizeof(struct syncline_names_header);
    if (renameat(directory, made, directory, name) == 0) return 0;
  }
  unlinkat(directory, made, 0);
  return -1;
}

static void Forget(struct syncline_files* files) {
  if (files->block) munmap(files->block, BLOCK_BYTES);
  if (files->names) munmap(files->names, SYNCLINE_NAMES_LIMIT);
  if (files->counters) munmap(files->counters, COUNTERS_BYTES);
  memset(files, 0, sizeof *files);
}

int syncline_files_make(struct syncline_files* files) {
  static struct syncline_block facts; /* 2 KiB that a small stack need not hold; the lock is held */
  memset(files, 0, sizeof *files);
  memset(&facts, 0, sizeof facts);
  const char* configured = getenv("SYNCLINE_RUNTIME_DIR");
  const int n = configured && *configured
                    ? snprintf(files->directory, sizeof files->directory, "%s", configured)
                    : snprintf(files->directory, sizeof files->directory, "/dev/shm/syncline-%u",
                               (unsigned)geteuid());
  if (n <= 0 || (size_t)n >= sizeof files->directory) return -1;
  int directory = OpenDirectory(files->directory);
  if (directory < 0) return -1;
  FillFacts(&facts);
  snprintf(files->stem, sizeof files->stem, "%llu-%d-%llu", (unsigned long long)facts.pid_namespace,
           facts.pid, (unsigned long long)facts.start_ticks);
  const int made = MakeCounters(files, directory) == 0 && MakeNames(files, directory) == 0 &&
                   MakeBlock(files, directory, &facts) == 0;
  close(directory);
  if (made) return 0;
  if (files->names) syncline_files_unlink(files);
  Forget(files);
  return -1;
}

int syncline_files_grow_names(struct syncline_files* files, uint64_t bytes) {
  if (bytes <= files->names_bytes_backed) return 0;
  if (bytes > SYNCLINE_NAMES_LIMIT) return -1;
  /* Where the file system is full a try costs a millisecond, and it will mostly stay full. */
  if (files->names_tries_saved && files->names_tries_saved++ < NAMES_TRIES_SAVED) return -1;
  /* Opened again rather than kept open: programs close descriptors that they do not know and reuse
   * the numbers, and ours would then grow somebody else's file. */
  int directory = OpenDirectory(files->directory);
  if (directory < 0) return -1;
  char name[128];
  snprintf(name, sizeof name, "%s.names", files->stem);
  int fd = OpenOwn(directory, name, 0);
  close(directory);
  if (fd < 0) return -1;
  uint64_t target = files->names_bytes_backed;
  while (target < bytes) target += target < (1u << 20) ? NAMES_STEP : (1u << 20);
  if (target > SYNCLINE_NAMES_LIMIT) target = SYNCLINE_NAMES_LIMIT;
  const int result = Back(fd, target);
  close(fd);
  files->names_tries_saved = result != 0;
  if (result == 0) files->names_bytes_backed = target;
  return result;
}

void syncline_files_unlink(const struct syncline_files* files) {
  int directory = OpenDirectory(files->directory);
  if (directory < 0) return;
  char name[128];
  snprintf(name, sizeof name, "%s.block", files->stem);
  unlinkat(directory, name, 0);
  snprintf(name, sizeof name, "%s.names", files->stem);
  unlinkat(directory, name, 0);
  close(directory);
}

uint32_t syncline_files_next_key(struct syncline_files* files) {
  uint32_t key;
  do {
    key = __atomic_add_fetch(&files->counters[0], 1, __ATOMIC_RELAXED);
  } while (key == 0);
  return key;
}
