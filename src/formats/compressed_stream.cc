#include "formats/compressed_stream.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <vector>

#include "base/error.h"

namespace tokamak {

namespace {

constexpr size_t kInputBytes = size_t{256} << 10;
constexpr int kLargestWindowLog = 31;       // dumps of whole sites use it: zstd --long=31
constexpr size_t kLargestFrameHeader = 18;  // RFC 8878, 3.1.1.1, with the magic number

// The compressed bytes that are in memory, and those behind them in the file.
class CompressedInput {
 public:
  CompressedInput(const std::string& path, Kind kind, ByteRange range)
      : file_(path, kind, range), kind_(kind), block_(kInputBytes) {}

  // The bytes that are left of the block, or those of the next one: `least` or more, unless the file ends before.
  std::span<const std::byte> bytes(size_t least = 1) {
    if (filled_ - at_ < least) {
      std::move(block_.begin() + static_cast<int64_t>(at_), block_.begin() + static_cast<int64_t>(filled_),
                block_.begin());
      filled_ -= at_;
      at_ = 0;
      filled_ += static_cast<size_t>(file_.read(std::span(block_).subspan(filled_)));
    }
    return std::span(block_).subspan(at_, filled_ - at_);
  }
  void consume(size_t count) { at_ += count; }
  int64_t position() const { return file_.file_position() - static_cast<int64_t>(filled_ - at_); }
  const std::string& path() const { return file_.path(); }
  [[noreturn]] void fail_here(const std::string& reason) const {
    fail(kind_, str(path(), " is damaged at byte ", position(), " of the compressed file: ", reason),
         "restore the file from its source");
  }

 private:
  FileStream file_;
  Kind kind_;
  std::vector<std::byte> block_;
  size_t at_ = 0;
  size_t filled_ = 0;
};

class GzipStream final : public ByteStream {
 public:
  GzipStream(const std::string& path, Kind kind, ByteRange range) : input_(path, kind, range) {
    constexpr int kGzipOnly = 16;
    TOKAMAK_CHECK(inflateInit2(&zlib_, MAX_WBITS + kGzipOnly) == Z_OK, path);
  }
  ~GzipStream() override { inflateEnd(&zlib_); }
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

  int64_t read(std::span<std::byte> out) override;
  int64_t file_position() const override { return input_.position(); }
  const std::string& path() const override { return input_.path(); }

 private:
  bool begin_member();

  CompressedInput input_;
  z_stream zlib_{};
  bool in_member_ = false;
  bool any_member_ = false;
};

// False at the end of the file, and before padding with NULs, which gzip accepts.
bool GzipStream::begin_member() {
  auto bytes = input_.bytes();
  if (any_member_) {
    while (!bytes.empty() && bytes.front() == std::byte{0}) {
      input_.consume(1);
      bytes = input_.bytes();
      if (!bytes.empty() && bytes.front() != std::byte{0}) input_.fail_here("neither a member nor padding follows");
    }
  } else if (bytes.empty()) {
    input_.fail_here("it is empty");
  }
  if (bytes.empty()) return false;
  TOKAMAK_CHECK(inflateReset(&zlib_) == Z_OK, path());
  in_member_ = any_member_ = true;
  return true;
}

int64_t GzipStream::read(std::span<std::byte> out) {
  const size_t room = std::min(out.size(), size_t{1} << 30);
  zlib_.next_out = reinterpret_cast<Bytef*>(out.data());
  zlib_.avail_out = static_cast<uInt>(room);
  while (zlib_.avail_out > 0) {
    if (!in_member_ && !begin_member()) break;
    const auto bytes = input_.bytes();
    if (bytes.empty()) input_.fail_here("it ends within a member");
    zlib_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));
    zlib_.avail_in = static_cast<uInt>(bytes.size());
    const int result = inflate(&zlib_, Z_NO_FLUSH);
    input_.consume(bytes.size() - zlib_.avail_in);
    if (result == Z_STREAM_END) {
      in_member_ = false;
    } else if (result == Z_MEM_ERROR) {
      fail(Kind::kDevice, str("no memory to decompress ", path()));
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      input_.fail_here(zlib_.msg == nullptr ? "it is not gzip" : zlib_.msg);
    }
  }
  return static_cast<int64_t>(room - zlib_.avail_out);
}

class ZstdStream final : public ByteStream {
 public:
  ZstdStream(const std::string& path, Kind kind, ByteRange range)
      : input_(path, kind, range), zstd_(ZSTD_createDCtx()) {
    TOKAMAK_CHECK(zstd_ != nullptr, path);
    TOKAMAK_CHECK(!ZSTD_isError(ZSTD_DCtx_setParameter(zstd_.get(), ZSTD_d_windowLogMax, kLargestWindowLog)), path);
  }

  int64_t read(std::span<std::byte> out) override;
  int64_t file_position() const override { return input_.position(); }
  const std::string& path() const override { return input_.path(); }

 private:
  struct Free {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };

  void begin_frame();
  void end_frame() const;

  CompressedInput input_;
  std::unique_ptr<ZSTD_DCtx, Free> zstd_;
  bool in_frame_ = false;
  bool any_frame_ = false;
  unsigned long long frame_bytes_ = 0;  // that its header promises, or ZSTD_CONTENTSIZE_UNKNOWN
  unsigned long long filled_ = 0;       // of the frame, so far
};

void ZstdStream::begin_frame() {
  const auto header = input_.bytes(kLargestFrameHeader);
  frame_bytes_ = ZSTD_getFrameContentSize(header.data(), header.size());
  if (frame_bytes_ == ZSTD_CONTENTSIZE_ERROR) frame_bytes_ = ZSTD_CONTENTSIZE_UNKNOWN;  // decompressing it will fail
  filled_ = 0;
  in_frame_ = any_frame_ = true;
}

// The library compares the sizes only if it can decompress the frame at once, or if its last block is not empty.
void ZstdStream::end_frame() const {
  if (frame_bytes_ == ZSTD_CONTENTSIZE_UNKNOWN || filled_ == frame_bytes_) return;
  input_.fail_here(str("a frame has ", filled_, " bytes; its header says ", frame_bytes_));
}

int64_t ZstdStream::read(std::span<std::byte> out) {
  ZSTD_outBuffer output{out.data(), out.size(), 0};
  while (output.pos < output.size) {
    if (!in_frame_) {
      if (any_frame_ && input_.bytes().empty()) break;
      begin_frame();  // an empty file is cut, too
    }
    const auto bytes = input_.bytes();
    ZSTD_inBuffer input{bytes.data(), bytes.size(), 0};
    const size_t before = output.pos;
    const size_t result = ZSTD_decompressStream(zstd_.get(), &output, &input);
    input_.consume(input.pos);
    if (ZSTD_isError(result)) input_.fail_here(ZSTD_getErrorName(result));
    filled_ += output.pos - before;
    in_frame_ = result != 0;
    if (!in_frame_) end_frame();
    if (bytes.empty() && in_frame_ && output.pos == before) input_.fail_here("it ends within a frame");
  }
  return static_cast<int64_t>(output.pos);
}

struct Extension {
  std::string_view name;
  Compression compression;
};
constexpr Extension kExtensions[] = {{".gz", Compression::kGzip}, {".zst", Compression::kZstd}};

}  // namespace

Compression compression_of(std::string_view path) {
  for (const auto& [name, compression] : kExtensions) {
    if (path.ends_with(name)) return compression;
  }
  return Compression::kNone;
}

std::string_view without_compression(std::string_view path) {
  for (const auto& [name, compression] : kExtensions) {
    if (path.ends_with(name)) return path.substr(0, path.size() - name.size());
  }
  return path;
}

std::unique_ptr<ByteStream> open_stream(const std::string& path, Kind kind) {
  return open_stream(path, compression_of(path), kind);
}

std::unique_ptr<ByteStream> open_stream(const std::string& path, Compression compression, Kind kind, ByteRange range) {
  switch (compression) {
    case Compression::kNone:
      return std::make_unique<FileStream>(path, kind, range);
    case Compression::kGzip:
      return std::make_unique<GzipStream>(path, kind, range);
    case Compression::kZstd:
      return std::make_unique<ZstdStream>(path, kind, range);
  }
  TOKAMAK_UNREACHABLE(path);
}

}  // namespace tokamak
