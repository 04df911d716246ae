#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <map>
#include <new>

#include "engine/common/engine_error.h"
#include "engine/task_evaluation.h"
#include "policies/api/policy_errors.h"
#include "policies/registry/reselect.h"
#include "tests/engine/ask_one_run.h"
#include "tests/engine/context_with_questions.h"
#include "tests/engine/experiment_on_disk.h"
#include "tests/engine/fake_device.h"
#include "tests/engine/same_bits.h"
#include "tests/engine/threads.h"
#include "tests/policies/faulty_policies.h"
#include "trace/checks/check_trace.h"

using namespace kvscope;
using namespace kvscope::engine::testing;
using policies::throwaway::faulty;

namespace {

constexpr int n_context = 90;

engine::RunPlan faulty_plan(const std::string& parameters) {
    return {faulty(parameters), policies::parse_budget("40")};
}

/// Returns the faulty policy among runs that decode in every other way.
std::vector<engine::RunPlan> plans_with(const std::string& parameters) {
    return {plan("full", "100%"),
            plan("snapkv:window=8", "40"),
            faulty_plan(parameters),
            plan("h2o:rolling=on", "40"),
            plan("aperturekv:window=8", "40"),
            plan("streaming-llm:rolling=on,positions=cache", "40")};
}
constexpr size_t faulty_run = 2;

struct Fault {
    std::string parameters;
    std::string says;
    bool decodes = false;  ///< whether it fails after some tokens of its answer
    bool answers = false;  ///< whether it fails after its whole answer
};

const std::vector<Fault>& faults() {
    static const std::vector<Fault> all{
        {"fault=begin", "begin: the test wants it"},
        {"fault=select", "layer 1: select: the test wants it"},
        {"fault=select-in-head", "layer 1, head 0: the test wants it"},
        {"fault=nothing-said", "layer 1: an error without a message"},
        {"fault=merge", "merge: the test wants it"},
        {"fault=draft", "draft: the test wants it"},
        // While runs decide in parallel.
        {"fault=gather", "layer 1: gather: the test wants it"},
        {"fault=beside-select", "layer 1: select: the test wants it"},
        {"fault=beside-draft", "layer 0: draft: the test wants it"},
        {"fault=beside-out-of-range", "row 1: expected positions below 90, found 90"},
        {"fault=step,after=0", "layer 0: step: the test wants it", true},
        {"fault=step,after=3", "layer 0: step: the test wants it", true},
        {"fault=step-again,after=2", "step again: the test wants it", false, true},
        // During the 7 tokens of the question.
        {"fault=nan", "NaN"},
        // Selections that no cache can hold.
        {"fault=stored-rows", "row 0: expected 2 rows, found 1"},
        {"fault=stored-fewer", "row 1: expected 40 positions, as many as the selection has, found 39"},
        {"fault=stored-elsewhere", "row 1: expected position 39 of the selection, found 40"},
        {"fault=stored-out-of-range", "row 1: expected position 39 of the selection, found 4000000000"},
        {"fault=stored-twice", "row 1: expected 40 positions, as many as the selection has, found 41"},
        {"fault=stored-nothing", "row 1: expected entries, found none"},
        {"fault=stored-no-parts", "expected at least one part for keys and one for values, found none"},
        {"fault=stored-width", "numbers per entry, one for each channel"},
        {"fault=stored-width-0", "expected parts with at least one number, found 0"},
        {"fault=stored-numbers", "numbers in a part, found"},
        {"fault=stored-masses", "expected 40 masses, found 39"},
        {"fault=stored-mass", "expected masses above 0, found 0"},
        {"fault=stored-channel", "expected channels below"},
        {"fault=stored-channels", "expected channels in ascending order, each once, found 3 after 3"},
        {"fault=stored-map", "columns in a map, found"},
        {"fault=stored-map-alone", "expected numbers for a map, found none"},
        {"fault=stored-tokens", "row 1: expected 90 entries of tokens, found 91"},
        {"fault=stored-token-range", "row 1: expected an entry from -1 to 39, found 40 for token 89"},
        {"fault=stored-token-behind", "row 1: expected a token up to 0 in entry 0, found 89"},
        {"fault=stored-token-lost", "row 1: expected token 0 in entry 0, found another entry"},
        {"fault=stored-unsaid",
         "stores entries in parts, but it lacks the interface StoresParts or its stores_parts() returns false"},
        // Decisions that are invalid for the cache.
        {"fault=out-of-range", "row 1: expected positions below 90, found 90"},
        {"fault=far-out-of-range", "row 1: expected positions below 90, found 4000000000"},
        {"fault=unsorted", "row 1: expected positions in ascending order"},
        {"fault=twice", "row 1: expected positions in ascending order, each once, found 0 after 0"},
        {"fault=row-more", "expected 2 rows, one for each KV head, found 3"},
        {"fault=row-less", "expected 2 rows, one for each KV head, found 1"},
        {"fault=no-rows", "expected 2 rows, one for each KV head, found 0"},
        {"fault=scores", "expected 180 scores or none, found 7"},
        {"fault=draft-out-of-range", "row 1: expected positions below 90"},
        {"fault=filter-unsorted", "row 1: expected positions in ascending order"},
        {"fault=filter-rows", "second pass in all rows, but row 1"},
        {"fault=evict-out-of-range,after=2", "row 1: expected entries below", true},
        {"fault=evict-unsorted,after=2", "row 1: expected entries in ascending order", true},
        {"fault=evict-twice,after=2", "row 1: expected entries in ascending order", true},
        {"fault=evict-rows,after=2", "expected 2 rows or none, found 3", true},
    };
    return all;
}

std::vector<engine::Prompt> prompts(const engine::Model& model) {
    auto ids = some_ids(model, n_context);
    for (const int32_t id : some_ids(model, 7, 2)) ids.push_back(id);
    return {prompt_of_ids(ids, n_context)};
}

void check_same_run(const trace::RunRecord& a, const trace::RunRecord& b) {
    CAPTURE(a.label, a.message, b.message);
    CHECK(a.status == "complete");
    CHECK(b.status == "complete");
    CHECK(a.message == b.message);
    CHECK(same_bits(a.kept_indices, b.kept_indices));
    CHECK(same_bits(a.output_ids, b.output_ids));
    CHECK(same_bits(a.step_kl, b.step_kl));
    CHECK(same_bits(a.step_agreement, b.step_agreement));
    CHECK(same_bits(a.output_error, b.output_error));
    CHECK(same_bits(a.answer_attention, b.answer_attention));
    CHECK(same_bits(a.kl_attention_lost, b.kl_attention_lost));
}

void check_failed(const trace::RunRecord& record, const Fault& fault, size_t n_answer) {
    CAPTURE(record.message, record.output_ids.size());
    CHECK(record.status == "failed");
    CHECK(record.message.find("layer 1: layer 1") == std::string::npos);
    CHECK(record.message.find(fault.says) != std::string::npos);
    CHECK(record.step_kl.empty());
    if (fault.answers) CHECK(record.output_ids.size() == n_answer);
    if (fault.decodes) {
        CHECK(!record.output_ids.empty());
        CHECK(record.output_ids.size() < n_answer);
    }
    if (fault.decodes || fault.answers) CHECK(!record.kept_indices.empty());
}

/// Sets a token's embedding to NaN, in the format of the model's file.
void poison(const engine::Model& model, int32_t token) {
    const auto& transformer = model.transformer();
    for (const engine::Transformer* on : {&transformer, &transformer.on_processor()}) {
        const engine::Matrix::Part& part = on->weights().embedding.parts().at(0);
        REQUIRE(part.format == kernels::WeightFormat::bf16);
        part.data[token][0].fill_(0xc0);
        part.data[token][1].fill_(0x7f);
    }
}

void check_sound(const std::filesystem::path& path) {
    for (const auto& problem : trace::find_problems(path)) {
        if (problem.severity == trace::Problem::Severity::error)
            FAIL_CHECK(problem.path << ": expected " << problem.expected << ", found " << problem.found);
    }
}

/// Cancels after a run was written.
class StopsBehind final : public engine::Progress {
 public:
    std::stop_source stop;
    void begin(std::string_view, int64_t, std::string_view) override {}
    void advance(int64_t) override {}
    void message(std::string_view) override {}
    std::stop_token stop_token() const override { return stop.get_token(); }
};

/// Is cancelled, or runs out of memory, in the first layer while other runs decide.
class EndsAll : public policies::throwaway::KeepFirst, public policies::Gathers {
 public:
    explicit EndsAll(const policies::ParameterValues& values) : how_(values.text("how")) {}
    static inline StopsBehind* progress = nullptr;
    static inline std::atomic<int> n_after = 0;  ///< decisions in later layers

    void gather(policies::LayerObservations&) override {}
    policies::Selection select(policies::LayerObservations& observations) override {
        if (observations.layer > 0) ++n_after;
        if (observations.layer == 0 && how_ == "stop") progress->stop.request_stop();
        if (observations.layer == 0 && how_ == "memory") throw std::bad_alloc();
        return KeepFirst::select(observations);
    }

 private:
    std::string how_;
};

/// Is cancelled while it begins, as a policy that tokenizes a long text could be.
class Interrupted : public policies::throwaway::KeepFirst {
 public:
    explicit Interrupted(const policies::ParameterValues&) {}
    void begin(const policies::RunContext&) override { throw Stopped(); }
};

}  // namespace

TEST_CASE("a cancellation while a policy begins is not a failure of its run") {
    static const auto definition = policies::throwaway::definition<Interrupted>("interrupted", {});
    const auto& model = tiny_model();
    std::vector<engine::RunPlan> plans{plan("full", "100%"),
                                       {policies::parse_parameters(definition, ""), policies::parse_budget("40")}};
    for (const bool isolated : {false, true}) {
        CAPTURE(isolated);
        engine::SilentProgress progress;
        engine::Experiment experiment(model, plans, options_of(4, true, isolated), progress);
        experiment.on_run = [&](int, int run, const trace::RunRecord&) { CHECK(run == 0); };
        CHECK_THROWS_AS(experiment.run(prompts(model)), Stopped);
    }
}

TEST_CASE("cancellation or lack of memory while runs decide in parallel ends all of them at that layer") {
    static const auto definition =
        policies::throwaway::definition<EndsAll>("ends-all", {policies::text_parameter("how", "not", "How it ends.")});
    const auto& model = tiny_model();
    const int n_threads = GENERATE(1, 2, 7);
    const std::string how = GENERATE("stop", "memory");
    CAPTURE(n_threads, how);
    const Threads threads(n_threads);
    auto plans = plans_with("fault=beside-select");
    plans.push_back({policies::parse_parameters(definition, "how=" + how), policies::parse_budget("40")});
    for (int i = 0; i < 5; ++i)
        plans.push_back({policies::parse_parameters(definition, ""), policies::parse_budget("40")});
    StopsBehind progress;
    EndsAll::progress = &progress;
    EndsAll::n_after = 0;
    engine::Experiment experiment(model, plans, options_of(4), progress);
    if (how == "stop")
        CHECK_THROWS_AS(experiment.run(prompts(model)), Stopped);
    else
        CHECK_THROWS_AS(experiment.run(prompts(model)), std::bad_alloc);
    CHECK(EndsAll::n_after == 0);
}

TEST_CASE("pseudo tokens without an embedding fail their run alone") {
    struct Appends : policies::throwaway::KeepFirst, policies::AppendsTokens {
        explicit Appends(const policies::ParameterValues&) {}
        policies::AppendedTokens appended(const policies::RunContext& context) const override {
            return {{static_cast<int32_t>(context.n_vocabulary)}, {context.n_tokens}};
        }
    };
    static const auto definition = policies::throwaway::definition<Appends>("appends", {});
    const auto& model = tiny_model();
    std::vector<engine::RunPlan> plans{plan("full", "100%"),
                                       {policies::parse_parameters(definition, ""), policies::parse_budget("40")},
                                       plan("streaming-llm", "40")};
    engine::SilentProgress progress;
    engine::Experiment experiment(model, plans, options_of(4), progress);
    std::map<int, trace::RunRecord> records;
    experiment.on_run = [&](int, int run, const trace::RunRecord& record) { records[run] = record; };
    experiment.run(prompts(model));
    REQUIRE(records.size() == 3);
    CHECK(records[1].status == "failed");
    CHECK(records[1].message.find("embeddings") != std::string::npos);
    CHECK(records[2].status == "complete");
}

TEST_CASE("a run that fails anywhere is recorded as failed and does not change the others") {
    const auto& model = tiny_model();
    const TemporaryFolder folder;
    for (const bool isolated : {false, true}) {
        auto options = options_of(10, true, isolated);
        options.ignore_eos = true;
        const std::string mode = isolated ? "i" : "s";
        const auto sound =
            run_experiment(folder, mode + "-sound.h5", model, prompts(model), plans_with("fault=none"), options);
        int number = 0;
        for (const auto& fault : faults()) {
            CAPTURE(isolated, fault.parameters);
            const std::string name = mode + std::to_string(number++) + ".h5";
            Session session(folder, name, model, prompts(model), plans_with(fault.parameters), options);
            session.experiment.run(session.prompts);
            session.writer.finish();
            const trace::Reader reader(folder.path() / name);
            CHECK(reader.complete());
            check_sound(folder.path() / name);
            REQUIRE(reader.n_runs(0) == sound.n_runs(0));
            int n_failed = 0;
            for (int run = 0; run < reader.n_runs(0); ++run) {
                n_failed += reader.run(0, run).status == trace::schema::run::status_failed;
                if (run == faulty_run)
                    check_failed(reader.run_record(0, run), fault, 10);
                else
                    check_same_run(reader.run_record(0, run), sound.run_record(0, run));
            }
        }
    }
}

TEST_CASE("a failed run counts as finished and is not repeated when the trace is resumed") {
    const auto& model = tiny_model();
    const TemporaryFolder folder;
    int number = 0;
    for (const char* fault : {"fault=step,after=3", "fault=stored-mass", "fault=nan", "fault=select"}) {
        for (const bool isolated : {false, true}) {
            CAPTURE(fault, isolated);
            const auto options = options_of(10, true, isolated);
            const auto plans = plans_with(fault);
            const auto path = folder.path() / (std::to_string(number++) + ".h5");
            const auto all = prompts(model);
            const std::string recipe = engine::recipe_json(model, all, plans, options);
            std::vector<int> written;
            {
                StopsBehind progress;
                trace::Writer writer(path, recipe);
                engine::Experiment experiment(model, plans, options, writer, progress);
                experiment.on_run = [&](int, int run, const trace::RunRecord&) {
                    written.push_back(run);
                    if (run == faulty_run) progress.stop.request_stop();
                };
                CHECK_THROWS_AS(experiment.run(all), Stopped);
            }
            CHECK(std::find(written.begin(), written.end(), faulty_run) != written.end());
            CHECK(written.size() < plans.size());
            engine::SilentProgress progress;
            trace::Writer writer(path, recipe);
            engine::Experiment experiment(model, plans, options, writer, progress);
            std::vector<int> again;
            experiment.on_run = [&](int, int run, const trace::RunRecord&) { again.push_back(run); };
            experiment.run(all);
            writer.finish();
            CHECK(written.size() + again.size() == plans.size());
            const trace::Reader reader(path);
            CHECK(reader.complete());
            for (int run = 0; run < reader.n_runs(0); ++run)
                CHECK((reader.run(0, run).status == "failed") == (run == faulty_run));
        }
    }
}

TEST_CASE("runs that fail at one question of a context answer the other questions") {
    engine::SilentProgress progress;
    const auto model =
        engine::Model::open(test_data("models/llama2-mha"), kernels::DType::f32, progress, engine::device_of_tests());
    const TemporaryFolder folder;
    // The first question has a token whose embedding is NaN.
    auto ids = some_ids(model, n_context + 45, 3);
    const int32_t poisoned = ids.back();
    std::replace(ids.begin(), ids.end() - 1, poisoned,
                 (poisoned + 1) % static_cast<int32_t>(model.transformer().config().vocab_size));
    std::vector<engine::Prompt> both{prompt_of_ids(ids, n_context)};
    ids.resize(n_context + 5);
    both.push_back(prompt_of_ids(ids, n_context));
    poison(model, poisoned);
    std::vector<engine::RunPlan> plans{plan("snapkv:window=8", "40")};
    for (const char* name : {"stores-channels", "merges-pairs", "drops-least-attended"})
        plans.push_back({policies::throwaway::spec(name), policies::parse_budget("40")});
    for (const bool isolated : {false, true}) {
        CAPTURE(isolated);
        const std::string name = isolated ? "i.h5" : "s.h5";
        auto options = options_of(8, true, isolated);
        options.ignore_eos = true;
        const auto reader = run_experiment(folder, name, model, both, plans, options);
        check_sound(folder.path() / name);
        for (int run = 0; run < reader.n_runs(0); ++run) {
            CAPTURE(run, reader.run(0, run).message, reader.run(1, run).message);
            CHECK(reader.run(0, run).status == "failed");
            CHECK(reader.run(0, run).message.find("NaN") != std::string::npos);
            CHECK(reader.kept(0, run)->indices == reader.kept(1, run)->indices);
            CHECK(reader.run(1, run).status == "complete");
        }
    }
}

// The token with the NaN embedding is in the answer of one run only, which alone reads it.
TEST_CASE("measures of one question are not recorded for the next one, where the run fails") {
    engine::SilentProgress progress;
    const auto model =
        engine::Model::open(test_data("models/llama2-mha"), kernels::DType::f32, progress, engine::device_of_tests());
    const TemporaryFolder folder;
    auto ids = some_ids(model, n_context + 45, 3);
    const int32_t poisoned = ids.back();
    std::replace(ids.begin(), ids.end() - 1, poisoned,
                 (poisoned + 1) % static_cast<int32_t>(model.transformer().config().vocab_size));
    std::vector<engine::Prompt> both{prompt_of_ids({ids.begin(), ids.begin() + n_context + 5}, n_context)};
    both.push_back(prompt_of_ids(ids, n_context));
    poison(model, poisoned);
    const auto plans =
        engine::with_full_run_first({plan("snapkv:window=8", "40"), plan("streaming-llm:rolling=on", "40")});
    for (const bool isolated : {false, true}) {
        CAPTURE(isolated);
        auto options = options_of(8, true, isolated);
        options.ignore_eos = true;
        engine::Experiment experiment(model, plans, options, progress);
        experiment.on_kept = [&](int, int, const trace::RunRecord& record) { CHECK(record.kl_attention_lost.empty()); };
        size_t n = 0;
        experiment.on_run = [&](int prompt, int run, const trace::RunRecord& record) {
            CAPTURE(prompt, run, record.message);
            CHECK((record.status == "failed") == (prompt == 1));
            // The kept entries of an evicting run are not known at each step.
            CHECK(record.kl_attention_lost.empty() == (prompt == 1 || run != 1));
            ++n;
        };
        experiment.run(both);
        CHECK(n == 6);
    }
}

TEST_CASE("if the full run fails, the other runs are recorded without comparisons") {
    engine::SilentProgress progress;
    const auto model =
        engine::Model::open(test_data("models/llama2-mha"), kernels::DType::f32, progress, engine::device_of_tests());
    REQUIRE(!model.checkpoint().config().tied_embeddings);
    const TemporaryFolder folder;
    auto ids = some_ids(model, 60);
    auto options = options_of(12);
    options.ignore_eos = true;
    const std::vector<engine::RunPlan> plans{plan("snapkv:window=8", "12"), plan("random", "10"),
                                             plan("streaming-llm", "12"), plan("oracle", "10")};
    std::vector<int32_t> full;
    int32_t poisoned = -1;
    // Searches for a prompt whose full answer has a token that two other answers lack.
    for (unsigned seed = 1; poisoned < 0 && seed < 40; ++seed) {
        ids = some_ids(model, 60, seed);
        const auto sound =
            run_experiment(folder, "sound" + std::to_string(seed) + ".h5", model, {prompt_of_ids(ids)}, plans, options);
        full = sound.run_record(0, 0).output_ids;
        const auto said_by_others = [&](int32_t id) {
            int n = 0;
            for (const int run : {1, 2, 3}) {
                const auto others = sound.run_record(0, run).output_ids;
                n += std::find(others.begin(), others.end(), id) != others.end();
            }
            return n + (std::find(ids.begin(), ids.end(), id) != ids.end() ? 9 : 0);
        };
        for (size_t t = 2; t + 2 < full.size() && poisoned < 0; ++t)
            if (said_by_others(full[t]) == 0) poisoned = full[t];
    }
    REQUIRE(poisoned >= 0);
    poison(model, poisoned);
    for (const bool isolated : {false, true}) {
        CAPTURE(isolated);
        options.isolated = isolated;
        const std::string name = isolated ? "i.h5" : "s.h5";
        const auto reader = run_experiment(folder, name, model, {prompt_of_ids(ids)}, plans, options);
        check_sound(folder.path() / name);
        CHECK(reader.run(0, 0).status == "failed");
        CHECK(reader.run(0, 0).message.find("NaN") != std::string::npos);
        const auto said = reader.run_record(0, 0).output_ids;
        CHECK(said.size() > 2);
        CHECK(std::equal(said.begin(), said.end(), full.begin()));
        for (const int run : {1, 2, 3}) {
            const auto record = reader.run_record(0, run);
            CAPTURE(record.label, record.message);
            CHECK(record.status == "complete");
            CHECK(record.output_ids.size() == 12);
            CHECK(record.step_kl.empty());
            CHECK(record.output_error.empty());
            CHECK(record.message.find("full cache") != std::string::npos);
        }
        CHECK(reader.run(0, 4).status == "failed");
        CHECK(reader.run(0, 4).message.find("full cache's answer") != std::string::npos);
    }
}

TEST_CASE("a sample is scored for runs that answer, and has the reasons of failed runs") {
    const auto& model = tiny_model();
    const TemporaryFolder folder;
    engine::SilentProgress progress;
    std::vector<engine::PreparedSample> samples;
    for (const auto& prompt : prompts(model))
        samples.push_back(
            {{.id = "a", .number = static_cast<int>(samples.size()), .answers = {"nothing of the kind"}}, prompt});
    auto options = options_of(6, false);
    options.record = false;
    for (const char* fault : {"fault=step,after=2", "fault=out-of-range", "fault=nan"}) {
        CAPTURE(fault);
        const auto plans = plans_with(fault);
        const auto path = folder.path() / (std::string(fault).substr(6, 4) + ".h5");
        trace::Writer writer(path, R"({"task": "niah"})");
        engine::evaluate_task(model, engine::task_named("niah"), samples, plans, options, writer, progress, nullptr);
        writer.finish();
        const auto rows = trace::Reader(path).results("niah");
        REQUIRE(rows.size() == plans.size());
        for (size_t run = 0; run < rows.size(); ++run) {
            CAPTURE(rows[run].status);
            CHECK((rows[run].status == "complete") == (run != faulty_run));
            if (run == faulty_run) CHECK(rows[run].status.starts_with("failed: "));
        }
    }
}

TEST_CASE("a further question that fails for one cache is answered by the others") {
    const auto& model = tiny_model();
    const TemporaryFolder folder;
    const auto prompt = engine::tokenize_prompt(model, context, first_question, {"p", false, false, n_new});
    auto options = options_of(n_new, false);
    options.keep_caches = true;
    const auto ask_all_runs = [&](const std::string& fault, const std::string& name) {
        Session session(folder, name, model, {prompt}, plans_with(fault), options);
        session.experiment.run(session.prompts);
        auto caches = session.experiment.take_caches();
        REQUIRE(caches.size() == plans_with(fault).size());
        std::vector<engine::Conversation*> asked;
        for (const auto& cache : caches) {
            REQUIRE(cache);
            asked.push_back(cache.get());
        }
        auto replies = engine::ask_all_runs(model, asked, second_question + " " + context,
                                            {.n_new = n_new, .sampling = {}}, session.progress);
        if (!replies[faulty_run].error.empty()) {
            engine::SilentProgress progress;
            CHECK_THROWS_AS(ask_one_run(*caches[faulty_run], model, second_question + " " + context,
                                        {.n_new = n_new, .sampling = {}}, progress),
                            engine::RunError);
        }
        return replies;
    };
    const auto sound = ask_all_runs("fault=none", "sound.h5");
    // After the first question's answer.
    {
        const auto replies = ask_all_runs("fault=step-later,after=1", "later.h5");
        for (size_t run = 0; run < replies.size(); ++run) {
            CAPTURE(run, replies[run].error);
            CHECK(replies[run].error.empty() == (run != faulty_run));
            CHECK(!replies[run].refused);
            if (run != faulty_run) CHECK(replies[run].ids == sound[run].ids);
        }
    }
}

TEST_CASE("a run whose answer failed leaves no cache for further questions") {
    const auto& model = tiny_model();
    const TemporaryFolder folder;
    auto options = options_of(8);
    options.keep_caches = true;
    Session session(folder, "t.h5", model, prompts(model), plans_with("fault=step,after=2"), options);
    session.experiment.run(session.prompts);
    const auto caches = session.experiment.take_caches();
    for (size_t run = 0; run < caches.size(); ++run) CHECK((caches[run] == nullptr) == (run == faulty_run));
}

TEST_CASE("an invalid what-if is an error that names policy, layer and row") {
    const auto& model = tiny_model();
    const TemporaryFolder folder;
    auto options = options_of(2, false);
    options.keep_prefill = true;
    Session session(folder, "t.h5", model, prompts(model), {plan("full", "100%")}, options);
    session.experiment.run(session.prompts);
    const auto live = session.experiment.take_prefill();
    policies::RunContext context;
    context.shape = model.transformer().shape();
    context.n_tokens = n_context;
    context.budget = 40;
    for (const char* fault : {"out-of-range", "far-out-of-range", "unsorted", "twice"}) {
        const auto spec = faulty("fault=" + std::string(fault));
        const std::vector<policies::LayerScores> scores(static_cast<size_t>(context.shape.n_layers));
        const auto check = [&](const auto& decide) {
            try {
                decide();
                FAIL_CHECK("nothing was thrown");
            } catch (const policies::SelectionError& error) {
                const std::string message = error.what();
                CAPTURE(message);
                for (const char* named : {"faulty", "layer 0", "row 1"})
                    CHECK(message.find(named) != std::string::npos);
            }
        };
        check([&] { live->select(spec, 40, 0); });
        check([&] { policies::reselect(*spec.definition, spec.values, context, scores); });
    }
}
