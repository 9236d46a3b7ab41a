# TOKAMAK_WITH_CUDNN: whether attention can use cuDNN, which takes the headers of cuDNN 9. TOKAMAK_WITH_CUDNN_FRONTEND:
# whether through cudnn-frontend (scripts/install_cudnn_frontend.sh), else by cuDNN's own graph API. Nothing links
# libcudnn: cuda/attention_cudnn_library.cc opens it.
set(cudnn_cache "$ENV{XDG_CACHE_HOME}")
if(NOT cudnn_cache)
  set(cudnn_cache "$ENV{HOME}/.cache")
endif()
find_path(CUDNN_FRONTEND_INCLUDE_DIR cudnn_frontend.h HINTS "${cudnn_cache}/tokamak/cudnn-frontend-1.18.0/include")
find_path(CUDNN_INCLUDE_DIR cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})

# MAJOR.MINOR that a header defines.
function(cudnn_read_version result header)
  file(STRINGS ${header} lines REGEX "_(MAJOR|MINOR)(_VERSION)? +[0-9]+$")
  string(REGEX REPLACE "[^0-9]*([0-9]+)[^0-9]+([0-9]+).*" "\\1.\\2" version "${lines}")
  set(${result} ${version} PARENT_SCOPE)
endfunction()

set(TOKAMAK_WITH_CUDNN OFF)
set(TOKAMAK_WITH_CUDNN_FRONTEND OFF)
if(NOT CUDNN_INCLUDE_DIR)
  message(STATUS "cuDNN: OFF (no cudnn.h)")
  return()
endif()
cudnn_read_version(cudnn_version ${CUDNN_INCLUDE_DIR}/cudnn_version.h)
if(cudnn_version VERSION_LESS 9.8)
  message(STATUS "cuDNN: OFF (cudnn.h of ${cudnn_version} in ${CUDNN_INCLUDE_DIR}, older than 9.8)")
  return()
endif()
set(TOKAMAK_WITH_CUDNN ON)
if(NOT CUDNN_FRONTEND_INCLUDE_DIR)
  message(STATUS "cuDNN: ON, by its own graph API (no cudnn_frontend.h)")
  return()
endif()
# From 1.19 on its headers want NVRTC linked, and take twice as long to compile.
cudnn_read_version(cudnn_version ${CUDNN_FRONTEND_INCLUDE_DIR}/cudnn_frontend_version.h)
if(cudnn_version VERSION_EQUAL 1.18)
  set(TOKAMAK_WITH_CUDNN_FRONTEND ON)
  message(STATUS "cuDNN: ON, through cudnn-frontend ${cudnn_version}")
else()
  message(STATUS "cuDNN: ON, by its own graph API "
    "(cudnn-frontend ${cudnn_version} in ${CUDNN_FRONTEND_INCLUDE_DIR}, not 1.18)")
endif()
