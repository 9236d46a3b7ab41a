// Opens libcudnn at first use: a program that was built with cuDNN starts without it.
#pragma once

#include <cstddef>
#include <string>

namespace tokamak {

// Whether cuDNN's functions may be called; if not, why.
bool open_cudnn(std::string* why_not);

// 91801, as cudnnGetVersion() returns it, is "9.18.1".
std::string version_text(size_t version);

// Explains a missing plan: whether the library that compiles cuDNN's kernels can be opened.
std::string nvrtc_state();

}  // namespace tokamak
