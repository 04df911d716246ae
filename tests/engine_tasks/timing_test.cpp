#include <array>
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <set>

#include "engine/common/engine_error.h"
#include "engine/tasks/api/task.h"

using namespace kvscope;
using namespace kvscope::engine;
using Catch::Matchers::Contains;

namespace {

const checkpoint::Tokenizer& tokenizer() {
    static const auto opened =
        checkpoint::open_tokenizer(std::filesystem::path(KVSCOPE_TEST_DATA) / "ruler" / "tokenizer");
    return *opened;
}

std::vector<TaskSample> samples_of(const std::vector<std::pair<std::string, std::string>>& changes,
                                   int64_t n_new = 32) {
    const Task& task = task_named("timing");
    TaskOptions options{policies::ParameterValues(task.parameters)};
    for (const auto& [name, value] : changes) options.values.set(name, value);
    return task.make_samples({task, options, tokenizer(), 2000, n_new});
}

}  // namespace

TEST_CASE("timing: every repeat has each length and number of new tokens", "[timing]") {
    const auto samples = samples_of({{"lengths", "100-300+100"}, {"tokens", "4,16"}, {"repeat", "2"}});
    REQUIRE(samples.size() == 12);
    CHECK(samples[0].id == "timing-100-4-0");
    CHECK(samples[1].id == "timing-100-16-0");
    CHECK(samples[11].id == "timing-300-16-1");
    CHECK(samples[1].n_new == 16);
    CHECK(samples[1].subset == "16 new tokens");
    std::set<std::string> texts;
    for (const TaskSample& sample : samples) {
        const auto n_tokens = static_cast<int64_t>(tokenizer().encode(sample.context, false, false).size());
        CHECK(n_tokens <= sample.length);
        CHECK(n_tokens > sample.length - 8);  // a word has at most 8 tokens
        texts.insert(sample.context);
    }
    CHECK(texts.size() == 6);  // one per length and repeat
}

TEST_CASE("timing: samples keep their numbers when lengths, numbers of tokens or repeats are added", "[timing]") {
    std::map<int, std::string> known;
    for (const auto& [lengths, tokens, batches, repeats] :
         std::vector<std::array<std::string, 4>>{{"100", "4", "1", "1"},
                                                 {"100,300", "4", "1", "2"},
                                                 {"100,300,200", "4,16", "1", "20"},
                                                 {"100,300", "4,16,8", "1,4,2", "3"}}) {
        CAPTURE(lengths, tokens, batches, repeats);
        const auto samples =
            samples_of({{"lengths", lengths}, {"tokens", tokens}, {"batch", batches}, {"repeat", repeats}});
        std::set<int> numbers;
        for (const TaskSample& sample : samples) {
            numbers.insert(sample.number);
            const std::string content = sample.id + sample.context;
            CHECK(known.try_emplace(sample.number, content).first->second == content);
        }
        CHECK(numbers.size() == samples.size());
    }
}

TEST_CASE("timing: every combination of length and number of tokens has each batch", "[timing]") {
    const auto samples = samples_of({{"lengths", "100"}, {"tokens", "4,16"}, {"batch", "1-4*2"}, {"repeat", "1"}});
    REQUIRE(samples.size() == 6);
    CHECK(samples[0].id == "timing-100-4-0");
    CHECK(samples[4].id == "timing-100-16-b2-0");
    CHECK(samples[4].batch == 2);
    CHECK(samples[4].context == samples[0].context);
    CHECK_THROWS_WITH(samples_of({{"lengths", "50"}, {"batch", "2,2"}}), Contains("a batch of 2 is given twice"));
}

TEST_CASE("timing: lengths and numbers of tokens that cannot be measured are refused", "[timing]") {
    CHECK_THROWS_WITH(samples_of({{"lengths", "1990"}, {"tokens", "4,16"}}), Contains("at most 1984"));
    CHECK_THROWS_WITH(samples_of({{"lengths", "50,50"}}), Contains("given twice"));
    CHECK_THROWS_WITH(samples_of({}, 64), Contains("use --tokens 64"));
    CHECK_THROWS_AS(samples_of({{"tokens", "1"}}), policies::ParameterError);
}
