#!/usr/bin/env bash
# Trains under mpirun until the run is done, starting again when a rank or a host dies. At SIGTERM, SIGINT, SIGHUP or
# SIGUSR1 the ranks save and this script exits with 75; a second signal ends them at once.
set -u

usage() {
  cat <<'EOT'
usage: scripts/run_until_done.sh MPIRUN-OPTIONS -- train CONFIG [OVERRIDES]
       scripts/run_until_done.sh -n 4 --hostfile hosts -- train configs/llama-125m.yaml run.output_dir=/shared/runs/mine

Exit codes: 0, the run is done; 75, a signal stopped it; others are those of an error that a restart would repeat. Each
restart loads the newest checkpoint. Three restarts in a row without a new checkpoint are the last (MAX_WITHOUT_PROGRESS).
Variables: TOKAMAK, the program (build/tokamak); SAVE_SECONDS (240), from a signal until ranks that have not ended are
killed; TOKAMAK_JOB, the name of this series of starts (default: unique).
EOT
}

# shellcheck source-path=SCRIPTDIR source=restarts.sh
source "$(dirname "${BASH_SOURCE[0]}")/restarts.sh"

# mpirun sends keep-alives to the daemons on other hosts. Its defaults detect a dead host after 8 minutes, these after
# 11 seconds.
export OMPI_MCA_oob_tcp_keepalive_time=${OMPI_MCA_oob_tcp_keepalive_time:-5}
export OMPI_MCA_oob_tcp_keepalive_intvl=${OMPI_MCA_oob_tcp_keepalive_intvl:-2}
export OMPI_MCA_oob_tcp_keepalive_probes=${OMPI_MCA_oob_tcp_keepalive_probes:-3}
# Seconds between SIGTERM and SIGKILL to the ranks that survive another's death. They cannot save without it anyway.
export OMPI_MCA_odls_base_sigkill_timeout=${OMPI_MCA_odls_base_sigkill_timeout:-1}
# A Slurm job's id is the name: it survives a requeue, and the ranks count requeues.
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
  echo "run_until_done: there is no pgrep, which detects an mpirun that outlives its ranks (Debian: procps)" >&2
  exit 2
fi

# setsid: Ctrl-C reaches all processes in a terminal's foreground, and mpirun would kill the ranks a second later.
start_ranks() {
  setsid "${MPIRUN:-mpirun}" ${TOKAMAK_JOB:+-x TOKAMAK_JOB} -x TOKAMAK_ATTEMPT "${mpirun_options[@]}" "$TOKAMAK" train "$@" &
  launcher=$!
  end_hung_launcher "$launcher" &
}

# After a host is lost and the ranks here have ended, mpirun may wait for the lost host forever.
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
  # shellcheck disable=SC2064 # the name is expanded now
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
