/* What the examples share: a call that fails ends the program with its message. */

#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <gridstone.h>
#include <stdio.h>
#include <stdlib.h>

/* Runs a call of the library; its result is a status. */
#define CHECK(call)                                                                                              \
    do {                                                                                                         \
        const gridstone_status status_ = (call);                                                                 \
        if (status_ != GRIDSTONE_OK) {                                                                           \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, gridstone_status_name(status_), gridstone_last_error()); \
            exit(EXIT_FAILURE);                                                                                  \
        }                                                                                                        \
    } while (0)

/* Ends the program unless something holds. */
#define REQUIRE(holds)                                                                 \
    do {                                                                               \
        if (!(holds)) {                                                                \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #holds);        \
            exit(EXIT_FAILURE);                                                        \
        }                                                                              \
    } while (0)

#endif
