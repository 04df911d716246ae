#include "common/shared.h"

#include <catch2/catch.hpp>
#include <thread>
#include <utility>
#include <vector>

using kvscope::Shared;

namespace {

/// Counts how many of its values exist.
struct Counted {
    explicit Counted(int number) : number(number) { ++n_alive; }
    Counted(const Counted& other) : number(other.number) { ++n_alive; }
    Counted& operator=(const Counted&) = default;
    ~Counted() { --n_alive; }
    bool operator==(const Counted& other) const { return number == other.number; }

    int number;
    static inline int n_alive = 0;
};

}  // namespace

TEST_CASE("the last owner of a shared value frees it", "[shared]") {
    {
        Shared<Counted> first = Counted(1);
        CHECK(Counted::n_alive == 1);
        Shared<Counted> copy = first;
        Shared<Counted> moved = std::move(first);
        CHECK(Counted::n_alive == 1);
        CHECK(copy.get() == moved.get());
        const Shared<Counted>& same = copy;
        copy = same;
        CHECK(copy->number == 1);
        copy = Counted(2);
        CHECK(Counted::n_alive == 2);
        moved = copy;
        CHECK(Counted::n_alive == 1);
        CHECK((*moved).number == 2);
    }
    CHECK(Counted::n_alive == 0);
}

TEST_CASE("shared values compare by value", "[shared]") {
    const Shared<int> none, one = 1, other_one = 1, two = 2;
    CHECK(one == other_one);
    CHECK(one != two);
    CHECK(one != none);
    CHECK(none == Shared<int>());
    CHECK_FALSE(none);
    CHECK(none.get() == nullptr);
}

TEST_CASE("threads copy and free one shared value", "[shared]") {
    Shared<std::vector<int>> value = std::vector<int>(1000, 7);
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread)
        threads.emplace_back([value] {
            for (int i = 0; i < 10000; ++i) {
                Shared<std::vector<int>> copy = value;
                if (std::exchange(copy, {})->back() != 7) std::terminate();
            }
        });
    value = {};
    for (std::thread& thread : threads) thread.join();
}
