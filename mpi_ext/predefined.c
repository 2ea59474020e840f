/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpi_ext/predefined.h"

#include <stdint.h>

/* The usual ones first. What an MPI lacks is MPI_DATATYPE_NULL there, or no macro. */
static const struct sar_predefined types[] = {
    { MPI_FLOAT, SAR_KIND_FLOAT, sizeof(float) },
    { MPI_DOUBLE, SAR_KIND_FLOAT, sizeof(double) },
    { MPI_INT, SAR_KIND_SIGNED, sizeof(int) },
    { MPI_LONG, SAR_KIND_SIGNED, sizeof(long) },
    { MPI_LONG_LONG, SAR_KIND_SIGNED, sizeof(long long) },
    { MPI_INT32_T, SAR_KIND_SIGNED, sizeof(int32_t) },
    { MPI_INT64_T, SAR_KIND_SIGNED, sizeof(int64_t) },
    { MPI_UNSIGNED, SAR_KIND_UNSIGNED, sizeof(unsigned) },
    { MPI_UNSIGNED_LONG, SAR_KIND_UNSIGNED, sizeof(unsigned long) },
    { MPI_UNSIGNED_LONG_LONG, SAR_KIND_UNSIGNED, sizeof(unsigned long long) },
    { MPI_UINT32_T, SAR_KIND_UNSIGNED, sizeof(uint32_t) },
    { MPI_UINT64_T, SAR_KIND_UNSIGNED, sizeof(uint64_t) },
    { MPI_SIGNED_CHAR, SAR_KIND_SIGNED, sizeof(signed char) },
    { MPI_SHORT, SAR_KIND_SIGNED, sizeof(short) },
    { MPI_INT8_T, SAR_KIND_SIGNED, sizeof(int8_t) },
    { MPI_INT16_T, SAR_KIND_SIGNED, sizeof(int16_t) },
    { MPI_UNSIGNED_CHAR, SAR_KIND_UNSIGNED, sizeof(unsigned char) },
    { MPI_UNSIGNED_SHORT, SAR_KIND_UNSIGNED, sizeof(unsigned short) },
    { MPI_UINT8_T, SAR_KIND_UNSIGNED, sizeof(uint8_t) },
    { MPI_UINT16_T, SAR_KIND_UNSIGNED, sizeof(uint16_t) },
    { MPI_LONG_DOUBLE, SAR_KIND_FLOAT, sizeof(long double) },
    { MPI_BYTE, SAR_KIND_BYTE, sizeof(char) },
    { MPI_C_BOOL, SAR_KIND_LOGICAL, 0 },
    { MPI_C_FLOAT_COMPLEX, SAR_KIND_COMPLEX, 0 },
    { MPI_C_DOUBLE_COMPLEX, SAR_KIND_COMPLEX, 0 },
    { MPI_C_LONG_DOUBLE_COMPLEX, SAR_KIND_COMPLEX, 0 },
    { MPI_AINT, SAR_KIND_ADDRESS, sizeof(MPI_Aint) },
    { MPI_OFFSET, SAR_KIND_ADDRESS, sizeof(MPI_Offset) },
    { MPI_COUNT, SAR_KIND_ADDRESS, sizeof(MPI_Count) },
    { MPI_FLOAT_INT, SAR_KIND_PAIR, 0 },
    { MPI_DOUBLE_INT, SAR_KIND_PAIR, 0 },
    { MPI_LONG_INT, SAR_KIND_PAIR, 0 },
    { MPI_2INT, SAR_KIND_PAIR, 0 },
    { MPI_SHORT_INT, SAR_KIND_PAIR, 0 },
    { MPI_LONG_DOUBLE_INT, SAR_KIND_PAIR, 0 },
    { MPI_REAL, SAR_KIND_FLOAT, 0 },
    { MPI_DOUBLE_PRECISION, SAR_KIND_FLOAT, 0 },
    { MPI_INTEGER, SAR_KIND_FORTRAN_INTEGER, 0 },
    { MPI_LOGICAL, SAR_KIND_LOGICAL, 0 },
    { MPI_COMPLEX, SAR_KIND_COMPLEX, 0 },
    { MPI_DOUBLE_COMPLEX, SAR_KIND_COMPLEX, 0 },
    { MPI_REAL4, SAR_KIND_FLOAT, 0 },
    { MPI_REAL8, SAR_KIND_FLOAT, 0 },
    { MPI_REAL16, SAR_KIND_FLOAT, 0 },
    { MPI_INTEGER1, SAR_KIND_FORTRAN_INTEGER, 0 },
    { MPI_INTEGER2, SAR_KIND_FORTRAN_INTEGER, 0 },
    { MPI_INTEGER4, SAR_KIND_FORTRAN_INTEGER, 0 },
    { MPI_INTEGER8, SAR_KIND_FORTRAN_INTEGER, 0 },
    { MPI_COMPLEX8, SAR_KIND_COMPLEX, 0 },
    { MPI_COMPLEX16, SAR_KIND_COMPLEX, 0 },
    { MPI_COMPLEX32, SAR_KIND_COMPLEX, 0 },
    { MPI_2REAL, SAR_KIND_PAIR, 0 },
    { MPI_2DOUBLE_PRECISION, SAR_KIND_PAIR, 0 },
    { MPI_2INTEGER, SAR_KIND_PAIR, 0 },
    { MPI_CXX_BOOL, SAR_KIND_LOGICAL, 0 },
    { MPI_CXX_FLOAT_COMPLEX, SAR_KIND_COMPLEX, 0 },
    { MPI_CXX_DOUBLE_COMPLEX, SAR_KIND_COMPLEX, 0 },
    { MPI_CXX_LONG_DOUBLE_COMPLEX, SAR_KIND_COMPLEX, 0 },
#ifdef MPI_INTEGER16
    { MPI_INTEGER16, SAR_KIND_FORTRAN_INTEGER, 0 },
#endif
#ifdef MPI_REAL2
    { MPI_REAL2, SAR_KIND_FLOAT, 0 },
#endif
#ifdef MPI_COMPLEX4
    { MPI_COMPLEX4, SAR_KIND_COMPLEX, 0 },
#endif
};

const struct sar_predefined *sar_predefined_find(MPI_Datatype datatype)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (types[i].type == datatype)
            return &types[i];
    return NULL;
}
