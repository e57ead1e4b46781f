/*
 * Matrices of R as arrays: what `.Call` needs. Matrices lie in the order of columns, which the library takes and gives as it is.
 *
 *     PKG_CFLAGS=$(pkg-config --cflags gridstone) PKG_LIBS=$(pkg-config --libs gridstone) R CMD SHLIB gridstone.c
 */

#include <gridstone.h>
#include <limits.h>
#include <R.h>
#include <Rinternals.h>
#include <R_ext/Rdynload.h>

static gridstone_context context;

/* An error of R with the library's message, which is copied first: giving back what was opened clears it. */
static void check(gridstone_status status, gridstone_handle first, gridstone_handle second) {
    if (status == GRIDSTONE_OK) return;
    char message[1000];
    snprintf(message, sizeof message, "%s", gridstone_last_error());
    gridstone_free(first);
    gridstone_free(second);
    Rf_error("%s", message);
}

static const char *text(SEXP value) { return CHAR(Rf_asChar(value)); }

/* Stores a matrix of numbers as a new array. */
static SEXP write_matrix(SEXP uri, SEXP matrix) {
    if (!Rf_isReal(matrix) || !Rf_isMatrix(matrix)) Rf_error("a matrix of numbers is needed");
    gridstone_attribute attribute = {.size = sizeof attribute, .name = "value", .type = "float64"};
    gridstone_column column = {.size = sizeof column, .name = "value", .values = REAL(matrix),
                               .values_bytes = (size_t)XLENGTH(matrix) * sizeof(double)};
    gridstone_schema schema = 0;
    gridstone_array array = 0;
    check(gridstone_schema_create(NULL, &schema), 0, 0);
    check(gridstone_schema_add_axis(schema, "row", "int64", 0, Rf_nrows(matrix) - 1, 0), schema, 0);
    check(gridstone_schema_add_axis(schema, "column", "int64", 0, Rf_ncols(matrix) - 1, 0), schema, 0);
    check(gridstone_schema_add_attribute(schema, &attribute), schema, 0);
    check(gridstone_array_create(context, text(uri), NULL, schema, 0, &array), schema, 0);
    gridstone_free(schema);
    uint64_t version;
    check(gridstone_array_write(array, 0, GRIDSTONE_ORDER_COLUMN, &column, 1, NULL, &version), array, 0);
    gridstone_free(array);
    return Rf_ScalarReal((double)version);
}

/* A box of an array as a matrix: first and last row, first and last column, counted from 1. */
static SEXP read_matrix(SEXP uri, SEXP box) {
    if (!Rf_isReal(box) || XLENGTH(box) != 4) Rf_error("a box is first and last row, first and last column");
    int64_t ends[4];
    for (int i = 0; i < 4; i++) {
        const double end = REAL(box)[i];
        /* NA and NaN are not at least 1. Numbers up to 2^53 are exact. */
        if (!(end >= 1 && end <= 9007199254740992.0)) Rf_error("rows and columns of a box are numbers from 1 on");
        ends[i] = (int64_t)end - 1;
    }
    if (ends[1] < ends[0] || ends[3] < ends[2]) Rf_error("the box ends before it begins");
    if (ends[1] - ends[0] >= INT_MAX || ends[3] - ends[2] >= INT_MAX) Rf_error("the box has more rows or columns than a matrix of R");
    SEXP found = PROTECT(Rf_allocMatrix(REALSXP, (int)(ends[1] - ends[0] + 1), (int)(ends[3] - ends[2] + 1)));
    gridstone_buffer buffer = {.size = sizeof buffer, .name = "value", .type = "float64", .values = REAL(found),
                               .values_bytes = (size_t)XLENGTH(found) * sizeof(double)};
    gridstone_array array = 0;
    gridstone_region region = 0;
    check(gridstone_array_open(context, text(uri), NULL, &array), 0, 0);
    check(gridstone_region_create(&region), array, 0);
    gridstone_status status = gridstone_region_add(region, ends, 4);
    if (status == GRIDSTONE_OK) status = gridstone_array_read(array, region, GRIDSTONE_ORDER_COLUMN, &buffer, 1, NULL);
    check(status, region, array);
    gridstone_free(region);
    gridstone_free(array);
    UNPROTECT(1);
    return found;
}

static const R_CallMethodDef calls[] = {
    {"write_matrix", (DL_FUNC)&write_matrix, 2}, {"read_matrix", (DL_FUNC)&read_matrix, 2}, {NULL, NULL, 0}};

void R_init_gridstone(DllInfo *library) {
    check(gridstone_context_create(NULL, &context), 0, 0);
    R_registerRoutines(library, NULL, calls, NULL, NULL);
    R_useDynamicSymbols(library, FALSE);
}
