"""The bundle of scripts/package.sh, unpacked elsewhere, with nothing in the environment but a PATH: the program, its
mpirun, and where each process has its libraries from."""
import hashlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from harness import TOKAMAK, call, main

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fault"))
from processes import children, wait_for  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
CLEAN = {"PATH": "/usr/bin:/bin"}
SYSTEMS_OWN = re.compile(r"(ld-linux-x86-64|libc|libm|libdl|libpthread|librt|libresolv|libnss_\w+|lib(cu|nv)\w+)\.so")
STATE = {}


def clean_run(*command, **more):
    done = subprocess.run(command, env=dict(CLEAN, **more), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


def packs(place):
    """a build becomes an archive below 56 MB with its checksum, and unpacks into one folder"""
    out, elsewhere = Path(place.file("out")), Path(place.file("else where"))
    done = call([ROOT / "scripts/package.sh", "--no-install", "--build", Path(TOKAMAK).parent, "--data", place.data,
                 "--output", out])
    assert done.returncode == 0, done.stdout
    (archive,) = out.glob("tokamak-*-x86_64.tar.xz")
    assert archive.stat().st_size < 56e6
    wanted = Path(f"{archive}.sha256").read_text().split()[0]
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == wanted
    elsewhere.mkdir()
    subprocess.run(["tar", "-xf", archive, "-C", elsewhere], check=True)
    (STATE["bundle"],) = elsewhere.iterdir()
    print("  " + done.stdout.splitlines()[-2].strip())


def knows_itself(place):
    """the program and a test program start, also through a link from another folder"""
    bundle, link = STATE["bundle"], place.file("link")
    os.symlink(bundle / "bin/tokamak", link)
    expected = subprocess.run([TOKAMAK, "--version"], check=True, text=True, stdout=subprocess.PIPE).stdout
    for program in (bundle / "bin/tokamak", link):
        assert clean_run(program, "--version") == (0, expected), program
    code, output = clean_run(bundle / "bin/tokamak-env", bundle / "tests/test_model", "*transformers*")
    assert code == 0, output
    code, golden = clean_run(bundle / "bin/tokamak-env", "printenv", "TOKAMAK_TEST_DATA")
    assert golden == f"{bundle}/tests/golden\n" and os.listdir(golden.strip()), golden


def trains_under_its_mpirun(place):
    """two ranks train on the CPU; all of their and mpirun's libraries are the bundle's, glibc or CUDA's"""
    bundle, log = STATE["bundle"], open(place.file("train.log"), "w+")
    process = subprocess.Popen(
        [bundle / "bin/mpirun", "-n", "2", "--oversubscribe", "--bind-to", "none", bundle / "bin/tokamak", "train",
         place.config("packed"), "training.max_steps=100000", "runtime.backend=cpu"], env=CLEAN, stdout=log, stderr=log)
    try:
        wait_for(process, log.name, r"step 3/")
        ranks = children(process.pid)
        assert len(ranks) == 2, ranks
        for pid in [process.pid, *ranks]:
            maps = Path(f"/proc/{pid}/maps").read_text()
            files = {match[1] for match in re.finditer(r" (/\S.*\.so\S*)$", maps, re.M)}
            assert sum(file.startswith(str(bundle)) for file in files) > 10, files
            foreign = [f for f in files if not f.startswith(str(bundle)) and not SYSTEMS_OWN.match(os.path.basename(f))]
            assert not foreign, foreign
        os.kill(ranks[0], signal.SIGTERM)
        code = process.wait(timeout=60)
        assert code == 75, f"exit {code}\n{Path(log.name).read_text()[-5000:]}"
    finally:
        if process.poll() is None:
            process.kill()


def finds_cuda(place):
    """libraries of CUDA are found where pip puts them; one that is missing is named if the program needs it"""
    bundle, site = STATE["bundle"], Path(place.file("site"))
    (site / "nvidia/cu13/lib").mkdir(parents=True)
    (site / "nvidia/cu13/lib/libfound.so.13").touch()
    wanted = bundle / "libexec/cuda-libraries"
    before = wanted.read_text()
    wanted.write_text("libfound.so.13 needed\nlibmissing.so.9 needed\nlibother.so.9 optional\n")
    code, output = clean_run(bundle / "bin/tokamak-env", "printenv", "LD_LIBRARY_PATH", PYTHONPATH=str(site),
                             LD_LIBRARY_PATH="/mine", PATH=f"{os.path.dirname(sys.executable)}:/usr/bin:/bin")
    wanted.write_text(before)
    assert code == 0 and output.endswith(f"/mine:{site}/nvidia/cu13/lib\n"), output
    assert "libmissing.so.9 is not on this machine" in output and "libother" not in output, output


def checks_the_gpu(place):
    """scripts/gpu_check.sh runs from the bundle, and says by its exit code where there is no GPU"""
    if os.path.exists("/dev/nvidia0"):
        return  # the check would take minutes here
    bundle = STATE["bundle"]
    code, output = clean_run(bundle / "scripts/gpu_check.sh", "--output", place.file("check"))
    assert code == 77 and "skipped, no GPU" in output, output
    if (Path(TOKAMAK).parent / "tests/cuda/libtokamak_call_counter.so").exists():
        assert (bundle / "tests/libtokamak_call_counter.so").exists()
        assert not list(bundle.glob("**/libcupti*")), "CUPTI is CUDA's"
        assert re.search(r"^libcupti\.so\.\d+ optional$", (bundle / "libexec/cuda-libraries").read_text(), re.M)
    if (Path(TOKAMAK).parent / "tests/cuda/test_nccl").exists():
        code, output = clean_run(bundle / "bin/mpirun", "-n", "2", "--oversubscribe", "--bind-to", "none",
                                 bundle / "tests/test_nccl")
        assert code == 77 and "nccl_comm_test skipped: " in output, output
    if (Path(TOKAMAK).parent / "tests/cuda/test_cudnn_graph").exists():
        for library in ("libcudnn", "libnvrtc"):  # cuDNN compiles its kernels by libnvrtc
            assert re.search(rf"^{library}\.so\.\d+ optional$", (bundle / "libexec/cuda-libraries").read_text(), re.M)


main([packs, knows_itself, trains_under_its_mpirun, finds_cuda, checks_the_gpu])
