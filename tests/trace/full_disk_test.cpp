// A disk that is full at any byte: a clear error, no finished work is lost, no crash. A limit on the size of files
// makes the same calls fail as a full disk.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <functional>

#include "tests/trace/sample_trace.h"
#include "trace/checks/check_trace.h"
#include "trace/reader.h"

using namespace kvscope::trace;
namespace fs = std::filesystem;

namespace {

enum Outcome { written = 0, full = 10, something_else = 11 };

// Runs in a child process whose files cannot exceed `bytes`. Returns a signal as its negative number.
int with_file_limit(std::size_t bytes, const std::function<void()>& work) {
    const pid_t child = fork();
    if (child == 0) {
        const rlimit limit{bytes, bytes};
        setrlimit(RLIMIT_FSIZE, &limit);
        int outcome = something_else;
        try {
            work();
            outcome = written;
        } catch (const WriteFailed& failure) {
            const bool clear = std::strstr(failure.what(), "File too large") != nullptr &&
                               std::strstr(failure.what(), "t.h5") != nullptr;
            outcome = clear ? full : something_else;
        } catch (...) {
        }
        _exit(outcome);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

TEST_CASE("a disk that becomes full while a run is written", "[trace]") {
    const sample::TemporaryFolder folder;
    sample::Options options;
    options.n_tokens = 2000;
    const PromptRecord prompt = sample::prompt(options);
    const RunRecord run = sample::selecting_run(options, prompt, "snapkv", 1000);
    {
        Writer writer(folder / "t.h5", sample::recipe);
        writer.write_model(sample::model(options));
        writer.write_prompt(0, prompt);
        writer.write_run(0, 0, sample::full_run(options, prompt));
    }
    const auto try_with = [&](std::size_t limit) {
        return with_file_limit(limit, [&] {
            Writer writer(folder / "t.h5", sample::recipe);
            writer.write_run(0, 1, run);
        });
    };
    int failures = 0;
    for (std::size_t limit = 0; limit < 120'000; limit += limit < 4000 ? 400 : 5000) {
        const int outcome = try_with(limit);
        INFO("limit " << limit);
        if (outcome == written) break;
        CHECK(outcome == full);
        ++failures;
        const Reader reader(folder / "t.h5");
        CHECK(reader.n_runs(0) == 1);
        CHECK(reader.kept(0, 0)->indices.size() == 3U * 2U * 2000U);
    }
    CHECK(failures > 10);

    // With space again, the same command finishes.
    Writer writer(folder / "t.h5", sample::recipe);
    CHECK(writer.resumed());
    if (!writer.has_run(0, 1)) writer.write_run(0, 1, run);
    writer.finish();
    CHECK(find_problems(folder / "t.h5").empty());
}

TEST_CASE("a disk that becomes full while the parts are joined", "[trace]") {
    const sample::TemporaryFolder folder;
    sample::Options options;
    options.n_tokens = 2000;
    options.n_questions = 2;
    {
        Writer writer(folder / "t.h5", sample::recipe);
        sample::write_parts(writer, options);
    }
    int failures = 0;
    for (std::size_t limit = 1000; limit < 2'000'000; limit += 30'000) {
        const int outcome = with_file_limit(limit, [&] { Writer(folder / "t.h5", sample::recipe).finish(); });
        INFO("limit " << limit);
        if (outcome == written) break;
        CHECK(outcome == full);
        ++failures;
        CHECK_FALSE(fs::exists(folder / "t.h5"));
        CHECK(Reader(folder / "t.h5").n_runs(1) == 7);
    }
    CHECK(failures > 5);
    CHECK(Reader(folder / "t.h5").complete());
    CHECK(find_problems(folder / "t.h5").empty());
}

TEST_CASE("a disk without space for the first byte", "[trace]") {
    const sample::TemporaryFolder folder;
    CHECK(with_file_limit(0, [&] { Writer(folder / "t.h5", sample::recipe); }) == full);
    CHECK(with_file_limit(0, [&] { sample::write_anew(folder / "t.h5"); }) == full);
    sample::write_anew(folder / "t.h5");
    CHECK(find_problems(folder / "t.h5").empty());
}
