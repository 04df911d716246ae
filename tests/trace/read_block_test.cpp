// Blocks of data sets, in the schema or not.
#include "trace/read_block.h"

#include <catch2/catch.hpp>

#include "tests/trace/sample_trace.h"
#include "trace/hdf5/hdf5.h"
#include "trace/reader.h"

using namespace kvscope::trace;
using Catch::Matchers::Contains;

namespace {

double real(const DataSetValue& value) { return std::get<double>(value); }
const std::string& text(const DataSetValue& value) { return std::get<std::string>(value); }

// A user-defined data set in a finished trace.
void add(const std::filesystem::path& path, const char* name, hid_t type, const std::vector<hsize_t>& shape,
         const void* values) {
    const h5::Guard guard;
    const h5::Handle file(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
    const h5::Handle space(
        shape.empty() ? H5Screate(H5S_SCALAR) : H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr),
        H5Sclose);
    const h5::Handle data_set(H5Dcreate2(file.get(), name, type, space.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                              H5Dclose);
    REQUIRE(data_set);
    REQUIRE(H5Dwrite(data_set.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
}

std::vector<ResultRow> rows(int begin, int end) {
    std::vector<ResultRow> out;
    for (int i = begin; i < end; ++i) {
        ResultRow& row = out.emplace_back();
        row.sample_id = "sample " + std::to_string(i);
        row.policy = "snapkv";
        row.budget = 10 * i;
    }
    return out;
}

}  // namespace

TEST_CASE("a block of a data set equals the reader's values", "[trace]") {
    const sample::TemporaryFolder folder;
    Writer writer(folder / "t.h5", sample::recipe);
    sample::write_parts(writer);
    const bool finished = GENERATE(false, true);
    if (finished) writer.finish();
    const auto path = finished ? folder / "t.h5" : folder / "t.h5.part";
    const Reader reader(path);

    const DataSetBlock attention = read_data_set_block(path, "/prompts/0/full/window_attention", {1, 2, 40}, 5, 100);
    CHECK(attention.type == "f32");
    CHECK(attention.shape == std::vector<std::size_t>{3, 4, 48});
    CHECK(attention.first_row == 2);
    CHECK(attention.first_column == 40);
    REQUIRE(attention.n_rows == 2);
    REQUIRE(attention.n_columns == 8);
    const auto layer = reader.window_attention(0, 1);
    for (std::size_t row = 0; row < 2; ++row) {
        for (std::size_t column = 0; column < 8; ++column) {
            CHECK(real(attention.at(row, column)) == layer[(2 + row) * 48 + 40 + column]);
        }
    }

    const DataSetBlock pieces = read_data_set_block(path, "/prompts/0/token_text", {5}, 3, 4);
    CHECK(pieces.type == "text");
    REQUIRE(pieces.n_rows == 3);
    REQUIRE(pieces.n_columns == 1);
    CHECK(text(pieces.at(0, 0)) == " \u00e9t\u00e9");
    CHECK(text(pieces.at(1, 0)) == " w6");

    const DataSetBlock offsets = read_data_set_block(path, "/prompts/0/runs/1/kept_offsets", {}, 100, 100);
    CHECK(offsets.type == "u64");
    REQUIRE(offsets.values.size() == 7);
    CHECK(real(offsets.values[2]) == 32);
    CHECK(real(read_data_set_block(path, "/model/spectrum/q", {}, 1, 1).at(0, 0)) ==
          reader.read<float>(Place::of_model(), schema::model::spectrum_q)[0]);

    CHECK(read_data_set_block(path, "/prompts/0/full/window_attention", {2, 4, 48}, 5, 5).values.empty());
    CHECK(read_data_set_block(path, "/prompts/0/token_text", {0}, 0, 0).values.empty());
    CHECK_THROWS_AS(read_data_set_block(path, "/prompts/0/full/window_attention", {3, 0, 0}, 5, 5), std::out_of_range);
    CHECK_THROWS_AS(read_data_set_block(path, "/prompts/0/token_text", {0, 0, 0}, 5, 5), std::out_of_range);
    for (const char* name : {"/prompts/0", "/prompts/0/nothing", "/prompts/9/token_ids", "token_ids", "", "/"}) {
        CHECK_THROWS_WITH(read_data_set_block(path, name, {}, 5, 5), Contains("no data set with this name"));
    }
    CHECK_THROWS_AS(read_data_set_block(folder / "u.h5", "/model/spectrum/q", {}, 5, 5), NotATrace);
}

TEST_CASE("a block of a table in one file or in batches", "[trace]") {
    const sample::TemporaryFolder folder;
    Writer writer(folder / "t.h5", sample::recipe);
    sample::write_parts(writer);
    constexpr int batches = 20;  // more than can be open at the same time
    for (int i = 0; i < batches; ++i) writer.write_results("niah", i, rows(3 * i, 3 * i + 3));
    const bool finished = GENERATE(false, true);
    if (finished) writer.finish();
    const auto path = finished ? folder / "t.h5" : folder / "t.h5.part";

    const DataSetBlock table = read_data_set_block(path, "/results/niah", {4, 2}, 30, 3);
    CHECK(table.type == "table");
    CHECK(table.shape == std::vector<std::size_t>{3 * batches});
    CHECK(table.names == std::vector<std::string>{"policy", "parameters_json", "budget"});
    CHECK(table.column_types == std::vector<std::string>{"text", "text", "i64"});
    REQUIRE(table.n_rows == 30);
    for (std::size_t row = 0; row < 30; ++row) {
        CHECK(text(table.at(row, 0)) == "snapkv");
        CHECK(real(table.at(row, 2)) == 10.0 * static_cast<double>(4 + row));
    }
    CHECK(text(read_data_set_block(path, "/results/niah", {3 * batches - 1}, 9, 1).at(0, 0)) == "sample 59");
    CHECK(read_data_set_block(path, "/results/niah", {3 * batches}, 9, 9).n_rows == 0);
}

TEST_CASE("data sets that are not in the schema", "[trace]") {
    const sample::TemporaryFolder folder;
    const auto path = folder / "t.h5";
    sample::write_anew(path);

    const std::uint64_t large[] = {7, (1ULL << 53) + 1, ~0ULL};
    add(path, "large", H5T_NATIVE_UINT64, {3}, large);
    const DataSetBlock integers = read_data_set_block(path, "/large", {}, 9, 9);
    CHECK(real(integers.values[0]) == 7);
    CHECK(text(integers.values[1]) == "9007199254740993");
    CHECK(text(integers.values[2]) == "18446744073709551615");
    const std::int64_t least[] = {-3, std::numeric_limits<std::int64_t>::min()};
    add(path, "least", H5T_NATIVE_INT64, {2}, least);
    CHECK(real(read_data_set_block(path, "/least", {}, 9, 9).values[0]) == -3);
    CHECK(text(read_data_set_block(path, "/least", {}, 9, 9).values[1]) == "-9223372036854775808");

    const double one = 0.5;
    add(path, "scalar", H5T_NATIVE_DOUBLE, {}, &one);
    const DataSetBlock scalar = read_data_set_block(path, "/scalar", {}, 9, 9);
    CHECK(scalar.shape.empty());
    REQUIRE(scalar.values.size() == 1);
    CHECK(real(scalar.values[0]) == 0.5);

    const h5::Handle flags(H5Tcreate(H5T_ENUM, 1), H5Tclose);
    const std::int8_t values[] = {0, 1, 5};
    H5Tenum_insert(flags.get(), "FALSE", &values[0]);
    H5Tenum_insert(flags.get(), "TRUE", &values[1]);
    add(path, "flags", flags.get(), {3}, values);
    const DataSetBlock names = read_data_set_block(path, "/flags", {}, 9, 9);
    CHECK(text(names.values[1]) == "TRUE");
    CHECK(text(names.values[2]) == "?");

    const hsize_t two = 2;
    const h5::Handle pair(H5Tarray_create2(H5T_NATIVE_INT32, 1, &two), H5Tclose);
    const std::int32_t pairs[] = {1, 2, 3, 4};
    add(path, "pairs", pair.get(), {2}, pairs);
    const DataSetBlock unknown = read_data_set_block(path, "/pairs", {}, 9, 9);
    CHECK(unknown.type == "another type");
    REQUIRE(unknown.n_rows == 2);
    CHECK(std::holds_alternative<std::monostate>(unknown.values[0]));

    const h5::Handle broken = h5::text_type(4);
    add(path, "broken", broken.get(), {2}, "ab\xff\0abcd");
    const DataSetBlock texts = read_data_set_block(path, "/broken", {}, 9, 9);
    CHECK(text(texts.values[0]) == "ab\uFFFD");
    CHECK(text(texts.values[1]) == "abcd");
}
