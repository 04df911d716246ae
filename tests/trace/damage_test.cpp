// Damaged files, one test for each kind of damage: a typed error with a clear message, never a crash.
#include "tests/trace/damage.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <random>

#include "tests/trace/sample_trace.h"
#include "trace/hdf5/global_heap.h"
#include "trace/tree.h"

using namespace kvscope::trace;
using namespace kvscope::trace::damage;

TEST_CASE("files that are not traces", "[trace]") {
    const sample::TemporaryFolder folder;
    const fs::path path = folder / "t.h5";
    SECTION("nothing") {
        CHECK_THROWS_AS(Reader(path), NotATrace);
        CHECK_THROWS_AS(find_problems(path), NotATrace);
        CHECK_THROWS_AS(tree(path), NotATrace);
    }
    SECTION("an empty file") {
        write_bytes(path, "");
        CHECK_THROWS_AS(Reader(path), NotATrace);
    }
    SECTION("a text") {
        write_bytes(path, std::string(5000, 'x'));
        CHECK_THROWS_AS(Reader(path), NotATrace);
    }
    SECTION("a workspace") {
        const fs::path workspace = folder / "w.kvscope";
        write_bytes(workspace, "PK\3\4 and so on");
        CHECK(message_of([&] { Reader reader(workspace); }).find("is a workspace, not a trace") != std::string::npos);
        write_bytes(workspace, "a text");
        CHECK(message_of([&] { Reader reader(workspace); }).find("found something else") != std::string::npos);
    }
    SECTION("a folder") {
        fs::create_directory(path);
        CHECK_THROWS_AS(Reader(path), NotATrace);
    }
    SECTION("a device") { CHECK_THROWS_AS(Reader("/dev/zero"), NotATrace); }
    SECTION("HDF5 of another program") {
        const h5::Guard guard;
        H5Fclose(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
        CHECK_THROWS_AS(Reader(path), NotATrace);
        CHECK_THROWS_AS(find_problems(path), NotATrace);
    }
    SECTION("another value of format") {
        sample::write_anew(path);
        edit(path, [](hid_t file) { set_attribute(file, "/", "format", std::string("other-trace")); });
        CHECK_THROWS_AS(Reader(path), NotATrace);
        CHECK(message_of([&] { Reader reader(path); }).find("other-trace") != std::string::npos);
    }
}

TEST_CASE("versions", "[trace]") {
    const sample::TemporaryFolder folder;
    const fs::path path = folder / "t.h5";
    sample::write_anew(path);
    const auto with_version = [&](const std::string& version) {
        edit(path, [&](hid_t file) { set_attribute(file, "/", "version", version); });
    };
    with_version("2.0");
    CHECK_THROWS_AS(Reader(path), TraceTooNew);
    CHECK_THROWS_AS(find_problems(path), TraceTooNew);
    const std::string message = message_of([&] { Reader reader(path); });
    CHECK(message.find("2.0") != std::string::npos);
    CHECK(message.find("up to 1") != std::string::npos);
    with_version("10");
    CHECK_THROWS_AS(Reader(path), TraceTooNew);
    with_version("new");
    CHECK_THROWS_AS(Reader(path), DamagedTrace);
    with_version("");
    CHECK_THROWS_AS(Reader(path), DamagedTrace);
    with_version("1.7");  // a newer minor version only adds names
    CHECK_NOTHROW(read_all(path));
}

TEST_CASE("a newer version's folder", "[trace]") {
    const sample::TemporaryFolder folder;
    { Writer writer(folder / "t.h5", sample::recipe); }
    const fs::path record = folder.path() / "t.h5.part" / "trace.json";
    std::string text = contents(record);
    text.replace(text.find("\"1.2\""), 5, "\"3.1\"");
    write_bytes(record, text);
    CHECK_THROWS_AS(Reader(folder / "t.h5.part"), TraceTooNew);
    CHECK_THROWS_AS(Writer(folder / "t.h5", sample::recipe), OutputExists);
    write_bytes(record, "{");
    CHECK_THROWS_AS(Reader(folder / "t.h5.part"), DamagedTrace);
}

TEST_CASE("a file cut off at any byte", "[trace]") {
    const sample::TemporaryFolder folder;
    sample::write_anew(folder / "t.h5");
    const std::string bytes = contents(folder / "t.h5");
    const fs::path path = folder / "cut.h5";
    for (std::size_t length = 0; length < bytes.size(); length += length < 64 ? 1 : 997) {
        write_bytes(path, bytes.substr(0, length));
        INFO("length " << length);
        if (length < 8) {
            CHECK_THROWS_AS(Reader(path), NotATrace);
        } else {
            CHECK_THROWS_AS(Reader(path), TruncatedTrace);
        }
    }
    write_bytes(path, bytes.substr(0, bytes.size() - 1));
    CHECK_THROWS_AS(Reader(path), TruncatedTrace);
    CHECK_THROWS_AS(find_problems(path), TruncatedTrace);
    CHECK_THROWS_WITH(Writer(path, "{}"), Catch::Contains("the file is incomplete") &&
                                              Catch::Contains("copy it again") && !Catch::Contains("different file"));
}

TEST_CASE("metadata that HDF5 cannot read is called damaged", "[trace]") {
    const sample::TemporaryFolder folder;
    sample::write_anew(folder / "t.h5");
    std::string bytes = contents(folder / "t.h5");
    const fs::path path = folder / "damaged.h5";
    for (size_t at = bytes.find("GCOL"); at != std::string::npos; at = bytes.find("GCOL", at))
        bytes.replace(at, 4, "LOCG");
    write_bytes(path, bytes);
    CHECK_THROWS_AS(Reader(path), DamagedTrace);
    CHECK_THROWS_WITH(Reader(path), Catch::Contains("the file is damaged; restore it from a backup"));
    CHECK_THROWS_WITH(Writer(path, "{}"), Catch::Contains("the file is damaged") && !Catch::Contains("different file"));
}

TEST_CASE("a reader ignores unknown items", "[trace]") {
    const sample::TemporaryFolder folder;
    const fs::path path = folder / "t.h5";
    sample::write_anew(path);
    edit(path, [](hid_t f) {
        const std::vector<float> one(1);
        for (const char* name : {"/future/data", "/prompts/0/later", "/prompts/0/runs/1/more", "/prompts/0/full/new"}) {
            h5::write_data_set<float>(f, name, std::span<const float>(one), std::vector<std::size_t>{1});
        }
        set_attribute(f, "/prompts/0/runs/1", "new", std::string("x"));
        h5::create_group(f, "/prompts/notes");
        H5Lcreate_soft("/nowhere", f, "/prompts/0/runs/dangling", H5P_DEFAULT, H5P_DEFAULT);
    });
    CHECK_NOTHROW(read_all(path));
    CHECK(find_problems(path).empty());
}

TEST_CASE("a part that is damaged when the parts are joined is set aside and made again", "[trace]") {
    const sample::TemporaryFolder folder;
    Writer writer(folder / "t.h5", sample::recipe);
    sample::write_parts(writer);
    const fs::path part = folder.path() / "t.h5.part" / "run-0-2.h5";
    std::string bytes = contents(part);
    // All object headers except the first, which belongs to the root.
    for (std::size_t at = bytes.find("OHDR", bytes.find("OHDR") + 1); at != std::string::npos;
         at = bytes.find("OHDR", at + 1)) {
        bytes[at] = 'X';
    }
    write_bytes(part, bytes);
    CHECK_THROWS_AS(writer.finish(), DamagedTrace);
    CHECK_FALSE(fs::exists(part));
    CHECK(contents(folder.path() / "t.h5.part" / "run-0-2.damaged-1") == bytes);
    CHECK_FALSE(fs::exists(folder / "t.h5"));
    { const Writer released = std::move(writer); }
    Writer again(folder / "t.h5", sample::recipe);
    CHECK(again.has_run(0, 1));
    CHECK_FALSE(again.has_run(0, 2));
    sample::write_parts(again);
    again.finish();
    CHECK(find_problems(folder / "t.h5").empty());
}

TEST_CASE("heaps of texts are checked before HDF5 reads them", "[trace]") {
    const auto number = [](std::vector<unsigned char>& out, std::size_t at, std::uint64_t value, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) out[at + i] = static_cast<unsigned char>(value >> (8 * i));
    };
    std::vector<unsigned char> heap(4096, 0);
    std::copy_n("GCOL\1", 5, heap.begin());
    number(heap, 8, heap.size(), 8);
    number(heap, 16, 1, 2);  // object 1 of 11 bytes, padded to 16
    number(heap, 24, 11, 8);
    number(heap, 48, 2, 2);          // object 2 of no bytes
    number(heap, 72, 4096 - 64, 8);  // free space to the end
    REQUIRE(h5::is_sound_heap(heap));

    std::vector<unsigned char> bad = heap;
    SECTION("another signature") { bad[0] = 'g'; }
    SECTION("another version") { bad[4] = 2; }
    SECTION("another length") { number(bad, 8, 8192, 8); }
    SECTION("an object longer than the rest") { number(bad, 24, 4096, 8); }
    SECTION("an object of absurd length") { number(bad, 24, ~std::uint64_t{0}, 8); }
    SECTION("an object that extends into another") { number(bad, 24, 17, 8); }
    SECTION("the same object twice") { number(bad, 48, 1, 2); }
    SECTION("free space of no length") { number(bad, 72, 0, 8); }
    SECTION("bits that are reserved") { bad[20] = 1; }
    CHECK(h5::is_sound_heap(bad) == (bad == heap));
}

TEST_CASE("bits flipped at random never crash a reader", "[trace]") {
    const sample::TemporaryFolder folder;
    sample::Options options;
    options.n_questions = 2;
    options.n_tokens = 24;
    sample::write_anew(folder / "t.h5", options);
    const char* other = std::getenv("KVSCOPE_FUZZ_FILE");
    const std::string bytes = contents(other != nullptr ? fs::path(other) : folder / "t.h5");
    const fs::path path = folder / "flipped.h5";
    std::mt19937 random(20240229);
    int refused = 0;
    const char* more = std::getenv("KVSCOPE_FUZZ_ROUNDS");
    const int rounds = more != nullptr ? std::atoi(more) : 200;
    for (int i = 0; i < rounds; ++i) {
        std::string flipped = bytes;
        const int bits = 1 << (random() % 4);
        for (int b = 0; b < bits; ++b) flipped[random() % flipped.size()] ^= static_cast<char>(1U << (random() % 8));
        write_bytes(path, flipped);
        try {
            read_all(path);
        } catch (const TraceError&) {
            ++refused;
        }
        for (const auto& look : {std::function<void()>([&] { (void)find_problems(path); }),
                                 std::function<void()>([&] { (void)tree(path); })}) {
            try {
                look();
            } catch (const TraceError&) {
            }
        }
    }
    CHECK(refused > rounds / 4);
}

TEST_CASE("a part whose data set claims more than any trace can hold is set aside, too", "[trace]") {
    const sample::TemporaryFolder folder;
    Writer writer(folder / "t.h5", sample::recipe);
    sample::write_parts(writer);
    const fs::path part = folder.path() / "t.h5.part" / "run-0-2.h5";
    edit(part, [](hid_t f) {
        const hsize_t shape[] = {1, hsize_t{1} << 31, hsize_t{1} << 30}, chunk[] = {1, 1, 1};
        const h5::Handle space(H5Screate_simple(3, shape, nullptr), H5Sclose);
        const h5::Handle properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
        H5Pset_chunk(properties.get(), 3, chunk);
        const h5::Handle created(H5Dcreate2(f, "/prompts/0/runs/2/huge", H5T_STD_U64LE, space.get(), H5P_DEFAULT,
                                            properties.get(), H5P_DEFAULT),
                                 H5Dclose);
        REQUIRE(created.get() >= 0);
    });
    CHECK_THROWS_AS(writer.finish(), DamagedTrace);
    CHECK(fs::exists(folder.path() / "t.h5.part" / "run-0-2.damaged-1"));
}
