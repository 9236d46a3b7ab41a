// libcudnn, opened when it is first asked for: a program that was built with cuDNN starts without it.
#pragma once

#include <string>

namespace tokamak {

// Whether cuDNN's functions may be called from now on; if not, why.
bool open_cudnn(std::string* why_not);

// For the reason why there is no plan: whether the library opens by which cuDNN compiles its kernels.
std::string nvrtc_state();

}  // namespace tokamak
