// Scores that several runs share are stored once in a trace.
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>

#include "tests/trace/sample_trace.h"
#include "trace/checks/check_trace.h"
#include "trace/hdf5/hdf5.h"
#include "trace/hdf5/input_file.h"
#include "trace/part_folder.h"
#include "trace/reader.h"

using namespace kvscope::trace;
namespace fs = std::filesystem;

namespace {

// full, snapkv at three budgets with the same scores, one run with its own scores, and one with these in f64.
std::vector<RunRecord> runs_with_shared_scores(const sample::Options& options, const PromptRecord& prompt) {
    std::vector<RunRecord> runs{sample::runs(options, prompt).front()};
    for (const std::int64_t budget : {16, 24, 32})
        runs.push_back(sample::selecting_run(options, prompt, "snapkv", budget));
    runs[2].scores = runs[3].scores = runs[1].scores;
    runs.push_back(sample::selecting_run(options, prompt, "h2o", 20));
    runs.push_back(runs[4]);
    runs[5].scores_f64.assign(runs[5].scores.begin(), runs[5].scores.end());
    runs[5].scores.clear();
    return runs;
}

std::string scores_path(int prompt, int run) {
    return "/prompts/" + std::to_string(prompt) + "/runs/" + std::to_string(run) + "/scores";
}

bool has_scores_of_its_own(const fs::path& folder, int run) {
    const h5::Guard guard;
    const h5::Handle file = open_input_file(folder / part_file_name_of_run(0, run));
    return h5::exists(file.get(), scores_path(0, run));
}

// Compares bits, because the scores contain NaN.
std::vector<std::uint32_t> bits(const std::vector<float>& values) {
    std::vector<std::uint32_t> out;
    for (const float value : values) out.push_back(std::bit_cast<std::uint32_t>(value));
    return out;
}

void check_scores(const Reader& reader, int prompt, const std::vector<RunRecord>& runs) {
    for (int run = 0; run < reader.n_runs(prompt); ++run) {
        const auto number = static_cast<std::size_t>(reader.run_number(prompt, run));
        CAPTURE(prompt, number);
        const RunRecord found = reader.run_record(prompt, run);
        CHECK(bits(found.scores) == bits(runs[number].scores));
        CHECK(found.scores_f64.size() == runs[number].scores_f64.size());
        CHECK(reader.scores(prompt, run, 1).size() == found.scores.size() / 3 + found.scores_f64.size() / 3);
    }
}

void check_sound(const fs::path& path) {
    for (const Problem& problem : find_problems(path)) {
        CAPTURE(problem.path, problem.expected, problem.found);
        CHECK(problem.severity == Problem::Severity::warning);
    }
}

}  // namespace

TEST_CASE("scores that runs share are stored once in the parts and in the file", "[trace]") {
    sample::Options options;
    options.n_questions = 2;
    const sample::TemporaryFolder folder;
    const fs::path path = folder / "t.h5";
    const fs::path parts = part_folder_of(path);
    Writer writer(path, sample::recipe);
    writer.write_model(sample::model(options));
    const PromptRecord first = sample::prompt(options, 0);
    const PromptRecord second = sample::prompt(options, 1);
    writer.write_prompt(0, first);
    writer.write_prompt(1, second);
    const auto runs = runs_with_shared_scores(options, first);
    // Runs may end in any order.
    for (const int run : {3, 0, 5, 1, 4, 2}) writer.write_run(0, run, runs[static_cast<std::size_t>(run)]);
    for (const int run : {0, 1, 2}) writer.write_run(1, run, runs[static_cast<std::size_t>(run)]);
    CHECK(has_scores_of_its_own(parts, 3));
    CHECK(!has_scores_of_its_own(parts, 1));
    CHECK(!has_scores_of_its_own(parts, 2));
    CHECK(has_scores_of_its_own(parts, 4));
    CHECK(has_scores_of_its_own(parts, 5));  // the same numbers in another type
    check_scores(Reader(parts), 0, runs);
    check_scores(Reader(parts), 1, runs);
    check_sound(parts);
    // A run whose scores others share can only be replaced by one with the same scores.
    writer.write_run(0, 3, runs[3]);
    RunRecord other = runs[3];
    other.scores[0] += 1;
    CHECK_THROWS_WITH(writer.write_run(0, 3, other), Catch::Contains("shares its scores"));
    writer.write_run(0, 2, runs[2]);
    for (const int run : {3, 4, 5}) writer.write_run(1, run, runs[static_cast<std::size_t>(run)]);
    writer.finish();

    const Reader reader(path);
    check_scores(reader, 0, runs);
    check_scores(reader, 1, runs);
    check_sound(path);
    const h5::Guard guard;
    const h5::Handle file = open_input_file(path);
    const auto address = [&](int prompt, int run) { return h5::address(file.get(), scores_path(prompt, run)); };
    CHECK(address(0, 1) == address(0, 3));
    CHECK(address(0, 2) == address(0, 3));
    CHECK(address(1, 1) == address(0, 3));
    CHECK(address(0, 4) != address(0, 3));
    CHECK(address(0, 5) != address(0, 4));
    for (const int run : {0, 1, 2, 3}) {
        const h5::Handle group = h5::open_group(file.get(), "/prompts/0/runs/" + std::to_string(run));
        CHECK(!h5::read_attribute(group.get(), "scores_of"));
    }
}

TEST_CASE("a resumed trace shares the scores of existing parts and makes runs of a missing part again", "[trace]") {
    const sample::Options options;
    const sample::TemporaryFolder folder;
    const fs::path path = folder / "t.h5";
    const fs::path parts = part_folder_of(path);
    const PromptRecord prompt = sample::prompt(options);
    const auto runs = runs_with_shared_scores(options, prompt);
    {
        Writer writer(path, sample::recipe);
        writer.write_model(sample::model(options));
        writer.write_prompt(0, prompt);
        for (const std::size_t run : {0u, 1u, 2u, 4u}) writer.write_run(0, static_cast<int>(run), runs[run]);
    }
    CHECK(has_scores_of_its_own(parts, 1));
    CHECK(!has_scores_of_its_own(parts, 2));
    SECTION("as it was left") {
        Writer writer(path, sample::recipe);
        CHECK(writer.has_run(0, 2));
        for (const std::size_t run : {3u, 5u}) writer.write_run(0, static_cast<int>(run), runs[run]);
        CHECK(!has_scores_of_its_own(parts, 3));
        writer.finish();
    }
    SECTION("without the part that stores them") {
        fs::remove(parts / part_file_name_of_run(0, 1));
        Writer writer(path, sample::recipe);
        CHECK(!writer.has_run(0, 1));
        CHECK(!writer.has_run(0, 2));
        CHECK(writer.has_run(0, 4));
        for (const std::size_t run : {3u, 2u, 1u, 5u}) writer.write_run(0, static_cast<int>(run), runs[run]);
        CHECK(has_scores_of_its_own(parts, 3));
        CHECK(!has_scores_of_its_own(parts, 1));
        writer.finish();
    }
    check_scores(Reader(path), 0, runs);
    check_sound(path);
}

TEST_CASE("a part with damaged scores is set aside when parts are joined, with the parts that share its scores",
          "[trace]") {
    const sample::Options options;
    const sample::TemporaryFolder folder;
    const fs::path path = folder / "t.h5";
    const fs::path parts = part_folder_of(path);
    const PromptRecord prompt = sample::prompt(options);
    auto runs = runs_with_shared_scores(options, prompt);
    const auto write_all = [&](Writer& writer) {
        if (!writer.has_model()) writer.write_model(sample::model(options));
        if (!writer.has_prompt(0)) writer.write_prompt(0, prompt);
        for (std::size_t run = 0; run < runs.size(); ++run) {
            if (!writer.has_run(0, static_cast<int>(run))) writer.write_run(0, static_cast<int>(run), runs[run]);
        }
    };
    {
        Writer writer(path, sample::recipe);
        write_all(writer);
        const fs::path part = parts / part_file_name_of_run(0, 1);
        SECTION("a packed chunk") {
            std::uint64_t at = 0;
            hsize_t size = 0;
            {
                const h5::Guard guard;
                const h5::Handle file = open_input_file(part);
                const h5::Handle scores = h5::open_data_set(file.get(), scores_path(0, 1));
                haddr_t address = 0;
                unsigned filters = 0;
                hsize_t offset[3] = {};
                const h5::Handle space(H5Dget_space(scores.get()), H5Sclose);
                REQUIRE(H5Dget_chunk_info(scores.get(), space.get(), 0, offset, &filters, &address, &size) >= 0);
                at = address;
            }
            std::fstream file(part, std::ios::binary | std::ios::in | std::ios::out);
            file.seekp(static_cast<std::streamoff>(at + size / 2));
            file.write("damagedchunk....", 16);
        }
        SECTION("no scores in a run that another run refers to") {
            const h5::Guard guard;
            const h5::Handle file(H5Fopen(part.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
            h5::checked(H5Ldelete(file.get(), scores_path(0, 1).c_str(), H5P_DEFAULT), "delete for a test");
            runs[1].scores.clear();  // a run need not have scores
        }
        CHECK_THROWS_AS(writer.finish(), DamagedTrace);
        CHECK(fs::exists(parts));
        CHECK(!fs::exists(path));
    }
    for (int attempt = 0; attempt < 4 && !fs::exists(path); ++attempt) {  // each attempt makes the damaged part again
        Writer writer(path, sample::recipe);
        write_all(writer);
        try {
            writer.finish();
        } catch (const DamagedTrace&) {
        }
    }
    check_scores(Reader(path), 0, runs);
    check_sound(path);
}
