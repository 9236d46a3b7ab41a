// Which characters the terminal has, by the environment.
#pragma once

namespace tokamak {

// Whether the first of LC_ALL, LC_CTYPE and LANG that is set names no UTF-8: "C", "POSIX", "de_DE.ISO-8859-1". Where none is,
// as often over ssh, the terminal is taken for one of UTF-8.
bool wants_ascii();

}  // namespace tokamak
