# The Python package: which Python tests it, and where it is installed.

# SAR_PYTHON
# --with-python[=PROGRAM]. Sets PYTHON to a Python with NumPy, or PYTHON_WHY to why there is none, and pythondir.
AC_DEFUN([SAR_PYTHON], [
AC_ARG_VAR([PYTHON], [Python for the tests and the installation of the package; default: a python3 with NumPy])
AC_ARG_WITH([python],
  [AS_HELP_STRING([--with-python@<:@=PROGRAM@:>@], [install the Python package too, for this Python])],
  [], [with_python=no])
AS_CASE([$with_python], [yes|no], [], [PYTHON=$with_python])
AC_MSG_CHECKING([for a Python with NumPy])
PYTHON_WHY="no python3, of version 3.8 or newer, has NumPy (Debian: python3-numpy)"
for sar_python in ${PYTHON:-python3 /usr/bin/python3}; do
  AS_IF([$sar_python -c 'import sys, numpy; sys.exit(sys.version_info < (3, 8))' >&AS_MESSAGE_LOG_FD 2>&1],
    [PYTHON=$sar_python
     PYTHON_WHY=
     break])
done
AS_IF([test "$enable_shared" != yes], [PYTHON_WHY="there is no shared library"])
AC_MSG_RESULT([${PYTHON_WHY:-$PYTHON}])
AS_IF([test "$with_python" != no && test -n "$PYTHON_WHY"],
  [AC_MSG_ERROR([--with-python was given, and $PYTHON_WHY])])
AC_ARG_VAR([pythondir], [folder for the Python package; default: where PYTHON looks below the prefix])
AS_IF([test -z "$pythondir" && test -z "$PYTHON_WHY"], [SAR_PYTHON_FOLDER])
AC_SUBST([PYTHON_WHY])
AM_CONDITIONAL([INSTALL_PYTHON], [test "$with_python" != no])
])

# A folder below the prefix in which this Python looks for packages, or else the usual one.
AC_DEFUN([SAR_PYTHON_FOLDER], [
sar_prefix=$prefix
AS_IF([test "$sar_prefix" = NONE], [sar_prefix=$ac_default_prefix])
pythondir=`$PYTHON -c '
import site, sys
prefix = sys.argv@<:@1@:>@
usual = "%s/lib/python%d.%d/site-packages" % (prefix, *sys.version_info@<:@:2@:>@)
known = @<:@f for f in site.getsitepackages() + @<:@site.getusersitepackages()@:>@ if f.startswith(prefix + "/")@:>@
print((known + @<:@usual@:>@)@<:@0@:>@.replace(prefix, "${prefix}", 1))' "$sar_prefix"`
])
