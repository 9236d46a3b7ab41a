#include "base/line_appender.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/file.h"

namespace tokamak {

namespace {

bool ends_torn(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0 || info.st_size == 0) return false;
  char last = 0;
  return ::pread(fd, &last, 1, info.st_size - 1) != 1 || last != '\n';
}

}  // namespace

LineAppender::LineAppender(std::string path, Kind kind) : path_(std::move(path)) {
  if (!open()) fail(kind, str("cannot append to ", path_, ": ", open_problem(errno)), "check run.output_dir");
}

LineAppender::~LineAppender() {
  if (fd_ >= 0) ::close(fd_);
}

bool LineAppender::open() {
  fd_ = open_regular(path_, O_RDWR | O_CREAT | O_APPEND);
  torn_ = fd_ >= 0 && ends_torn(fd_);
  return fd_ >= 0;
}

std::string LineAppender::append(std::string_view line) {
  if (fd_ < 0 && !open()) return refused();
  const std::string text = str(torn_ ? "\n" : "", line, "\n");
  for (size_t done = 0; done < text.size();) {
    const ssize_t put = ::write(fd_, text.data() + done, text.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return refused();
    done += static_cast<size_t>(put);
  }
  torn_ = false;
  return "";
}

int64_t LineAppender::size() const {
  struct stat info {};
  return fd_ >= 0 && ::fstat(fd_, &info) == 0 ? info.st_size : 0;
}

void LineAppender::reopen() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  open();
}

std::string LineAppender::refused() {
  const std::string reason = open_problem(errno);
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  return reason;
}

}  // namespace tokamak
