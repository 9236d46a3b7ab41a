// The encoding of the terminal, by the environment.
#pragma once

namespace tokamak {

// Whether the first set one of LC_ALL, LC_CTYPE and LANG names another encoding than UTF-8: "C", "de_DE.ISO-8859-1".
// If none is set, as often over ssh, UTF-8 is assumed.
bool wants_ascii();

}  // namespace tokamak
