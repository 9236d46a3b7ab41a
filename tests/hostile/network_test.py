"""Strangers on the network against the real program: connections to a rank's port while a run starts, false ranks, and
a false rank 0. Each case has limits of time and memory. A stranger leaves the run unharmed, with the same bits. A false
rank ends it with one clear error and a documented exit code. Neither can forge a line of the log.

usage: network_test.py [PART OF A NAME ...]     HOSTILE=all: every case, in place of one or two of each kind."""
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from attacked_run import Run  # first: it makes the others importable
from encounters import (at_data_port, at_rank_zero, environment, false_rank, false_rank_zero, one_at, options, stopped,
                        zero_with)
from harness import ENV, MPIRUN, TOKAMAK, Workplace
from strangers import (BARRIER, DISCONNECT, END, FORGED, GATHER, MAGIC, MESSAGE, FalseRank, FalseRankZero, answers,
                       answers_challenge, churns, closes_its_side, connect, drips, frame, hear, hello, hello_words,
                       leaves, listening_ports, meanwhile, noise, proof, says, send, silent)

AT_ONCE = 3  # cases at once: they wait more than they compute
SECRET = "a secret of 32 characters, or so"


@options(size=3)
def two_of_rank_one(run, bits):
    zero, one = run.start(0), run.start(1)
    run.listen(zero, run.port)
    run.listen(one)
    second = run.start(1)
    first_code, second_code = None, None
    run.until(lambda: one.poll() is not None or second.poll() is not None, "neither is refused")
    first_code, second_code = one.poll(), second.poll()
    refused, kept = (one, second) if first_code is not None else (second, one)
    assert (first_code, second_code).count(None) == 1, run.text()
    run.expect_error(refused, 6, "is a second rank 1: the first is on ")
    run.expect_unharmed([zero, kept, run.start(2)], bits)


@options()
def another_size(run, bits):
    zero = run.start(0)
    run.listen(zero, run.port)
    run.expect_error(run.start(1, WORLD_SIZE="4"), 6, "was started as one of 4 ranks, rank 0 as one of 2")
    run.expect_unharmed([zero, run.start(1)], bits)


@options(secret=SECRET)
def other_secret(run, bits):
    zero = run.start(0)
    run.listen(zero, run.port)
    run.expect_error(run.start(1, TOKAMAK_SECRET="another one, as long as it has to be"), 6, "has another TOKAMAK_SECRET")
    run.env.pop("TOKAMAK_SECRET")
    run.expect_error(run.start(1), 6, "has a TOKAMAK_SECRET, this rank has none")
    run.expect_unharmed([zero, run.start(1, TOKAMAK_SECRET=SECRET)], bits)
    assert run.text(0).count("warning") == 2 and "rank 1 on " in run.text(0) and SECRET not in run.text(), run.text()


@options(secret=SECRET, size=3)
def with_a_secret(run, bits):
    run.expect_unharmed([run.start(0), run.start(1), run.start(2)], bits)


@options(secret=SECRET)
def replayed(run, bits):
    """A stranger replays a rank's message to one rank 0, byte by byte, to the rank 0 of another run."""
    overheard = []
    zero = FalseRankZero(lambda connection: (overheard.append(hear(connection)), send(connection, frame("challenge", "0" * 32)),
                                             overheard.append(hear(connection)), connection.close()))
    run.env["MASTER_PORT"] = str(zero.port)
    run.expect_error(run.start(1), 6, "left without an answer")
    zero.close()
    run.env["MASTER_PORT"] = str(run.port)
    real = run.start(0)
    run.listen(real, run.port)
    held = send(connect(run.port), frame(*overheard[0]), frame(*overheard[1]))
    assert hear(held)[0] == "challenge" and hear(held)[0] == "refused"
    run.expect_unharmed([real, run.start(1)], bits)


@options(size=3)
def only_where_it_is_named(run, bits):
    """MASTER_ADDR is a loopback address: then no port of a rank is open to other hosts."""
    zero, one = run.start(0), run.start(1)
    run.listen(zero, run.port)
    run.listen(one)
    for process in (zero, one):
        for addresses in listening_ports(process.pid).values():
            assert addresses == {"0100007F"}, addresses
    run.expect_unharmed([zero, one, run.start(2)], bits)


@options()
def beside_mpi(run, bits):
    """Strangers send noise and guessed hellos to the control port that ranks under mpirun open for a moment."""
    log = open(run.place.file(run.name + "-mpi.log"), "w+b")
    run.logs.append(log)
    command = [MPIRUN, "-n", "2", "--oversubscribe", "--bind-to", "none", TOKAMAK, "train", run.config, "training.max_steps=2"]
    process = subprocess.Popen(command, env=dict(ENV, OMP_WAIT_POLICY="passive"), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    run.processes.append(process)
    hits, held = [], []

    def attack():
        while process.poll() is None:
            for entry in filter(str.isdigit, os.listdir("/proc")):
                try:
                    with open(f"/proc/{entry}/cmdline", "rb") as file:
                        words = file.read().split(b"\0")
                except OSError:
                    continue
                if words[0] != TOKAMAK.encode() or run.config.encode() not in words:
                    continue
                for port in listening_ports(entry):
                    try:
                        held.append(send(connect(port, 1), hello(job="control beside MPI", nonce="0" * 32), noise(100)))
                        held.append(send(connect(port, 1), b"\0" * 8192))
                        hits.append(port)
                    except OSError:
                        pass
            time.sleep(0.001)
    thread = threading.Thread(target=attack, daemon=True)
    thread.start()
    run.expect_unharmed([process], bits)
    thread.join()
    assert hits, "the port was never seen"


def with_lanes(then):
    return lambda run: then(FalseRank(run.port).connect_lanes())


def begun(then):
    return lambda run: then(FalseRank(run.port).begin())


def closes(rank):
    for connection in (rank.control, *rank.lanes):
        connection.close()


ROOT = struct.pack("<q", 1)
LONG_LIST = [word for _ in range(2) for word in ("h", "127.0.0.1", "1")]
REFUSED = frame("expected", "")
# (kind, in CI, name, case)
CASES = [
    ("strangers", True, "200 that are silent", at_rank_zero(silent(200))),
    ("strangers", False, "100 that leave", at_rank_zero(leaves(100))),
    ("strangers", True, "a port scan: 100 resets", at_rank_zero(leaves(100, reset=True))),
    ("strangers", True, "64 MiB of NUL", at_rank_zero(says(b"\0" * (64 << 20)))),
    ("strangers", True, "64 MiB of NUL in a frame", at_rank_zero(says(MAGIC, struct.pack("<I", 1 << 26), b"\0" * (64 << 20)))),
    ("strangers", False, "HTTP", at_rank_zero(says(b"GET / HTTP/1.1\r\nHost: n0\r\n\r\n"))),
    ("strangers", False, "TLS", at_rank_zero(says(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + noise(500)))),
    ("strangers", False, "SSH", at_rank_zero(says(b"SSH-2.0-OpenSSH_9.2p1\r\n"))),
    ("strangers", False, "a megabyte of noise", at_rank_zero(says(noise(1 << 20)))),
    ("strangers", False, "churn of 8 threads", at_rank_zero(churns(8, 2))),
    ("strangers", False, "300 half frames", at_rank_zero(says(hello()[:30], times=300))),
    ("strangers", False, "escapes and forged lines, no frame", at_rank_zero(says(FORGED.encode() * 1000))),
    ("frames", False, "magic, then silence", at_rank_zero(says(MAGIC))),
    ("frames", False, "the longest length", at_rank_zero(says(MAGIC, b"\xff" * 4, noise(4096)))),
    ("frames", False, "length 0", at_rank_zero(says(MAGIC, b"\0" * 4))),
    ("frames", True, "4096 separators", at_rank_zero(says(MAGIC, struct.pack("<I", 4096), b"\0" * 4096))),
    ("frames", False, "4097 bytes", at_rank_zero(says(MAGIC, struct.pack("<I", 4097), b"x" * 4097))),
    ("frames", False, "a half hello, closed on one side", at_rank_zero(closes_its_side(hello()[:-3]))),
    ("frames", False, "a byte at a time", at_rank_zero(drips(hello(job="run 'x'"), 0.05))),
    ("frames", False, "two frames in one", at_rank_zero(says(hello(job="run 'x'"), hello(job="run 'y'")))),
    ("hellos", True, "a job with escapes and forged lines", at_rank_zero(says(hello(job="run '" + FORGED)))),
    ("hellos", False, "a job of 4000 bytes", at_rank_zero(says(hello(job="x" * 3900)))),
    ("hellos", True, "a host with escapes and forged lines", at_rank_zero(says(hello(size=9, host=FORGED * 50)))),
    ("hellos", False, "a host that is no UTF-8", at_rank_zero(says(hello(size=9, host=b"\xff\xfe\x80" * 100)))),
    ("hellos", False, "an older version", at_rank_zero(says(frame("3", *hello_words()[1:7])))),
    ("hellos", False, "a version with escapes", at_rank_zero(says(hello(version=FORGED)))),
    ("hellos", False, "rank -1", at_rank_zero(says(hello(rank=-1)))),
    ("hellos", False, "rank 2 of 2", at_rank_zero(says(hello(rank=2)))),
    ("hellos", False, "a second rank 0", at_rank_zero(says(hello(rank=0)))),
    ("hellos", False, "rank 1x", at_rank_zero(says(hello(rank="1x"), times=3))),
    ("hellos", False, "a rank beyond all numbers", at_rank_zero(says(hello(rank="9" * 40)))),
    ("hellos", False, "a size beyond all numbers", at_rank_zero(says(hello(size="9" * 40)))),
    ("hellos", False, "port 70000", at_rank_zero(says(hello(port=70000)))),
    ("hellos", False, "words that are empty", at_rank_zero(says(frame(*[""] * 8)))),
    ("hellos", False, "a challenge from a guest", at_rank_zero(says(frame("challenge", "0" * 32)))),
    ("hellos", False, "a secret where there is none", at_rank_zero(says(hello(nonce="0" * 32)))),
    ("hellos", False, "data before all have met", at_rank_zero(says(hello(kind="data0")))),
    ("hellos", False, "a kind with escapes", at_rank_zero(says(hello(kind=FORGED)))),
    ("other ranks", True, "a second rank 1", two_of_rank_one),
    ("other ranks", False, "a rank of another size", another_size),
    ("secret", False, "all know it", with_a_secret),
    ("secret", True, "ranks with another one and with none", other_secret),
    ("secret", False, "a guest without", at_rank_zero(says(hello()), SECRET)),
    ("secret", True, "200 that never answer the challenge", at_rank_zero(says(hello(nonce="1" * 32), times=200), SECRET)),
    ("secret", False, "a wrong proof", at_rank_zero(answers_challenge(lambda n, w: frame("proof", proof("no", n, w))), SECRET)),
    ("secret", False, "the proof of the other side",
     at_rank_zero(answers_challenge(lambda n, w: frame("proof", proof(SECRET, n, w, "listens"))), SECRET)),
    ("secret", False, "a proof of another hello",
     at_rank_zero(answers_challenge(lambda n, w: frame("proof", proof(SECRET, n, hello_words(rank=2)))), SECRET)),
    ("secret", False, "an empty proof", at_rank_zero(answers_challenge(lambda n, w: frame("proof", "")), SECRET)),
    ("secret", False, "a proof of 4 KiB", at_rank_zero(answers_challenge(lambda n, w: frame("proof", "a" * 4000)), SECRET)),
    ("secret", False, "no proof but a hello", at_rank_zero(answers_challenge(lambda n, w: hello()), SECRET)),
    ("secret", True, "what was overheard, said again", replayed),
    ("data ports", True, "200 that are silent", at_data_port(silent(200))),
    ("data ports", False, "64 MiB of NUL", at_data_port(meanwhile(b"\0" * (64 << 20)))),
    ("data ports", False, "hellos of other jobs, ranks, kinds and lanes",
     at_data_port(lambda port: [held for text in (hello(job="x"), hello(rank=0, size=3, kind="data0"), hello(rank=3, size=3, kind="data0"),
                                                 hello(rank=2, size=3, kind="data9"), hello(rank=2, size=3), hello(rank=2, kind="data0"))
                                for held in says(text)(port)])),
    ("data ports", False, "a host with escapes and forged lines", at_data_port(says(hello(size=9, kind="data0", host=FORGED)))),
    ("data ports", True, "open where MASTER_ADDR names them", only_where_it_is_named),
    ("beside MPI", True, "noise and guesses at the control port", beside_mpi),
    ("false rank 1", True, "joins and leaves",
     false_rank(lambda run: FalseRank(run.port, size=3, meets=False).control.close(), word="rank 1 on n9 has left", size=3)),
    ("false rank 1", False, "joins and speaks",
     false_rank(lambda run: send(FalseRank(run.port, size=3, meets=False).control, noise(999)), word="has left", size=3)),
    ("false rank 1", False, "has no data connections", false_rank(lambda run: FalseRank(run.port).control.close(), word="has left")),
    ("false rank 1", True, "another message than the first",
     false_rank(with_lanes(lambda rank: rank.message(GATHER, 8, ROOT)), word="sends a message of kind 1")),
    ("false rank 1", False, "a message of 2^62 bytes", false_rank(with_lanes(lambda rank: rank.message(BARRIER, 1 << 62)))),
    ("false rank 1", False, "noise in place of a message", false_rank(with_lanes(lambda rank: rank.message(1, 2, noise(4096))))),
    ("false rank 1", False, "all connections close", false_rank(with_lanes(closes), word="is gone without disconnecting")),
    ("false rank 1", True, "announces 5 GiB", false_rank(begun(lambda rank: rank.message(GATHER, 8, struct.pack("<q", 5 << 30))),
                                                        word="announces a message of 5368709120 bytes")),
    ("false rank 1", False, "announces -1 bytes", false_rank(begun(lambda rank: rank.message(GATHER, 8, struct.pack("<q", -1))),
                                                            word="announces a message of -1 bytes")),
    ("false rank 1", True, "ends the run with code 0", false_rank(begun(lambda rank: rank.control_word(END, 0)), word="ended the run")),
    ("false rank 1", False, "ends the run with code -7", false_rank(begun(lambda rank: rank.control_word(END, -7)))),
    ("false rank 1", False, "ends the run with code 256", false_rank(begun(lambda rank: rank.control_word(END, 256)))),
    ("false rank 1", False, "ends the run with code 3", false_rank(begun(lambda rank: rank.control_word(END, 3)), code=3)),
    ("false rank 1", False, "a control word that is none", false_rank(begun(lambda rank: rank.control_word(77, 0)), word="none of ours")),
    ("false rank 1", False, "a control message of -1 bytes", false_rank(begun(lambda rank: rank.control_word(MESSAGE, -1)))),
    ("false rank 1", False, "a control message of 2 GiB", false_rank(begun(lambda rank: rank.control_word(MESSAGE, 0x7FFFFFFF)))),
    ("false rank 1", False, "heartbeats that are noise, then gone",
     false_rank(begun(lambda rank: closes(rank.control_word(MESSAGE, 400, b"h" + noise(399)).control_word(MESSAGE, 1, b"a"))))),
    ("false rank 1", False, "goes in good order, without a word", false_rank(begun(lambda rank: closes(rank.control_word(DISCONNECT, 0))))),
    ("false rank 0", True, "leaves", false_rank_zero(answers(then_closes=True), "left without an answer")),
    ("false rank 0", False, "HTTP", false_rank_zero(answers(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "left without an answer")),
    ("false rank 0", True, "refuses without a reason", false_rank_zero(answers(frame("refused")), "without a reason")),
    ("false rank 0", True, "a reason with escapes and forged lines", false_rank_zero(answers(frame("refused", FORGED * 70)), "FORGED")),
    ("false rank 0", False, "a frame of 64 MiB", false_rank_zero(answers(MAGIC, struct.pack("<I", 1 << 26), b"\0" * (1 << 26)))),
    ("false rank 0", False, "a list that is short", false_rank_zero(answers(REFUSED, frame("welcome", "a")))),
    ("false rank 0", False, "a list that is long", false_rank_zero(answers(REFUSED, frame("welcome", *LONG_LIST * 50)))),
    ("false rank 0", False, "a list of separators", false_rank_zero(answers(REFUSED, frame("welcome", b"\0" * 4000)))),
    ("false rank 0", False, "a challenge where there is no secret", false_rank_zero(answers(frame("challenge", "0" * 32)))),
    ("false rank 0", True, "no proof of the secret", false_rank_zero(answers(REFUSED), "does not know the TOKAMAK_SECRET", SECRET)),
    ("false rank 0", False, "gives the rank's own proof back",
     false_rank_zero(lambda c: send(c, frame("challenge", hear(c)[7])) and send(c, frame("expected", hear(c)[1])),
                     "does not know the TOKAMAK_SECRET", SECRET)),
    ("signals", True, "rank 0 among 200 that are silent", stopped(zero_with(silent(200)))),
    ("signals", False, "rank 0 and one that drips", stopped(zero_with(drips(hello(job="x" * 2000), 0.02)))),
    ("signals", True, "rank 0 and a rank that says nothing more", stopped(zero_with(lambda port: FalseRank(port).connect_lanes()))),
    ("signals", False, "rank 1 and a rank 0 that is silent", stopped(one_at(answers()))),
    ("signals", False, "rank 1 and a rank 0 that drips", stopped(one_at(lambda c: [(send(c, bytes([b])), time.sleep(0.05)) for b in frame("refused", "x" * 2000)]))),
    ("environment", True, "a port with escapes", environment("MASTER_PORT is", MASTER_PORT="29" + FORGED)),
    ("environment", False, "a size beyond all numbers", environment("WORLD_SIZE is", WORLD_SIZE="9" * 4000)),
    ("environment", False, "a secret that is short", environment("TOKAMAK_SECRET has 5 characters", TOKAMAK_SECRET="short")),
    ("environment", False, "a secret that is empty", environment("TOKAMAK_SECRET has 0 characters", TOKAMAK_SECRET="")),
]


def undisturbed(place, size):
    run = Run(place, f"undisturbed-{size}", size)
    try:
        begin = time.monotonic()
        for code in [run.code(process) for process in [run.start(rank) for rank in range(size)]]:
            assert code == 0, run.text()
        print(f"undisturbed, {size} ranks: {time.monotonic() - begin:.2f} s", flush=True)
        bits = place.records(run.name)
        assert len(bits) == 2, bits
        return bits
    finally:
        run.end()


def holds(place, bits, index, chosen):
    kind, _, name, case = chosen
    run = Run(place, f"case-{index}", **case.options)
    begin = time.monotonic()
    try:
        case(run, bits)
        run.expect_clean_log()
        problem = None
    except (AssertionError, OSError, EOFError) as error:
        problem = error
    finally:
        run.end()
    verdict = "ok" if problem is None else "FAILED"
    print(f"{verdict} ({time.monotonic() - begin:.2f} s): {kind}: {name}{'' if problem is None else f': {problem}'}", flush=True)
    return problem is None


def main():
    chosen = [case for case in CASES if case[1] or os.environ.get("HOSTILE") == "all" or len(sys.argv) > 1]
    chosen = [case for case in chosen if len(sys.argv) == 1 or any(part in f"{case[0]}: {case[2]}" for part in sys.argv[1:])]
    with Workplace() as place:
        bits = {size: undisturbed(place, size) for size in (2, 3)}
        with ThreadPoolExecutor(AT_ONCE) as pool:
            held = list(pool.map(lambda numbered: holds(place, bits, *numbered), enumerate(chosen)))
    print(f"{sum(held)} of {len(held)} cases held")
    sys.exit(not all(held))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    main()
