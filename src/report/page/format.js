// Numbers as text, rounded as in `tokamak report --text`. An unknown value gives a dash.
const DASH = "–";
const isKnown = (value) => value !== null && value !== undefined && isFinite(value);

function number(value, digits = 4) {
  if (!isKnown(value)) return DASH;
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-3) return trimmed(value.toExponential(digits - 1));
  return Number.isInteger(value) ? String(value) : trimmed(value.toPrecision(digits));
}

// 1.50 and 1.5e+3 as 1.5 and 1.5e3.
function trimmed(text) {
  const [mantissa, exponent] = text.split("e");
  const short = mantissa.includes(".") ? mantissa.replace(/\.?0+$/, "") : mantissa;
  return exponent === undefined ? short : short + "e" + exponent.replace("+", "");
}

function scaled(value, base, units) {
  if (!isKnown(value)) return DASH;
  let unit = 0;
  let rest = value;
  while (Math.abs(rest) >= base && unit + 1 < units.length) {
    rest /= base;
    ++unit;
  }
  return (unit === 0 ? number(rest) : trimmed(rest.toPrecision(4))) + units[unit];
}

const count = (value) => scaled(value, 1000, ["", "K", "M", "B", "T"]);
const bytes = (value) => scaled(value, 1024, [" B", " KiB", " MiB", " GiB", " TiB"]);
const whole = (value) => value === null || value === undefined ? DASH : value.toLocaleString("en-US");

function percent(value) {
  if (!isKnown(value)) return DASH;
  return value > 0 && value < 0.0005 ? "< 0.1 %" : (100 * value).toFixed(1) + " %";
}

function duration(seconds) {
  if (!isKnown(seconds)) return DASH;
  if (seconds === 0) return "0 s";
  if (seconds < 1e-3) return trimmed((1e6 * seconds).toPrecision(3)) + " µs";
  if (seconds < 1) return trimmed((1e3 * seconds).toPrecision(3)) + " ms";
  if (seconds < 100) return seconds.toFixed(2) + " s";
  const all = Math.round(seconds), hours = Math.floor(all / 3600), minutes = Math.floor(all / 60) % 60;
  if (hours === 0) return minutes + " min " + all % 60 + " s";
  return hours < 48 ? hours + " h " + minutes + " min" : Math.floor(hours / 24) + " d " + (hours % 24) + " h";
}

// For ticks, which are round.
const percentTick = (value) => trimmed((100 * value).toFixed(2)) + " %";
const durationTick = (seconds) => seconds >= 1 && seconds < 100 ? trimmed(seconds.toPrecision(3)) + " s"
  : duration(seconds);

// "2026-01-31 12:34:56" in UTC, of milliseconds or of an ISO time.
function clock(time) {
  const date = new Date(time);
  return isNaN(date) ? DASH : date.toISOString().slice(0, 19).replace("T", " ");
}

// A cell with a bar behind its text.
const shareCell = (part) => [percent(part), {style: "--share: " + (100 * Math.min(1, part)).toFixed(2) + "%"}];
