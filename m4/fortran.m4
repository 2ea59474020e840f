# The Fortran bindings: built where the MPI has a Fortran compiler that has mpi_f08.

# SAR_MPI_FORTRAN_COMPILER
# --disable-fortran. Sets MPIFC and FC to the compiler that belongs to MPICC, or FORTRAN_WHY to why there is none.
# Must come before AC_PROG_FC, which must come before LT_INIT.
AC_DEFUN([SAR_MPI_FORTRAN_COMPILER], [
AC_ARG_VAR([MPIFC], [MPI Fortran compiler; default: the one that belongs to MPICC])
AC_ARG_ENABLE([fortran], [AS_HELP_STRING([--disable-fortran], [do without the Fortran bindings])])
FORTRAN_WHY=
# The compiler is the last word before options: MPICC may be 'ccache mpicc' or 'mpicc -cc=clang'.
sar_path=
for sar_word in $MPICC; do
  AS_CASE([$sar_word], [-*], [break])
  sar_path=`command -v "$sar_word"`
done
AS_IF([test "x$enable_fortran" = xno],
  [FORTRAN_WHY="--disable-fortran was given"
   MPIFC=],
  [test -z "$MPIFC"],
  [sar_name=`AS_BASENAME(["$sar_path"])`
   AS_CASE([$sar_name],
     [smpicc*], [FORTRAN_WHY="SimGrid has no mpi_f08"],
     [*mpicc*],
     [MPIFC=`AS_DIRNAME(["$sar_path"])`/`AS_ECHO(["$sar_name"]) | sed 's/mpicc/mpifort/'`
      AS_IF([test -x "$MPIFC"], [], [FORTRAN_WHY="there is no $MPIFC"])],
     [FORTRAN_WHY="no Fortran compiler is known to belong to $MPICC; set MPIFC"])])
AS_IF([test -z "$FORTRAN_WHY"],
  [AC_MSG_CHECKING([whether $MPIFC compiles])
   echo '      end' >conftest.f90
   AS_IF([$MPIFC -c -o conftest.$ac_objext conftest.f90 >&AS_MESSAGE_LOG_FD 2>&1], [],
     [FORTRAN_WHY="$MPIFC cannot compile (Debian: gfortran)"])
   rm -f conftest.f90 conftest.$ac_objext
   AC_MSG_RESULT([${FORTRAN_WHY:-yes}])])
AS_IF([test -n "$FORTRAN_WHY"], [MPIFC=])
FC=$MPIFC
AC_SUBST([MPIFC])
])

# SAR_FORTRAN
# Checks that C and Fortran link as the bindings need it. Sets FORTRAN_WHY and SAR_FCWARN.
AC_DEFUN([SAR_FORTRAN], [
SAR_FCWARN=
AS_IF([test -z "$FORTRAN_WHY"],
  [AC_MSG_CHECKING([whether $MPIFC has mpi_f08 and links with $CC])
   AC_LANG_PUSH([C])
   AC_COMPILE_IFELSE([AC_LANG_SOURCE([[
#include <ISO_Fortran_binding.h>
void sar_described(CFI_cdesc_t *buffer) { (void)buffer->base_addr; }
void sar_named_(void) { }
]])],
     [mv conftest.$ac_objext sar_conftest.$ac_objext],
     [FORTRAN_WHY="$CC has no ISO_Fortran_binding.h"])
   AC_LANG_POP([C])])
AS_IF([test -z "$FORTRAN_WHY"],
  [AC_LANG_PUSH([Fortran])
   sar_saved=$LIBS
   LIBS="sar_conftest.$ac_objext $LIBS"
   AC_LINK_IFELSE([AC_LANG_SOURCE([[
      program main
      use mpi_f08
      interface
        subroutine described(buffer) bind(C, name='sar_described')
          type(*), dimension(..) :: buffer
        end subroutine
      end interface
      external sar_named
      call described(MPI_IN_PLACE)
      call sar_named()
      end program
]])], [],
     [FORTRAN_WHY="$MPIFC cannot link a program that uses mpi_f08 and C (see config.log)"])
   LIBS=$sar_saved
   AC_LANG_POP([Fortran])])
AS_IF([test -n "$MPIFC"], [AC_MSG_RESULT([${FORTRAN_WHY:-yes}])])
rm -f sar_conftest.$ac_objext
AS_IF([test "x$enable_fortran" = xyes && test -n "$FORTRAN_WHY"],
  [AC_MSG_ERROR([--enable-fortran was given, and $FORTRAN_WHY])])
AS_IF([test "x$ac_cv_fc_compiler_gnu" = xyes], [SAR_FCWARN="-Wall -Wextra -Wno-c-binding-type -Wno-unused-parameter"])
AS_IF([test -n "$SAR_FCWARN" && test "x$enable_werror" = xyes], [SAR_FCWARN="$SAR_FCWARN -Werror"])
AS_IF([test -z "$FORTRAN_WHY"], [sar_fortran=`$MPIFC --version 2>/dev/null | sed 1q`])
AC_SUBST([SAR_FCWARN])
AC_SUBST([sar_fortran])
AC_SUBST([FORTRAN_WHY])
AM_CONDITIONAL([FORTRAN], [test -z "$FORTRAN_WHY"])
])
