#include "sandbox/syscall_filter.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace tokamak {

namespace {

static_assert(std::endian::native == std::endian::little);  // the low half of an argument comes first

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
constexpr auto kOnlyHere = {SYS_fork, SYS_vfork, SYS_modify_ldt};
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
constexpr std::initializer_list<int> kOnlyHere = {};
#else
#error "name the architecture, and its own calls that make processes"
#endif

constexpr auto kRefused = {
    // network
    SYS_socket, SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register,
    // other processes
    SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_pidfd_open, SYS_pidfd_getfd, SYS_kcmp,
    // namespaces and mounts
    SYS_unshare, SYS_setns, SYS_chroot, SYS_pivot_root, SYS_mount, SYS_umount2, SYS_move_mount, SYS_open_tree,
    SYS_fsopen, SYS_fsconfig, SYS_fsmount, SYS_fspick, SYS_mount_setattr,
    // memory that no limit counts
    SYS_shmget, SYS_semget, SYS_msgget, SYS_mq_open, SYS_memfd_create, SYS_memfd_secret,
    // large parts of the kernel
    SYS_keyctl, SYS_add_key, SYS_request_key, SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_personality,
    SYS_name_to_handle_at, SYS_open_by_handle_at, SYS_fanotify_init};

class FilterText {
 public:
  void add(uint16_t code, uint32_t value, uint8_t if_true = 0, uint8_t if_false = 0) {
    const sock_filter instruction = {code, if_true, if_false, value};
    bytes_.append(reinterpret_cast<const char*>(&instruction), sizeof(instruction));
  }
  void load(size_t offset) { add(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset)); }
  void decide(uint32_t action) { add(BPF_RET | BPF_K, action); }
  // These expect the call's number to be loaded.
  void refuse(uint32_t call, uint32_t error) {
    add(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1);
    decide(SECCOMP_RET_ERRNO | error);
  }
  void refuse_unless(uint16_t test, uint32_t value, uint32_t call) {  // of the first argument
    add(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 4);
    load(offsetof(seccomp_data, args));
    add(BPF_JMP | BPF_K | test, value, 1, 0);
    decide(SECCOMP_RET_ERRNO | EPERM);
    decide(SECCOMP_RET_ALLOW);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

}  // namespace

std::string syscall_filter() {
  FilterText filter;
  filter.load(offsetof(seccomp_data, arch));
  filter.add(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0);
  filter.decide(SECCOMP_RET_KILL_PROCESS);
  filter.load(offsetof(seccomp_data, nr));
  filter.add(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1);  // x32; no other call has so high a number
  filter.decide(SECCOMP_RET_KILL_PROCESS);
  for (const auto call : kRefused) filter.refuse(call, EPERM);
  for (const auto call : kOnlyHere) filter.refuse(call, EPERM);
  // Flags of clone3 lie in memory, where a filter cannot see them. libc then takes clone.
  filter.refuse(SYS_clone3, ENOSYS);
  filter.refuse_unless(BPF_JSET, CLONE_THREAD, SYS_clone);
  filter.refuse_unless(BPF_JEQ, AF_UNIX, SYS_socketpair);  // asyncio wakes itself by one
  filter.decide(SECCOMP_RET_ALLOW);
  return filter.bytes();
}

}  // namespace tokamak
