#include "base/secret.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <array>

#include "base/error.h"

namespace tokamak {

namespace {

std::string hexadecimal(const unsigned char* bytes, size_t count) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    text += kDigits[bytes[i] >> 4U];
    text += kDigits[bytes[i] & 15U];
  }
  return text;
}

}  // namespace

std::string keyed_digest(const std::string& key, const std::string& message) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int length = 0;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(message.data());
  const void* const done =
      HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), bytes, message.size(), digest.data(), &length);
  TOKAMAK_CHECK(done != nullptr, "libcrypto has no HMAC-SHA256");
  return hexadecimal(digest.data(), length);
}

bool same_digest(const std::string& a, const std::string& b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string random_word() {
  std::array<unsigned char, 16> bytes{};
  TOKAMAK_CHECK(RAND_bytes(bytes.data(), bytes.size()) == 1, "the system gives no random bytes");
  return hexadecimal(bytes.data(), bytes.size());
}

}  // namespace tokamak
