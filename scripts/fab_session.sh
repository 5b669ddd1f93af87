#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A program in a session of its own, known by a file: started, looked at, ended. fabfile.py starts
# agents and jobs with it on the hosts, where it is installed as libexec/syncline/session.
#
#   session start FILE LOG COMMAND...
#       The command outlives the log-in; what it prints is added to LOG.
#   session start-line FILE LOG LINE COMMAND...
#       The same with `SHELL -c LINE` behind the command: bash where there is one, sh otherwise.
#   session state FILE
#       Prints starting (nothing of LINE runs yet), running or ended.
#   session end FILE...
#       Ends all that is left of each session: SIGTERM, and SIGKILL to what ignores it.
#   session replace FILE
#       The same, but what is sent first is SIGUSR1, and only to the first process.
#
# FILE holds the pid of the session's first process. By itself a pid may be a stranger's: the
# program ended, or the machine was restarted. FILE.of holds what tells: the process' start time,
# the boot id, and a mark in the environment of all that the program starts, by which the rest of a
# session is known whose first process has ended.
set -u
limit_s=10             # until SIGKILL
killing_s=3            # until that has worked, too
launching="fab launch" # the last word of every process that leads up to LINE
read -r boot_id </proc/sys/kernel/random/boot_id

# start_of PID: sets `state` and `since` (clock ticks after the boot), both empty without a process.
start_of() {
  state='' since='' stat=''
  { while read -r part; do stat="$stat $part"; done <"/proc/$1/stat"; } 2>/dev/null
  test -n "$stat" || return 0
  # What stands before is the pid and the program's name, which may hold anything.
  set -- ${stat##*) }
  state=$1 since=${20}
}

marked() {
  grep -qz "^SYNCLINE_SESSION=$mark\$" "/proc/$1/environ" 2>/dev/null
}

# look FILE: sets `pid`, `first` (that pid, if it lives) and `rest` (the others of its session that
# live). All are empty when what FILE speaks of has ended.
look() {
  pid='' first='' rest=''
  { read -r pid <"$1" && read -r began boot mark <"$1.of"; } 2>/dev/null || return 0
  test "$boot" = "$boot_id" || return 0
  ours=no
  start_of "$pid"
  if [ -n "$since" ]; then
    test "$since" = "$began" || return 0 # a stranger's
    ours=yes
    test "$state" = Z || first=$pid
  fi
  for member in $(pgrep -s "$pid"); do
    start_of "$member"
    case $state in '' | Z | X) continue ;; esac
    test "$member" = "$pid" || rest="$rest $member"
    test $ours = yes || ! marked "$member" || ours=yes
  done
  test $ours = yes || rest=''
}

start() {
  file=$1 log=$2
  shift 2
  rm -f "$file" "$file.of"
  : >>"$log" || return 1 # by the time this returns there is one, and one that cannot be is said
  mark=$(cat /proc/sys/kernel/random/uuid)
  # Not the leader of a process group here, so setsid does not fork: the pid is the session's.
  SYNCLINE_SESSION=$mark setsid "$@" </dev/null >>"$log" 2>&1 &
  pid=$!
  start_of "$pid"
  if ! { echo "${since:-0} $boot_id $mark" >"$file.of" && echo "$pid" >"$file"; }; then
    kill -KILL "$pid"
    return 1
  fi
}

start_line() {
  file=$1 log=$2 line=$3
  shift 3
  start "$file" "$log" "$@" "$(command -v bash || echo sh)" -c "$line" "$launching"
}

# uptime: sets `up_s`.
uptime() {
  read -r up_s _ </proc/uptime
  up_s=${up_s%.*}
}

words_of() {
  tr '\0' '\n' <"/proc/$1/cmdline" 2>/dev/null
}

# Whether a process only leads up to LINE. One that ends, or is about to become another program,
# has no words.
leads_up() {
  last=$(words_of "$1" | tail -n 1)
  test -z "$last" || test "$last" = "$launching"
}

print_state() {
  look "$1"
  if [ -z "$first$rest" ]; then
    echo ended
  elif [ -z "$first" ]; then
    echo running
  elif [ -z "$(pgrep -s "$first")" ]; then
    echo starting # setsid has not run yet
  elif ! leads_up "$first"; then
    echo running
  else
    # The shell itself runs LINE as soon as something else runs beside it; until then it may still
    # be looking for a program that does not exist. Before the shell, others come and go.
    if [ "$(words_of "$first" | sed -n 2p)" = -c ]; then
      for member in $rest; do
        leads_up "$member" || { echo running && return; }
      done
    fi
    echo starting
  fi
}

# end TERM|USR1 FILE...
end() {
  signal=$1 code=0
  shift
  for file; do
    look "$file"
    if [ "$signal" = USR1 ]; then rest=''; fi
    test -z "$first$rest" || kill -s "$signal" $first $rest
  done
  uptime
  limit=$((up_s + limit_s))
  for file; do
    test -e "$file" || continue
    look "$file"
    while [ -n "$first$rest" ] && uptime && [ $up_s -le $((limit + killing_s)) ]; do
      test $up_s -lt $limit || kill -s KILL $first $rest
      sleep 0.1
      look "$file"
    done
    if [ -n "$first$rest" ]; then
      echo "$file: cannot end" $first $rest "(whose is it? see ps -f $first $rest)" >&2
      code=1
    else
      rm -f "$file" "$file.of"
    fi
  done
  return $code
}

what=${1:-}
test $# -eq 0 || shift
case $what in
  start) start "$@" ;;
  start-line) start_line "$@" ;;
  state) print_state "$@" ;;
  end) end TERM "$@" ;;
  replace) end USR1 "$@" ;;
  *)
    sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p;}' "$0" >&2
    exit 2
    ;;
esac
