/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests that a repeated call uses cached facts: it does not decode its datatype again and does not price the
 * schemes again, unless an input changed.
 *
 * Link with -Wl,--wrap=PMPI_Type_get_contents,--wrap=sar_select, and with the library's objects. */

#include <mpix_sparse.h>
#include <stdlib.h>

#include "check.h"
#include "core/select.h"

enum { CALLS = 100, MOST_SELECTIONS = 10, FEW = 40, MANY = 400, ROW = 64, COUNT = 10000 };

int __real_PMPI_Type_get_contents(MPI_Datatype type, int integers, int addresses, int types, int lengths[],
                                  MPI_Aint displacements[], MPI_Datatype inner[]);
int __wrap_PMPI_Type_get_contents(MPI_Datatype type, int integers, int addresses, int types, int lengths[],
                                  MPI_Aint displacements[], MPI_Datatype inner[]);

enum sar_status __real_sar_select(const struct sar_agreed *agreed, const struct sar_config *config,
                                  const struct sar_cost_history *history, const struct sar_scheme *forced,
                                  struct sar_price_cache *predictions, struct sar_selection *selection);
enum sar_status __wrap_sar_select(const struct sar_agreed *agreed, const struct sar_config *config,
                                  const struct sar_cost_history *history, const struct sar_scheme *forced,
                                  struct sar_price_cache *predictions, struct sar_selection *selection);

static int looks, selections;
static uint32_t indices[MANY];
static float values[MANY * ROW];
static MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;

int __wrap_PMPI_Type_get_contents(MPI_Datatype type, int integers, int addresses, int types, int lengths[],
                                  MPI_Aint displacements[], MPI_Datatype inner[])
{
    looks++;
    return __real_PMPI_Type_get_contents(type, integers, addresses, types, lengths, displacements, inner);
}

enum sar_status __wrap_sar_select(const struct sar_agreed *agreed, const struct sar_config *config,
                                  const struct sar_cost_history *history, const struct sar_scheme *forced,
                                  struct sar_price_cache *predictions, struct sar_selection *selection)
{
    selections++;
    return __real_sar_select(agreed, config, history, forced, predictions, selection);
}

static MPI_Datatype row_of(int n)
{
    MPI_Datatype type;
    MPI_Type_contiguous(n, MPI_FLOAT, &type);
    MPI_Type_commit(&type);
    return type;
}

/* All ranks have the same elements, with value 1. */
static void call(int nnz, int row, MPI_Datatype type)
{
    const void *sums = NULL;
    MPI_Count n = 0;
    check_success(MPIX_Sparse_allreduce_coo(indices, values, nnz, MPI_UINT32_T, COUNT, type, MPI_SUM,
                                            MPI_COMM_WORLD, &result),
                  "MPIX_Sparse_allreduce_coo");
    MPIX_Sparse_result_get(result, &n, NULL, &sums);
    check(n == nnz, "expected %d elements, found %lld", nnz, (long long)n);
    for (int i = 0; i < nnz * row; i++)
        if (((const float *)sums)[i] != (float)ranks)
            check(false, "expected %d at %d, found %g", ranks, i, (double)((const float *)sums)[i]);
}

static void ask_once(void)
{
    MPI_Datatype type = row_of(ROW);
    check_case("the same call again");
    for (int i = 0; i < 2; i++)
        call(MANY, ROW, type);
    looks = selections = 0;
    for (int i = 0; i < CALLS; i++)
        call(MANY, ROW, type);
    check(looks == 0, "expected the datatype to be known, found %d looks into it", looks);
    check(selections <= MOST_SELECTIONS, "expected %d selections at most in %d calls, found %d",
          MOST_SELECTIONS, CALLS, selections);
    check_equal_on_ranks((uint64_t)selections, "selections");

    check_case("fewer elements");
    selections = 0;
    call(FEW, ROW, type);
    check(selections == 1, "expected a selection, found %d", selections);
    MPI_Type_free(&type);
}

/* MPI reuses the handle of a freed type. */
static void change_rows(void)
{
    static const int rows[] = { 3, ROW, 1, 8, 3, 2, ROW };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_case("rows of %d", rows[i]);
        MPI_Datatype type = row_of(rows[i]), twin = row_of(rows[i] + 1);
        for (int k = 0; k < 2; k++) {
            call(FEW, rows[i], type);
            call(FEW, rows[i] + 1 < ROW ? rows[i] + 1 : rows[i], rows[i] + 1 < ROW ? twin : type);
        }
        MPI_Type_free(&type);
        MPI_Type_free(&twin);
    }
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    setenv("MPIX_SPARSE_SCHEME", "recursive_doubling", 1); /* a scheme that is not forced has trials first */
    for (int i = 0; i < MANY; i++)
        indices[i] = (uint32_t)i * 17;
    for (int i = 0; i < MANY * ROW; i++)
        values[i] = 1;
    ask_once();
    change_rows();
    MPIX_Sparse_result_free(&result);
    return check_end("call_cache");
}
