#include "base/staged.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/log.h"
#include "base/process.h"

namespace tokamak {

namespace {

constexpr const char* kMark = ".tokamak-tmp-";

// kUnknown: the file system has no locks.
enum class Writer { kGone, kAlive, kUnknown };

Writer writer_of(const std::string& staging) {
  const Descriptor fd(::open(staging.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return Writer::kUnknown;
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return Writer::kGone;
  return errno == EWOULDBLOCK ? Writer::kAlive : Writer::kUnknown;
}

// The places where processes write, or have left, what becomes `path`.
std::vector<std::string> staged_for(const std::string& path, Kind kind) {
  const std::string parent = parent_directory(path);
  const std::string start = std::filesystem::path(path).filename().string() + kMark;
  std::vector<std::string> found;
  for (const std::string& name : list_directory(parent, kind))
    if (starts_with(name, start)) found.push_back(parent + "/" + name);
  return found;
}

}  // namespace

bool has_writer(const std::string& path) {
  const std::vector<std::string> staged = staged_for(without_slash(path), Kind::kConfig);
  return std::any_of(staged.begin(), staged.end(),
                     [](const std::string& one) { return writer_of(one) == Writer::kAlive; });
}

StagedOutput::StagedOutput(const std::string& path, What what, Kind kind, Existing existing)
    : path_(without_slash(path)), what_(what), kind_(kind), existing_(existing) {
  if (path_.empty()) fail(Kind::kConfig, "the output has no name");
  const bool same = is_directory(path_) == (what == What::kDirectory);
  const bool replaceable = same && (existing == Existing::kReplace || is_empty_directory(path_));
  if (exists(path_) && !replaceable) {
    fail(Kind::kConfig, str("the output ", path_, " exists"), "name one that does not, or remove it");
  }
  const std::string parent = parent_directory(path_);
  if (!is_directory(parent)) fail(Kind::kConfig, str("there is no directory ", parent, " to write ", path_, " into"));
  remove_leftovers();
  staging_ = path_ + kMark + process_name();
  if (what == What::kDirectory) make_directories(staging_, kind);
  if (what == What::kFile) OutputFile(staging_, kind).close();
  lock_ = Descriptor(::open(staging_.c_str(), O_RDONLY | O_CLOEXEC));
  static_cast<void>(::flock(lock_.get(), LOCK_EX | LOCK_NB));  // without locks, other processes leave it alone
}

StagedOutput::~StagedOutput() {
  if (staging_.empty()) return;
  try {
    remove_tree(staging_, kind_);
  } catch (const std::exception& error) {
    log::warning(error.what());
  }
}

void StagedOutput::remove_leftovers() const {
  for (const std::string& left : staged_for(path_, kind_)) {
    switch (writer_of(left)) {
      case Writer::kAlive:
        fail(Kind::kConfig, str("another process is writing the output ", path_, ", in ", left),
             "wait until it has ended, or name another output");
      case Writer::kUnknown:
        log::warning("another process is writing ", left, ", or was interrupted; then remove it");
        break;
      case Writer::kGone:
        log::warning("removing ", left, ", left by an interrupted run");
        remove_tree(left, kind_);
    }
  }
}

void StagedOutput::commit() {
  if (what_ == What::kDirectory) sync_directory(staging_, kind_);
  // A rename replaces only an empty directory, so the old one is renamed first. Its new name is not that of a leftover,
  // so that a crash between the two renames does not lose both.
  const std::string old = str(path_, ".old-", process_name());
  const bool replaces = what_ == What::kDirectory && existing_ == Existing::kReplace && exists(path_);
  if (replaces) rename_path(path_, old, kind_);
  rename_path(staging_, path_, kind_);
  staging_.clear();
  sync_directory(parent_directory(path_), kind_);
  if (replaces) remove_tree(old, kind_);
}

}  // namespace tokamak
