// Threads that wait for HDF5 while a trace is written, such as the app's drawing thread.
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "tests/trace/sample_trace.h"
#include "trace/hdf5/hdf5.h"
#include "trace/reader.h"
#include "trace/records/schema.h"

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

/// Replaces the system's function in this program.
extern "C" int fsync(int descriptor) {
    if (on_sync) on_sync();
    return static_cast<int>(syscall(SYS_fsync, descriptor));
}

TEST_CASE("other threads can use HDF5 while a file is synced to disk", "[trace]") {
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

TEST_CASE("a waiting thread gets HDF5 while another one reads a large data set correctly", "[trace]") {
    const sample::TemporaryFolder folder;
    sample::Options options;
    options.n_layers = 16;
    options.n_tokens = 32768;
    sample::write_anew(folder / "t.h5", options);
    const Reader reader(folder / "t.h5");
    const Place place = Place::of_run(0, 1);
    const std::size_t n_layers = reader.shape(place, schema::run::scores).at(0);
    std::vector<float> by_layer;
    for (std::size_t layer = 0; layer < n_layers; ++layer) {
        const auto values = reader.read_layer<float>(place, schema::run::scores, layer);
        by_layer.insert(by_layer.end(), values.begin(), values.end());
    }
    std::atomic<int> n_turns = 0;
    std::atomic<bool> ended = false;
    std::thread other([&] {
        while (!ended) {
            const h5::Guard waited;
            ++n_turns;
        }
    });
    while (n_turns == 0) std::this_thread::yield();
    const int before = n_turns;
    const auto whole = reader.read<float>(place, schema::run::scores);
    const int turns = n_turns - before;
    ended = true;
    other.join();
    REQUIRE(whole.size() == by_layer.size());
    CHECK(std::memcmp(whole.data(), by_layer.data(), whole.size() * sizeof(float)) ==
          0);  // compares bits because of NaN
    CHECK(turns >= 4);
}

TEST_CASE("a waiting thread gets HDF5 before long work continues", "[trace]") {
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
        CHECK(n_turns == before);  // held twice, so no other thread gets a turn
        ended = true;
    }
    other.join();
}
