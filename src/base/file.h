// Files, with every call checked. Errors have the path, the operation and the system's reason; the caller names their
// Kind. Another user may have planted a file: only regular files are opened, no open waits for the other end of a pipe,
// and no writer follows a link.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace tokamak {

// Owns an open file or socket; closes it without reporting errors.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }

  explicit operator bool() const { return fd_ >= 0; }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// Bounded repetition of failed reads, for file servers. While one fails over, reads fail (EIO, ESTALE, ETIMEDOUT,
// EAGAIN, EREMOTEIO) or end early, and later they work. A repetition opens the file again, since a stale handle stays
// stale. Each is logged as a warning.
struct ReadRetries {
  int64_t most = 0;                       // after the first try
  std::atomic<int64_t>* count = nullptr;  // of all repetitions; outlives the file
};

// A file open for reading at any offset, by several threads concurrently.
class InputFile {
 public:
  // Error if it is missing, a directory, pipe, socket or device. Follows links to files.
  InputFile(std::string path, Kind kind, ReadRetries retries = {});

  int64_t size() const { return size_; }
  const std::string& path() const { return path_; }
  // Fills `out` from `offset`; handles short reads and EINTR; an earlier end of file is an error. Errors name the file,
  // the offset and the number of tries.
  void read_at(int64_t offset, std::span<std::byte> out) const;
  // Asks the system to drop this file's page cache, so that the next read comes from the disk.
  void drop_cache() const;

 private:
  // Waits, longer before each repetition, unless `error` (0: the file ended) is final or too many tries failed.
  bool repeats(int64_t tries, int error, const std::string& what) const;

  std::string path_;
  Kind kind_;
  ReadRetries retries_;
  Descriptor fd_;
  int64_t size_ = 0;
};

// A file written from start to end. Durable only when sync() and close() have returned.
class OutputFile {
 public:
  // Creates or truncates. Error if `path` is a link or not a regular file: it may be planted so that another file is
  // overwritten.
  OutputFile(std::string path, Kind kind);

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }
  void rewrite(int64_t offset, std::span<const std::byte> bytes);  // replaces bytes that were written
  // Starts to write new data back, and waits until little of it is in flight. The final sync() is then short, and a
  // writer on a slow disk advances in small steps. The data is not durable yet.
  void write_behind();
  void sync();   // fsync; a failed fsync is final for this file: write a new one, never retry
  void close();  // checked, unlike the destructor's
  int64_t size() const { return size_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  Kind kind_;
  Descriptor fd_;
  int64_t size_ = 0;
  int64_t started_ = 0;  // bytes whose write-back has started, and those known to be finished
  int64_t arrived_ = 0;
};

// open(2), but refuses links (unless `flags` are O_RDONLY) and everything but regular files: empty with errno ELOOP,
// EISDIR or ENXIO. Never waits. `flags` has one of O_RDONLY, O_WRONLY and O_RDWR.
Descriptor open_regular(const std::string& path, int flags) noexcept;
// The reason of a failed open_regular, from errno: "Permission denied", "it is a symbolic link", ...
std::string open_problem(int error);

bool exists(const std::string& path);
bool is_directory(const std::string& path);
bool is_empty_directory(const std::string& path);
std::filesystem::file_status entry_at(const std::string& path);  // the type of the entry itself; follows no link
// Whether any user may replace entries of a directory: writable by others, without the sticky bit.
bool is_writable_by_all(const std::string& directory);

// The limit of read_text: a sparse file of a few bytes on disk would otherwise fill the memory.
constexpr int64_t kLargestText = int64_t{64} << 20;  // bytes
std::string read_text(const std::string& path, Kind kind, int64_t limit = kLargestText);
std::string read_text(const InputFile& file, Kind kind, int64_t limit = kLargestText);
void make_directories(const std::string& path, Kind kind);
std::vector<std::string> list_directory(const std::string& path, Kind kind);  // names, sorted, without . and ..
void rename_path(const std::string& from, const std::string& to, Kind kind);
void remove_file(const std::string& path, Kind kind);
void remove_tree(const std::string& path, Kind kind);
void sync_directory(const std::string& path, Kind kind);
void sync_file(const std::string& path, Kind kind);      // that a library has written
std::string parent_directory(const std::string& path);   // "." if there is none
std::string without_slash(const std::string& path);      // at its end: "a/b/" is the same as "a/b"
bool is_file_name(std::string_view name);                // a valid name of a directory's entry, with room for a suffix
int64_t free_bytes(const std::string& path, Kind kind);  // free space of its file system for this user

// Writes path.tmp-<process>, syncs and renames it: after a crash the file has the old text or the new. One of several
// writers wins.
void write_text_atomically(const std::string& path, std::string_view text, Kind kind);

}  // namespace tokamak
