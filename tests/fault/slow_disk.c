// Preloaded into a process: its disk is slow. SLOW_DISK_FSYNC: seconds that an fsync takes longer; SLOW_DISK_RATE: bytes
// a second that go to files below a directory "checkpoints".
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static void wait_for(double seconds) {
  struct timespec left = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  while (nanosleep(&left, &left) != 0) {
  }
}

static double number(const char* name) {
  const char* text = getenv(name);
  return text == NULL ? 0 : atof(text);
}

static int is_of_a_checkpoint(int fd) {
  char link[64], path[4096];
  snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof(path) - 1);
  if (length <= 0) return 0;
  path[length] = 0;
  return strstr(path, "/checkpoints/") != NULL;
}

static void wait_for_bytes(int fd, ssize_t bytes) {
  const double rate = number("SLOW_DISK_RATE");
  if (rate > 0 && bytes > 0 && is_of_a_checkpoint(fd)) wait_for((double)bytes / rate);
}

int fsync(int fd) {
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  if (is_of_a_checkpoint(fd)) wait_for(number("SLOW_DISK_FSYNC"));
  return real(fd);
}

ssize_t write(int fd, const void* data, size_t size) {
  ssize_t (*real)(int, const void*, size_t) = (ssize_t(*)(int, const void*, size_t))dlsym(RTLD_NEXT, "write");
  const ssize_t written = real(fd, data, size);
  wait_for_bytes(fd, written);
  return written;
}

ssize_t pwrite(int fd, const void* data, size_t size, off_t at) {
  ssize_t (*real)(int, const void*, size_t, off_t) =
      (ssize_t(*)(int, const void*, size_t, off_t))dlsym(RTLD_NEXT, "pwrite");
  const ssize_t written = real(fd, data, size, at);
  wait_for_bytes(fd, written);
  return written;
}
