// Records of web archives: WARC 1.0 and 1.1 (ISO 28500), and WET, which are WARC with text. A record is
//
//   WARC/1.0 CRLF, lines of "Name: value" CRLF, CRLF, Content-Length bytes, CRLF CRLF
//
// Files come from anywhere. A length is never trusted for memory, and what is not WARC is an error with its place.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_stream.h"

namespace tokamak {

struct WarcRecord {
  std::string type;          // "response", "conversion", "request", ...
  std::string id;            // <urn:uuid:...>, as written
  std::string uri;           // WARC-Target-URI
  std::string date;          // 2024-05-01T12:00:00Z
  std::string payload_type;  // as the crawler identified it: "text/html"; may be empty
  std::string block;         // the bytes after the header
  int64_t bytes = 0;         // of the record's block in the file; the reader keeps no more than its limit
};

class WarcReader {
 public:
  // Keeps at most `most` bytes of a record's block, and skips the rest.
  WarcReader(std::unique_ptr<ByteStream> stream, int64_t most);

  // False at the end of the file. Error(kData), with file and number of the record, if the file is damaged.
  bool next(WarcRecord& record);
  int64_t records() const { return records_; }  // read so far
  int64_t file_position() const { return stream_->file_position(); }

 private:
  bool fill();                        // false at the end of the file
  bool read_line(std::string& line);  // without its line end; false at the end of the file
  void read_block(WarcRecord& record);
  [[noreturn]] void fail_here(const std::string& reason) const;

  std::unique_ptr<ByteStream> stream_;
  int64_t most_;
  int64_t records_ = 0;
  std::vector<char> buffer_;
  size_t at_ = 0, filled_ = 0;
};

}  // namespace tokamak
