/* The part of gridstone.hpp that goes with calls: what stops them, what they report, the message of their commit. */

#ifndef GRIDSTONE_CALLS_HPP
#define GRIDSTONE_CALLS_HPP

#include "columns.hpp"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace gridstone {

/** Stops the calls that it is given to, from any thread. */
class Cancel : public Handle {
public:
    Cancel() : Handle(detail::made<gridstone_cancel>(gridstone_cancel_create)) {}
    void set() const { check(gridstone_cancel_set(get())); }
};

/** What goes with a call: all of it may be left out. One call at a time uses it. */
class Call {
public:
    /** The message of the commit. */
    std::string message;
    /** A key of 1 to 64 bytes: a commit that is repeated with the same key and content is done once. */
    std::string commit_key;
    /** Lets the domain grow to take in what is written. */
    bool grow = false;
    /** Stops the call when it is set. */
    const Cancel *cancel = nullptr;
    /**
     * Receives the cells that are done and those in all, from any thread. What it throws stops the call, which then throws it. A call
     * that it came too late to stop ends as it would have without it.
     */
    std::function<void(uint64_t done, uint64_t total)> progress;

    Call() = default;
    Call(std::string text) : message(std::move(text)) {}
    Call(const char *text) : message(text == nullptr ? "" : text) {}
    Call(std::nullptr_t) = delete;

    /** Runs `work` with these choices as C has them. */
    template <class Work> void run(Work work) const {
        gridstone_call raw = sized<gridstone_call>();
        Reported reported{&progress, nullptr};
        raw.cancel = cancel == nullptr ? 0 : cancel->get();
        raw.message = detail::or_null(message);
        if (!commit_key.empty()) raw.commit_key = reinterpret_cast<const uint8_t *>(commit_key.data());
        raw.commit_key_bytes = commit_key.size();
        raw.flags = grow ? GRIDSTONE_CALL_GROW : 0;
        if (progress) {
            raw.progress = report;
            raw.user = &reported;
        }
        const gridstone_status status = work(&raw);
        // Only a call that was stopped by it throws it: any other has done its work, or says what is wrong.
        if (status == GRIDSTONE_ERROR_CANCELLED && reported.thrown) std::rethrow_exception(reported.thrown);
        check(status);
    }

private:
    struct Reported {
        const std::function<void(uint64_t, uint64_t)> *progress;
        std::exception_ptr thrown;
    };

    /* The library calls it by one thread at a time, and not again once it gave 1. */
    static int32_t report(void *user, uint64_t done, uint64_t total) {
        Reported &reported = *static_cast<Reported *>(user);
        try {
            (*reported.progress)(done, total);
            return 0;
        } catch (...) {
            reported.thrown = std::current_exception();
            return 1;
        }
    }
};

namespace detail {

template <class T> using if_room = std::enable_if_t<std::is_base_of_v<Room, T>>;

/** Runs a call that fills rooms, and notes in each what was filled. */
template <class Function, class... Rooms> void fill(const Call &call, Function function, Rooms &...rooms) {
    gridstone_buffer raw[] = {rooms.raw()...};
    call.run([&](const gridstone_call *with) { return function(raw, sizeof...(Rooms), with); });
    size_t place = 0;
    (rooms.filled(raw[place++].filled_bytes), ...);
}

/** The versions of an array or group. */
inline std::string history(const Handle &node, const Call &call) {
    gridstone_text versions = 0;
    call.run([&](const gridstone_call *raw) { return gridstone_history(node.get(), raw, &versions); });
    return text_of(Handle(versions));
}

template <class Handles> std::vector<gridstone_handle> handles(const Handles &all) {
    std::vector<gridstone_handle> raws;
    for (const Handle &one : all) raws.push_back(one.get());
    return raws;
}

}  // namespace detail

}  // namespace gridstone

#endif
