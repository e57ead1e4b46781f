/* The part of gridstone.hpp that says which cells are meant, and gives or takes them in portions. */

#ifndef GRIDSTONE_READS_HPP
#define GRIDSTONE_READS_HPP

#include "calls.hpp"
#include "columns.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gridstone {

/**
 * Boxes of cells; `Region()` is the whole domain. One that was moved from or reset holds none: what it is given to throws HandleError.
 */
class Region : public Handle {
public:
    Region() noexcept : is_whole_(true) {}
    Region(Region &&other) noexcept : Handle(std::move(other)), is_whole_(std::exchange(other.is_whole_, false)) {}
    Region &operator=(Region &&other) noexcept {
        Handle::operator=(std::move(other));
        if (this != &other) is_whole_ = std::exchange(other.is_whole_, false);
        return *this;
    }

    /** One box: low and high end of each dimension in turn, both included. */
    Region(std::initializer_list<int64_t> ends) { add(ends.begin(), ends.size()); }
    explicit Region(const std::vector<int64_t> &ends) { add(ends.data(), ends.size()); }

    Region &add(const int64_t *ends, size_t count) {
        check(gridstone_region_add(boxes(), ends, count));
        return *this;
    }
    Region &add(std::initializer_list<int64_t> ends) { return add(ends.begin(), ends.size()); }
    Region &add_floats(const std::vector<double> &ends) {
        check(gridstone_region_add_floats(boxes(), ends.data(), ends.size()));
        return *this;
    }

    /** By texts, of dimensions of any type, and dates as "2026-03"; an empty text is the end of the domain. */
    Region &add_texts(const std::vector<std::string> &ends) {
        std::vector<const char *> raw = detail::pointers(ends);
        for (size_t place = 0; place < raw.size(); ++place) raw[place] = detail::or_null(ends[place]);
        check(gridstone_region_add_texts(boxes(), raw.data(), raw.size()));
        return *this;
    }

    /** Cuts it to the domain of each array that it is used with, from now on. The whole domain stays what it is. */
    Region &cut() {
        if (!is_whole_) check(gridstone_region_cut(get()));
        return *this;
    }

    /** As C has it: 0 is the whole domain. */
    gridstone_region raw() const {
        if (!is_whole_ && get() == 0) throw HandleError(0, "the region was moved from or reset; make another one");
        return get();
    }

private:
    gridstone_region boxes() {
        if (!*this) Handle::operator=(Handle(detail::made<gridstone_region>(gridstone_region_create)));
        is_whole_ = false;
        return get();
    }

    bool is_whole_ = false;
};

/** A stream of Arrow that is released when it goes out of scope, unless what it was given to has moved it away. */
class ArrowStream {
public:
    ArrowStream() noexcept : raw_{} {}
    ArrowStream(ArrowStream &&other) noexcept : raw_(std::exchange(other.raw_, ArrowArrayStream{})) {}
    ArrowStream &operator=(ArrowStream &&other) noexcept {
        if (this != &other) {
            release();
            raw_ = std::exchange(other.raw_, ArrowArrayStream{});
        }
        return *this;
    }
    ArrowStream(const ArrowStream &) = delete;
    ArrowStream &operator=(const ArrowStream &) = delete;
    ~ArrowStream() { release(); }

    /** For what takes a stream, as `arrow::ImportRecordBatchReader`. */
    ArrowArrayStream *get() noexcept { return &raw_; }

    /** Whether it holds a stream. */
    explicit operator bool() const noexcept { return raw_.release != nullptr; }

    /** The stream that a function makes of a handle, which it uses up. */
    template <class Function> static ArrowStream made(Handle &handle, Function function) {
        ArrowStream stream;
        check(function(handle.get(), stream.get()));
        handle.reset();
        return stream;
    }

private:
    void release() noexcept {
        if (raw_.release != nullptr) raw_.release(&raw_);
    }

    ArrowArrayStream raw_;
};

/** Where and how an array is opened: at its newest version, for reading, unless something else is said. */
struct Open {
    std::string path = "/";
    bool write = false;
    uint64_t version = 0;
    std::string tag = "";
    /** The newest version that was committed by then. */
    std::optional<std::chrono::system_clock::time_point> time = std::nullopt;

    gridstone_open_options raw() const {
        auto raw = sized<gridstone_open_options>();
        raw.path = path.c_str();
        raw.mode = write ? GRIDSTONE_OPEN_WRITE : GRIDSTONE_OPEN_READ;
        raw.version = version;
        raw.tag = detail::or_null(tag);
        raw.by_time = time.has_value();
        if (time) raw.time_us = std::chrono::floor<std::chrono::microseconds>(time->time_since_epoch()).count();
        return raw;
    }
};

/** What is read; what is left out is all of it, in row order. The region is looked at when the read begins. */
struct Reading {
    const Region *region = nullptr;
    std::vector<std::string> attributes = {};
    /** A condition, as "sog > 3"; every cell if there is none. */
    std::optional<std::string> condition = std::nullopt;
    uint32_t order = GRIDSTONE_ORDER_ROW;
    uint64_t batch_bytes = 0;

    /** Runs `work` with these choices as C has them. */
    template <class Work> void run(Work work) const {
        auto raw = sized<gridstone_read_options>();
        const std::vector<const char *> names = detail::pointers(attributes);
        raw.region = region == nullptr ? 0 : region->raw();
        raw.attributes = names.empty() ? nullptr : names.data();
        raw.attribute_count = names.size();
        raw.condition = condition ? condition->c_str() : nullptr;
        raw.order = order;
        raw.batch_bytes = batch_bytes;
        check(work(&raw));
    }
};

/** Written cells that no commit refers to yet. */
class Staged : public Handle {
    using Handle::Handle;
};

/** A read in portions: `while (uint64_t cells = read.next(x, v)) …`. */
class Read : public Handle {
public:
    using Handle::Handle;

    /** Fills the rooms with the next cells, and gives how many they are: 0 after the last one. */
    template <class First, class... Rooms, class = detail::if_room<First>> uint64_t next(First &first, Rooms &...rooms) {
        return next(Call(), first, rooms...);
    }
    template <class First, class... Rooms> uint64_t next(const Call &call, First &first, Rooms &...rooms) {
        uint64_t cells = 0;
        detail::fill(
            call, [&](auto *raw, size_t count, auto *with) { return gridstone_read_next(get(), raw, count, with, &cells, &complete_); },
            first, rooms...);
        return cells;
    }

    /** Whether all cells were given. */
    bool is_complete() const noexcept { return complete_ != 0; }

    /** What it has not given yet, as a stream of Arrow; this read is used up. */
    ArrowStream to_arrow() { return ArrowStream::made(*this, gridstone_read_to_arrow); }

    std::string counters() const { return detail::text(gridstone_read_counters, get()); }

private:
    int32_t complete_ = 0;
};

/** An answer in batches: `while (std::optional<gridstone::Result> batch = answers.next()) …`. */
class Answers : public Handle {
public:
    using Handle::Handle;

    /** The next groups, or nothing after the last. */
    std::optional<Result> next(const Call &call = {}) {
        gridstone_result result = 0;
        call.run([&](const gridstone_call *raw) { return gridstone_answers_next(get(), raw, &result); });
        return result == 0 ? std::nullopt : std::optional<Result>(Result(result));
    }

    /** What it has not given yet, as a stream of Arrow; this answer is used up. */
    ArrowStream to_arrow() { return ArrowStream::made(*this, gridstone_answers_to_arrow); }

    std::string counters() const { return detail::text(gridstone_answers_counters, get()); }
};

/** Which positions are read along a dimension, counted from the low end of its domain. */
class Positions {
public:
    static Positions all() { return Positions(GRIDSTONE_POSITIONS_ALL, {}); }

    /** So many from the first one on, `step` apart; a step below 0 goes downwards. */
    static Positions strided(uint64_t start, uint64_t count, int64_t step = 1) {
        Positions made(GRIDSTONE_POSITIONS_STRIDED, {});
        made.start_ = start;
        made.count_ = count;
        made.step_ = step;
        return made;
    }

    /** In any order, each as often as it is wanted. */
    static Positions listed(std::vector<uint64_t> list) { return Positions(GRIDSTONE_POSITIONS_LISTED, std::move(list)); }

    /** As `listed`, of dimensions whose lists are read in step: the first of each, the second of each …. */
    static Positions paired(std::vector<uint64_t> list) { return Positions(GRIDSTONE_POSITIONS_PAIRED, std::move(list)); }

    /** As C has it, valid as long as this. */
    gridstone_positions raw() const {
        auto raw = sized<gridstone_positions>();
        raw.kind = kind_;
        raw.start = start_;
        raw.count = count_;
        raw.step = step_;
        raw.list = list_.data();
        raw.list_count = list_.size();
        return raw;
    }

private:
    Positions(uint32_t kind, std::vector<uint64_t> list) : kind_(kind), list_(std::move(list)) {}

    uint32_t kind_;
    std::vector<uint64_t> list_;
    uint64_t start_ = 0;
    uint64_t count_ = 0;
    int64_t step_ = 0;
};

/** A write whose cells come a portion at a time; one that was not finished is undone. */
class Writer : public Handle {
public:
    using Handle::Handle;

    void append(const std::vector<Column> &columns, const Call &call = {}) {
        const std::vector<gridstone_column> raws = detail::raws(columns);
        call.run([&](const gridstone_call *raw) { return gridstone_writer_append(get(), raws.data(), raws.size(), raw); });
    }

    /** What it has, staged for a commit. */
    Staged finish(const Call &call = {}) {
        gridstone_staged staged = 0;
        call.run([&](const gridstone_call *raw) { return gridstone_writer_finish(get(), raw, &staged); });
        reset();
        return Staged(staged);
    }
};

}  // namespace gridstone

#endif
