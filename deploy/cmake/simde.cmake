# QuickJS's WebAssembly part wants the header library SIMDe and would clone it with git.
# Where the distribution's own copy is installed (`libsimde-dev`), hand it over, so that a build needs no network.
if(EXISTS /usr/include/simde/simde-common.h)
  set(FETCHCONTENT_SOURCE_DIR_SIMDE /usr/include CACHE PATH "" FORCE)
endif()
