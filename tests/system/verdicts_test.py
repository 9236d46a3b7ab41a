"""What the GPU check and the race against PyTorch conclude from numbers: by hand, without a GPU and without torch."""
import copy
import json
import sys
import tempfile
import types
import unittest
import unittest.mock
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path += [str(ROOT / "scripts" / "gpu_check")]
import families  # noqa: E402
import place as places  # noqa: E402
import ranks  # noqa: E402
import speed  # noqa: E402
import stalls  # noqa: E402
import training  # noqa: E402
from report import FAILED, LOST, MEASURED, MISSED, NOT_RUN, PASSED, WIDTH, Report, not_zero  # noqa: E402

sys.modules.pop("report")  # the race has one of its own
sys.path.insert(0, str(ROOT / "scripts" / "bench"))
import report as race  # noqa: E402


class GpuCheck(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.report = Report(Path(self.folder.name) / "check.json", {})

    def results(self):
        return {line["name"]: line["result"] for line in self.report.lines}

    def test_a_program_that_could_not_run_is_told_from_one_that_failed(self):
        self.assertEqual([not_zero(code) for code in (2, 5, LOST, None, 1, 7, 8, -9)], [NOT_RUN] * 3 + [FAILED] * 5)
        for code, words in ((5, "does not fit"), (8, "device fault"), (None, "hung"), (-6, "signal 6")):
            self.assertIn(words, places.ended(code, "error: x"))

    def test_a_family_passes_if_each_case_of_it_did(self):
        good, bad, begun = ({"fact": "case", "name": "n" + result, "result": result}
                            for result in ("passed", "failed", "started"))
        for code, facts, verdict, words in (
                (0, [good], PASSED, ""), (0, [], NOT_RUN, ""), (77, [], NOT_RUN, ""), (8, [], FAILED, "device fault"),
                (1, [good, dict(bad, message="3 < 2")], FAILED, 'wrong result in "nfailed": 3 < 2'),
                (8, [dict(bad, error_kind="device fault")], FAILED, "device fault in"),
                (None, [good, begun], FAILED, 'hung in "nstarted"'), (-11, [begun], FAILED, 'signal 11'),
                (LOST, [], NOT_RUN, "lost"), (0, [begun, dict(begun, result="passed")], PASSED, "")):
            found, _, why = families.judge(code, "lost", facts)
            self.assertEqual((found, words in why), (verdict, True), (code, why))

    def test_what_cannot_be_killed_takes_the_gpu_with_it(self):
        options = types.SimpleNamespace(build=None, programs=Path("/"), data=None, output=Path(self.folder.name))
        place = places.Place(options, 60)
        with unittest.mock.patch.object(places, "end_session", lambda pid: None), \
                unittest.mock.patch.object(places, "KILL_SECONDS", 0.1):
            code, _ = place.run("sleeper", ["sleep", "30"], 1)
            self.assertIsNone(code)
            code, why = place.run("next", ["true"], 1)
            self.assertEqual(code, LOST)
            self.assertIn("sleeper", why)
        pid = int(why.split("process ")[1].split(")")[0])
        places.end_session(pid)
        self.assertEqual(places.session(pid), [])

    def test_a_program_without_time_is_not_said_to_hang(self):
        options = types.SimpleNamespace(build=None, programs=Path("/"), data=None, output=Path(self.folder.name))
        self.assertEqual(places.Place(options, 10).run("late", ["sleep", "60"], 60), (LOST, "no time is left"))

    def test_the_machine_is_what_the_doctor_says(self):
        gpu = {"gpus": 2, "driver": "550", "gpu0.name": "G", "gpu0.bus": "0:1", "gpu1.name": "H", "gpu1.bus": "0:2"}
        notes = [{"status": "warn", "host": "n", "text": "hot"}, {"status": "fail", "host": "n", "text": "broken"}]
        told = {"checks": [{"name": "memory", "notes": [], "ranks": [{}]}, {"name": "gpus", "notes": notes, "ranks": [gpu]}]}
        self.assertEqual(places.gpus_of(told), [{"driver": "550", "name": "G", "bus": "0:1"},
                                                {"driver": "550", "name": "H", "bus": "0:2"}])
        self.assertEqual(places.faults_of(told), "broken")
        for nothing in ({}, {"checks": [{"name": "gpus", "notes": [], "ranks": []}]}):
            self.assertEqual((places.gpus_of(nothing), places.faults_of(nothing)), ([], ""))

    def test_a_doctor_that_finds_faults_is_read_and_one_that_says_nothing_is_not(self):
        program = Path(self.folder.name) / "program"
        program.write_text("#!/bin/sh\necho '{\"checks\": []}'\nexit 5\n")
        program.chmod(0o755)
        place = types.SimpleNamespace(tokamak=program, output=Path(self.folder.name), environment=None, emulated=False)
        self.assertEqual(places.doctor(place), {"checks": []})
        program.write_text("#!/bin/sh\necho broken; kill -9 $$\n")
        self.assertEqual(places.doctor(place), {})

    def test_losses_are_compared_step_by_step_in_means(self):
        curve = [4.0, 3.0, 2.0, 1.0]
        self.assertEqual(training.averages(curve, 2), [(2, 3.5), (3, 2.5), (4, 1.5)])
        for apart, complete, expected in ((0.1, True, PASSED), (0.3, True, FAILED), (0.1, False, FAILED),
                                          (float("nan"), True, FAILED)):
            other = [(step, loss + apart) for step, loss in training.averages(curve, 1)]
            training.compare(self.report, "curve", "", 0.2, training.averages(curve, 1), other, complete)
            self.assertEqual(self.results()["curve"], expected, apart)

    def test_what_ranks_measure_is_reported_where_they_passed(self):
        folder = Path(self.folder.name)
        facts = [{"fact": "case", "name": "c", "result": "passed"},
                 {"fact": "measured", "name": "all_gather to 64 MiB", "value": 1234.5, "unit": "ms"}]
        text = "nccl_comm_test: 2 ranks\nNCCL INFO Channel 00/0 : 0[0] -> 1[0] via NET/Socket/0\n"

        def run(log, n, command, environment):
            Path(environment["TOKAMAK_FACTS"]).write_text("".join(json.dumps(fact) + "\n" for fact in facts))
            return code, text

        place = types.SimpleNamespace(test_nccl=Path("/"), output=folder)
        for code, expected in ((1, {"NCCL, 2 ranks": FAILED}),
                               (0, {"NCCL, 2 ranks": PASSED, "all_gather to 64 MiB": MEASURED})):
            self.report.lines.clear()
            ranks.collectives(types.SimpleNamespace(place=place, gpus=1, run=run), self.report, 2)
            self.assertEqual(self.results(), expected)
        self.assertEqual([line["measured"] for line in self.report.lines],
                         ["all cases on 1 GPU(s) by NET/Socket/0", "1234 ms"])
        self.assertEqual(self.report.lines[0]["values"]["transports"], text.splitlines()[1:])

    def test_gpu_time_and_gaps_are_those_of_the_trace(self):
        def span(row, begin, length):
            return {"ph": "X", "pid": 0, "tid": row, "name": "call", "ts": begin, "dur": length}
        rows = {0: "steps, on the host", 1: "host", 2: "stream compute", 3: "stream gather"}
        events = [{"ph": "M", "pid": 0, "tid": row, "name": "thread_name", "args": {"name": name}}
                  for row, name in rows.items()]
        events += [span(0, 0, 9e6), span(1, 5, 5), span(2, 1000, 400), span(2, 1500, 500), span(3, 1000, 250)]
        path = Path(self.folder.name) / "trace.json"
        path.write_text(json.dumps({"traceEvents": events}))
        training.gpu_time(self.report, path)
        path.write_text("{}")
        training.gpu_time(self.report, path)
        self.assertEqual([(line["result"], line["measured"]) for line in self.report.lines],
                         [(MEASURED, "compute 90.0%, gather 25.0% of 1.0 ms; 1 gaps of compute, the longest 0.10 ms"),
                          (NOT_RUN, "")])

    def test_memory_is_reported_from_the_start_to_the_third_step(self):
        lines = [{"event": "ready", "step": 0, "memory/planned": 5 * 2**20, "memory/committed": 6 * 2**20},
                 *[{"step": step, "loss/last": 1, "memory/used": (6 + step) * 2**20} for step in (1, 2, 3)]]
        for count, verdict in ((4, MEASURED), (3, NOT_RUN), (0, NOT_RUN)):
            (Path(self.folder.name) / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n"
                                                                          for line in lines[:count]) + '{"step":')
            training.memory(self.report, Path(self.folder.name))
            self.assertEqual(self.results()["memory"], verdict, count)
        self.assertEqual(self.report.lines[0]["measured"],
                         "planned 5 MiB, after commit 6 MiB, after step 1 7 MiB, after step 3 9 MiB")
        self.assertEqual(self.report.lines[0]["values"]["after_step_3"], 9 * 2**20)
        self.assertIn("after step 3", self.report.lines[1]["detail"])

    def test_the_table_is_narrow_and_says_why(self):
        self.report.add("a name", FAILED, "measured " * 20, "a bar", "a reason " * 80)
        self.assertLessEqual(max(map(len, self.report.table().splitlines())), WIDTH)
        self.assertIn("a reason", self.report.table())

    def test_kernels_against_their_goals(self):
        gemm = {"flops": 90.0, "seconds": 1.0, "best_flops_per_second": 100.0}
        kind, goal = next(iter(speed.OF_COPY.items()))
        for name, operation, expected in (
                ("gemm good", dict(gemm, flops=speed.GEMM_GOAL * 100), PASSED),
                ("gemm slow", dict(gemm, flops=speed.GEMM_GOAL * 99), MISSED),
                ("gemm alone", {"flops": 90.0, "seconds": 1.0}, NOT_RUN),
                (kind + " good", {"bytes": goal * 1000.0, "seconds": 1.0}, PASSED),
                (kind + " slow", {"bytes": goal * 990.0, "seconds": 1.0}, MISSED),
                ("other", {"flops": 5.0, "seconds": 1.0}, MEASURED),
                ("nothing", {"seconds": 1.0}, NOT_RUN), ("no time", {"bytes": 5.0, "seconds": 0}, NOT_RUN)):
            speed.kernel(self.report, name, operation, 1000.0, 200.0)
            self.assertEqual(self.results()[name], expected, name)
        speed.share_of(self.report, "half", 50.0, 100.0)
        speed.share_of(self.report, "less", 49.0, 100.0)
        speed.share_of(self.report, "none", None, 100.0)
        self.assertEqual([self.results()[name] for name in ("half", "less", "none")], [PASSED, MISSED, NOT_RUN])
        self.assertTrue(self.report.table().endswith("3 passed, 0 FAILED, 3 below goal, 1 measured, 4 not run"))

    def test_what_a_longer_run_calls_more_often_its_steps_call(self):
        short = {"cudaMalloc": 9, "cudaStreamSynchronize": 4, "cudaEventSynchronize": 10}
        for more, expected in (({"cudaEventSynchronize": 20}, PASSED), ({"cudaMalloc": 20}, FAILED),
                               ({"cudaMemcpy": 1}, FAILED)):
            runs = [short, {**short, **more}]
            with unittest.mock.patch.object(stalls, "unable", lambda place: ""), \
                    unittest.mock.patch.object(stalls, "count", lambda place, steps, counted: counted.append(
                        copy.copy(runs[len(counted)])) or (None, "")):
                stalls.stalls(types.SimpleNamespace(), self.report)
            self.assertEqual(self.report.lines[-1]["result"], expected, more)


class Race(unittest.TestCase):
    # A step: 0.4 s of GEMMs at 250 GFLOP/s, AdamW of 1e9 parameters at 30 bytes each, RMSNorm's 3 x 2 GB at 100 GB/s.
    STEP = {"parameters": 1e9, "gemm_flops_per_second": 2.5e11, "peak_flops_per_second": 5e11, "mfu_causal": 0.3,
            "mfu_full": 0.4, "operations": {"adamw": {"calls": 2, "seconds": 0.45, "flops": 0, "bytes": 30e9},
                                            "fill": {"calls": 1, "seconds": 0.01, "flops": 0, "bytes": 0},
                                            "gemm": {"calls": 9, "seconds": 0.5, "flops": 1e11, "bytes": 1e9},
                                            "rmsnorm": {"calls": 3, "seconds": 0.04, "flops": 0, "bytes": 6e9}}}
    ISOLATED = {"copy_bytes_per_second": 1e11}

    def summary(self, rates, bar=1.08):
        rounds = [{"tokamak": {**self.STEP, "tokens_per_second": ours}, "torch": {"tokens_per_second": theirs},
                   "ratio": ours / theirs} for ours, theirs in rates]
        return race.summary(rounds, self.ISOLATED, bar, 0.65)

    def test_medians_and_verdicts(self):
        result = self.summary([(1200, 1200), (1500, 1200), (1300, 1200)])
        self.assertAlmostEqual(result["ratio"], 1300 / 1200)
        self.assertEqual(result["ratio_spread"], [1.0, 1.25])
        self.assertEqual(result["tokens_per_second"], {"tokamak": 1300, "torch": 1200})
        self.assertEqual((result["verdict"], result["gemm_verdict"]), ("reached", "MISSED"))
        self.assertAlmostEqual(result["gemm_share_causal"], 0.6)
        self.assertAlmostEqual(result["gemm_share_full"], 0.8)
        self.assertEqual(self.summary([(1, 1), (3, 1)], bar=2.01)["verdict"], "MISSED")  # of two: their mean
        self.assertIsNone(self.summary([(1, 1)], bar=None)["verdict"])

    def test_each_operation_beside_its_floor(self):
        rows = {row["name"]: row for row in self.summary([(1, 1)])["where"]}
        self.assertEqual(list(rows), ["gemm", "adamw", "rmsnorm", "fill"])  # the longest first
        for name, floor in (("gemm", 0.4), ("adamw", 0.3), ("rmsnorm", 0.06)):
            self.assertAlmostEqual(rows[name]["floor_seconds"], floor)
        self.assertIsNone(rows["fill"]["floor_seconds"])
        self.assertAlmostEqual(rows["gemm"]["share"], 0.5)

    def test_doubts_are_said(self):
        quiet = {"rounds": [{"tokamak": {"others": 0.0}, "torch": {"others": 0.0}}], "ratio_spread": (1.1, 1.3),
                 "bar": 1.2, "tried": []}
        self.assertIn("both sides of the bar", race.doubts(quiet))
        self.assertEqual(race.doubts(dict(quiet, bar=1.0)), "")
        busy = dict(quiet, bar=1.0, rounds=[{"tokamak": {"others": 0.2}, "torch": {"others": 0.0}}])
        self.assertIn("others had up to 20%", race.doubts(busy))
        self.assertIn("Not every option", race.doubts(dict(quiet, bar=1.0, tried=[{"failed": "not tried: out of time"}])))


if __name__ == "__main__":
    unittest.main()
