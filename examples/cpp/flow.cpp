/*
 * The life of an array in C++: the same as examples/c/flow.c, with handles that free themselves and errors that are exceptions.
 *
 *     c++ -std=c++17 flow.cpp $(pkg-config --cflags --libs gridstone) -o flow && ./flow flow.gs
 */

#include <gridstone.hpp>

#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>
#include <vector>
#if __cplusplus >= 202002L
#include <span>
#endif

namespace gs = gridstone;

namespace {

constexpr int64_t rows = 1000, columns = 800;

void require(bool holds, const char *what) {
    if (!holds) throw std::runtime_error(std::string("not so: ") + what);
}

std::vector<float> image() {
    std::vector<float> light(rows * columns);
    for (size_t i = 0; i < light.size(); ++i) light[i] = static_cast<float>(i % 977);
    return light;
}

/* A dense array: written whole, then three cells of it, then read in a box. */
gs::Array dense(const gs::Context &context, const std::string &uri) {
    gs::Schema schema = gs::Schema::dense();
    schema.axis<int64_t>("row", 0, rows - 1, 100).axis<int64_t>("column", 0, columns - 1, 100).attribute<float>("light");
    gs::Array array = gs::Array::create(context, uri, schema, "/image");

    const std::vector<float> light = image();
#if __cplusplus >= 202002L
    array.write({}, {gs::column("light", std::span(light))}, "first light");
#else
    array.write({}, {gs::column("light", light)}, "first light");
#endif
    const int64_t row[] = {3, 500, 999}, column[] = {7, 400, 799};
    const float corrected[] = {-3, -500, -999};
    array.write_cells({gs::column("row", row), gs::column("column", column), gs::column("light", corrected)}, "three cells corrected");

    gs::Values<float> found("light", 200 * 300);
    array.read(gs::Region{400, 599, 300, 599}, found);
    require(found.size() == 200 * 300 && found[100 * 300 + 100] == -500, "the corrected cell");
    require(found[0] == light[400 * columns + 300], "the first cell of the box");
    return array;
}

/* Eight threads stage the rows of an image, and one commit makes all of them seen. */
void in_threads(gs::Array &array) {
    std::vector<gs::Staged> staged(8);
    std::vector<std::thread> threads;
    for (int64_t part = 0; part < 8; ++part) {
        threads.emplace_back([&array, &staged, part] {
            const std::vector<float> values(100 * columns, static_cast<float>(part));
            const gs::Region region{part * 100, part * 100 + 99, 0, columns - 1};
            staged[static_cast<size_t>(part)] = array.stage(region, {gs::column("light", values)});
        });
    }
    for (std::thread &thread : threads) thread.join();
    const uint64_t before = array.version();
    require(array.commit(std::move(staged), "eight parts") == before + 1, "one commit");
    gs::Values<float> found("light", 1000 * 800);
    array.read({}, found);
    require(found[350 * columns] == 3 && found[999 * columns + 799] == -999, "the parts, and the cells that they left alone");
}

/* A sparse array with texts and nulls, read through little room. */
void sparse(const gs::Context &context, const std::string &uri) {
    gs::Schema schema = gs::Schema::sparse();
    schema.axis<int64_t>("x", 0, 999'999).attribute<double>("weight", true).attribute<std::string>("name");
    gs::Array array = gs::Array::create(context, uri, schema, "/points");

    std::vector<int64_t> x;
    std::vector<double> weight;
    std::vector<uint8_t> valid;
    gs::Packed names;
    for (int64_t i = 0; i < 100'000; ++i) {
        x.push_back(i * 7919 % 100'000);
        weight.push_back(static_cast<double>(x.back()) / 2);
        valid.push_back(x.back() % 10 != 0);
        names.add("n" + std::to_string(x.back()));
    }
    array.write_cells({gs::column("x", x), gs::column("weight", weight).validity(valid), names.column("name")}, "points");

    gs::Reading every_point;
    every_point.order = GRIDSTONE_ORDER_ANY;
    gs::Read read = array.read(every_point);
    gs::Values<int64_t> xs("x", 4096);
    gs::Values<double> weights("weight", 4096, true);
    gs::Texts texts("name", 4096, 1 << 16);
    uint64_t found = 0;
    while (const uint64_t cells = read.next(xs, weights, texts)) {
        for (size_t i = 0; i < cells; ++i) {
            require(texts[i] == "n" + std::to_string(xs[i]), "the text of a point");
            require(weights.is_null(i) == (xs[i] % 10 == 0), "whether a weight is null");
            require(weights.is_null(i) || weights[i] == static_cast<double>(xs[i]) / 2, "the weight of a point");
        }
        found += cells;
    }
    require(found == 100'000 && read.is_complete(), "every point once");
    std::cout << found << " points\n";
}

/* Errors are exceptions, a class for each status. */
void errors(const gs::Context &context, gs::Array &array) {
    try {
        gs::Array::open(context, array.uri(), {"/nothing"});
        require(false, "an array that is not there was opened");
    } catch (const gs::NotFoundError &error) {
        require(error.status() == GRIDSTONE_ERROR_NOT_FOUND && *error.what() != '\0', "what was not found");
    }
    try {
        array.write({}, {gs::column("light", std::vector<double>(rows * columns).data(), rows * columns)});
        require(false, "doubles were taken for floats");
    } catch (const gs::InputError &) {
    }
}

}  // namespace

int main(int argc, char **argv) {
    const std::string uri = argc > 1 ? argv[1] : "flow.gs";
    try {
        {
            const gs::Context context;
            gs::Array array = dense(context, uri);
            in_threads(array);
            sparse(context, uri);
            errors(context, array);
            array.refresh();
            array.consolidate("all");
            std::cout << "the image is at version " << array.version() << "\n";
        }
        require(gridstone_open_handles() == 0, "every handle is free");
    } catch (const std::exception &error) {
        std::cerr << error.what() << "\n";
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
