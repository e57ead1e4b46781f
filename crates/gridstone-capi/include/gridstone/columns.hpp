/* The part of gridstone.hpp that knows types: errors, handles, columns that are written, room that reads fill. */

#ifndef GRIDSTONE_COLUMNS_HPP
#define GRIDSTONE_COLUMNS_HPP

#include "../gridstone.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <ratio>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace gridstone {

/* ---- errors ---- */

/** What a call failed with. */
class Error : public std::runtime_error {
public:
    Error(gridstone_status status, int32_t os_error, const std::string &message)
        : std::runtime_error(message), status_(status), os_error_(os_error) {}

    /** The status of the call, as GRIDSTONE_ERROR_NOT_FOUND. */
    gridstone_status status() const noexcept { return status_; }

    /** The errno of the operating system behind it, or 0. */
    int32_t os_error() const noexcept { return os_error_; }

private:
    gridstone_status status_;
    int32_t os_error_;
};

/** The class of one status. */
template <gridstone_status Status> class ErrorOf final : public Error {
public:
    ErrorOf(int32_t os_error, const std::string &message) : Error(Status, os_error, message) {}
};

using InputError = ErrorOf<GRIDSTONE_ERROR_INPUT>;
using SchemaError = ErrorOf<GRIDSTONE_ERROR_SCHEMA>;
using BoundsError = ErrorOf<GRIDSTONE_ERROR_BOUNDS>;
using NotFoundError = ErrorOf<GRIDSTONE_ERROR_NOT_FOUND>;
using ExistsError = ErrorOf<GRIDSTONE_ERROR_EXISTS>;
using ConflictError = ErrorOf<GRIDSTONE_ERROR_CONFLICT>;
using CommitUnknownError = ErrorOf<GRIDSTONE_ERROR_COMMIT_UNKNOWN>;
using CorruptionError = ErrorOf<GRIDSTONE_ERROR_CORRUPTION>;
using SourceChangedError = ErrorOf<GRIDSTONE_ERROR_SOURCE_CHANGED>;
using SnapshotExpiredError = ErrorOf<GRIDSTONE_ERROR_SNAPSHOT_EXPIRED>;
using BudgetError = ErrorOf<GRIDSTONE_ERROR_BUDGET>;
using StorageError = ErrorOf<GRIDSTONE_ERROR_STORAGE>;
using AccessError = ErrorOf<GRIDSTONE_ERROR_ACCESS>;
using UnsupportedError = ErrorOf<GRIDSTONE_ERROR_UNSUPPORTED>;
using CancelledError = ErrorOf<GRIDSTONE_ERROR_CANCELLED>;
using HandleError = ErrorOf<GRIDSTONE_ERROR_HANDLE>;
using BusyError = ErrorOf<GRIDSTONE_ERROR_BUSY>;
using FailedError = ErrorOf<GRIDSTONE_ERROR_FAILED>;

namespace detail {

template <gridstone_status First, gridstone_status Last>
[[noreturn]] void raise(gridstone_status status, int32_t os_error, const std::string &message) {
    if (status == First) throw ErrorOf<First>(os_error, message);
    if constexpr (First < Last) raise<First + 1, Last>(status, os_error, message);
    throw Error(status, os_error, message);
}

}  // namespace detail

/** Throws the error of this thread's last call, unless that gave GRIDSTONE_OK. */
inline void check(gridstone_status status) {
    if (status == GRIDSTONE_OK) return;
    const std::string message = gridstone_last_error();
    const int32_t os_error = gridstone_last_errno();
    detail::raise<GRIDSTONE_ERROR_INPUT, GRIDSTONE_ERROR_FAILED>(status, os_error, message);
}

/** The version of the library, as "0.1.0". */
inline std::string version() { return gridstone_version(); }

/* ---- handles ---- */

/** A handle that is given back when it goes out of scope. */
class Handle {
public:
    Handle() noexcept = default;
    explicit Handle(gridstone_handle handle) noexcept : handle_(handle) {}
    Handle(Handle &&other) noexcept : handle_(other.release()) {}
    Handle &operator=(Handle &&other) noexcept {
        if (this != &other) {
            reset();
            handle_ = other.release();
        }
        return *this;
    }
    Handle(const Handle &) = delete;
    Handle &operator=(const Handle &) = delete;
    ~Handle() { reset(); }

    gridstone_handle get() const noexcept { return handle_; }
    explicit operator bool() const noexcept { return handle_ != 0; }

    /** Gives the handle away: what takes it frees it. */
    gridstone_handle release() noexcept { return std::exchange(handle_, 0); }

    /** Gives the handle back now. */
    void reset() noexcept {
        if (handle_ != 0) gridstone_free(release());
    }

private:
    gridstone_handle handle_ = 0;
};

/** An option struct of gridstone.h whose size is set, and all else 0. */
template <class Options> Options sized() {
    Options options{};
    options.size = sizeof options;
    return options;
}

namespace detail {

/** What a function puts through its last argument. */
template <class T, class Function, class... Given> T made(Function function, Given... given) {
    T value{};
    check(function(given..., &value));
    return value;
}

/** What a text of the library says. */
inline std::string text_of(const Handle &handle) {
    const char *characters = nullptr;
    size_t length = 0;
    check(gridstone_text_get(handle.get(), &characters, &length));
    return std::string(characters, length);
}

/** The same, of a text whose handle a function puts through its last argument. */
template <class Function, class... Given> std::string text(Function function, Given... given) {
    return text_of(Handle(made<gridstone_text>(function, given...)));
}

inline const char *or_null(const std::string &text) { return text.empty() ? nullptr : text.c_str(); }

inline std::vector<const char *> pointers(const std::vector<std::string> &texts) {
    std::vector<const char *> all;
    for (const std::string &text : texts) all.push_back(text.c_str());
    return all;
}

}  // namespace detail

/* ---- types ---- */

/** The name of the type that a C++ type is stored as: `type_name<float>::get()` is "float32". */
template <class T, class = void> struct type_name {
    static_assert(!std::is_same_v<T, T>, "Gridstone stores no values of this C++ type");
};

template <class T> struct type_name<T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>>> {
    static std::string get() { return (std::is_signed_v<T> ? "int" : "uint") + std::to_string(8 * sizeof(T)); }
};

template <> struct type_name<bool> {
    static_assert(sizeof(bool) == 1, "a bool is a byte");
    static std::string get() { return "bool"; }
};

template <> struct type_name<float> {
    static std::string get() { return "float32"; }
};

template <> struct type_name<double> {
    static std::string get() { return "float64"; }
};

template <> struct type_name<std::complex<float>> {
    static std::string get() { return "complex64"; }
};

template <> struct type_name<std::complex<double>> {
    static std::string get() { return "complex128"; }
};

template <> struct type_name<std::string> {
    static std::string get() { return "string"; }
};

/** A vector in each cell, as "float32[3]". */
template <class T, size_t N> struct type_name<std::array<T, N>> {
    static std::string get() { return type_name<T>::get() + "[" + std::to_string(N) + "]"; }
};

/** A matrix in each cell: the type of N rows of M columns is "float32[N,M]". */
template <class T, size_t M, size_t N> struct type_name<std::array<std::array<T, M>, N>> {
    static std::string get() {
        std::string rows = type_name<std::array<T, M>>::get();
        return rows.insert(rows.rfind('[') + 1, std::to_string(N) + ",");
    }
};

namespace detail {

template <class Duration> std::string in_unit(const char *kind) {
    using Period = typename Duration::period;
    constexpr bool is_known = std::is_same_v<Period, std::nano> || std::is_same_v<Period, std::micro> ||
                              std::is_same_v<Period, std::milli> || std::is_same_v<Period, std::ratio<1>> ||
                              std::is_same_v<Period, std::ratio<60>> || std::is_same_v<Period, std::ratio<3600>> ||
                              std::is_same_v<Period, std::ratio<86400>>;
    static_assert(is_known, "times are in nano-, micro- or milliseconds, seconds, minutes, hours or days");
    static_assert(std::is_integral_v<typename Duration::rep> && sizeof(Duration) == 8, "times are numbers of 64 bits");
    const char *unit = "D";
    if (std::is_same_v<Period, std::nano>) unit = "ns";
    if (std::is_same_v<Period, std::micro>) unit = "us";
    if (std::is_same_v<Period, std::milli>) unit = "ms";
    if (std::is_same_v<Period, std::ratio<1>>) unit = "s";
    if (std::is_same_v<Period, std::ratio<60>>) unit = "m";
    if (std::is_same_v<Period, std::ratio<3600>>) unit = "h";
    return std::string(kind) + "[" + unit + "]";
}

}  // namespace detail

template <class Rep, class Period> struct type_name<std::chrono::duration<Rep, Period>> {
    static std::string get() { return detail::in_unit<std::chrono::duration<Rep, Period>>("timedelta64"); }
};

template <class Duration> struct type_name<std::chrono::time_point<std::chrono::system_clock, Duration>> {
    static std::string get() { return detail::in_unit<Duration>("datetime64"); }
};

namespace detail {

/** Bytes of a value of a type as "int8", "datetime64[s]" or "float32[2,3]"; 0 of one that varies in length. */
inline size_t width_of(const std::string &type) {
    const std::string name = type.substr(0, type.find('['));
    const size_t digits = name.find_first_of("0123456789");
    size_t bytes = name == "bool" || name == "bytes" ? 1 : digits == std::string::npos ? 0 : std::strtoul(&name[digits], nullptr, 10) / 8;
    // The first brackets of a time hold its step, as [6h], and no shape.
    const bool is_time = name == "datetime64" || name == "timedelta64";
    const size_t shape = is_time ? std::min(type.find(']'), type.size()) : name.size();
    for (const char *rest = type.c_str() + shape; *rest != '\0';) {
        char *end = nullptr;
        const unsigned long count = *rest >= '0' && *rest <= '9' ? std::strtoul(rest, &end, 10) : 1;
        bytes *= count;
        rest = end == nullptr ? rest + 1 : end;
    }
    return type == "bytes" ? 0 : bytes;
}

}  // namespace detail

/* ---- columns that are written ---- */

/** Values of one attribute or dimension, which lie in the caller's memory. */
class Column {
public:
    Column(std::string name, std::string type, const void *values, size_t bytes)
        : name_(std::move(name)), type_(std::move(type)), raw_(sized<gridstone_column>()) {
        raw_.values = values;
        raw_.values_bytes = bytes;
    }

    /** The type under another name than that of the C++ type, as "datetime64[s]" of int64_t. */
    Column &&type(std::string name) && { return (type_ = std::move(name), std::move(*this)); }

    /** For each cell 1 if there is a value, 0 if it is null. */
    Column &&validity(const uint8_t *valid, size_t count) && {
        raw_.validity = valid;
        raw_.validity_count = count;
        return std::move(*this);
    }
    Column &&validity(const std::vector<uint8_t> &valid) && { return std::move(*this).validity(valid.data(), valid.size()); }

    /** Where each value begins, and where the last ends, for values that vary in length. */
    Column &&offsets(const uint64_t *offsets, size_t count) && {
        raw_.offsets = offsets;
        raw_.offset_count = count;
        return std::move(*this);
    }

    /** As C has it, valid as long as this column. */
    gridstone_column raw() const {
        gridstone_column raw = raw_;
        raw.name = name_.c_str();
        raw.type = detail::or_null(type_);
        return raw;
    }

private:
    std::string name_;
    std::string type_;
    gridstone_column raw_;
};

/** A column of `count` values. */
template <class T> Column column(std::string name, const T *values, size_t count) {
    static_assert(std::is_trivially_copyable_v<T>, "values are stored byte by byte; pack texts with gridstone::Packed");
    return Column(std::move(name), type_name<T>::get(), values, count * sizeof(T));
}

/** A column of what lies side by side: a std::vector, std::array, std::span or array of C. It is not copied. */
template <class Values> Column column(std::string name, const Values &values) {
    return column(std::move(name), std::data(values), std::size(values));
}
template <class Values, class = std::enable_if_t<!std::is_trivially_copyable_v<Values>>>
Column column(std::string name, const Values &&values) = delete;

/** Texts packed one behind the other, as they are stored. */
class Packed {
public:
    Packed() = default;
    template <class Texts> explicit Packed(const Texts &texts) {
        for (const auto &text : texts) add(text);
    }

    void add(std::string_view text) {
        values_.append(text);
        offsets_.push_back(values_.size());
    }
    size_t size() const { return offsets_.size() - 1; }

    /** A column of them, of "string" or of "bytes". */
    Column column(std::string name, std::string type = "string") const & {
        return Column(std::move(name), std::move(type), values_.data(), values_.size()).offsets(offsets_.data(), offsets_.size());
    }
    Column column(std::string name, std::string type = "string") const && = delete;

private:
    std::string values_;
    std::vector<uint64_t> offsets_{0};
};

namespace detail {

inline std::vector<gridstone_column> raws(const std::vector<Column> &columns) {
    std::vector<gridstone_column> all;
    for (const Column &column : columns) all.push_back(column.raw());
    return all;
}

}  // namespace detail

/* ---- room that reads fill ---- */

/** Room for values of one attribute or dimension, in memory of the caller. Reads note how much they filled. */
class Room {
public:
    Room(std::string name, std::string type, void *values, size_t bytes)
        : name_(std::move(name)), type_(std::move(type)), raw_(sized<gridstone_buffer>()) {
        raw_.values = values;
        raw_.values_bytes = bytes;
    }
    template <class T>
    Room(std::string name, T *values, size_t count) : Room(std::move(name), type_name<T>::get(), values, count * sizeof(T)) {}
    Room(Room &&) noexcept = default;
    Room &operator=(Room &&) noexcept = default;
    Room(const Room &) = delete;
    Room &operator=(const Room &) = delete;

    /** The type under another name than that of the C++ type, as "datetime64[s]" of int64_t. */
    void type(std::string name) { type_ = std::move(name); }

    void validity(uint8_t *valid, size_t count) {
        raw_.validity = valid;
        raw_.validity_count = count;
    }
    void offsets(uint64_t *offsets, size_t count) {
        raw_.offsets = offsets;
        raw_.offset_count = count;
    }

    const std::string &name() const { return name_; }
    size_t filled_bytes() const { return raw_.filled_bytes; }

    gridstone_buffer raw() const {
        gridstone_buffer raw = raw_;
        raw.name = name_.c_str();
        raw.type = detail::or_null(type_);
        return raw;
    }
    void filled(size_t bytes) { raw_.filled_bytes = bytes; }

private:
    std::string name_;
    std::string type_;
    gridstone_buffer raw_;
};

/** Room for so many values of a fixed width; with `nullable` also for which of them are null. */
template <class T> class Values : public Room {
public:
    Values(std::string name, size_t cells, bool nullable = false) : Values(std::move(name), std::vector<Stored>(cells), nullable) {}

    /** The type under another name than that of the C++ type, as "datetime64[s]" of int64_t; an InputError if it is not as wide. */
    void type(std::string name) {
        if (detail::width_of(name) != sizeof(T)) throw InputError(0, "values of the type " + name + " are not as wide as the C++ type");
        Room::type(std::move(name));
    }

    size_t size() const { return filled_bytes() / sizeof(T); }
    const T *data() const { return reinterpret_cast<const T *>(values_.data()); }
    const T *begin() const { return data(); }
    const T *end() const { return data() + size(); }
    const T &operator[](size_t cell) const { return data()[cell]; }
    bool is_null(size_t cell) const { return !valid_.empty() && valid_[cell] == 0; }

private:
    // A vector of bool has no bytes.
    using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;

    Values(std::string name, std::vector<Stored> values, bool nullable)
        : Room(std::move(name), type_name<T>::get(), values.data(), values.size() * sizeof(T)), values_(std::move(values)),
          valid_(nullable ? values_.size() : 0) {
        static_assert(std::is_trivially_copyable_v<T>, "values are stored byte by byte; texts go to gridstone::Texts");
        if (nullable) validity(valid_.data(), valid_.size());
    }

    std::vector<Stored> values_;
    std::vector<uint8_t> valid_;
};

/** Room for so many texts, which together have so many bytes. */
class Texts : public Room {
public:
    Texts(std::string name, size_t cells, size_t bytes, bool nullable = false)
        : Texts(std::move(name), std::vector<char>(bytes), cells, nullable) {}

    std::string_view operator[](size_t cell) const {
        return std::string_view(values_.data() + offsets_[cell], static_cast<size_t>(offsets_[cell + 1] - offsets_[cell]));
    }
    bool is_null(size_t cell) const { return !valid_.empty() && valid_[cell] == 0; }

private:
    Texts(std::string name, std::vector<char> values, size_t cells, bool nullable)
        : Room(std::move(name), "", values.data(), values.size()), values_(std::move(values)), offsets_(cells + 1),
          valid_(nullable ? cells : 0) {
        offsets(offsets_.data(), offsets_.size());
        if (nullable) validity(valid_.data(), valid_.size());
    }

    std::vector<char> values_;
    std::vector<uint64_t> offsets_;
    std::vector<uint8_t> valid_;
};

/* ---- answers that the library owns ---- */

/** Values of a column of a result, valid as long as the result. */
template <class T> class View {
public:
    View(const gridstone_column &column, size_t rows) : raw_(column), rows_(rows) {}

    size_t size() const { return rows_; }
    const T *data() const { return static_cast<const T *>(raw_.values); }
    const T *begin() const { return data(); }
    const T *end() const { return data() + rows_; }
    const T &operator[](size_t row) const { return data()[row]; }
    bool is_null(size_t row) const { return raw_.validity != nullptr && raw_.validity[row] == 0; }

private:
    gridstone_column raw_;
    size_t rows_;
};

/** Texts or bytes of a column of a result, valid as long as the result. */
template <> class View<std::string> {
public:
    View(const gridstone_column &column, size_t rows) : raw_(column), rows_(rows) {}

    size_t size() const { return rows_; }
    std::string_view operator[](size_t row) const {
        const uint64_t first = raw_.offsets[row], last = raw_.offsets[row + 1];
        return std::string_view(static_cast<const char *>(raw_.values) + first, static_cast<size_t>(last - first));
    }
    bool is_null(size_t row) const { return raw_.validity != nullptr && raw_.validity[row] == 0; }

private:
    gridstone_column raw_;
    size_t rows_;
};

/** An answer whose columns the library owns. */
class Result : public Handle {
public:
    using Handle::Handle;

    uint64_t rows() const { return detail::made<uint64_t>(gridstone_result_rows, get()); }
    uint64_t columns() const { return detail::made<uint64_t>(gridstone_result_columns, get()); }
    std::string counters() const { return detail::text(gridstone_result_counters, get()); }

    /** The same as an array of Arrow, over the memory of the result, which stays until the array is released. */
    void to_arrow(ArrowSchema *schema, ArrowArray *array) const { check(gridstone_result_to_arrow(get(), schema, array)); }

    /** A column as C has it; its pointers are valid as long as the result. */
    gridstone_column column(uint64_t index) const {
        auto column = sized<gridstone_column>();
        check(gridstone_result_column(get(), index, &column));
        return column;
    }
    gridstone_column column(const std::string &name) const {
        return column(detail::made<uint64_t>(gridstone_result_find, get(), name.c_str()));
    }

    /**
     * The values of a column. An InputError unless they are of the type and as wide as T. The type may go by another name than T's, as
     * "datetime64[s]" of int64_t. A view ends with its result, so a temporary one has none.
     */
    template <class T> View<T> values(const std::string &name, const std::string &type = type_name<T>::get()) const & {
        const gridstone_column found = column(name);
        if (type != found.type) throw InputError(0, "the column \"" + name + "\" is " + found.type + ", and was taken for " + type);
        const size_t count = static_cast<size_t>(rows());
        constexpr bool varies = std::is_same_v<T, std::string>;
        if (varies != (found.offsets != nullptr) || (!varies && found.values_bytes != count * sizeof(T))) {
            throw InputError(0, "values of the column \"" + name + "\", which is " + found.type + ", are not as wide as the C++ type");
        }
        return View<T>(found, count);
    }
    template <class T> View<T> values(const std::string &name, const std::string &type = type_name<T>::get()) const && = delete;
};

}  // namespace gridstone

#endif
