// Whether a word is a web or mail address: a host with a name, with or without scheme, user, port and path.
#pragma once

#include <string_view>

namespace tokamak {

// By the pattern of spaCy's tokenizer, without numeric hosts. `word` is valid UTF-8 without white space.
bool is_web_address(std::string_view word);

}  // namespace tokamak
