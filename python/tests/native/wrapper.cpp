/* What gridstone.hpp promises, on a store in memory: exit status 0, or what does not hold. */

#include <gridstone.hpp>

#include <array>
#include <chrono>
#include <complex>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>
#if __cplusplus >= 202002L
#include <span>
#endif

namespace gs = gridstone;

#define REQUIRE(holds)                                                                     \
    do {                                                                                   \
        if (!(holds)) throw std::runtime_error("line " + std::to_string(__LINE__) + ": " #holds); \
    } while (0)

#define THROWS(Class, work)                                                                      \
    do {                                                                                         \
        bool thrown_ = false;                                                                    \
        try {                                                                                    \
            static_cast<void>(work);                                                                        \
        } catch (const gs::Class &error) {                                                       \
            thrown_ = *error.what() != '\0';                                                     \
        }                                                                                        \
        if (!thrown_) throw std::runtime_error("line " + std::to_string(__LINE__) + ": no " #Class); \
    } while (0)

namespace {

static_assert(!std::is_copy_constructible_v<gs::Array> && std::is_nothrow_move_constructible_v<gs::Array>);
static_assert(!std::is_copy_assignable_v<gs::Context> && std::is_nothrow_move_assignable_v<gs::Context>);
static_assert(!std::is_copy_constructible_v<gs::Values<int>>);
static_assert(std::is_nothrow_move_constructible_v<gs::Region> && !std::is_copy_constructible_v<gs::Region>);
static_assert(std::is_constructible_v<gs::Call, const char *> && !std::is_constructible_v<gs::Call, std::nullptr_t>);
static_assert(std::is_base_of_v<gs::Error, gs::ConflictError> && std::is_base_of_v<std::runtime_error, gs::Error>);

void names_of_types() {
    REQUIRE(gs::type_name<int8_t>::get() == "int8" && gs::type_name<uint64_t>::get() == "uint64");
    REQUIRE(gs::type_name<float>::get() == "float32" && gs::type_name<bool>::get() == "bool");
    REQUIRE(gs::type_name<long long>::get() == "int64" && gs::type_name<unsigned char>::get() == "uint8");
    REQUIRE(gs::type_name<std::complex<double>>::get() == "complex128");
    using Vector = std::array<float, 3>;
    REQUIRE(gs::type_name<Vector>::get() == "float32[3]");
    using Matrix = std::array<std::array<float, 4>, 3>;
    REQUIRE(gs::type_name<Matrix>::get() == "float32[3,4]");
    using Cube = std::array<std::array<std::array<int8_t, 4>, 3>, 2>;
    REQUIRE(gs::type_name<Cube>::get() == "int8[2,3,4]");

    /* Room goes by another name of its type, if that is as wide. */
    gs::Values<int64_t> eight("v", 1);
    for (const char *name : {"datetime64[s]", "datetime64[6h]", "timedelta64[25us]", "timedelta64[ms]", "uint64", "complex64", "bytes[8]",
                             "float32[2]", "uint8[2,4]"}) {
        eight.type(name);
        REQUIRE(eight.raw().type == std::string(name));
    }
    for (const char *name : {"int8", "bool", "string", "bytes", "complex128", "datetime64[s][2]", "datetime64[6h][2]", "float32[2,2]", "[", ""}) {
        THROWS(InputError, (eight.type(name), 0));
    }
    gs::Values<Matrix> matrix("v", 1);
    matrix.type("int32[12]");
    REQUIRE(gs::type_name<std::chrono::nanoseconds>::get() == "timedelta64[ns]");
    using Seconds = std::chrono::time_point<std::chrono::system_clock, std::chrono::seconds>;
    REQUIRE(gs::type_name<Seconds>::get() == "datetime64[s]");
}

gs::Array made(const gs::Context &context, const std::string &uri) {
    gs::Schema schema = gs::Schema::dense();
    schema.axis<int32_t>("i", 0, 99, 10);
    schema.attribute<double>("v").attribute<bool>("b").attribute<std::array<int16_t, 2>>("p").attribute<std::string>("t", true);
    schema.attribute<std::complex<float>>("c").attribute<std::chrono::milliseconds>("d");
    return gs::Array::create(context, uri, schema);
}

void every_type(const gs::Context &context) {
    gs::Array array = made(context, "mem://types");
    const size_t count = 100;
    std::vector<double> v(count);
    std::array<bool, count> b{};
    std::vector<std::array<int16_t, 2>> p(count);
    std::vector<std::complex<float>> c(count);
    std::vector<std::chrono::milliseconds> d(count);
    std::vector<std::string> texts;
    std::vector<uint8_t> valid;
    for (size_t i = 0; i < count; ++i) {
        v[i] = static_cast<double>(i) / 3;
        b[i] = i % 2 == 1;
        p[i] = {static_cast<int16_t>(i), static_cast<int16_t>(-1)};
        c[i] = {static_cast<float>(i), -1.0f};
        d[i] = std::chrono::milliseconds(i * 1000);
        texts.push_back(std::string(i % 4, 'x'));
        valid.push_back(i % 5 != 0);
    }
    const gs::Packed packed(texts);
    REQUIRE(packed.size() == count);
    const uint64_t version = array.write(
        {}, {gs::column("v", v), gs::column("b", b), gs::column("p", p.data(), p.size()), packed.column("t").validity(valid),
             gs::column("c", c), gs::column("d", d)});
    REQUIRE(version == 2 && array.version() == 2 && array.ndim() == 1 && !array.sparse());

    gs::Values<double> vs("v", 30);
    gs::Values<bool> bs("b", 30);
    gs::Values<std::array<int16_t, 2>> ps("p", 30);
    gs::Values<std::complex<float>> cs("c", 30);
    gs::Values<std::chrono::milliseconds> ds("d", 30);
    gs::Texts ts("t", 30, 1000, true);
    gs::Values<int32_t> is("i", 30);
    gs::Read read = array.read();
    size_t seen = 0;
    while (const uint64_t cells = read.next(is, vs, bs, ps, cs, ds, ts)) {
        REQUIRE(cells <= 30 && vs.size() == cells);
        for (size_t k = 0; k < cells; ++k, ++seen) {
            REQUIRE(is[k] == static_cast<int32_t>(seen) && vs[k] == v[seen] && bs[k] == b[seen] && ps[k] == p[seen]);
            REQUIRE(cs[k] == c[seen] && ds[k] == d[seen] && ts.is_null(k) == (valid[seen] == 0));
            REQUIRE(ts.is_null(k) || ts[k] == texts[seen]);
        }
    }
    REQUIRE(seen == count && read.is_complete() && read.counters().front() == '{');

    /* Room that was moved still is where reads put values. */
    gs::Values<double> moved = std::move(vs);
    gs::Read again = array.read();
    REQUIRE(again.next(moved) == 30 && moved[29] == v[29] && moved.end() - moved.begin() == 30);

    /* A condition, some attributes, a region that is freed before the read ends. */
    gs::Reading what;
    {
        const gs::Region region{10, 59};
        what.region = &region;
        what.condition = "v > 10";
        what.attributes = {"v"};
        again = array.read(what);
    }
    uint64_t found = 0;
    while (const uint64_t cells = again.next(is, moved)) found += cells;
    REQUIRE(found == 29);
    std::array<double, 3> own{};
    gs::Room room("v", own.data(), own.size());
    array.read(gs::Region{1, 3}, room);
    REQUIRE(own[2] == 1.0 && room.filled_bytes() == sizeof own);
}

void errors(const gs::Context &context) {
    THROWS(NotFoundError, gs::Array::open(context, "mem://nothing"));
    gs::Array array = made(context, "mem://errors");
    THROWS(ExistsError, made(context, "mem://errors"));
    const std::vector<int32_t> wrong(100);
    THROWS(InputError, array.write({}, {gs::column("v", wrong)}));
    THROWS(Error, array.write({}, {gs::column("nothing", wrong)}));
    gs::Values<double> room("v", 5);
    THROWS(InputError, array.read({}, room));
    gs::Region outside;
    outside.add_texts({"50", "1000"});
    THROWS(BoundsError, array.read(outside, room));
    gs::Array moved = std::move(array);
    THROWS(HandleError, array.version());
    REQUIRE(moved.version() == 1 && !array && moved);
    THROWS(HandleError, gs::Read().next(room));
    THROWS(SchemaError, gs::Array::create(context, "mem://contradictory", gs::Schema::dense().axis<int32_t>("i", 0, 9)));
    gs::Open at;
    at.version = 99;
    THROWS(NotFoundError, moved.at(at));
    at.version = 1;
    REQUIRE(moved.at(at).version() == 1);
    try {
        gs::check(12345);
    } catch (const gs::Error &error) {
        REQUIRE(error.status() == 12345);
    }
    REQUIRE(gs::Schema::from_json(moved.schema_json()).json() == moved.schema_json());
}

struct Stop : std::runtime_error {
    using std::runtime_error::runtime_error;
};

void calls(const gs::Context &context) {
    gs::Array array = gs::Array::create(context, "mem://calls", gs::Schema::dense().axis<int64_t>("i", 0, 499'999, 10'000).attribute<double>("v"));
    const std::vector<double> values(500'000, 1.5);
    gs::Cancel cancel;
    gs::Call call("with a cancel");
    call.cancel = &cancel;
    REQUIRE(array.write({}, {gs::column("v", values)}, call) == 2);
    cancel.set();
    THROWS(CancelledError, array.write({}, {gs::column("v", values)}, call));
    REQUIRE(array.version() == 2);

    gs::Call reporting;
    uint64_t most = 0;
    reporting.progress = [&most](uint64_t done, uint64_t) { most = done > most ? done : most; };
    REQUIRE(array.write({}, {gs::column("v", values)}, reporting) == 3 && most > 0);

    /* What a callback throws comes out of the call, which commits nothing; one that is too late to stop it leaves a call that is done. */
    for (const uint64_t least : {uint64_t(1), uint64_t(250'000), uint64_t(500'000)}) {
        const uint64_t before = array.version();
        bool thrown = false;
        reporting.progress = [least](uint64_t done, uint64_t) {
            if (done >= least) throw Stop("late");
        };
        try {
            array.write({}, {gs::column("v", values)}, reporting);
        } catch (const Stop &) {
            thrown = true;
        }
        REQUIRE(array.version() == before + !thrown);
        thrown = false;
        try {
            const gs::Staged staged = array.stage({}, {gs::column("v", values)}, reporting);
            REQUIRE(staged);
        } catch (const Stop &) {
            thrown = true;
        }
        try {
            gs::Result result = array.read_all({}, reporting);
            REQUIRE(result.rows() == 500'000);
        } catch (const Stop &) {
            thrown = true;
        }
        REQUIRE(thrown || least > 1);
    }
    const uint64_t newest = array.version();

    reporting.progress = [](uint64_t, uint64_t) { throw Stop("enough"); };
    bool stopped = false;
    try {
        array.write({}, {gs::column("v", values)}, reporting);
    } catch (const Stop &stop) {
        stopped = std::string(stop.what()) == "enough";
    }
    REQUIRE(stopped && array.version() == newest);

    /* The same key and content twice are one commit. */
    gs::Call keyed("once");
    keyed.commit_key = std::string("key\0with a zero", 15);
    const gs::Region box{0, 9999};
    const uint64_t first = array.write(box, {gs::column("v", values.data(), 10'000)}, keyed);
    REQUIRE(array.write(box, {gs::column("v", values.data(), 10'000)}, keyed) == first);

    /* Staged: seen after the commit, or gone. */
    std::vector<gs::Staged> staged;
    staged.push_back(array.stage(gs::Region{0, 0}, {gs::column("v", values.data(), 1)}));
    staged.push_back(array.stage(gs::Region{7, 8}, {gs::column("v", values.data(), 2)}));
    array.stage(gs::Region{3, 3}, {gs::column("v", values.data(), 1)});
    REQUIRE(array.version() == first);

    /* A commit that is refused leaves what was staged to another one. */
    gs::Array other = gs::Array::create(context, "mem://calls of others", gs::Schema::dense().axis<int64_t>("i", 0, 9).attribute<double>("v"));
    THROWS(InputError, other.commit(staged));
    REQUIRE(array.commit(staged) == first + 1 && array.version() == first + 1);
    THROWS(Error, array.commit(staged));

    /* Reads in portions and reads of a box take a call too. */
    gs::Values<double> some("v", 1000);
    gs::Reading small;
    small.batch_bytes = 1 << 17;
    gs::Read read = array.read(small);
    REQUIRE(read.next(gs::Call(), some) == 1000);
    const auto go_on = [&] {
        while (read.next(call, some) > 0) continue;
    };
    THROWS(CancelledError, go_on());
    array.read(gs::Region{0, 999}, gs::Call(), some);
    THROWS(CancelledError, array.read(gs::Region{0, 999}, call, some));
}

gs::Schema line() {
    gs::Schema schema = gs::Schema::dense();
    schema.axis<int64_t>("i", 0, 99, 10).attribute<double>("v");
    return schema;
}

double at(gs::Array &array, int64_t place) {
    gs::Values<double> value("v", 1);
    array.refresh();
    array.read(gs::Region{place, place}, value);
    return value[0];
}

/** A value of the version that an array shows. */
double at_once(const gs::Array &array, int64_t place) {
    gs::Values<double> value("v", 1);
    array.read(gs::Region{place, place}, value);
    return value[0];
}

void writers(const gs::Context &context) {
    gs::Array array = gs::Array::create(context, "mem://writers", line());
    const std::vector<double> part(50, 4.0);
    {
        gs::Writer given_up = array.writer();
        given_up.append({gs::column("v", part)});
    }
    REQUIRE(array.refresh() == 1);
    gs::Writer writer = array.writer();
    writer.append({gs::column("v", part)});
    writer.append({gs::column("v", part)});
    std::vector<gs::Staged> staged;
    staged.push_back(writer.finish());
    THROWS(HandleError, writer.append({gs::column("v", part)}));
    REQUIRE(array.commit(staged, "in portions") == 2 && at(array, 99) == 4.0);

    const int64_t i[] = {3, 1, 3};
    const double v[] = {3.0, 1.0, 33.0};
    gs::Writer unsorted = array.unsorted_writer(GRIDSTONE_DEDUP_LAST);
    unsorted.append({gs::column("i", i), gs::column("v", v)});
    staged.clear();
    staged.push_back(unsorted.finish());
    const std::string receipt = array.receipt(staged);
    REQUIRE(context.commit("mem://writers", {receipt}, "of a receipt") == 3);
    REQUIRE(at(array, 3) == 33.0 && at(array, 1) == 1.0 && at(array, 2) == 4.0);
    THROWS(ConflictError, context.commit("mem://writers", {receipt}));
    THROWS(InputError, context.commit("mem://writers", {"no receipt"}));

    REQUIRE(array.remove(gs::Region{0, 9}, "v = 33") == 4 && !(at(array, 3) == 33.0) && at(array, 1) == 1.0);
    array.set_metadata_json("unit", "\"K\"");
    REQUIRE(array.metadata_json("unit") == "\"K\"" && array.metadata_json().find("unit") != std::string::npos);
    THROWS(NotFoundError, array.metadata_json("nothing"));
    REQUIRE(array.consolidate("all").front() == '{' && array.vacuum().front() == '{' && at(array, 2) == 4.0);
}

bool has(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

void groups(const gs::Context &context) {
    const std::string uri = "mem://groups";
    gs::Group root = gs::Group::create(context, uri);
    gs::Array t = root.create_group("sea").create_array("t", line());
    const std::vector<double> values(100, 2.0);
    t.write({}, {gs::column("v", values)}, "filled");
    root.refresh();
    REQUIRE(root.contains("sea/t") && !root.contains("land") && has(root.children_json(), "sea") && has(root.walk_json(), "/sea/t"));
    REQUIRE(root.group("sea").path() == "/sea" && root.group("sea").array("t").version() == t.version());
    THROWS(InputError, root.array("sea"));
    THROWS(InputError, root.group("sea/t"));
    THROWS(NotFoundError, root.group("land"));

    /* By tag, by time, and the history that says them. */
    REQUIRE(context.tag(uri, "as delivered") == t.version());
    const uint64_t tagged = t.version();
    gs::Open by;
    by.path = "/sea/t";
    by.time = t.time();
    const std::vector<int64_t> gone{1, 7};
    const uint64_t removed = t.remove_cells({gs::column("i", gone)}, "two");
    REQUIRE(removed > tagged && !(at(t, 7) == 2.0) && at(t, 8) == 2.0);
    gs::Array then = gs::Array::open(context, uri, by);
    REQUIRE(then.version() == tagged && then.time() == *by.time && at_once(then, 7) == 2.0);
    by.time = std::chrono::system_clock::time_point{} - std::chrono::microseconds(1);
    THROWS(NotFoundError, gs::Array::open(context, uri, by));
    by.time.reset();
    by.tag = "as delivered";
    REQUIRE(gs::Array::open(context, uri, by).version() == tagged);
    REQUIRE(has(t.tags_json(), "as delivered") && has(t.history_json(), "filled") && has(t.fragments_json(), "\"cells\""));
    THROWS(ExistsError, context.tag(uri, "as delivered"));
    REQUIRE(context.tag(uri, "as delivered", 0, true) >= removed && context.untag(uri, "as delivered") >= removed);
    THROWS(NotFoundError, context.untag(uri, "as delivered"));

    root.refresh();
    REQUIRE(root.move("sea/t", "t", "up") == root.version() && root.array("t").path() == "/t" && has(root.history_json(), "up"));
    root.remove("sea");
    REQUIRE(!root.contains("sea") && gs::Group::open(context, uri).version() == root.version() && root.tags_json() == "{}");
}

void transactions(const gs::Context &context) {
    gs::Array outside = gs::Array::create(context, "mem://transactions", line(), "/a");
    const std::vector<double> values(100, 7.0);
    {
        gs::Transaction undone(context, "mem://transactions");
        gs::Array inside = undone.array("/a");
        inside.write({}, {gs::column("v", values)});
    }
    REQUIRE(outside.refresh() == 1);
    gs::Transaction transaction(context, "mem://transactions");
    gs::Array a = transaction.array("/a"), b = transaction.create("/b", line());
    a.write({}, {gs::column("v", values)});
    b.write(gs::Region{0, 49}, {gs::column("v", values.data(), 50)});
    REQUIRE(outside.refresh() == 1);
    THROWS(NotFoundError, gs::Array::open(context, "mem://transactions", {"/b"}));
    REQUIRE(transaction.commit("both") == 2 && at(outside, 5) == 7.0);
    THROWS(Error, a.write({}, {gs::column("v", values)}));
    THROWS(Error, transaction.commit());
    gs::Array opened = gs::Array::open(context, "mem://transactions", {"/b"});
    REQUIRE(opened.version() == 2 && at(opened, 49) == 7.0);
}

void results(const gs::Context &context) {
    gs::Schema schema = gs::Schema::sparse();
    schema.axis<int64_t>("x", 0, 999).attribute<double>("v", true).attribute<std::string>("t");
    gs::Array array = gs::Array::create(context, "mem://results", schema);
    const int64_t x[] = {5, 700, 1};
    const double v[] = {0.5, 0.0, 0.1};
    const std::vector<uint8_t> valid{1, 0, 1};
    const gs::Packed t(std::vector<std::string>{"five", "", "one"});
    array.write_cells({gs::column("x", x), gs::column("v", v).validity(valid), t.column("t")});

    gs::Result all = array.read_all();
    REQUIRE(all.rows() == 3 && all.columns() == 3 && all.counters().front() == '{');
    const gs::View<int64_t> xs = all.values<int64_t>("x");
    const gs::View<double> vs = all.values<double>("v");
    const gs::View<std::string> ts = all.values<std::string>("t");
    REQUIRE(xs[0] == 1 && xs[2] == 700 && xs.end() - xs.begin() == 3);
    REQUIRE(vs[1] == 0.5 && vs.is_null(2) && !vs.is_null(0) && ts[1] == "five" && ts[2].empty() && !ts.is_null(2));
    THROWS(InputError, all.values<float>("v"));
    THROWS(InputError, all.values<float>("v", "float64"));
    THROWS(InputError, all.values<double>("t", "string"));
    THROWS(InputError, all.values<std::string>("v", "float64"));
    REQUIRE(all.values<uint64_t>("x", "int64")[2] == 700);
    THROWS(NotFoundError, all.values<float>("nothing"));
    THROWS(InputError, all.column(3));
    gs::Result some = array.points({gs::column("x", x, 1)}, {"t"});
    REQUIRE(some.rows() == 1 && some.values<std::string>("t")[0] == "five");
    REQUIRE(array.count() == 3 && array.count({}, "v > 0.2") == 1 && array.count(gs::Region{0, 9}) == 2);

    auto question = gs::sized<gridstone_question>();
    auto sum = gs::sized<gridstone_aggregate>();
    sum.name = "total";
    sum.text = "sum(v)";
    question.aggregates = &sum;
    question.aggregate_count = 1;
    const gs::Result total = array.aggregate(question);
    REQUIRE(total.values<double>("total")[0] == 0.6);
}

/** Cells of a stream of Arrow, and how many batches they came in. */
std::pair<int64_t, int64_t> drained(gs::ArrowStream stream) {
    int64_t cells = 0, batches = 0;
    for (;; ++batches) {
        ArrowArray batch{};
        REQUIRE(stream.get()->get_next(stream.get(), &batch) == 0);
        if (batch.release == nullptr) return {cells, batches};
        cells += batch.length;
        batch.release(&batch);
    }
}

void streams(const gs::Context &context) {
    const gs::Schema schema = std::move(gs::Schema::sparse().axis<int64_t>("x", 0, 999'999).attribute<int32_t>("v"));
    gs::Array array = gs::Array::create(context, "mem://streams", schema);
    std::vector<int64_t> x(100'000);
    std::vector<int32_t> v(100'000);
    for (size_t cell = 0; cell < x.size(); ++cell) {
        x[cell] = static_cast<int64_t>(3 * cell);
        v[cell] = static_cast<int32_t>(cell % 50'000);
    }
    array.write_cells({gs::column("x", x), gs::column("v", v)});

    /* A stream of Arrow, and what takes one. */
    gs::Reading small;
    small.batch_bytes = 1 << 16;
    gs::Read read = array.read(small);
    gs::Values<int64_t> first("x", 1'000);
    REQUIRE(read.next(first) == 1'000);
    gs::ArrowStream rest = read.to_arrow();
    REQUIRE(rest && !read);
    gs::ArrowStream moved = std::move(rest);
    REQUIRE(!rest && moved);
    const auto [cells, batches] = drained(std::move(moved));
    REQUIRE(cells == 99'000 && batches > 2);
    THROWS(HandleError, read.to_arrow());
    gs::Array copied = gs::Array::create(context, "mem://streams-copied", schema);
    gs::ArrowStream again = array.read().to_arrow();
    REQUIRE(copied.write_arrow(again.get(), "a copy") == 2 && !again);
    REQUIRE(copied.count() == 100'000 && copied.history_json().find("a copy") != std::string::npos);
    gs::ArrowStream twice = array.read().to_arrow();
    THROWS(InputError, copied.write_arrow(nullptr));
    twice = gs::ArrowStream();
    REQUIRE(!twice);

    /* Answers in batches, of Arrow too. */
    auto key = gs::sized<gridstone_group_key>();
    key.expression = "v";
    auto count = gs::sized<gridstone_aggregate>();
    count.name = "cells";
    count.text = "count(*)";
    auto question = gs::sized<gridstone_question>();
    question.keys = &key;
    question.key_count = 1;
    question.aggregates = &count;
    question.aggregate_count = 1;
    gs::Answers answers = array.answers(question);
    uint64_t groups = 0;
    while (const std::optional<gs::Result> batch = answers.next()) {
        const gs::View<int64_t> found = batch->values<int64_t>("cells");
        for (const int64_t one : found) REQUIRE(one == 2);
        groups += batch->rows();
    }
    REQUIRE(groups == 50'000 && !answers.next() && answers.counters().front() == '{');
    REQUIRE(drained(array.answers(question).to_arrow()).first == 50'000);
    ArrowSchema type{};
    ArrowArray values{};
    {
        const gs::Result whole = array.aggregate(question);
        whole.to_arrow(&type, &values);
    }
    REQUIRE(values.length == 50'000 && type.n_children == 2 && values.release != nullptr);
    values.release(&values);
    type.release(&type);
}

void chosen(const gs::Context &context) {
    const gs::Schema schema = std::move(gs::Schema::dense()
                                            .dimension("day", "datetime64[D]", "2026-03", "2026-03", "1 W")
                                            .axis<int32_t>("x", 0, 9)
                                            .attribute<int32_t>("v"));
    gs::Array array = gs::Array::create(context, "mem://chosen", schema, "/days/v");
    std::vector<int32_t> v(310);
    for (size_t cell = 0; cell < v.size(); ++cell) v[cell] = static_cast<int32_t>(cell);
    array.write({}, {gs::column("v", v)});

    /* Positions of each dimension. */
    gs::Result some = array.positions({gs::Positions::listed({30, 0, 30}), gs::Positions::strided(9, 2, -4)});
    const gs::View<int32_t> found = some.values<int32_t>("v");
    REQUIRE(found.size() == 6 && found[0] == 309 && found[1] == 305 && found[2] == 9 && found[3] == 5 && found[4] == 309);
    gs::Result pairs = array.positions({gs::Positions::paired({1, 2}), gs::Positions::paired({3, 4})}, {"v"});
    REQUIRE(pairs.values<int32_t>("v")[1] == 24);
    REQUIRE(array.positions({gs::Positions::all(), gs::Positions::listed({0})}).rows() == 31);
    THROWS(BoundsError, array.positions({gs::Positions::listed({31}), gs::Positions::all()}));

    /* Regions by dates, cut to the domain. */
    gs::Region spring;
    spring.add_texts({"2026-03-30", "2026-05", "", "4"});
    THROWS(BoundsError, array.cells(spring));
    REQUIRE(array.cells(spring.cut()) == 10 && array.cells() == 310);
    gs::Values<int32_t> room("v", 10);
    array.read(spring, room);
    REQUIRE(room[0] == 290 && room[9] == 304);

    /* A region that was moved from or reset means nothing, and never everything. */
    gs::Region gone{20'513, 20'514, 0, 1};
    const gs::Region kept = std::move(gone);
    REQUIRE(array.cells(kept) == 4);
    THROWS(HandleError, array.remove(gone));
    THROWS(HandleError, array.count(gone));
    THROWS(HandleError, array.write(gone, {gs::column("v", v)}));
    gs::Reading reading;
    reading.region = &gone;
    THROWS(HandleError, array.read_all(reading));
    gs::Region reset{20'513, 20'514, 0, 1};
    reset.reset();
    THROWS(HandleError, array.remove(reset));
    gs::Region whole, other = std::move(whole);
    THROWS(HandleError, array.count(whole));
    REQUIRE(array.count(other) == 310 && array.count(other.cut()) == 310);
    gone = gs::Region{20'513, 20'513, 0, 0};
    REQUIRE(array.cells(gone) == 1 && array.cells(gone.add({20'518, 20'518, 0, 9})) == 11);
    /* An empty condition is none that selects, and an error. */
    THROWS(InputError, array.remove({}, ""));
    REQUIRE(array.count({}, "v >= 300") == 10);

    /* Copies, and moving. */
    auto how = gs::sized<gridstone_copy_options>();
    how.path = "/days";
    how.target_path = "/kept";
    REQUIRE(context.copy("mem://chosen", "mem://copy", how).front() == '{');
    REQUIRE(context.move("mem://copy", "/kept/v", "/w", "moved") > 0);
    REQUIRE(gs::Array::open(context, "mem://copy", {"/w"}).count() == 310);
    THROWS(ExistsError, context.copy("mem://chosen", "mem://copy", how));
    THROWS(NotFoundError, context.move("mem://copy", "/nothing", "/x"));
}

#if __cplusplus >= 202002L
void spans(const gs::Context &context) {
    gs::Array array = gs::Array::create(context, "mem://spans", gs::Schema::sparse().axis<uint32_t>("x", 0, 999).attribute<float>("v"));
    std::vector<uint32_t> x{5, 1, 900};
    std::vector<float> v{0.5f, 0.1f, 9.0f};
    array.write_cells({gs::column("x", std::span(x)), gs::column("v", std::span<const float>(v))});
    gs::Values<uint32_t> xs("x", 10);
    gs::Read read = array.read();
    REQUIRE(read.next(xs) == 3 && xs[0] == 1 && xs[2] == 900);
}
#endif

}  // namespace

int main() {
    try {
        names_of_types();
        {
            auto options = gs::sized<gridstone_context_options>();
            options.threads = 2;
            const gs::Context context(options);
            every_type(context);
            errors(context);
            calls(context);
            writers(context);
            transactions(context);
            results(context);
            streams(context);
            chosen(context);
            groups(context);
#if __cplusplus >= 202002L
            spans(context);
#endif
            REQUIRE(context.exists("mem://types") && context.peak_bytes() > 0);
            context.remove("mem://types");
            REQUIRE(!context.exists("mem://types"));
        }
        REQUIRE(gridstone_open_handles() == 0);
    } catch (const std::exception &error) {
        std::cerr << error.what() << "\n";
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
