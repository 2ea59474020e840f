# SAR_CUDA
# --with-cuda=auto|yes|no|DIR. Only `make cuda-compile` needs nvcc; the library itself never does.
AC_DEFUN([SAR_CUDA], [
AC_ARG_VAR([NVCC], [CUDA compiler])
AC_ARG_VAR([NVCCFLAGS], [CUDA compiler flags])
AC_ARG_WITH([cuda],
  [AS_HELP_STRING([--with-cuda=auto|yes|no|DIR], [compile the CUDA kernels; DIR holds bin/nvcc @<:@auto@:>@])],
  [], [with_cuda=auto])
sar_cuda_path=$PATH$PATH_SEPARATOR/usr/local/cuda/bin
AS_CASE([$with_cuda],
  [no], [NVCC=],
  [auto | yes], [AS_IF([test -z "$NVCC"], [AC_PATH_PROG([NVCC], [nvcc], [], [$sar_cuda_path])])],
  [AS_IF([test -z "$NVCC"], [NVCC=$with_cuda/bin/nvcc])
   AS_IF([test -x "$NVCC"], [], [AC_MSG_ERROR([no CUDA compiler at $NVCC])])])
AS_IF([test "x$with_cuda" = xyes && test -z "$NVCC"],
  [AC_MSG_ERROR([--with-cuda was given, and there is no nvcc; set NVCC or give its folder])])
AS_IF([test -z "$NVCCFLAGS"], [NVCCFLAGS="-O3 -g"])
AM_CONDITIONAL([HAVE_NVCC], [test -n "$NVCC"])
AM_CONDITIONAL([BUILD_CUDA], [test -n "$NVCC" && test "x$with_cuda" != xauto])
])
