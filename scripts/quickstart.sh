#!/usr/bin/env bash
# From a fresh clone to a trained language model, in a few minutes on two cores: packages, build, text, tokenizer,
# shards, training that is interrupted half-way and resumes, and the results. Everything is in runs/quickstart/.
# A second run repeats only the steps that changed; an interrupted training continues from its checkpoint.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly kRun=runs/quickstart kConfig=configs/quickstart.yaml kVocab=4096
readonly kSavedExit=75 # the program's "saved, wants to be started again"

# Containers and CI run as root, which Open MPI refuses without both variables.
if [[ $(id -u) -eq 0 ]]; then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi

usage() {
  cat <<'EOF'
usage: scripts/quickstart.sh [--text PATH] [--ranks N] [--steps N] [--no-install] [--fresh]
                             [--text-only | --data-only] [--program PATH]

  --text PATH    your own text, .txt or .jsonl (key "text"), a few MB at least; otherwise the novels of Jane Austen
                 and the King James Bible (8 MB), which Debian packages ship
  --ranks N      processes that mpirun starts (2)
  --steps N      optimizer steps (400, as configs/quickstart.yaml has it)
  --no-install   do not call apt-get
  --fresh        discard the training in runs/quickstart/ and start anew
  --text-only    stop when program and text are there
  --data-only    stop when the shards are there
  --program PATH a tokamak that is built already

Ctrl-C saves a checkpoint; the next start goes on from there.
EOF
}

die() { # die EXIT_CODE WHAT [HINT]
  echo "quickstart: error: $2" >&2
  [[ $# -lt 3 ]] || echo "  $3" >&2
  exit "$1"
}

announce() { printf '\n== %s (after %d s)\n' "$1" "$SECONDS"; }

text='' ranks=2 steps='' install=yes fresh=no text_only=no data_only=no program=''
while [[ $# -gt 0 ]]; do
  case $1 in
    --text)
      [[ $# -ge 2 ]] || die 2 "--text needs a path"
      text=$2
      shift
      ;;
    --ranks | --steps)
      [[ ${2-} =~ ^[1-9][0-9]*$ ]] || die 2 "$1 needs a number, not '${2-}'"
      [[ $1 == --ranks ]] && ranks=$2 || steps=$2
      shift
      ;;
    --no-install) install=no ;;
    --fresh) fresh=yes ;;
    --text-only) text_only=yes ;;
    --data-only) data_only=yes ;;
    --program)
      [[ -x ${2-} ]] || die 2 "--program needs a program, not '${2-}'"
      program=$2
      shift
      ;;
    -h | --help) usage && exit 0 ;;
    *) die 2 "unknown argument '$1'" "see scripts/quickstart.sh --help" ;;
  esac
  shift
done
[[ -z $text || -r $text ]] || die 3 "cannot read --text '$text'"
readonly kTokamak=${program:-build/tokamak}
overrides=()
[[ -z $steps ]] || overrides=("training.max_steps=$steps")

# ---- steps that run again only if what they depend on changed ------------------------------------------------------

content_hash() { sha256sum -- "$@" | cut -c1-64 | sha256sum | cut -c1-64; } # of files, independent of their names

is_current() { # is_current STEP HASH OUTPUT...
  local stamp=$kRun/stamps/$1 hash=$2 output
  [[ -f $stamp && $(<"$stamp") == "$hash" ]] || return 1
  for output in "${@:3}"; do
    [[ -e $output ]] || return 1
  done
}

stamp() { mkdir -p $kRun/stamps && echo "$2" >$kRun/stamps/"$1"; } # stamp STEP HASH

refuse_if_trained() { # text and tokenizer belong to the model: another text is another training
  [[ $(last_step) -eq 0 && ! -e $kRun/checkpoints ]] ||
    die 2 "$kRun holds a training on other text" "--fresh discards it and trains anew"
}

# ---- what a run left behind ----------------------------------------------------------------------------------------

last_value() { # last_value KEY: its value in the last line of metrics.jsonl that has it; empty if none has
  [[ -f $kRun/metrics.jsonl ]] || return 0
  awk -v key="\"$1\":" '
    { at = index($0, key); if (at) { value = substr($0, at + length(key)); sub(/[,}].*/, "", value) } }
    END { gsub(/ /, "", value); print value }' $kRun/metrics.jsonl
}

last_step() { # that was logged
  local step
  step=$(last_value step)
  echo "${step:-0}"
}

saved_step() { # of the newest checkpoint
  [[ -f $kRun/metrics.jsonl ]] || { echo 0 && return; }
  awk 'index($0, "\"event\":\"checkpoint\",") { at = index($0, "\"step\":"); step = substr($0, at + 7) + 0 }
    END { print step + 0 }' $kRun/metrics.jsonl
}

config_value() { # config_value KEY: a scalar of the resolved config, whatever its section
  printf '%s\n' "$resolved" | awk -v key="$1:" '$1 == key { print $2; exit }'
}

# ---- the text ------------------------------------------------------------------------------------------------------

# The novels are data of an R package. R itself is not needed, so the package is unpacked here instead of installed.
find_novels() {
  local data=usr/lib/R/site-library/janeaustenr/data/Rdata.rdb unpacked=$PWD/$kRun/download
  if [[ ! -f /$data && ! -f $unpacked/$data && $install == yes ]]; then
    echo "downloading the Debian package r-cran-janeaustenr (1.6 MB) to $kRun/download/" >&2
    mkdir -p "$unpacked"
    local as_root=() sandbox=()
    if [[ $(id -u) -eq 0 ]]; then sandbox=(-o APT::Sandbox::User=root); else as_root=(sudo); fi
    (
      cd "$unpacked"
      apt-get "${sandbox[@]}" download -q r-cran-janeaustenr >&2 ||
        { "${as_root[@]}" apt-get update -qq >&2 && apt-get "${sandbox[@]}" download -q r-cran-janeaustenr >&2; }
      dpkg-deb -x r-cran-janeaustenr_*.deb .
    )
  fi
  if [[ -f /$data ]]; then echo "/$data"; else echo "$unpacked/$data"; fi
}

make_text() {
  local novels hash
  novels=$(find_novels)
  if [[ ! -f $novels ]] || ! command -v bible >/dev/null; then
    die 3 "the text is not there: Debian's packages r-cran-janeaustenr and bible-kjv" \
      "run without --no-install, or give your own with --text PATH"
  fi
  hash=$(content_hash "$novels" /usr/lib/bible.data scripts/quickstart_text.pl)
  input=$kRun/text/text.jsonl
  if is_current text "$hash" $input; then
    echo "text: $input is up to date"
    return
  fi
  mkdir -p $kRun/text
  bible -f gen1:1-rev22:21 </dev/null | scripts/quickstart_text.pl "$novels" >$input.partial
  [[ $(wc -c <$input.partial) -ge 4000000 ]] || die 3 "$input.partial is shorter than 4 MB"
  mv $input.partial $input
  stamp text "$hash"
  echo "text: $input, $(wc -l <$input) chapters, $(wc -c <$input) bytes"
}

make_tokenizer() {
  local hash
  hash=$(echo "$kVocab $text_hash" | sha256sum | cut -c1-64)
  if is_current tokenizer "$hash" $kRun/tokenizer.model; then
    echo "tokenizer: $kRun/tokenizer.model is up to date"
    return
  fi
  refuse_if_trained
  $kTokamak tokenizer train --input "$input" --vocab-size $kVocab --output $kRun/tokenizer.model
  stamp tokenizer "$hash"
}

make_data() {
  local hash
  hash=$(content_hash $kRun/tokenizer.model $kRun/stamps/tokenizer)
  if is_current data "$hash" $kRun/data/train/manifest.json $kRun/data/validation/manifest.json; then
    echo "data: $kRun/data is up to date"
    return
  fi
  refuse_if_trained
  rm -rf $kRun/data
  # A .txt file is cut into documents short enough that 2 % of a few MB are several of them.
  $kTokamak data tokenize --input "$input" --tokenizer $kRun/tokenizer.model --output $kRun/data --validation 2% \
    --max-document-bytes 16384
  stamp data "$hash"
}

# ---- training ------------------------------------------------------------------------------------------------------

trainer='' # process id of mpirun while it runs

# mpirun gets a session of its own, so that the terminal's Ctrl-C reaches this script alone, which then asks one rank
# to save. Ranks are not bound to a core each: the program divides the cores among the ranks of a machine itself.
start_training() {
  local command=(mpirun -n "$ranks" --oversubscribe --bind-to none "$kTokamak" train "$kConfig" "${overrides[@]}")
  echo "\$ ${command[*]}"
  setsid "${command[@]}" </dev/null &
  trainer=$!
}

wait_for_training() { # returns mpirun's exit code; a signal to this script only interrupts the waiting
  local code
  while true; do
    code=0
    wait "$trainer" || code=$?
    kill -0 "$trainer" 2>/dev/null || break
  done
  trainer=''
  return $code
}

rank_pids() { # children of mpirun; without pgrep, which a small Debian lacks
  local directory name value
  for directory in /proc/[0-9]*; do
    name=''
    read -r name 2>/dev/null <"$directory/comm" || true
    [[ $name == tokamak ]] || continue
    while read -r name value; do
      [[ $name == PPid: && $value == "$trainer" ]] && echo "${directory#/proc/}"
    done 2>/dev/null <"$directory/status"
  done
  return 0
}

ask_one_rank_to_save() { # fails if there is none
  local pids
  pids=$(rank_pids)
  [[ -n $pids ]] || return 1
  echo "quickstart: SIGTERM to one rank, process ${pids##*$'\n'}: all ranks save and stop with exit code $kSavedExit, which"
  echo "  mpirun will report as if it were an error; here it is none"
  kill -TERM "${pids##*$'\n'}"
}

on_interrupt() {
  trap '' HUP INT TERM
  if [[ -n $trainer ]]; then
    ask_one_rank_to_save || kill -TERM "$trainer" 2>/dev/null || true
    wait_for_training || true
    echo "quickstart: interrupted; scripts/quickstart.sh goes on from the checkpoint"
  fi
  exit $kSavedExit
}

train() {
  local half code=0
  resolved=$($kTokamak train $kConfig "${overrides[@]}" --print-config)
  steps=$(config_value max_steps)
  [[ $steps =~ ^[1-9][0-9]*$ ]] || die 2 "$kConfig sets no training.max_steps"
  half=$((steps / 2 - steps / 40)) # no multiple of the interval of validation, which the stop would cut short
  if [[ $(saved_step) -ge $steps ]]; then
    echo "training is finished ($steps steps); --fresh trains anew"
    return
  fi
  trap on_interrupt HUP INT TERM
  if [[ $(last_step) -lt $half ]]; then
    start_training
    while kill -0 "$trainer" 2>/dev/null && [[ $(last_step) -lt $half ]]; do sleep 0.3; done
    announce "interrupting at step $(last_step) of $steps, as a cluster would"
    ask_one_rank_to_save || true # already gone: its exit code tells
    wait_for_training || code=$?
    if [[ $code -eq 0 ]]; then
      echo "training was faster than the interruption"
      trap - HUP INT TERM
      return
    fi
    [[ $code -eq $kSavedExit ]] ||
      die $code "training ended with exit code $code instead of $kSavedExit (saved)" \
        "its log is $kRun/train.log"
    announce "resuming from $kRun/checkpoints (training ended with exit code $code: saved)"
    last_step >$kRun/stamps/resumed_at
  fi
  start_training
  code=0
  wait_for_training || code=$?
  [[ $code -eq 0 ]] || die $code "training ended with exit code $code" "its log is $kRun/train.log"
  trap - HUP INT TERM
}

# ---- results -------------------------------------------------------------------------------------------------------

show_results() {
  local prompt=$1 resumed_at=0
  [[ ! -f $kRun/stamps/resumed_at ]] || resumed_at=$(<$kRun/stamps/resumed_at)
  echo
  $kTokamak watch $kRun --once --columns 100 --rows 32
  echo
  echo "A continuation of \"$prompt\":"
  echo
  $kTokamak generate --checkpoint $kRun/checkpoints --prompt "$prompt"
  echo
  awk -v loss="$(last_value validation/loss)" -v bits="$(last_value validation/bits_per_byte)" -v vocab=$kVocab 'BEGIN {
    if (loss == "") { print "validation loss  none in metrics.jsonl"; exit }
    printf "validation loss  %.3f nats, perplexity %.1f%s\n", loss, exp(loss),
      bits == "" ? "" : sprintf(", %.3f bits per byte", bits)
    printf "                 %.2f nats below ln(%d) = %.3f, the loss of a uniform guess\n",
      log(vocab) - loss, vocab, log(vocab) }'
  awk '{ at = index($0, "\"throughput/tokens_per_sec\":")
         if (at) { value = substr($0, at + 28); sub(/[,}].*/, "", value); sum += value; ++n } }
    END { if (n) printf "throughput       %.0f tokens/s on average\n", sum / n }' $kRun/metrics.jsonl
  if [[ $resumed_at -gt 0 ]]; then echo "resumed          at step $resumed_at, after SIGTERM to one rank"; fi
  $kTokamak report $kRun --output $kRun/report.html >/dev/null
  cat <<EOF

where everything lies
  $input
  $kRun/tokenizer.model      $kVocab pieces
  $kRun/data/                tokenized shards: train, validation
  $kRun/checkpoints/         the model; \`$kTokamak checkpoint inspect\` shows one
  $kRun/metrics.jsonl        every number that was logged
  $kRun/report.html          the same as a page: curves, texts, restarts; open it in a browser
  $kRun/train.log            the log of training, of all its starts
EOF
}

# ---- the whole ---------------------------------------------------------------------------------------------------

if [[ $install == yes ]]; then
  announce "packages"
  scripts/install_deps.sh build quickstart
fi

if [[ -z $program ]]; then
  announce "build"
  [[ -f build/build.ninja ]] || cmake --preset cpu -DTOKAMAK_TESTS=OFF
  cmake --build build --target tokamak
fi

mkdir -p $kRun
if [[ $fresh == yes ]]; then
  rm -rf $kRun/checkpoints $kRun/metrics.jsonl $kRun/tensors.jsonl $kRun/train.log $kRun/config.yaml $kRun/report.html \
    $kRun/stamps/resumed_at
fi

announce "text, tokenizer, shards"
if [[ -n $text ]]; then input=$text; else make_text; fi
[[ $text_only == no ]] || exit 0
if [[ -d $input ]]; then
  mapfile -d '' -t files < <(find "$input" -type f -print0 | sort -z)
else
  files=("$input")
fi
[[ ${#files[@]} -gt 0 ]] || die 3 "no files in '$input'"
text_hash=$(content_hash "${files[@]}")
make_tokenizer
make_data
[[ $data_only == no ]] || exit 0

announce "training"
train

announce "results"
if [[ -n $text ]]; then show_results "The "; else show_results "It is a truth universally acknowledged, that"; fi
printf '\nquickstart: done in %d min %02d s; the report is %s\n' $((SECONDS / 60)) $((SECONDS % 60)) "$PWD/$kRun/report.html"
