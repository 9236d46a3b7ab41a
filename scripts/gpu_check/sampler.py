"""Memory, clock and power of the first GPU while something runs on it."""
import contextlib
import re
import statistics
import subprocess


# nvmlClocksEventReasons of a GPU that is not idle.
REASONS = {0x4: "its power limit", 0x8: "the hardware", 0x20: "its temperature", 0x40: "its temperature",
           0x80: "the power supply"}


class Sampler:
    """Samples the first GPU by nvidia-smi: maximum memory in use, median clock and power, and every reason for
    throttling, as bits (REASONS)."""

    FIELDS = "memory.used,clocks.sm,power.draw,clocks_event_reasons.active"

    def __init__(self, milliseconds=250):
        self.milliseconds, self.found = milliseconds, {}

    def __enter__(self):
        try:
            self.process = subprocess.Popen(
                ["nvidia-smi", "-i", "0", f"--query-gpu={self.FIELDS}", "--format=csv,noheader,nounits", "-lms",
                 str(self.milliseconds)],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        except OSError:
            self.process = None
        return self

    def __exit__(self, *_):
        if not self.process:
            return
        self.process.kill()
        rows = []
        with contextlib.suppress(subprocess.TimeoutExpired):
            lines = self.process.communicate(timeout=10)[0].splitlines()
            rows = [row for row in (re.findall(r"0x[0-9a-f]+|[\d.]+", line) for line in lines) if len(row) == 4]
        if rows:
            memory, clock, power = ([float(row[i]) for row in rows] for i in range(3))
            busy = [i for i, watts in enumerate(power) if watts >= 0.7 * max(power)]
            reasons = 0
            for row in rows:
                reasons |= int(row[3], 0)
            self.found = {"memory_peak_bytes": max(memory) * 2**20, "clock": statistics.median(clock[i] for i in busy),
                          "watts": statistics.median(power[i] for i in busy), "reasons": reasons}


def clocks(found):
    """A sampler's results in words."""
    if "watts" not in found:
        return ""
    slowed = " and ".join(dict.fromkeys(words for bit, words in REASONS.items() if found["reasons"] & bit))
    return f", {found['clock']:.0f} MHz, {found['watts']:.0f} W" + (f", slowed by {slowed}" if slowed else "")
