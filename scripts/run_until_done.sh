#!/usr/bin/env bash
# A training run under mpirun that goes on until it is done: starts again when a rank or a host dies. At SIGTERM, SIGINT,
# SIGHUP or SIGUSR1 to this script the ranks save, and it ends with 75; a second signal ends them at once.
set -u

usage() {
  cat <<'EOT'
usage: scripts/run_until_done.sh MPIRUN-OPTIONS -- train CONFIG [OVERRIDES]
       scripts/run_until_done.sh -n 4 --hostfile hosts -- train configs/llama-125m.yaml run.output_dir=/shared/runs/mine

Ends with 0 when the run is done, with 75 when a signal stopped it, else with the code of the error that would come
again. After three restarts in a row without a new checkpoint it gives up (MAX_WITHOUT_PROGRESS). A restart loads the
newest checkpoint. Variables: TOKAMAK, the program (build/tokamak); SAVE_SECONDS (240), from a signal until ranks that
do not end are killed; TOKAMAK_JOB, the name of this series of starts (made up if there is none).
EOT
}

# shellcheck source-path=SCRIPTDIR source=restarts.sh
source "$(dirname "${BASH_SOURCE[0]}")/restarts.sh"

# mpirun sends keep-alives to the daemons on other hosts. By its defaults it notices a dead host after 8 minutes, by
# these after 11 seconds.
export OMPI_MCA_oob_tcp_keepalive_time=${OMPI_MCA_oob_tcp_keepalive_time:-5}
export OMPI_MCA_oob_tcp_keepalive_intvl=${OMPI_MCA_oob_tcp_keepalive_intvl:-2}
export OMPI_MCA_oob_tcp_keepalive_probes=${OMPI_MCA_oob_tcp_keepalive_probes:-3}
# Seconds between SIGTERM and SIGKILL to the ranks that another's death leaves. They cannot save without it.
export OMPI_MCA_odls_base_sigkill_timeout=${OMPI_MCA_odls_base_sigkill_timeout:-1}
# In a Slurm job that is the name: it stays over a requeue, which the ranks count.
[[ -n ${SLURM_JOB_ID:-} ]] || export TOKAMAK_JOB=${TOKAMAK_JOB:-$(hostname)-$$-$(date +%s)}
LAST_RANKS=${LAST_RANKS:-30} # seconds from the end of this host's ranks to mpirun's

mpirun_options=()
while [[ $# -gt 0 && $1 != -- ]]; do
  [[ $1 != -h && $1 != --help ]] || { usage && exit 0; }
  mpirun_options+=("$1")
  shift
done
if [[ ${#mpirun_options[@]} -eq 0 || ${2:-} != train ]]; then
  usage >&2
  exit 2
fi
shift 2 # -- train
if ! command -v "${MPIRUN:-mpirun}" >/dev/null; then
  echo "run_until_done: there is no ${MPIRUN:-mpirun} (Debian: openmpi-bin, which scripts/install_deps.sh installs)" >&2
  exit 2
fi
if ! command -v pgrep >/dev/null; then
  echo "run_until_done: there is no pgrep, by which a mpirun that outlives its ranks is found (Debian: procps)" >&2
  exit 2
fi

# setsid: Ctrl-C goes to all processes of a terminal's foreground, and mpirun would kill the ranks a second after it.
start_ranks() {
  setsid "${MPIRUN:-mpirun}" ${TOKAMAK_JOB:+-x TOKAMAK_JOB} -x TOKAMAK_ATTEMPT "${mpirun_options[@]}" "$TOKAMAK" train "$@" &
  launcher=$!
  end_hung_launcher "$launcher" &
}

# When a host is gone and the ranks here have ended by themselves, mpirun may wait for the other host forever.
end_hung_launcher() { # PID
  local without=0 seen=''
  while kill -0 "$1" 2>/dev/null; do
    if pgrep -P "$1" -x tokamak >/dev/null; then seen=yes without=0; else without=$((without + 1)); fi
    if [[ -n $seen && $without -gt $LAST_RANKS ]]; then
      say "mpirun outlives its ranks: ending it"
      kill -TERM "$1" && sleep 5 && kill -KILL "$1"
    fi
    sleep 1
  done
} 2>/dev/null

end_at_once() { # a second signal
  [[ -z $launcher ]] || kill -TERM "$launcher"
}

on_signal() {
  if [[ -z $stop ]]; then on_stop "$1"; else interrupted=yes && end_at_once; fi
}

for signal in TERM INT HUP USR1; do
  # shellcheck disable=SC2064 # now, not later: the signal's name
  trap "on_signal $signal" "$signal"
done
run=$(run_directory "$@") || exit $?
while :; do
  may_start "${TOKAMAK_JOB:-$SLURM_JOB_ID}" || exit "$code"
  run_once "$@"
  if is_done; then exit 0; fi
  if [[ -n $stop ]] || ! is_transient; then exit "$code"; fi
  why="mpirun ended with code $code"
done
