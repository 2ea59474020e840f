# SAR_CUDA
# --with-cuda=auto|yes|no|DIR. The library itself never needs CUDA: yes or DIR build its plug-in, for the
# architectures of CUDA_ARCH; `make cuda-compile` only needs nvcc.
AC_DEFUN([SAR_CUDA], [
AC_ARG_VAR([NVCC], [CUDA compiler])
AC_ARG_VAR([NVCCFLAGS], [CUDA compiler flags])
AC_ARG_VAR([CUDA_ARCH], [architectures of devices, such as "90 100"; PTX of the last one is added])
AC_ARG_WITH([cuda],
  [AS_HELP_STRING([--with-cuda=auto|yes|no|DIR],
    [build libmpix_sparse_cuda.so for buffers in device memory; DIR holds bin/nvcc; auto only finds nvcc @<:@auto@:>@])],
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
AS_IF([test -n "$NVCC"], [SAR_CUDA_ARCHITECTURES])
AM_CONDITIONAL([HAVE_NVCC], [test -n "$NVCC"])
AM_CONDITIONAL([BUILD_CUDA], [test -n "$NVCC" && test "x$with_cuda" != xauto])
AM_COND_IF([BUILD_CUDA], [SAR_CUDA_RUNTIME])
])

# Those that nvcc knows of the default ones; what the user asks for, it must know.
AC_DEFUN([SAR_CUDA_ARCHITECTURES], [
AC_MSG_CHECKING([for architectures of CUDA devices])
sar_cuda_known=`"$NVCC" --list-gpu-arch 2>/dev/null | sed 's/compute_//'`
sar_cuda_asked=${CUDA_ARCH:-"80 90 100"}
sar_cuda_list= CUDA_GENCODE=
for sar_arch in $sar_cuda_asked; do
  AS_IF([AS_ECHO(["$sar_cuda_known"]) | grep -qx "$sar_arch"],
    [sar_cuda_list="$sar_cuda_list $sar_arch"
     CUDA_GENCODE="$CUDA_GENCODE -gencode arch=compute_$sar_arch,code=sm_$sar_arch"
     sar_cuda_last=$sar_arch],
    [AS_IF([test -n "$CUDA_ARCH"], [AC_MSG_ERROR([$NVCC does not know architecture $sar_arch of CUDA_ARCH])])])
done
AS_IF([test -z "$CUDA_GENCODE"], [AC_MSG_ERROR([$NVCC knows none of the architectures $sar_cuda_asked; set CUDA_ARCH])])
CUDA_GENCODE="$CUDA_GENCODE -gencode arch=compute_$sar_cuda_last,code=compute_$sar_cuda_last"
AC_MSG_RESULT([$sar_cuda_list, PTX of $sar_cuda_last])
AC_SUBST([CUDA_GENCODE])
])

# The headers and the library of the toolkit that nvcc belongs to.
AC_DEFUN([SAR_CUDA_RUNTIME], [
sar_nvcc=`command -v "$NVCC"`
sar_nvcc=`readlink -f "$sar_nvcc"`
CUDA_ROOT=`AS_DIRNAME(["$sar_nvcc"])`
CUDA_ROOT=`AS_DIRNAME(["$CUDA_ROOT"])`
CUDA_LIBDIR=
for sar_folder in "$CUDA_ROOT/lib64" "$CUDA_ROOT/targets/`uname -m`-linux/lib" "$CUDA_ROOT/lib"; do
  AS_IF([test -z "$CUDA_LIBDIR" && test -f "$sar_folder/libcudart.so"], [CUDA_LIBDIR=$sar_folder])
done
AS_IF([test -f "$CUDA_ROOT/include/cuda_runtime_api.h" && test -n "$CUDA_LIBDIR"], [],
  [AC_MSG_ERROR([no cuda_runtime_api.h or libcudart.so below $CUDA_ROOT])])
AC_SUBST([CUDA_ROOT])
AC_SUBST([CUDA_LIBDIR])
])
