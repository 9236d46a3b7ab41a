"""Pauses of ranks by SIGSTOP, on a thread beside the run."""
import os
import random
import signal
import threading
import time


class Pauses:
    """Within `with`, it stops `pids` as next_pause() says: (process id, seconds stopped, seconds until the next). It
    leaves no process stopped."""

    def __init__(self, next_pause):
        self.next_pause, self.stop, self.count, self.longest = next_pause, threading.Event(), 0, 0
        self.thread = threading.Thread(target=self.work)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()

    def work(self):
        while not self.stop.is_set():
            pid, stopped, running = self.next_pause()
            try:
                os.kill(pid, signal.SIGSTOP)
            except ProcessLookupError:
                return
            begin = time.monotonic()
            try:
                self.stop.wait(stopped)
            finally:
                try:
                    os.kill(pid, signal.SIGCONT)
                except ProcessLookupError:
                    pass
            self.longest, self.count = max(self.longest, time.monotonic() - begin), self.count + 1
            self.stop.wait(running)


def duty_cycle(pid, stopped=0.04, running=0.02):
    return lambda: (pid, stopped, running)


def at_random(pids, longest, seed):
    rng = random.Random(seed)
    return lambda: (rng.choice(pids), longest * rng.random() ** 3, 2 * rng.random())
