# TOKAMAK_WITH_NCCL: whether several ranks can compute on GPUs, which takes NCCL's header. Nothing links libnccl:
# cuda/nccl/library.cc opens it.
find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
if(NCCL_INCLUDE_DIR)
  set(TOKAMAK_WITH_NCCL ON)
  message(STATUS "NCCL: ON")
else()
  set(TOKAMAK_WITH_NCCL OFF)
  message(STATUS "NCCL: OFF (no nccl.h)")
endif()
