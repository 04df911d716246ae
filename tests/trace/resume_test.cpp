// Killed writers, concurrent processes, and other files at the output.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <thread>

#include "common/json.h"
#include "tests/skip.h"
#include "tests/trace/sample_trace.h"
#include "trace/checks/check_trace.h"
#include "trace/reader.h"

using namespace kvscope::trace;
namespace fs = std::filesystem;

namespace {

const std::string other_recipe = R"({"made_by": "somebody else"})";

void write_text(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

std::string contents(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

// Runs `work` in a child process and returns its wait status. The child never returns into the tests.
template <class Work>
int in_child(Work work) {
    const pid_t child = fork();
    if (child == 0) {
        int code = 1;
        try {
            code = work();
        } catch (...) {
        }
        _exit(code);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

}  // namespace

TEST_CASE("a killed writer is resumed and loses at most what it was writing", "[trace]") {
    sample::Options options;
    options.n_questions = 2;
    options.n_tokens = 600;
    const int parts = 1 + 2 + 2 * 7;
    for (int kill_after_ms = 0; kill_after_ms < 60; kill_after_ms += 3) {
        const sample::TemporaryFolder folder;
        const pid_t child = fork();
        if (child == 0) {
            try {
                sample::write_anew(folder / "t.h5", options);
            } catch (...) {
            }
            _exit(0);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(kill_after_ms));
        kill(child, SIGKILL);
        waitpid(child, nullptr, 0);

        if (check_output_state(folder / "t.h5", sample::recipe) != OutputState::complete) {
            Writer writer(folder / "t.h5", sample::recipe);
            int present = writer.has_model() ? 1 : 0;
            for (int i = 0; i < 2; ++i) {
                present += writer.has_prompt(i) ? 1 : 0;
                for (int j = 0; j < 7; ++j) present += writer.has_run(i, j) ? 1 : 0;
            }
            CHECK(writer.resumed() == (present > 0));
            CHECK(present <= parts);
            for (const auto& entry : fs::directory_iterator(folder / "t.h5.part")) {
                CHECK(entry.path().extension() != ".tmp");
            }
            sample::write_parts(writer, options);
            writer.finish();
            CHECK_FALSE(fs::exists(
                folder / "t.h5.part"));  // a writer that was killed while it removed the folder leaves parts of it
        }
        CHECK(find_problems(folder / "t.h5").empty());
    }
}

TEST_CASE("an unfinished trace can be opened at any moment, also while its writer ends", "[trace]") {
    for (int i = 0; i < 20; ++i) {
        const sample::TemporaryFolder folder;
        Writer writer(folder / "t.h5", sample::recipe);
        sample::write_parts(writer);
        std::atomic<bool> has_ended = false;
        int n_opened = 0;
        std::string problem;
        std::thread reading([&] {
            do {
                try {
                    const Reader reader(folder / "t.h5.part");
                    if (reader.n_prompts() == 1 && reader.n_runs(0) == 7)
                        ++n_opened;
                    else
                        problem = "a part of it is missing";
                } catch (const std::exception& error) {
                    problem = error.what();
                }
            } while (!has_ended && problem.empty());
        });
        writer.finish();
        has_ended = true;
        reading.join();
        CHECK(problem == "");
        CHECK(n_opened > 0);
        CHECK(Reader(folder / "t.h5.part").complete());
    }
}

TEST_CASE("a folder that a kill left next to its finished trace is read as that trace", "[trace]") {
    const sample::TemporaryFolder folder;
    const fs::path parts = folder / "t.h5.part";
    {
        Writer writer(folder / "t.h5", sample::recipe);
        sample::write_parts(writer);
        fs::copy(parts, folder / "saved");
        writer.finish();
    }
    fs::rename(folder / "saved", parts);
    CHECK_FALSE(Reader(parts).complete());  // its record still says that it is not joined
    std::string record = contents(parts / "trace.json");
    const size_t at = record.find("\"complete\": false");
    REQUIRE(at != std::string::npos);
    write_text(parts / "trace.json", record.replace(at, 17, "\"complete\": true"));
    fs::remove(parts / "run-0-3.h5");
    CHECK(Reader(parts).complete());
    CHECK(Reader(parts).n_runs(0) == 7);
    fs::remove(folder / "t.h5");
    CHECK(Reader(parts).n_runs(0) == 6);
    Writer writer(folder / "t.h5", sample::recipe);  // the trace was removed, so the remaining parts are continued
    CHECK(writer.resumed());
    CHECK(contents(parts / "trace.json").find("\"complete\": false") != std::string::npos);
}

TEST_CASE("finished parts are not written again", "[trace]") {
    const sample::TemporaryFolder folder;
    const sample::Options options;
    const int status = in_child([&] {
        Writer writer(folder / "t.h5", sample::recipe);
        const PromptRecord prompt = sample::prompt(options);
        writer.write_model(sample::model(options));
        writer.write_prompt(0, prompt);
        writer.write_run(0, 0, sample::full_run(options, prompt));
        kill(getpid(), SIGKILL);
        return 0;
    });
    REQUIRE(WIFSIGNALED(status));
    CHECK(check_output_state(folder / "t.h5", sample::recipe) == OutputState::resumable);
    // Key order and white space do not change a recipe.
    CHECK(check_output_state(folder / "t.h5", R"({ "made_by" :"sample_trace.h"})") == OutputState::resumable);
    CHECK_THROWS_AS(check_output_state(folder / "t.h5", other_recipe), OutputExists);

    Writer writer(folder / "t.h5", sample::recipe);
    CHECK(writer.resumed());
    CHECK(writer.has_model());
    CHECK(writer.has_prompt(0));
    CHECK(writer.has_run(0, 0));
    CHECK_FALSE(writer.has_run(0, 1));
    const auto before = fs::last_write_time(folder.path() / "t.h5.part" / "run-0-0.h5");
    sample::write_parts(writer, options);
    CHECK(fs::last_write_time(folder.path() / "t.h5.part" / "run-0-0.h5") == before);
    writer.finish();
    CHECK(find_problems(folder / "t.h5").empty());
}

TEST_CASE("a part that was damaged later is set aside and made again", "[trace]") {
    const sample::TemporaryFolder folder;
    {
        Writer writer(folder / "t.h5", sample::recipe);
        sample::write_parts(writer);
        writer.write_results("niah", 0, {ResultRow{}});
    }
    const fs::path parts = folder.path() / "t.h5.part";
    const auto cut = [](const fs::path& part) { fs::resize_file(part, fs::file_size(part) / 2); };
    const auto made_again = [&] {
        Writer writer(folder / "t.h5", sample::recipe);
        sample::write_parts(writer);
        if (!writer.has_results("niah", 0)) writer.write_results("niah", 0, {ResultRow{}});
        return writer.set_aside();
    };
    cut(parts / "run-0-1.h5");
    write_text(parts / "results-niah-0.h5", "no HDF5 at all");
    {
        const Writer writer(folder / "t.h5", sample::recipe);
        CHECK(writer.has_run(0, 0));
        CHECK_FALSE(writer.has_run(0, 1));
        CHECK_FALSE(writer.has_results("niah", 0));
        REQUIRE(writer.set_aside().size() == 2);
        CHECK(writer.set_aside()[0].find("run-0-1.damaged-1") != std::string::npos);
    }
    CHECK(contents(parts / "results-niah-0.damaged-1") == "no HDF5 at all");
    CHECK(made_again().empty());
    for (const char* part : {"run-0-1.h5", "model.h5", "prompt-0.h5"}) cut(parts / part);
    CHECK(made_again().size() == 3);
    CHECK(fs::exists(parts / "run-0-1.damaged-1"));
    CHECK(fs::exists(parts / "run-0-1.damaged-2"));

    Writer(folder / "t.h5", sample::recipe).finish();
    CHECK(find_problems(folder / "t.h5").empty());
    CHECK_FALSE(fs::exists(parts));
}

namespace {

// Names and contents of a folder's files, without temporary ones.
std::map<std::string, std::string> parts_in(const fs::path& folder) {
    std::map<std::string, std::string> found;
    for (const auto& entry : fs::directory_iterator(folder)) {
        const fs::path& path = entry.path();
        if (path.extension() == ".h5" && fs::is_regular_file(path)) found[path.filename()] = contents(path);
    }
    return found;
}

}  // namespace

TEST_CASE("a part that cannot be read now is kept, and the writer stops", "[trace]") {
    const sample::TemporaryFolder folder;
    const fs::path parts = folder.path() / "t.h5.part";
    {
        Writer writer(folder / "t.h5", sample::recipe);
        sample::write_parts(writer);
    }
    const auto before = parts_in(parts);
    const auto is_told = [&](const std::string& why) {
        for (const bool force : {false, true}) {
            try {
                const Writer writer(folder / "t.h5", sample::recipe, {.force = force});
                FAIL("the writer continued");
            } catch (const ReadFailed& failure) {
                CHECK(std::string(failure.what()).find(why) != std::string::npos);
            }
        }
    };
    const auto instead_of = [&](const std::string& name, auto put_there) {
        fs::rename(parts / name, folder / "moved");
        put_there(parts / name);
        is_told(name);
        CHECK(fs::symlink_status(parts / name).type() != fs::file_type::not_found);
        fs::remove(parts / name);
        fs::rename(folder / "moved", parts / name);
        CHECK(parts_in(parts) == before);
    };
    const auto loop = [](const fs::path& path) { fs::create_symlink(path, path); };   // ELOOP when it is opened
    const auto directory = [](const fs::path& path) { fs::create_directory(path); };  // EISDIR when it is read
    for (const char* name : {"run-0-1.h5", "prompt-0.h5", "model.h5", "trace.json"}) {
        INFO(name);
        instead_of(name, loop);
        instead_of(name, directory);
    }
    if (geteuid() != 0) {
        fs::permissions(parts / "run-0-1.h5", fs::perms::none);
        is_told("Permission denied");
        fs::permissions(parts / "run-0-1.h5", fs::perms::owner_all);
    }
    CHECK(parts_in(parts) == before);
    Writer(folder / "t.h5", sample::recipe).finish();
    CHECK(find_problems(folder / "t.h5").empty());
}

TEST_CASE("no finished work is lost if descriptors run out at any file", "[trace]") {
    const sample::TemporaryFolder folder;
    sample::Options options;
    options.n_questions = 2;
    const fs::path parts = folder.path() / "t.h5.part";
    {
        Writer writer(folder / "t.h5", sample::recipe);
        sample::write_parts(writer, options);
    }
    const auto before = parts_in(parts);
    rlim_t spare = 0;
    bool is_whole = false;
    for (; spare < 40 && !is_whole; ++spare) {
        INFO(spare);
        const int status = in_child([&] {
            const int lowest = open("/dev/null", O_RDONLY);
            const rlimit limit{static_cast<rlim_t>(lowest) + spare, static_cast<rlim_t>(lowest) + spare};
            close(lowest);
            setrlimit(RLIMIT_NOFILE, &limit);
            try {
                Writer writer(folder / "t.h5", sample::recipe);
                sample::write_parts(writer, options);
                writer.finish();
                return 0;
            } catch (const ReadFailed&) {
                return 2;
            } catch (const WriteFailed&) {
                return 2;
            }
        });
        REQUIRE(WIFEXITED(status));
        is_whole = WEXITSTATUS(status) == 0;
        if (!is_whole) {
            CHECK(WEXITSTATUS(status) == 2);
            CHECK(parts_in(parts) == before);
        }
    }
    CHECK(is_whole);
    CHECK(spare > 3);
    CHECK(find_problems(folder / "t.h5").empty());
}

TEST_CASE("a complete trace is never edited", "[trace]") {
    const sample::TemporaryFolder folder;
    sample::write_anew(folder / "t.h5");
    const std::string before = contents(folder / "t.h5");
    CHECK(check_output_state(folder / "t.h5", sample::recipe) == OutputState::complete);
    CHECK_THROWS_AS(check_output_state(folder / "t.h5", other_recipe), OutputExists);
    CHECK_THROWS_AS(Writer(folder / "t.h5", sample::recipe), AlreadyComplete);
    CHECK_THROWS_AS(Writer(folder / "t.h5", other_recipe), OutputExists);
    CHECK_FALSE(fs::exists(folder / "t.h5.part"));
    CHECK(contents(folder / "t.h5") == before);

    // Force replaces it, but only when the new trace is complete.
    Writer writer(folder / "t.h5", other_recipe, {.force = true});
    CHECK_FALSE(writer.resumed());
    sample::write_parts(writer);
    CHECK(contents(folder / "t.h5") == before);
    writer.finish();
    CHECK(Reader(folder / "t.h5").recipe_json() == other_recipe);
    CHECK_THROWS_AS(writer.finish(), std::logic_error);
    CHECK_THROWS_AS(writer.write_model(sample::model()), std::logic_error);
}

TEST_CASE("the folder of a trace that is complete is dropped", "[trace]") {
    const sample::TemporaryFolder folder;
    { Writer writer(folder / "t.h5", sample::recipe); }
    fs::rename(folder / "t.h5.part", folder / "saved");
    sample::write_anew(folder / "t.h5");
    fs::rename(folder / "saved", folder / "t.h5.part");
    CHECK_THROWS_AS(Writer(folder / "t.h5", sample::recipe), AlreadyComplete);
    CHECK_FALSE(fs::exists(folder / "t.h5.part"));
}

TEST_CASE("anything else at the output is refused without force", "[trace]") {
    const sample::TemporaryFolder folder;
    const fs::path output = folder / "t.h5";
    SECTION("a text file") {
        write_text(output, "my notes");
        CHECK_THROWS_AS(Writer(output, sample::recipe), OutputExists);
        CHECK(contents(output) == "my notes");
        { Writer writer(output, sample::recipe, {.force = true}); }
        CHECK(contents(output) == "my notes");
    }
    SECTION("a text file without a trace's extension, even by force") {
        const fs::path text = folder / "prompt.txt";
        write_text(text, "my notes");
        CHECK_THROWS_AS(Writer(text, sample::recipe, {.force = true}), OutputExists);
        CHECK(contents(text) == "my notes");
    }
    SECTION("an empty file") {
        write_text(output, "");
        CHECK_THROWS_AS(Writer(output, sample::recipe), OutputExists);
    }
    SECTION("an unfinished trace of another recipe") {
        {
            Writer writer(output, other_recipe);
            sample::write_parts(writer);
        }
        CHECK_THROWS_AS(Writer(output, sample::recipe), OutputExists);
        CHECK(fs::exists(folder.path() / "t.h5.part" / "model.h5"));
        Writer writer(output, sample::recipe, {.force = true});
        CHECK_FALSE(writer.resumed());
        CHECK_FALSE(writer.has_model());
    }
    SECTION("an unfinished trace of the same recipe is resumed even by force") {
        {
            Writer writer(output, sample::recipe);
            sample::write_parts(writer);
        }
        CHECK(Writer(output, sample::recipe, {.force = true}).resumed());
    }
    SECTION("a foreign folder is not emptied even by force") {
        fs::create_directory(folder / "t.h5.part");
        write_text(folder.path() / "t.h5.part" / "thesis.tex", "years of work");
        CHECK_THROWS_AS(Writer(output, sample::recipe), OutputExists);
        CHECK_THROWS_AS(Writer(output, sample::recipe, {.force = true}), OutputExists);
        CHECK(contents(folder.path() / "t.h5.part" / "thesis.tex") == "years of work");
    }
    SECTION("a file at the folder's path") {
        write_text(folder / "t.h5.part", "half a download");
        CHECK_THROWS_AS(Writer(output, sample::recipe), OutputExists);
        CHECK_THROWS_AS(Writer(output, sample::recipe, {.force = true}), OutputExists);
    }
    SECTION("a folder") {
        fs::create_directory(output);
        CHECK_THROWS_AS(Writer(output, sample::recipe), WriteFailed);
        CHECK_THROWS_AS(Writer(output, sample::recipe, {.force = true}), WriteFailed);
    }
    SECTION("no parent folder") {
        CHECK_THROWS_AS(Writer(folder.path() / "missing" / "t.h5", sample::recipe), WriteFailed);
    }
    SECTION("a folder that is not writable") {
        CHECK_THROWS_WITH(Writer("/proc/t.h5", sample::recipe),
                          Catch::Contains("cannot create /proc/t.h5.part") &&
                              Catch::Contains("/proc is not writable (") &&
                              Catch::Contains("choose an output in another folder"));
    }
    SECTION("a device") { CHECK_THROWS_AS(Writer("/dev/full", sample::recipe, {.force = true}), WriteFailed); }
    SECTION("a crash before anything was recorded counts as nothing") {
        fs::create_directory(folder / "t.h5.part");
        write_text(folder.path() / "t.h5.part" / "lock", "");
        write_text(folder.path() / "t.h5.part" / "trace.json.tmp", "{");
        CHECK(check_output_state(output, sample::recipe) == OutputState::absent);
        Writer writer(output, sample::recipe);
        CHECK_FALSE(writer.resumed());
        CHECK_FALSE(fs::exists(folder.path() / "t.h5.part" / "trace.json.tmp"));
    }
}

TEST_CASE("two writers never share an output", "[trace]") {
    const sample::TemporaryFolder folder;
    Writer first(folder / "t.h5", sample::recipe);
    CHECK_THROWS_AS(Writer(folder / "t.h5", sample::recipe), OutputBusy);
    CHECK_THROWS_AS(Writer(folder / "t.h5", other_recipe, {.force = true}), OutputBusy);
    const int status = in_child([&] {
        try {
            Writer second(folder / "t.h5", sample::recipe);
        } catch (const OutputBusy&) {
            return 7;
        }
        return 0;
    });
    CHECK(WEXITSTATUS(status) == 7);
    sample::write_parts(first);
    first.finish();
    CHECK_THROWS_AS(Writer(folder / "t.h5", sample::recipe), AlreadyComplete);
}

TEST_CASE("a folder that is not writable is reported", "[trace]") {
    if (geteuid() == 0) {
        KVSCOPE_SKIP("root may write everywhere");
    }
    const sample::TemporaryFolder folder;
    fs::create_directory(folder / "locked");
    fs::permissions(folder / "locked", fs::perms::owner_read | fs::perms::owner_exec);
    CHECK_THROWS_AS(Writer(folder.path() / "locked" / "t.h5", sample::recipe), WriteFailed);
    fs::permissions(folder / "locked", fs::perms::owner_all);
}

TEST_CASE("the size of a part does not depend on the number of prompts in the recipe", "[trace]") {
    const sample::TemporaryFolder folder;
    const std::string recipe = nlohmann::json{{"text", std::string(1'000'000, 'x')}}.dump();
    Writer writer(folder / "t.h5", recipe);
    writer.write_model(sample::model({}));
    writer.write_results("niah", 0, std::vector<ResultRow>(1));
    for (const char* part : {"model.h5", "results-niah-0.h5"})
        CHECK(fs::file_size(folder.path() / "t.h5.part" / part) < 100'000);
    writer.finish();
    CHECK(Reader(folder / "t.h5").recipe_json() == recipe);
}

TEST_CASE("a trace with a part of the recipe is continued", "[trace]") {
    const sample::TemporaryFolder folder;
    const fs::path path = folder / "t.h5";
    const std::vector<ResultRow> rows(1);
    WriterOptions more;
    more.is_part_of_it = [](const std::string& recipe) { return recipe == R"({"samples": 1})"; };
    {
        Writer writer(path, R"({"samples": 1})");
        writer.write_model(sample::model({}));
        writer.write_results("niah", 0, rows);
    }
    CHECK_THROWS_WITH(Writer(path, R"({"samples": 2})"),
                      Catch::Contains("(it differs in samples: existing 1, requested 2)"));
    {
        Writer writer(path, R"({"samples": 2})", more);
        CHECK(writer.resumed());
        CHECK(writer.has_results("niah", 0));
        writer.write_results("niah", 3, rows);
    }
    CHECK_THROWS_AS(Writer(path, R"({"samples": 1})"), OutputExists);  // it now has the larger recipe
    Writer(path, R"({"samples": 2})").finish();
    CHECK(Reader(path).results("niah").size() == 2);
    CHECK(Reader(path).recipe_json() == R"({"samples": 2})");

    more.is_part_of_it = [](const std::string& recipe) { return recipe == R"({"samples": 2})"; };
    CHECK_THROWS_AS(Writer(path, R"({"samples": 3})"), OutputExists);
    {
        Writer writer(path, R"({"samples": 3})", more);
        CHECK_FALSE(writer.has_results("niah", 0));
        CHECK(Reader(path).results("niah").size() == 2);  // until the new trace is complete
        writer.write_model(sample::model({}));
        writer.write_results("niah", 0, rows);
        writer.finish();
    }
    CHECK(Reader(path).results("niah").size() == 1);
}

TEST_CASE("a refusal of a finished trace names the first differences of the recipes", "[trace]") {
    const sample::TemporaryFolder folder;
    const fs::path path = folder / "t.h5";
    {
        Writer writer(path, R"({"new_tokens": 16, "seed": 0, "runs": [{"budget": "64"}]})");
        writer.write_model(sample::model({}));
        writer.finish();
    }
    const auto refusal = [&](const char* recipe) { Writer(path, recipe); };
    CHECK_THROWS_WITH(refusal(R"({"new_tokens": 32, "seed": 0, "runs": [{"budget": "64"}]})"),
                      Catch::Contains("(it differs in new_tokens: existing 16, requested 32)"));
    CHECK_THROWS_WITH(refusal(R"({"new_tokens": 16, "runs": [{"budget": "256"}, {"budget": "64"}]})"),
                      Catch::Contains("runs/0/budget: existing \"64\", requested \"256\"") &&
                          Catch::Contains("runs: existing nothing, requested {\"budget\":\"64\"}") &&
                          Catch::Contains("seed: existing 0, requested nothing"));
    CHECK_THROWS_WITH(refusal(R"({"a": 1, "b": 2, "c": 3, "new_tokens": 16, "seed": 0, "runs": [{"budget": "64"}]})"),
                      !Catch::Contains("more"));
    CHECK_THROWS_WITH(refusal(R"({"a": 1, "b": 2, "c": 3, "new_tokens": 1, "seed": 0, "runs": [{"budget": "64"}]})"),
                      Catch::Contains("; and 1 more)"));
    const std::string text(100, 'x');
    CHECK_THROWS_WITH(
        refusal(("{\"text\": \"" + text + R"(", "new_tokens": 16, "seed": 0, "runs": [{"budget": "64"}]})").c_str()),
        Catch::Contains("(it differs in text)"));
}

TEST_CASE("a refusal names the amount that a trace of an earlier version stores", "[trace]") {
    const sample::TemporaryFolder folder;
    const fs::path path = folder / "t.h5";
    {
        Writer writer(path, R"({"record": "rows", "prompts": [], "runs": []})");
        writer.write_model(sample::model({}));
        writer.finish();
    }
    CHECK_THROWS_WITH(Writer(path, R"({"record": true, "prompts": [], "runs": []})"),
                      Catch::Contains("stored: existing --record rows, requested --record full"));
    CHECK_THROWS_WITH(
        Writer(path, R"({"record": true, "stored": "rows", "prompts": [], "runs": []})"),
        Catch::Contains("record: existing \"rows\", requested true") && !Catch::Contains("--record full"));
}

TEST_CASE("a refusal says which command wrote the trace", "[trace]") {
    const sample::TemporaryFolder folder;
    const fs::path path = folder / "t.h5";
    const char* const of_task = R"({"task": "niah", "prompts": [], "runs": [], "seed": 1})";
    const char* const of_run = R"({"prompts": [], "runs": [], "seed": 0})";
    {
        Writer writer(path, of_task);
        writer.write_model(sample::model({}));
        writer.finish();
    }
    CHECK_THROWS_WITH(Writer(path, of_run), Catch::Contains("(it was written by eval; run cannot extend it)"));
}

TEST_CASE("a refusal of a trace with other imported files names them once", "[trace]") {
    const sample::TemporaryFolder folder;
    const fs::path path = folder / "t.h5";
    {
        Writer writer(path, R"({"imported": ["a", "b", "c"]})");
        writer.write_model(sample::model({}));
        writer.finish();
    }
    CHECK_THROWS_WITH(Writer(path, R"({"imported": ["d"]})"), Catch::Contains("(it differs in imported files)"));
}

TEST_CASE("an output is checked before any computation, without leaving files", "[trace]") {
    const sample::TemporaryFolder folder;
    const fs::path output = folder / "t.h5", part = folder / "t.h5.part";
    const WriterOptions forced{.force = true};
    CHECK(check_output_state(output, sample::recipe) == OutputState::absent);
    CHECK_FALSE(fs::exists(part));
    CHECK_THROWS_AS(check_output_state(folder / "nowhere/t.h5", sample::recipe), WriteFailed);
    CHECK_THROWS_AS(check_output_state(folder / std::string(300, 'x'), sample::recipe), WriteFailed);

    SECTION("an unfinished trace") {
        { const Writer begun(output, sample::recipe); }
        CHECK(check_output_state(output, sample::recipe) == OutputState::resumable);
        CHECK(check_output_state(output, sample::recipe, forced) == OutputState::resumable);
        CHECK_THROWS_AS(check_output_state(output, other_recipe), OutputExists);
        CHECK(check_output_state(output, other_recipe, forced) == OutputState::absent);
        CHECK(fs::exists(part / "trace.json"));
        write_text(part / "notes.txt", "mine");
        CHECK_THROWS_AS(check_output_state(output, other_recipe, forced), OutputExists);
    }
    SECTION("a complete one") {
        sample::write_anew(output, {});
        CHECK(check_output_state(output, sample::recipe) == OutputState::complete);
        CHECK(check_output_state(output, sample::recipe, forced) == OutputState::absent);
        CHECK_THROWS_AS(check_output_state(output, other_recipe), OutputExists);
        CHECK(check_output_state(output, other_recipe, forced) == OutputState::absent);
    }
    SECTION("a file at the folder's path") {
        write_text(part, "mine");
        CHECK_THROWS_AS(check_output_state(output, sample::recipe), OutputExists);
        CHECK_THROWS_AS(check_output_state(output, sample::recipe, forced), OutputExists);
        CHECK(contents(part) == "mine");
    }
    SECTION("a text at the trace's path") {
        write_text(folder / "t.txt", "mine");
        CHECK_THROWS_AS(check_output_state(folder / "t.txt", sample::recipe, forced), OutputExists);
    }
}
