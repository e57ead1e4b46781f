/*
 * Gridstone: dense and sparse multi-dimensional arrays. @generated of the library's source by gridstone-header; do not change it.
 *
 * - Each function gives a status. What it makes goes through pointers, which stay as they are if it fails.
 *   gridstone_last_error() says what went wrong: one text for each thread, valid until that thread's next call.
 * - Contexts, arrays, texts and the rest are handles, 64-bit numbers. gridstone_free() gives back each of them. A handle that was
 *   freed is known: GRIDSTONE_ERROR_HANDLE. 0 is no handle.
 * - Pointers that are not null point to as much as the count or size beside them says. Nothing changes that memory during a call, and
 *   the library keeps no pointer after it, but that of a log and its argument. Texts are UTF-8 and end with a zero.
 * - Structs begin with their size: `gridstone_call call = {.size = sizeof call};`. Members that are left 0 have their usual value.
 * - Contexts, arrays, groups, schemas, regions, results and texts may be used by many threads at once. Reads, writers, staged writes,
 *   streams and transactions serve one thread at a time: a second one gets GRIDSTONE_ERROR_BUSY.
 * - A process that forks goes on using its handles in the child, but not reads, writers and transactions that the parent began.
 * - Callbacks of progress belong to one call and are not used after it. They may call gridstone_cancel_set() and what tells the last
 *   error; log callbacks may call nothing. Any other function gives GRIDSTONE_ERROR_BUSY there.
 * - Functions that take a gridstone_call can be cancelled, a commit until it begins. Those that take none cannot, though some of them
 *   read or write a store: creating and opening, refreshing, tags, metadata, children of groups, fragments, receipts of staged writes.
 * - No C++ exception and no panic crosses this interface.
 */

#ifndef GRIDSTONE_H
#define GRIDSTONE_H

#include <stddef.h>
#include <stdint.h>

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

#ifdef __cplusplus
extern "C" {
#endif

struct ArrowSchema {
    const char *format;
    const char *name;
    const char *metadata;
    int64_t flags;
    int64_t n_children;
    struct ArrowSchema **children;
    struct ArrowSchema *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

#ifdef __cplusplus
}
#endif

#endif /* ARROW_C_DATA_INTERFACE */

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

#ifdef __cplusplus
extern "C" {
#endif

struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};

#ifdef __cplusplus
}
#endif

#endif /* ARROW_C_STREAM_INTERFACE */

/**
 * Lets the domain grow, in the same commit, to take in what is written.
 */
#define GRIDSTONE_CALL_GROW 1

/**
 * Writes reach the disk before they are acknowledged.
 */
#define GRIDSTONE_DURABILITY_FULL 0

/**
 * Files are closed and not flushed: quicker, and a power cut may lose commits.
 */
#define GRIDSTONE_DURABILITY_CLOSE 1

/**
 * Value of `gridstone_context_options.cache_bytes` for no cache at all.
 */
#define GRIDSTONE_NO_CACHE UINT64_MAX

/**
 * Levels of `gridstone_log`: each step of the engine.
 */
#define GRIDSTONE_LOG_DEBUG 10

/**
 * Commits, merges, vacuums.
 */
#define GRIDSTONE_LOG_INFO 20

/**
 * What somebody should look at.
 */
#define GRIDSTONE_LOG_WARNING 30

/**
 * All positions of a dimension.
 */
#define GRIDSTONE_POSITIONS_ALL 0

/**
 * `count` positions from `start` on, each `step` after the one before.
 */
#define GRIDSTONE_POSITIONS_STRIDED 1

/**
 * The positions in `list`, each with every position of the other dimensions.
 */
#define GRIDSTONE_POSITIONS_LISTED 2

/**
 * The positions in `list`, point by point with those of the other paired dimensions.
 */
#define GRIDSTONE_POSITIONS_PAIRED 3

/**
 * Cells or tiles in the order of rows: the last dimension varies fastest.
 */
#define GRIDSTONE_ORDER_ROW 0

/**
 * Cells or tiles in the order of columns: the first dimension varies fastest.
 */
#define GRIDSTONE_ORDER_COLUMN 1

/**
 * Cells along a Hilbert curve; of sparse arrays.
 */
#define GRIDSTONE_ORDER_HILBERT 2

/**
 * Reads give cells as they lie: tile by tile.
 */
#define GRIDSTONE_ORDER_GLOBAL 3

/**
 * Reads give cells in any order, which is quickest.
 */
#define GRIDSTONE_ORDER_ANY 4

/**
 * Opens for reading, and for nothing else.
 */
#define GRIDSTONE_OPEN_READ 0

/**
 * Opens for reading and writing.
 */
#define GRIDSTONE_OPEN_WRITE 1

/**
 * Nothing lies at a path.
 */
#define GRIDSTONE_KIND_NONE 0

/**
 * An array lies there.
 */
#define GRIDSTONE_KIND_ARRAY 1

/**
 * A group lies there.
 */
#define GRIDSTONE_KIND_GROUP 2

/**
 * A commit is refused if another one has changed what this one both read and wrote.
 */
#define GRIDSTONE_ISOLATION_SNAPSHOT 0

/**
 * A commit is refused if another one has changed what this one read.
 */
#define GRIDSTONE_ISOLATION_SERIALIZABLE 1

/**
 * Value of ages of `gridstone_vacuum_options` for none: nothing stays on account of its age.
 */
#define GRIDSTONE_NO_AGE -1

/**
 * Several cells at one place in one write are an error.
 */
#define GRIDSTONE_DEDUP_ERROR 0

/**
 * The first of several cells at one place in one write is kept.
 */
#define GRIDSTONE_DEDUP_FIRST 1

/**
 * The last of several cells at one place in one write is kept.
 */
#define GRIDSTONE_DEDUP_LAST 2

/**
 * The cells come in global order: tile by tile, each in its cell order. Nothing is kept in memory but a tile.
 */
#define GRIDSTONE_WRITER_ORDERED 0

/**
 * The cells come in any order, each with its coordinates; what memory does not hold waits in files.
 */
#define GRIDSTONE_WRITER_UNSORTED 1

/**
 * What a call gives: `GRIDSTONE_OK`, or the kind of what went wrong. `gridstone_last_error` says what it was.
 */
typedef int32_t gridstone_status;

/**
 * Any handle; 0 is none.
 */
typedef uint64_t gridstone_handle;

/**
 * An array at one version of its store. Many threads may use one.
 */
typedef gridstone_handle gridstone_array;

/**
 * Boxes of cells. Where a function takes one, 0 means the whole domain.
 */
typedef gridstone_handle gridstone_region;

/**
 * What cells are grouped by.
 */
typedef struct gridstone_group_key {
    /**
     * `sizeof(gridstone_group_key)`
     */
    size_t size;
    /**
     * the name of the column in the answer, or NULL: the expression
     */
    const char *name;
    /**
     * the name of an attribute or a dimension, or an expression, as "abs(lat)"
     */
    const char *expression;
    /**
     * the width of bins, a whole number; 0: no such bins. A bin begins at a multiple of its width
     */
    uint64_t bin;
    /**
     * the width of bins, any number above 0; 0: no such bins
     */
    double bin_width;
    /**
     * the length of bins of times, as "1h", "1D" or "1M"; NULL: no such bins
     */
    const char *period;
} gridstone_group_key;

/**
 * An aggregate.
 */
typedef struct gridstone_aggregate {
    /**
     * `sizeof(gridstone_aggregate)`
     */
    size_t size;
    /**
     * the name of the column in the answer, or NULL: the text
     */
    const char *name;
    /**
     * what it computes, as "count(*)", "mean(sog * 1.852)", "quantile(sog, 0.9)"
     */
    const char *text;
} gridstone_aggregate;

/**
 * A question to the cells of an array: aggregates by groups.
 */
typedef struct gridstone_question {
    /**
     * `sizeof(gridstone_question)`
     */
    size_t size;
    /**
     * the cells, or 0: the whole domain
     */
    gridstone_region region;
    /**
     * a condition on cells, or NULL: every cell
     */
    const char *condition;
    /**
     * what cells are grouped by, or NULL: one group
     */
    const struct gridstone_group_key *keys;
    /**
     * structs in `keys`
     */
    size_t key_count;
    /**
     * the aggregates of each group
     */
    const struct gridstone_aggregate *aggregates;
    /**
     * structs in `aggregates`
     */
    size_t aggregate_count;
    /**
     * a condition on the columns of the answer, or NULL: every group
     */
    const char *having;
    /**
     * names of columns of the answer, each with " desc" behind it or without, or NULL: groups ascend by their keys
     */
    const char *const *order;
    /**
     * texts in `order`
     */
    size_t order_count;
    /**
     * so many groups at most; 0: all
     */
    uint64_t limit;
    /**
     * not 0: groups come in any order, which is quickest; `order` is NULL then
     */
    uint32_t any_order;
    /**
     * 0
     */
    uint32_t reserved;
} gridstone_question;

/**
 * A way to stop calls from another thread or from a signal's loop.
 */
typedef gridstone_handle gridstone_cancel;

/**
 * Is called with the cells that are done and those in all, 0 while that is not known. Gives 0 to go on, anything else to cancel. It
 * may be called from any thread of the library, by one at a time, until the call returns and not after it. While it is called, other
 * reports are left out. It may call `gridstone_cancel_set` and what tells the last error; any other function gives
 * `GRIDSTONE_ERROR_BUSY`. It must return normally: neither `longjmp` nor an exception may leave it.
 */
typedef int32_t (*gridstone_progress)(void *user, uint64_t done, uint64_t total);

/**
 * What goes with a call; all of it may be 0. Where a function takes it, NULL means none of it.
 */
typedef struct gridstone_call {
    /**
     * `sizeof(gridstone_call)`
     */
    size_t size;
    /**
     * stops the call when it is set, or 0
     */
    gridstone_cancel cancel;
    /**
     * receives how far the call is, or NULL
     */
    gridstone_progress progress;
    /**
     * is passed to `progress`
     */
    void *user;
    /**
     * the message of the commit, or NULL
     */
    const char *message;
    /**
     * a key of 1 to 64 bytes, or NULL: a commit that is repeated with the same key and content is done once
     */
    const uint8_t *commit_key;
    /**
     * bytes of `commit_key`
     */
    size_t commit_key_bytes;
    /**
     * `GRIDSTONE_CALL_GROW`, or 0
     */
    uint32_t flags;
    /**
     * 0
     */
    uint32_t reserved;
} gridstone_call;

/**
 * Columns of cells or of groups. They never change; many threads may use one.
 */
typedef gridstone_handle gridstone_result;

/**
 * An answer that is given in batches.
 */
typedef gridstone_handle gridstone_answers;

/**
 * A text of the library, in UTF-8.
 */
typedef gridstone_handle gridstone_text;

/**
 * How a store is opened; 0 everywhere: at its newest version, for reading.
 */
typedef struct gridstone_open_options {
    /**
     * `sizeof(gridstone_open_options)`
     */
    size_t size;
    /**
     * the path in the store, as "/runs/7"; NULL: "/"
     */
    const char *path;
    /**
     * the version; 0: not by a version
     */
    uint64_t version;
    /**
     * the tag of a version; NULL: not by a tag
     */
    const char *tag;
    /**
     * the newest version that was committed by then, in microseconds since 1970 in UTC; looked at if `by_time` is not 0
     */
    int64_t time_us;
    /**
     * not 0: by `time_us`
     */
    uint32_t by_time;
    /**
     * `GRIDSTONE_OPEN_READ` or `GRIDSTONE_OPEN_WRITE`; a version, a tag and a time are for reading
     */
    uint32_t mode;
} gridstone_open_options;

/**
 * A read that is given in portions.
 */
typedef gridstone_handle gridstone_read;

/**
 * How cells are written; 0 everywhere: they come in any order, and two at one place are an error.
 */
typedef struct gridstone_cells_options {
    /**
     * `sizeof(gridstone_cells_options)`
     */
    size_t size;
    /**
     * `GRIDSTONE_DEDUP_ERROR`, `_FIRST` or `_LAST`
     */
    uint32_t dedup;
    /**
     * not 0: the cells come in global order, which is checked
     */
    uint32_t sorted;
} gridstone_cells_options;

/**
 * Written cells that no commit refers to yet: nobody sees them.
 */
typedef gridstone_handle gridstone_staged;

/**
 * Is called with what happens: the level, the topic as "commit", what happened in words, and its values as an object of JSON. It may be
 * called from any thread, several at once, while locks are held: it must not call the library, and must return normally.
 */
typedef void (*gridstone_log)(void *user, int32_t level, const char *topic, const char *what, const char *details);

/**
 * Choices of a context; 0 everywhere means the usual value.
 */
typedef struct gridstone_context_options {
    /**
     * `sizeof(gridstone_context_options)`
     */
    size_t size;
    /**
     * bytes for scratch memory, caches and indexes, at least 1 MiB; 0: 1 GiB
     */
    uint64_t memory_budget;
    /**
     * bytes of decoded indexes and small fragments kept between calls; 0: 256 MiB; `GRIDSTONE_NO_CACHE`: none
     */
    uint64_t cache_bytes;
    /**
     * threads of the pool; 0: `GRIDSTONE_THREADS`, or the cores of this process
     */
    uint32_t threads;
    /**
     * `GRIDSTONE_DURABILITY_FULL` or `GRIDSTONE_DURABILITY_CLOSE`
     */
    uint32_t durability;
    /**
     * arrays with so many fragments, at least 2, are consolidated in the background; 0: none are
     */
    uint64_t auto_consolidate_fragments;
    /**
     * bytes of a fragment that is large enough for that; 0: 512 MiB
     */
    uint64_t auto_consolidate_bytes;
    /**
     * the key of sealed stores, 32 bytes, or NULL: that of the environment, if there is one
     */
    const uint8_t *key;
    /**
     * bytes of `key`
     */
    size_t key_bytes;
    /**
     * names and values of options of object stores in turn, as "endpoint", "http://…"; or NULL
     */
    const char *const *storage_options;
    /**
     * texts in `storage_options`: twice the number of options
     */
    size_t storage_option_count;
    /**
     * folders and URLs under which attached files may lie; NULL: those in `GRIDSTONE_SOURCES`
     */
    const char *const *sources;
    /**
     * texts in `sources`
     */
    size_t source_count;
    /**
     * receives what happens, or NULL; it must stay valid as long as anything that was opened with the context
     */
    gridstone_log log;
    /**
     * is passed to `log`
     */
    void *log_user;
    /**
     * the least level that is logged; 0: `GRIDSTONE_LOG_INFO`
     */
    int32_t log_level;
    /**
     * 0
     */
    uint32_t reserved;
} gridstone_context_options;

/**
 * Threads, a memory budget, a cache and keys, shared by all that is opened with it. One is enough for a program.
 */
typedef gridstone_handle gridstone_context;

/**
 * What is copied, and to where; 0 everywhere: the newest version of a whole store.
 */
typedef struct gridstone_copy_options {
    /**
     * `sizeof(gridstone_copy_options)`
     */
    size_t size;
    /**
     * the array or group; NULL: "/", all that the store holds
     */
    const char *path;
    /**
     * where it is put in the target; NULL: "/"
     */
    const char *target_path;
    /**
     * the version; 0: not by a version
     */
    uint64_t version;
    /**
     * the tag of a version; NULL: not by a tag
     */
    const char *tag;
    /**
     * the newest version that was committed by then, in microseconds since 1970 in UTC; looked at if `by_time` is not 0
     */
    int64_t time_us;
    /**
     * not 0: by `time_us`
     */
    uint32_t by_time;
    /**
     * not 0: every version of the whole store up to that one, into an empty place or an earlier copy, which gets what it lacks
     */
    uint32_t history;
    /**
     * not 0: what lies at the target's path is replaced
     */
    uint32_t overwrite;
    /**
     * 0
     */
    uint32_t reserved;
} gridstone_copy_options;

/**
 * Values of one attribute or dimension, a value for each cell.
 *
 * Values of fixed width lie side by side. Values that vary in length, texts and bytes, lie one behind the other, and `offsets` says where
 * each begins and where the last ends.
 */
typedef struct gridstone_column {
    /**
     * `sizeof(gridstone_column)`
     */
    size_t size;
    /**
     * the name of the attribute or dimension
     */
    const char *name;
    /**
     * the type of the values, as "float32" or "datetime64[s]", which must be that of the schema; or NULL: it is not compared
     */
    const char *type;
    /**
     * the values
     */
    const void *values;
    /**
     * bytes of `values`
     */
    size_t values_bytes;
    /**
     * where each value begins in `values`, and where the last ends; NULL if values are of fixed width
     */
    const uint64_t *offsets;
    /**
     * numbers in `offsets`: one more than cells
     */
    size_t offset_count;
    /**
     * for each cell 1 if there is a value, 0 if it is null; NULL: none is null
     */
    const uint8_t *validity;
    /**
     * bytes of `validity`: as many as cells
     */
    size_t validity_count;
} gridstone_column;

/**
 * A group at one version of its store. Many threads may use one.
 */
typedef gridstone_handle gridstone_group;

/**
 * A schema that is being described, or that of an array.
 */
typedef gridstone_handle gridstone_schema;

/**
 * What a vacuum leaves; 0 everywhere: the versions of the last hour, and files of a day that no version names.
 */
typedef struct gridstone_vacuum_options {
    /**
     * `sizeof(gridstone_vacuum_options)`
     */
    size_t size;
    /**
     * versions that were the newest at some moment of so many microseconds stay; 0: of an hour, unless `versions` says what stays;
     * `GRIDSTONE_NO_AGE`: only the newest
     */
    int64_t keep_us;
    /**
     * so many of the newest versions stay, instead of an age; 0: by age
     */
    uint64_t versions;
    /**
     * files that no version names stay for so many microseconds, as a writer may be about to commit them; 0: a day;
     * `GRIDSTONE_NO_AGE`: they go at once, which needs that nobody writes
     */
    int64_t safety_us;
    /**
     * not 0: only says what would be deleted
     */
    uint32_t dry_run;
    /**
     * 0
     */
    uint32_t reserved;
} gridstone_vacuum_options;

/**
 * What is read; 0 everywhere: all attributes of all cells, in row order.
 */
typedef struct gridstone_read_options {
    /**
     * `sizeof(gridstone_read_options)`
     */
    size_t size;
    /**
     * the cells, or 0: the whole domain
     */
    gridstone_region region;
    /**
     * the names of attributes, or NULL: all
     */
    const char *const *attributes;
    /**
     * texts in `attributes`
     */
    size_t attribute_count;
    /**
     * a condition, as "sog > 3 and kind = 'tug'", or NULL: every cell
     */
    const char *condition;
    /**
     * `GRIDSTONE_ORDER_ROW`, `_COLUMN`, `_GLOBAL` or `_ANY`
     */
    uint32_t order;
    /**
     * 0
     */
    uint32_t reserved;
    /**
     * bytes of a batch that the library holds meanwhile; 0: 8 MiB
     */
    uint64_t batch_bytes;
} gridstone_read_options;

/**
 * What is chosen along one dimension. Positions are counted from the low end of its domain.
 */
typedef struct gridstone_positions {
    /**
     * `sizeof(gridstone_positions)`
     */
    size_t size;
    /**
     * `GRIDSTONE_POSITIONS_ALL`, `_STRIDED`, `_LISTED` or `_PAIRED`
     */
    uint32_t kind;
    /**
     * 0
     */
    uint32_t reserved;
    /**
     * the first position, of `_STRIDED`
     */
    uint64_t start;
    /**
     * how many positions, of `_STRIDED`
     */
    uint64_t count;
    /**
     * from one position to the next, of `_STRIDED`; below 0: downwards
     */
    int64_t step;
    /**
     * positions in any order, each as often as it is wanted, of `_LISTED` and `_PAIRED`
     */
    const uint64_t *list;
    /**
     * numbers in `list`
     */
    size_t list_count;
} gridstone_positions;

/**
 * Room for values of one attribute or dimension.
 */
typedef struct gridstone_buffer {
    /**
     * `sizeof(gridstone_buffer)`
     */
    size_t size;
    /**
     * the name of the attribute or dimension
     */
    const char *name;
    /**
     * the type of the values, which must be that of the schema; or NULL: it is not compared
     */
    const char *type;
    /**
     * room for values
     */
    void *values;
    /**
     * bytes of `values`
     */
    size_t values_bytes;
    /**
     * room for offsets, for values that vary in length; else NULL
     */
    uint64_t *offsets;
    /**
     * numbers that `offsets` has room for: one more than cells
     */
    size_t offset_count;
    /**
     * room for a byte for each cell, 1: a value, 0: null; needed where a value may be null, else NULL is allowed
     */
    uint8_t *validity;
    /**
     * bytes of `validity`
     */
    size_t validity_count;
    /**
     * is set by reads: the bytes of `values` that were filled
     */
    size_t filled_bytes;
} gridstone_buffer;

/**
 * What an array is like, beside its dimensions and attributes; 0 everywhere: dense, in row order.
 */
typedef struct gridstone_schema_options {
    /**
     * `sizeof(gridstone_schema_options)`
     */
    size_t size;
    /**
     * not 0: only the cells that were written exist
     */
    uint32_t sparse;
    /**
     * not 0: a sparse array may have several cells at one position
     */
    uint32_t duplicates;
    /**
     * cells of a data tile of a sparse array; 0: 10,000
     */
    uint64_t capacity;
    /**
     * the order of tiles: `GRIDSTONE_ORDER_ROW` or `GRIDSTONE_ORDER_COLUMN`
     */
    uint32_t tile_order;
    /**
     * the order of the cells of a tile; of sparse arrays also `GRIDSTONE_ORDER_HILBERT`
     */
    uint32_t cell_order;
    /**
     * filters of coordinates, as "zstd:3"; NULL: "auto"
     */
    const char *coordinate_filters;
} gridstone_schema_options;

/**
 * A dimension: its name, its type, its domain and the extent of its tiles.
 */
typedef struct gridstone_dimension {
    /**
     * `sizeof(gridstone_dimension)`
     */
    size_t size;
    /**
     * the name
     */
    const char *name;
    /**
     * "int8" to "uint64", "float32", "float64", "datetime64[s]", "timedelta64[ms]", "string" …
     */
    const char *type;
    /**
     * the low end of the domain as a text, included: "0", "-0.5", a time as "2026-03-01", "20454 D", or its ticks "20454"; NULL: it is
     * open. A date or time is a period: a domain begins with its first instant, which must be the beginning of a step, and ends with its
     * last. Four digits alone are a year and a number of ticks, and an error: add a unit or a month
     */
    const char *low;
    /**
     * the high end of the domain as a text, included; NULL: it is open
     */
    const char *high;
    /**
     * the extent of a tile as a text, of times as "7 D" or ticks; NULL: one tile, or what suits an open end
     */
    const char *tile;
    /**
     * the most bytes of a text of a "string" dimension; 0: the usual number
     */
    size_t text_bytes_max;
} gridstone_dimension;

/**
 * An attribute: a value in each cell.
 */
typedef struct gridstone_attribute {
    /**
     * `sizeof(gridstone_attribute)`
     */
    size_t size;
    /**
     * the name
     */
    const char *name;
    /**
     * "bool", "int8" to "uint64", "float16" to "float64", "string", "bytes", "datetime64[s]", "float32[3]" …
     */
    const char *type;
    /**
     * not 0: values may be null
     */
    uint32_t nullable;
    /**
     * not 0: the order of the categories is one of values
     */
    uint32_t ordered;
    /**
     * what an unwritten cell of a dense array reads as, as a text, of times as the low end of a domain; NULL: null, NaN, 0, or an empty text
     */
    const char *fill;
    /**
     * filters, as "auto", "shuffle,zstd:3", "none"; NULL: "auto"
     */
    const char *filters;
    /**
     * the texts that values can be, which are stored as codes, or NULL. `type` is that of the texts, "string"; columns and buffers
     * carry codes, the place in this list, of type "uint8" for up to 128, "uint16" for up to 32,768, "uint32" for more
     */
    const char *const *categories;
    /**
     * texts in `categories`
     */
    size_t category_count;
} gridstone_attribute;

/**
 * Changes that become one version, or none.
 */
typedef gridstone_handle gridstone_transaction;

/**
 * Which fragments are merged, and into what; 0 everywhere: those that "tiered" chooses.
 */
typedef struct gridstone_consolidate_options {
    /**
     * `sizeof(gridstone_consolidate_options)`
     */
    size_t size;
    /**
     * "tiered": fragments of similar size; "all"; "updates": small ones; "manifest": the list of fragments is packed. NULL: "tiered"
     */
    const char *strategy;
    /**
     * ids of the fragments to merge, instead of a strategy; or NULL
     */
    const char *const *fragments;
    /**
     * texts in `fragments`
     */
    size_t fragment_count;
    /**
     * merges all that touches the box around this region, instead of a strategy; or 0
     */
    gridstone_region region;
    /**
     * bytes of a merged fragment, about; 0: 512 MiB
     */
    uint64_t target_bytes;
    /**
     * not 0: only says what would be merged
     */
    uint32_t dry_run;
    /**
     * 0
     */
    uint32_t reserved;
} gridstone_consolidate_options;

/**
 * A consolidation that goes on in the background.
 */
typedef gridstone_handle gridstone_upkeep;

/**
 * What a writer takes; 0 everywhere: all attributes of all cells of the domain in global order.
 */
typedef struct gridstone_writer_options {
    /**
     * `sizeof(gridstone_writer_options)`
     */
    size_t size;
    /**
     * the box that is written in global order, or 0: the whole domain; 0 for cells in any order
     */
    gridstone_region region;
    /**
     * the names of the attributes that are written, or NULL: all
     */
    const char *const *attributes;
    /**
     * texts in `attributes`
     */
    size_t attribute_count;
    /**
     * `GRIDSTONE_WRITER_ORDERED` or `GRIDSTONE_WRITER_UNSORTED`
     */
    uint32_t kind;
    /**
     * of cells in any order: `GRIDSTONE_DEDUP_ERROR`, `_FIRST` or `_LAST`
     */
    uint32_t dedup;
} gridstone_writer_options;

/**
 * A write whose cells come a portion at a time.
 */
typedef gridstone_handle gridstone_writer;

/**
 * The call did what it was asked for.
 */
#define GRIDSTONE_OK 0

/**
 * An argument is wrong: a null pointer, a size, a type, a value. The message names it.
 */
#define GRIDSTONE_ERROR_INPUT 1

/**
 * A schema is contradictory or not supported, or values do not fit it.
 */
#define GRIDSTONE_ERROR_SCHEMA 2

/**
 * A position or a coordinate is outside of the domain.
 */
#define GRIDSTONE_ERROR_BOUNDS 3

/**
 * The store, array, group, attribute, version or key does not exist.
 */
#define GRIDSTONE_ERROR_NOT_FOUND 4

/**
 * What is to be created exists.
 */
#define GRIDSTONE_ERROR_EXISTS 5

/**
 * Another commit made this one impossible. Nothing was changed.
 */
#define GRIDSTONE_ERROR_CONFLICT 6

/**
 * It is not known whether the commit happened. Nothing was deleted.
 */
#define GRIDSTONE_ERROR_COMMIT_UNKNOWN 7

/**
 * Bytes in the store are not those that were written.
 */
#define GRIDSTONE_ERROR_CORRUPTION 8

/**
 * A file of another format has changed since it was attached.
 */
#define GRIDSTONE_ERROR_SOURCE_CHANGED 9

/**
 * The version was vacuumed.
 */
#define GRIDSTONE_ERROR_SNAPSHOT_EXPIRED 10

/**
 * The work does not fit into the memory budget, or a cell into the caller's buffers.
 */
#define GRIDSTONE_ERROR_BUDGET 11

/**
 * The storage refused: it is full, read-only or not reached.
 */
#define GRIDSTONE_ERROR_STORAGE 12

/**
 * A key, credentials or permissions are missing or wrong.
 */
#define GRIDSTONE_ERROR_ACCESS 13

/**
 * The request is valid, and this version or this storage does not support it.
 */
#define GRIDSTONE_ERROR_UNSUPPORTED 14

/**
 * The work was cancelled.
 */
#define GRIDSTONE_ERROR_CANCELLED 15

/**
 * A handle is 0, was freed, or is of another kind.
 */
#define GRIDSTONE_ERROR_HANDLE 16

/**
 * Another thread is using the handle, which serves one at a time; or a callback has called the library.
 */
#define GRIDSTONE_ERROR_BUSY 17

/**
 * The library failed, by a mistake in it; please report the message.
 */
#define GRIDSTONE_ERROR_FAILED 18

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Answers a question: a row for each group, its keys first, then the aggregates. Nulls are left out of aggregates, and are a group of
 * their own as keys.
 *
 * @param array the array.
 * @param question the question.
 * @param call what goes with the call, or NULL.
 * @param result where the handle goes; free it with `gridstone_free`.
 *
 * `GRIDSTONE_ERROR_BUDGET`: the answer does not fit into the memory budget: take it in batches, or with a limit.
 */
gridstone_status gridstone_array_aggregate(gridstone_array array,
                                           const struct gridstone_question *question,
                                           const struct gridstone_call *call,
                                           gridstone_result *result);

/**
 * Answers a question in batches, in bounded memory. All cells are read before this returns.
 *
 * @param array the array.
 * @param question the question.
 * @param call what goes with the call, or NULL.
 * @param answers where the handle goes; free it with `gridstone_free`, also before the end. One thread at a time may use it.
 */
gridstone_status gridstone_answers_create(gridstone_array array,
                                          const struct gridstone_question *question,
                                          const struct gridstone_call *call,
                                          gridstone_answers *answers);

/**
 * The next groups of an answer.
 *
 * @param answers the answers.
 * @param call what goes with the call, or NULL.
 * @param result where the handle goes, to be freed with `gridstone_free`; 0 after the last group.
 *
 * After an error the answer is over, as it is not known which groups were given.
 */
gridstone_status gridstone_answers_next(gridstone_answers answers,
                                        const struct gridstone_call *call,
                                        gridstone_result *result);

/**
 * What was done for an answer so far, as JSON: names of counters and their values. Free the text.
 *
 * @param answers the answers.
 * @param counters where the handle of the text goes.
 */
gridstone_status gridstone_answers_counters(gridstone_answers answers, gridstone_text *counters);

/**
 * Reduces a box of a dense array along all dimensions but those that remain: a row for each place along these, in row order of the shape
 * that `gridstone_result_shape` gives, and a column for each aggregate.
 *
 * @param array a dense array.
 * @param region one box, or 0: the whole domain.
 * @param condition a condition on cells, or NULL: every cell.
 * @param aggregates what is computed.
 * @param aggregate_count how many.
 * @param kept the dimensions that remain, by their number from 0, ascending; or NULL: none.
 * @param kept_count how many.
 * @param call what goes with the call, or NULL.
 * @param result where the handle goes; free it with `gridstone_free`.
 *
 * `GRIDSTONE_ERROR_UNSUPPORTED`: the array is sparse.
 */
gridstone_status gridstone_array_reduce(gridstone_array array,
                                        gridstone_region region,
                                        const char *condition,
                                        const struct gridstone_aggregate *aggregates,
                                        size_t aggregate_count,
                                        const uint64_t *kept,
                                        size_t kept_count,
                                        const struct gridstone_call *call,
                                        gridstone_result *result);

/**
 * Counts cells; of a dense array also those that were not written, which are what they read as.
 *
 * @param array the array.
 * @param region the cells, or 0: the whole domain.
 * @param condition a condition on cells, or NULL: every cell.
 * @param call what goes with the call, or NULL.
 * @param cells where the number goes.
 */
gridstone_status gridstone_array_count(gridstone_array array,
                                       gridstone_region region,
                                       const char *condition,
                                       const struct gridstone_call *call,
                                       uint64_t *cells);

/**
 * The version of its store that an array shows.
 *
 * @param array the array.
 * @param version where the version goes.
 */
gridstone_status gridstone_array_version(gridstone_array array, uint64_t *version);

/**
 * When the version of an array was committed, in microseconds since 1970 in UTC.
 *
 * @param array the array.
 * @param time_us where the time goes.
 */
gridstone_status gridstone_array_time_us(gridstone_array array, int64_t *time_us);

/**
 * The number of dimensions.
 *
 * @param array the array.
 * @param ndim where the number goes.
 */
gridstone_status gridstone_array_ndim(gridstone_array array, uint64_t *ndim);

/**
 * Whether only the cells that were written exist: 1, or 0.
 *
 * @param array the array.
 * @param sparse where 1 or 0 goes.
 */
gridstone_status gridstone_array_sparse(gridstone_array array, int32_t *sparse);

/**
 * The URI of the store of an array. Free the text.
 *
 * @param array the array.
 * @param uri where the handle of the text goes.
 */
gridstone_status gridstone_array_uri(gridstone_array array, gridstone_text *uri);

/**
 * The path of an array in its store. Free the text.
 *
 * @param array the array.
 * @param path where the handle of the text goes.
 */
gridstone_status gridstone_array_path(gridstone_array array, gridstone_text *path);

/**
 * The smallest box that holds all cells that were written, as JSON: `[[low, high], …]` with texts, or `null` if there are none. They are
 * what `gridstone_region_add_texts` takes; of times ticks with their unit, as "20454 D". Free the text.
 *
 * @param array the array.
 * @param domain where the handle of the text goes.
 */
gridstone_status gridstone_array_nonempty_domain(gridstone_array array,
                                                 gridstone_text *domain);

/**
 * Moves an array on to the newest version of its store, and puts its number.
 *
 * @param array the array.
 * @param version where the version goes that it shows then.
 */
gridstone_status gridstone_array_refresh(gridstone_array array, uint64_t *version);

/**
 * The same array at another version, for reading.
 *
 * @param array the array.
 * @param options the version, tag or time; `path` and `mode` are not looked at; NULL: the newest version.
 * @param other where the handle goes; free it with `gridstone_free`.
 */
gridstone_status gridstone_array_at(gridstone_array array,
                                    const struct gridstone_open_options *options,
                                    gridstone_array *other);

/**
 * A result as an array of Arrow: a struct with a child for each column, over the memory of the result, which stays as long as the array
 * is not released. The result may be freed before.
 *
 * @param result the result.
 * @param schema where the type goes; release it.
 * @param array where the values go; release it.
 */
gridstone_status gridstone_result_to_arrow(gridstone_result result,
                                           struct ArrowSchema *schema,
                                           struct ArrowArray *array);

/**
 * Moves a read into a stream of Arrow, whose batches are as large as `batch_bytes` of the read says, about: what the read has not given
 * yet. The read's handle is used up, and is still to be freed.
 *
 * @param read the read.
 * @param stream where the stream goes; release it, also before its end. One thread at a time may use it.
 */
gridstone_status gridstone_read_to_arrow(gridstone_read read,
                                         struct ArrowArrayStream *stream);

/**
 * Moves an answer into a stream of Arrow: what it has not given yet. The handle of the answers is used up, and is still to be freed.
 *
 * @param answers the answers.
 * @param stream where the stream goes; release it, also before its end. One thread at a time may use it.
 */
gridstone_status gridstone_answers_to_arrow(gridstone_answers answers,
                                            struct ArrowArrayStream *stream);

/**
 * Writes the cells of a stream of Arrow, in one commit and in bounded memory: its structs have a column for each dimension and for
 * attributes, by name. A column of another type is taken if nothing is lost by it, but that float64 is rounded to float32: wider or
 * narrower numbers, other units of times, texts with short offsets, dictionaries. The stream is released in any case, also after an
 * error, unless its pointer is null.
 *
 * @param array an array that is open for writing.
 * @param stream the stream; it is moved away.
 * @param how in which order cells come, and what becomes of several at one place, or NULL.
 * @param call what goes with the call, or NULL.
 * @param version where the version of the commit goes, or NULL; the array shows it from now on.
 *
 * `GRIDSTONE_ERROR_INPUT`: a column or a value does not fit, which the message names, or the stream failed. Nothing was written then.
 */
gridstone_status gridstone_array_write_arrow(gridstone_array array,
                                             struct ArrowArrayStream *stream,
                                             const struct gridstone_cells_options *how,
                                             const struct gridstone_call *call,
                                             uint64_t *version);

/**
 * As `gridstone_array_write_arrow`, without the commit.
 *
 * @param array an array that is open for writing.
 * @param stream the stream; it is moved away.
 * @param how in which order cells come, and what becomes of several at one place, or NULL.
 * @param call what goes with the call, or NULL.
 * @param staged where the handle goes; free it with `gridstone_free`.
 */
gridstone_status gridstone_stage_arrow(gridstone_array array,
                                       struct ArrowArrayStream *stream,
                                       const struct gridstone_cells_options *how,
                                       const struct gridstone_call *call,
                                       gridstone_staged *staged);

/**
 * As `gridstone_array_write_arrow`, of one struct array. Both structs are released in any case, unless a pointer is null.
 *
 * @param array an array that is open for writing.
 * @param schema the type; it is moved away.
 * @param batch the values; they are moved away.
 * @param how in which order cells come, and what becomes of several at one place, or NULL.
 * @param call what goes with the call, or NULL.
 * @param version where the version of the commit goes, or NULL; the array shows it from now on.
 */
gridstone_status gridstone_array_write_arrow_batch(gridstone_array array,
                                                   struct ArrowSchema *schema,
                                                   struct ArrowArray *batch,
                                                   const struct gridstone_cells_options *how,
                                                   const struct gridstone_call *call,
                                                   uint64_t *version);

/**
 * Makes a way to stop calls: give it to calls as `gridstone_call.cancel`. Free it with `gridstone_free`.
 *
 * @param cancel where the handle goes.
 */
gridstone_status gridstone_cancel_create(gridstone_cancel *cancel);

/**
 * Stops the calls that it was given to, now and later, at their next block: they give `GRIDSTONE_ERROR_CANCELLED`, and nothing was
 * committed. A commit that has begun is brought to its end. Safe to call from any thread, and from a callback of progress.
 *
 * @param cancel the cancel.
 */
gridstone_status gridstone_cancel_set(gridstone_cancel cancel);

/**
 * What a condition means for an array, as JSON: the `columns` that decide it, the `box` that it confines cells to, and whether it is
 * the same for every cell (`constant`). No cell is read. Free the text.
 *
 * @param array the array.
 * @param condition the condition, as "sog > 3 and kind = 'tug'".
 * @param meaning where the handle of the text goes.
 *
 * `GRIDSTONE_ERROR_INPUT`: it is no condition, or does not fit the array; the message says where.
 */
gridstone_status gridstone_array_check_condition(gridstone_array array,
                                                 const char *condition,
                                                 gridstone_text *meaning);

/**
 * Makes a context. Free it with `gridstone_free`; what was opened with it goes on.
 *
 * @param options its choices, or NULL for the usual ones.
 * @param context where the handle goes.
 */
gridstone_status gridstone_context_create(const struct gridstone_context_options *options,
                                          gridstone_context *context);

/**
 * The most bytes of the memory budget that were in use at once since the context was made.
 *
 * @param context the context.
 * @param bytes where the number goes.
 */
gridstone_status gridstone_context_peak_bytes(gridstone_context context, uint64_t *bytes);

/**
 * Copies a version of a store, or what lies in it, or its whole history, to another store.
 *
 * @param context the context of the source.
 * @param uri the source.
 * @param target_context the context of the target, with its key and its options; 0: that of the source.
 * @param target the target, which is made if there is none.
 * @param options what is copied, or NULL: the newest version of the whole store.
 * @param call what goes with the call, or NULL.
 * @param report where the text goes, an object of JSON that says what was copied; free it with `gridstone_free`.
 *
 * `GRIDSTONE_ERROR_EXISTS`: something lies at the target's path. `GRIDSTONE_ERROR_CONFLICT`: a copy has commits of its own.
 */
gridstone_status gridstone_store_copy(gridstone_context context,
                                      const char *uri,
                                      gridstone_context target_context,
                                      const char *target,
                                      const struct gridstone_copy_options *options,
                                      const struct gridstone_call *call,
                                      gridstone_text *report);

/**
 * Moves what lies at a path, and everything below it, in one commit; groups above the new path that are missing are created. Handles and
 * receipts still mean it.
 *
 * @param context the context.
 * @param uri the store.
 * @param path where it lies.
 * @param target_path where it goes; nothing may lie there.
 * @param call its `message`, or NULL.
 * @param version where the version goes, or NULL.
 */
gridstone_status gridstone_store_move(gridstone_context context,
                                      const char *uri,
                                      const char *path,
                                      const char *target_path,
                                      const struct gridstone_call *call,
                                      uint64_t *version);

/**
 * Brings a store to the newest format that this library writes, in one commit; older versions of the library cannot read it then.
 *
 * @param context the context.
 * @param uri the store.
 * @param version where the version goes, or NULL; the present one if there is nothing to do.
 */
gridstone_status gridstone_store_upgrade(gridstone_context context,
                                         const char *uri,
                                         uint64_t *version);

/**
 * Deletes cells in one commit. A deleted cell of a dense array reads as never written. How many go tells `gridstone_array_count` with
 * the same region and condition before.
 *
 * @param array an array that is open for writing.
 * @param region the cells, or 0: all of them. Ends that were left open reach as far as the types do, also beyond the domain that the
 * array shows, unless there is a condition.
 * @param condition which of them, as "sog > 100": those that the array shows, so that what others commit meanwhile stays; or NULL:
 * every one that was written before the commit, by others too.
 * @param call what goes with the call, or NULL.
 * @param version where the version of the commit goes, or NULL; the present one if a condition selects nothing. The array shows it from
 * now on.
 *
 * `GRIDSTONE_ERROR_CONFLICT`: others merge the same fragments again and again, or the key was given to other content.
 */
gridstone_status gridstone_array_delete(gridstone_array array,
                                        gridstone_region region,
                                        const char *condition,
                                        const struct gridstone_call *call,
                                        uint64_t *version);

/**
 * As `gridstone_array_delete`, without the commit: staged for one commit with other changes.
 *
 * @param array an array that is open for writing.
 * @param region the cells, or 0: all of them.
 * @param condition which of them, or NULL: every one. With a condition only in a transaction; elsewhere there is
 * `gridstone_receipt_where`.
 * @param call what goes with the call, or NULL.
 * @param staged where the handle goes; free it with `gridstone_free`.
 */
gridstone_status gridstone_stage_delete(gridstone_array array,
                                        gridstone_region region,
                                        const char *condition,
                                        const struct gridstone_call *call,
                                        gridstone_staged *staged);

/**
 * Deletes the cells at coordinates in one commit; where no cell lies, nothing is deleted.
 *
 * @param array an array that is open for writing.
 * @param columns the coordinates of every dimension, a value for each cell.
 * @param count how many columns.
 * @param call what goes with the call, or NULL.
 * @param version where the version of the commit goes, or NULL; the array shows it from now on.
 *
 * `GRIDSTONE_ERROR_BOUNDS`: a coordinate lies outside of the domain.
 */
gridstone_status gridstone_array_delete_cells(gridstone_array array,
                                              const struct gridstone_column *columns,
                                              size_t count,
                                              const struct gridstone_call *call,
                                              uint64_t *version);

/**
 * As `gridstone_array_delete_cells`, without the commit.
 *
 * @param array an array that is open for writing.
 * @param columns a column for each dimension; all have as many values.
 * @param count how many columns.
 * @param call what goes with the call, or NULL.
 * @param staged where the handle goes; free it with `gridstone_free`.
 */
gridstone_status gridstone_stage_delete_cells(gridstone_array array,
                                              const struct gridstone_column *columns,
                                              size_t count,
                                              const struct gridstone_call *call,
                                              gridstone_staged *staged);

/**
 * Changes the schema of an array, and lists labels of its dimensions, in one commit. What was written before is read through the new
 * schema. The text is an object of JSON; members that are left out change nothing:
 *
 * `{"domains": [["x", "0", "99"]], "add": [attribute, …], "drop": ["v"], "rename": [["old", "new"]], "fill": [["v", "0"]],
 * "filters": [["v", "zstd:3"]], "nullable": ["v"], "categories": [["kind", ["tug"]]], "labels": [["x", null]]}`
 *
 * An attribute is described as `gridstone_schema_json` shows it.
 *
 * @param array an array that is open for writing.
 * @param evolution the text, or NULL: only labels change.
 * @param labels columns called as the dimensions are, each with the type of its labels and one for each coordinate of the domain; or
 * NULL.
 * @param label_count how many.
 * @param call what goes with the call, but no key; or NULL.
 * @param version where the version goes, or NULL; the present one if nothing changes. The array shows it from now on.
 *
 * `GRIDSTONE_ERROR_SCHEMA`: it cannot change so. `GRIDSTONE_ERROR_CONFLICT`: another commit has changed the schema; refresh and look.
 */
gridstone_status gridstone_array_alter(gridstone_array array,
                                       const char *evolution,
                                       const struct gridstone_column *labels,
                                       size_t label_count,
                                       const struct gridstone_call *call,
                                       uint64_t *version);

/**
 * Appends a block along a dimension of a dense array, whose domain grows by it, in one commit. It comes behind what others have appended
 * by then. In a transaction it is staged.
 *
 * @param array an array that is open for writing.
 * @param dimension the dimension that becomes longer; along the others the block is as long as the domain.
 * @param length coordinates of the block along the dimension.
 * @param order how the values of the block lie: `GRIDSTONE_ORDER_ROW` or `_COLUMN`.
 * @param columns the attributes, a value for each cell of the block.
 * @param count how many.
 * @param labels the labels of its coordinates along the dimension, with their type, if the dimension has listed ones; or NULL.
 * @param call what goes with the call, or NULL.
 * @param version where the version of the commit goes, or NULL; the array shows it from now on.
 */
gridstone_status gridstone_array_append(gridstone_array array,
                                        const char *dimension,
                                        uint64_t length,
                                        uint32_t order,
                                        const struct gridstone_column *columns,
                                        size_t count,
                                        const struct gridstone_column *labels,
                                        const struct gridstone_call *call,
                                        uint64_t *version);

/**
 * The array that the labels of a dimension lie in, open for reading. It has one dimension, a label for each coordinate, and one attribute.
 * Labels may be null in it.
 *
 * @param array the array.
 * @param dimension the dimension.
 * @param labels where the handle goes; free it with `gridstone_free`.
 *
 * `GRIDSTONE_ERROR_NOT_FOUND`: there is no such dimension, or it has no listed labels; those at steps stand in its schema.
 */
gridstone_status gridstone_array_labels(gridstone_array array,
                                        const char *dimension,
                                        gridstone_array *labels);

/**
 * The id of an array that has the labels of a dimension, which other arrays may share: `{"labels": [["x", {"shared": id}]]}` in
 * `gridstone_array_alter`.
 *
 * @param array the array.
 * @param dimension the dimension.
 * @param path the path of a dense array of one dimension and one attribute, from "/" on or from the array's group on.
 * @param id where the text goes; free it with `gridstone_free`.
 */
gridstone_status gridstone_array_shared_labels(gridstone_array array,
                                               const char *dimension,
                                               const char *path,
                                               gridstone_text *id);

/**
 * Opens whatever lies at a path, and says what it is.
 *
 * @param context the context.
 * @param uri the store.
 * @param options path, version and mode, or NULL: "/", the newest version, for reading.
 * @param node where the handle of the array or group goes; free it with `gridstone_free`.
 * @param kind where `GRIDSTONE_KIND_ARRAY` or `GRIDSTONE_KIND_GROUP` goes.
 */
gridstone_status gridstone_open(gridstone_context context,
                                const char *uri,
                                const struct gridstone_open_options *options,
                                gridstone_handle *node,
                                uint32_t *kind);

/**
 * Creates a group in a store, which is made if there is none, and those above it that are missing. The group is open for writing. One
 * that is there is left as it is.
 *
 * @param context the context.
 * @param uri the store.
 * @param path where in the store; NULL: "/".
 * @param group where the handle goes; free it with `gridstone_free`.
 *
 * `GRIDSTONE_ERROR_EXISTS`: an array lies there.
 */
gridstone_status gridstone_group_create(gridstone_context context,
                                        const char *uri,
                                        const char *path,
                                        gridstone_group *group);

/**
 * Opens a group.
 *
 * @param context the context.
 * @param uri the store.
 * @param options path, version and mode, or NULL: "/", the newest version, for reading.
 * @param group where the handle goes; free it with `gridstone_free`.
 *
 * `GRIDSTONE_ERROR_NOT_FOUND`: nothing lies there, or an array.
 */
gridstone_status gridstone_group_open(gridstone_context context,
                                      const char *uri,
                                      const struct gridstone_open_options *options,
                                      gridstone_group *group);

/**
 * The version of its store that a group shows.
 *
 * @param group the group.
 * @param version where the version goes.
 */
gridstone_status gridstone_group_version(gridstone_group group, uint64_t *version);

/**
 * The URI of the store of a group.
 *
 * @param group the group.
 * @param uri where the text goes; free it with `gridstone_free`.
 */
gridstone_status gridstone_group_uri(gridstone_group group, gridstone_text *uri);

/**
 * The path of a group in its store.
 *
 * @param group the group.
 * @param path where the text goes; free it with `gridstone_free`.
 */
gridstone_status gridstone_group_path(gridstone_group group, gridstone_text *path);

/**
 * What is in a group, as a list of JSON sorted by name: `[{"name": "t", "kind": "array"}, …]`; kinds are "array" and "group".
 *
 * @param group the group.
 * @param children where the text goes; free it with `gridstone_free`.
 */
gridstone_status gridstone_group_children(gridstone_group group,
                                          gridstone_text *children);

/**
 * Everything below a group, each group followed by what is in it, as a list of JSON: `[{"path": "/sea/t", "kind": "array"}, …]`.
 *
 * @param group the group.
 * @param nodes where the text goes; free it with `gridstone_free`.
 */
gridstone_status gridstone_group_walk(gridstone_group group,
                                      gridstone_text *nodes);

/**
 * Whether there is anything called so in a group.
 *
 * @param group the group.
 * @param name a name, or a path below the group.
 * @param contains where 1 or 0 goes.
 */
gridstone_status gridstone_group_contains(gridstone_group group, const char *name, int32_t *contains);

/**
 * Opens what is called so in a group, at the group's version, for reading or writing as the group is.
 *
 * @param group the group.
 * @param name a name, or a path below the group.
 * @param child where the handle of the array or group goes; free it with `gridstone_free`.
 * @param kind where `GRIDSTONE_KIND_ARRAY` or `GRIDSTONE_KIND_GROUP` goes.
 */
gridstone_status gridstone_group_open_child(gridstone_group group,
                                            const char *name,
                                            gridstone_handle *child,
                                            uint32_t *kind);

/**
 * Moves a group on to the newest version of its store, and puts its number.
 *
 * @param group a group that was opened without a version.
 * @param version where the version goes, or NULL.
 */
gridstone_status gridstone_group_refresh(gridstone_group group, uint64_t *version);

/**
 * Creates an array in a group. The array is open for writing, and the group shows it.
 *
 * @param group a group that is open for writing.
 * @param name a name, or a path below the group.
 * @param schema the schema.
 * @param overwrite not 0: what is there is replaced by a new array.
 * @param array where the handle goes; free it with `gridstone_free`.
 */
gridstone_status gridstone_group_create_array(gridstone_group group,
                                              const char *name,
                                              gridstone_schema schema,
                                              int32_t overwrite,
                                              gridstone_array *array);

/**
 * Creates a group in a group, which shows it; one that is there is opened.
 *
 * @param group a group that is open for writing.
 * @param name a name, or a path below the group.
 * @param child where the handle goes, open for writing; free it with `gridstone_free`.
 *
 * `GRIDSTONE_ERROR_INPUT`: an array is called so.
 */
gridstone_status gridstone_group_create_group(gridstone_group group, const char *name, gridstone_group *child);

/**
 * Removes what is called so in a group, with everything below it, in one commit.
 *
 * @param group a group that is open for writing.
 * @param name a name, or a path below the group.
 * @param call its `message`, or NULL.
 * @param version where the version goes, or NULL; the group shows it.
 */
gridstone_status gridstone_group_remove(gridstone_group group,
                                        const char *name,
                                        const struct gridstone_call *call,
                                        uint64_t *version);

/**
 * Moves what is called so in a group, with everything below it, in one commit.
 *
 * @param group a group that is open for writing.
 * @param name a name, or a path below the group.
 * @param target a name or path below the group or, from "/" on, a path in the store; nothing may lie there.
 * @param call its `message`, or NULL.
 * @param version where the version goes, or NULL; the group shows it.
 */
gridstone_status gridstone_group_move(gridstone_group group,
                                      const char *name,
                                      const char *target,
                                      const struct gridstone_call *call,
                                      uint64_t *version);

/**
 * Gives a handle back, of any kind; 0 does nothing. Calls of other threads that are using it go on. A writer that was not finished is
 * aborted by it, a transaction that was not committed too, and what was staged and not committed is deleted.
 *
 * @param handle the handle, or 0.
 *
 * Safe to call from any thread. `GRIDSTONE_ERROR_HANDLE`: it was freed before, or never given.
 */
gridstone_status gridstone_free(gridstone_handle handle);

/**
 * Handles that are open in this process, for tests that look for leaks.
 */
uint64_t gridstone_open_handles(void);

/**
 * The versions up to the one that a handle shows, as a list of JSON, oldest first. Those of an array are the ones that changed it; those
 * of a group are all of its store. Each has its number, its time in microseconds since 1970 in UTC, message, id, tags, and what it did.
 *
 * @param node an array or a group.
 * @param call what goes with the call, or NULL.
 * @param versions where the text goes; free it with `gridstone_free`.
 *
 * `GRIDSTONE_ERROR_SNAPSHOT_EXPIRED`: the version that the handle shows was vacuumed.
 */
gridstone_status gridstone_history(gridstone_handle node,
                                   const struct gridstone_call *call,
                                   gridstone_text *versions);

/**
 * The fragments of an array at the version that it shows, as a list of JSON, oldest first: id, kind, version, cells, bytes, attributes,
 * domain.
 *
 * @param array the array.
 * @param fragments where the text goes; free it with `gridstone_free`.
 */
gridstone_status gridstone_array_fragments(gridstone_array array,
                                           gridstone_text *fragments);

/**
 * The tags of the store of an array or group, as an object of JSON: `{"as delivered": 3}`.
 *
 * @param node an array or a group. An array that is open for writing shows the newest tags, anything else those of its version.
 * @param tags where the text goes; free it with `gridstone_free`.
 */
gridstone_status gridstone_tags(gridstone_handle node,
                                gridstone_text *tags);

/**
 * Gives a version of a store a name, which keeps it from being vacuumed. That is a commit of its own.
 *
 * @param context the context.
 * @param uri the store.
 * @param name 1 to 255 bytes without control characters.
 * @param version the version; 0: the newest.
 * @param replace not 0: a name that is in use is moved.
 * @param tagged where the version that has the name goes, or NULL.
 *
 * `GRIDSTONE_ERROR_EXISTS`: the name is in use, and `replace` is 0.
 */
gridstone_status gridstone_store_tag(gridstone_context context,
                                     const char *uri,
                                     const char *name,
                                     uint64_t version,
                                     int32_t replace,
                                     uint64_t *tagged);

/**
 * Takes the name of a version away.
 *
 * @param context the context.
 * @param uri the store.
 * @param name the name.
 * @param version where the version that had it goes, or NULL.
 *
 * `GRIDSTONE_ERROR_NOT_FOUND`: no version is called so.
 */
gridstone_status gridstone_store_untag(gridstone_context context, const char *uri, const char *name, uint64_t *version);

/**
 * What a store takes, and what a vacuum would free. Nothing is changed.
 *
 * @param context the context.
 * @param uri the store.
 * @param options those of the vacuum, or NULL; `dry_run` is not looked at.
 * @param call what goes with the call, or NULL.
 * @param taken where a text of JSON goes: versions, bytes, and those of each array; free it with `gridstone_free`.
 * @param freed where a text goes as `gridstone_vacuum` gives it, or NULL; free it with `gridstone_free`.
 */
gridstone_status gridstone_store_usage(gridstone_context context,
                                       const char *uri,
                                       const struct gridstone_vacuum_options *options,
                                       const struct gridstone_call *call,
                                       gridstone_text *taken,
                                       gridstone_text *freed);

/**
 * The value of a key of metadata, as the text of JSON that was set.
 *
 * Values are plain JSON: null, true, numbers, texts, lists, objects. What JSON lacks is an object with one key, which Python reads as the
 * value and writes for it: `{"$int": "…"}` for an integer beyond 64 bits, `{"$float": "nan"}`, `"inf"` or `"-inf"`, `{"$bytes": "base64"}`,
 * `{"$datetime": "ISO 8601"}`, `{"$datetime64": [ticks, "s"]}` and `{"$timedelta64": [ticks, "s"]}` with null for NaT. An object with a
 * key that begins with "$" is `{"$dict": {…}}`.
 *
 * @param node an array or a group.
 * @param field the name of an attribute or dimension of the array, whose metadata is meant; or NULL: that of the node.
 * @param key the key.
 * @param value where the text goes; free it with `gridstone_free`.
 *
 * `GRIDSTONE_ERROR_NOT_FOUND`: there is no such key.
 */
gridstone_status gridstone_metadata_get(gridstone_handle node,
                                        const char *field,
                                        const char *key,
                                        gridstone_text *value);

/**
 * The keys of metadata, sorted, as a list of texts in JSON.
 *
 * @param node an array or a group.
 * @param field as in `gridstone_metadata_get`.
 * @param keys where the text goes; free it with `gridstone_free`.
 */
gridstone_status gridstone_metadata_keys(gridstone_handle node, const char *field, gridstone_text *keys);

/**
 * All keys of metadata with their values, as an object of JSON.
 *
 * @param node an array or a group.
 * @param field as in `gridstone_metadata_get`.
 * @param all where the text goes; free it with `gridstone_free`.
 */
gridstone_status gridstone_metadata_all(gridstone_handle node, const char *field, gridstone_text *all);

/**
 * Sets and removes keys of metadata in one commit.
 *
 * @param node an array or a group that is open for writing.
 * @param field as in `gridstone_metadata_get`.
 * @param keys the keys, none of them empty.
 * @param values a text of JSON for each key, as `gridstone_metadata_get` describes them; NULL removes the key.
 * @param count how many.
 * @param version where the version goes, or NULL; the node shows it from now on.
 *
 * `GRIDSTONE_ERROR_INPUT`: a value is no JSON.
 */
gridstone_status gridstone_metadata_set(gridstone_handle node,
                                        const char *field,
                                        const char *const *keys,
                                        const char *const *values,
                                        size_t count,
                                        uint64_t *version);

/**
 * Removes a key of metadata in one commit.
 *
 * @param node an array or a group that is open for writing.
 * @param field as in `gridstone_metadata_get`.
 * @param key the key.
 * @param version where the version goes, or NULL; the node shows it from now on.
 *
 * `GRIDSTONE_ERROR_NOT_FOUND`: there is no such key.
 */
gridstone_status gridstone_metadata_remove(gridstone_handle node,
                                           const char *field,
                                           const char *key,
                                           uint64_t *version);

/**
 * Reads any number of cells at once, with their coordinates in front, of sparse and dense arrays. A read in portions takes less memory.
 *
 * @param array the array.
 * @param options what is read, or NULL: all attributes of all cells, in row order; `batch_bytes` is not looked at.
 * @param call what goes with the call, or NULL.
 * @param result where the handle goes; free it with `gridstone_free`.
 */
gridstone_status gridstone_array_read_all(gridstone_array array,
                                          const struct gridstone_read_options *options,
                                          const struct gridstone_call *call,
                                          gridstone_result *result);

/**
 * Reads single cells by their coordinates, which may come in any order and repeat. A dense array gives a row for each point, without
 * coordinates: a cell that was not written is the fill. A sparse array gives the cells that exist, with theirs in front, in the order of
 * the points.
 *
 * @param array the array.
 * @param points the coordinates of every dimension, a column for each.
 * @param point_count how many columns.
 * @param attributes the names of attributes, or NULL: all.
 * @param attribute_count how many.
 * @param call what goes with the call, or NULL.
 * @param result where the handle goes; free it with `gridstone_free`.
 *
 * `GRIDSTONE_ERROR_BOUNDS`: a point lies outside of the domain; the message names its row.
 */
gridstone_status gridstone_array_points(gridstone_array array,
                                        const struct gridstone_column *points,
                                        size_t point_count,
                                        const char *const *attributes,
                                        size_t attribute_count,
                                        const struct gridstone_call *call,
                                        gridstone_result *result);

/**
 * Reads the cells at chosen positions, one choice for each dimension. A dense array gives a row for each combination, in row order of
 * the shape that `gridstone_result_shape` gives: the points, if some dimensions are paired, then each other dimension. A sparse array
 * gives the cells that exist, with their coordinates, each once and in row order.
 *
 * @param array the array.
 * @param axes a choice for each dimension.
 * @param axis_count how many.
 * @param attributes the names of attributes, or NULL: all.
 * @param attribute_count how many.
 * @param call what goes with the call, or NULL.
 * @param result where the handle goes; free it with `gridstone_free`.
 *
 * `GRIDSTONE_ERROR_BOUNDS`: a dimension does not have a position.
 */
gridstone_status gridstone_array_positions(gridstone_array array,
                                           const struct gridstone_positions *axes,
                                           size_t axis_count,
                                           const char *const *attributes,
                                           size_t attribute_count,
                                           const struct gridstone_call *call,
                                           gridstone_result *result);

/**
 * Reads a box of a dense array, whole, into buffers of the caller.
 *
 * @param array a dense array.
 * @param region one box, or 0: the whole domain.
 * @param order the order of the cells in the buffers: `GRIDSTONE_ORDER_ROW` or `_COLUMN`.
 * @param buffers one for each attribute that is wanted, each as large as the box; `filled_bytes` is set.
 * @param buffer_count how many.
 * @param call what goes with the call, or NULL.
 *
 * `GRIDSTONE_ERROR_INPUT`: a buffer has another size than the box; the message says which is needed. Cells that were not written are
 * the fill of their attribute. What buffers hold after an error is not specified.
 */
gridstone_status gridstone_array_read(gridstone_array array,
                                      gridstone_region region,
                                      uint32_t order,
                                      struct gridstone_buffer *buffers,
                                      size_t buffer_count,
                                      const struct gridstone_call *call);

/**
 * Begins a read that is given in portions as large as the buffers of each call, of sparse and dense arrays. It shows the version that
 * the array shows now, whatever is committed meanwhile.
 *
 * @param array the array.
 * @param options what is read, or NULL: all attributes of all cells.
 * @param call what goes with the call, or NULL.
 * @param read where the handle goes; free it with `gridstone_free`, also before the end.
 */
gridstone_status gridstone_read_create(gridstone_array array,
                                       const struct gridstone_read_options *options,
                                       const struct gridstone_call *call,
                                       gridstone_read *read);

/**
 * Fills buffers from their start with the next cells, as many whole cells as fit into all of them. No cell comes twice, and none is left
 * out.
 *
 * @param read the read.
 * @param buffers one for each dimension and attribute that is wanted; others may be given in each call.
 * @param buffer_count how many.
 * @param call what goes with the call, or NULL.
 * @param cells where the number of cells goes; 0 only after the last one.
 * @param complete where 1 goes once all cells were given, else 0; or NULL.
 *
 * `GRIDSTONE_ERROR_BUDGET`: the next cell does not fit; the message says which buffer is too small. `GRIDSTONE_ERROR_INPUT`: a buffer
 * is not of its column's kind. After both the read goes on with the same cells. After any other error it is over, as it is not known
 * which cells were given.
 */
gridstone_status gridstone_read_next(gridstone_read read,
                                     struct gridstone_buffer *buffers,
                                     size_t buffer_count,
                                     const struct gridstone_call *call,
                                     uint64_t *cells,
                                     int32_t *complete);

/**
 * What a read has done so far, as JSON: names of counters and their values. Free the text.
 *
 * @param read the read.
 * @param counters where the handle of the text goes.
 */
gridstone_status gridstone_read_counters(gridstone_read read, gridstone_text *counters);

/**
 * A receipt for staged writes: a text of JSON that other processes and machines commit with `gridstone_commit_receipts`. The cells lie
 * in files of the store, and nothing shows them before. The handles of the writes are used up, as by `gridstone_commit`, also where a
 * receipt cannot be made of them, and are still to be freed. Files of receipts that are never committed are deleted by a vacuum.
 *
 * @param array the array that they were staged for.
 * @param staged the handles.
 * @param count how many; of 0 the receipt commits nothing.
 * @param receipt where the handle of the text goes; free it with `gridstone_free`.
 *
 * `GRIDSTONE_ERROR_INPUT`: the array is part of a transaction that did not create it, or a write has a commit key, which is given with
 * the commit of receipts.
 */
gridstone_status gridstone_receipt(gridstone_array array,
                                   const gridstone_staged *staged,
                                   size_t count,
                                   gridstone_text *receipt);

/**
 * A receipt for a deletion of the cells that a condition selects of those that the array shows now, whenever it is committed. Cells
 * that others commit meanwhile stay.
 *
 * @param array an array that is open for writing, in no transaction.
 * @param region the cells that are looked at, or 0: the whole domain.
 * @param condition which of them, as "sog > 100".
 * @param call what goes with the call, or NULL; the message and the key are given with the commit.
 * @param receipt where the handle of the text goes; free it with `gridstone_free`.
 *
 * If fragments that it looked at have been merged by then, of a dense array with newer ones, the commit is refused:
 * `GRIDSTONE_ERROR_CONFLICT`. Refresh the array and make it again.
 */
gridstone_status gridstone_receipt_where(gridstone_array array,
                                         gridstone_region region,
                                         const char *condition,
                                         const struct gridstone_call *call,
                                         gridstone_text *receipt);

/**
 * Checks a receipt, and says how much it commits.
 *
 * @param receipt the text.
 * @param cells where the number of cells goes, or NULL.
 * @param bytes where the bytes of its files go, or NULL.
 *
 * `GRIDSTONE_ERROR_INPUT`: it is no receipt, or it was changed.
 */
gridstone_status gridstone_receipt_info(const char *receipt, uint64_t *cells, uint64_t *bytes);

/**
 * Commits receipts, of any arrays of one store, in one version: all of them, or none. Where cells of several lie at one place those of
 * the later one in the list stay.
 *
 * @param context the context.
 * @param uri the store.
 * @param receipts the texts.
 * @param count how many; 0 commits nothing and gives the newest version.
 * @param call its `message`, its `commit_key`, and its `cancel` until the commit begins, or NULL.
 * @param version where the version goes, or NULL. Arrays that are open show it after `gridstone_array_refresh`.
 *
 * `GRIDSTONE_ERROR_CONFLICT`: one was committed before, or its array was removed. `GRIDSTONE_ERROR_NOT_FOUND`: its file is gone. After an
 * error the files stay, so that the others can be committed.
 */
gridstone_status gridstone_commit_receipts(gridstone_context context,
                                           const char *uri,
                                           const char *const *receipts,
                                           size_t count,
                                           const struct gridstone_call *call,
                                           uint64_t *version);

/**
 * Makes a region without a box; add at least one before it is used. Free it with `gridstone_free`.
 *
 * @param region where the handle goes.
 */
gridstone_status gridstone_region_create(gridstone_region *region);

/**
 * Adds a box by integers: positions, or the ticks of times.
 *
 * @param region the region.
 * @param ends low and high end of each dimension in turn, both included.
 * @param count twice the number of dimensions.
 */
gridstone_status gridstone_region_add(gridstone_region region, const int64_t *ends, size_t count);

/**
 * As `gridstone_region_add`, by floats.
 *
 * @param region the region.
 * @param ends low and high end of each dimension in turn, both included.
 * @param count twice the number of dimensions.
 */
gridstone_status gridstone_region_add_floats(gridstone_region region, const double *ends, size_t count);

/**
 * As `gridstone_region_add`, by texts, for dimensions of any type: "12", "-0.5", "2026-03-01T06", "BRCA1". NULL is the end of the domain.
 *
 * A written date or time is a period, as "2026-03" is a month: a low end is its first instant, a high end its last. Ticks are written
 * "20454" or with their unit, "20454 D"; four digits alone could be a year or ticks, and are an error of the call that uses the region.
 *
 * @param region the region.
 * @param ends low and high end of each dimension in turn, both included.
 * @param count twice the number of dimensions.
 */
gridstone_status gridstone_region_add_texts(gridstone_region region,
                                            const char *const *ends,
                                            size_t count);

/**
 * Cuts a region, from now on, to the domain of each array that it is used with. Without it a box that reaches beyond the domain is
 * `GRIDSTONE_ERROR_BOUNDS`, but that a deletion without a condition reaches as far as its boxes.
 *
 * Where nothing is left, reads in portions, questions and deletions have no cells. A whole box that is read or written is
 * `GRIDSTONE_ERROR_BOUNDS`: ask `gridstone_region_cells` before.
 *
 * @param region the region.
 */
gridstone_status gridstone_region_cut(gridstone_region region);

/**
 * The cells of a region in an array, which tells how large buffers are for `gridstone_array_read`.
 *
 * @param array the array.
 * @param region the region, or 0: the whole domain.
 * @param cells where the number goes: positions, written or not. Several boxes give their sum, equal ones counted once, which is at
 * least what they have together. More than 64 bits hold are `UINT64_MAX`.
 *
 * `GRIDSTONE_ERROR_BOUNDS`: a box reaches beyond the domain, and the region is not cut.
 */
gridstone_status gridstone_region_cells(gridstone_array array,
                                        gridstone_region region,
                                        uint64_t *cells);

/**
 * The number of rows of a result: cells, or groups.
 *
 * @param result the result.
 * @param rows where the number goes.
 */
gridstone_status gridstone_result_rows(gridstone_result result, uint64_t *rows);

/**
 * The number of columns of a result.
 *
 * @param result the result.
 * @param columns where the number goes.
 */
gridstone_status gridstone_result_columns(gridstone_result result, uint64_t *columns);

/**
 * A column of a result: its name, its type, its values, their offsets and their validity. All pointers are the library's, to be read
 * only, and valid until the result is freed.
 *
 * @param result the result.
 * @param index which column, from 0.
 * @param column where it goes; set its `size` before. `offsets` is NULL if values are of fixed width, `validity` if none is null. Values
 * of an attribute with categories are codes, and `type` is that of the codes.
 */
gridstone_status gridstone_result_column(gridstone_result result,
                                         uint64_t index,
                                         struct gridstone_column *column);

/**
 * The index of the column of a name. `GRIDSTONE_ERROR_NOT_FOUND`: there is none.
 *
 * @param result the result.
 * @param name the name.
 * @param index where the index goes.
 */
gridstone_status gridstone_result_find(gridstone_result result, const char *name, uint64_t *index);

/**
 * The categories of a column, by code, as a JSON array of texts; `null` if its values are no codes. Free the text.
 *
 * @param result the result.
 * @param index which column, from 0.
 * @param categories where the handle of the text goes.
 */
gridstone_status gridstone_result_categories(gridstone_result result, uint64_t index, gridstone_text *categories);

/**
 * The sides of a result whose rows are an array of several axes in row order, as positions and reductions give it; of any other result
 * the number of its rows.
 *
 * @param result the result.
 * @param sides where the pointer goes; it is valid until the result is freed.
 * @param count where the number of axes goes.
 */
gridstone_status gridstone_result_shape(gridstone_result result,
                                        const uint64_t **sides,
                                        size_t *count);

/**
 * What was done for a result, as JSON: names of counters and their values. Free the text.
 *
 * @param result the result.
 * @param counters where the handle of the text goes.
 */
gridstone_status gridstone_result_counters(gridstone_result result, gridstone_text *counters);

/**
 * Begins a schema: add its dimensions and attributes, then create an array with it. Free it with `gridstone_free`.
 *
 * @param options what the array is like, or NULL: dense.
 * @param schema where the handle goes.
 */
gridstone_status gridstone_schema_create(const struct gridstone_schema_options *options,
                                         gridstone_schema *schema);

/**
 * Adds a dimension, behind those that were added before.
 *
 * @param schema a schema that is being described.
 * @param dimension the dimension.
 */
gridstone_status gridstone_schema_add_dimension(gridstone_schema schema, const struct gridstone_dimension *dimension);

/**
 * Adds a dimension of integers or times by numbers, which is shorter to write: the ends of its domain, both included, and the extent of
 * its tiles; 0: one tile.
 *
 * @param schema a schema that is being described.
 * @param name the name.
 * @param type "int8" to "uint64", "datetime64[s]", "timedelta64[ms]" …
 * @param low the low end of the domain, included; of times the ticks.
 * @param high the high end of the domain, included.
 * @param tile the extent of a tile, or 0.
 */
gridstone_status gridstone_schema_add_axis(gridstone_schema schema,
                                           const char *name,
                                           const char *type,
                                           int64_t low,
                                           int64_t high,
                                           uint64_t tile);

/**
 * Adds an attribute, behind those that were added before.
 *
 * @param schema a schema that is being described.
 * @param attribute the attribute.
 */
gridstone_status gridstone_schema_add_attribute(gridstone_schema schema, const struct gridstone_attribute *attribute);

/**
 * A schema of its JSON, as `gridstone_schema_json` gives it. Free it with `gridstone_free`.
 *
 * @param json the text.
 * @param schema where the handle goes.
 */
gridstone_status gridstone_schema_from_json(const char *json, gridstone_schema *schema);

/**
 * A schema as an object of JSON, with every option written out. `GRIDSTONE_ERROR_SCHEMA`: it is contradictory. Free the text.
 *
 * @param schema a schema, or an array, whose schema is given.
 * @param json where the handle of the text goes.
 */
gridstone_status gridstone_schema_json(gridstone_handle schema,
                                       gridstone_text *json);

/**
 * The groups, datasets and attributes of a file of HDF5, NetCDF or NumPy, or of a folder of Zarr, as JSON. Free the text.
 *
 * @param path the file or folder.
 * @param tree where the handle of the text goes.
 *
 * `GRIDSTONE_ERROR_STORAGE`: it cannot be read. `GRIDSTONE_ERROR_INPUT`: it is of another format.
 */
gridstone_status gridstone_tree(const char *path,
                                gridstone_text *tree);

/**
 * The state of a file now, as an array that it is attached to records it, as JSON: `uri`, `size`, `time_us`, `etag`. Free the text.
 *
 * @param array the array.
 * @param uri the file.
 * @param state where the handle of the text goes.
 *
 * `GRIDSTONE_ERROR_SOURCE_CHANGED`: there is no such file. `GRIDSTONE_ERROR_ACCESS`: the context does not allow it.
 */
gridstone_status gridstone_array_look_at_source(gridstone_array array,
                                                const char *uri,
                                                gridstone_text *state);

/**
 * Attaches files of another format, in one commit: their cells become those of a box of the array, and stay where they are.
 *
 * @param array an array that is open for writing.
 * @param spec what is attached, and where its chunks lie, as JSON.
 * @param call what goes with the call, or NULL.
 * @param version where the version of the commit goes, or NULL; the array shows it from now on.
 */
gridstone_status gridstone_array_attach(gridstone_array array,
                                        const char *spec,
                                        const struct gridstone_call *call,
                                        uint64_t *version);

/**
 * As `gridstone_array_attach`, without the commit.
 *
 * @param array an array that is open for writing.
 * @param spec what is attached, and where its chunks lie, as JSON.
 * @param call what goes with the call, or NULL.
 * @param staged where the handle goes; free it with `gridstone_free`.
 */
gridstone_status gridstone_stage_attached(gridstone_array array,
                                          const char *spec,
                                          const struct gridstone_call *call,
                                          gridstone_staged *staged);

/**
 * The files of other formats that cells of an array lie in, each once, with their state now, as a JSON array. Free the text.
 *
 * @param array the array.
 * @param call what goes with the call, or NULL.
 * @param sources where the handle of the text goes.
 */
gridstone_status gridstone_array_sources(gridstone_array array,
                                         const struct gridstone_call *call,
                                         gridstone_text *sources);

/**
 * The boxes of an array whose cells lie in files of other formats, oldest first, as a JSON array. Free the text.
 *
 * @param array the array.
 * @param call what goes with the call, or NULL.
 * @param boxes where the handle of the text goes.
 */
gridstone_status gridstone_array_attached(gridstone_array array,
                                          const struct gridstone_call *call,
                                          gridstone_text *boxes);

/**
 * Puts staged cells of files in the place of attached boxes whose files have changed, in one commit. What was written over these stays
 * over the new ones. The handles of what was staged are used up, as by
 * `gridstone_commit`, and are still to be freed.
 *
 * @param array the array that they were staged for.
 * @param staged the handles.
 * @param staged_count how many.
 * @param replaced the ids of the attached boxes.
 * @param replaced_count how many.
 * @param version where the version goes, or NULL; the array shows it from now on.
 *
 * `GRIDSTONE_ERROR_CONFLICT`: one of the boxes is no attached one any more.
 */
gridstone_status gridstone_array_replace_attached(gridstone_array array,
                                                  const gridstone_staged *staged,
                                                  size_t staged_count,
                                                  const char *const *replaced,
                                                  size_t replaced_count,
                                                  uint64_t *version);

/**
 * The message of the last call of this thread, in UTF-8; empty if it gave `GRIDSTONE_OK`. It says what was asked, what was found
 * and what to do. The text is the library's and valid until the next call of this thread.
 */
const char *gridstone_last_error(void);

/**
 * The status that the last call of this thread gave.
 */
gridstone_status gridstone_last_status(void);

/**
 * The `errno` of the operating system behind the error of the last call of this thread; 0 if there is none.
 */
int32_t gridstone_last_errno(void);

/**
 * The name of a status in small letters, as "not found"; "unknown" for any other number. The text is the library's, for ever.
 *
 * @param status what a call gave.
 */
const char *gridstone_status_name(gridstone_status status);

/**
 * The version of the library, as "0.1.0". The text is the library's, for ever.
 */
const char *gridstone_version(void);

/**
 * Creates an array in a store, which is made if there is none. The array is open for writing.
 *
 * @param context the context.
 * @param uri a folder, "s3://bucket/key", or "mem://name".
 * @param path where in the store, as "/runs/7"; NULL: "/", the array is the store.
 * @param schema the schema.
 * @param overwrite not 0: what is there is replaced by a new array.
 * @param array where the handle goes; free it with `gridstone_free`.
 */
gridstone_status gridstone_array_create(gridstone_context context,
                                        const char *uri,
                                        const char *path,
                                        gridstone_schema schema,
                                        int32_t overwrite,
                                        gridstone_array *array);

/**
 * Opens an array.
 *
 * @param context the context.
 * @param uri the store.
 * @param options path, version and mode, or NULL: "/", the newest version, for reading.
 * @param array where the handle goes; free it with `gridstone_free`.
 */
gridstone_status gridstone_array_open(gridstone_context context,
                                      const char *uri,
                                      const struct gridstone_open_options *options,
                                      gridstone_array *array);

/**
 * Whether there is a store: puts 1 or 0.
 *
 * @param context the context.
 * @param uri where the store would be.
 * @param exists where 1 or 0 goes.
 */
gridstone_status gridstone_store_exists(gridstone_context context, const char *uri, int32_t *exists);

/**
 * Deletes a store with all its versions. `GRIDSTONE_ERROR_NOT_FOUND`: there is none.
 *
 * @param context the context.
 * @param uri the store.
 */
gridstone_status gridstone_store_delete(gridstone_context context, const char *uri);

/**
 * The characters of a text, with a zero behind them, and how many bytes they are without it.
 *
 * @param text the text.
 * @param characters where the pointer goes; it is valid until the text is freed.
 * @param length_bytes where the length goes, or NULL.
 */
gridstone_status gridstone_text_get(gridstone_text text, const char **characters, size_t *length_bytes);

/**
 * Begins a transaction. It sees the newest version of the store, and what it has changed itself; others see nothing of it before its
 * commit. It serves one thread at a time, and ends with its commit, its abort, or when it is freed. Array handles of an ended transaction
 * read and write nothing more: `GRIDSTONE_ERROR_INPUT`. They are still to be freed.
 *
 * @param context the context.
 * @param uri a store that exists.
 * @param isolation `GRIDSTONE_ISOLATION_SNAPSHOT` or `_SERIALIZABLE`.
 * @param call the `commit_key` of its commit, or NULL.
 * @param transaction where the handle goes; free it with `gridstone_free`, which aborts it if it was not committed.
 */
gridstone_status gridstone_transaction_begin(gridstone_context context,
                                             const char *uri,
                                             uint32_t isolation,
                                             const struct gridstone_call *call,
                                             gridstone_transaction *transaction);

/**
 * The array at a path, for reading and writing in the transaction: what is committed through it is a part of the transaction, and takes
 * no message and no key.
 *
 * @param transaction the transaction.
 * @param path where in the store.
 * @param array where the handle goes; free it with `gridstone_free`, also after the transaction.
 */
gridstone_status gridstone_transaction_array(gridstone_transaction transaction,
                                             const char *path,
                                             gridstone_array *array);

/**
 * What lies at a path, as the transaction sees it.
 *
 * @param transaction the transaction.
 * @param path where in the store.
 * @param kind where `GRIDSTONE_KIND_ARRAY`, `GRIDSTONE_KIND_GROUP` or `GRIDSTONE_KIND_NONE` goes.
 */
gridstone_status gridstone_transaction_kind(gridstone_transaction transaction, const char *path, uint32_t *kind);

/**
 * What is in the group at a path, as the transaction sees it.
 *
 * @param transaction the transaction.
 * @param path where in the store.
 * @param children where the text goes, as `gridstone_group_children` gives it; free it with `gridstone_free`.
 */
gridstone_status gridstone_transaction_children(gridstone_transaction transaction,
                                                const char *path,
                                                gridstone_text *children);

/**
 * Creates an array in a transaction, and the groups above it that are missing.
 *
 * @param transaction the transaction.
 * @param path where in the store.
 * @param schema the schema.
 * @param overwrite not 0: what is there is replaced by a new array.
 * @param id the id of the array, 32 hexadecimal digits, or NULL: a new one. With the same id, path and schema, other processes write
 * cells of it in transactions of their own, which they abort after `gridstone_receipt`; this one adds the receipts.
 * @param array where the handle goes, as that of `gridstone_transaction_array`.
 *
 * `GRIDSTONE_ERROR_EXISTS`: something lies there, and `overwrite` is 0.
 */
gridstone_status gridstone_transaction_create_array(gridstone_transaction transaction,
                                                    const char *path,
                                                    gridstone_schema schema,
                                                    int32_t overwrite,
                                                    const char *id,
                                                    gridstone_array *array);

/**
 * Creates a group in a transaction, and those above it that are missing. One that is there is left as it is.
 *
 * @param transaction the transaction.
 * @param path where in the store.
 */
gridstone_status gridstone_transaction_create_group(gridstone_transaction transaction, const char *path);

/**
 * Removes what lies at a path, and everything below it, in a transaction.
 *
 * @param transaction the transaction.
 * @param path where in the store; not "/".
 */
gridstone_status gridstone_transaction_remove(gridstone_transaction transaction, const char *path);

/**
 * Moves what lies at a path, and everything below it, in a transaction; groups above the new path that are missing are created.
 *
 * @param transaction the transaction.
 * @param path where it lies.
 * @param target_path where it goes; nothing may lie there.
 */
gridstone_status gridstone_transaction_move(gridstone_transaction transaction,
                                            const char *path,
                                            const char *target_path);

/**
 * The value of a key of the metadata of what lies at a path, as the transaction sees it.
 *
 * @param transaction the transaction.
 * @param path where in the store.
 * @param key the key, or NULL: all keys with their values, as `gridstone_metadata_all` gives them.
 * @param value where the text goes; free it with `gridstone_free`.
 *
 * `GRIDSTONE_ERROR_NOT_FOUND`: there is no such key.
 */
gridstone_status gridstone_transaction_metadata(gridstone_transaction transaction,
                                                const char *path,
                                                const char *key,
                                                gridstone_text *value);

/**
 * Sets and removes keys of the metadata of what lies at a path, in a transaction.
 *
 * @param transaction the transaction.
 * @param path where in the store.
 * @param keys the keys.
 * @param values a text of JSON for each key; NULL removes the key.
 * @param count how many.
 */
gridstone_status gridstone_transaction_set_metadata(gridstone_transaction transaction,
                                                    const char *path,
                                                    const char *const *keys,
                                                    const char *const *values,
                                                    size_t count);

/**
 * Adds receipts to a transaction: their cells become a part of it.
 *
 * @param transaction the transaction.
 * @param receipts the texts.
 * @param count how many.
 */
gridstone_status gridstone_transaction_add_receipts(gridstone_transaction transaction,
                                                    const char *const *receipts,
                                                    size_t count);

/**
 * Commits a transaction in one version: all of it, or nothing. It has ended afterwards, also if that fails; one whose `call` was
 * cancelled before the commit began goes on.
 *
 * @param transaction the transaction.
 * @param call the `message` of the commit, and its `cancel` until the commit begins, or NULL. The key was given at the beginning.
 * @param version where the version goes, or NULL; without changes that which was read.
 *
 * `GRIDSTONE_ERROR_CONFLICT`: another commit has changed what this one rests on; begin again.
 */
gridstone_status gridstone_transaction_commit(gridstone_transaction transaction,
                                              const struct gridstone_call *call,
                                              uint64_t *version);

/**
 * Gives up a transaction: nothing of it remains. One that has ended stays as it is.
 *
 * @param transaction the transaction; it is still to be freed.
 */
gridstone_status gridstone_transaction_abort(gridstone_transaction transaction);

/**
 * The version that a transaction reads.
 *
 * @param transaction the transaction.
 * @param version where the version goes.
 */
gridstone_status gridstone_transaction_base_version(gridstone_transaction transaction, uint64_t *version);

/**
 * The version that a transaction was committed as; 0 if it was not.
 *
 * @param transaction the transaction.
 * @param version where the version goes.
 * @param open where 1 goes if it has neither been committed nor aborted, else 0; or NULL.
 */
gridstone_status gridstone_transaction_version(gridstone_transaction transaction, uint64_t *version, int32_t *open);

/**
 * Merges fragments of an array, in commits of their own; what it reads as stays. Readers and writers go on meanwhile.
 *
 * @param array an array that is open for writing.
 * @param options what is merged, or NULL.
 * @param call what goes with the call, or NULL.
 * @param report where the text goes, an object of JSON that says what was merged, or NULL; free it with `gridstone_free`.
 *
 * `GRIDSTONE_ERROR_CANCELLED`: merges that were committed by then stay.
 */
gridstone_status gridstone_array_consolidate(gridstone_array array,
                                             const struct gridstone_consolidate_options *options,
                                             const struct gridstone_call *call,
                                             gridstone_text *report);

/**
 * Starts a consolidation that goes on in the background. The array stays at its version.
 *
 * @param array an array that is open for writing.
 * @param options what is merged, or NULL.
 * @param upkeep where the handle goes; free it with `gridstone_free`, which does not stop it.
 *
 * `GRIDSTONE_ERROR_INPUT`: the array is being consolidated in the background already.
 */
gridstone_status gridstone_array_consolidate_begin(gridstone_array array,
                                                   const struct gridstone_consolidate_options *options,
                                                   gridstone_upkeep *upkeep);

/**
 * The consolidation of an array that the context's policy has started and that goes on.
 *
 * @param array the array.
 * @param upkeep where the handle goes, or 0 if there is none; free it with `gridstone_free`.
 */
gridstone_status gridstone_array_upkeep(gridstone_array array, gridstone_upkeep *upkeep);

/**
 * Waits for a consolidation in the background. Many threads may wait for one.
 *
 * @param upkeep the consolidation.
 * @param milliseconds how long at most; 0 only looks.
 * @param done where 1 goes if it has ended, else 0.
 * @param report where the text goes if it has ended, as that of `gridstone_array_consolidate`, else 0; or NULL. Free it with
 * `gridstone_free`.
 *
 * If it has ended with an error, that is the error of this call.
 */
gridstone_status gridstone_upkeep_wait(gridstone_upkeep upkeep,
                                       uint64_t milliseconds,
                                       int32_t *done,
                                       gridstone_text *report);

/**
 * Stops a consolidation in the background at its next block; merges that were committed stay. Safe to call from any thread.
 *
 * @param upkeep the consolidation.
 */
gridstone_status gridstone_upkeep_cancel(gridstone_upkeep upkeep);

/**
 * Forgets old versions of a whole store, and deletes what only they needed. The newest version, tagged ones and those that a reader uses
 * stay, and so does everything after the oldest of them.
 *
 * @param node an array or group of the store that is open for writing.
 * @param options what stays, or NULL.
 * @param call what goes with the call, or NULL.
 * @param report where the text goes, an object of JSON that says what was deleted, or NULL; free it with `gridstone_free`.
 */
gridstone_status gridstone_vacuum(gridstone_handle node,
                                  const struct gridstone_vacuum_options *options,
                                  const struct gridstone_call *call,
                                  gridstone_text *report);

/**
 * Forgets old versions of the copy of a history, without a commit, so that it can be brought up to date afterwards.
 *
 * @param context the context.
 * @param uri a store that `gridstone_store_copy` made with `history`.
 * @param options what stays, or NULL.
 * @param call what goes with the call, or NULL.
 * @param report where the text goes, as that of `gridstone_vacuum`; free it with `gridstone_free`.
 */
gridstone_status gridstone_store_forget(gridstone_context context,
                                        const char *uri,
                                        const struct gridstone_vacuum_options *options,
                                        const struct gridstone_call *call,
                                        gridstone_text *report);

/**
 * Reads and checks every byte of an array at the version that it shows. Damage is reported and no error.
 *
 * @param array the array.
 * @param call what goes with the call, or NULL.
 * @param report where the text goes, an object of JSON; its list `damage` is empty if all is well. Free it with `gridstone_free`.
 */
gridstone_status gridstone_array_verify(gridstone_array array,
                                        const struct gridstone_call *call,
                                        gridstone_text *report);

/**
 * Checks everything that a kept version of a store needs, also where nothing of it can be opened. Damage is reported and no error.
 *
 * @param context the context.
 * @param uri the store.
 * @param call what goes with the call, or NULL.
 * @param report where the text goes, an object of JSON; free it with `gridstone_free`.
 */
gridstone_status gridstone_store_verify(gridstone_context context,
                                        const char *uri,
                                        const struct gridstone_call *call,
                                        gridstone_text *report);

/**
 * Makes damaged and lost objects of a store again, as far as the rest of it tells how.
 *
 * @param context the context.
 * @param uri the store.
 * @param dry_run not 0: only says what would be done.
 * @param cut not 0: the log is cut at its last sound version, if it is not sound to its end.
 * @param call what goes with the call, or NULL.
 * @param report where the text goes, an object of JSON that says what was done and what is left; free it with `gridstone_free`.
 */
gridstone_status gridstone_store_repair(gridstone_context context,
                                        const char *uri,
                                        int32_t dry_run,
                                        int32_t cut,
                                        const struct gridstone_call *call,
                                        gridstone_text *report);

/**
 * Writes a box of a dense array, in one commit. Cells at coordinates are for `gridstone_array_write_cells`.
 *
 * @param array an array that is open for writing.
 * @param region the box, or 0: the whole domain.
 * @param order how the values of the box lie: `GRIDSTONE_ORDER_ROW` or `_COLUMN`.
 * @param columns the attributes, a value for each cell of the box; those that are left out keep what they are.
 * @param count how many.
 * @param call what goes with the call, or NULL.
 * @param version where the version of the commit goes, or NULL; the array shows it from now on.
 */
gridstone_status gridstone_array_write(gridstone_array array,
                                       gridstone_region region,
                                       uint32_t order,
                                       const struct gridstone_column *columns,
                                       size_t count,
                                       const struct gridstone_call *call,
                                       uint64_t *version);

/**
 * Writes cells at coordinates, in one commit; into sparse and dense arrays.
 *
 * @param array an array that is open for writing.
 * @param columns the coordinates of every dimension, and attributes, each with a value for each cell.
 * @param count how many.
 * @param how in which order they come, and what becomes of several at one place, or NULL.
 * @param call what goes with the call, or NULL.
 * @param version where the version of the commit goes, or NULL; the array shows it from now on.
 */
gridstone_status gridstone_array_write_cells(gridstone_array array,
                                             const struct gridstone_column *columns,
                                             size_t count,
                                             const struct gridstone_cells_options *how,
                                             const struct gridstone_call *call,
                                             uint64_t *version);

/**
 * As `gridstone_array_write`, without the commit: many threads or processes stage, and one commits all of it. Free the handle; what
 * was not committed by then is deleted.
 *
 * @param array an array that is open for writing.
 * @param region one box, or 0: the whole domain.
 * @param order the order of the cells in the columns: `GRIDSTONE_ORDER_ROW` or `_COLUMN`.
 * @param columns a column for each attribute.
 * @param count how many columns.
 * @param call what goes with the call, or NULL.
 * @param staged where the handle goes; free it with `gridstone_free`.
 */
gridstone_status gridstone_stage(gridstone_array array,
                                 gridstone_region region,
                                 uint32_t order,
                                 const struct gridstone_column *columns,
                                 size_t count,
                                 const struct gridstone_call *call,
                                 gridstone_staged *staged);

/**
 * As `gridstone_array_write_cells`, without the commit.
 *
 * @param array an array that is open for writing.
 * @param columns a column for each dimension and attribute; all have as many values.
 * @param count how many columns.
 * @param how what is asked of the cells, or NULL.
 * @param call what goes with the call, or NULL.
 * @param staged where the handle goes; free it with `gridstone_free`.
 */
gridstone_status gridstone_stage_cells(gridstone_array array,
                                       const struct gridstone_column *columns,
                                       size_t count,
                                       const struct gridstone_cells_options *how,
                                       const struct gridstone_call *call,
                                       gridstone_staged *staged);

/**
 * Commits staged writes in one version: all of them, or none. Their handles are used up, and are still to be freed.
 *
 * Handles of writes for another array, of which one is used up or in use by another thread, and those of a commit that was cancelled
 * before it began stay as they are. After any other error they are used up, and what they wrote is deleted, unless
 * `GRIDSTONE_ERROR_COMMIT_UNKNOWN` says that the commit may have happened.
 *
 * @param array the array that they were staged for.
 * @param staged the handles.
 * @param count how many; 0 commits nothing.
 * @param call its `message`, and its `cancel` until the commit begins, or NULL. A `commit_key` and `GRIDSTONE_CALL_GROW` belong to the
 * calls that stage, and are refused here.
 * @param version where the version goes, or NULL; the array shows it from now on.
 */
gridstone_status gridstone_commit(gridstone_array array,
                                  const gridstone_staged *staged,
                                  size_t count,
                                  const struct gridstone_call *call,
                                  uint64_t *version);

/**
 * Starts a write whose cells come a portion at a time, in bounded memory. Nothing is seen of it before a commit. A writer serves one
 * thread at a time. Freed before its end it is aborted, and its files are gone.
 *
 * @param array an array that is open for writing.
 * @param options what is written, and in which order it comes, or NULL: all attributes of the domain in global order.
 * @param call the `commit_key` of its commit and `GRIDSTONE_CALL_GROW`, or NULL.
 * @param writer where the handle goes; free it with `gridstone_free`.
 */
gridstone_status gridstone_writer_create(gridstone_array array,
                                         const struct gridstone_writer_options *options,
                                         const struct gridstone_call *call,
                                         gridstone_writer *writer);

/**
 * Appends cells to a writer.
 *
 * @param writer the writer.
 * @param columns the writer's attributes, each with a value for each cell, and the coordinates of every dimension. A writer of a dense
 * array in global order takes no coordinates: the cells are those behind the last ones.
 * @param count how many.
 * @param call what goes with the call, or NULL.
 *
 * A null pointer, a wrong name or type, and a text that is none leave the writer as it is. After any other error, and after a cancel, it
 * is closed and what it wrote is gone. `GRIDSTONE_ERROR_BUSY`: another thread is using it.
 */
gridstone_status gridstone_writer_append(gridstone_writer writer,
                                         const struct gridstone_column *columns,
                                         size_t count,
                                         const struct gridstone_call *call);

/**
 * Ends a writer: what it has is a staged write, for `gridstone_commit` or `gridstone_receipt`. The writer is used up, also if it fails,
 * and is still to be freed.
 *
 * @param writer the writer.
 * @param call what goes with the call, or NULL.
 * @param staged where the handle of the staged write goes; free it with `gridstone_free`.
 *
 * `GRIDSTONE_ERROR_INPUT`: the box is not complete, or two cells lie at one place; what was written is gone.
 */
gridstone_status gridstone_writer_finish(gridstone_writer writer,
                                         const struct gridstone_call *call,
                                         gridstone_staged *staged);

/**
 * Gives up a writer: its files are deleted. It is used up, and is still to be freed; freeing one that was not finished does the same.
 *
 * @param writer the writer.
 *
 * `GRIDSTONE_ERROR_BUSY`: another thread is using it; cancel that call first.
 */
gridstone_status gridstone_writer_abort(gridstone_writer writer);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* GRIDSTONE_H */
