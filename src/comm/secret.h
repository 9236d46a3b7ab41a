// How two ranks prove to each other that they know the same secret without saying it: HMAC-SHA256 over what both have
// said in this connection, random words of both sides included. Nothing here encrypts.
#pragma once

#include <string>

namespace tokamak {

// HMAC-SHA256, as 64 hexadecimal digits.
std::string keyed_digest(const std::string& key, const std::string& message);

// Takes the same time wherever the two differ.
bool same_digest(const std::string& a, const std::string& b);

std::string random_word();  // 128 bits of the system's, as 32 hexadecimal digits

}  // namespace tokamak
