# shellcheck shell=bash
# What a script that starts a training run again must know: how far the run is, which ends are worth another start, when
# to give up. Sourced by scripts/slurm/train.sbatch and scripts/run_until_done.sh, which know the launchers.
# Those set `run`, the run's directory, and define start_ranks: it starts the launcher in the background, its process id in
# `launcher`. The launcher passes SIGUSR1 on to all ranks: they save and exit with 75.

TOKAMAK=${TOKAMAK:-build/tokamak}
MAX_WITHOUT_PROGRESS=${MAX_WITHOUT_PROGRESS:-3} # restarts in a row that add no checkpoint
SAVE_SECONDS=${SAVE_SECONDS:-240}               # from a request to stop until ranks that do not end are killed

launcher='' # process id while ranks run
last_resort='' # process id of what ends them
stop=''     # the first signal that asked us to stop
attempt=0   # of this script's starts
attempts_before=0 # of this series, as far as a later start must be known by a greater number
code=0      # of the last end of all ranks
said=''     # "state" that status.json had then, if that start has written it
why=started # the reason of the next start

# A series of several jobs, or calls, that has a name of its own: their order shows by the time.
[[ -z ${TOKAMAK_JOB:-} ]] || attempts_before=$(date +%s)

say() { printf '%s restarts: %s\n' "$(date +%T)" "$*"; }

# run_directory ARGUMENTS: of the run that these arguments of `tokamak train` mean. Fails as the program does.
run_directory() {
  local value
  value=$("$TOKAMAK" train "$@" --print-value run.output_dir) || return
  [[ $value == /* ]] || value=./$value # a name that begins with - is no option
  printf '%s\n' "$value"
}

# What lies in the run's directory is not ours alone: another user, or a damaged disk, may have put anything there. So its
# files are read through these two. Bash evaluates a variable in arithmetic and in [[ -gt ]], commands inside included.
contents() { [[ -f $1 ]] && head -c 65536 "$1" 2>/dev/null | tr -d '\000'; } # FILE. A pipe would block, a sparse file never end
number() { if [[ $1 =~ ^0*[0-9]{1,9}$ ]]; then echo $((10#$1)); else echo "$2"; fi; } # WORD OTHERWISE

newest_step() { # of the committed checkpoints; 0: there is none
  local steps=("$run"/checkpoints/step-[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9])
  if [[ -d ${steps[-1]} ]]; then echo $((10#${steps[-1]##*/step-})); else echo 0; fi
}

status() { contents "$run/status.json" | sed -n "s/.*\"$1\": *\"\{0,1\}\([^\",}]*\).*/\1/p"; } # FIELD

# heed_status INCARNATION: the one that status.json named before this start. What the run says of its end counts for more
# than the launcher's code: mpirun ends with 1 after SIGTERM, srun with 137 where it had to kill the last ranks. What an
# older start has said does not count: "done" may be of fewer steps.
heed_status() {
  said=''
  [[ $(status incarnation) != "$1" ]] || return 0
  said=$(status state)
  case $said in done | stopped | failed) code=$(number "$(status code)" "$code") ;; esac
  [[ $code -le 255 ]] || code=255 # exit would take 256 for 0
}

is_done() { [[ $said == "done" ]]; }

# Communication failed (6), a device did (8), or ranks were killed: by a signal (128 and above), by mpirun after it lost a
# host (205), or while the launcher saw nothing wrong (0, of a run that is not done). A launcher that fails before any rank
# has written its status ends with 1: it could not reach a host. Other errors would come again.
is_transient() { [[ $code -eq 0 || $code -eq 6 || $code -eq 8 || $code -ge 128 || ($code -eq 1 && -z $said) ]]; }

# may_start SERIES: says why the ranks start again, or that it gives up. The run's directory, which outlives a requeue,
# keeps how often this series of starts came back to the same checkpoint.
may_start() {
  local series='' step='' idle=0 newest kept
  newest=$(newest_step)
  read -r series step idle < <(contents "$run/.restarts")
  idle=$(number "$idle" 0)
  if [[ $series == "$1" && $step == "$newest" ]]; then idle=$((idle + 1)); else idle=0; fi
  mkdir -p "$run" && kept=$(mktemp "$run/.restarts-XXXXXX") && echo "$1 $newest $idle" >"$kept" &&
    mv -fT "$kept" "$run/.restarts" # a link there is replaced, never followed
  if [[ $idle -gt $MAX_WITHOUT_PROGRESS ]]; then
    say "$why; $MAX_WITHOUT_PROGRESS restarts brought no checkpoint after step $newest: giving up"
    return 1
  fi
  [[ $attempt -eq 0 ]] || say "$why; starting again at step $newest"
}

# on_stop SIGNAL: asks the ranks to save. A signal between two starts keeps the next from beginning.
on_stop() {
  interrupted=yes
  [[ -z $stop ]] || return
  stop=$1
  say "SIG$stop: the ranks shall save and end"
  ask_to_save
}

ask_to_save() {
  [[ -n $launcher ]] || return 0
  kill -USR1 "$launcher" 2>/dev/null # it may have ended just now
  end_after "$SAVE_SECONDS" # ranks that hang must not take the time that a requeue needs
}

# The launcher's last resort. TERM lets mpirun and srun kill all ranks, on other hosts too.
end_after() { # SECONDS
  (sleep "$1" && kill -TERM "$launcher" && sleep 10 && kill -KILL "$launcher") >/dev/null 2>&1 &
  last_resort=$!
}

# Waits for the launcher and sets `code`. A signal ends `wait`, but not the launcher.
wait_for_launcher() {
  interrupted=yes
  while [[ -n $interrupted ]]; do
    interrupted=''
    wait "$launcher"
    code=$?
  done
  launcher=''
  [[ -z $last_resort ]] || kill "$last_resort" 2>/dev/null
}

# One start of all ranks, from the newest checkpoint.
run_once() { # ARGUMENTS of tokamak train
  code=75 said=''
  [[ -z $stop ]] || return 0
  export TOKAMAK_ATTEMPT=$((attempts_before + attempt))
  attempt=$((attempt + 1))
  local before
  before=$(status incarnation)
  start_ranks "$@"
  [[ -z $stop ]] || ask_to_save # a signal that came before `launcher` was known
  wait_for_launcher
  heed_status "$before"
}
