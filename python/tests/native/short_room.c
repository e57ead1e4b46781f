/* The library is told of twice the room that there is, and fills it: what tools that look at memory are to find. */

#include <gridstone.h>
#include <stdlib.h>

int main(void) {
    gridstone_context context;
    gridstone_schema schema;
    gridstone_array array;
    gridstone_attribute v = {.size = sizeof v, .name = "v", .type = "int64"};
    void *room = malloc(400);
    gridstone_buffer buffer = {.size = sizeof buffer, .name = "v", .values = room, .values_bytes = 800};
    if (gridstone_context_create(NULL, &context) || gridstone_schema_create(NULL, &schema)) return 1;
    if (gridstone_schema_add_axis(schema, "i", "int64", 0, 99, 0) || gridstone_schema_add_attribute(schema, &v)) return 2;
    if (gridstone_array_create(context, "mem://short", NULL, schema, 0, &array)) return 3;
    return gridstone_array_read(array, 0, GRIDSTONE_ORDER_ROW, &buffer, 1, NULL) ? 4 : 0;
}
