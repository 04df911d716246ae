// Who waits for HDF5 while a trace is written: a window that draws, above all.
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <thread>

#include "tests/trace/sample_trace.h"
#include "trace/hdf5.h"

using namespace kvscope::trace;

namespace {

std::function<void()> on_sync;

bool can_take_guard() {
    auto taken = std::make_shared<std::promise<void>>();
    auto is_taken = taken->get_future();
    std::thread([taken] {
        const h5::Guard guard;
        taken->set_value();
    }).detach();
    return is_taken.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
}

}  // namespace

/// In place of the system's own, in this program.
extern "C" int fsync(int descriptor) {
    if (on_sync) on_sync();
    return static_cast<int>(syscall(SYS_fsync, descriptor));
}

TEST_CASE("others can use HDF5 while what was written is synced to the disk", "[trace]") {
    const sample::TemporaryFolder folder;
    const sample::Options options;
    const PromptRecord prompt = sample::prompt(options);
    int n_syncs = 0, n_free = 0;
    on_sync = [&] {
        ++n_syncs;
        n_free += can_take_guard();
    };
    Writer writer(folder / "t.h5", sample::recipe);
    writer.write_model(sample::model(options));
    writer.write_prompt(0, prompt);
    writer.write_run(0, 0, sample::full_run(options, prompt));
    writer.finish();
    on_sync = nullptr;
    CHECK(n_syncs > 4);
    CHECK(n_free == n_syncs);
}

TEST_CASE("who waits for HDF5 gets it before a long work goes on", "[trace]") {
    std::atomic<int> n_turns = 0;
    std::atomic<bool> ended = false;
    std::thread other;
    {
        h5::Guard guard;
        other = std::thread([&] {
            while (!ended) {
                const h5::Guard waited;
                ++n_turns;
            }
        });
        for (int i = 0; i < 1'000'000 && n_turns < 100; ++i) guard.let_others();
        CHECK(n_turns >= 100);
        const h5::Guard second;
        const int before = n_turns;
        for (int i = 0; i < 1000; ++i) guard.let_others();
        CHECK(n_turns == before);  // held twice: nobody comes between
        ended = true;
    }
    other.join();
}
