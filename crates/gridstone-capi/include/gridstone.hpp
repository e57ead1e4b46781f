/*
 * Gridstone for C++17 and later: handles that free themselves, errors as exceptions, columns that know their types. Header only; all that
 * it does is in gridstone.h, whose first page holds here too. `handle.get()` gives the handle for what has no class here.
 *
 * - Objects are moved, not copied. One that was moved from, or made without arguments, holds none: its calls throw HandleError.
 * - Calls that fail throw a class of gridstone::Error. Destructors throw nothing; a Writer or Transaction that was not finished is undone.
 * - A Column does not own its values: they stay where they are until the call has returned.
 */

#ifndef GRIDSTONE_HPP
#define GRIDSTONE_HPP

#include "gridstone.h"
#include "gridstone/calls.hpp"
#include "gridstone/columns.hpp"
#include "gridstone/reads.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace gridstone {

/* ---- contexts ---- */

/** Threads, a memory budget and a cache. One is enough for a program. */
class Context : public Handle {
public:
    Context() : Context(sized<gridstone_context_options>()) {}

    /** With choices: `auto options = gridstone::sized<gridstone_context_options>(); options.threads = 4;` */
    explicit Context(const gridstone_context_options &options)
        : Handle(detail::made<gridstone_context>(gridstone_context_create, &options)) {}

    uint64_t peak_bytes() const { return detail::made<uint64_t>(gridstone_context_peak_bytes, get()); }
    bool exists(const std::string &uri) const { return detail::made<int32_t>(gridstone_store_exists, get(), uri.c_str()) != 0; }
    void remove(const std::string &uri) const { check(gridstone_store_delete(get(), uri.c_str())); }

    /** Gives a version a name, which keeps it from being vacuumed; 0 is the newest. Gives the version. */
    uint64_t tag(const std::string &uri, const std::string &name, uint64_t version = 0, bool replace = false) const {
        return detail::made<uint64_t>(gridstone_store_tag, get(), uri.c_str(), name.c_str(), version, static_cast<int32_t>(replace));
    }
    uint64_t untag(const std::string &uri, const std::string &name) const {
        return detail::made<uint64_t>(gridstone_store_untag, get(), uri.c_str(), name.c_str());
    }

    /**
     * Copies a version of a store to another, or what lies in it, or its history: `auto how = sized<gridstone_copy_options>(); how.path = …`.
     * The target may be of another context, with its key. Gives a report as JSON.
     */
    std::string copy(const std::string &uri, const std::string &target, const gridstone_copy_options &how = sized<gridstone_copy_options>(),
                     const Call &call = {}, const Context *target_context = nullptr) const {
        const gridstone_context other = target_context == nullptr ? 0 : target_context->get();
        gridstone_text report = 0;
        call.run([&](const gridstone_call *raw) {
            return gridstone_store_copy(get(), uri.c_str(), other, target.c_str(), &how, raw, &report);
        });
        return detail::text_of(Handle(report));
    }

    /** Moves what lies at a path of a store, and everything below it, in one commit, and gives its version. */
    uint64_t move(const std::string &uri, const std::string &path, const std::string &target_path, const Call &call = {}) const {
        uint64_t version = 0;
        call.run([&](const gridstone_call *raw) {
            return gridstone_store_move(get(), uri.c_str(), path.c_str(), target_path.c_str(), raw, &version);
        });
        return version;
    }

    /** Commits receipts, texts that `Array::receipt` made in any process, in one version. */
    uint64_t commit(const std::string &uri, const std::vector<std::string> &receipts, const Call &call = {}) const {
        const std::vector<const char *> raws = detail::pointers(receipts);
        uint64_t version = 0;
        call.run([&](const gridstone_call *raw) {
            return gridstone_commit_receipts(get(), uri.c_str(), raws.data(), raws.size(), raw, &version);
        });
        return version;
    }
};

/* ---- schemas ---- */

/** A schema: begin with `Schema::dense()` or `Schema::sparse()`, add axes and attributes in turn. */
class Schema : public Handle {
public:
    explicit Schema(const gridstone_schema_options &options) : Handle(detail::made<gridstone_schema>(gridstone_schema_create, &options)) {}

    static Schema dense() { return Schema(sized<gridstone_schema_options>()); }
    static Schema sparse(bool duplicates = false) {
        auto options = sized<gridstone_schema_options>();
        options.sparse = 1;
        options.duplicates = duplicates;
        return Schema(options);
    }
    static Schema from_json(const std::string &json) {
        return Schema(Handle(detail::made<gridstone_schema>(gridstone_schema_from_json, json.c_str())));
    }

    /** Adds a dimension of integers or times; both ends are included, and a tile of 0 is one tile. */
    template <class T> Schema &axis(const std::string &name, int64_t low, int64_t high, uint64_t tile = 0) {
        return axis(name, type_name<T>::get(), low, high, tile);
    }
    Schema &axis(const std::string &name, const std::string &type, int64_t low, int64_t high, uint64_t tile = 0) {
        check(gridstone_schema_add_axis(get(), name.c_str(), type.c_str(), low, high, tile));
        return *this;
    }

    /** Adds a dimension of any type; ends and tile are texts, and an empty one is left out. */
    Schema &dimension(const std::string &name, const std::string &type, const std::string &low = "", const std::string &high = "",
                      const std::string &tile = "") {
        auto raw = sized<gridstone_dimension>();
        raw.name = name.c_str();
        raw.type = type.c_str();
        raw.low = detail::or_null(low);
        raw.high = detail::or_null(high);
        raw.tile = detail::or_null(tile);
        check(gridstone_schema_add_dimension(get(), &raw));
        return *this;
    }

    /** Adds an attribute; an empty text leaves its choice to the library. */
    template <class T> Schema &attribute(const std::string &name, bool nullable = false, const std::string &filters = "") {
        auto raw = sized<gridstone_attribute>();
        const std::string type = type_name<T>::get();
        raw.name = name.c_str();
        raw.type = type.c_str();
        raw.nullable = nullable;
        raw.filters = detail::or_null(filters);
        return attribute(raw);
    }
    Schema &attribute(const gridstone_attribute &raw) {
        check(gridstone_schema_add_attribute(get(), &raw));
        return *this;
    }

    std::string json() const { return detail::text(gridstone_schema_json, get()); }

private:
    explicit Schema(Handle handle) : Handle(std::move(handle)) {}
};

/* ---- arrays ---- */

/** An array at one version of its store. Many threads may use one. */
class Array : public Handle {
public:
    using Handle::Handle;

    static Array create(const Context &context, const std::string &uri, const Schema &schema, const std::string &path = "/",
                        bool overwrite = false) {
        return Array(detail::made<gridstone_array>(gridstone_array_create, context.get(), uri.c_str(), path.c_str(), schema.get(),
                                                   static_cast<int32_t>(overwrite)));
    }
    static Array open(const Context &context, const std::string &uri, const Open &how = {}) {
        const gridstone_open_options raw = how.raw();
        return Array(detail::made<gridstone_array>(gridstone_array_open, context.get(), uri.c_str(), &raw));
    }

    uint64_t version() const { return detail::made<uint64_t>(gridstone_array_version, get()); }
    uint64_t ndim() const { return detail::made<uint64_t>(gridstone_array_ndim, get()); }
    bool sparse() const { return detail::made<int32_t>(gridstone_array_sparse, get()) != 0; }
    std::string uri() const { return detail::text(gridstone_array_uri, get()); }
    std::string path() const { return detail::text(gridstone_array_path, get()); }
    std::string schema_json() const { return detail::text(gridstone_schema_json, get()); }
    std::string nonempty_domain_json() const { return detail::text(gridstone_array_nonempty_domain, get()); }

    std::string fragments_json() const { return detail::text(gridstone_array_fragments, get()); }
    std::string history_json(const Call &call = {}) const { return detail::history(*this, call); }
    std::string tags_json() const { return detail::text(gridstone_tags, get()); }

    /** When its version was committed. */
    std::chrono::system_clock::time_point time() const {
        const std::chrono::microseconds since(detail::made<int64_t>(gridstone_array_time_us, get()));
        return std::chrono::system_clock::time_point(std::chrono::duration_cast<std::chrono::system_clock::duration>(since));
    }

    /** Moves on to the newest version, and gives it. */
    uint64_t refresh() { return detail::made<uint64_t>(gridstone_array_refresh, get()); }

    /** The same array at another version, for reading. */
    Array at(const Open &how) const {
        const gridstone_open_options raw = how.raw();
        return Array(detail::made<gridstone_array>(gridstone_array_at, get(), &raw));
    }

    /** Reads a box of a dense array into rooms as large as the box. */
    template <class First, class... Rooms, class = detail::if_room<First>>
    void read(const Region &region, First &first, Rooms &...rooms) const {
        read(region, Call(), first, rooms...);
    }
    template <class First, class... Rooms> void read(const Region &region, const Call &call, First &first, Rooms &...rooms) const {
        detail::fill(
            call,
            [&](auto *raw, size_t count, auto *with) {
                return gridstone_array_read(get(), region.raw(), GRIDSTONE_ORDER_ROW, raw, count, with);
            },
            first, rooms...);
    }

    /** Begins a read in portions. */
    Read read(const Reading &what = {}, const Call &call = {}) const {
        gridstone_read read = 0;
        what.run([&](const auto *options) {
            call.run([&](const gridstone_call *raw) { return gridstone_read_create(get(), options, raw, &read); });
            return GRIDSTONE_OK;
        });
        return Read(read);
    }

    /** Reads all cells, with their coordinates. */
    Result read_all(const Reading &what = {}, const Call &call = {}) const {
        gridstone_result result = 0;
        what.run([&](const auto *options) {
            call.run([&](const gridstone_call *raw) { return gridstone_array_read_all(get(), options, raw, &result); });
            return GRIDSTONE_OK;
        });
        return Result(result);
    }

    /** Reads single cells at coordinates; all attributes, unless some are named. */
    Result points(const std::vector<Column> &coordinates, const std::vector<std::string> &attributes = {}, const Call &call = {}) const {
        const std::vector<gridstone_column> raws = detail::raws(coordinates);
        const std::vector<const char *> names = detail::pointers(attributes);
        gridstone_result result = 0;
        call.run([&](const gridstone_call *raw) {
            return gridstone_array_points(get(), raws.data(), raws.size(), names.empty() ? nullptr : names.data(), names.size(), raw, &result);
        });
        return Result(result);
    }

    /** Reads what is chosen along each dimension of a dense array; all attributes, unless some are named. */
    Result positions(const std::vector<Positions> &axes, const std::vector<std::string> &attributes = {}, const Call &call = {}) const {
        std::vector<gridstone_positions> raws;
        for (const Positions &axis : axes) raws.push_back(axis.raw());
        const std::vector<const char *> names = detail::pointers(attributes);
        gridstone_result result = 0;
        call.run([&](const gridstone_call *raw) {
            return gridstone_array_positions(get(), raws.data(), raws.size(), names.empty() ? nullptr : names.data(), names.size(), raw,
                                             &result);
        });
        return Result(result);
    }

    /** How many cells a region has here, written or not: the size of buffers for `read`. */
    uint64_t cells(const Region &region = {}) const { return detail::made<uint64_t>(gridstone_region_cells, get(), region.raw()); }

    /** How many cells a region and a condition select. */
    uint64_t count(const Region &region = {}, const std::optional<std::string> &condition = std::nullopt, const Call &call = {}) const {
        uint64_t cells = 0;
        call.run([&](const gridstone_call *raw) {
            return gridstone_array_count(get(), region.raw(), condition ? condition->c_str() : nullptr, raw, &cells);
        });
        return cells;
    }

    /** Aggregates by groups: `auto question = gridstone::sized<gridstone_question>(); …`. */
    Result aggregate(const gridstone_question &question, const Call &call = {}) const {
        gridstone_result result = 0;
        call.run([&](const gridstone_call *raw) { return gridstone_array_aggregate(get(), &question, raw, &result); });
        return Result(result);
    }

    /** The same in batches. */
    Answers answers(const gridstone_question &question, const Call &call = {}) const {
        gridstone_answers answers = 0;
        call.run([&](const gridstone_call *raw) { return gridstone_answers_create(get(), &question, raw, &answers); });
        return Answers(answers);
    }

    /** Writes a box in one commit, and gives its version. */
    uint64_t write(const Region &region, const std::vector<Column> &columns, const Call &call = {},
                   uint32_t order = GRIDSTONE_ORDER_ROW) {
        const std::vector<gridstone_column> raws = detail::raws(columns);
        uint64_t version = 0;
        call.run([&](const gridstone_call *raw) {
            return gridstone_array_write(get(), region.raw(), order, raws.data(), raws.size(), raw, &version);
        });
        return version;
    }

    /** Writes cells at coordinates in one commit, and gives its version. */
    uint64_t write_cells(const std::vector<Column> &columns, const Call &call = {}, uint32_t dedup = GRIDSTONE_DEDUP_ERROR) {
        const std::vector<gridstone_column> raws = detail::raws(columns);
        auto how = sized<gridstone_cells_options>();
        how.dedup = dedup;
        uint64_t version = 0;
        call.run([&](const gridstone_call *raw) {
            return gridstone_array_write_cells(get(), raws.data(), raws.size(), &how, raw, &version);
        });
        return version;
    }

    /** Writes the cells of a stream of Arrow in one commit, and gives its version. The stream is moved away in any case. */
    uint64_t write_arrow(ArrowArrayStream *stream, const Call &call = {}, uint32_t dedup = GRIDSTONE_DEDUP_ERROR) {
        auto how = sized<gridstone_cells_options>();
        how.dedup = dedup;
        uint64_t version = 0;
        call.run([&](const gridstone_call *raw) { return gridstone_array_write_arrow(get(), stream, &how, raw, &version); });
        return version;
    }

    /** Writes a box without the commit. */
    Staged stage(const Region &region, const std::vector<Column> &columns, const Call &call = {},
                 uint32_t order = GRIDSTONE_ORDER_ROW) const {
        const std::vector<gridstone_column> raws = detail::raws(columns);
        gridstone_staged staged = 0;
        call.run([&](const gridstone_call *raw) {
            return gridstone_stage(get(), region.raw(), order, raws.data(), raws.size(), raw, &staged);
        });
        return Staged(staged);
    }

    /** Writes cells without the commit. */
    Staged stage_cells(const std::vector<Column> &columns, const Call &call = {}, uint32_t dedup = GRIDSTONE_DEDUP_ERROR) const {
        const std::vector<gridstone_column> raws = detail::raws(columns);
        auto how = sized<gridstone_cells_options>();
        how.dedup = dedup;
        gridstone_staged staged = 0;
        call.run([&](const gridstone_call *raw) {
            return gridstone_stage_cells(get(), raws.data(), raws.size(), &how, raw, &staged);
        });
        return Staged(staged);
    }

    /**
     * Commits what was staged in one version, all of it or none. Nothing is left in `staged` to commit then; gridstone_commit says what is
     * left after an error. A key and growing belong to the calls that stage.
     */
    uint64_t commit(const std::vector<Staged> &staged, const Call &call = {}) {
        const std::vector<gridstone_staged> raws = detail::handles(staged);
        uint64_t version = 0;
        call.run([&](const gridstone_call *raw) { return gridstone_commit(get(), raws.data(), raws.size(), raw, &version); });
        return version;
    }

    /** A text that another process or machine commits, with `Context::commit`. */
    std::string receipt(const std::vector<Staged> &staged) const {
        const std::vector<gridstone_staged> raws = detail::handles(staged);
        return detail::text(gridstone_receipt, get(), raws.data(), raws.size());
    }

    /** Starts a write in global order, of a box or the whole domain, whose values come a portion at a time. */
    Writer writer(const Region &region = {}, const Call &call = {}) const {
        auto how = sized<gridstone_writer_options>();
        how.region = region.raw();
        return writer(how, call);
    }
    /** Starts a write of cells in any order. */
    Writer unsorted_writer(uint32_t dedup = GRIDSTONE_DEDUP_ERROR, const Call &call = {}) const {
        auto how = sized<gridstone_writer_options>();
        how.kind = GRIDSTONE_WRITER_UNSORTED;
        how.dedup = dedup;
        return writer(how, call);
    }
    Writer writer(const gridstone_writer_options &how, const Call &call = {}) const {
        gridstone_writer writer = 0;
        call.run([&](const gridstone_call *raw) { return gridstone_writer_create(get(), &how, raw, &writer); });
        return Writer(writer);
    }

    /** Deletes cells of a region, those that a condition selects, or without one all of them, in one commit. */
    uint64_t remove(const Region &region, const std::optional<std::string> &condition = std::nullopt, const Call &call = {}) {
        uint64_t version = 0;
        call.run([&](const gridstone_call *raw) {
            return gridstone_array_delete(get(), region.raw(), condition ? condition->c_str() : nullptr, raw, &version);
        });
        return version;
    }

    /** Deletes the cells at coordinates, in one commit. */
    uint64_t remove_cells(const std::vector<Column> &coordinates, const Call &call = {}) {
        const std::vector<gridstone_column> raws = detail::raws(coordinates);
        uint64_t version = 0;
        call.run([&](const gridstone_call *raw) {
            return gridstone_array_delete_cells(get(), raws.data(), raws.size(), raw, &version);
        });
        return version;
    }

    /** Merges fragments: "tiered", "all", "updates" or "manifest". Gives a report as JSON. */
    std::string consolidate(const std::string &strategy = "tiered", const Call &call = {}) {
        auto how = sized<gridstone_consolidate_options>();
        how.strategy = strategy.c_str();
        gridstone_text report = 0;
        call.run([&](const gridstone_call *raw) { return gridstone_array_consolidate(get(), &how, raw, &report); });
        return detail::text_of(Handle(report));
    }

    /** Forgets versions and deletes what only they need. Gives a report as JSON. */
    std::string vacuum(const gridstone_vacuum_options &how = sized<gridstone_vacuum_options>(), const Call &call = {}) {
        gridstone_text report = 0;
        call.run([&](const gridstone_call *raw) { return gridstone_vacuum(get(), &how, raw, &report); });
        return detail::text_of(Handle(report));
    }

    /** Metadata as JSON: the value of a key, all of them, and setting one. */
    std::string metadata_json(const std::string &key) const {
        return detail::text(gridstone_metadata_get, get(), static_cast<const char *>(nullptr), key.c_str());
    }
    std::string metadata_json() const { return detail::text(gridstone_metadata_all, get(), static_cast<const char *>(nullptr)); }
    void set_metadata_json(const std::string &key, const std::string &json) {
        const char *keys[] = {key.c_str()}, *values[] = {json.c_str()};
        check(gridstone_metadata_set(get(), nullptr, keys, values, 1, nullptr));
    }
};

/* ---- groups ---- */

/** A group at one version of its store. Many threads may use one. */
class Group : public Handle {
public:
    using Handle::Handle;

    /** Creates a group, or opens the one that is there, for writing. */
    static Group create(const Context &context, const std::string &uri, const std::string &path = "/") {
        return Group(detail::made<gridstone_group>(gridstone_group_create, context.get(), uri.c_str(), path.c_str()));
    }
    static Group open(const Context &context, const std::string &uri, const Open &how = {}) {
        const gridstone_open_options raw = how.raw();
        return Group(detail::made<gridstone_group>(gridstone_group_open, context.get(), uri.c_str(), &raw));
    }

    uint64_t version() const { return detail::made<uint64_t>(gridstone_group_version, get()); }
    uint64_t refresh() { return detail::made<uint64_t>(gridstone_group_refresh, get()); }
    std::string path() const { return detail::text(gridstone_group_path, get()); }
    std::string children_json() const { return detail::text(gridstone_group_children, get()); }
    std::string walk_json() const { return detail::text(gridstone_group_walk, get()); }
    std::string history_json(const Call &call = {}) const { return detail::history(*this, call); }
    std::string tags_json() const { return detail::text(gridstone_tags, get()); }
    bool contains(const std::string &name) const { return detail::made<int32_t>(gridstone_group_contains, get(), name.c_str()) != 0; }

    /** What is called so in the group, at the group's version; an InputError if it is of the other kind. */
    Array array(const std::string &name) const { return Array(child(name, GRIDSTONE_KIND_ARRAY, "an array").release()); }
    Group group(const std::string &name) const { return Group(child(name, GRIDSTONE_KIND_GROUP, "a group").release()); }

    Array create_array(const std::string &name, const Schema &schema, bool overwrite = false) {
        return Array(detail::made<gridstone_array>(gridstone_group_create_array, get(), name.c_str(), schema.get(),
                                                   static_cast<int32_t>(overwrite)));
    }
    Group create_group(const std::string &name) {
        return Group(detail::made<gridstone_group>(gridstone_group_create_group, get(), name.c_str()));
    }

    /** Removes or moves what is called so with all below it, in one commit, and gives its version. */
    uint64_t remove(const std::string &name, const Call &call = {}) {
        uint64_t version = 0;
        call.run([&](const gridstone_call *raw) { return gridstone_group_remove(get(), name.c_str(), raw, &version); });
        return version;
    }
    uint64_t move(const std::string &name, const std::string &target, const Call &call = {}) {
        uint64_t version = 0;
        call.run([&](const gridstone_call *raw) { return gridstone_group_move(get(), name.c_str(), target.c_str(), raw, &version); });
        return version;
    }

private:
    Handle child(const std::string &name, uint32_t wanted, const char *kind) const {
        gridstone_handle raw = 0;
        uint32_t found = GRIDSTONE_KIND_NONE;
        check(gridstone_group_open_child(get(), name.c_str(), &raw, &found));
        Handle child(raw);
        if (found != wanted) throw InputError(0, "\"" + name + "\" is not " + kind);
        return child;
    }
};

/* ---- transactions ---- */

/** Changes to several arrays that become one version; one that was not committed is undone. */
class Transaction : public Handle {
public:
    Transaction(const Context &context, const std::string &uri, uint32_t isolation = GRIDSTONE_ISOLATION_SNAPSHOT, const Call &call = {}) {
        gridstone_transaction transaction = 0;
        call.run([&](const gridstone_call *raw) {
            return gridstone_transaction_begin(context.get(), uri.c_str(), isolation, raw, &transaction);
        });
        Handle::operator=(Handle(transaction));
    }

    /** An array as the transaction sees it; what is written through it is part of the transaction, and ends with it. */
    Array array(const std::string &path) const {
        return Array(detail::made<gridstone_array>(gridstone_transaction_array, get(), path.c_str()));
    }
    Array create(const std::string &path, const Schema &schema, bool overwrite = false) {
        return Array(detail::made<gridstone_array>(gridstone_transaction_create_array, get(), path.c_str(), schema.get(),
                                                   static_cast<int32_t>(overwrite), static_cast<const char *>(nullptr)));
    }
    void create_group(const std::string &path) { check(gridstone_transaction_create_group(get(), path.c_str())); }
    void remove(const std::string &path) { check(gridstone_transaction_remove(get(), path.c_str())); }
    void move(const std::string &path, const std::string &target) {
        check(gridstone_transaction_move(get(), path.c_str(), target.c_str()));
    }
    void add(const std::vector<std::string> &receipts) {
        const std::vector<const char *> raws = detail::pointers(receipts);
        check(gridstone_transaction_add_receipts(get(), raws.data(), raws.size()));
    }

    /** Commits all of it, and gives its version. */
    uint64_t commit(const Call &call = {}) {
        uint64_t version = 0;
        call.run([&](const gridstone_call *raw) { return gridstone_transaction_commit(get(), raw, &version); });
        return version;
    }
    void abort() { check(gridstone_transaction_abort(get())); }
};

}  // namespace gridstone

#endif
