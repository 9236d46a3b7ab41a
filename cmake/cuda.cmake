# TOKAMAK_WITH_CUDA: whether this build has the CUDA backend (TOKAMAK_CUDA = AUTO, ON, OFF).
set(TOKAMAK_WITH_CUDA OFF)
if(NOT TOKAMAK_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    set(TOKAMAK_WITH_CUDA ON)
  elseif(TOKAMAK_CUDA STREQUAL "ON")
    message(FATAL_ERROR "TOKAMAK_CUDA=ON, and there is no nvcc: put it on the PATH, or set CMAKE_CUDA_COMPILER")
  endif()
endif()

if(TOKAMAK_WITH_CUDA)
  # Machine code for Ampere, Hopper and Blackwell, and PTX for what comes after. Before enable_language, which would set
  # its own default.
  set(CMAKE_CUDA_ARCHITECTURES "80-real;90a-real;100-real;100-virtual" CACHE STRING "GPU architectures")
  enable_language(CUDA)
  find_package(CUDAToolkit 13 REQUIRED)
  include(cmake/cudnn.cmake)
  include(cmake/nccl.cmake)
endif()
message(STATUS "CUDA backend: ${TOKAMAK_WITH_CUDA}")
