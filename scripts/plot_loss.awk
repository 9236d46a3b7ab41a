# Draws the loss over the steps from a run's metrics.jsonl, as a terminal plot: * training, o validation, | resumed.
#   usage: awk [-v width=72] [-v height=16] [-v resumed_at=STEP] -f scripts/plot_loss.awk metrics.jsonl
# A step that was logged twice (before and after a resume) counts as it was logged last.

function number(key,    at, rest) {
  at = index($0, "\"" key "\":")
  if (!at) return ""
  rest = substr($0, at + length(key) + 3)
  sub(/[,}].*/, "", rest)
  gsub(/[ "]/, "", rest)
  return rest ~ /^[-+0-9.eE]+$/ ? rest + 0 : ""  # a NaN or Infinity is not drawn
}

function see(value) {
  if (low == "" || value < low) low = value
  if (high == "" || value > high) high = value
}

function column(step) { return 1 + int((step - first) / (last > first ? last - first : 1) * (width - 1) + 0.5) }
function row(value) { return 1 + int((value - low) / (high > low ? high - low : 1) * (height - 1) + 0.5) }

BEGIN {
  if (!width) width = 72
  if (!height) height = 16
}

{
  step = number("step")
  if (step == "") next
  value = number("loss/avg")
  if (value != "") { loss[step] = value; ++points }
  value = number("validation/loss")
  if (value != "") { validation[step] = value; ++points }
  if (first == "" || step < first) first = step
  if (last == "" || step > last) last = step
}

END {
  if (!points) { print "no losses to plot"; exit }
  for (step in loss) see(loss[step])
  for (step in validation) see(validation[step])
  if (resumed_at > 0) for (y = 1; y <= height; ++y) cell[column(resumed_at), y] = "|"
  for (step in loss) cell[column(step), row(loss[step])] = "*"
  for (step in validation) cell[column(step), row(validation[step])] = "o"
  for (y = height; y >= 1; --y) {
    label = "       "
    if (y == height) label = sprintf("%7.3f", high)
    else if (y == 1) label = sprintf("%7.3f", low)
    else if (y == int((height + 1) / 2)) label = sprintf("%7.3f", low + (high - low) * (y - 1) / (height - 1))
    line = label " |"
    for (x = 1; x <= width; ++x) line = line (((x, y) in cell) ? cell[x, y] : " ")
    sub(/ +$/, "", line)
    print line
  }
  line = "        +"
  for (x = 1; x <= width; ++x) line = line "-"
  print line
  printf "         %-*d%*d\n", width / 2, first, width - int(width / 2), last
  print "         loss in nats over steps: * training, o validation" (resumed_at > 0 ? ", | resumed" : "")
}
