/* What the examples share: a call that fails ends the program with its message. */

#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <gridstone.h>
#include <stdio.h>
#include <stdlib.h>

/* How a program ends after an error; a child process or a rank of MPI ends in its own way. */
#ifndef GIVE_UP
#define GIVE_UP exit(EXIT_FAILURE)
#endif

/* Runs a call of the library; its result is a status. */
#define CHECK(call)                                                                                              \
    do {                                                                                                         \
        const gridstone_status status_ = (call);                                                                 \
        if (status_ != GRIDSTONE_OK) {                                                                           \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, gridstone_status_name(status_), gridstone_last_error()); \
            GIVE_UP;                                                                                             \
        }                                                                                                        \
    } while (0)

/* Ends the program unless something holds. */
#define REQUIRE(holds)                                                                 \
    do {                                                                               \
        if (!(holds)) {                                                                \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #holds);        \
            GIVE_UP;                                                                   \
        }                                                                              \
    } while (0)

#endif
