// Chunks that kvscope packs and unpacks itself: contents, ways of reading, and damage.
#include <libdeflate.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <numeric>
#include <random>

#include "kernels/threads/team.h"
#include "tests/trace/sample_trace.h"
#include "trace/checks/check_trace.h"
#include "trace/hdf5/chunk_packing.h"
#include "trace/hdf5/hdf5.h"
#include "trace/hdf5/input_file.h"
#include "trace/hdf5/output_file.h"
#include "trace/hdf5/threaded_chunk_io.h"
#include "trace/part_folder.h"
#include "trace/reader.h"

using namespace kvscope;
using namespace kvscope::trace;
namespace fs = std::filesystem;

namespace {

using Shape = std::vector<std::size_t>;

std::size_t count_of(const Shape& shape) {
    return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
}

template <class T>
std::vector<T> some_values(const Shape& shape) {
    std::mt19937 random(7);
    std::vector<T> values(count_of(shape));
    for (T& value : values) value = static_cast<T>(random() % 1000) / static_cast<T>(3);
    if constexpr (std::is_floating_point_v<T>)
        if (!values.empty()) values.back() = std::nan("");
    return values;
}

template <class T>
bool are_same_bits(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

/// Reads through HDF5 and its own filters.
template <class T>
std::vector<T> read_by_hdf5(hid_t data_set, const Shape& shape) {
    std::vector<T> values(count_of(shape));
    if (!values.empty())
        REQUIRE(H5Dread(data_set, h5::native_type<T>(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0);
    return values;
}

void in_new_file(const fs::path& path, const std::function<void(hid_t)>& write) {
    const h5::Guard guard;
    OutputFile file(path);
    write(file.id());
    file.close();
    file.commit(path);
}

void in_file(const fs::path& path, const std::function<void(hid_t)>& look) {
    const h5::Guard guard;
    const h5::Handle file = open_input_file(path);
    look(file.get());
}

std::string bytes_of_file(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

const std::vector<Shape>& shapes() {
    static const std::vector<Shape> all = {{1},
                                           {7},
                                           {1 << 18},
                                           {(1 << 18) + 1},
                                           {600'001},
                                           {0},
                                           {3, 0},
                                           {1, 1},
                                           {5, 3},
                                           {3, 1021},
                                           {2, 300'001},
                                           {1, 1, 1},
                                           {3, 2, 1031},
                                           {2, 8, 34'025},
                                           {2, 3, 5, 7},
                                           {2, 4, 64, 65},
                                           {1, 1, 1, 1},
                                           {2, 1, 9, 30'011},
                                           {32, 2, 1, 11},
                                           {}};
    return all;
}

/// A data set whose chunks HDF5 packs with the added filters, one after the other.
h5::Handle made_by_hdf5(hid_t file, const Shape& shape, const Shape& chunk, const std::function<void(hid_t)>& filters,
                        const std::vector<float>* values) {
    const std::vector<hsize_t> extent(shape.begin(), shape.end()), piece(chunk.begin(), chunk.end());
    const h5::Handle space(H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr), H5Sclose);
    const h5::Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    REQUIRE(H5Pset_chunk(creation.get(), static_cast<int>(piece.size()), piece.data()) >= 0);
    filters(creation.get());
    h5::Handle made(H5Dcreate2(file, "values", H5T_IEEE_F32LE, space.get(), H5P_DEFAULT, creation.get(), H5P_DEFAULT),
                    H5Dclose);
    REQUIRE(made);
    if (values != nullptr)
        REQUIRE(H5Dwrite(made.get(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values->data()) >= 0);
    return made;
}

void shuffle_and_deflate(hid_t creation) {
    H5Pset_shuffle(creation);
    H5Pset_deflate(creation, 1);
}

std::vector<unsigned char> deflated(const std::vector<float>& values) {
    auto* const compressor = libdeflate_alloc_compressor(6);
    std::vector<unsigned char> packed(libdeflate_zlib_compress_bound(compressor, values.size() * sizeof(float)));
    packed.resize(libdeflate_zlib_compress(compressor, values.data(), values.size() * sizeof(float), packed.data(),
                                           packed.size()));
    libdeflate_free_compressor(compressor);
    return packed;
}

std::string what_of(const std::function<void()>& work) {
    try {
        work();
    } catch (const TraceError& error) {
        return error.what();
    }
    return "";
}

}  // namespace

TEMPLATE_TEST_CASE("values of any type and shape are read as written, also by HDF5's own filters", "[trace]", float,
                   double, std::int32_t, std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t) {
    const sample::TemporaryFolder folder;
    const int n_threads = GENERATE(1, 3);
    const kernels::Threads threads(n_threads);
    in_new_file(folder / "t.h5", [](hid_t file) {
        for (std::size_t i = 0; i < shapes().size(); ++i) {
            const auto values = some_values<TestType>(shapes()[i]);
            h5::write_data_set<TestType>(file, std::to_string(i), values, shapes()[i]);
        }
    });
    in_file(folder / "t.h5", [](hid_t file) {
        for (std::size_t i = 0; i < shapes().size(); ++i) {
            const Shape& shape = shapes()[i];
            const h5::Handle data_set = h5::open_data_set(file, std::to_string(i));
            INFO("shape " << i);
            REQUIRE(h5::data_set_info(data_set.get()).shape == shape);
            const auto values = some_values<TestType>(shape);
            CHECK(are_same_bits(h5::read_data_set<TestType>(data_set.get()), values));
            CHECK(are_same_bits(read_by_hdf5<TestType>(data_set.get(), shape), values));
            const bool is_chunked = !shape.empty() && count_of(shape) > 0;
            CHECK(h5::check_chunks(data_set.get(), "read it") == is_chunked);
        }
    });
}

TEST_CASE("blocks are read that end at chunk borders or inside chunks", "[trace]") {
    const sample::TemporaryFolder folder;
    const Shape shape = {7, 5, 2050};
    const auto values = some_values<float>(shape);
    in_new_file(folder / "t.h5", [&](hid_t file) {
        made_by_hdf5(file, shape, {2, 3, 1024}, shuffle_and_deflate, &values).close("close");
    });
    in_file(folder / "t.h5", [&](hid_t file) {
        const h5::Handle data_set = h5::open_data_set(file, "values");
        std::mt19937 random(3);
        int n_whole = 0;
        for (int round = 0; round < 400; ++round) {
            Block block{Shape(3), Shape(3)};
            for (std::size_t i = 0; i < 3; ++i) {
                const std::size_t step = round % 2 == 0 ? Shape{2, 3, 1024}[i] : 1;
                block.first[i] = random() % ((shape[i] - 1) / step + 1) * step;
                block.count[i] = std::min(random() % 3 * step, shape[i] - block.first[i]);
            }
            std::vector<float> expected;
            for (std::size_t a = 0; a < block.count[0]; ++a)
                for (std::size_t b = 0; b < block.count[1]; ++b)
                    for (std::size_t c = 0; c < block.count[2]; ++c)
                        expected.push_back(
                            values[((block.first[0] + a) * 5 + block.first[1] + b) * 2050 + block.first[2] + c]);
            CHECK(are_same_bits(h5::read_data_set<float>(data_set.get(), &block), expected));
            std::vector<float> here(expected.size());
            if (expected.empty() || !h5::read_chunks(data_set.get(), &block, here.data(), "read it")) continue;
            CHECK(are_same_bits(here, expected));
            CHECK(are_same_bits(h5::read_data_set<double>(data_set.get(), &block),
                                std::vector<double>(expected.begin(), expected.end())));
            ++n_whole;
        }
        CHECK(n_whole > 40);
        CHECK(n_whole < 300);
        const Block outside{{0, 4, 0}, {1, 2, 1}};
        CHECK_THROWS_AS(h5::read_data_set<float>(data_set.get(), &outside), std::out_of_range);
    });
}

TEST_CASE("a file's bytes do not depend on the number of threads", "[trace]") {
    const sample::TemporaryFolder folder;
    const auto write = [&](const std::string& name, int n_threads) {
        const kernels::Threads threads(n_threads);
        in_new_file(folder / name, [](hid_t file) {
            for (std::size_t i = 0; i < shapes().size(); ++i)
                h5::write_data_set<float>(file, std::to_string(i), some_values<float>(shapes()[i]), shapes()[i]);
            h5::write_texts(file, "texts", std::vector<std::string>(100'000, "a text of some length"));
        });
        return bytes_of_file(folder / name).substr(1024);  // skips the root's header, which contains the time
    };
    const std::string by_one = write("1.h5", 1);
    CHECK(by_one.size() > 1'000'000);
    CHECK((write("2.h5", 2) == by_one));  // avoids printing bytes on failure
    CHECK((write("5.h5", 5) == by_one));
}

TEST_CASE("a dimension is cut into equal pieces", "[trace]") {
    const auto chunk_of = [](const Shape& shape, std::size_t element_bytes) {
        const h5::Guard guard;
        const h5::Handle creation = h5::creation_properties(shape, element_bytes);
        std::vector<hsize_t> chunk(shape.size());
        REQUIRE(H5Pget_chunk(creation.get(), static_cast<int>(chunk.size()), chunk.data()) >= 0);
        return Shape(chunk.begin(), chunk.end());
    };
    CHECK(chunk_of({32, 8, 34'025}, 4) ==
          Shape{1, 4, 34'025});  // 7 rows fit, but then 6 rows of the last piece would be empty
    CHECK(chunk_of({32, 8, 15'109}, 4) == Shape{1, 8, 15'109});
    CHECK(chunk_of({300'000}, 4) == Shape{150'000});
    CHECK(chunk_of({2, 300'001}, 4) == Shape{1, 150'001});
    CHECK(chunk_of({30, 3, 4}, 4) == Shape{30, 3, 4});
}

TEST_CASE("texts are packed and read like numbers", "[trace]") {
    const sample::TemporaryFolder folder;
    std::vector<std::string> texts(70'001);
    for (std::size_t i = 0; i < texts.size(); ++i) texts[i] = std::string(i % 37, 'x') + std::to_string(i);
    in_new_file(folder / "t.h5", [&](hid_t file) { h5::write_texts(file, "texts", texts); });
    in_file(folder / "t.h5", [&](hid_t file) {
        const h5::Handle data_set = h5::open_data_set(file, "texts");
        CHECK(h5::check_chunks(data_set.get(), "read it"));
        CHECK(h5::read_texts(data_set.get()) == texts);
        const h5::Handle type(H5Dget_type(data_set.get()), H5Tclose);
        const std::size_t length = H5Tget_size(type.get());
        std::vector<char> bytes(texts.size() * length);
        REQUIRE(H5Dread(data_set.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()) >= 0);
        CHECK(std::string(bytes.data() + 70'000 * length) == texts[70'000]);
    });
}

TEST_CASE("data that other programs packed with any filters are read", "[trace]") {
    const sample::TemporaryFolder folder;
    const Shape shape = {3, 50, 1001};
    const auto values = some_values<float>(shape);
    const auto read_back = [&](const std::function<void(hid_t)>& filters, bool is_ours) {
        in_new_file(folder / "t.h5", [&](hid_t file) {
            made_by_hdf5(file, shape, {2, 16, 1001}, filters, &values).close("close");
        });
        in_file(folder / "t.h5", [&](hid_t file) {
            const h5::Handle data_set = h5::open_data_set(file, "values");
            CHECK(are_same_bits(h5::read_data_set<float>(data_set.get()), values));
            CHECK(h5::check_chunks(data_set.get(), "read it") == is_ours);
        });
    };
    read_back(shuffle_and_deflate, true);
    read_back([](hid_t creation) { H5Pset_deflate(creation, 9); }, true);
    read_back([](hid_t) {}, false);
    read_back([](hid_t creation) { H5Pset_shuffle(creation); }, false);
    read_back([](hid_t creation) { H5Pset_fletcher32(creation), shuffle_and_deflate(creation); }, false);
    read_back([](hid_t creation) { H5Pset_deflate(creation, 1), H5Pset_shuffle(creation); }, false);
    read_back(
        [](hid_t creation) {
            shuffle_and_deflate(creation);
            H5Pset_chunk_opts(creation, H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS);
        },
        false);
}

TEST_CASE("chunks that are damaged, of another size, unfiltered or missing", "[trace]") {
    const sample::TemporaryFolder folder;
    const Shape shape = {6, 5000}, chunk = {1, 5000};
    const auto values = some_values<float>(shape);
    const std::vector<float> row(values.begin(), values.begin() + 5000);
    auto packed = deflated(row);
    std::uint32_t passed_by = 0;
    bool is_sound = false;
    SECTION("sound") { is_sound = true; }
    SECTION("a byte in the middle") { packed[packed.size() / 2] ^= 0x55; }
    SECTION("the checksum") { packed.back() ^= 1; }
    SECTION("cut short") { packed.resize(packed.size() / 2); }
    SECTION("too few numbers") { packed = deflated(std::vector<float>(row.begin(), row.end() - 1)); }
    SECTION("too many numbers") { packed = deflated(std::vector<float>(values.begin(), values.begin() + 5001)); }
    SECTION("very many numbers") { packed = deflated(std::vector<float>(4'000'000)); }
    SECTION("one byte") { packed.resize(1); }
    SECTION("unfiltered, and declared so") {
        packed.assign(reinterpret_cast<const unsigned char*>(row.data()),
                      reinterpret_cast<const unsigned char*>(row.data() + row.size()));
        passed_by = 1;  // skips its only filter
        is_sound = true;
    }
    in_new_file(folder / "t.h5", [&](hid_t file) {
        const auto data_set = made_by_hdf5(
            file, shape, chunk, [](hid_t p) { H5Pset_deflate(p, 1); }, &values);
        const hsize_t offset[] = {3, 0};
        REQUIRE(H5Dwrite_chunk(data_set.get(), H5P_DEFAULT, passed_by, offset, packed.size(), packed.data()) >= 0);
    });
    in_file(folder / "t.h5", [&](hid_t file) {
        const h5::Handle data_set = h5::open_data_set(file, "values");
        if (is_sound) {
            auto expected = values;
            std::copy(row.begin(), row.end(), expected.begin() + 3 * 5000);
            CHECK(are_same_bits(h5::read_data_set<float>(data_set.get()), expected));
            CHECK(h5::check_chunks(data_set.get(), "read it") == (passed_by == 0));
            return;
        }
        CHECK_THAT(what_of([&] { (void)h5::read_data_set<float>(data_set.get()); }),
                   Catch::Contains("one of its chunks is damaged"));
        CHECK_THAT(what_of([&] { h5::check_chunks(data_set.get(), "read it"); }),
                   Catch::Equals("cannot read it: one of its chunks is damaged"));
    });
}

TEST_CASE("chunks that were never written read as the fill value, but are damage in a part", "[trace]") {
    const sample::TemporaryFolder folder;
    in_new_file(folder / "t.h5", [&](hid_t file) {
        const auto data_set = made_by_hdf5(
            file, {4, 100}, {1, 100},
            [](hid_t creation) {
                shuffle_and_deflate(creation);
                const float fill = 2.5F;
                H5Pset_fill_value(creation, H5T_NATIVE_FLOAT, &fill);
            },
            nullptr);
    });
    in_file(folder / "t.h5", [&](hid_t file) {
        const h5::Handle data_set = h5::open_data_set(file, "values");
        CHECK(h5::read_data_set<float>(data_set.get()) == std::vector<float>(400, 2.5F));
        CHECK_THAT(what_of([&] { h5::check_chunks(data_set.get(), "read it"); }),
                   Catch::Equals("cannot read it: one of its chunks is missing"));
    });
}

TEST_CASE("a data set of which some chunks were written is read as HDF5 reads it", "[trace]") {
    const sample::TemporaryFolder folder;
    const std::vector<float> row = some_values<float>({100});
    in_new_file(folder / "t.h5", [&](hid_t file) {
        const auto data_set = made_by_hdf5(file, {4, 100}, {1, 100}, shuffle_and_deflate, nullptr);
        const h5::Handle space(H5Dget_space(data_set.get()), H5Sclose);
        const hsize_t first[] = {2, 0}, count[] = {1, 100};
        const h5::Handle memory(H5Screate_simple(2, count, nullptr), H5Sclose);
        REQUIRE(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, first, nullptr, count, nullptr) >= 0);
        REQUIRE(H5Dwrite(data_set.get(), H5T_NATIVE_FLOAT, memory.get(), space.get(), H5P_DEFAULT, row.data()) >= 0);
    });
    in_file(folder / "t.h5", [&](hid_t file) {
        const h5::Handle data_set = h5::open_data_set(file, "values");
        std::vector<float> expected(400, 0.0F);
        std::copy(row.begin(), row.end(), expected.begin() + 200);
        CHECK(are_same_bits(h5::read_data_set<float>(data_set.get()), expected));
        for (const std::size_t i : {0U, 2U}) {
            const Block block{{i, 0}, {1, 100}};
            const auto begin = expected.begin() + static_cast<std::ptrdiff_t>(100 * i);
            CHECK(are_same_bits(h5::read_data_set<float>(data_set.get(), &block),
                                std::vector<float>(begin, begin + 100)));
        }
        CHECK_THAT(what_of([&] { h5::check_chunks(data_set.get(), "read it"); }),
                   Catch::Equals("cannot read it: one of its chunks is missing"));
    });
}

TEST_CASE("a part with a chunk that is damaged, missing or of another size is set aside", "[trace]") {
    const sample::TemporaryFolder folder;
    Writer writer(folder / "t.h5", sample::recipe);
    sample::write_parts(writer);
    const fs::path part = folder.path() / "t.h5.part" / part_file_name_of_run(0, 2);
    const std::string name = "/prompts/0/runs/2/scores";
    const auto change = GENERATE(0, 1, 2);
    {
        const h5::Guard guard;
        const h5::Handle file(h5::checked(H5Fopen(part.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), "open"), H5Fclose);
        const h5::Handle data_set = h5::open_data_set(file.get(), name);
        const Shape shape = h5::data_set_info(data_set.get()).shape;
        const std::vector<hsize_t> offset(shape.size(), 0);
        std::vector<unsigned char> packed = deflated(some_values<float>(shape));
        if (change == 0) packed[packed.size() / 2] ^= 0x55;
        if (change == 1) packed = deflated(some_values<float>({count_of(shape) - 1}));
        if (change < 2)
            h5::checked(H5Dwrite_chunk(data_set.get(), H5P_DEFAULT, 0, offset.data(), packed.size(), packed.data()),
                        "damage it");
        if (change == 2) {
            const h5::Handle creation = h5::creation_properties(shape, sizeof(float));
            const h5::Handle space(H5Dget_space(data_set.get()), H5Sclose);
            H5Ldelete(file.get(), name.c_str(), H5P_DEFAULT);
            const h5::Handle empty(H5Dcreate2(file.get(), name.c_str(), H5T_IEEE_F32LE, space.get(), H5P_DEFAULT,
                                              creation.get(), H5P_DEFAULT),
                                   H5Dclose);
            REQUIRE(empty);
        }
    }
    CHECK_THROWS_AS(writer.finish(), DamagedTrace);
    CHECK_FALSE(fs::exists(part));
    CHECK(fs::exists(folder.path() / "t.h5.part" / "run-0-2.damaged-1"));
    { const Writer released = std::move(writer); }
    Writer again(folder / "t.h5", sample::recipe);
    CHECK_FALSE(again.has_run(0, 2));
    sample::write_parts(again);
    again.finish();
    CHECK(find_problems(folder / "t.h5").empty());
}

TEST_CASE("a data set that claims many or huge chunks does not allocate memory for them", "[trace]") {
    const sample::TemporaryFolder folder;
    in_new_file(folder / "t.h5", [&](hid_t file) {
        const hsize_t shape[] = {4}, most[] = {H5S_UNLIMITED}, chunk[] = {hsize_t{1} << 29};
        const h5::Handle space(H5Screate_simple(1, shape, most), H5Sclose);
        const h5::Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
        H5Pset_chunk(creation.get(), 1, chunk);
        shuffle_and_deflate(creation.get());
        const h5::Handle huge(
            H5Dcreate2(file, "huge", H5T_IEEE_F32LE, space.get(), H5P_DEFAULT, creation.get(), H5P_DEFAULT), H5Dclose);
        REQUIRE(huge);
        const auto many = made_by_hdf5(file, {std::size_t{1} << 60}, {1}, shuffle_and_deflate, nullptr);
    });
    in_file(folder / "t.h5", [&](hid_t file) {
        CHECK_FALSE(h5::check_chunks(h5::open_data_set(file, "huge").get(), "read it"));
        const h5::Handle many = h5::open_data_set(file, "values");
        CHECK_THAT(what_of([&] { (void)h5::read_data_set<float>(many.get()); }), Catch::Contains("is too large for"));
        CHECK_THAT(what_of([&] { h5::check_chunks(many.get(), "read it"); }), Catch::Contains("is missing"));
    });
}
