#include "formats/zstd_writer.h"

#include <zstd.h>

#include "base/error.h"

namespace tokamak {

namespace {

constexpr size_t kBlockBytes = size_t{1} << 20;

}  // namespace

void ZstdWriter::Free::operator()(ZSTD_CCtx_s* context) const { ZSTD_freeCCtx(context); }

ZstdWriter::ZstdWriter(const std::string& path, Kind kind, int level)
    : file_(path, kind), zstd_(ZSTD_createCCtx()), out_(ZSTD_CStreamOutSize()) {
  TOKAMAK_CHECK(zstd_ != nullptr, path);
  TOKAMAK_CHECK(!ZSTD_isError(ZSTD_CCtx_setParameter(zstd_.get(), ZSTD_c_compressionLevel, level)), level);
  TOKAMAK_CHECK(!ZSTD_isError(ZSTD_CCtx_setParameter(zstd_.get(), ZSTD_c_checksumFlag, 1)));
}

ZstdWriter::~ZstdWriter() = default;

void ZstdWriter::write(std::string_view bytes) {
  bytes_ += std::ssize(bytes);
  while (!bytes.empty()) {
    const size_t count = std::min(bytes.size(), kBlockBytes - pending_.size());
    pending_ += bytes.substr(0, count);
    bytes.remove_prefix(count);
    if (pending_.size() == kBlockBytes) compress(false);
  }
}

void ZstdWriter::compress(bool is_end) {
  ZSTD_inBuffer in = {pending_.data(), pending_.size(), 0};
  for (;;) {
    ZSTD_outBuffer out = {out_.data(), out_.size(), 0};
    const size_t left = ZSTD_compressStream2(zstd_.get(), &out, &in, is_end ? ZSTD_e_end : ZSTD_e_continue);
    TOKAMAK_CHECK(!ZSTD_isError(left), file_.path(), ": ", ZSTD_getErrorName(left));
    file_.write(std::span(out_).first(out.pos));
    if (is_end ? left == 0 : in.pos == in.size) break;
  }
  pending_.clear();
}

void ZstdWriter::finish() {
  compress(true);
  file_.sync();
  file_.close();
}

}  // namespace tokamak
