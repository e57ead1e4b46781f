/*
 * Four child processes each stage a part of an array and send a receipt through a pipe. The parent commits all receipts at once: a child
 * that dies leaves nothing that anyone sees. The children use the handles of the parent.
 *
 *     cc fork.c $(pkg-config --cflags --libs gridstone) -o fork && ./fork fork.gs
 */

#define _POSIX_C_SOURCE 200809L

#include <sys/wait.h>
#include <unistd.h>

/* exit() runs what the parent registered and writes what it has not written yet: a child ends without it. */
static int is_child;
#define GIVE_UP (is_child ? _exit(EXIT_FAILURE) : exit(EXIT_FAILURE))

#include "example.h"
#include <string.h>

#define CHILDREN 4
#define PART 25000
#define CELLS (CHILDREN * PART)

static gridstone_array create(gridstone_context context, const char *uri) {
    gridstone_schema schema;
    gridstone_array array;
    gridstone_attribute attribute = {.size = sizeof attribute, .name = "v", .type = "int64"};
    CHECK(gridstone_schema_create(NULL, &schema));
    CHECK(gridstone_schema_add_axis(schema, "i", "int64", 0, CELLS - 1, 10000));
    CHECK(gridstone_schema_add_attribute(schema, &attribute));
    CHECK(gridstone_array_create(context, uri, NULL, schema, 0, &array));
    CHECK(gridstone_free(schema));
    return array;
}

static void write_all(int pipe_end, const char *bytes, size_t count) {
    while (count > 0) {
        const ssize_t written = write(pipe_end, bytes, count);
        REQUIRE(written > 0);
        bytes += written;
        count -= (size_t)written;
    }
}

/* The child's work: its part of the array, and the receipt for it. */
static void child(gridstone_array array, int number, int pipe_end) {
    static int64_t values[PART];
    const int64_t ends[] = {(int64_t)number * PART, (int64_t)(number + 1) * PART - 1};
    gridstone_region region;
    gridstone_staged staged;
    gridstone_text receipt;
    const char *text;
    size_t length;
    for (int64_t i = 0; i < PART; i++) values[i] = (ends[0] + i) * 3;
    gridstone_column column = {
        .size = sizeof column, .name = "v", .type = "int64", .values = values, .values_bytes = sizeof values};
    CHECK(gridstone_region_create(&region));
    CHECK(gridstone_region_add(region, ends, 2));
    CHECK(gridstone_stage(array, region, GRIDSTONE_ORDER_ROW, &column, 1, NULL, &staged));
    CHECK(gridstone_receipt(array, &staged, 1, &receipt));
    CHECK(gridstone_text_get(receipt, &text, &length));
    write_all(pipe_end, text, length);
}

/* What a child sends, with a zero behind it. */
static char *receive(int pipe_end) {
    size_t room = 4096, length = 0;
    char *text = malloc(room);
    for (;;) {
        REQUIRE(text != NULL);
        const ssize_t count = read(pipe_end, text + length, room - length - 1);
        REQUIRE(count >= 0);
        if (count == 0) break;
        length += (size_t)count;
        if (room - length < 2) text = realloc(text, room *= 2);
    }
    text[length] = '\0';
    return text;
}

int main(int argc, char **argv) {
    const char *uri = argc > 1 ? argv[1] : "fork.gs";
    static int64_t found[CELLS];
    gridstone_context context;
    int pipe_ends[CHILDREN][2];
    pid_t children[CHILDREN];
    char *receipts[CHILDREN];
    uint64_t before, version;
    CHECK(gridstone_context_create(NULL, &context));
    gridstone_array array = create(context, uri);
    CHECK(gridstone_array_version(array, &before));

    for (int number = 0; number < CHILDREN; number++) {
        REQUIRE(pipe(pipe_ends[number]) == 0);
        children[number] = fork();
        REQUIRE(children[number] >= 0);
        if (children[number] == 0) {
            is_child = 1;
            close(pipe_ends[number][0]);
            child(array, number, pipe_ends[number][1]);
            _exit(EXIT_SUCCESS);
        }
        close(pipe_ends[number][1]);
    }
    for (int number = 0; number < CHILDREN; number++) {
        int status;
        receipts[number] = receive(pipe_ends[number][0]);
        close(pipe_ends[number][0]);
        REQUIRE(waitpid(children[number], &status, 0) == children[number]);
        REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS);
    }

    gridstone_call call = {.size = sizeof call, .message = "four parts"};
    CHECK(gridstone_commit_receipts(context, uri, (const char *const *)receipts, CHILDREN, &call, &version));
    REQUIRE(version == before + 1);
    for (int number = 0; number < CHILDREN; number++) free(receipts[number]);

    gridstone_buffer buffer = {
        .size = sizeof buffer, .name = "v", .type = "int64", .values = found, .values_bytes = sizeof found};
    CHECK(gridstone_array_refresh(array, NULL));
    CHECK(gridstone_array_read(array, 0, GRIDSTONE_ORDER_ROW, &buffer, 1, NULL));
    for (int64_t i = 0; i < CELLS; i++) REQUIRE(found[i] == i * 3);
    printf("%d processes, 1 commit\n", CHILDREN);
    CHECK(gridstone_free(array));
    CHECK(gridstone_free(context));
    return EXIT_SUCCESS;
}
