#include "app/gui/session/tasks.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

using namespace kvscope::gui;

TEST_CASE("work asked for once is done in order beside the window, and its end is told on the window's thread") {
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
    tasks.deliver();
    CHECK(told == std::vector<std::pair<std::string, bool>>{{"first", false}, {"no room", true}, {"third", false}});
    CHECK_FALSE(was_here);
    CHECK(n_woken == 3);
    tasks.deliver();
    CHECK(told.size() == 3);
}

TEST_CASE("work asked for once ends where the window is closed before, and nobody is told") {
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
