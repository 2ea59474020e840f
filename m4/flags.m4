# Compiler flags.

# SAR_TRY_FLAG(VARIABLE, FLAG)
# Append the flag to the variable when the compiler takes it without a warning.
AC_DEFUN([SAR_TRY_FLAG], [
AS_VAR_PUSHDEF([sar_flag], [sar_cv_flag_$2])
AC_CACHE_CHECK([whether the compiler takes $2], [sar_flag],
  [sar_saved=$CFLAGS
   CFLAGS="-Werror $2"
   AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [])],
     [AS_VAR_SET([sar_flag], [yes])], [AS_VAR_SET([sar_flag], [no])])
   CFLAGS=$sar_saved])
AS_VAR_IF([sar_flag], [yes], [$1="$$1 $2"])
AS_VAR_POPDEF([sar_flag])
])

# SAR_SANITIZERS
# --enable-sanitizers, --enable-tsan. Sets SAR_SANITIZE and, unless the user gave CFLAGS, the optimisation.
AC_DEFUN([SAR_SANITIZERS], [
AC_ARG_ENABLE([sanitizers],
  [AS_HELP_STRING([--enable-sanitizers], [build with the address and undefined-behaviour sanitizers])])
AC_ARG_ENABLE([tsan], [AS_HELP_STRING([--enable-tsan], [build with the thread sanitizer])])
AS_IF([test "x$enable_sanitizers" = xyes && test "x$enable_tsan" = xyes],
  [AC_MSG_ERROR([--enable-sanitizers and --enable-tsan exclude each other])])
sar_sanitizers=no
SAR_SANITIZE=
AS_IF([test "x$enable_sanitizers" = xyes],
  [sar_sanitizers=address,undefined
   SAR_SANITIZE="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"])
AS_IF([test "x$enable_tsan" = xyes],
  [sar_sanitizers=thread
   SAR_SANITIZE="-fsanitize=thread -fno-omit-frame-pointer"])
AS_IF([test -n "$SAR_SANITIZE"],
  [AS_IF([test -z "$sar_user_cflags"], [CFLAGS="-O1 -g"])
   AC_MSG_CHECKING([whether programs link with $SAR_SANITIZE])
   sar_saved=$CFLAGS
   CFLAGS="$CFLAGS $SAR_SANITIZE"
   AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])], [AC_MSG_RESULT([yes])],
     [AC_MSG_RESULT([no])
      AC_MSG_ERROR([the sanitizers' run-time library is missing])])
   CFLAGS=$sar_saved])
AC_SUBST([SAR_SANITIZE])
])

# SAR_WARNINGS
# The warnings the project is written under, and --enable-werror.
AC_DEFUN([SAR_WARNINGS], [
AC_ARG_ENABLE([werror], [AS_HELP_STRING([--enable-werror], [make compiler warnings errors])])
SAR_WARN=
m4_foreach_w([sar_w], [-Wall -Wextra -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes -Wvla],
  [SAR_TRY_FLAG([SAR_WARN], sar_w)])
# MPICH defines MPI_STATUSES_IGNORE as an address of no object, of which gcc complains without cause.
AS_IF([test "$sar_mpi" = mpich], [SAR_TRY_FLAG([SAR_WARN], [-Wno-stringop-overflow])])
AS_IF([test "x$enable_werror" = xyes], [SAR_WARN="$SAR_WARN -Werror"])
AC_SUBST([SAR_WARN])
])

# SAR_EXIT_HANDLER
# on_exit, whose handlers must stay loaded. At the end of a simulation no rank can be asked if it has finalized MPI.
AC_DEFUN([SAR_EXIT_HANDLER], [
SAR_EXIT_HANDLER_LDFLAGS=
AC_CHECK_FUNC([on_exit],
  [AS_IF([test "$sar_mpi" != simgrid],
    [AC_DEFINE([HAVE_ON_EXIT], [1], [Define to 1 to warn of an exit without MPI_Finalize.])
     SAR_EXIT_HANDLER_LDFLAGS="-Wl,-z,nodelete"])])
AC_SUBST([SAR_EXIT_HANDLER_LDFLAGS])
])

# SAR_HOT_CODE
# Whether the linker puts functions together as src/hot_code.ld says. Sets SAR_HOT_CODE_CFLAGS and _LDFLAGS.
AC_DEFUN([SAR_HOT_CODE], [
SAR_HOT_CODE_CFLAGS="-ffunction-sections -fno-plt"
SAR_HOT_CODE_LDFLAGS='-Wl,-T,$(top_srcdir)/src/hot_code.ld'
AC_CACHE_CHECK([whether the linker puts functions together], [sar_cv_hot_code],
  [sar_saved=$CFLAGS sar_saved_ldflags=$LDFLAGS sar_cv_hot_code=no
   CFLAGS="$CFLAGS $SAR_HOT_CODE_CFLAGS"
   LDFLAGS="$LDFLAGS -Wl,-T,$srcdir/src/hot_code.ld"
   AS_IF([test "$sar_mpi" != simgrid && test -z "$SAR_SANITIZE"],
     [AC_LINK_IFELSE([AC_LANG_PROGRAM([extern const char sar_hot_code_begin@<:@@:>@, sar_hot_code_end@<:@@:>@;],
        [return sar_hot_code_end == sar_hot_code_begin;])], [sar_cv_hot_code=yes])])
   CFLAGS=$sar_saved LDFLAGS=$sar_saved_ldflags])
AS_IF([test "$sar_cv_hot_code" = no], [SAR_HOT_CODE_CFLAGS= SAR_HOT_CODE_LDFLAGS=])
AC_SUBST([SAR_HOT_CODE_CFLAGS])
AC_SUBST([SAR_HOT_CODE_LDFLAGS])
])
