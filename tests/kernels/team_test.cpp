#include "kernels/threads/team.h"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "kernels/threads/parallel.h"

using namespace kvscope::kernels;

namespace {

/// How often each of n parts was done, and whether all members belonged to the team.
std::vector<int> done_by(int n_threads, int64_t n, int64_t together) {
    std::vector<int> times(static_cast<size_t>(n));
    std::atomic<bool> of_team{true};
    over_parts(n_threads, n, together, [&](int64_t begin, int64_t end, int member) {
        if (member < 0 || member >= std::max(1, n_threads) ||
            end - begin > std::max(n_threads > 1 ? together : n, together))
            of_team = false;
        for (int64_t i = begin; i < end; ++i) ++times[static_cast<size_t>(i)];
    });
    CHECK(of_team);
    return times;
}

}  // namespace

TEST_CASE("a team of any size does each part of a loop once") {
    for (const int n_threads : {0, 1, 2, 3, 8})
        for (const int64_t n : {0, 1, 2, 17, 1000})
            for (const int64_t together : {1, 7, 2000}) {
                CAPTURE(n_threads, n, together);
                CHECK(done_by(n_threads, n, together) == std::vector<int>(static_cast<size_t>(n), 1));
            }
}

TEST_CASE("a team runs thousands of short loops, with sleeping and waking members") {
    std::vector<int64_t> sums(8);  // one per member, so that concurrent calls of a member would show
    for (int round = 0; round < 5000; ++round) {
        if (round % 1000 == 999) std::this_thread::sleep_for(std::chrono::milliseconds(2));
        over_parts(8, 16, 1, [&](int64_t begin, int64_t, int member) { sums[static_cast<size_t>(member)] += begin; });
    }
    int64_t sum = 0;
    for (const int64_t of_member : sums) sum += of_member;
    CHECK(sum == 5000 * 120);
}

TEST_CASE("a nested loop runs on the current thread") {
    std::atomic<int> inner{0}, elsewhere{0};
    over_parts(3, 6, 1, [&](int64_t, int64_t, int) {
        const auto self = std::this_thread::get_id();
        over_parts(3, 5, 1, [&](int64_t begin, int64_t end, int member) {
            if (std::this_thread::get_id() != self || member != 0) ++elsewhere;
            inner += static_cast<int>(end - begin);
        });
    });
    CHECK(inner == 30);
    CHECK(elsewhere == 0);
}

TEST_CASE("each thread has its own team and number of threads") {
    const int before = threads();
    std::atomic<int> wrong{0};
    std::vector<std::thread> callers;
    for (int caller = 1; caller <= 4; ++caller)
        callers.emplace_back([&, caller] {
            const Threads these(caller);
            for (int round = 0; round < 200; ++round) {
                std::vector<int> times(50);
                over_parts(threads(), 50, 3, [&](int64_t begin, int64_t end, int member) {
                    if (member >= caller) ++wrong;
                    for (int64_t i = begin; i < end; ++i) ++times[static_cast<size_t>(i)];
                });
                if (times != std::vector<int>(50, 1) || threads() != caller) ++wrong;
            }
        });
    for (std::thread& caller : callers) caller.join();
    CHECK(wrong == 0);
    CHECK(threads() == before);
    {
        const Threads three(3);
        CHECK(threads() == 3);
    }
    CHECK(threads() == before);
}

TEST_CASE("the caller of a parallel loop gets the exception of the lowest failing call") {
    const Threads three(3);
    std::atomic<int> calls{0};
    const auto loop = [&] {
        parallel_for(40, int64_t{1} << 20, [&](int64_t i) {
            ++calls;
            if (i == 7 || i == 30) throw std::runtime_error(std::to_string(i));
        });
    };
    CHECK_THROWS_WITH(loop(), "7");
    CHECK(calls == 40);
}

TEST_CASE("the caller gets a member's exception after all members ended, and the team still works") {
    for (int round = 0; round < 200; ++round) {
        std::atomic<int> inside{0};
        const auto loop = [&](bool of_caller) {
            run_on_thread_team(3, [&](int member) {
                ++inside;
                std::this_thread::yield();
                --inside;
                if ((member == 0) == of_caller) throw std::runtime_error("no memory");
                if (member == 0)  // until another member throws or is too late
                    std::this_thread::sleep_for(std::chrono::microseconds(50));
            });
        };
        CHECK_THROWS_WITH(loop(true), "no memory");
        CHECK(inside == 0);
        try {
            loop(false);
        } catch (const std::runtime_error&) {
        }
        CHECK(inside == 0);
    }
    std::atomic<int64_t> others{0};
    for (int round = 0; round < 1000 && others == 0; ++round)
        over_parts(3, 100, 1, [&](int64_t, int64_t, int member) {
            std::this_thread::sleep_for(std::chrono::microseconds(20));
            if (member != 0) ++others;
        });
    CHECK(others > 0);
}
