#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Records a program with every LTTng-UST field type, with per-user and per-process buffers, small
# ones, so that events are lost too, and a session that is rotated; then compares our decoding with
# babeltrace2's, with that of the same traces in CTF 2's words, and what babeltrace2 reads in our
# corrected copies with what it reads in the traces.
# record_and_compare.sh CTF_DUMP PROGRAM CTF_COPY CTF_TRANSLITERATE
# Exit code 77: skipped (no root for a session daemon of its own, or no LTTng).
set -euo pipefail
dump=$1 program=$2 copy=$3 transliterate=$4
here=$(cd "$(dirname "$0")" && pwd)
if ! command -v lttng-sessiond babeltrace2 > /dev/null || ! unshare -m true 2> /dev/null; then
  echo "skipped: needs lttng-tools, babeltrace2, and root for private mounts"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Own mounts: the daemon, its sockets and buffers are seen by nobody else, and go with this script.
record() {
  mount --make-rprivate /
  mkdir -p /var/run/lttng
  mount -t tmpfs none /var/run/lttng
  mount -t tmpfs none /dev/shm
  export LTTNG_HOME=$work/home LTTNG_UST_REGISTER_TIMEOUT=-1
  mkdir -p "$LTTNG_HOME"
  lttng-sessiond --no-kernel --background
  trap 'kill "$(cat /var/run/lttng/lttng-sessiond.pid)"' EXIT
  for scheme in uid pid; do
    lttng create "s$scheme" --output="$work/trace/$scheme"
    lttng enable-channel -u -s "s$scheme" "--buffers-$scheme" --subbuf-size 4096 --num-subbuf 64 c1
    lttng enable-channel -u -s "s$scheme" "--buffers-$scheme" --subbuf-size 16384 --num-subbuf 4 c2
    lttng enable-event -u -s "s$scheme" -c c1 'syncline_test:*'
    lttng enable-event -u -s "s$scheme" -c c2 'syncline_test:integers'
    lttng add-context -u -s "s$scheme" -c c1 -t vpid -t vtid -t procname -t pthread_id
    lttng start "s$scheme"
  done
  # The session that is rotated: the second chunk has metadata, event ids and index of its own.
  lttng create srotated --output="$work/rotated"
  lttng enable-channel -u -s srotated --subbuf-size 4096 --num-subbuf 64 c1
  lttng enable-event -u -s srotated -c c1 'syncline_test:*'
  lttng start srotated
  "$program" 2000
  lttng rotate srotated
  "$program" 10
  lttng stop srotated
  lttng destroy srotated
  for scheme in uid pid; do
    lttng stop "s$scheme"
    lttng destroy "s$scheme"
  done
}
export dump program work
export -f record
if ! timeout 60 unshare -m bash -euc record > "$work/log" 2>&1 < /dev/null; then
  cat "$work/log"
  exit 1
fi
mapfile -t traces < <(find "$work/trace" -name metadata -printf '%h\n')
[ "${#traces[@]}" -eq 3 ] || { echo "expected 3 traces, found ${#traces[@]}"; exit 1; }
mapfile -t chunks < <(find "$work/rotated" -name metadata -printf '%h\n')
[ "${#chunks[@]}" -eq 2 ] || { echo "expected 2 chunks, found ${#chunks[@]}"; exit 1; }
python3 "$here/compare.py" "$dump" "${traces[@]}"
python3 "$here/compare.py" "$dump" "${chunks[@]}"
for chunk in "${chunks[@]}"; do python3 "$here/compare.py" "$dump" "$chunk"; done
python3 "$here/compare_ctf2.py" "$dump" "$transliterate" "${traces[@]}"
python3 "$here/compare_copy.py" "$copy" "$transliterate" "${traces[@]}"
