#include "base/digest.h"

#include <openssl/evp.h>
#include <xxhash.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/hash.h"

namespace tokamak {

namespace {

class EvpDigest final : public Digest {
 public:
  // Returns nullptr if libcrypto has no such digest.
  static std::unique_ptr<Digest> make(const char* name) {
    const EVP_MD* method = EVP_get_digestbyname(name);
    auto digest = std::make_unique<EvpDigest>();
    if (method == nullptr || EVP_DigestInit_ex(digest->context_.get(), method, nullptr) != 1) return nullptr;
    return digest;
  }
  void update(std::span<const std::byte> bytes) override {
    TOKAMAK_CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1, "libcrypto failed");
  }
  std::string hex() override {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int length = 0;
    TOKAMAK_CHECK(EVP_DigestFinal_ex(context_.get(), digest.data(), &length) == 1, "libcrypto failed");
    std::string text;
    for (unsigned int i = 0; i < length; ++i) {
      text += "0123456789abcdef"[digest[i] >> 4U];
      text += "0123456789abcdef"[digest[i] & 15U];
    }
    return text;
  }

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context_{EVP_MD_CTX_new()};
};

std::string hex_of_32(const XXH32_state_t* state) { return hex64(XXH32_digest(state)).substr(8); }
std::string hex_of_64(const XXH64_state_t* state) { return hex64(XXH64_digest(state)); }
std::string hex_of_3_64(const XXH3_state_t* state) { return hex64(XXH3_64bits_digest(state)); }
std::string hex_of_3_128(const XXH3_state_t* state) {
  const XXH128_hash_t hash = XXH3_128bits_digest(state);
  return hex64(hash.high64) + hex64(hash.low64);
}

template <class State, auto kCreate, auto kFree, auto kReset, auto kUpdate, auto kHex>
class XxhDigest final : public Digest {
 public:
  void update(std::span<const std::byte> bytes) override { kUpdate(state_.get(), bytes.data(), bytes.size()); }
  std::string hex() override { return kHex(state_.get()); }

 private:
  struct Free {
    void operator()(State* state) const { kFree(state); }
  };
  static State* begun() {
    State* state = kCreate();
    kReset(state);
    return state;
  }
  std::unique_ptr<State, Free> state_{begun()};
};

XXH_errorcode reset_32(XXH32_state_t* state) { return XXH32_reset(state, 0); }
XXH_errorcode reset_64(XXH64_state_t* state) { return XXH64_reset(state, 0); }

using Xxh32 = XxhDigest<XXH32_state_t, XXH32_createState, XXH32_freeState, reset_32, XXH32_update, hex_of_32>;
using Xxh64 = XxhDigest<XXH64_state_t, XXH64_createState, XXH64_freeState, reset_64, XXH64_update, hex_of_64>;
using Xxh3Of64 =
    XxhDigest<XXH3_state_t, XXH3_createState, XXH3_freeState, XXH3_64bits_reset, XXH3_64bits_update, hex_of_3_64>;
using Xxh3Of128 =
    XxhDigest<XXH3_state_t, XXH3_createState, XXH3_freeState, XXH3_128bits_reset, XXH3_128bits_update, hex_of_3_128>;

// Python's names and libcrypto's.
constexpr std::pair<std::string_view, const char*> kEvpNames[] = {
    {"md5", "MD5"},           {"sha1", "SHA1"},         {"sha224", "SHA224"},      {"sha256", "SHA256"},
    {"sha384", "SHA384"},     {"sha512", "SHA512"},     {"sha3_224", "SHA3-224"},  {"sha3_256", "SHA3-256"},
    {"sha3_384", "SHA3-384"}, {"sha3_512", "SHA3-512"}, {"blake2b", "BLAKE2b512"}, {"blake2s", "BLAKE2s256"},
};

}  // namespace

std::unique_ptr<Digest> make_digest(std::string_view name) {
  if (name == "xxh32") return std::make_unique<Xxh32>();
  if (name == "xxh64") return std::make_unique<Xxh64>();
  if (name == "xxh3_64") return std::make_unique<Xxh3Of64>();
  if (name == "xxh3_128" || name == "xxh128") return std::make_unique<Xxh3Of128>();
  const auto* const found =
      std::find_if(std::begin(kEvpNames), std::end(kEvpNames), [&](const auto& entry) { return entry.first == name; });
  return found == std::end(kEvpNames) ? nullptr : EvpDigest::make(found->second);
}

}  // namespace tokamak
