# tokamak_room(NAME SOURCES... [USES rooms...] [LIBS libraries...]): a static library tokamak_NAME.
# USES are the rooms whose headers it may include; LIBS stay private to the room.
add_library(tokamak_flags INTERFACE)
target_compile_features(tokamak_flags INTERFACE cxx_std_20)  # CMAKE_CXX_STANDARD would ask the same of nvcc
# Options structs are filled by designated initialisers; what is left out has its default.
target_compile_options(tokamak_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wno-missing-field-initializers -Werror
  -march=${TOKAMAK_MARCH} -fno-math-errno -fno-trapping-math>
  # CMake 3.25 knows no C++20 for nvcc 13. constexpr functions of the standard library may run on the GPU.
  $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20 --expt-relaxed-constexpr --extended-lambda --Werror=all-warnings
  -Xcompiler=-Wall,-Wextra,-Wno-missing-field-initializers,-Werror>)
target_include_directories(tokamak_flags INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
target_link_libraries(tokamak_flags INTERFACE OpenMP::OpenMP_CXX)
if(TOKAMAK_SANITIZE)
  # -O1: what g++ 12 adds at higher levels to instrumented code are minutes and false warnings. -g1: a report needs no
  # more than lines, and the rest of the debug information is a third of the build's time.
  target_compile_options(tokamak_flags INTERFACE -O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all
    -fno-omit-frame-pointer -Wno-maybe-uninitialized)
  target_link_options(tokamak_flags INTERFACE -fsanitize=address,undefined)
endif()

function(tokamak_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;USES;LIBS" ${ARGN})
  add_library(tokamak_${name} STATIC ${ROOM_SOURCES})
  list(TRANSFORM ROOM_USES PREPEND tokamak_)
  target_link_libraries(tokamak_${name} PUBLIC tokamak_flags ${ROOM_USES} PRIVATE ${ROOM_LIBS})
endfunction()
