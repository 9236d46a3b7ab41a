"""The kinds of cases of network_test.py: who comes to which port of a run, and how the run must react. A case is a
function of (run, bits). It gets a run with its `options` that has not started, and the losses without strangers."""
import time

from strangers import FalseRankZero


def options(**values):
    """Those of the case's run."""
    def mark(case):
        case.options = values
        return case
    return mark


def at_rank_zero(stranger, secret=None, size=2):
    """Strangers at the port of rank 0, which waits for the others."""
    @options(secret=secret, size=size)
    def case(run, bits):
        zero = run.start(0)
        run.listen(zero, run.port)
        held = stranger(run.port)
        run.expect_unharmed([zero] + [run.start(rank) for rank in range(1, size)], bits)
        del held
    return case


def at_data_port(stranger):
    """Strangers at the port of rank 1 of 3, which waits for rank 2."""
    @options(size=3)
    def case(run, bits):
        zero, one = run.start(0), run.start(1)
        port = run.listen(one)
        held = stranger(port)
        run.expect_unharmed([zero, one, run.start(2)], bits)
        del held
    return case


def false_rank(play, code=6, word="", size=2):
    """Rank 1 is a stranger who knows the job's name, where there is no secret."""
    @options(size=size)
    def case(run, _):
        zero = run.start(0)
        run.listen(zero, run.port)
        held = play(run)
        run.expect_error(zero, code, word)
        del held
    return case


def false_rank_zero(act, word="", secret=None, code=6):
    """Rank 1 connects to a port on which a stranger plays rank 0."""
    @options(secret=secret)
    def case(run, _):
        zero = FalseRankZero(act)
        run.env["MASTER_PORT"] = str(zero.port)
        run.expect_error(run.start(1), code, word)
        zero.close()
    return case


def stopped(play):
    """SIGTERM to a rank that waits for others: it ends with 75, whichever stranger keeps it busy."""
    @options()
    def case(run, _):
        process, held = play(run)
        process.terminate()
        begin = time.monotonic()
        run.expect_error(process, 75, "stopped by a signal")
        assert time.monotonic() - begin < 10, "it was not heeded"
        del held
    return case


def zero_with(stranger):
    def play(run):
        zero = run.start(0)
        run.listen(zero, run.port)
        return zero, stranger(run.port)
    return play


def one_at(act):
    def play(run):
        zero = FalseRankZero(act)
        run.env["MASTER_PORT"] = str(zero.port)
        one = run.start(1)
        run.until(lambda: zero.held, "it does not come", one)
        time.sleep(0.1)
        return one, zero
    return play


def environment(word, **variables):
    """Variables of a launcher that nobody should have set so."""
    @options()
    def case(run, _):
        run.env.update(variables)
        run.expect_error(run.start(0), 2, word)
    return case
