"""Runs N copies of a command as the ranks of one run, by environment variables: RANK, WORLD_SIZE, MASTER_ADDR,
MASTER_PORT.

usage: run_ranks.py [--expect CODE,CODE,...] N COMMAND...

Exits 0 if every rank's exit code is the expected one (0 for each unless --expect says otherwise; -9: killed by signal
9). After a rank fails, the others have ten seconds to exit."""
import argparse
import os
import socket
import subprocess
import sys
import time

SECONDS_TO_FOLLOW = 10


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(ranks, command, env=None, **options):
    """The processes, by rank."""
    env = dict(os.environ if env is None else env, WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1",
               MASTER_PORT=str(free_port()))
    return [subprocess.Popen(command, env=dict(env, RANK=str(rank)), **options) for rank in range(ranks)]


def wait(processes, timeout=None):
    """Their exit codes, by rank. A rank that exceeds the timeout, or outlives a failed one too long, is killed: -9."""
    failed = None
    begin = time.monotonic()
    try:
        while any(process.poll() is None for process in processes):
            now = time.monotonic()
            if failed is None and any(process.returncode not in (None, 0) for process in processes):
                failed = now
            if (failed and now > failed + SECONDS_TO_FOLLOW) or (timeout and now > begin + timeout):
                break
            time.sleep(0.02)
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
    return [process.wait() for process in processes]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--expect", type=lambda text: [int(code) for code in text.split(",")])
    parser.add_argument("ranks", type=int)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    expected = arguments.expect or [0] * arguments.ranks
    codes = wait(start(arguments.ranks, arguments.command))
    if codes != expected:
        sys.exit(f"exit codes by rank: {codes}, expected {expected}")


if __name__ == "__main__":
    main()
