#!/usr/bin/env bash
# Trains a small language model from a fresh clone, in a few minutes on two cores: packages, build, text, tokenizer,
# shards, training, results. It interrupts the training half-way and resumes it. All files are in runs/quickstart/. A
# second run repeats only the steps that changed; an interrupted training continues from its checkpoint.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly kRun=runs/quickstart kConfig=configs/quickstart.yaml kVocab=4096
readonly kSavedExit=75 # the program's "saved, wants to be started again"

# Containers and CI run as root; Open MPI refuses that without both variables.
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
  --fresh        discard the training in runs/quickstart/ and start again
  --text-only    stop when program and text are there
  --data-only    stop when the shards are there
  --program PATH a tokamak that is built already

Ctrl-C saves a checkpoint; the next start continues from it.
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

# ---- steps that run again only if their inputs changed -------------------------------------------------------------

content_hash() { sha256sum -- "$@" | cut -c1-64 | sha256sum | cut -c1-64; } # of files, independent of their names

renew() { # renew STEP HASH OUTPUT COMMAND...: runs the command unless OUTPUT is of this hash
  local stamp=$kRun/stamps/$1
  if [[ -f $stamp && $(<"$stamp") == "$2" && -e $3 ]]; then
    echo "$1: $3 is up to date"
    return
  fi
  mkdir -p $kRun/stamps "$(dirname "$3")"
  "${@:4}"
  echo "$2" >"$stamp"
}

refuse_if_trained() { # text and tokenizer belong to the model: another text is another training
  [[ $fresh == yes || $(logged_step) -eq 0 && ! -e $kRun/checkpoints ]] ||
    die 2 "$kRun holds a training on other text" "--fresh discards it and trains again"
}

# ---- what a run left behind ----------------------------------------------------------------------------------------

last_value() { # last_value KEY: its value in the last line of metrics.jsonl that has it; empty if none has
  [[ ! -f $kRun/metrics.jsonl ]] || sed -n "s|.*\"$1\": *\([^,}]*\).*|\1|p" $kRun/metrics.jsonl | tail -n 1
}

logged_step() {
  local step
  step=$(last_value step)
  echo "${step:-0}"
}

saved_step() { # of the newest checkpoint
  local found=("$kRun"/checkpoints/step-[0-9]*[0-9])
  if [[ -d ${found[-1]} ]]; then echo $((10#${found[-1]##*-})); else echo 0; fi
}

# ---- the text ------------------------------------------------------------------------------------------------------

# The novels are data of an R package. The package is unpacked here, since installing it would install R.
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
  novels=$(find_novels)
  if [[ ! -f $novels ]] || ! command -v bible >/dev/null; then
    die 3 "the text is not there: Debian's packages r-cran-janeaustenr and bible-kjv" \
      "run without --no-install, or give your own with --text PATH"
  fi
  input=$kRun/text/text.jsonl
  renew text "$(content_hash "$novels" /usr/lib/bible.data scripts/quickstart_text.pl)" $input write_text
}

write_text() {
  bible -f gen1:1-rev22:21 </dev/null | scripts/quickstart_text.pl "$novels" >"$input.partial"
  [[ $(wc -c <"$input.partial") -ge 4000000 ]] || die 3 "$input.partial is shorter than 4 MB"
  mv "$input.partial" "$input"
  echo "text: $input, $(wc -l <"$input") chapters, $(wc -c <"$input") bytes"
}

make_tokenizer() {
  refuse_if_trained
  $kTokamak tokenizer train --input "$input" --vocab-size $kVocab --output $kRun/tokenizer.model
}

make_data() {
  refuse_if_trained
  rm -rf $kRun/data
  # Short documents of a .txt file, so that 2 % of a few MB are several of them.
  $kTokamak data tokenize --input "$input" --tokenizer $kRun/tokenizer.model --output $kRun/data --validation 2% \
    --max-document-bytes 16384
}

# ---- training ------------------------------------------------------------------------------------------------------

trainer='' # process id of mpirun while it runs

# mpirun gets a session of its own: Ctrl-C then reaches only this script, which asks one rank to save. Ranks are not
# bound to cores: the program itself divides the cores among the ranks of a machine.
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

ask_one_rank_to_save() { # fails if there is none
  local rank
  rank=$(pgrep -n -P "$trainer" -x tokamak) || return 1
  echo "quickstart: SIGTERM to one rank, process $rank: all ranks save and stop with exit code $kSavedExit."
  echo "  mpirun reports that as if it were an error; here it is none."
  kill -TERM "$rank"
}

on_interrupt() {
  trap '' HUP INT TERM
  if [[ -n $trainer ]]; then
    ask_one_rank_to_save || kill -TERM "$trainer" 2>/dev/null || true
    wait_for_training || true
    echo "quickstart: interrupted; scripts/quickstart.sh continues from the checkpoint"
  fi
  exit $kSavedExit
}

train() {
  local half code=0
  steps=$($kTokamak train $kConfig "${overrides[@]}" --print-value training.max_steps)
  half=$((steps / 2 - steps / 40)) # no multiple of the validation interval: the stop would cut the validation short
  if [[ $(saved_step) -ge $steps ]]; then
    echo "training is finished ($steps steps); --fresh trains again"
    return
  fi
  trap on_interrupt HUP INT TERM
  if [[ $(logged_step) -lt $half ]]; then
    start_training
    while kill -0 "$trainer" 2>/dev/null && [[ $(logged_step) -lt $half ]]; do sleep 0.3; done
    announce "interrupting at step $(logged_step) of $steps, as a cluster would"
    ask_one_rank_to_save || true # already gone
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
    logged_step >$kRun/stamps/resumed_at
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
  if [[ $resumed_at -gt 0 ]]; then echo "resumed          at step $resumed_at, after SIGTERM to one rank"; fi
  $kTokamak report $kRun --output $kRun/report.html >/dev/null
  cat <<EOF

files
  $input
  $kRun/tokenizer.model      $kVocab pieces
  $kRun/data/                tokenized shards: train, validation
  $kRun/checkpoints/         the model; \`$kTokamak checkpoint inspect\` shows one
  $kRun/metrics.jsonl        all logged values
  $kRun/report.html          a page of curves, texts and restarts; open it in a browser
  $kRun/train.log            the log of all starts of the training
EOF
}

# ---- all steps -----------------------------------------------------------------------------------------------------

if [[ $install == yes ]]; then
  announce "packages"
  scripts/install_deps.sh build quickstart
fi

if [[ -z $program ]]; then
  announce "build"
  # A clean build takes a third less time as units, and finds what scripts/test.sh has compiled.
  [[ -f build/build.ninja ]] || cmake --preset cpu -DTOKAMAK_TESTS=OFF -DTOKAMAK_UNITY=ON
  cmake --build build --target tokamak
fi

mkdir -p $kRun
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
renew tokenizer "$(echo "$kVocab $text_hash" | sha256sum)" $kRun/tokenizer.model make_tokenizer
renew data "$(content_hash $kRun/tokenizer.model $kRun/stamps/tokenizer)" $kRun/data make_data
if [[ $fresh == yes ]]; then # only now: a text that cannot be read costs no training
  rm -rf $kRun/checkpoints $kRun/metrics.jsonl $kRun/tensors.jsonl $kRun/train.log $kRun/config.yaml $kRun/report.html \
    $kRun/stamps/resumed_at
fi
[[ $data_only == no ]] || exit 0

announce "training"
train

announce "results"
if [[ -n $text ]]; then show_results "The "; else show_results "It is a truth universally acknowledged, that"; fi
printf '\nquickstart: done in %d min %02d s; the report is %s\n' $((SECONDS / 60)) $((SECONDS % 60)) "$PWD/$kRun/report.html"
printf 'quickstart: talk to the model: %s serve --checkpoint %s, then open the address that it prints\n' "$kTokamak" $kRun
