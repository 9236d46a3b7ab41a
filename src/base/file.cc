#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <system_error>
#include <thread>

#include "base/log.h"
#include "base/process.h"

namespace tokamak {

namespace fs = std::filesystem;

namespace {

// For write_behind: enough bytes in flight for a disk's full speed, and a short wait for them on a slow one.
constexpr int64_t kStartedAtOnce = int64_t{4} << 20;
constexpr int64_t kUnderWay = int64_t{64} << 20;

[[noreturn]] void fail_code(Kind kind, const std::string& what, const std::error_code& code) {
  fail(kind, str(what, ": ", code.message()));
}

// Waits before repetitions of a read, in seconds: 0.1, 0.4, 1.6, ...
constexpr double kFirstWait = 0.1;
constexpr double kLongestWait = 30;

bool may_go_away(int error) {
  return error == 0 || error == EIO || error == ESTALE || error == ETIMEDOUT || error == EAGAIN || error == EREMOTEIO;
}

std::string after_tries(int64_t tries) { return tries == 1 ? "" : str(", after ", tries, " tries"); }

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Descriptor open_regular(const std::string& path, int flags) noexcept {
  const bool writes = (flags & O_ACCMODE) != O_RDONLY;
  // O_NONBLOCK: opening a pipe without a reader would hang the process. A regular file ignores it.
  Descriptor fd(::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (writes ? O_NOFOLLOW : 0), 0644));
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0) return Descriptor();
  if (S_ISREG(info.st_mode)) return fd;
  fd = Descriptor();
  errno = S_ISDIR(info.st_mode) ? EISDIR : ENXIO;
  return fd;
}

std::string open_problem(int error) {
  switch (error) {
    case EISDIR:
      return "it is a directory, not a file";
    case ENXIO:
      return "it is a pipe, a socket or a device";
    case ELOOP:
      return "it is a symbolic link, or leads through too many";
    default:
      return std::generic_category().message(error);
  }
}

InputFile::InputFile(std::string path, Kind kind, ReadRetries retries)
    : path_(std::move(path)), kind_(kind), retries_(retries), fd_(open_regular(path_, O_RDONLY)) {
  for (int64_t tries = 1; !fd_; ++tries) {
    const int error = errno;
    if (!repeats(tries, error, str("cannot open ", path_))) {
      fail(kind_, str("cannot open ", path_, ": ", open_problem(error), after_tries(tries)));
    }
    fd_ = open_regular(path_, O_RDONLY);
  }
  struct stat info {};
  if (::fstat(fd_.get(), &info) != 0) fail_errno(kind_, str("cannot stat ", path_));
  size_ = info.st_size;
}

void InputFile::read_at(int64_t offset, std::span<std::byte> out) const {
  size_t done = 0;
  for (int64_t tries = 1; done < out.size();) {
    const int64_t at = offset + static_cast<int64_t>(done);
    const ssize_t got = ::pread(fd_.get(), out.data() + done, out.size() - done, at);
    if (got > 0) {
      done += got;
      continue;
    }
    const int error = got < 0 ? errno : 0;
    if (error == EINTR) continue;
    const std::string what =
        error == 0 ? str(path_, " ends at byte ", at, ", ", out.size() - done, " bytes too early")
                   : str("cannot read ", path_, " at byte ", at, ": ", std::generic_category().message(error));
    if (!repeats(tries, error, what)) fail(kind_, what + after_tries(tries));
    ++tries;
    // Replaces the descriptor under its number, which other threads may be using. Without the file, the old one is
    // tried again.
    const Descriptor again = open_regular(path_, O_RDONLY);
    if (again) ::dup3(again.get(), fd_.get(), O_CLOEXEC);
  }
}

bool InputFile::repeats(int64_t tries, int error, const std::string& what) const {
  if (tries > retries_.most || !may_go_away(error)) return false;
  const double seconds = std::min(kFirstWait * std::pow(4.0, double(tries - 1)), kLongestWait);
  const int64_t count = retries_.count != nullptr ? retries_.count->fetch_add(1) + 1 : tries;
  log::warning(what, "; try ", tries + 1, " of ", retries_.most + 1, " in ", fixed(seconds, 1), " s (repetition ",
               count, " so far)");
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  return true;
}

void InputFile::drop_cache() const { ::posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_DONTNEED); }

OutputFile::OutputFile(std::string path, Kind kind)
    : path_(std::move(path)), kind_(kind), fd_(open_regular(path_, O_WRONLY | O_CREAT | O_TRUNC)) {
  if (!fd_) fail(kind_, str("cannot create ", path_, ": ", open_problem(errno)));
}

void OutputFile::write(std::span<const std::byte> bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t put = ::write(fd_.get(), bytes.data() + done, bytes.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail_errno(kind_, str("cannot write ", path_, " at byte ", size_));
    done += put;
    size_ += put;
  }
}

// A later fsync would not repeat an error, so this reports it. A file system without the call is not an error.
void OutputFile::rewrite(int64_t offset, std::span<const std::byte> bytes) {
  TOKAMAK_CHECK(offset >= 0 && offset + std::ssize(bytes) <= size_, path_, offset);
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t put =
        ::pwrite(fd_.get(), bytes.data() + done, bytes.size() - done, offset + static_cast<int64_t>(done));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) fail_errno(kind_, str("cannot write ", path_, " at byte ", offset + static_cast<int64_t>(done)));
    done += put;
  }
}

void OutputFile::write_behind() {
  const auto range = [&](int64_t begin, int64_t end, unsigned flags) {
    if (begin == end || ::sync_file_range(fd_.get(), begin, end - begin, flags) == 0) return;
    if (errno == EIO || errno == ENOSPC || errno == EDQUOT) fail_errno(kind_, str("cannot write ", path_));
  };
  if (size_ - started_ < kStartedAtOnce) return;
  range(started_, size_, SYNC_FILE_RANGE_WRITE);
  started_ = size_;
  const int64_t wanted = std::max(arrived_, started_ - kUnderWay);
  range(arrived_, wanted, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
  arrived_ = wanted;
}

void OutputFile::sync() {
  if (::fsync(fd_.get()) != 0) fail_errno(kind_, str("cannot sync ", path_));
}

void OutputFile::close() {
  if (::close(fd_.release()) != 0) fail_errno(kind_, str("cannot close ", path_));
}

bool exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool is_directory(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool is_empty_directory(const std::string& path) {
  std::error_code error;
  return is_directory(path) && fs::is_empty(path, error) && !error;
}

fs::file_status entry_at(const std::string& path) {
  std::error_code ignored;
  return fs::symlink_status(path, ignored);
}

bool is_writable_by_all(const std::string& directory) {
  struct stat info {};
  return ::stat(directory.c_str(), &info) == 0 && (info.st_mode & S_IWOTH) != 0 && (info.st_mode & S_ISVTX) == 0;
}

std::string read_text(const std::string& path, Kind kind, int64_t limit) {
  return read_text(InputFile(path, kind), kind, limit);
}

std::string read_text(const InputFile& file, Kind kind, int64_t limit) {
  if (file.size() > limit) {
    fail(kind,
         str(file.path(), " has ", human_bytes(file.size()), "; such a file is never above ", human_bytes(limit)));
  }
  std::string text(file.size(), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(text.data(), text.size())));
  return text;
}

void make_directories(const std::string& path, Kind kind) {
  std::error_code code;
  fs::create_directories(path, code);
  if (code) fail_code(kind, str("cannot create directory ", path), code);
}

std::vector<std::string> list_directory(const std::string& path, Kind kind) {
  std::error_code code;
  std::vector<std::string> names;
  for (fs::directory_iterator it(path, code), end; !code && it != end; it.increment(code)) {
    names.push_back(it->path().filename().string());
  }
  if (code) fail_code(kind, str("cannot list directory ", path), code);
  std::sort(names.begin(), names.end());
  return names;
}

void rename_path(const std::string& from, const std::string& to, Kind kind) {
  if (::rename(from.c_str(), to.c_str()) != 0) fail_errno(kind, str("cannot rename ", from, " to ", to));
}

void remove_file(const std::string& path, Kind kind) {
  if (::unlink(path.c_str()) != 0) fail_errno(kind, str("cannot remove ", path));
}

void remove_tree(const std::string& path, Kind kind) {
  std::error_code code;
  fs::remove_all(path, code);
  if (code) fail_code(kind, str("cannot remove ", path), code);
}

void sync_directory(const std::string& path, Kind kind) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) fail_errno(kind, str("cannot open directory ", path));
  if (::fsync(fd.get()) != 0) fail_errno(kind, str("cannot sync directory ", path));
}

void sync_file(const std::string& path, Kind kind) {
  const Descriptor fd(open_regular(path, O_RDONLY));
  if (!fd) fail(kind, str("cannot open ", path, ": ", open_problem(errno)));
  if (::fsync(fd.get()) != 0) fail_errno(kind, str("cannot sync ", path));
}

bool is_file_name(std::string_view name) {
  constexpr size_t kLongest = 255 - 5;
  return !name.empty() && name != "." && name != ".." && name.size() <= kLongest &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos;
}

std::string without_slash(const std::string& path) {
  const size_t end = path.find_last_not_of('/');
  return end == std::string::npos ? path : path.substr(0, end + 1);
}

std::string parent_directory(const std::string& path) {
  fs::path p(path);
  if (!p.has_filename()) p = p.parent_path();  // "a/b/" names the same directory as "a/b"
  const std::string parent = p.parent_path().string();
  return parent.empty() ? "." : parent;
}

int64_t free_bytes(const std::string& path, Kind kind) {
  struct statvfs info {};
  if (::statvfs(path.c_str(), &info) != 0) fail_errno(kind, str("cannot ask for free space at ", path));
  return static_cast<int64_t>(info.f_bavail) * static_cast<int64_t>(info.f_frsize);
}

void write_text_atomically(const std::string& path, std::string_view text, Kind kind) {
  const std::string temporary = str(path, ".tmp-", process_name());
  try {
    OutputFile file(temporary, kind);
    file.write(text);
    file.sync();
    file.close();
    rename_path(temporary, path, kind);
  } catch (...) {
    ::unlink(temporary.c_str());  // the error that matters is being thrown
    throw;
  }
  sync_directory(parent_directory(path), kind);
}

}  // namespace tokamak
