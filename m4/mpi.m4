# The MPI compiler, its launcher, and what the MPI can do.

# SAR_MPI_COMPILER
# Choose the MPI compiler and make it CC. Must come before AC_PROG_CC.
AC_DEFUN([SAR_MPI_COMPILER], [
AC_ARG_VAR([MPICC], [MPI C compiler, for example mpicc, mpicc.mpich, mpicc.openmpi, smpicc])
AC_ARG_VAR([MPIEXEC], [program that starts MPI programs; default: the one that belongs to MPICC])
AS_IF([test -z "$MPICC"],
  [AS_IF([test -n "$CC"],
    [MPICC=$CC],
    [AC_CHECK_PROGS([MPICC], [mpicc mpicc.mpich mpicc.openmpi])])])
AS_IF([test -z "$MPICC"],
  [AC_MSG_ERROR([no MPI compiler found; install one (Debian: mpich) or set MPICC])])
set dummy $MPICC
AS_IF([command -v "$[2]" >/dev/null 2>&1], [],
  [AC_MSG_ERROR([MPICC is '$MPICC', and there is no program '$[2]'])])
CC=$MPICC
AC_SUBST([MPICC])
SAR_MPI_COMPILER_LINKS
# What smpicc links is loaded by smpirun and does not run by itself.
AS_CASE([$MPICC], [*smpicc*], [cross_compiling=yes])
])

# SAR_MPI_COMPILER_LINKS
# Stop with the output of MPICC if it links no program. Debian's mpicc is there without the library of its MPI.
AC_DEFUN([SAR_MPI_COMPILER_LINKS], [
AC_MSG_CHECKING([whether $MPICC links programs])
AS_ECHO(["int main(void) { return 0; }"]) >conftest.c
AS_IF([$MPICC $CPPFLAGS $CFLAGS $LDFLAGS conftest.c -o conftest $LIBS >conftest.log 2>&1],
  [AC_MSG_RESULT([yes])],
  [AC_MSG_RESULT([no])
   cat conftest.log >&AS_MESSAGE_LOG_FD
   tail -n 10 conftest.log | sed 's/^/  /' >&2
   sar_which=`($MPICC --showme:version || $MPICC -v) 2>/dev/null | sed -n 's/.*\(Open MPI\|MPICH\).*/ (\1)/p' | sed 1q`
   sar_advice="an MPI compiler"
   for sar_other in mpicc.mpich mpicc.openmpi; do
     AS_IF([$sar_other conftest.c -o conftest >/dev/null 2>&1],
       [sar_advice="another MPI compiler, for example MPICC=$sar_other"
        break])
   done
   rm -f conftest conftest.c conftest.log
   AC_MSG_ERROR([$MPICC$sar_which cannot link a program, see above; set MPICC to $sar_advice])])
rm -f conftest conftest.c conftest.log
])

# SAR_MPI_KIND
# Compile an MPI program, and find out which MPI it is: mpich, openmpi, simgrid or other.
AC_DEFUN([SAR_MPI_KIND], [
AC_MSG_CHECKING([whether $CC links MPI programs])
AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <mpi.h>]], [[MPI_Init(0, 0); MPI_Finalize();]])],
  [AC_MSG_RESULT([yes])],
  [AC_MSG_RESULT([no])
   AC_MSG_ERROR([$CC cannot link an MPI program; set MPICC to an MPI compiler])])
AC_MSG_CHECKING([which MPI it is])
AC_LANG_CONFTEST([AC_LANG_SOURCE([[
#include <mpi.h>
#if defined(SMPI_H)
sar_mpi simgrid 0
#elif defined(OPEN_MPI)
sar_mpi openmpi OMPI_MAJOR_VERSION.OMPI_MINOR_VERSION.OMPI_RELEASE_VERSION
#elif defined(MPICH_VERSION)
sar_mpi mpich MPICH_VERSION
#else
sar_mpi other MPI_VERSION.MPI_SUBVERSION
#endif
]])])
sar_bits_words=`($CC $CPPFLAGS -E conftest.$ac_ext 2>/dev/null) | tr -d '\n' | sed 's/^.*sar_mpi//; s/#.*$//'`
sar_mpi=`echo $sar_bits_words | sed 's/ .*//'`
sar_mpi_version=`echo $sar_bits_words | tr -d '"' | sed 's/^@<:@^ @:>@*//; s/ //g'`
AS_CASE([$sar_mpi],
  [mpich],   [sar_mpi_name="MPICH $sar_mpi_version"],
  [openmpi], [sar_mpi_name="Open MPI $sar_mpi_version"],
  [simgrid], [sar_mpi_name="SimGrid SMPI"],
  [sar_mpi=other; sar_mpi_name="MPI unknown to us"])
AC_MSG_RESULT([$sar_mpi_name])
AC_SUBST([SAR_MPI], [$sar_mpi])
AC_SUBST([SAR_MPI_NAME], [$sar_mpi_name])
set dummy $MPICC
AS_CASE(["$[2]"], [*mpicc*], [SAR_MPICC_PATH=`command -v "$[2]"`], [SAR_MPICC_PATH=])
AC_SUBST([SAR_MPICC_PATH])
])

# SAR_CHECK_MPI(FUNCTION, [HAVE-NAME])
# Define HAVE_FUNCTION, or the name given, when mpi.h declares the function and the library has it.
AC_DEFUN([SAR_CHECK_MPI], [
m4_pushdef([sar_have], [m4_default([$2], [AS_TR_CPP([HAVE_$1])])])
AC_CACHE_CHECK([for $1], [sar_cv_func_$1],
  [AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <mpi.h>]],
    [[void (*volatile function)(void) = (void (*)(void))&$1; return function == 0;]])],
    [sar_cv_func_$1=yes], [sar_cv_func_$1=no])])
AS_IF([test "$sar_cv_func_$1" = yes],
  [AC_DEFINE(sar_have, [1], [Define to 1 if MPI has $1.])
   sar_mpi_has="$sar_mpi_has $1"],
  [sar_mpi_lacks="$sar_mpi_lacks $1"])
m4_popdef([sar_have])
])

# SAR_CHECK_MPI_TYPE(TYPE)
# Define HAVE_TYPE when mpi.h, or the header of Open MPI's extensions, has this datatype of the MPI's own.
AC_DEFUN([SAR_CHECK_MPI_TYPE], [
AC_CACHE_CHECK([for $1], [sar_cv_type_$1],
  [AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <mpi.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif]],
    [[volatile MPI_Datatype type = $1; return type == MPI_DATATYPE_NULL;]])],
    [sar_cv_type_$1=yes], [sar_cv_type_$1=no])])
AS_IF([test "$sar_cv_type_$1" = yes],
  [AC_DEFINE(AS_TR_CPP([HAVE_$1]), [1], [Define to 1 if MPI has $1.])
   sar_mpi_has="$sar_mpi_has $1"],
  [sar_mpi_lacks="$sar_mpi_lacks $1"])
])

# SAR_MPI_LAUNCHER
# Find the launcher that belongs to the compiler: it must start two ranks that know of each other.
# Without one MPIEXEC is empty, MPIEXEC_WHY says why, and the MPI tests are skipped.
AC_DEFUN([SAR_MPI_LAUNCHER], [
AC_MSG_CHECKING([for the launcher that belongs to $MPICC])
MPIEXEC_WHY=
set dummy $MPICC
sar_path=`command -v "$[2]"`
sar_near=`AS_DIRNAME(["$sar_path"])`
sar_suffix=`AS_BASENAME(["$sar_path"]) | sed 's/^.*cc//'`
sar_launchers=$MPIEXEC
AS_IF([test -z "$MPIEXEC"],
  [AS_CASE([$sar_mpi], [mpich], [sar_datatype_kind=.mpich], [openmpi], [sar_datatype_kind=.openmpi], [sar_datatype_kind=])
   sar_launchers="$sar_near/mpiexec$sar_suffix $sar_near/mpirun$sar_suffix $sar_near/mpiexec$sar_datatype_kind"
   sar_launchers="$sar_launchers mpiexec$sar_suffix mpiexec$sar_datatype_kind mpiexec mpirun"])
MPIEXEC=
AS_IF([test "$sar_mpi" = simgrid],
  [MPIEXEC_WHY="programs built by smpicc need smpirun and a platform file"],
  [AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <mpi.h>]],
    [[int ranks = 0;
      MPI_Init(0, 0);
      MPI_Comm_size(MPI_COMM_WORLD, &ranks);
      MPI_Barrier(MPI_COMM_WORLD);
      MPI_Finalize();
      return ranks == 2 ? 0 : 1;]])],
    [sar_run=$srcdir/tests/run-mpi
     for sar_launcher in $sar_launchers; do
       command -v "$sar_launcher" >/dev/null 2>&1 || continue
       echo "trying $sar_launcher" >&AS_MESSAGE_LOG_FD
       AS_IF([SAR_MPI=$sar_mpi MPIEXEC=$sar_launcher SAR_TEST_NP=2 SAR_TEST_TIMEOUT=60 \
              /bin/sh "$sar_run" ./conftest$ac_exeext >&AS_MESSAGE_LOG_FD 2>&1],
         [MPIEXEC=$sar_launcher
          break])
     done])
   AS_IF([test -z "$MPIEXEC"],
     [MPIEXEC_WHY="no launcher runs two ranks of a program built by $MPICC (see config.log); set MPIEXEC"])])
AC_MSG_RESULT([${MPIEXEC:-none: $MPIEXEC_WHY}])
AC_SUBST([MPIEXEC])
AC_SUBST([MPIEXEC_WHY])
])
