// A file compressed by zstd, written from start to end. The same bytes in any pieces give the same file.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

struct ZSTD_CCtx_s;  // of zstd.h

namespace tokamak {

class ZstdWriter {
 public:
  // Level 3 is zstd's default: about 300 MB/s a core for text, at a third of its size.
  ZstdWriter(const std::string& path, Kind kind, int level = 3);
  ~ZstdWriter();
  ZstdWriter(const ZstdWriter&) = delete;
  ZstdWriter& operator=(const ZstdWriter&) = delete;

  void write(std::string_view bytes);
  void finish();                            // ends the frame; the file is on disk
  int64_t bytes() const { return bytes_; }  // written, before compression

 private:
  void compress(bool is_end);

  OutputFile file_;
  struct Free {
    void operator()(ZSTD_CCtx_s* context) const;
  };
  std::unique_ptr<ZSTD_CCtx_s, Free> zstd_;
  std::string pending_;  // compressed in blocks of one size, whatever the sizes of the writes
  std::vector<std::byte> out_;
  int64_t bytes_ = 0;
};

}  // namespace tokamak
