# shellcheck shell=bash
# Decides when a training run starts again: its progress, the ends that justify a restart, when to give up. Sourced by
# scripts/slurm/train.sbatch and scripts/run_until_done.sh, which handle the launchers. They set `run`, the run's
# directory, and define start_ranks, which starts the launcher in the background and puts its process id in `launcher`.
# The launcher forwards SIGUSR1 to all ranks: they save and exit with 75.

TOKAMAK=${TOKAMAK:-build/tokamak}
MAX_WITHOUT_PROGRESS=${MAX_WITHOUT_PROGRESS:-3} # restarts in a row that add no checkpoint
SAVE_SECONDS=${SAVE_SECONDS:-240}               # seconds from a request to stop until it kills the remaining ranks

launcher='' # process id while ranks run
last_resort='' # process id of the timer that ends them
stop=''     # the first signal that asked us to stop
attempt=0   # number of this script's current start
attempts_before=0 # added to `attempt`, so that later starts of the series have greater numbers
code=0      # of the last end of all ranks
said=''     # "state" in status.json after that end, if that start wrote it
why=started # the reason of the next start

# A named series may span several jobs or calls; the time orders their starts.
[[ -z ${TOKAMAK_JOB:-} ]] || attempts_before=$(date +%s)

say() { printf '%s restarts: %s\n' "$(date +%T)" "$*"; }

# run_directory ARGUMENTS: prints the run's directory for these arguments of `tokamak train`. Fails as the program does.
run_directory() {
  local value
  value=$("$TOKAMAK" train "$@" --print-value run.output_dir) || return
  [[ $value == /* ]] || value=./$value # not an option, even if it begins with -
  printf '%s\n' "$value"
}

# The run's directory is not trusted: another user or a damaged disk may have put anything there. These two functions
# read its files. Bash evaluates a variable in arithmetic and in [[ -gt ]], including commands inside.
contents() { [[ -f $1 ]] && head -c 65536 "$1" 2>/dev/null | tr -d '\000'; } # FILE; reads no pipe, which would block
number() { if [[ $1 =~ ^0*[0-9]{1,9}$ ]]; then echo $((10#$1)); else echo "$2"; fi; } # WORD OTHERWISE

newest_step() { # of the committed checkpoints; 0 without any
  local steps=("$run"/checkpoints/step-[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9])
  if [[ -d ${steps[-1]} ]]; then echo $((10#${steps[-1]##*/step-})); else echo 0; fi
}

status() { contents "$run/status.json" | sed -n "s/.*\"$1\": *\"\{0,1\}\([^\",}]*\).*/\1/p"; } # FIELD

# read_status INCARNATION: INCARNATION is the one that status.json named before this start. The run's own exit code
# overrides the launcher's: mpirun ends with 1 after SIGTERM, srun with 137 if it had to kill the last ranks. The state
# of an older start is ignored: its "done" may be of fewer steps.
read_status() {
  said=''
  [[ $(status incarnation) != "$1" ]] || return 0
  said=$(status state)
  case $said in done | stopped | failed) code=$(number "$(status code)" "$code") ;; esac
  [[ $code -le 255 ]] || code=255 # exit would take 256 for 0
}

is_done() { [[ $said == "done" ]]; }

# A restart may help after a failure of communication (6) or of a device (8). It may help if ranks were killed: by a
# signal (128 and above), or by mpirun when it lost a host (205). It may help after 0 of a run that is not done. A
# launcher that ends with 1 before any rank wrote its status could not reach a host. Other errors would come again.
is_transient() { [[ $code -eq 0 || $code -eq 6 || $code -eq 8 || $code -ge 128 || ($code -eq 1 && -z $said) ]]; }

# may_start SERIES: prints why the ranks start again, or that it gives up. A file in the run's directory, which survives
# a requeue, counts the starts of this series from the same checkpoint.
may_start() {
  local series='' step='' idle=0 newest kept
  newest=$(newest_step)
  read -r series step idle < <(contents "$run/.restarts")
  idle=$(number "$idle" 0)
  if [[ $series == "$1" && $step == "$newest" ]]; then idle=$((idle + 1)); else idle=0; fi
  mkdir -p "$run" && kept=$(mktemp "$run/.restarts-XXXXXX") && echo "$1 $newest $idle" >"$kept" &&
    mv -fT "$kept" "$run/.restarts" # replaces a link, never follows it
  if [[ $idle -gt $MAX_WITHOUT_PROGRESS ]]; then
    say "$why; $MAX_WITHOUT_PROGRESS restarts brought no checkpoint after step $newest: giving up"
    return 1
  fi
  [[ $attempt -eq 0 ]] || say "$why; starting again at step $newest"
}

# on_stop SIGNAL: asks the ranks to save. A signal between two starts prevents the next one.
on_stop() {
  interrupted=yes
  [[ -z $stop ]] || return
  stop=$1
  say "SIG$stop: the ranks save and end"
  ask_to_save
}

ask_to_save() {
  [[ -n $launcher ]] || return 0
  kill -USR1 "$launcher" 2>/dev/null # it may have ended just now
  end_after "$SAVE_SECONDS" # ranks that hang must leave time for a requeue
}

# Ends the launcher later. TERM makes mpirun and srun kill all ranks, also on other hosts.
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

# Starts all ranks once, from the newest checkpoint.
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
  read_status "$before"
}
