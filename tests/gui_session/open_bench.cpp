// Measures how long opening, reading again and closing a trace blocks the UI thread, alone and while a worker reads
// scores: `KVSCOPE_LARGE_TRACE=t.h5 kvscope_gui_session_tests "[open-bench]"` with a trace of `kvscope_make_trace
// --scores`.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>

#include "app/gui/session/session.h"
#include "trace/records/schema.h"

using namespace kvscope;
using namespace kvscope::gui;

namespace {

double milliseconds(const std::function<void()>& act) {
    const auto start = std::chrono::steady_clock::now();
    act();
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

struct Waits {
    double open = 0, reload = 0, close = 0;  ///< longest times in ms
};

Waits longest_waits(const std::filesystem::path& path) {
    Waits longest;
    for (int i = 0; i < 10; ++i) {
        Tasks tasks([] {});
        Session session(tasks);
        Document* document = nullptr;
        longest.open = std::max(longest.open, milliseconds([&] { document = &session.open(path); }));
        longest.reload = std::max(longest.reload, milliseconds([&] { document->reload(); }));
        longest.close = std::max(longest.close, milliseconds([&] { session.close(document->id()); }));
        tasks.wait();
    }
    return longest;
}

void print(const char* when, const Waits& waits) {
    std::printf("%s: open %.1f ms, reload %.1f ms, close %.1f ms\n", when, waits.open, waits.reload, waits.close);
}

}  // namespace

TEST_CASE("time for which a frame waits for a large trace", "[.][open-bench]") {
    const char* path = std::getenv("KVSCOPE_LARGE_TRACE");
    REQUIRE(path);
    print("alone", longest_waits(path));
    std::atomic<bool> is_over = false;
    std::thread reader([&] {
        const trace::Reader trace{std::filesystem::path(path)};
        while (!is_over)
            for (int run = 1; run < trace.n_runs(0) && !is_over; ++run)
                static_cast<void>(trace.read<float>(trace::Place::of_run(0, run), trace::schema::run::scores));
    });
    print("while scores are read", longest_waits(path));
    is_over = true;
    reader.join();
}
