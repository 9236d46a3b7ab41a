// Files, with every call checked. Errors carry the path, the operation and the system's reason; the caller says of
// which Kind they are (a data set, a checkpoint, the run directory). A path may lead to anything that another user has
// put there: only regular files are opened, no open waits for a pipe's other end, and no writer follows a link.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace tokamak {

// A file open for reading at any offset, by several threads at once.
class InputFile {
 public:
  // Error where there is none, or where it is a directory, pipe, socket or device. A link to a file is followed.
  InputFile(std::string path, Kind kind);
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;

  int64_t size() const { return size_; }
  const std::string& path() const { return path_; }
  // Fills `out` from `offset`; short reads and EINTR are handled, end of file before that is an error.
  void read_at(int64_t offset, std::span<std::byte> out) const;
  // Asks the system to drop what it has of this file in memory: what is read next comes from the disk, if it heeds that.
  void drop_cache() const;

 private:
  std::string path_;
  Kind kind_;
  int fd_ = -1;
  int64_t size_ = 0;
};

// A file written from start to end. Nothing is promised durable before sync() and close() have returned.
class OutputFile {
 public:
  // Creates or truncates. Error where `path` is a link or no regular file: it may be planted, to have another file of
  // ours overwritten.
  OutputFile(std::string path, Kind kind);
  ~OutputFile();  // closes without a word; call close() to learn of errors
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }
  // Starts to bring to the disk what was written, and waits until no more than a window of it is under way: the sync()
  // in the end is short then, and a writer on a slow disk gets on in small steps. Promises nothing durable.
  void write_behind();
  void sync();   // fsync; a failed fsync is final for this file: write a new one, never retry
  void close();  // checked
  int64_t size() const { return size_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  Kind kind_;
  int fd_ = -1;
  int64_t size_ = 0;
  int64_t started_ = 0;  // bytes whose way to the disk has begun, and those that have arrived, as far as is known
  int64_t arrived_ = 0;
};

// Opens a file as open(2) does, but for a link (unless `flags` are those of reading) and for what is no regular file: -1
// with errno of ELOOP, EISDIR or ENXIO. Never waits. `flags` has one of O_RDONLY, O_WRONLY and O_RDWR.
int open_regular(const std::string& path, int flags) noexcept;
// Why open_regular failed, by errno: "Permission denied", "it is a symbolic link", ...
std::string open_problem(int error);

bool exists(const std::string& path);
bool is_directory(const std::string& path);
// What a name itself is, without following it.
enum class Entry { kNone, kFile, kDirectory, kLink, kOther };
Entry entry_at(const std::string& path);
// Whether any user may remove and replace what is in a directory: writable by others, without the sticky bit.
bool is_writable_by_all(const std::string& directory);

// A description is never longer; without a limit, a sparse file of a few bytes on the disk would fill the memory.
constexpr int64_t kLargestText = int64_t{64} << 20;  // bytes
std::string read_text(const std::string& path, Kind kind, int64_t limit = kLargestText);
void make_directories(const std::string& path, Kind kind);
std::vector<std::string> list_directory(const std::string& path, Kind kind);  // names, sorted, without . and ..
void rename_path(const std::string& from, const std::string& to, Kind kind);
void remove_file(const std::string& path, Kind kind);
void remove_tree(const std::string& path, Kind kind);
void sync_directory(const std::string& path, Kind kind);
std::string parent_directory(const std::string& path);   // "." where there is none
bool is_file_name(std::string_view name);                // of an entry of a directory; there is room for an ending
int64_t free_bytes(const std::string& path, Kind kind);  // of its file system, to this user

// Writes path.tmp-<process>, syncs and renames it: after a crash the old text or the new. Of several writers one wins.
void write_text_atomically(const std::string& path, std::string_view text, Kind kind);

}  // namespace tokamak
