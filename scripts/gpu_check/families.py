"""Correctness of each operation. Runs families of tests (NAME_test.cc of tests/backend and tests/cuda), several at a
time and each in its own process, so that a fault of one does not affect the others. Processes record the begin and end
of cases (tests/support/facts.h), so that a hung or crashed case is named."""
import concurrent.futures
import re

from place import ended, json_lines
from report import CUT, DEVICE_FAULT, FAILED, LOST, MEASURED, NOT_RUN, PASSED, not_zero

WORKERS, LIMIT, AGAIN = 4, 35, 20  # processes at a time; seconds of each; seconds of the rerun that names a kernel
CUDNN_LIMIT = 85  # cuDNN makes some forty plans, up to a second each
CONTACT_LIMIT, MOST_CONTACT = 20, 28  # of a case, and of the one that compares cuDNN with our kernels
ON_GPU = "~[cpu]~[threads]~[contact]"  # without the CPU-only cases
NATIVE = {"TOKAMAK_TEST_ATTENTION": "native"}  # otherwise cuDNN compiles plans in each process, which takes seconds
BY_CUDNN = "~[native]"  # without the cases that hold for our own attention only
BLOCKING = {"CUDA_LAUNCH_BLOCKING": "1"}
SKIPS = 77  # exit code of a test program that has no GPU, or no NCCL


def report_measured(report, facts):
    """One line per measured number."""
    for fact in facts:
        if fact["fact"] == "measured":
            report.add(fact["name"], MEASURED, f"{fact['value']:.4g} {fact['unit']}", value=fact["value"])


def run_cases(place, log, cases, limit, environment=None):
    """(exit code, output, the facts)."""
    path = place.output / f"{log}.jsonl"
    path.unlink(missing_ok=True)
    code, text = place.run(log, [place.test_cuda, "-#", cases], limit,
                           {**(environment or {}), "TOKAMAK_FACTS": str(path)})
    return code, text, json_lines(path)


def judge(code, text, facts):
    """(verdict, measured, why)."""
    cases = {fact["name"]: fact for fact in facts if fact["fact"] == "case"}  # the last fact of each
    count = {result: [case for case in cases.values() if case["result"] == result]
             for result in ("passed", "failed", "started")}
    worst = max([case.get("worst_share", 0) for case in cases.values()], default=0)
    measured = f"{len(count['passed'])} of {len(cases)} cases" + (f", error {worst:.2g} of its bound" if worst else "")
    why = [f"{case.get('error_kind', 'wrong result')} in \"{case['name']}\": {case.get('message', '')}"
           for case in count["failed"][:1]]
    why += [f"{'hung' if code is None else ended(code, text)} in \"{case['name']}\"" for case in count["started"]]
    if code == LOST or not cases:
        return NOT_RUN if code in (0, SKIPS) else not_zero(code, text), "", ended(code, text)
    if code == CUT and not count["failed"]:
        return NOT_RUN, measured, "; ".join(why) or ended(code, text)
    if code == 0 and not why:
        return PASSED, measured, ""
    return FAILED, measured, "; ".join(why) or ended(code, text)


def cases_of(family, environment):
    return f"[#{family}_test]{ON_GPU}" + ("" if environment == NATIVE else BY_CUDNN)


def families(place, report):
    """Runs the families with our own attention kernels."""
    code, text = place.run("families", [place.test_cuda, "-#", "--list-tags"], 30)
    found = [family for family in re.findall(r"\[#(\w+?)_test\]", text) if family != "contact"]
    if not found:
        report.add("operations", not_zero(code, text) if code != 0 else NOT_RUN, detail=ended(code, text))
        return
    only = place.options.family or found
    run_families(place, report, [(f"op {family}", family, NATIVE) for family in found if family in only], LIMIT)


def cudnn(place, report):
    """Attention by cuDNN. Nothing else runs, because compiling cuDNN's plans takes all processors."""
    if "attention" in (place.options.family or ["attention"]):
        run_families(place, report, [("op attention, cuDNN", "attention", {})], CUDNN_LIMIT)


def run_families(place, report, jobs, limit):
    def run(job):
        name, family, environment = job
        log = name.replace(" ", "-").replace(",", "")
        return run_cases(place, log, cases_of(family, environment), limit, environment)

    faults = []
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        for job, (code, text, facts) in zip(jobs, pool.map(run, jobs)):
            verdict, measured, why = judge(code, text, facts)
            report.add(job[0], verdict, measured, detail=why, facts=facts)
            report_measured(report, facts)
            if code == DEVICE_FAULT:
                faults.append(job)
    if faults:
        name_kernel(place, report, *faults[0])


def name_kernel(place, report, name, family, environment):
    """Reruns with synchronous launches, so that CUDA's error names the kernel."""
    _, text, facts = run_cases(place, "device-fault", cases_of(family, environment), AGAIN, {**environment, **BLOCKING})
    messages = [fact["message"] for fact in facts if fact.get("message")]
    kernel = re.search(r"from (.+) at its launch", " ".join(messages))
    report.add(f"the kernel at fault in {name}", MEASURED if kernel else NOT_RUN, kernel[1] if kernel else "",
               detail=(messages or [text[-200:]])[0])


def contact(place, report):
    """Every case of the first contact, each in a process, in the order of its file. They run every operation once at
    the 8B shape, compare cuDNN's attention with ours, and check that it reads no neighbours' rows. Errors are numbers,
    too."""
    code, text = place.run("contact", [place.test_cuda, "[contact]", "--list-test-names-only"], 10)
    names = [line.strip() for line in text.splitlines() if line.strip()]
    if not names or code in (None, CUT, LOST):
        report.add("contact", not_zero(code, text) if code != 0 else NOT_RUN, detail=ended(code, text))
    for number, name in enumerate(names):
        code, text, facts = run_cases(place, f"contact-{number}", name.replace(",", "\\,"),
                                      MOST_CONTACT if "cuDNN" in name else CONTACT_LIMIT)
        verdict, measured, why = judge(code, text, facts)
        if verdict == PASSED and "warning:" in text and not any(fact["fact"] == "measured" for fact in facts):
            verdict, why = NOT_RUN, f"no cuDNN (see contact-{number}.log)"
        report.add(f"8B shape: {name}", verdict, measured, detail=why, facts=facts)
        report_measured(report, facts)
