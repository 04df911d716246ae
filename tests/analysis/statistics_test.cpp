#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <stdexcept>
#include <vector>

#include "analysis/statistics/bootstrap.h"
#include "analysis/statistics/paired_difference.h"
#include "common/file_text.h"
#include "common/json.h"

using namespace kvscope::analysis;
using Values = std::vector<double>;

namespace {

/// Numbers of SciPy and NumPy, made by scripts/golden/statistics.py.
const nlohmann::json& golden() {
    static const auto json = nlohmann::json::parse(
        kvscope::file_text(std::filesystem::path(KVSCOPE_SOURCE) / "tests/data/analysis/statistics.json"));
    return json;
}

std::vector<std::string> names(const nlohmann::json& numbers) {
    std::vector<std::string> names;
    for (const auto& number : numbers) names.push_back(std::to_string(number.get<int>()));
    return names;
}

}  // namespace

TEST_CASE("intervals of means are SciPy's") {
    for (const auto& wanted : golden()["intervals"]) {
        const auto values = wanted["values"].get<Values>();
        const Estimate found = estimate_mean(values, Clusters(values.size()));
        CHECK(found.n == values.size());
        CHECK(found.mean == Approx(wanted["mean"].get<double>()));
        CHECK(found.median == Approx(wanted["median"].get<double>()));
        CHECK(found.interval.low == Approx(wanted["low"].get<double>()).margin(0.005));
        CHECK(found.interval.high == Approx(wanted["high"].get<double>()).margin(0.005));
    }
}

TEST_CASE("intervals of medians are SciPy's") {
    for (const auto& wanted : golden()["medians"]) {
        const auto values = wanted["values"].get<Values>();
        const Estimate found = estimate_median(values, Clusters(values.size()));
        CHECK(found.n == values.size());
        CHECK(found.value == Approx(wanted["median"].get<double>()));
        CHECK(found.median == found.value);
        CHECK(found.mean == Approx(wanted["mean"].get<double>()));
        CHECK(found.interval.low == Approx(wanted["low"].get<double>()).margin(0.005));
        CHECK(found.interval.high == Approx(wanted["high"].get<double>()).margin(0.005));
    }
    CHECK(estimate_mean(Values{1, 2, 6}, Clusters(3)).value == 3);
}

TEST_CASE("questions about one context are drawn together") {
    for (const auto& wanted : golden()["clusters"]) {
        const auto values = wanted["values"].get<Values>();
        const auto names_of_clusters = names(wanted["cluster"]);
        const Clusters clusters(std::vector<std::string_view>(names_of_clusters.begin(), names_of_clusters.end()));
        CHECK(clusters.n_clusters() == 15);
        const Estimate found = estimate_mean(values, clusters);
        CHECK(found.n_clusters == 15);
        CHECK(found.interval.low == Approx(wanted["low"].get<double>()).margin(0.005));
        CHECK(found.interval.high == Approx(wanted["high"].get<double>()).margin(0.005));
        const Estimate independent = estimate_mean(values, Clusters(values.size()));
        CHECK(independent.interval.high - independent.interval.low < found.interval.high - found.interval.low);
    }
}

TEST_CASE("copies of a question do not make an interval narrower") {
    const Values once{0, 1, 1, 0, 1};
    Values copied;
    std::vector<std::string> contexts;
    for (int copy = 0; copy < 20; ++copy)
        for (size_t i = 0; i < once.size(); ++i) {
            copied.push_back(once[i]);
            contexts.push_back(std::to_string(i));
        }
    const auto one = estimate_mean(once, Clusters(once.size())).interval;
    const auto many =
        estimate_mean(copied, Clusters(std::vector<std::string_view>(contexts.begin(), contexts.end()))).interval;
    CHECK(many.low == Approx(one.low));
    CHECK(many.high == Approx(one.high));
}

TEST_CASE("scores that are all equal have the interval of Clopper and Pearson") {
    // scipy.stats.binomtest(20, 20).proportion_ci(): 0.8315665; for 0 of 20: 0.1684335
    const Values right(20, 1.0), wrong(20, 0.0);
    CHECK(estimate_score(right, Clusters(20)).interval.low == Approx(0.8315665));
    CHECK(estimate_score(right, Clusters(20)).interval.high == 1);
    CHECK(estimate_score(wrong, Clusters(20)).interval.high == Approx(0.1684335));
    CHECK(estimate_score(wrong, Clusters(20)).interval.low == 0);
}

TEST_CASE("too few clusters have no interval") {
    const auto has_interval = [](const Estimate& estimate) {
        CHECK(std::isnan(estimate.interval.low) == std::isnan(estimate.interval.high));
        return !std::isnan(estimate.interval.low);
    };
    const std::vector<std::string_view> one(3, "a"), two = {"a", "b", "a"};
    CHECK_FALSE(has_interval(estimate_mean(Values{0.1, 0.2, 0.3}, Clusters(one))));
    CHECK_FALSE(has_interval(estimate_mean(Values{0.1, 0.2, 0.3}, Clusters(two))));
    CHECK(has_interval(estimate_mean(Values{0.1, 0.2, 0.3}, Clusters(3))));
    // The least and the greatest of 5 values contain the median with a probability of 1 - 2^-4 = 93.75 %.
    CHECK_FALSE(has_interval(estimate_median(Values{1, 2, 3, 4, 5}, Clusters(5))));
    CHECK(has_interval(estimate_median(Values{1, 2, 3, 4, 5, 6}, Clusters(6))));
    // Equal scores say nothing about their spread, unless a score is either right or wrong.
    CHECK_FALSE(has_interval(estimate_score(Values(3, 0.5), Clusters(3))));
    CHECK(has_interval(estimate_score(Values(1, 1), Clusters(1))));
    CHECK(has_interval(estimate_score(Values{0.5, 0.5, 1}, Clusters(3))));
}

TEST_CASE("p-values of paired differences are SciPy's") {
    for (const auto& wanted : golden()["pairs"]) {
        const auto a = wanted["a"].get<Values>(), b = wanted["b"].get<Values>();
        const PairedDifference found = paired_difference(a, b, Clusters(a.size()));
        CHECK(found.estimate.mean == Approx(wanted["mean"].get<double>()));
        // The least p-value of 10,000 exchanges is 0.0001.
        CHECK(found.p == Approx(wanted["p"].get<double>()).margin(a.size() <= 13 ? 1e-12 : 0.015));
    }
}

TEST_CASE("all exchanges of up to 20 different clusters are enumerated") {
    for (const auto& wanted : golden()["exact_pairs"]) {
        const auto a = wanted["a"].get<Values>(), b = wanted["b"].get<Values>();
        CHECK(paired_difference(a, b, Clusters(a.size())).p == wanted["p"].get<double>());
    }
    CHECK(smallest_p(20) == std::ldexp(1, -19));
    CHECK(smallest_p(21) == Approx(1.0 / 10001));
}

TEST_CASE("equal runs are not distinguishable, and the order of a pair changes only the sign") {
    const Values a{0.2, 0.4, 0.9, 0.1, 0.5, 0.7, 0.3, 0.8, 0.6, 1, 0, 0.2, 0.4, 0.3, 0.9};
    Values b = a;
    CHECK(paired_difference(a, b, Clusters(a.size())).p == 1);
    for (double& value : b) value += 0.1;
    const auto forward = paired_difference(b, a, Clusters(a.size()));
    const auto backward = paired_difference(a, b, Clusters(a.size()));
    CHECK(forward.p < 0.001);
    CHECK(backward.p == forward.p);
    CHECK(backward.estimate.mean == Approx(-forward.estimate.mean));
    CHECK(forward.estimate.interval.low > 0);
    CHECK_THROWS_AS(paired_difference(a, Values{1}, Clusters(a.size())), std::invalid_argument);
}

TEST_CASE("p-values of several comparisons are adjusted as by Holm") {
    const auto& wanted = golden()["holm"];
    Values p = wanted["p"].get<Values>();
    const Values expected = wanted["adjusted"].get<Values>();
    p.insert(p.begin(), std::nan(""));  // no comparison
    const Values found = holm(p);
    CHECK(std::isnan(found[0]));
    for (size_t i = 0; i < expected.size(); ++i) CHECK(found[i + 1] == Approx(expected[i]));
}

TEST_CASE("estimates depend on the values and the seed alone, and refuse invalid values") {
    const Values values{0.1, 0.9, 0.3, 0.5};
    const Clusters four(4);
    CHECK(estimate_mean(values, four).interval.low == estimate_mean(values, four).interval.low);
    CHECK(estimate_mean(values, four, {.seed = 2}).interval.low ==
          Approx(estimate_mean(values, four).interval.low).margin(0.02));
    CHECK_THROWS_AS(estimate_mean(Values{}, Clusters(0)), std::invalid_argument);
    CHECK_THROWS_AS(estimate_mean(Values{0, std::nan("")}, Clusters(2)), std::invalid_argument);
    CHECK_THROWS_AS(estimate_mean(values, Clusters(3)), std::invalid_argument);
}

TEST_CASE("means over many clusters draw fewer samples, but at least 1,000") {
    const auto interval = [](std::size_t n, const Resampling& resampling) {
        Values values(n);
        for (std::size_t i = 0; i < n; ++i)
            values[i] = (i % 4 == 0 ? 1 : 0) + 1e-4 * static_cast<double>(i) / static_cast<double>(n);
        return estimate_mean(values, Clusters(n), resampling).interval;
    };
    const auto draw_equally = [&](std::size_t n, int n_resamples) {
        const Interval found = interval(n, {}), wanted = interval(n, {.n_resamples = n_resamples});
        return found.low == wanted.low && found.high == wanted.high;
    };
    CHECK(draw_equally(1000, 10000));
    CHECK(draw_equally(2000, 5000));
    CHECK(draw_equally(20000, 1000));
    CHECK_FALSE(draw_equally(2000, 4999));
    // For many samples, the interval is that of the normal distribution.
    const double error = 1.96 * std::sqrt(0.25 * 0.75 / 20000);
    CHECK(interval(20000, {}).low == Approx(0.25 - error).margin(0.1 * error));
    CHECK(interval(20000, {}).high == Approx(0.25 + error).margin(0.1 * error));
}
