# tokamak_module(NAME SOURCES... [USES modules...] [LIBS libraries...] [UNITY] [HOT | COLD]): a static library,
# tokamak_NAME.
#   USES   the modules whose headers it may include
#   LIBS   private to the module
#   UNITY  one translation unit, where a library's templates are most of the compile time. The sanitizers' builds compile
#          every module so, and TOKAMAK_UNITY every one that is not HOT: a clean build is then a third shorter
#   HOT    loops over data: optimised in the sanitizers' builds too, which otherwise compile with -O0
#   COLD   runs once a start: -O1, which compiles in two thirds of the time
option(TOKAMAK_UNITY "Compile each module as one unit: for a clean build, not for one that follows edits" OFF)
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
  # -g1: a report needs no more than lines, and the rest of the debug information is a third of the build's time.
  target_compile_options(tokamak_flags INTERFACE -g1 -fsanitize=${TOKAMAK_SANITIZE} -fno-sanitize-recover=all
    -fno-omit-frame-pointer -Wno-maybe-uninitialized)
  target_link_options(tokamak_flags INTERFACE -fsanitize=${TOKAMAK_SANITIZE})
  # A faster linker, if there is one: some fifty programs of 40 MB are linked.
  find_program(TOKAMAK_LINKER NAMES ld.lld ld.gold)
  if(TOKAMAK_LINKER)
    string(REGEX REPLACE ".*ld\\." "" linker ${TOKAMAK_LINKER})
    target_link_options(tokamak_flags INTERFACE -fuse-ld=${linker})
  endif()
endif()

function(tokamak_optimise_hot target)
  if(TOKAMAK_SANITIZE)
    target_compile_options(${target} PRIVATE -O1)
  endif()
endfunction()

# tokamak_unit(OUT NAME SOURCES...): the sources as one translation unit. Sets OUT to the list to compile: the unit, and
# each source with SKIP_UNITY_BUILD_INCLUSION. CMake's UNITY_BUILD includes by absolute path, so clones could not share
# objects in ccache.
function(tokamak_unit out name)
  set(text "")
  set(unit ${CMAKE_CURRENT_BINARY_DIR}/${name}_unit.cc)
  set(compiled ${unit})
  foreach(source IN LISTS ARGN)
    get_source_file_property(apart ${source} SKIP_UNITY_BUILD_INCLUSION)
    if(apart)
      list(APPEND compiled ${source})
    else()
      file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/${source})
      string(APPEND text "#include \"${path}\"\n")
    endif()
  endforeach()
  file(GENERATE OUTPUT ${unit} CONTENT "${text}")
  set(${out} ${compiled} PARENT_SCOPE)
endfunction()

function(tokamak_module name)
  cmake_parse_arguments(MODULE "UNITY;HOT;COLD" "" "SOURCES;USES;LIBS" ${ARGN})
  if(TOKAMAK_SANITIZE OR (TOKAMAK_UNITY AND NOT MODULE_HOT AND NOT "${MODULE_SOURCES}" MATCHES "\\.cu(;|$)"))
    set(MODULE_UNITY ON)
  endif()
  if(MODULE_UNITY)
    tokamak_unit(MODULE_SOURCES ${name} ${MODULE_SOURCES})
  endif()
  add_library(tokamak_${name} STATIC ${MODULE_SOURCES})
  list(TRANSFORM MODULE_USES PREPEND tokamak_)
  target_link_libraries(tokamak_${name} PUBLIC tokamak_flags ${MODULE_USES} PRIVATE ${MODULE_LIBS})
  if(MODULE_COLD AND NOT TOKAMAK_SANITIZE)
    target_compile_options(tokamak_${name} PRIVATE -O1)
  endif()
  if(MODULE_HOT)
    tokamak_optimise_hot(tokamak_${name})
  endif()
  if(MODULE_UNITY)
    # Warns of a class with members of another file's anonymous namespace, which every class of a unit then has.
    target_compile_options(tokamak_${name} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()
