"""Verdicts of the GPU check and of the race against PyTorch from given numbers, without a GPU and without torch."""
import json
import shutil
import sys
import tempfile
import time
import types
import unittest
import unittest.mock
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path += [str(ROOT / "scripts" / "gpu_check")]
import families  # noqa: E402
import place as places  # noqa: E402
import predictions  # noqa: E402
import publish  # noqa: E402
import ranks  # noqa: E402
import speed  # noqa: E402
import stalls  # noqa: E402
import steps  # noqa: E402
import training  # noqa: E402
from report import CUT, FAILED, LOST, MEASURED, MISSED, NOT_RUN, PASSED, WIDTH, Report, not_zero  # noqa: E402

sys.path.insert(0, str(ROOT / "scripts" / "bench"))
import race_page as race  # noqa: E402


class GpuCheck(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.report = Report(Path(self.folder.name) / "check.json", {})

    def place(self, seconds):
        place = places.Place(types.SimpleNamespace(build=None, programs=Path("/"), data=None), seconds)
        self.addCleanup(shutil.rmtree, place.output)
        return place

    def results(self):
        return {line["name"]: line["result"] for line in self.report.lines}

    def test_a_program_that_could_not_run_is_told_from_one_that_failed(self):
        self.assertEqual([not_zero(code) for code in (2, LOST, CUT, None, 1, 5, 7, 8, 9, -9)],
                         [NOT_RUN] * 3 + [FAILED] * 7)
        for code, words in ((5, "no device"), (8, "device fault"), (9, "a capture was refused"), (None, "hung"),
                            (CUT, "cut off"), (-6, "signal 6")):
            self.assertIn(words, places.ended(code, "error: x"))

    def test_too_little_memory_is_no_failure_only_if_the_plan_said_so(self):
        plan = "error: the run needs 90 GiB on each rank, but 70 GiB are available, beside 1 GiB reserved"
        source = (ROOT / "src/train/memory_check.cc").read_text()
        for words in ('"the run needs "', '" on each rank"', '"including"', '", but "'):
            self.assertIn(words, source)
        on_host = plan.replace(", but", ", including 9 MiB to read data ahead, but")
        later = "step 1/5 loss 8.4\nerror: CUDA: out of memory (cudaErrorMemoryAllocation) from cudaMalloc"
        for text, verdict, words in ((plan, NOT_RUN, "the plan does not fit"),
                                     (on_host, NOT_RUN, "the plan does not fit"), (later, FAILED, "out of memory"),
                                     ("error: not enough GPU memory: asked for 2 GiB", FAILED, "out of memory"),
                                     ("error: no driver", FAILED, "no device")):
            self.assertEqual((not_zero(5, text), words in places.ended(5, text)), (verdict, True), text)
        self.assertEqual(not_zero(9, plan), FAILED)

    def test_a_family_passes_if_each_case_of_it_did(self):
        good, bad, begun = ({"fact": "case", "name": "n" + result, "result": result}
                            for result in ("passed", "failed", "started"))
        for code, facts, verdict, words in (
                (0, [good], PASSED, ""), (0, [], NOT_RUN, ""), (77, [], NOT_RUN, ""), (8, [], FAILED, "device fault"),
                (1, [good, dict(bad, message="3 < 2")], FAILED, 'wrong result in "nfailed": 3 < 2'),
                (8, [dict(bad, error_kind="device fault")], FAILED, "device fault in"),
                (None, [good, begun], FAILED, 'hung in "nstarted"'), (-11, [begun], FAILED, 'signal 11'),
                (LOST, [], NOT_RUN, "lost"), (CUT, [good, begun], NOT_RUN, "cut off"), (CUT, [bad], FAILED, "nfailed"),
                (9, [begun], FAILED, "refused"), (0, [begun, dict(begun, result="passed")], PASSED, "")):
            found, _, why = families.judge(code, "lost", facts)
            self.assertEqual((found, words in why), (verdict, True), (code, why))

    def test_what_cannot_be_killed_takes_the_gpu_with_it(self):
        place = self.place(60)
        with unittest.mock.patch.object(places, "end_session", lambda pid: None), \
                unittest.mock.patch.object(places, "KILL_SECONDS", 0.1):
            code, _ = place.run("sleeper", ["sleep", "30"], 1)
            self.assertIsNone(code)
            code, why = place.run("next", ["true"], 1)
            self.assertEqual(code, LOST)
            self.assertIn("sleeper", why)
            self.assertEqual(place.run("without a GPU", ["true"], 1, on_gpu=False)[0], 0)
        pid = int(why.split("process ")[1].split(")")[0])
        places.end_session(pid)
        self.assertEqual(places.session(pid), [])
        for _ in range(3000):  # the process becomes a zombie in a moment
            if not place.lost:
                break
            time.sleep(0.01)
        self.assertEqual(place.run("after it", ["true"], 1), (0, ""))

    def test_what_the_end_of_a_part_cuts_off_is_not_said_to_hang(self):
        place = self.place(60)
        with place.part("short", 1.5):
            self.assertEqual(place.run("cut", ["sleep", "30"], 3)[0], CUT)
        self.assertIsNone(place.run("hung", ["sleep", "30"], 1)[0])

    def test_nothing_starts_after_a_stop(self):
        place = self.place(60)
        place.stop("stopped by SIGTERM")
        self.assertEqual(place.run("late", ["true"], 1, on_gpu=False), (LOST, "stopped by SIGTERM"))

    def test_a_program_without_time_is_not_said_to_hang(self):
        self.assertEqual(self.place(10).run("late", ["sleep", "60"], 60), (LOST, "no time is left"))

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
        place = self.place(60)
        place.tokamak = program
        self.assertEqual(places.doctor(place, 5), ({"checks": []}, ""))
        program.write_text("#!/bin/sh\necho broken; kill -9 $$\n")
        self.assertEqual(places.doctor(place, 5), ({}, "signal 9: broken"))

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

        def run(log, n, command, environment, limit):
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
            speed.kernel(self.report, name, operation, 1000.0, 200.0, {})
            self.assertEqual(self.results()[name], expected, name)
        speed.share_of(self.report, "half", 50.0, 100.0)
        speed.share_of(self.report, "less", 49.0, 100.0)
        speed.share_of(self.report, "none", None, 100.0)
        self.assertEqual([self.results()[name] for name in ("half", "less", "none")], [PASSED, MISSED, NOT_RUN])
        self.assertTrue(self.report.table().endswith("3 passed, 0 FAILED, 3 below goal, 1 measured, 4 not run"))

    def test_a_kernel_stands_beside_the_longest_call_that_the_plan_has_of_it(self):
        def call(name, microseconds, flops, moved):
            return {"ph": "X", "name": name, "dur": microseconds, "args": {"flops": flops, "bytes": moved}}
        operations = predictions.longest([
            {"ph": "M", "name": "process_name", "args": {"name": "rank 0"}}, call("gemm down dw", 800.0, 9.0, 5.0),
            call("gemm down dw", 1000.0, 9.0, 6.0), call("gemm down dw", 900.0, 9.0, 5.0), call("adamw", 1000.0, 0.0, 400.0)])
        self.assertEqual(operations["gemm down dw"], {"seconds": 1e-3, "flops": 9.0, "bytes": 6.0})
        plan = {"operations": operations}
        self.assertEqual(predictions.seconds_of(plan, "gemm down dw", {"bytes": 5.0}), 1e-3)
        self.assertEqual(predictions.seconds_of(plan, "adamw", {"bytes": 100.0}), 0.25e-3)  # bench cuts its state
        self.assertIsNone(predictions.seconds_of(plan, "rope", {"bytes": 5.0}))
        for seconds, mark in ((1.14e-3, False), (1.16e-3, True), (0.84e-3, True)):
            speed.kernel(self.report, "gemm down dw", {"flops": 9.0, "seconds": seconds, "best_flops_per_second": 9e9}, 1.0,
                         1e9, plan)
            self.assertIn(f"{seconds * 1e3:.2f} x predicted{' (!)' * mark}", self.report.lines[-1]["measured"] + "\n")
            self.assertEqual("(!)" in self.report.lines[-1]["measured"], mark, seconds)

    def test_a_layer_alone_is_the_difference_of_two_steps(self):
        self.report.facts["layers_8b"] = 12
        for name, predicted in (("step 8B", 0.7), ("step 8B, 8 layers", 0.5)):
            self.report.add(name, MEASURED, prediction={"step_seconds": predicted})
        steps.layer(None, self.report, {"step_seconds": 0.6}, {"step_seconds": 0.44}, 4)
        self.assertAlmostEqual(self.report.lines[-1]["values"]["value"], 20.0)  # ms, of two micro-batches
        self.assertAlmostEqual(self.report.lines[-1]["values"]["predicted"], 25.0)
        steps.layer(None, self.report, {"step_seconds": 0.6}, {}, 4)
        self.assertEqual(self.report.lines[-1]["result"], NOT_RUN)

    def test_what_a_longer_run_calls_more_often_its_steps_call(self):
        short = {"cudaMalloc": 9, "cudaStreamSynchronize": 4, "cudaEventSynchronize": 10}
        for more, expected in (({"cudaEventSynchronize": 20}, PASSED), ({"cudaMalloc": 20}, FAILED),
                               ({"cudaMemcpy": 1}, FAILED)):
            runs = [short, {**short, **more}]
            with unittest.mock.patch.object(stalls, "check_able", lambda place: None), \
                    unittest.mock.patch.object(stalls, "count", lambda place, steps: runs[steps == stalls.LONG]):
                stalls.stalls(types.SimpleNamespace(), self.report)
            self.assertEqual(self.report.lines[-1]["result"], expected, more)


class Publish(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        for name in ("README.md", publish.SIZES, publish.HARDWARE):
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.root / name)
        (self.root / "docs/benchmarks").mkdir(parents=True)

    def results(self, **facts):
        report = Report(self.root / "gpu_check.json", {
            "gpu": "NVIDIA H100 80GB HBM3", "date": "2026-12-01T10:00:00+00:00", "seconds": 500.0, "layers_8b": 12,
            "gpus": [{"driver": "580.1"}], "tokamak": ["tokamak 0.1.0", "commit   abc123"],
            "clocks": {"clocks.max.sm": "1980"}, "machine": {"measured": [
                {"name": "gemm qkv forward", "flops": 0.8e12, "bytes": 2.68e8, "seconds": 1.1e-3},
                {"name": "gemm down forward", "flops": 1.8e12, "bytes": 0, "seconds": 3e-3},
                {"name": "gemm head forward", "flops": 9e12, "bytes": 0, "seconds": 1e-3}]}, **facts})
        report.part = "steps"
        report.add("step 8B", MEASURED, "10000 tokens/s", tokens_per_second=10000.0, mfu_full=0.6, mfu_causal=0.54,
                   mfu_done=0.54, value=10000.0, unit="tokens/s", predicted=9000.0, peak_flops_per_second=1e15,
                   memory_baseline_bytes=600 * 2**20, clock=1700.0, watts=690.0,
                   prediction={"tokens_per_second": 9000.0, "mfu_full": 0.54, "mfu_causal": 0.49})
        report.add("gemm qkv forward", PASSED, "1 ms", rate=8e14, value=1.0, unit="ms", predicted=1.3)
        report.add("gemm down forward", PASSED, "3 ms", rate=6e14, value=3.0, unit="ms", predicted=3.1)
        report.add("rmsnorm", PASSED, "1 ms", rate=2.68e12, value=1.0, unit="ms")
        report.add("memory", MEASURED, planned=10 * 2**20, after_commit=810 * 2**20, after_step_1=0,
                   after_step_3=1310 * 2**20)
        report.add("op rope", FAILED, detail="hung in a case")
        return publish.Results(report.path)

    def test_the_page_has_each_line_and_wants_an_explanation_of_what_is_far_off(self):
        publish.publish(self.results(), self.root)
        text = (self.root / "docs/benchmarks/gpu-h100-80gb-hbm3-2026-12-01.md").read_text()
        for words in ("abc123", "580.1", "clocks.max.sm 1980", "| step 8B | 10000 | 60.0% | 54.0% | 54.0% | 1700 MHz, 690 W |",
                      "9000, 54.0%, 49.0%", "| passed | gemm down forward |", "op rope: hung in a case", "`mfu_causal` half"):
            self.assertIn(words, text)
        far = text.split("## Further than 15% from the prediction")[1].split("## Failed")[0]
        self.assertEqual([line for line in far.splitlines() if line],
                         ["- gemm qkv forward: 0.77 of the predicted 1.3 ms. Explanation:"])

    def test_the_readme_has_one_row_of_a_gpu(self):
        before = (self.root / "README.md").read_text()
        publish.publish(self.results(), self.root)
        publish.publish(self.results(gpu="NVIDIA H200"), self.root)
        publish.publish(self.results(date="2026-12-24T10:00:00+00:00"), self.root)
        after = (self.root / "README.md").read_text()
        rows = [line for line in after.splitlines() if line.startswith("| NVIDIA")]
        self.assertEqual([row.split(" | ")[0] for row in rows], ["| NVIDIA H200", "| NVIDIA H100 80GB HBM3"])
        self.assertIn("10000 tokens/s, mfu_full 60.0%, mfu_causal 54.0% (12 layers)", rows[1])
        self.assertIn("(docs/benchmarks/gpu-h100-80gb-hbm3-2026-12-24.md)", rows[1])
        cut = [text[:text.index(publish.BEGIN)] + text[text.index(publish.END):] for text in (before, after)]
        self.assertEqual(cut[0], cut[1])

    def test_of_several_sittings_a_line_is_the_last_that_has_run(self):
        folder = self.root
        for number, found in enumerate(([("a", FAILED), ("b", PASSED), ("c", FAILED), ("d", NOT_RUN)],
                                        [("a", PASSED), ("b", NOT_RUN), ("c", NOT_RUN), ("e", MEASURED)])):
            report = Report(folder / f"{number}.json", {"gpu": "NVIDIA H100 80GB HBM3", "date": "2026-12-01T10:00:00+00:00",
                                                        "seconds": 100.0, "gpus": [], "tokamak": [f"commit c{number}"]})
            for name, result in found:
                report.part = "contact"
                report.add(name, result)
            report.part = "a part of another time"
            report.add("x", FAILED)
        results = publish.Results(folder / "0.json", folder / "1.json")
        self.assertEqual([(line["name"], line["result"]) for line in results.lines],
                         [("a", PASSED), ("b", PASSED), ("c", NOT_RUN), ("d", NOT_RUN), ("e", MEASURED)])
        self.assertEqual((results.commit, results.facts["seconds"]), ("c0, c1", 200.0))

    def test_measured_constants_are_printed(self):
        printed = "\n".join(publish.publish(self.results(), self.root))
        self.assertIn("kGpuStartupBytes = int64_t{896} << 20;  // measured: 800 MiB", printed)  # of 800 and 600
        self.assertIn("kGpuReserveBytes = int64_t{512} << 20;  // measured: 500 MiB", printed)
        # GEMMs 0.8 and 1.8 TFLOP in 4 ms of 1e15 beside the 0.1 ms of their bytes; 2.68 of 3.35 TB/s; no attention was
        # measured.
        self.assertIn("row of NVIDIA H100 80GB HBM3: gemm 0.650, memory 0.800\n", printed)


class Race(unittest.TestCase):
    # A step: 0.4 s of GEMMs at 250 GFLOP/s, AdamW of 1e9 parameters at 30 bytes each, RMSNorm's 3 x 2 GB at 100 GB/s.
    STEP = {"parameters": 1e9, "gemm_flops_per_second": 2.5e11, "flops_per_token_causal": 1.5e11 / 1300,
            "flops_per_token_full": 2e11 / 1300, "operations": {"adamw": {"calls": 2, "seconds": 0.45, "flops": 0, "bytes": 30e9},
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
