// Preloaded into the real program: the k-th file operation below a directory fails, is cut short, hangs, or is the last
// thing that the process does; or all of them are slow. Operations are system calls, so this stands for the disk, and
// takes no part in the program. What it does comes from the environment:
//
//   FAULTY_DISK_UNDER  counts operations on paths that begin so, from 1, separately in each process
//   FAULTY_DISK_RANK   only this rank has faults; not set: all ranks
//   FAULTY_DISK_AT     number of the operation that gets the fault; not set: none
//   FAULTY_DISK_FROM   "N TEXT": counts from the moment at which the N-th file with TEXT in its path is opened for
//                      writing, until the next such file is; not set: counts all
//   FAULTY_DISK_READS  1: reads at an offset are counted, too
//   FAULTY_DISK_TIMES  so many operations from that one on get the fault; not set: 1
//   FAULTY_DISK_FAULT  an errno as a number; kill; hang; stop: the whole process, until SIGCONT; short: a write or read takes
//                      half of its bytes; end: a read finds the end of the file; stale: the handle that is read is stale,
//                      so reads of it fail with ESTALE until the file is opened again; lost: fsync fails with EIO and the
//                      second half of the file is zeros, for the kernel takes failed pages for clean ones
//   FAULTY_DISK_RATE   bytes a second of every write
//   FAULTY_DISK_FSYNC  seconds that every fsync takes longer
//   FAULTY_DISK_TRACE  a line for each operation is appended here: rank, number, call, path
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static atomic_long operations, beginnings;

static const char* setting(const char* name) {
  const char* value = getenv(name);
  return value != NULL ? value : "";
}

static const char* rank(void) {
  const char* names[] = {"OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "RANK"};
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
    if (getenv(names[i]) != NULL) return getenv(names[i]);
  }
  return "0";
}

static bool is_below(const char* path) {
  const char* under = setting("FAULTY_DISK_UNDER");
  if (under[0] == '\0' || strncmp(path, under, strlen(under)) != 0) return false;
  const char* only = setting("FAULTY_DISK_RANK");
  return only[0] == '\0' || strcmp(only, rank()) == 0;
}

// The path of a descriptor, or of a name that is relative to one; "" if there is none.
static void path_of(int fd, const char* name, char out[PATH_MAX]) {
  out[0] = '\0';
  if (name != NULL && (fd == AT_FDCWD || name[0] == '/')) {
    snprintf(out, PATH_MAX, "%s", name);
    return;
  }
  char link[64];
  snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, out, PATH_MAX - 1);
  out[length > 0 ? length : 0] = '\0';
  if (name == NULL || length <= 0) return;
  snprintf(out + length, PATH_MAX - (size_t)length, "/%s", name);
}

static void trace(long number, const char* call, const char* path) {
  const char* file = setting("FAULTY_DISK_TRACE");
  if (file[0] == '\0') return;
  char line[PATH_MAX + 100];
  const int length = snprintf(line, sizeof(line), "%s %ld %s %s\n", rank(), number, call, path);
  const int fd = (int)syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0 || syscall(SYS_write, fd, line, (size_t)length) != length) abort();
  syscall(SYS_close, fd);
}

static void lose_half(int fd) {
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return;
  if (ftruncate(fd, info.st_size / 2) != 0 || ftruncate(fd, info.st_size) != 0) abort();
}

// The number of an operation; 0: it is not counted.
static long number_of(const char* call, const char* path) {
  const char* from = setting("FAULTY_DISK_FROM");
  const char* text = strchr(from, ' ');
  if (text == NULL) return atomic_fetch_add(&operations, 1) + 1;
  const bool begins = strcmp(call, "open") == 0 && strstr(path, text + 1) != NULL;
  const long begun = begins ? atomic_fetch_add(&beginnings, 1) + 1 : atomic_load(&beginnings);
  return begun == atol(from) ? atomic_fetch_add(&operations, 1) + 1 : 0;
}

// Counts an operation. True: it must fail, errno is set. `half`: a write must take half; `fd`: of an fsync, else -1.
static bool strike(const char* call, const char* path, bool* half, int fd) {
  if (!is_below(path)) return false;
  const int before = errno;
  const long number = number_of(call, path);
  const long at = atol(setting("FAULTY_DISK_AT")), times = atol(setting("FAULTY_DISK_TIMES"));
  const bool struck = number != 0 && at != 0 && number >= at && number < at + (times > 0 ? times : 1);
  const char* fault = setting("FAULTY_DISK_FAULT");
  trace(number, call, path);
  errno = before;
  if (!struck) return false;
  trace(number, "struck", path);
  if (strcmp(fault, "kill") == 0) kill(getpid(), SIGKILL);
  while (strcmp(fault, "kill") == 0 || strcmp(fault, "hang") == 0) pause();
  if (strcmp(fault, "stop") == 0) kill(getpid(), SIGSTOP);
  errno = before;
  if (strcmp(fault, "stop") == 0) return false;
  if (strcmp(fault, "short") == 0) {
    if (half != NULL) *half = true;
    return false;
  }
  if (strcmp(fault, "end") == 0 || strcmp(fault, "stale") == 0) return true;
  if (strcmp(fault, "lost") == 0 && fd >= 0) lose_half(fd);
  errno = strcmp(fault, "lost") == 0 ? EIO : atoi(fault);
  return true;
}

static void wait_for(double seconds) {
  struct timespec left = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

static void take_time(size_t bytes, const char* path) {
  const double rate = atof(setting("FAULTY_DISK_RATE"));
  if (rate > 0 && is_below(path)) wait_for((double)bytes / rate);
}

static int open_at(int directory, const char* name, int flags, mode_t mode) {
  char path[PATH_MAX];
  path_of(directory, name, path);
  if ((flags & O_CREAT) != 0 && strike("open", path, NULL, -1)) return -1;
  return (int)syscall(SYS_openat, directory, name, flags, mode);
}

static mode_t mode_of(int flags, va_list rest) {
  return (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
}

#define TAKE_MODE(mode)                     \
  va_list rest;                             \
  va_start(rest, flags);                    \
  const mode_t mode = mode_of(flags, rest); \
  va_end(rest)

int open(const char* name, int flags, ...) {
  TAKE_MODE(mode);
  return open_at(AT_FDCWD, name, flags, mode);
}

int open64(const char* name, int flags, ...) {
  TAKE_MODE(mode);
  return open_at(AT_FDCWD, name, flags, mode);
}

int openat(int directory, const char* name, int flags, ...) {
  TAKE_MODE(mode);
  return open_at(directory, name, flags, mode);
}

ssize_t write(int fd, const void* bytes, size_t count) {
  char path[PATH_MAX];
  bool half = false;
  path_of(fd, NULL, path);
  if (strike("write", path, &half, -1)) return -1;
  take_time(count, path);
  return syscall(SYS_write, fd, bytes, half ? count / 2 : count);
}

ssize_t pwrite(int fd, const void* bytes, size_t count, off_t at) {
  char path[PATH_MAX];
  bool half = false;
  path_of(fd, NULL, path);
  if (strike("write", path, &half, -1)) return -1;
  take_time(count, path);
  return syscall(SYS_pwrite64, fd, bytes, half ? count / 2 : count, at);
}

static atomic_bool stale[1024];  // handles; until their number is opened again

ssize_t pread(int fd, void* bytes, size_t count, off_t at) {
  char path[PATH_MAX];
  bool half = false;
  if (fd >= 0 && fd < 1024 && stale[fd]) {
    errno = ESTALE;
    return -1;
  }
  if (setting("FAULTY_DISK_READS")[0] == '1') {
    path_of(fd, NULL, path);
    if (strike("read", path, &half, -1)) {
      if (strcmp(setting("FAULTY_DISK_FAULT"), "end") == 0) return 0;
      if (strcmp(setting("FAULTY_DISK_FAULT"), "stale") != 0) return -1;
      if (fd < 1024) stale[fd] = true;
      errno = ESTALE;
      return -1;
    }
  }
  return syscall(SYS_pread64, fd, bytes, half ? (count + 1) / 2 : count, at);
}

int dup3(int from, int to, int flags) {
  if (to >= 0 && to < 1024) stale[to] = false;
  return (int)syscall(SYS_dup3, from, to, flags);
}

ssize_t pread64(int fd, void* bytes, size_t count, off_t at) { return pread(fd, bytes, count, at); }

int fsync(int fd) {
  char path[PATH_MAX];
  path_of(fd, NULL, path);
  if (strike("fsync", path, NULL, fd)) return -1;
  if (is_below(path)) wait_for(atof(setting("FAULTY_DISK_FSYNC")));
  return (int)syscall(SYS_fsync, fd);
}

// A fault only if close() may report lost data. The file is closed in any case, as on Linux.
int close(int fd) {
  char path[PATH_MAX];
  const int flags = fcntl(fd, F_GETFL);
  path_of(fd, NULL, path);
  if (fd >= 0 && fd < 1024) stale[fd] = false;
  const bool fails = flags >= 0 && (flags & O_ACCMODE) != O_RDONLY && strike("close", path, NULL, -1);
  const int reason = errno;
  const int result = (int)syscall(SYS_close, fd);
  if (!fails) return result;
  errno = reason;
  return -1;
}

int rename(const char* from, const char* to) {
  return strike("rename", from, NULL, -1) ? -1 : (int)syscall(SYS_rename, from, to);
}

int mkdir(const char* path, mode_t mode) {
  return strike("mkdir", path, NULL, -1) ? -1 : (int)syscall(SYS_mkdir, path, mode);
}

int unlink(const char* path) { return strike("unlink", path, NULL, -1) ? -1 : (int)syscall(SYS_unlink, path); }

// Removes a file or an empty directory; std::filesystem's remove_all calls it last.
int remove(const char* path) {
  if (strike("remove", path, NULL, -1)) return -1;
  const int result = (int)syscall(SYS_unlink, path);
  return result != 0 && errno == EISDIR ? (int)syscall(SYS_rmdir, path) : result;
}

int unlinkat(int directory, const char* name, int flags) {
  char path[PATH_MAX];
  path_of(directory, name, path);
  return strike("unlink", path, NULL, -1) ? -1 : (int)syscall(SYS_unlinkat, directory, name, flags);
}
