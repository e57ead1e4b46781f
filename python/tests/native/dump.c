/*
 * Reads boxes of arrays through little room, and writes what it was given as it is. Each line of the standard input is a request, its
 * words separated by tabs:
 *
 *     store, path, version, order, ROOM, whole | ints | texts, N, N ends, then for each column its name, its width and whether it may be null
 *
 * ROOM are the bytes of all buffers together; a width of 0 is that of values that vary in length. For each portion come the number of
 * cells and, for each column, how many bytes were filled, the values, the offsets and the validity; a portion of 0 cells ends a request.
 */

#include <gridstone.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS 256
#define COLUMNS 64

static char line[1 << 16];

#define CHECK(call)                                                                                   \
    do {                                                                                              \
        if ((call) != GRIDSTONE_OK) {                                                                 \
            fprintf(stderr, "%s: %s\n", gridstone_status_name(gridstone_last_status()), gridstone_last_error()); \
            exit(gridstone_last_status());                                                            \
        }                                                                                             \
    } while (0)

static void put(const void *bytes, size_t count) {
    if (count > 0 && fwrite(bytes, 1, count, stdout) != count) exit(99);
}

static size_t split(char *text, char **words) {
    size_t count = 0;
    text[strcspn(text, "\n")] = '\0';
    for (;;) {
        if (count == WORDS) exit(98);
        words[count++] = text;
        text = strchr(text, '\t');
        if (text == NULL) return count;
        *text++ = '\0';
    }
}

static gridstone_region region_of(const char *kind, char **ends, size_t count) {
    gridstone_region region = 0;
    if (strcmp(kind, "whole") == 0) return region;
    CHECK(gridstone_region_create(&region));
    if (strcmp(kind, "ints") == 0) {
        int64_t numbers[WORDS];
        for (size_t i = 0; i < count; i++) numbers[i] = strtoll(ends[i], NULL, 10);
        CHECK(gridstone_region_add(region, numbers, count));
        return region;
    }
    const char *texts[WORDS];
    for (size_t i = 0; i < count; i++) texts[i] = strcmp(ends[i], "-") == 0 ? NULL : ends[i];
    CHECK(gridstone_region_add_texts(region, texts, count));
    return region;
}

/* Shares the room out among the columns, with so much slack that none holds a round number of cells. */
static void allot(gridstone_buffer *room, size_t columns, size_t bytes) {
    const size_t share = bytes / columns;
    for (size_t i = 0; i < columns; i++) {
        const size_t parts = 1 + (room[i].offsets != NULL) + (room[i].validity != NULL), part = share / parts / 8 * 8 + 8;
        room[i].values = malloc(room[i].values_bytes = part);
        if (room[i].offsets != NULL) room[i].offsets = malloc(sizeof(uint64_t) * (room[i].offset_count = part / 8 + 1));
        if (room[i].validity != NULL) room[i].validity = malloc(room[i].validity_count = part);
        if (room[i].values == NULL) exit(97);
    }
}

static void portions(gridstone_read read, gridstone_buffer *room, size_t columns) {
    uint64_t cells = 0;
    int32_t complete = 0;
    do {
        CHECK(gridstone_read_next(read, room, columns, NULL, &cells, &complete));
        put(&cells, sizeof cells);
        for (size_t i = 0; cells > 0 && i < columns; i++) {
            const uint64_t filled = room[i].filled_bytes;
            put(&filled, sizeof filled);
            put(room[i].values, (size_t)filled);
            if (room[i].offsets != NULL) put(room[i].offsets, sizeof(uint64_t) * (size_t)(cells + 1));
            if (room[i].validity != NULL) put(room[i].validity, (size_t)cells);
        }
    } while (cells > 0);
    if (!complete) exit(96);
}

static void answer(gridstone_context context, char **words, size_t count) {
    if (count < 7) exit(95);
    gridstone_open_options how = {.size = sizeof how, .path = words[1], .version = strtoull(words[2], NULL, 10)};
    const size_t ends = strtoull(words[6], NULL, 10), columns = (count - 7 - ends) / 3;
    char **column = words + 7 + ends;
    gridstone_buffer room[COLUMNS];
    if (columns == 0 || columns > COLUMNS) exit(94);
    memset(room, 0, sizeof room);
    for (size_t i = 0; i < columns; i++, column += 3) {
        /* Not null, so that `allot` knows; given there. */
        room[i] = (gridstone_buffer){.size = sizeof room[i], .name = column[0]};
        if (strcmp(column[1], "0") == 0) room[i].offsets = (uint64_t *)room;
        if (strcmp(column[2], "1") == 0) room[i].validity = (uint8_t *)room;
    }
    allot(room, columns, strtoull(words[4], NULL, 10));

    gridstone_array array;
    gridstone_read read;
    CHECK(gridstone_array_open(context, words[0], &how, &array));
    gridstone_read_options what = {.size = sizeof what, .region = region_of(words[5], words + 7, ends),
                                   .order = (uint32_t)strtoul(words[3], NULL, 10), .batch_bytes = 1 << 20};
    CHECK(gridstone_read_create(array, &what, NULL, &read));
    portions(read, room, columns);
    CHECK(gridstone_free(read));
    CHECK(gridstone_free(what.region));
    CHECK(gridstone_free(array));
    for (size_t i = 0; i < columns; i++) {
        free(room[i].values);
        free(room[i].offsets);
        free(room[i].validity);
    }
}

int main(void) {
    gridstone_context context;
    char *words[WORDS];
    CHECK(gridstone_context_create(NULL, &context));
    while (fgets(line, sizeof line, stdin) != NULL) answer(context, words, split(line, words));
    CHECK(gridstone_free(context));
    return gridstone_open_handles() == 0 ? EXIT_SUCCESS : 93;
}
