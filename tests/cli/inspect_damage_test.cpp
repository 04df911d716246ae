// `kvscope inspect` of traces with one kind of damage: text and JSON report every problem, and none counts as wrong
// usage. All in one process, because starting the program takes longer than an inspection.
#include <hdf5.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "app/cli/inspect_trace.h"
#include "common/json.h"
#include "tests/trace/sample_trace.h"
#include "trace/hdf5/hdf5.h"
#include "trace/reader.h"
#include "trace/tree.h"

using namespace kvscope;
namespace fs = std::filesystem;
namespace h5 = kvscope::trace::h5;

namespace {

const fs::path good = fs::path(KVSCOPE_TEST_DATA) / "trace" / "v1.0.h5";

/// Returns what `work` writes to stdout.
std::string printed(const fs::path& scratch, const std::function<void()>& work) {
    std::fflush(stdout);
    const int before = dup(STDOUT_FILENO);
    REQUIRE(before >= 0);
    struct Restored {
        int before;
        ~Restored() {
            std::fflush(stdout);
            dup2(before, STDOUT_FILENO);
            close(before);
        }
    };
    {
        const Restored restored{before};
        REQUIRE(std::freopen(scratch.c_str(), "w", stdout) != nullptr);
        work();
    }
    std::ifstream file(scratch, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

struct Inspected {
    int code = 0;
    std::string text;
};

Inspected inspected(const trace::sample::TemporaryFolder& folder, const std::string& format_name) {
    unsetenv("COLUMNS");  // COLUMNS would break lines
    CLI::App app;
    cli::OutputFormat format;
    format.declare(app);
    app.parse("--format " + format_name);
    Inspected out;
    out.text = printed(folder / "printed.txt",
                       [&] { out.code = cli::inspect_trace(folder / "t.h5", format, /*whole_text=*/false); });
    return out;
}

void check_that_both_forms_agree(const trace::sample::TemporaryFolder& folder) {
    Inspected json;
    try {
        json = inspected(folder, "json");
    } catch (const trace::TraceError& error) {  // the file is unreadable: both formats report the same
        CHECK_THAT(error.what(), Catch::Contains("t.h5"));
        CHECK_THROWS_AS(inspected(folder, "text"), trace::TraceError);
        return;
    }
    const auto problems = nlohmann::json::parse(json.text).at("problems");
    bool has_error = false;
    for (const auto& problem : problems) has_error = has_error || problem.at("severity") == "error";
    CHECK(json.code == (has_error ? 1 : 0));
    const Inspected text = inspected(folder, "text");
    CHECK(text.code == json.code);
    for (const auto& problem : problems) CHECK_THAT(text.text, Catch::Contains(problem.at("path").get<std::string>()));
}

void damage(const fs::path& path, const std::function<void(hid_t)>& change) {
    fs::copy_file(good, path, fs::copy_options::overwrite_existing);
    fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
    const h5::Guard guard;
    const h5::Handle file(h5::checked(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), "open for a test"), H5Fclose);
    change(file.get());
}

/// Returns a data set's values as bytes in memory.
struct Values {
    h5::Handle type;
    std::vector<hsize_t> shape;
    std::vector<char> bytes;
};

Values taken_out(hid_t file, const std::string& path) {
    Values out;
    const h5::Handle data_set = h5::open_data_set(file, path);
    out.type = h5::Handle(H5Dget_type(data_set.get()), H5Tclose);
    const h5::Handle space(H5Dget_space(data_set.get()), H5Sclose);
    out.shape.resize(static_cast<size_t>(H5Sget_simple_extent_ndims(space.get())));
    H5Sget_simple_extent_dims(space.get(), out.shape.data(), nullptr);
    const auto n = static_cast<size_t>(H5Sget_simple_extent_npoints(space.get()));
    out.bytes.resize(n * H5Tget_size(out.type.get()));
    h5::checked(H5Dread(data_set.get(), out.type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, out.bytes.data()), "read");
    h5::checked(H5Ldelete(file, path.c_str(), H5P_DEFAULT), "delete");
    return out;
}

void put(hid_t file, const std::string& path, const Values& values) {
    const h5::Handle space(H5Screate_simple(static_cast<int>(values.shape.size()), values.shape.data(), nullptr),
                           H5Sclose);
    const h5::Handle data_set(
        H5Dcreate2(file, path.c_str(), values.type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
        H5Dclose);
    h5::checked(data_set.get(), "create");
    h5::checked(H5Dwrite(data_set.get(), values.type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.bytes.data()),
                "write");
}

void shorten(hid_t file, const std::string& path) {
    Values values = taken_out(file, path);
    REQUIRE(!values.shape.empty());
    if (values.shape[0] > 0) --values.shape[0];
    put(file, path, values);
}

/// Writes the data set in one dimension, with one value too many.
void flatten(hid_t file, const std::string& path) {
    Values values = taken_out(file, path);
    const size_t size = H5Tget_size(values.type.get());
    values.shape = {values.bytes.size() / size + 1};
    values.bytes.resize(values.bytes.size() + size, '\0');
    put(file, path, values);
}

/// Returns the first data set of each kind; prompts, runs and layers repeat their kinds.
std::vector<trace::TreeNode> one_of_each_kind(bool groups_too) {
    static const std::regex number("[0-9]+");
    std::vector<trace::TreeNode> nodes;
    std::set<std::string> seen;
    for (auto& node : trace::tree(good)) {
        if ((groups_too || !node.is_group) && seen.insert(std::regex_replace(node.path, number, "N")).second)
            nodes.push_back(std::move(node));
    }
    return nodes;
}

}  // namespace

TEST_CASE("inspect continues after a data set that is missing, shorter or of another type") {
    const trace::sample::TemporaryFolder folder;
    const auto data_sets = one_of_each_kind(/*groups_too=*/false);
    CHECK(data_sets.size() > 20);
    const std::vector<std::pair<const char*, std::function<void(hid_t, const std::string&)>>> changes{
        {"missing", [](hid_t file, const std::string& path) { taken_out(file, path); }},
        {"shorter", shorten},
        {"text",
         [](hid_t file, const std::string& path) {
             taken_out(file, path);
             h5::write_texts(file, path, {"text"});
         }},
        {"flat", flatten},
    };
    for (const auto& node : data_sets) {
        for (const auto& [name, change] : changes) {
            INFO(node.path << " " << name);
            damage(folder / "t.h5", [&, &change = change](hid_t file) { change(file, node.path); });
            check_that_both_forms_agree(folder);
        }
    }
}

TEST_CASE("inspect handles parameters that nest a hundred thousand levels deep") {
    const trace::sample::TemporaryFolder folder;
    damage(folder / "t.h5", [&](hid_t file) {
        const h5::Handle run(H5Oopen(file, "prompts/0/runs/1", H5P_DEFAULT), H5Oclose);
        h5::checked(H5Adelete(run.get(), "parameters_json"), "delete");
        const auto n = size_t{60'000};  // an attribute is limited to 64 kB
        h5::write_attribute(run.get(), "parameters_json", std::string(n / 2, '[') + std::string(n / 2, ']'));
    });
    check_that_both_forms_agree(folder);
    CHECK_THAT(inspected(folder, "jsonl").text, Catch::Contains("[[["));
}

TEST_CASE("inspect continues after an attribute that is missing or of another type") {
    const trace::sample::TemporaryFolder folder;
    int n_attributes = 0;
    for (const auto& node : one_of_each_kind(/*groups_too=*/true)) {
        for (const auto& attribute : node.attributes) {
            ++n_attributes;
            for (const char* value : {"missing", "text", "-7"}) {
                INFO(node.path << "@" << attribute.name << " " << value);
                damage(folder / "t.h5", [&](hid_t file) {
                    const h5::Handle object(H5Oopen(file, node.path.c_str(), H5P_DEFAULT), H5Oclose);
                    h5::checked(H5Adelete(object.get(), attribute.name.c_str()), "delete");
                    if (value == std::string("text"))
                        h5::write_attribute(object.get(), attribute.name, std::string(value));
                    if (value == std::string("-7")) h5::write_attribute(object.get(), attribute.name, int64_t{-7});
                });
                check_that_both_forms_agree(folder);
            }
        }
    }
    CHECK(n_attributes > 20);
}
