#include "app/gui/session/tasks.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "common/stopped.h"
#include "tests/trace/sample_trace.h"
#include "trace/reader.h"

using namespace kvscope::gui;

namespace {

/// Runs until it is stopped.
int until_stopped(const std::stop_token& stop, std::atomic<int>& n_begun, std::atomic<int>& n_stopped) {
    ++n_begun;
    try {
        for (;;) {
            kvscope::throw_if_stopped(stop);
            std::this_thread::yield();
        }
    } catch (const kvscope::Stopped&) {
        ++n_stopped;
        throw;
    }
}

void wait_for(const std::atomic<int>& count, int n) {
    while (count < n) std::this_thread::yield();
}

}  // namespace

TEST_CASE("an exception of one callback does not prevent the other callbacks") {
    Tasks tasks([] {});
    int n_told = 0;
    tasks.once([] { return std::string("first"); },
               [](const std::string&, bool) { throw std::runtime_error("no view for it"); });
    tasks.once([] { return std::string("second"); }, [](const std::string&, bool) { throw 3; });
    tasks.once([] { return std::string("third"); }, [&](const std::string&, bool) { ++n_told; });
    tasks.wait();
    const auto thrown = tasks.deliver();
    CHECK(n_told == 1);
    REQUIRE(thrown.size() == 2);
    CHECK(thrown[0] == "no view for it");
    CHECK(thrown[1].find("unknown reason") != std::string::npos);
    CHECK(tasks.deliver().empty());
}

TEST_CASE("work added by once() runs in order in the background, and its callbacks on the UI thread") {
    std::atomic<int> n_woken = 0;
    Tasks tasks([&] { ++n_woken; });
    const auto here = std::this_thread::get_id();
    std::vector<std::pair<std::string, bool>> told;
    const auto ended = [&](const std::string& said, bool is_error) {
        CHECK(std::this_thread::get_id() == here);
        told.emplace_back(said, is_error);
    };
    std::atomic<bool> was_here = false;
    const auto say = [&](const std::string& said) {
        return [&, said] {
            if (std::this_thread::get_id() == here) was_here = true;
            return said;
        };
    };
    tasks.once(say("first"), ended);
    tasks.once([]() -> std::string { throw std::runtime_error("no room"); }, ended);
    tasks.once(say("third"), ended);
    tasks.wait();
    CHECK(told.empty());
    CHECK(tasks.n_pending() == 0);
    CHECK(tasks.deliver().empty());
    CHECK(told == std::vector<std::pair<std::string, bool>>{{"first", false}, {"no room", true}, {"third", false}});
    CHECK_FALSE(was_here);
    wait_for(n_woken, 3);
    CHECK(n_woken == 3);
    CHECK(tasks.deliver().empty());
    CHECK(told.size() == 3);
}

TEST_CASE("work added by once() is finished after the app is closed, without callbacks") {
    std::atomic<int> n_done = 0;
    bool is_told = false;
    {
        Tasks tasks([] {});
        for (int i = 0; i < 3; ++i)
            tasks.once(
                [&] {
                    std::this_thread::yield();
                    ++n_done;
                    return std::string();
                },
                [&](const std::string&, bool) { is_told = true; });
    }
    CHECK(n_done == 3);
    CHECK_FALSE(is_told);
}

TEST_CASE("work is stopped when its slot is gone, when no frame requests it, and when the app closes") {
    std::atomic<int> n_begun = 0, n_stopped = 0;
    const auto work = [&](const std::stop_token& stop) { return until_stopped(stop, n_begun, n_stopped); };
    {
        Tasks tasks([] {}, 2, Tasks::Seconds(0));
        auto closed = std::make_unique<TaskSlot<int>>();
        tasks.ask(*closed, "", "1", work);
        wait_for(n_begun, 1);
        tasks.end_frame();
        CHECK(n_stopped == 0);
        closed.reset();
        tasks.end_frame();
        tasks.wait();
        CHECK(n_stopped == 1);

        const TaskSlot<int> slot;
        tasks.ask(slot, "", "1", work);
        wait_for(n_begun, 2);
        for (int i = 0; i < 500; ++i) tasks.end_frame();
        tasks.wait();
        CHECK(n_stopped == 2);
        CHECK(tasks.n_pending() == 0);

        // A request while the computation is being stopped starts it again, and the error of the stopped one is not
        // returned.
        std::atomic<bool> may_end = false;
        tasks.ask(slot, "", "1", [&]() -> int {
            ++n_begun;
            while (!may_end) std::this_thread::yield();
            throw std::runtime_error("late");
        });
        wait_for(n_begun, 3);
        for (int i = 0; i < 500; ++i) tasks.end_frame();
        CHECK_FALSE(tasks.ask(slot, "", "1", [] { return 5; }).current);
        may_end = true;
        tasks.wait();
        const auto again = tasks.ask(slot, "", "1", [] { return 6; });
        REQUIRE(again.current);
        CHECK(again.error.empty());
        CHECK(*again.value == 5);

        tasks.ask(slot, "other", "1", work);
        wait_for(n_begun, 4);
    }
    CHECK(n_stopped == 3);
}

TEST_CASE("a result stays while the computation of a newer stamp is stopped and requested again") {
    Tasks tasks([] {}, 2, Tasks::Seconds(3600));
    const TaskSlot<int> slot, other;
    tasks.ask(slot, "", "1", [] { return 1; });
    tasks.wait();
    std::atomic<int> n_begun = 0, n_stopped = 0;
    const auto endless = [&](const std::stop_token& stop) { return until_stopped(stop, n_begun, n_stopped); };
    tasks.ask(slot, "", "2", endless);
    tasks.ask(slot, "other", "2", endless);
    wait_for(n_begun, 2);
    // Both workers are busy with work that no frame requests when a third computation is requested.
    while (n_stopped < 2) {
        tasks.ask(other, "", "1", [] { return 3; });
        tasks.end_frame();
        std::this_thread::yield();
    }
    const auto kept = tasks.ask(slot, "", "2", [] { return 2; });
    CHECK(kept.value);
    tasks.wait();
    const auto again = tasks.ask(slot, "", "2", [] { return 4; });
    REQUIRE(again.value);
    CHECK(again.current);
    CHECK(*again.value == 2);
    CHECK(*tasks.ask(other, "", "1", [] { return 5; }).value == 3);
}

TEST_CASE("a long computation for an old stamp is stopped, and continues if its stamp is requested in time") {
    Tasks tasks([] {});
    const TaskSlot<int> slot;
    std::atomic<int> n_begun = 0, n_stopped = 0;
    tasks.ask(slot, "", "1", [&](const std::stop_token& stop) { return until_stopped(stop, n_begun, n_stopped); });
    wait_for(n_begun, 1);
    while (!tasks.ask(slot, "", "2", [] { return 2; }).current) {
        tasks.end_frame();
        std::this_thread::yield();
    }
    CHECK(n_stopped == 1);

    std::atomic<bool> may_end = false;
    const auto third = [&] {
        ++n_begun;
        while (!may_end) std::this_thread::yield();
        return 3;
    };
    tasks.ask(slot, "", "3", third);
    wait_for(n_begun, 2);
    CHECK(tasks.ask(slot, "", "2", third).current);
    tasks.ask(slot, "", "4", [] { return 4; });
    tasks.ask(slot, "", "3", third);
    may_end = true;
    tasks.wait();
    CHECK(*tasks.ask(slot, "", "3", third).value == 3);
    CHECK(tasks.ask(slot, "", "3", third).current);
    CHECK(n_begun == 2);
}

TEST_CASE("end_frame() returns when the next result expires") {
    Tasks tasks([] {}, 2, Tasks::Seconds(3600));
    CHECK_FALSE(tasks.end_frame());
    const TaskSlot<std::shared_ptr<int>> slot;
    auto made = std::make_shared<int>(1);
    tasks.ask(slot, "", "1", [made] { return made; });
    tasks.wait();
    CHECK_FALSE(tasks.end_frame());
    CHECK_FALSE(tasks.end_frame());
    const auto left = tasks.end_frame();
    REQUIRE(left);
    CHECK(left->count() > 0);
    CHECK(left->count() <= 3600);
    CHECK(made.use_count() == 2);

    Tasks soon([] {}, 2, Tasks::Seconds(0));
    soon.ask(slot, "", "1", [made] { return made; });
    soon.wait();
    CHECK(made.use_count() == 3);
    for (int i = 0; i < 3; ++i) soon.end_frame();
    CHECK(made.use_count() == 2);
}

TEST_CASE("keys and slots of one type are distinguished, and reading a trace stops canceled work") {
    Tasks tasks([] {});
    const TaskSlot<int> one, two;
    const auto ask = [&](const TaskSlot<int>& slot, const char* key, int n) {
        return tasks.ask(slot, key, "1", [n] { return n; });
    };
    ask(one, "a", 1);
    ask(one, "b", 2);
    ask(two, "a", 3);
    tasks.wait();
    CHECK(*ask(one, "a", 0).value == 1);
    CHECK(*ask(one, "b", 0).value == 2);
    CHECK(*ask(two, "a", 0).value == 3);

    const kvscope::trace::sample::TemporaryFolder folder;
    kvscope::trace::sample::write(folder / "sample.h5");
    std::stop_source stop;
    const auto reader = kvscope::trace::Reader(folder / "sample.h5").with_stop(stop.get_token());
    CHECK_NOTHROW(reader.token_ids(0));
    stop.request_stop();
    CHECK_THROWS_AS(reader.token_ids(0), kvscope::Stopped);
}
