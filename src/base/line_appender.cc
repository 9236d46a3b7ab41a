#include "base/line_appender.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/lines.h"
#include "base/log.h"

namespace tokamak {

namespace {

// Bytes after the file's last newline; -1 if that cannot be read.
int64_t torn_bytes(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return -1;
  std::array<char, 4096> block{};
  for (int64_t end = info.st_size; end > 0;) {
    if (info.st_size - end > kLongestLine) return -1;  // not our file: a sparse one would take hours
    const int64_t begin = std::max<int64_t>(0, end - std::ssize(block));
    if (::pread(fd, block.data(), end - begin, begin) != end - begin) return -1;
    const size_t newline = std::string_view(block.data(), end - begin).rfind('\n');
    if (newline != std::string_view::npos) return info.st_size - begin - static_cast<int64_t>(newline) - 1;
    end = begin;
  }
  return info.st_size;
}

// Removes a torn last line. Returns the bytes removed; -1 if the file still ends inside a line.
int64_t cut_torn_line(int fd) {
  const int64_t torn = torn_bytes(fd);
  struct stat info {};
  if (torn <= 0) return torn;
  return ::fstat(fd, &info) == 0 && ::ftruncate(fd, info.st_size - torn) == 0 ? torn : -1;
}

}  // namespace

LineAppender::LineAppender(std::string path, Kind kind) : path_(std::move(path)) {
  if (!open()) fail(kind, str("cannot append to ", path_, ": ", open_problem(errno)), "check run.output_dir");
}

bool LineAppender::open() {
  fd_ = open_regular(path_, O_RDWR | O_CREAT | O_APPEND);
  if (!fd_) return false;
  const int64_t cut = cut_torn_line(fd_.get());
  torn_ = cut < 0;
  if (cut > 0) log::warning(path_, ": removed ", cut, " bytes of a last line that was cut short");
  return true;
}

std::string LineAppender::append(std::string_view line) {
  if (!fd_ && !open()) return refused();
  const std::string text = str(torn_ ? "\n" : "", line, "\n");
  for (size_t done = 0; done < text.size();) {
    const ssize_t put = ::write(fd_.get(), text.data() + done, text.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) {
      const int error = errno;
      if (done > 0) cut_torn_line(fd_.get());
      errno = error;
      return refused();
    }
    done += put;
  }
  torn_ = false;
  return "";
}

std::string LineAppender::refused() {
  const std::string reason = open_problem(errno);
  fd_ = Descriptor();
  return reason;
}

}  // namespace tokamak
