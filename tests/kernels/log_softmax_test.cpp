#include "kernels/log_softmax.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/threads/team.h"
#include "tests/kernels/kernel_case.h"

using namespace kvscope::kernels;
using namespace kvscope::kernels::testing;

namespace {

std::vector<float> logs_of(const std::vector<float>& logits, int64_t n) {
    std::vector<float> logs(logits.size());
    log_softmax({static_cast<int64_t>(logits.size()) / n, n, logits.data(), logs.data()});
    return logs;
}

std::vector<float> divergences(const std::vector<float>& p, const std::vector<float>& q, int64_t n) {
    std::vector<float> out(p.size() / static_cast<size_t>(n));
    divergence_of_logs({static_cast<int64_t>(out.size()), n, p.data(), q.data(), out.data()});
    return out;
}

}  // namespace

TEST_CASE("log-probabilities and their divergence equal sums in double, at every instruction set") {
    for (const auto level : levels()) {
        const ForcedSimdLevel forced(level);
        CAPTURE(name_of(level));
        for (const int64_t n : {1, 3, 16, 77, 5000}) {
            CAPTURE(n);
            const auto a = random_values<float>(static_cast<size_t>(3 * n), 1, 5.0f);
            const auto b = random_values<float>(static_cast<size_t>(3 * n), 2, 5.0f);
            const auto p = logs_of(a, n), q = logs_of(b, n);
            const auto kl = divergences(p, q, n);
            for (int64_t row = 0; row < 3; ++row) {
                double total_a = 0, total_b = 0, expected = 0;
                for (int64_t i = row * n; i < (row + 1) * n; ++i) {
                    total_a += std::exp(value(a, i));
                    total_b += std::exp(value(b, i));
                }
                for (int64_t i = row * n; i < (row + 1) * n; ++i) {
                    const double of_p = value(a, i) - std::log(total_a), of_q = value(b, i) - std::log(total_b);
                    CHECK(value(p, i) == Approx(of_p).epsilon(1e-6).margin(2e-6));
                    expected += std::exp(of_p) * (of_p - of_q);
                }
                CHECK(value(kl, row) == Approx(expected).epsilon(1e-5).margin(2e-6));
            }
            for (const float nothing : divergences(p, p, n)) CHECK(nothing == 0.0f);
        }
    }
}

TEST_CASE("a logit of minus infinity has no weight, and a NaN makes its row NaN") {
    const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
    for (const auto level : levels()) {
        const ForcedSimdLevel forced(level);
        CAPTURE(name_of(level));
        for (const size_t place : {0, 5, 16, 39}) {
            CAPTURE(place);
            auto logits = std::vector<float>(3 * 40, 2.0f);
            logits[place] = -infinity;
            logits[2 * 40 + place] = nan;
            const auto logs = logs_of(logits, 40);
            for (size_t i = 0; i < 40; ++i) {
                CHECK((i == place ? logs[i] == -infinity : logs[i] == Approx(-std::log(39.0))));
                CHECK(logs[40 + i] == Approx(-std::log(40.0)));
                CHECK(std::isnan(logs[80 + i]));
            }
            const auto fine = std::vector<float>(logs.begin() + 40, logs.begin() + 80);
            const auto broken = std::vector<float>(logs.begin() + 80, logs.end());
            const auto without = std::vector<float>(logs.begin(), logs.begin() + 40);
            CHECK(divergences(without, fine, 40)[0] == Approx(std::log(40.0 / 39.0)).margin(1e-6));
            CHECK(divergences(without, without, 40)[0] == 0.0f);
            CHECK(std::isnan(divergences(fine, broken, 40)[0]));
            CHECK(std::isnan(divergences(broken, fine, 40)[0]));
        }
    }
}

TEST_CASE("the log-softmax of a row depends neither on other rows nor on the threads") {
    for (const auto level : levels()) {
        const ForcedSimdLevel forced(level);
        const int64_t n = 3001, rows = 21;
        const auto logits = random_values<float>(static_cast<size_t>(rows * n), 3, 4.0f);
        const auto others = logs_of(random_values<float>(static_cast<size_t>(rows * n), 4, 4.0f), n);
        const int threads_before = threads();
        set_threads(3);
        const auto all = logs_of(logits, n);
        const auto kl = divergences(all, others, n);
        set_threads(1);
        for (int64_t row = 0; row < rows; ++row) {
            const auto of_row = [&](const std::vector<float>& values) {
                return std::vector<float>(values.begin() + row * n, values.begin() + (row + 1) * n);
            };
            CHECK(same_bits(logs_of(of_row(logits), n), of_row(all)));
            CHECK(divergences(of_row(all), of_row(others), n)[0] == kl[static_cast<size_t>(row)]);
        }
        set_threads(threads_before);
    }
}
