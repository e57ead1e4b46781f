/*
 * A heat equation with checkpoints: each is a version of one array, with the step that it was taken at. A run that was stopped goes on
 * from the newest checkpoint, and ends with the same bits as one that was not.
 *
 *     cc stencil.c $(pkg-config --cflags --libs gridstone) -lm -o stencil
 *     ./stencil heat.gs 100 70       stops after step 70, as a machine that fails
 *     ./stencil heat.gs 100          goes on from step 60, to the end
 */

#include "example.h"
#include <inttypes.h>
#include <string.h>

#define SIDE 128
#define EVERY 20

static double heat[SIDE][SIDE], next[SIDE][SIDE];

static gridstone_array create(gridstone_context context, const char *uri) {
    gridstone_schema schema;
    gridstone_array array;
    gridstone_attribute attributes[] = {
        {.size = sizeof attributes[0], .name = "heat", .type = "float64"},
        {.size = sizeof attributes[0], .name = "step", .type = "int64"},
    };
    CHECK(gridstone_schema_create(NULL, &schema));
    CHECK(gridstone_schema_add_axis(schema, "y", "int64", 0, SIDE - 1, 64));
    CHECK(gridstone_schema_add_axis(schema, "x", "int64", 0, SIDE - 1, 64));
    for (int i = 0; i < 2; i++) CHECK(gridstone_schema_add_attribute(schema, &attributes[i]));
    CHECK(gridstone_array_create(context, uri, NULL, schema, 0, &array));
    CHECK(gridstone_free(schema));
    return array;
}

/* The plate at the beginning: cold, with a hot spot. */
static void begin(void) {
    memset(heat, 0, sizeof heat);
    for (int y = 40; y < 60; y++) {
        for (int x = 50; x < 90; x++) heat[y][x] = 100.0;
    }
}

static void advance(void) {
    memcpy(next, heat, sizeof heat);
    for (int y = 1; y < SIDE - 1; y++) {
        for (int x = 1; x < SIDE - 1; x++) {
            next[y][x] = heat[y][x] + 0.2 * (heat[y - 1][x] + heat[y + 1][x] + heat[y][x - 1] + heat[y][x + 1] - 4 * heat[y][x]);
        }
    }
    memcpy(heat, next, sizeof heat);
}

/* The plate and its step become one version: a reader sees both or neither. */
static void checkpoint(gridstone_array array, int64_t step) {
    static int64_t steps[SIDE][SIDE];
    char message[40];
    for (int i = 0; i < SIDE * SIDE; i++) steps[i / SIDE][i % SIDE] = step;
    snprintf(message, sizeof message, "step %" PRId64, step);
    gridstone_column columns[] = {
        {.size = sizeof columns[0], .name = "heat", .type = "float64", .values = heat, .values_bytes = sizeof heat},
        {.size = sizeof columns[0], .name = "step", .type = "int64", .values = steps, .values_bytes = sizeof steps},
    };
    gridstone_call call = {.size = sizeof call, .message = message};
    CHECK(gridstone_array_write(array, 0, GRIDSTONE_ORDER_ROW, columns, 2, &call, NULL));
}

/* Takes the newest checkpoint, and gives its step. */
static int64_t restart(gridstone_array array) {
    static int64_t steps[SIDE][SIDE];
    gridstone_buffer room[] = {
        {.size = sizeof room[0], .name = "heat", .type = "float64", .values = heat, .values_bytes = sizeof heat},
        {.size = sizeof room[0], .name = "step", .type = "int64", .values = steps, .values_bytes = sizeof steps},
    };
    CHECK(gridstone_array_read(array, 0, GRIDSTONE_ORDER_ROW, room, 2, NULL));
    return steps[0][0];
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "stencil STORE STEPS [STOP]\n");
        return EXIT_FAILURE;
    }
    const int64_t last = atoll(argv[2]), stop = argc > 3 ? atoll(argv[3]) : -1;
    gridstone_context context;
    gridstone_array array;
    uint64_t version;
    int64_t step = 0;
    int32_t exists;
    CHECK(gridstone_context_create(NULL, &context));
    CHECK(gridstone_store_exists(context, argv[1], &exists));
    if (exists) {
        gridstone_open_options options = {.size = sizeof options, .mode = GRIDSTONE_OPEN_WRITE};
        CHECK(gridstone_array_open(context, argv[1], &options, &array));
    } else {
        array = create(context, argv[1]);
    }
    /* The first version is the empty array: a run that was stopped behind it has no checkpoint to go on from. */
    CHECK(gridstone_array_version(array, &version));
    if (version > 1) {
        step = restart(array);
    } else {
        begin();
        checkpoint(array, 0);
    }
    printf("from step %" PRId64 "\n", step);
    while (step < last) {
        advance();
        step++;
        if (step == stop) abort();
        if (step % EVERY == 0 || step == last) checkpoint(array, step);
    }
    printf("at step %" PRId64 "\n", step);
    CHECK(gridstone_free(array));
    CHECK(gridstone_free(context));
    return EXIT_SUCCESS;
}
