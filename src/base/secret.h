// Two ranks prove to each other that they know the same secret without sending it: HMAC-SHA256 over both sides' words
// of this connection, with a random word of each. Nothing is encrypted.
#pragma once

#include <string>

namespace tokamak {

// HMAC-SHA256, as 64 hexadecimal digits.
std::string keyed_digest(const std::string& key, const std::string& message);

// Takes the same time wherever the two differ.
bool same_digest(const std::string& a, const std::string& b);

std::string random_word();  // 128 random bits from the system, as 32 hexadecimal digits

}  // namespace tokamak
