# The Python package: which Python tests it, and where it is installed.

# SAR_PYTHON
# --with-python[=PROGRAM]. Sets PYTHON to a Python with NumPy, that of an active virtual environment if there is one, or PYTHON_WHY to why there is none, and pythondir.
AC_DEFUN([SAR_PYTHON], [
AC_ARG_VAR([PYTHON], [Python for the tests and the installation of the package; default: a python3 with NumPy])
AC_ARG_WITH([python],
  [AS_HELP_STRING([--with-python@<:@=PROGRAM@:>@], [install the Python package too, for this Python])],
  [], [with_python=no])
AS_CASE([$with_python], [yes|no], [], [PYTHON=$with_python])
AC_MSG_CHECKING([for a Python with NumPy])
PYTHON_WHY="no python3, of version 3.8 or newer, has NumPy (Debian: python3-numpy)"
sar_pythons="python3 /usr/bin/python3"
# The package would not be found in an active virtual environment if it were installed for another Python.
AS_IF([test "$with_python" = yes && test -n "$VIRTUAL_ENV"],
  [sar_pythons=$VIRTUAL_ENV/bin/python3
   PYTHON_WHY="$sar_pythons of the active virtual environment has no NumPy: install it there, or give --with-python=PROGRAM"])
for sar_python in ${PYTHON:-$sar_pythons}; do
  AS_IF([$sar_python -c 'import sys, numpy; sys.exit(sys.version_info < (3, 8))' >&AS_MESSAGE_LOG_FD 2>&1],
    [PYTHON=$sar_python
     PYTHON_WHY=
     break])
done
AS_IF([test "$enable_shared" != yes], [PYTHON_WHY="there is no shared library"])
AC_MSG_RESULT([${PYTHON_WHY:-$PYTHON}])
AS_IF([test "$with_python" != no && test -n "$PYTHON_WHY"],
  [AC_MSG_ERROR([--with-python was given, and $PYTHON_WHY])])
AC_ARG_VAR([pythondir], [folder for the Python package; default: that of the virtual environment, or where
  PYTHON looks below the prefix])
AS_IF([test -z "$PYTHON_WHY"], [SAR_PYTHON_FOLDER])
AC_SUBST([PYTHON_WHY])
AC_SUBST([PYTHON_OR_DEFAULT], [${PYTHON:-python3}])
AC_SUBST([PYTHON_NOTE])
AM_CONDITIONAL([INSTALL_PYTHON], [test "$with_python" != no])
sar_python_tells="no: --with-python installs it"
AM_COND_IF([INSTALL_PYTHON], [sar_python_tells="$sar_python_folder${PYTHON_NOTE:+: $PYTHON_NOTE}"])
])

# Sets pythondir, unless the user has: the packages of the virtual environment to which PYTHON belongs, or a folder
# below the prefix in which PYTHON looks for packages, or else the usual one. Sets sar_python_folder to the same
# without variables, and PYTHON_NOTE if PYTHON does not look there.
AC_DEFUN([SAR_PYTHON_FOLDER], [
sar_prefix=$prefix
AS_IF([test "$sar_prefix" = NONE], [sar_prefix=$ac_default_prefix])
AS_IF([test -z "$pythondir"], [pythondir=`$PYTHON -c '
import site, sys, sysconfig
prefix = sys.argv@<:@1@:>@
usual = "%s/lib/python%d.%d/site-packages" % (prefix, *sys.version_info@<:@:2@:>@)
known = @<:@f for f in site.getsitepackages() + @<:@site.getusersitepackages()@:>@ if f.startswith(prefix + "/")@:>@
own = @<:@sysconfig.get_path("purelib")@:>@ if sys.prefix != sys.base_prefix else @<:@@:>@
print((own + known + @<:@usual@:>@)@<:@0@:>@.replace(prefix + "/", "${prefix}/", 1))' "$sar_prefix"`])
sar_python_folder=`(prefix=$sar_prefix; exec_prefix=$sar_prefix; eval "echo \"$pythondir\"")`
PYTHON_NOTE=`PYTHONPATH= $PYTHON -c '
import os, site, sys
folder = sys.argv@<:@1@:>@
searched = sys.path + site.getsitepackages() + @<:@site.getusersitepackages()@:>@ * bool(site.ENABLE_USER_SITE)
if os.path.realpath(folder) not in map(os.path.realpath, searched):
    print("set PYTHONPATH=" + folder)' "$sar_python_folder"`
])
