/*
 * Eight threads stage disjoint tiles of one array, and one commit makes all of them seen; then eight threads read it.
 *
 *     cc -fopenmp threads.c $(pkg-config --cflags --libs gridstone) -o threads && ./threads threads.gs
 */

#include "example.h"
#include <omp.h>

#define THREADS 8
#define SIDE 512
#define TILE 128
#define TILES ((SIDE / TILE) * (SIDE / TILE))

static int32_t expected(int64_t row, int64_t column) { return (int32_t)(row * 1000 + column); }

static void box_of(int tile, int64_t ends[4]) {
    ends[0] = tile / (SIDE / TILE) * TILE;
    ends[1] = ends[0] + TILE - 1;
    ends[2] = tile % (SIDE / TILE) * TILE;
    ends[3] = ends[2] + TILE - 1;
}

static gridstone_region region_of(const int64_t ends[4]) {
    gridstone_region region;
    CHECK(gridstone_region_create(&region));
    CHECK(gridstone_region_add(region, ends, 4));
    return region;
}

static gridstone_staged stage(gridstone_array array, int tile) {
    static _Thread_local int32_t values[TILE * TILE];
    int64_t ends[4];
    gridstone_staged staged;
    box_of(tile, ends);
    for (int64_t i = 0; i < TILE * TILE; i++) values[i] = expected(ends[0] + i / TILE, ends[2] + i % TILE);
    gridstone_column column = {
        .size = sizeof column, .name = "v", .type = "int32", .values = values, .values_bytes = sizeof values};
    gridstone_region region = region_of(ends);
    CHECK(gridstone_stage(array, region, GRIDSTONE_ORDER_ROW, &column, 1, NULL, &staged));
    CHECK(gridstone_free(region));
    return staged;
}

static long wrong_cells(gridstone_array array, int tile) {
    static _Thread_local int32_t values[TILE * TILE];
    int64_t ends[4];
    long wrong = 0;
    box_of(tile, ends);
    gridstone_buffer buffer = {
        .size = sizeof buffer, .name = "v", .type = "int32", .values = values, .values_bytes = sizeof values};
    gridstone_region region = region_of(ends);
    CHECK(gridstone_array_read(array, region, GRIDSTONE_ORDER_ROW, &buffer, 1, NULL));
    CHECK(gridstone_free(region));
    for (int64_t i = 0; i < TILE * TILE; i++) wrong += values[i] != expected(ends[0] + i / TILE, ends[2] + i % TILE);
    return wrong;
}

int main(int argc, char **argv) {
    const char *uri = argc > 1 ? argv[1] : "threads.gs";
    gridstone_context context;
    gridstone_schema schema;
    gridstone_array array;
    gridstone_staged staged[TILES];
    gridstone_attribute attribute = {.size = sizeof attribute, .name = "v", .type = "int32"};
    uint64_t before, version;
    long wrong = 0;
    int threads = 0;

    CHECK(gridstone_context_create(NULL, &context));
    CHECK(gridstone_schema_create(NULL, &schema));
    CHECK(gridstone_schema_add_axis(schema, "row", "int64", 0, SIDE - 1, TILE));
    CHECK(gridstone_schema_add_axis(schema, "column", "int64", 0, SIDE - 1, TILE));
    CHECK(gridstone_schema_add_attribute(schema, &attribute));
    CHECK(gridstone_array_create(context, uri, NULL, schema, 0, &array));
    CHECK(gridstone_array_version(array, &before));

    omp_set_num_threads(THREADS);
#pragma omp parallel for schedule(dynamic)
    for (int tile = 0; tile < TILES; tile++) staged[tile] = stage(array, tile);

    gridstone_call call = {.size = sizeof call, .message = "all tiles"};
    CHECK(gridstone_commit(array, staged, TILES, &call, &version));
    REQUIRE(version == before + 1);
    for (int tile = 0; tile < TILES; tile++) CHECK(gridstone_free(staged[tile]));

#pragma omp parallel reduction(+ : wrong) reduction(max : threads)
    {
        threads = omp_get_num_threads();
#pragma omp for schedule(dynamic)
        for (int tile = 0; tile < TILES; tile++) wrong += wrong_cells(array, tile);
    }
    REQUIRE(wrong == 0 && threads == THREADS);
    printf("%d threads, %d tiles, 1 commit\n", threads, TILES);

    CHECK(gridstone_free(array));
    CHECK(gridstone_free(schema));
    CHECK(gridstone_free(context));
    REQUIRE(gridstone_open_handles() == 0);
    return EXIT_SUCCESS;
}
