# find_package(hipcl): OpenCL and HIP on the same memory.
#
#   hipcl::hipcl   the shared library
#   hipcl::static  the static library, with what it needs of the system
#
# Both bring the folder of hipcl.h and hipcl.hpp. Found beside the libraries, wherever they lie.

include(CMakeFindDependencyMacro)
find_dependency(Threads)

get_filename_component(_hipcl_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
foreach(_hipcl_file lib/libhipcl.so.0 lib/libhipcl.a include/hipcl.h)
  if(NOT EXISTS "${_hipcl_prefix}/${_hipcl_file}")
    set(hipcl_FOUND FALSE)
    set(hipcl_NOT_FOUND_MESSAGE "${_hipcl_prefix}/${_hipcl_file} is missing; install hipcl anew")
    return()
  endif()
endforeach()

if(NOT TARGET hipcl::hipcl)
  add_library(hipcl::hipcl SHARED IMPORTED)
  set_target_properties(hipcl::hipcl PROPERTIES
    IMPORTED_LOCATION "${_hipcl_prefix}/lib/libhipcl.so.0"
    IMPORTED_SONAME "libhipcl.so.0"
    IMPORTED_LINK_INTERFACE_LANGUAGES "C"
    INTERFACE_INCLUDE_DIRECTORIES "${_hipcl_prefix}/include")
endif()

if(NOT TARGET hipcl::static)
  add_library(hipcl::static STATIC IMPORTED)
  set_target_properties(hipcl::static PROPERTIES
    IMPORTED_LOCATION "${_hipcl_prefix}/lib/libhipcl.a"
    IMPORTED_LINK_INTERFACE_LANGUAGES "C"
    INTERFACE_INCLUDE_DIRECTORIES "${_hipcl_prefix}/include"
    INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS};m")
endif()

unset(_hipcl_file)
unset(_hipcl_prefix)
