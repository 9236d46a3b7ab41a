// Each layer of the sandbox, seen from inside: an attack meets several, and a missing one would not be noticed.
#include <sys/shm.h>
#include <sys/syscall.h>

#include <catch2/catch.hpp>
#include <cstdlib>

#include "sandbox/judging.h"

using namespace tokamak;

namespace {

void check_holds(const std::string& program) {
  const ProgramVerdict verdict = patient().run(program);
  INFO(program << "\n" << verdict.error);
  CHECK(verdict.outcome == Outcome::kPassed);
}

// Python: `refused(number, *arguments)` is the error of a system call, 0 if it works.
const std::string kSystemCalls =
    "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
    "def refused(*call):\n    return 0 if libc.syscall(*map(ctypes.c_long, call)) >= 0 else ctypes.get_errno()\n";

}  // namespace

TEST_CASE("a program has namespaces of its own: no processes, network, host name or user of ours") {
  check_holds("import os\nassert [int(p) for p in os.listdir('/proc') if p.isdigit()] == [os.getpid()] == [1]");
  check_holds("assert [l.split(':')[0].strip() for l in open('/proc/self/net/dev')][2:] == ['lo']");
  check_holds("import socket\nassert socket.gethostname() == 'sandbox'");
  check_holds("import os\nassert os.getresuid() == os.getresgid() == (65534,) * 3\nassert os.getgroups() == []");
  const int segment = ::shmget(IPC_PRIVATE, 4096, 0666);
  check_holds("assert len(open('/proc/sysvipc/shm').readlines()) == 1");  // a heading
  ::shmctl(segment, IPC_RMID, nullptr);
  check_holds("import os\nassert os.getsid(0) == os.getpgid(0) == 1");
}

TEST_CASE("a program has no capabilities, no new privileges, and a filter") {
  check_holds(R"(
state = dict(line.split(':', 1) for line in open('/proc/self/status'))
assert all(int(state[name], 16) == 0 for name in ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'))
assert int(state['NoNewPrivs']) == 1 and int(state['Seccomp']) == 2
assert open('/proc/self/oom_score_adj').read() == '1000\n'
)");
}

TEST_CASE("a program sees the files of /usr, and can write to /tmp alone") {
  check_holds(R"(
import os
assert set(os.listdir('/')) <= {'usr', 'bin', 'lib', 'lib64', 'etc', 'proc', 'dev', 'tmp'}
assert os.listdir('/tmp') == [] and not os.path.exists('/etc') or os.listdir('/etc') == ['alternatives']
mounts = [line.split() for line in open('/proc/mounts')]
writable = {place for _, place, kind, options, *_ in mounts if kind == 'tmpfs' and options.startswith('rw')}
assert writable == {'/tmp'}, writable
assert all(options.startswith('ro') for _, place, _, options, *_ in mounts if place.startswith(('/usr', '/etc')))
)");
}

TEST_CASE("a program has no variables and descriptors of ours") {
  ::setenv("TOKAMAK_CANARY", "secret", 1);
  check_holds(R"(
import os
assert set(os.environ) == {'PATH', 'PWD', 'LC_CTYPE', 'PYTHONHASHSEED', 'OMP_NUM_THREADS'}, os.environ
assert 'CANARY' not in open('/proc/1/environ').read()
assert all(os.readlink('/proc/self/fd/%d' % i) == '/dev/null' for i in range(3))
assert len(os.listdir('/proc/self/fd')) == 5  # the verdict's, and the folder
)");
  ::unsetenv("TOKAMAK_CANARY");
}

TEST_CASE("a program has limits") {
  check_holds(R"(
limits = {line[:26].strip(): line[26:].split()[:2] for line in open('/proc/self/limits')}
for name, limit in {'Max address space': 512 << 20, 'Max file size': 16 << 20, 'Max cpu time': 120,
                    'Max open files': 64, 'Max processes': 64, 'Max stack size': 8 << 20, 'Max core file size': 0}.items():
    assert limits[name] == [str(limit)] * 2, (name, limits[name])
)");
}

TEST_CASE("system calls for processes, sockets, namespaces, others' memory and the kernel's large parts are refused") {
  std::string program = kSystemCalls;
  for (const long call : {
           SYS_socket,
           SYS_ptrace,
           SYS_process_vm_readv,
           SYS_process_vm_writev,
           SYS_pidfd_open,
           SYS_pidfd_getfd,
           SYS_kcmp,
           SYS_unshare,
           SYS_setns,
           SYS_chroot,
           SYS_pivot_root,
           SYS_mount,
           SYS_umount2,
           SYS_move_mount,
           SYS_open_tree,
           SYS_fsopen,
           SYS_fsconfig,
           SYS_fsmount,
           SYS_fspick,
           SYS_mount_setattr,
           SYS_shmget,
           SYS_semget,
           SYS_msgget,
           SYS_mq_open,
           SYS_memfd_create,
           SYS_memfd_secret,
           SYS_keyctl,
           SYS_add_key,
           SYS_request_key,
           SYS_bpf,
           SYS_perf_event_open,
           SYS_userfaultfd,
           SYS_personality,
           SYS_name_to_handle_at,
           SYS_open_by_handle_at,
           SYS_fanotify_init,
           SYS_io_uring_setup,
           SYS_io_uring_enter,
           SYS_io_uring_register,
#ifdef SYS_fork
           SYS_fork,
           SYS_vfork,
           SYS_modify_ldt,
#endif
       }) {
    program += str("assert refused(", call, ") == 1, (", call, ", refused(", call, "))\n");
  }
  constexpr int kSigchld = 17, kNewUser = 0x10000000, kPairOfInet = 2, kStream = 1;
  program += str("assert refused(", SYS_clone, ", ", kSigchld, ", 0) == 1\n");
  program += str("assert refused(", SYS_clone, ", ", kNewUser, ", 0) == 1\n");
  program += str("assert refused(", SYS_clone3, ", 0, 0) == 38\n");
  program += str("assert refused(", SYS_socketpair, ", ", kPairOfInet, ", ", kStream, ", 0, 0) == 1\n");
  check_holds(program);
}

#ifdef __x86_64__
TEST_CASE("a call of another architecture kills the program") {
  const ProgramVerdict x32 = patient().run(kSystemCalls + str("refused(", 0x40000000 + SYS_getpid, ")"));
  CHECK(x32.error == "no verdict, signal 31");
  // mov eax, 20 (getpid of i386); int 0x80; ret
  const ProgramVerdict i386 = patient().run(R"(
import ctypes, mmap
code = mmap.mmap(-1, 4096, prot=7)
code.write(b'\xb8\x14\0\0\0\xcd\x80\xc3')
ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
)");
  CHECK(i386.error == "no verdict, signal 31");
}
#endif
