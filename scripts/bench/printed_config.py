"""Parses the output of `tokamak train CONFIG --print-config`: sections of commented keys, two levels deep. So the
config has the program's own defaults, units and overrides."""
import json
import re
import subprocess
import sys


def value_of(text):
    """A scalar or a flow list of scalars: JSON, except for unquoted strings."""
    if text.startswith("[") and text.endswith("]"):
        return [value_of(part.strip()) for part in text[1:-1].split(",") if part.strip()]
    try:
        return json.loads(text)
    except ValueError:
        return text.strip("\"'")


def parse(text):
    """{section: {key: value}}; skips deeper levels, such as the data sets."""
    config, section = {}, None
    for line in text.splitlines():
        line = re.sub(r"\s+#.*$", "", line).rstrip()
        if match := re.fullmatch(r"(\w+):", line):
            section = config.setdefault(match[1], {})
        elif match := re.fullmatch(r"  (\w+): (.+)", line):
            section[match[1]] = value_of(match[2])
    return config


def read_config(tokamak, path, overrides):
    done = subprocess.run([tokamak, "train", path, "--print-config", *overrides], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        sys.exit(f"error: {tokamak} train {path} --print-config: exit {done.returncode}\n{done.stderr.strip()}")
    return parse(done.stdout)
