"""call_counter.cc without a GPU: CUPTI and the driver are stand-ins that tell it of calls, as CUDA would."""
import ctypes
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

COUNTER, INCLUDE = os.environ["CALL_COUNTER"], os.environ["INCLUDE"].split(":")
CUPTI = r"""
#include <cupti.h>
#include <stdlib.h>

static CUpti_CallbackFunc callback;
static char enabled[CUPTI_CB_DOMAIN_STATE + 1][2048];

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc function, void* data) {
  if (getenv("REFUSE")) return CUPTI_ERROR_NOT_INITIALIZED;
  if (callback) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  callback = function;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle s, CUpti_CallbackDomain domain,
                                CUpti_CallbackId id) {
  if (getenv("REFUSE_CALLS")) return CUPTI_ERROR_INVALID_PARAMETER;
  enabled[domain][id] = enable;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetResultString(CUptiResult result, const char** text) {
  *text = "refused";
  return CUPTI_SUCCESS;
}
static void call(CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* parameters) {
  for (int site = CUPTI_API_ENTER; enabled[domain][id] && site <= CUPTI_API_EXIT; ++site) {
    CUpti_CallbackData data = {.callbackSite = site, .functionParams = parameters};
    callback(NULL, domain, id, &data);
  }
}
#define RUNTIME(name, parameters) \
  call(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_##name, parameters)
#define DRIVER(name, parameters) call(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_##name, parameters)

void a_program(void) {
  RUNTIME(cudaMalloc_v3020, NULL);
  DRIVER(cuMemAlloc_v2, NULL);
  RUNTIME(cudaStreamSynchronize_v3020, NULL);
  RUNTIME(cudaStreamSynchronize_v3020, NULL);
  DRIVER(cuMemCreate, NULL);
  RUNTIME(cudaLaunchKernel_v7000, NULL);
  DRIVER(cuLaunchKernel, NULL);
  char *known = (char*)KNOWN, *pageable = known - 1;
  cudaMemcpyAsync_v3020_params pinned = {known, known, 8, 0, 0}, to = {pageable, known, 8, 0, 0},
                               from = {known, pageable, 8, 0, 0};
  RUNTIME(cudaMemcpyAsync_v3020, &pinned);
  RUNTIME(cudaMemcpyAsync_v3020, &to);
  RUNTIME(cudaMemcpyAsync_v3020, &from);
  cuMemcpyAsync_params both = {KNOWN, KNOWN, 8, 0}, copy_to = {KNOWN - 1, KNOWN, 8, 0},
                       copy_from = {KNOWN, KNOWN - 1, 8, 0};
  DRIVER(cuMemcpyAsync, &both);
  DRIVER(cuMemcpyAsync, &copy_to);
  DRIVER(cuMemcpyAsync, &copy_from);
  cuMemcpyHtoDAsync_v2_params up = {KNOWN, known, 8, 0}, pageable_up = {KNOWN, pageable, 8, 0};
  DRIVER(cuMemcpyHtoDAsync_v2, &up);
  DRIVER(cuMemcpyHtoDAsync_v2, &pageable_up);
  cuMemcpyDtoHAsync_v2_params down = {known, KNOWN, 8, 0}, pageable_down = {pageable, KNOWN, 8, 0};
  DRIVER(cuMemcpyDtoHAsync_v2, &down);
  DRIVER(cuMemcpyDtoHAsync_v2, &pageable_down);
}
int every_call(void) {
  static const char nulls[1024];
  int calls = 0;
  for (int domain = 0; domain <= CUPTI_CB_DOMAIN_STATE; ++domain) {
    for (int id = 0; id < 2048; calls += enabled[domain][id++]) call(domain, id, nulls);
  }
  return calls;
}
"""
DRIVER = r"""
int cuPointerGetAttribute(void* data, int attribute, unsigned long long pointer) {
  if (pointer < KNOWN) return 1;
  *(unsigned*)data = 2;
  return 0;
}
"""
COUNTED = {"cudaMalloc": 1, "cuMemAlloc_v2": 1, "cudaStreamSynchronize": 2, "cuMemCreate": 1,
           "copy of pageable memory": 6}


def program():
    """As CUDA does: the library is loaded and asked to begin."""
    counter = ctypes.CDLL(COUNTER)
    assert counter.InitializeInjection() == 1 and counter.InitializeInjection() == 1
    cupti = ctypes.CDLL("libcupti.so.13")
    if "EVERY_CALL" in os.environ:
        print(cupti.every_call())
    else:
        cupti.a_program()


def run(folder, *, driver=True, **environment):
    """(the counts or None, what it printed)."""
    path = folder / "calls.json"
    path.unlink(missing_ok=True)
    preload = [str(folder / "libcupti.so.13")] + ([str(folder / "libcuda.so.1")] if driver else [])
    environment = dict(os.environ, LD_PRELOAD=":".join(preload), TOKAMAK_CALLS=str(path), **environment)
    done = subprocess.run([sys.executable, __file__, "program"], env=environment, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
    return json.loads(path.read_text()) if path.exists() else None, done.stdout


def main():
    with tempfile.TemporaryDirectory(prefix="tokamak-counter-") as name:
        folder = Path(name)
        for library, source in (("libcupti.so.13", CUPTI), ("libcuda.so.1", DRIVER)):
            (folder / "source.c").write_text(source)
            subprocess.run(["cc", "-shared", "-fPIC", "-DKNOWN=0x10000ull", *(f"-I{path}" for path in INCLUDE),
                            f"-Wl,-soname,{library}", folder / "source.c", "-o", folder / library], check=True)
        counts, said = run(folder)
        assert counts == COUNTED and said == "", (counts, said)
        counts, said = run(folder, EVERY_CALL="1")
        assert sum(counts.values()) == int(said) > 40, (counts, said)
        for refusal, why in ({"REFUSE": "1"}, "cuptiSubscribe: refused"), ({"REFUSE_CALLS": "1"}, ": refused"):
            counts, said = run(folder, **refusal)
            assert counts is None and said.startswith("call counter: error: ") and why in said, (counts, said)
        if not os.path.exists("/dev/nvidia0"):
            counts, said = run(folder, driver=False)
            assert counts is None and "no cuPointerGetAttribute" in said, (counts, said)
    print("ok: calls are counted, copies where their memory is pageable; without CUPTI or a driver there are no counts")


program() if sys.argv[1:] == ["program"] else main()
