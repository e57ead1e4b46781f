/*
 * A table of points that another program has written, as `make demo` does: how many there are, and where, read through buffers of 64 KiB.
 *
 *     cc ships.c $(pkg-config --cflags --libs gridstone) -o ships && ./ships ais.gs LON LAT
 */

#include "example.h"

#define PORTION 4096

typedef struct {
    double low, high;
} span;

static void take_in(span *all, const double *values, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        if (values[i] < all->low) all->low = values[i];
        if (values[i] > all->high) all->high = values[i];
    }
}

/* Reads all positions, in the order that is quickest, and gives how many they are. */
static uint64_t read_positions(gridstone_array array, const char *const names[2], span found[2]) {
    static double values[2][PORTION];
    gridstone_buffer buffers[2];
    gridstone_read_options options = {.size = sizeof options, .order = GRIDSTONE_ORDER_ANY};
    gridstone_read read;
    uint64_t cells, all = 0;
    int32_t complete = 0;
    for (int i = 0; i < 2; i++) {
        buffers[i] = (gridstone_buffer){.size = sizeof buffers[i], .name = names[i], .type = "float64", .values = values[i],
                                        .values_bytes = sizeof values[i]};
    }
    CHECK(gridstone_read_create(array, &options, NULL, &read));
    while (!complete) {
        CHECK(gridstone_read_next(read, buffers, 2, NULL, &cells, &complete));
        for (int i = 0; i < 2; i++) take_in(&found[i], values[i], cells);
        all += cells;
    }
    CHECK(gridstone_free(read));
    return all;
}

int main(int argc, char **argv) {
    gridstone_context context;
    gridstone_array array;
    uint64_t version, counted;
    span found[2] = {{1e300, -1e300}, {1e300, -1e300}};
    if (argc != 4) {
        fprintf(stderr, "name the store and its two dimensions: %s ais.gs LON LAT\n", argv[0]);
        return EXIT_FAILURE;
    }
    const char *const names[2] = {argv[2], argv[3]};
    CHECK(gridstone_context_create(NULL, &context));
    CHECK(gridstone_array_open(context, argv[1], NULL, &array));
    CHECK(gridstone_array_version(array, &version));
    CHECK(gridstone_array_count(array, 0, NULL, NULL, &counted));
    const uint64_t read = read_positions(array, names, found);
    REQUIRE(read == counted);
    printf("C: %llu positions of version %llu through buffers of %zu KiB, %s %.2f to %.2f, %s %.2f to %.2f\n",
           (unsigned long long)read, (unsigned long long)version, 2 * PORTION * sizeof(double) / 1024, names[0], found[0].low,
           found[0].high, names[1], found[1].low, found[1].high);
    CHECK(gridstone_free(array));
    CHECK(gridstone_free(context));
    return EXIT_SUCCESS;
}
