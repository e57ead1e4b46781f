/*
 * The life of an array: a dense one is made, written, updated by single cells, merged, and read; a sparse one is written and read
 * through buffers that are smaller than the answer.
 *
 *     cc flow.c $(pkg-config --cflags --libs gridstone) -o flow && ./flow flow.gs
 */

#include "example.h"

#define ROWS 1000
#define COLUMNS 800
#define CELLS 100000
#define PORTION 4096

static float dense[ROWS * COLUMNS];

/* An image of 1000 x 800 in tiles of 100 x 100. */
static gridstone_array create_image(gridstone_context context, const char *uri) {
    gridstone_schema schema;
    gridstone_array array;
    gridstone_attribute light = {.size = sizeof light, .name = "light", .type = "float32", .fill = "-1"};
    CHECK(gridstone_schema_create(NULL, &schema));
    CHECK(gridstone_schema_add_axis(schema, "row", "int64", 0, ROWS - 1, 100));
    CHECK(gridstone_schema_add_axis(schema, "column", "int64", 0, COLUMNS - 1, 100));
    CHECK(gridstone_schema_add_attribute(schema, &light));
    CHECK(gridstone_array_create(context, uri, "/image", schema, 0, &array));
    CHECK(gridstone_free(schema));
    return array;
}

/* Writes the whole image, then three cells of it at their places. */
static void write_image(gridstone_array array) {
    for (int i = 0; i < ROWS * COLUMNS; i++) dense[i] = (float)(i % 977);
    gridstone_column whole = {
        .size = sizeof whole, .name = "light", .type = "float32", .values = dense, .values_bytes = sizeof dense};
    gridstone_call call = {.size = sizeof call, .message = "first light"};
    CHECK(gridstone_array_write(array, 0, GRIDSTONE_ORDER_ROW, &whole, 1, &call, NULL));

    const int64_t rows[] = {3, 500, 999}, columns[] = {7, 400, 799};
    const float values[] = {-3.0f, -500.0f, -999.0f};
    gridstone_column cells[] = {
        {.size = sizeof cells[0], .name = "row", .type = "int64", .values = rows, .values_bytes = sizeof rows},
        {.size = sizeof cells[0], .name = "column", .type = "int64", .values = columns, .values_bytes = sizeof columns},
        {.size = sizeof cells[0], .name = "light", .type = "float32", .values = values, .values_bytes = sizeof values},
    };
    call.message = "three cells corrected";
    CHECK(gridstone_array_write_cells(array, cells, 3, NULL, &call, NULL));
    for (int i = 0; i < 3; i++) dense[rows[i] * COLUMNS + columns[i]] = values[i];
}

/* Reads a box that holds the corrected cell in the middle. */
static void read_box(gridstone_array array) {
    static float found[200 * 300];
    const int64_t ends[] = {400, 599, 300, 599};
    gridstone_region box;
    gridstone_buffer buffer = {
        .size = sizeof buffer, .name = "light", .type = "float32", .values = found, .values_bytes = sizeof found};
    CHECK(gridstone_region_create(&box));
    CHECK(gridstone_region_add(box, ends, 4));
    CHECK(gridstone_array_read(array, box, GRIDSTONE_ORDER_ROW, &buffer, 1, NULL));
    CHECK(gridstone_free(box));
    REQUIRE(buffer.filled_bytes == sizeof found);
    for (int row = 0; row < 200; row++) {
        for (int column = 0; column < 300; column++) {
            REQUIRE(found[row * 300 + column] == dense[(400 + row) * COLUMNS + 300 + column]);
        }
    }
}

/* Cells of a plane, in any order, each with a number and a text. */
static gridstone_array write_points(gridstone_context context, const char *uri) {
    static int64_t x[CELLS], y[CELLS];
    static double weight[CELLS];
    static char names[CELLS * 8];
    static uint64_t offsets[CELLS + 1];
    for (uint64_t i = 0; i < CELLS; i++) {
        const uint64_t place = i * 7919 % CELLS;
        x[i] = (int64_t)(place % 1000);
        y[i] = (int64_t)(place / 1000) * 10000;
        weight[i] = (double)place / 2;
        const int length = snprintf(names + offsets[i], 8, "n%u", (unsigned)place);
        offsets[i + 1] = offsets[i] + (uint64_t)length;
    }

    gridstone_schema schema;
    gridstone_array array;
    gridstone_schema_options options = {.size = sizeof options, .sparse = 1};
    gridstone_attribute numbers = {.size = sizeof numbers, .name = "weight", .type = "float64"};
    gridstone_attribute texts = {.size = sizeof texts, .name = "name", .type = "string"};
    CHECK(gridstone_schema_create(&options, &schema));
    CHECK(gridstone_schema_add_axis(schema, "x", "int64", 0, 999999, 0));
    CHECK(gridstone_schema_add_axis(schema, "y", "int64", 0, 999999, 0));
    CHECK(gridstone_schema_add_attribute(schema, &numbers));
    CHECK(gridstone_schema_add_attribute(schema, &texts));
    CHECK(gridstone_array_create(context, uri, "/points", schema, 0, &array));
    CHECK(gridstone_free(schema));

    gridstone_column cells[] = {
        {.size = sizeof cells[0], .name = "x", .type = "int64", .values = x, .values_bytes = sizeof x},
        {.size = sizeof cells[0], .name = "y", .type = "int64", .values = y, .values_bytes = sizeof y},
        {.size = sizeof cells[0], .name = "weight", .type = "float64", .values = weight, .values_bytes = sizeof weight},
        {.size = sizeof cells[0], .name = "name", .values = names, .values_bytes = (size_t)offsets[CELLS],
         .offsets = offsets, .offset_count = CELLS + 1},
    };
    gridstone_call call = {.size = sizeof call, .message = "points"};
    CHECK(gridstone_array_write_cells(array, cells, 4, NULL, &call, NULL));
    return array;
}

/* Reads all points through room for 4096 of them: each call goes on where the last one stopped. */
static void read_points(gridstone_array array) {
    static int64_t x[PORTION];
    static double weight[PORTION];
    static char names[PORTION * 8];
    static uint64_t offsets[PORTION + 1];
    gridstone_read_options options = {.size = sizeof options, .condition = "weight >= 100", .order = GRIDSTONE_ORDER_ANY};
    gridstone_buffer room[] = {
        {.size = sizeof room[0], .name = "x", .type = "int64", .values = x, .values_bytes = sizeof x},
        {.size = sizeof room[0], .name = "weight", .type = "float64", .values = weight, .values_bytes = sizeof weight},
        {.size = sizeof room[0], .name = "name", .values = names, .values_bytes = sizeof names, .offsets = offsets,
         .offset_count = PORTION + 1},
    };
    gridstone_read read;
    uint64_t cells = 0, found = 0, portions = 0;
    CHECK(gridstone_read_create(array, &options, NULL, &read));
    for (;;) {
        CHECK(gridstone_read_next(read, room, 3, NULL, &cells, NULL));
        if (cells == 0) break;
        for (uint64_t i = 0; i < cells; i++) {
            char expected[8];
            const uint64_t place = (uint64_t)(weight[i] * 2), length = offsets[i + 1] - offsets[i];
            REQUIRE(weight[i] >= 100 && x[i] == (int64_t)(place % 1000));
            REQUIRE((uint64_t)snprintf(expected, 8, "n%u", (unsigned)place) == length);
            for (uint64_t k = 0; k < length; k++) REQUIRE(names[offsets[i] + k] == expected[k]);
        }
        found += cells;
        portions++;
    }
    CHECK(gridstone_free(read));
    REQUIRE(found == CELLS - 200 && portions >= found / PORTION);
    printf("%llu points in %llu portions\n", (unsigned long long)found, (unsigned long long)portions);
}

int main(int argc, char **argv) {
    const char *uri = argc > 1 ? argv[1] : "flow.gs";
    gridstone_context context;
    uint64_t version;
    CHECK(gridstone_context_create(NULL, &context));

    gridstone_array image = create_image(context, uri);
    write_image(image);
    read_box(image);
    gridstone_array points = write_points(context, uri);
    read_points(points);

    CHECK(gridstone_array_refresh(image, NULL));
    gridstone_consolidate_options all = {.size = sizeof all, .strategy = "all"};
    gridstone_text report;
    CHECK(gridstone_array_consolidate(image, &all, NULL, &report));
    CHECK(gridstone_free(report));
    read_box(image);
    CHECK(gridstone_array_version(image, &version));
    printf("the image is at version %llu\n", (unsigned long long)version);

    CHECK(gridstone_free(points));
    CHECK(gridstone_free(image));
    CHECK(gridstone_free(context));
    REQUIRE(gridstone_open_handles() == 0);
    return EXIT_SUCCESS;
}
