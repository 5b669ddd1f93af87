// SPDX-License-Identifier: Apache-2.0
#include "instrumentation/block/facts.h"

#include <stdint.h>
#include <string.h>

void syncline_copy_text(char* out, size_t out_bytes, const char* text) {
  if (out_bytes == 0) return;
  size_t n = text ? strlen(text) : 0;
  if (n >= out_bytes) {
    n = out_bytes - 1;
    while (n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80) n--; /* not inside a UTF-8 sequence */
  }
  for (size_t i = 0; i < n; i++) {
    unsigned char c = (unsigned char)text[i];
    out[i] = c < 0x20 || c == 0x7F ? ' ' : (char)c;
  }
  memset(out + n, 0, out_bytes - n);
}

/* A non-negative decimal number that is the whole text; -1 for anything else. */
static int32_t ParseNumber(const char* text) {
  if (!text || !*text) return -1;
  int64_t value = 0;
  for (; *text; text++) {
    if (*text < '0' || *text > '9') return -1;
    value = value * 10 + (*text - '0');
    if (value > INT32_MAX) return -1;
  }
  return (int32_t)value;
}

static int32_t FirstNumber(syncline_environment get, void* context, const char* const* names) {
  for (; *names; names++) {
    int32_t value = ParseNumber(get(*names, context));
    if (value >= 0) return value;
  }
  return -1;
}

static const char* FirstText(syncline_environment get, void* context, const char* const* names) {
  for (; *names; names++) {
    const char* text = get(*names, context);
    /* torchrun's default run id is the word "none" */
    if (text && *text && strcmp(text, "none") != 0) return text;
  }
  return "";
}

void syncline_facts_from_environment(struct syncline_block* block, syncline_environment get,
                                     void* context) {
  static const char* const kRank[] = {"SYNCLINE_RANK", "RANK",         "OMPI_COMM_WORLD_RANK",
                                      "PMI_RANK",      "SLURM_PROCID", NULL};
  static const char* const kWorld[] = {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                       "SLURM_NTASKS", NULL};
  static const char* const kLocal[] = {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
                                       "MPI_LOCALRANKID", "SLURM_LOCALID", NULL};
  static const char* const kJob[] = {"SYNCLINE_JOB", "SLURM_JOB_ID", "TORCHELASTIC_RUN_ID", NULL};
  static const char* const kIncarnation[] = {"SYNCLINE_INCARNATION", "TORCHELASTIC_RESTART_COUNT",
                                             "SLURM_RESTART_COUNT", NULL};
  static const char* const kRole[] = {"SYNCLINE_ROLE", NULL};
  block->rank = FirstNumber(get, context, kRank);
  block->world_size = FirstNumber(get, context, kWorld);
  block->local_rank = FirstNumber(get, context, kLocal);
  syncline_copy_text(block->job, sizeof block->job, FirstText(get, context, kJob));
  syncline_copy_text(block->incarnation, sizeof block->incarnation,
                     FirstText(get, context, kIncarnation));
  syncline_copy_text(block->role, sizeof block->role, FirstText(get, context, kRole));
  const char* tf_config = get("TF_CONFIG", context);
  if (!tf_config) return;
  struct syncline_tf_task task;
  syncline_parse_tf_config(tf_config, &task);
  if (!block->role[0]) syncline_copy_text(block->role, sizeof block->role, task.type);
  if (block->rank < 0) {
    block->rank = task.index;
    if (block->world_size < 0) block->world_size = task.count;
  }
}

/* ---- TF_CONFIG: just enough JSON
 * ------------------------------------------------------------------- */

/* Reads past the end (at a NUL) leave the cursor there, so every loop below ends. */
struct Json {
  const char* at;
  int depth;
};

static void Blanks(struct Json* json) {
  while (*json->at == ' ' || *json->at == '\t' || *json->at == '\n' || *json->at == '\r')
    json->at++;
}

/* A string at the cursor into `out` (escapes kept as they are); 0 when there is none. */
static int String(struct Json* json, char* out, size_t out_bytes) {
  Blanks(json);
  if (*json->at != '"') return 0;
  size_t n = 0;
  for (json->at++; *json->at && *json->at != '"'; json->at++) {
    if (*json->at == '\\' && json->at[1]) json->at++;
    if (n + 1 < out_bytes) out[n++] = *json->at;
  }
  if (out_bytes) out[n] = 0;
  if (*json->at != '"') return 0;
  json->at++;
  return 1;
}

static int Take(struct Json* json, char c) {
  Blanks(json);
  if (*json->at != c) return 0;
  json->at++;
  return 1;
}

/* Skips a value; the number of elements when it is an array, else -1. */
static int Skip(struct Json* json) {
  char ignored[1];
  Blanks(json);
  if (*json->at == '"') return String(json, ignored, sizeof ignored), -1;
  if (*json->at != '[' && *json->at != '{') {
    while (*json->at && !strchr(",]} \t\r\n", *json->at)) json->at++;
    return -1;
  }
  const int is_array = *json->at == '[';
  const char close = is_array ? ']' : '}';
  json->at++;
  int count = 0;
  if (++json->depth < 32 && !Take(json, close)) {
    do {
      if (!is_array && (!String(json, ignored, sizeof ignored) || !Take(json, ':'))) break;
      Skip(json);
      count++;
    } while (Take(json, ','));
    Take(json, close);
  }
  json->depth--;
  return is_array ? count : -1;
}

/* Moves to the value of `key` in the object at `json`; 0 when it has none. */
static int Member(struct Json* json, const char* key) {
  char name[64];
  if (!Take(json, '{')) return 0;
  while (String(json, name, sizeof name) && Take(json, ':')) {
    if (strcmp(name, key) == 0) return 1;
    const char* before = json->at;
    Skip(json);
    if (!Take(json, ',') || json->at == before) return 0;
  }
  return 0;
}

void syncline_parse_tf_config(const char* text, struct syncline_tf_task* task) {
  memset(task, 0, sizeof *task);
  task->index = -1;
  task->count = -1;
  struct Json json = {text, 0};
  if (!Member(&json, "task")) return;
  const struct Json at_task = json;
  if (Member(&json, "type")) String(&json, task->type, sizeof task->type);
  json = at_task;
  if (Member(&json, "index")) {
    Blanks(&json);
    char number[12] = {0}; /* the index may be a number or, from shell scripts, a string */
    if (!String(&json, number, sizeof number)) {
      for (size_t i = 0; i + 1 < sizeof number && json.at[i] >= '0' && json.at[i] <= '9'; i++) {
        number[i] = json.at[i];
      }
    }
    task->index = ParseNumber(number);
  }
  json = (struct Json){text, 0};
  if (task->type[0] && Member(&json, "cluster") && Member(&json, task->type)) {
    task->count = Skip(&json);
  }
}

/* ---- secrets
 * --------------------------------------------------------------------------------------- */

static char Lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c; }

/* `part` of a name is a secret's word: "hf_token" and "apiKey" are, "tokenizer" and "max_tokens"
 * are not. */
static int SecretPart(const char* part, size_t bytes) {
  static const char* const kEndings[] = {"token",  "key",        "password",   "passwd",     "pwd",
                                         "secret", "passphrase", "credential", "credentials"};
  if (bytes == 4 && Lower(part[0]) == 'p' && Lower(part[1]) == 'a' && Lower(part[2]) == 's' &&
      Lower(part[3]) == 's') {
    return 1;
  }
  for (size_t i = 0; i < sizeof kEndings / sizeof *kEndings; i++) {
    const size_t n = strlen(kEndings[i]);
    if (bytes < n) continue;
    size_t same = 0;
    while (same < n && Lower(part[bytes - n + same]) == kEndings[i][same]) same++;
    if (same == n) return 1;
  }
  return 0;
}

static int SecretName(const char* name, size_t bytes) {
  size_t begin = 0;
  for (size_t i = 0; i <= bytes; i++) {
    if (i < bytes && name[i] != '-' && name[i] != '_' && name[i] != '.' && name[i] != ':') continue;
    if (SecretPart(name + begin, i - begin)) return 1;
    begin = i + 1;
  }
  return 0;
}

struct Out {
  char* text;
  size_t bytes;
  size_t used;
};

static void Append(struct Out* out, const char* text, size_t bytes) {
  for (size_t i = 0; i < bytes && out->used + 1 < out->bytes; i++) {
    unsigned char c = (unsigned char)text[i];
    out->text[out->used++] = c < 0x20 || c == 0x7F ? ' ' : (char)c;
  }
}

static void AppendWord(struct Out* out, const char* word, size_t bytes) {
  const char* equals = memchr(word, '=', bytes);
  if (equals && SecretName(word, (size_t)(equals - word))) {
    Append(out, word, (size_t)(equals - word) + 1);
    Append(out, "***", 3);
    return;
  }
  /* scheme://user:password@host */
  for (size_t i = 0; i + 3 < bytes; i++) {
    if (memcmp(word + i, "://", 3) != 0) continue;
    const char* authority = word + i + 3;
    size_t left = bytes - i - 3;
    size_t end = 0;
    while (end < left && !strchr("/?#", authority[end])) end++;
    size_t at = end;
    while (at > 0 && authority[at - 1] != '@') at--;
    if (at == 0) continue; /* no user part */
    const char* colon = memchr(authority, ':', at - 1);
    Append(out, word, (size_t)((colon ? colon + 1 : authority) - word));
    Append(out, "***", 3);
    Append(out, authority + at - 1, left - (at - 1));
    return;
  }
  Append(out, word, bytes);
}

/* The word announces that the next one is a secret: "--password", "Bearer". */
static int AnnouncesSecret(const char* word, size_t bytes) {
  if (bytes == 6 && (memcmp(word, "Bearer", 6) == 0 || memcmp(word, "bearer", 6) == 0)) return 1;
  return bytes > 2 && word[0] == '-' && !memchr(word, '=', bytes) && SecretName(word, bytes);
}

void syncline_redact_command_line(const char* raw, size_t raw_bytes, char* out_text,
                                  size_t out_bytes) {
  if (out_bytes == 0) return;
  struct Out out = {out_text, out_bytes, 0};
  int secret_next = 0;
  /* Words end at blanks too: `sh -c "train --password x"` is one argument. */
  for (size_t i = 0; i < raw_bytes;) {
    size_t n = 0;
    while (i + n < raw_bytes && raw[i + n] != 0 && raw[i + n] != ' ') n++;
    if (secret_next && n > 0 && raw[i] != '-') {
      Append(&out, "***", 3);
    } else {
      AppendWord(&out, raw + i, n);
    }
    if (n > 0) secret_next = AnnouncesSecret(raw + i, n);
    i += n;
    if (i < raw_bytes && i + 1 < raw_bytes) Append(&out, " ", 1);
    i++;
  }
  if (out.used + 1 == out.bytes) { /* cut: drop what may be a part of a UTF-8 sequence */
    while (out.used > 0 && ((unsigned char)out.text[out.used - 1] & 0xC0) == 0x80) out.used--;
    if (out.used > 0 && ((unsigned char)out.text[out.used - 1] & 0x80)) out.used--;
  }
  memset(out.text + out.used, 0, out.bytes - out.used);
}
