/*
 * What a context is given, and what is asked of an array of floats: `context STORE LOG TOO_LONG [NAME VALUE]…`. Events go to the
 * file LOG; TOO_LONG is the URI of a store that the system refuses to make; the rest are options of the storage.
 */

#include "../../../examples/c/example.h"
#include <errno.h>
#include <inttypes.h>

/* One call of stdio for each event: they may come from several threads at once. */
static void note(void *user, int32_t level, const char *topic, const char *what, const char *details) {
    fprintf(user, "%" PRId32 "\t%s\t%s\t%s\n", level, topic, what, details);
}

/* An array of cells at points of floats, whose domains are described as texts. */
static gridstone_array create(gridstone_context context, const char *uri) {
    gridstone_schema schema;
    gridstone_array array;
    gridstone_schema_options sparse = {.size = sizeof sparse, .sparse = 1};
    gridstone_dimension dimensions[] = {
        {.size = sizeof dimensions[0], .name = "x", .type = "float64", .low = "-10", .high = "10.5", .tile = "2.5"},
        {.size = sizeof dimensions[0], .name = "y", .type = "float32", .low = "-1e3", .high = "1e3"},
    };
    gridstone_attribute attribute = {.size = sizeof attribute, .name = "v", .type = "int32"};
    CHECK(gridstone_schema_create(&sparse, &schema));
    for (int i = 0; i < 2; i++) CHECK(gridstone_schema_add_dimension(schema, &dimensions[i]));
    CHECK(gridstone_schema_add_attribute(schema, &attribute));
    CHECK(gridstone_array_create(context, uri, NULL, schema, 0, &array));
    CHECK(gridstone_free(schema));
    return array;
}

/* An end that is no number is refused, and nothing is made. */
static void refuse(gridstone_context context, const char *uri) {
    gridstone_schema schema;
    gridstone_array array;
    int32_t exists;
    gridstone_dimension wrong = {.size = sizeof wrong, .name = "z", .type = "float64", .low = "high", .high = "1", .tile = "1"};
    gridstone_attribute attribute = {.size = sizeof attribute, .name = "v", .type = "int32"};
    gridstone_schema_options sparse = {.size = sizeof sparse, .sparse = 1};
    CHECK(gridstone_schema_create(&sparse, &schema));
    if (gridstone_schema_add_dimension(schema, &wrong) == GRIDSTONE_OK) {
        CHECK(gridstone_schema_add_attribute(schema, &attribute));
        REQUIRE(gridstone_array_create(context, uri, NULL, schema, 0, &array) != GRIDSTONE_OK);
    }
    CHECK(gridstone_free(schema));
    CHECK(gridstone_store_exists(context, uri, &exists));
    REQUIRE(!exists);
}

static void write_cell(gridstone_array array, double x, float y, int32_t v) {
    gridstone_column columns[] = {
        {.size = sizeof columns[0], .name = "x", .type = "float64", .values = &x, .values_bytes = sizeof x},
        {.size = sizeof columns[0], .name = "y", .type = "float32", .values = &y, .values_bytes = sizeof y},
        {.size = sizeof columns[0], .name = "v", .type = "int32", .values = &v, .values_bytes = sizeof v},
    };
    CHECK(gridstone_array_write_cells(array, columns, 3, NULL, NULL, NULL));
}

static uint64_t count_between(gridstone_array array, double low, double high) {
    gridstone_region region;
    uint64_t cells;
    const double ends[] = {low, high, 0.1f, 1e3};
    CHECK(gridstone_region_create(&region));
    CHECK(gridstone_region_add_floats(region, ends, 4));
    CHECK(gridstone_array_count(array, region, NULL, NULL, &cells));
    CHECK(gridstone_free(region));
    return cells;
}

int main(int argc, char **argv) {
    REQUIRE(argc >= 4);
    gridstone_context context;
    gridstone_array array, then;
    int64_t times[4];
    FILE *log = fopen(argv[2], "w");
    REQUIRE(log != NULL);
    gridstone_context_options options = {
        .size = sizeof options, .log = note, .log_user = log, .log_level = GRIDSTONE_LOG_DEBUG,
        .storage_options = (const char *const *)&argv[4], .storage_option_count = (size_t)argc - 4};
    CHECK(gridstone_context_create(&options, &context));

    refuse(context, argv[1]);
    array = create(context, argv[1]);
    for (int i = 0; i < 3; i++) {
        write_cell(array, i / 3.0, (float)i + 0.1f, i);
        CHECK(gridstone_array_time_us(array, &times[i]));
    }
    printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", count_between(array, -10, 10.5), count_between(array, 1 / 3.0, 2 / 3.0),
           count_between(array, 0.34, 0.66));

    for (int i = 0; i < 3; i++) {
        uint64_t version, before;
        gridstone_open_options at = {.size = sizeof at, .by_time = 1, .time_us = times[i]};
        CHECK(gridstone_array_open(context, argv[1], &at, &then));
        CHECK(gridstone_array_version(then, &version));
        CHECK(gridstone_free(then));
        at.time_us--;
        CHECK(gridstone_array_at(array, &at, &then));
        CHECK(gridstone_array_version(then, &before));
        CHECK(gridstone_free(then));
        printf("%" PRIu64 " %" PRIu64 "\n", version, before);
    }
    gridstone_open_options early = {.size = sizeof early, .by_time = 1, .time_us = 0};
    REQUIRE(gridstone_array_open(context, argv[1], &early, &then) == GRIDSTONE_ERROR_NOT_FOUND);
    REQUIRE(gridstone_last_errno() == 0);

    /* The number of the system stands behind an error until the next call. */
    gridstone_group group;
    const gridstone_status status = gridstone_group_create(context, argv[3], NULL, &group);
    REQUIRE(status != GRIDSTONE_OK && status == gridstone_last_status());
    printf("%d %" PRId32 "\n", gridstone_last_errno() == ENAMETOOLONG, gridstone_last_errno());
    CHECK(gridstone_array_refresh(array, NULL));
    REQUIRE(gridstone_last_errno() == 0 && gridstone_last_status() == GRIDSTONE_OK);

    CHECK(gridstone_free(array));
    CHECK(gridstone_free(context));
    REQUIRE(fclose(log) == 0);
    return EXIT_SUCCESS;
}
