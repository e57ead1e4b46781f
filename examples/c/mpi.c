/*
 * The ranks of an MPI program write boxes of one array. First each stages its own rows, and rank 0 commits the receipts of all in one
 * version; then boxes that overlap, where the highest rank's cells stay; then each rank commits by itself.
 *
 *     mpicc mpi.c $(pkg-config --cflags --libs gridstone) -o mpi && mpiexec -n 4 ./mpi mpi.gs
 */

#include <mpi.h>

/* A rank that fails ends the others too: they would wait for it. */
#define GIVE_UP MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE)

#include "example.h"
#include <string.h>

#define ROWS_OF_RANK 64
#define COLUMNS 256

static int rank, ranks;

/* One array for each of the three ways. */
static const char *const PATHS[] = {"/disjoint", "/overlapping", "/alone"};

static void create(gridstone_context context, const char *uri) {
    gridstone_attribute attribute = {.size = sizeof attribute, .name = "v", .type = "int32"};
    gridstone_schema schema;
    CHECK(gridstone_schema_create(NULL, &schema));
    CHECK(gridstone_schema_add_axis(schema, "row", "int64", 0, ranks * ROWS_OF_RANK - 1, ROWS_OF_RANK));
    CHECK(gridstone_schema_add_axis(schema, "column", "int64", 0, COLUMNS - 1, COLUMNS));
    CHECK(gridstone_schema_add_attribute(schema, &attribute));
    for (int i = 0; i < 3; i++) {
        gridstone_array array;
        CHECK(gridstone_array_create(context, uri, PATHS[i], schema, 0, &array));
        CHECK(gridstone_free(array));
    }
    CHECK(gridstone_free(schema));
}

static int32_t value_of(int writer, int64_t row, int64_t column) { return (int32_t)(writer * 1000000 + row * 1000 + column); }

/* Fills this rank's box of some rows, and tells the column of it. */
static gridstone_region fill(int64_t first, int64_t rows, int32_t *values, gridstone_column *column) {
    const int64_t ends[] = {first, first + rows - 1, 0, COLUMNS - 1};
    gridstone_region region;
    for (int64_t i = 0; i < rows * COLUMNS; i++) values[i] = value_of(rank, first + i / COLUMNS, i % COLUMNS);
    *column = (gridstone_column){.size = sizeof *column, .name = "v", .type = "int32", .values = values,
                                 .values_bytes = (size_t)(rows * COLUMNS) * sizeof *values};
    CHECK(gridstone_region_create(&region));
    CHECK(gridstone_region_add(region, ends, 4));
    return region;
}

/* Sends the receipts of all ranks to rank 0, which commits them in the order of the ranks. */
static void commit_together(gridstone_context context, const char *uri, gridstone_array array, gridstone_staged staged) {
    gridstone_text receipt;
    const char *text;
    size_t length;
    CHECK(gridstone_receipt(array, &staged, 1, &receipt));
    CHECK(gridstone_text_get(receipt, &text, &length));

    int bytes = (int)length + 1, *counts = NULL, *starts = NULL, total = 0;
    char *all = NULL;
    if (rank == 0) {
        counts = calloc((size_t)ranks, sizeof *counts);
        starts = calloc((size_t)ranks, sizeof *starts);
        REQUIRE(counts != NULL && starts != NULL);
    }
    MPI_Gather(&bytes, 1, MPI_INT, counts, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < ranks; i++) {
        starts[i] = total;
        total += counts[i];
    }
    if (rank == 0) REQUIRE((all = malloc((size_t)total)) != NULL);
    MPI_Gatherv(text, bytes, MPI_CHAR, all, counts, starts, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        const char **receipts = calloc((size_t)ranks, sizeof *receipts);
        REQUIRE(receipts != NULL);
        for (int i = 0; i < ranks; i++) receipts[i] = all + starts[i];
        gridstone_call call = {.size = sizeof call, .message = "all ranks"};
        uint64_t before, version;
        CHECK(gridstone_array_refresh(array, &before));
        CHECK(gridstone_commit_receipts(context, uri, receipts, (size_t)ranks, &call, &version));
        REQUIRE(version == before + 1);
        free(receipts);
    }
    free(all);
    free(starts);
    free(counts);
    CHECK(gridstone_free(receipt));
    CHECK(gridstone_free(staged));
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Every rank reads the whole array and compares; `reach` is how far a rank's box goes into the rows of the next one. */
static void compare(gridstone_array array, int64_t reach) {
    const int64_t rows = (int64_t)ranks * ROWS_OF_RANK;
    int32_t *found = malloc((size_t)(rows * COLUMNS) * sizeof *found);
    REQUIRE(found != NULL);
    gridstone_buffer buffer = {.size = sizeof buffer, .name = "v", .type = "int32", .values = found,
                               .values_bytes = (size_t)(rows * COLUMNS) * sizeof *found};
    CHECK(gridstone_array_refresh(array, NULL));
    CHECK(gridstone_array_read(array, 0, GRIDSTONE_ORDER_ROW, &buffer, 1, NULL));
    for (int64_t row = 0; row < rows; row++) {
        /* A box of rank r begins `reach` rows before its own ones, over those of the rank before. */
        int64_t writer = (row + reach) / ROWS_OF_RANK;
        if (writer >= ranks) writer = ranks - 1;
        for (int64_t column = 0; column < COLUMNS; column++) {
            REQUIRE(found[row * COLUMNS + column] == value_of((int)writer, row, column));
        }
    }
    free(found);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const char *uri = argc > 1 ? argv[1] : "mpi.gs";
    const int64_t first = (int64_t)rank * ROWS_OF_RANK, reach = rank == 0 ? 0 : 16;
    static int32_t values[(ROWS_OF_RANK + 16) * COLUMNS];
    gridstone_context context;
    gridstone_array arrays[3];
    gridstone_staged staged;
    gridstone_column column;
    gridstone_region region;
    CHECK(gridstone_context_create(NULL, &context));
    if (rank == 0) create(context, uri);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 3; i++) {
        gridstone_open_options options = {.size = sizeof options, .path = PATHS[i], .mode = GRIDSTONE_OPEN_WRITE};
        CHECK(gridstone_array_open(context, uri, &options, &arrays[i]));
    }

    region = fill(first, ROWS_OF_RANK, values, &column);
    CHECK(gridstone_stage(arrays[0], region, GRIDSTONE_ORDER_ROW, &column, 1, NULL, &staged));
    commit_together(context, uri, arrays[0], staged);
    compare(arrays[0], 0);

    CHECK(gridstone_array_write(arrays[2], region, GRIDSTONE_ORDER_ROW, &column, 1, NULL, NULL));
    CHECK(gridstone_free(region));
    MPI_Barrier(MPI_COMM_WORLD);
    compare(arrays[2], 0);

    region = fill(first - reach, ROWS_OF_RANK + reach, values, &column);
    CHECK(gridstone_stage(arrays[1], region, GRIDSTONE_ORDER_ROW, &column, 1, NULL, &staged));
    CHECK(gridstone_free(region));
    commit_together(context, uri, arrays[1], staged);
    compare(arrays[1], 16);

    for (int i = 0; i < 3; i++) CHECK(gridstone_free(arrays[i]));
    CHECK(gridstone_free(context));
    REQUIRE(gridstone_open_handles() == 0);
    if (rank == 0) printf("%d ranks, 2 commits together, %d alone\n", ranks, ranks);
    MPI_Finalize();
    return EXIT_SUCCESS;
}
