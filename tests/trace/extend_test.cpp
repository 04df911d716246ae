// A complete trace that is extended by runs and prompts.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "tests/trace/sample_trace.h"
#include "trace/checks/check_trace.h"
#include "trace/part_folder.h"
#include "trace/read_block.h"
#include "trace/reader.h"
#include "trace/recipe.h"
#include "trace/tree.h"

using namespace kvscope::trace;
namespace fs = std::filesystem;

namespace {

const std::string small_recipe = R"({"seed": 0, "prompts": ["a"], "runs": [0, 1, 2, 3]})";
const std::string whole_recipe = R"({"seed": 0, "prompts": ["a", "b"], "runs": [0, 1, 2, 3, 4, 5, 6]})";

WriterOptions extending(const std::string& recipe) {
    WriterOptions options;
    options.is_part_of_it = [recipe](const std::string& other) { return can_extend_recipe_to(other, recipe); };
    return options;
}

sample::Options two_questions() {
    sample::Options options;
    options.n_questions = 2;
    return options;
}

// Writes the items of the sample that are missing: the first prompts, the first runs.
void write_some(Writer& writer, int n_prompts, int n_runs) {
    const sample::Options options = two_questions();
    if (!writer.has_model()) writer.write_model(sample::model(options));
    for (int i = 0; i < n_prompts; ++i) {
        const PromptRecord prompt = sample::prompt(options, i);
        if (!writer.has_prompt(i)) writer.write_prompt(i, prompt);
        const auto runs = sample::runs(options, prompt);
        for (int j = 0; j < n_runs; ++j)
            if (!writer.has_run(i, j)) writer.write_run(i, j, runs[static_cast<size_t>(j)]);
    }
}

void write_small(const fs::path& path) {
    Writer writer(path, small_recipe);
    write_some(writer, 1, 4);
    writer.finish();
}

void extend(const fs::path& path) {
    Writer writer(path, whole_recipe, extending(whole_recipe));
    write_some(writer, 2, 7);
    writer.finish();
}

// Names, shapes, attributes, links and values, except the creation time.
std::map<std::string, std::string> contents_of(const fs::path& path) {
    std::map<std::string, std::string> found;
    for (const TreeNode& node : tree(path)) {
        std::string text = fmt::format("{} {} {}", node.type, fmt::join(node.shape, ","), node.link_to);
        for (const auto& attribute : node.attributes)
            if (attribute.name != "created_utc") text += fmt::format("\n{}={}", attribute.name, attribute.value);
        if (!node.is_group && node.link_to.empty()) {
            const std::vector<size_t> first(std::max<size_t>(node.shape.size(), 1), 0);
            for (const auto& value : read_data_set_block(path, node.path, first, 100000, 100000).values)
                std::visit(
                    [&](const auto& one) {
                        using T = std::decay_t<decltype(one)>;
                        if constexpr (!std::is_same_v<T, std::monostate>) text += fmt::format(" {}", one);
                    },
                    value);
        }
        CHECK(found.emplace(node.path, text).second);
    }
    return found;
}

std::string bytes_of(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("a recipe is a part only of itself with more prompts and further runs", "[trace]") {
    const auto is_part = [](const char* part, const char* whole) {
        return can_extend_recipe_to(std::string(part), std::string(whole));
    };
    const char* small = R"({"seed": 0, "prompts": ["a"], "runs": [0, 1]})";
    CHECK(is_part(small, small));
    CHECK(is_part(small, R"({"runs": [0, 1, 2], "prompts": ["b", "a"], "seed": 0})"));
    CHECK_FALSE(is_part(R"({"seed": 0, "prompts": ["a"], "runs": [0, 1, 2]})", small));
    CHECK_FALSE(is_part(small, R"({"seed": 1, "prompts": ["a"], "runs": [0, 1]})"));
    CHECK_FALSE(is_part(small, R"({"seed": 0, "prompts": ["a"], "runs": [1, 0, 2]})"));
    CHECK_FALSE(is_part(small, R"({"seed": 0, "prompts": ["b"], "runs": [0, 1]})"));
    CHECK_FALSE(is_part(small, R"({"seed": 0, "prompts": ["a"], "runs": [0, 1], "more": 1})"));
    CHECK_FALSE(
        is_part(R"({"seed": 0, "prompts": ["a", "a"], "runs": []})", R"({"seed": 0, "prompts": ["a"], "runs": []})"));
    for (const char* none : {"", "{", "[]", "{}", R"({"prompts": 1, "runs": 2})"}) CHECK_FALSE(is_part(none, none));
}

TEST_CASE("an extended trace equals one that is written in one go", "[trace]") {
    const sample::TemporaryFolder folder;
    const fs::path path = folder / "t.h5", parts = folder / "t.h5.part";
    {
        Writer writer(folder / "whole.h5", whole_recipe);
        write_some(writer, 2, 7);
        writer.finish();
    }
    write_small(path);
    const std::string created = Reader(path).created_utc(), before = bytes_of(path);
    CHECK(check_output_state(path, whole_recipe, extending(whole_recipe)) == OutputState::resumable);
    CHECK_FALSE(fs::exists(parts));
    CHECK_THROWS_AS(Writer(path, whole_recipe), OutputExists);
    {
        Writer writer(path, whole_recipe, extending(whole_recipe));
        CHECK(writer.extends());
        CHECK_FALSE(writer.resumed());
        CHECK(writer.has_model());
        CHECK(writer.has_prompt(0));
        CHECK_FALSE(writer.has_prompt(1));
        CHECK(writer.has_run(0, 3));
        CHECK_FALSE(writer.has_run(0, 4));
        const PromptRecord prompt = sample::prompt(two_questions(), 0);
        CHECK_THROWS_AS(writer.write_prompt(0, prompt), std::logic_error);
        CHECK_THROWS_AS(writer.write_run(0, 3, sample::full_run(two_questions(), prompt)), std::logic_error);
        write_some(writer, 2, 5);

        CHECK(bytes_of(path) == before);  // until the new trace is complete
        const Reader begun(parts);
        CHECK_FALSE(begun.complete());
        CHECK(begun.n_prompts() == 2);
        CHECK(begun.n_runs(0) == 5);
        CHECK(begun.run_number(0, 4) == 4);
        CHECK(begun.kept(0, 1)->indices == Reader(path).kept(0, 1)->indices);
        CHECK(begun.kept(1, 2)->indices == begun.kept(0, 2)->indices);  // which the second question shares
        CHECK(begun.created_utc() == created);
        for (const auto& problem : find_problems(parts)) CHECK(problem.severity == Problem::Severity::warning);
        CHECK(contents_of(parts).contains("/prompts/0/runs/1/scores"));
    }
    {
        Writer again(path, whole_recipe, extending(whole_recipe));
        CHECK(again.extends());
        CHECK(again.resumed());
        CHECK(again.has_run(1, 4));
        write_some(again, 2, 7);
        again.finish();
    }
    CHECK_FALSE(fs::exists(parts));
    CHECK(find_problems(path).empty());
    CHECK(Reader(path).created_utc() == created);
    const auto extended = contents_of(path), whole = contents_of(folder / "whole.h5");
    CHECK(extended == whole);
    CHECK(fs::file_size(path) < fs::file_size(folder / "whole.h5") * 21 / 20);  // shared data are stored once
    CHECK_THROWS_AS(Writer(path, whole_recipe), AlreadyComplete);
}

TEST_CASE("a kill while a trace is extended leaves the old one or the new one", "[trace]") {
    const sample::TemporaryFolder folder;
    write_small(folder / "small.h5");
    write_small(folder / "t.h5");
    extend(folder / "t.h5");
    const auto whole = contents_of(folder / "t.h5");
    for (int kill_after_ms = 0; kill_after_ms < 60; kill_after_ms += 3) {
        const fs::path path = folder / fmt::format("{}.h5", kill_after_ms);
        fs::copy_file(folder / "small.h5", path);
        const pid_t child = fork();
        if (child == 0) {
            try {
                extend(path);
            } catch (...) {
            }
            _exit(0);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(kill_after_ms));
        kill(child, SIGKILL);
        waitpid(child, nullptr, 0);

        const Reader left(path);
        CHECK(left.complete());
        CHECK((left.recipe_json() == whole_recipe || bytes_of(path) == bytes_of(folder / "small.h5")));
        if (left.recipe_json() != whole_recipe) extend(path);
        CHECK(contents_of(path) == whole);
    }
}

TEST_CASE("force starts anew next to an unfinished extension", "[trace]") {
    const sample::TemporaryFolder folder;
    const fs::path path = folder / "t.h5";
    write_small(path);
    {
        Writer writer(path, whole_recipe, extending(whole_recipe));
        write_some(writer, 2, 6);
    }
    WriterOptions force;
    force.force = true;
    CHECK(check_output_state(path, whole_recipe, force) == OutputState::absent);
    {
        Writer writer(path, whole_recipe, force);
        CHECK_FALSE(writer.extends());
        CHECK_FALSE(writer.has_run(0, 0));
        write_some(writer, 1, 2);
    }
    CHECK(Reader(path).recipe_json() == small_recipe);
    Writer writer(path, whole_recipe, force);
    CHECK(writer.has_run(0, 1));  // the forced trace is resumed
    write_some(writer, 2, 7);
    writer.finish();
    CHECK(Reader(path).n_runs(0) == 7);
}

TEST_CASE("an unfinished extension does not affect the complete trace", "[trace]") {
    const sample::TemporaryFolder folder;
    const fs::path path = folder / "t.h5";
    write_small(path);
    {
        Writer writer(path, whole_recipe, extending(whole_recipe));
        write_some(writer, 2, 6);
    }
    CHECK_THROWS_AS(Writer(path, small_recipe, extending(small_recipe)), AlreadyComplete);
    CHECK(fs::exists(folder / "t.h5.part" / "run-0-5.h5"));
    fs::remove(path);  // the folder holds the extended trace
    extend(path);
    CHECK(Reader(path).n_runs(1) == 7);
}

TEST_CASE("writers of links to one file exclude each other", "[trace]") {
    const sample::TemporaryFolder folder;
    const fs::path path = folder / "real.h5", link = folder / "link.h5";
    write_small(path);
    fs::create_symlink("real.h5", link);
    {
        const Writer writer(link, whole_recipe, extending(whole_recipe));
        CHECK_THROWS_AS(Writer(path, whole_recipe, extending(whole_recipe)), OutputBusy);
    }
    extend(link);
    CHECK(fs::is_symlink(link));
    CHECK(Reader(path).n_runs(1) == 7);
}

TEST_CASE("a trace that another program put at the output meanwhile is kept", "[trace]") {
    const sample::TemporaryFolder folder;
    const fs::path path = folder / "t.h5", other = folder / "other.h5";
    const bool was_there = GENERATE(true, false);
    CAPTURE(was_there);
    if (was_there) write_small(path);
    {
        Writer writer(path, whole_recipe, extending(whole_recipe));
        write_some(writer, 2, 7);
        write_small(other);
        fs::rename(other, path);
        const std::string before = bytes_of(path);
        CHECK_THROWS_AS(writer.finish(), OutputExists);
        CHECK(bytes_of(path) == before);
    }
    fs::rename(path, other);
    {
        const Writer writer(path, whole_recipe, extending(whole_recipe));
        CHECK(writer.has_run(1, 6));
    }
    extend(path);
    CHECK(Reader(path).n_runs(1) == 7);
}

TEST_CASE("the remains of a folder whose parts were joined are not an extension", "[trace]") {
    const sample::TemporaryFolder folder;
    const fs::path path = folder / "t.h5", parts = folder / "t.h5.part";
    write_small(path);
    fs::create_directory(parts);  // its base.h5 and its parts are already removed
    write_folder_record(parts, {"kvscope", Reader(path).created_utc(), small_recipe, true});
    Writer writer(path, whole_recipe, extending(whole_recipe));
    CHECK(writer.extends());
    CHECK(writer.has_run(0, 3));
    write_some(writer, 2, 7);
    writer.finish();
    CHECK(Reader(path).n_runs(1) == 7);
}

TEST_CASE("a damaged trace cannot be extended and is kept", "[trace]") {
    const sample::TemporaryFolder folder;
    const fs::path path = folder / "t.h5";
    write_small(path);
    std::string bytes = bytes_of(path);
    for (size_t i = bytes.size() / 3; i < bytes.size() / 2; ++i) bytes[i] = static_cast<char>(bytes[i] ^ 0x55);
    std::ofstream(path, std::ios::binary) << bytes;
    CHECK_THROWS_AS(extend(path), TraceError);
    CHECK(bytes_of(path) == bytes);
}
