// Traces are read as written, from finished files and from folders.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <thread>
#include <type_traits>

#include "tests/trace/sample_trace.h"
#include "tests/trace/whole_records.h"
#include "trace/checks/check_trace.h"
#include "trace/reader.h"
#include "trace/records/record_fields.h"
#include "trace/tree.h"

using namespace kvscope::trace;

namespace {

// Compares bits, so that NaN equals NaN.
template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
    if constexpr (std::is_arithmetic_v<T>) {
        return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
    } else {
        return a == b;
    }
}

// Compares the members of both records, in the order of the lists in record_fields.h.
template <class Walk, class Record>
void require_same(Walk walk, const Record& a, const Record& b) {
    std::vector<const void*> members;
    walk(a, [&](const auto&, const auto& value) { members.push_back(&value); });
    std::size_t i = 0;
    walk(b, [&](const auto& name, const auto& value) {
        using Value = std::remove_cvref_t<decltype(value)>;
        const auto& other = *static_cast<const Value*>(members[i++]);
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(name)>, schema::DataSet>) {
            INFO(name.path);
            CHECK(same_bits(other, value));
        } else {
            INFO(name);
            CHECK(other == value);
        }
    });
}

void require_same(const ModelRecord& a, const ModelRecord& b) {
    require_same([](const auto& r, auto visit) { for_each_model_attribute(r, visit); }, a, b);
    require_same([](const auto& r, auto visit) { for_each_model_data_set(r, visit); }, a, b);
}
void require_same(const PromptRecord& a, const PromptRecord& b) {
    require_same([](const auto& r, auto visit) { for_each_prompt_attribute(r, visit); }, a, b);
    require_same([](const auto& r, auto visit) { for_each_prompt_data_set(r, visit); }, a, b);
    CHECK(a.window == b.window);
}
void require_same(const RunRecord& a, const RunRecord& b) {
    require_same([](const auto& r, auto visit) { for_each_run_attribute(r, visit); }, a, b);
    require_same([](const auto& r, auto visit) { for_each_run_data_set(r, visit); }, a, b);
}

void require_sample(const Reader& reader, const sample::Options& options) {
    require_same(sample::model(options), model_record(reader));
    REQUIRE(reader.n_prompts() == options.n_questions);
    for (int i = 0; i < reader.n_prompts(); ++i) {
        const PromptRecord prompt = sample::prompt(options, i);
        require_same(prompt, prompt_record(reader, i));
        const auto runs = sample::runs(options, prompt);
        REQUIRE(reader.n_runs(i) == static_cast<int>(runs.size()));
        for (int j = 0; j < reader.n_runs(i); ++j) {
            INFO("prompt " << i << ", run " << j);
            require_same(runs[static_cast<std::size_t>(j)], reader.run_record(i, j));
        }
    }
}

std::string describe(const std::vector<Problem>& problems) {
    std::string out;
    for (const auto& p : problems) out += p.path + ": expected " + p.expected + ", found " + p.found + "\n";
    return out;
}

}  // namespace

TEST_CASE("a finished trace contains the written data", "[trace]") {
    const sample::TemporaryFolder folder;
    sample::Options options;
    options.n_questions = GENERATE(1, 3);
    sample::write_anew(folder / "t.h5", options);
    CHECK_FALSE(std::filesystem::exists(folder / "t.h5.part"));

    const Reader reader(folder / "t.h5");
    CHECK(reader.complete());
    CHECK(reader.version() == "1.2");
    CHECK(reader.generator() == "sample");
    CHECK(reader.recipe_json() == sample::recipe);
    CHECK(reader.created_utc().size() == 20);
    require_sample(reader, options);
    const auto problems = find_problems(folder / "t.h5");
    INFO(describe(problems));
    CHECK(problems.empty());
}

TEST_CASE("an unfinished trace reads like a finished one", "[trace]") {
    const sample::TemporaryFolder folder;
    sample::Options options;
    options.n_questions = GENERATE(1, 3);
    Writer writer(folder / "t.h5", sample::recipe);
    sample::write_parts(writer, options);

    // By the folder's name, and by that of the output, which does not exist yet.
    for (const char* name : {"t.h5.part", "t.h5"}) {
        const Reader reader(folder / name);
        CHECK_FALSE(reader.complete());
        require_sample(reader, options);
    }
    const auto problems = find_problems(folder / "t.h5.part");
    INFO(describe(problems));
    REQUIRE(problems.size() == 1);
    CHECK(problems[0].severity == Problem::Severity::warning);
}

TEST_CASE("an unfinished trace may lack anything", "[trace]") {
    const sample::TemporaryFolder folder;
    const sample::Options options;
    Writer writer(folder / "t.h5", sample::recipe);
    CHECK_FALSE(Reader(folder / "t.h5").has_model());
    CHECK_THROWS_AS(Reader(folder / "t.h5").model(), DamagedTrace);
    CHECK_NOTHROW(find_problems(folder / "t.h5"));

    writer.write_model(sample::model(options));
    const PromptRecord prompt = sample::prompt(options);
    writer.write_prompt(0, prompt);
    const auto runs = sample::runs(options, prompt);
    writer.write_run(0, 2, runs[2]);
    writer.write_run(0, 0, runs[0]);
    const Reader reader(folder / "t.h5");
    REQUIRE(reader.n_runs(0) == 2);
    CHECK(reader.run_number(0, 1) == 2);
    CHECK(reader.run(0, 1).label == "snapkv 24");
    CHECK(reader.full_run(0) == 0);
    CHECK_THROWS_AS(writer.finish(), std::invalid_argument);
}

TEST_CASE("parts of data sets", "[trace]") {
    const sample::TemporaryFolder folder;
    const sample::Options options;
    sample::write_anew(folder / "t.h5", options);
    const Reader reader(folder / "t.h5");
    const PromptRecord prompt = sample::prompt(options);
    const auto runs = sample::runs(options, prompt);
    const auto heads = static_cast<std::size_t>(options.n_heads);
    const auto n = static_cast<std::size_t>(options.n_tokens);

    for (std::size_t layer = 0; layer < 3; ++layer) {
        const auto begin = prompt.window_attention.begin() + static_cast<std::ptrdiff_t>(layer * heads * n);
        CHECK(reader.window_attention(0, layer) ==
              std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(heads * n)));
    }
    CHECK_THROWS_AS(reader.window_attention(0, 3), std::out_of_range);

    const Place place = Place::of_prompt(0);
    const auto block = reader.read<float>(place, schema::prompt::window_attention, Block{{1, 2, 10}, {2, 1, 3}});
    REQUIRE(block.size() == 6);
    CHECK(block[4] == prompt.window_attention[(2 * heads + 2) * n + 11]);
    CHECK_THROWS_AS(reader.read<float>(place, schema::prompt::window_attention, Block{{1, 2, 46}, {1, 1, 3}}),
                    std::out_of_range);
    CHECK(reader.shape(place, schema::prompt::window_attention) == std::vector<std::size_t>{3, heads, n});

    // f64 and f32 scores alike
    const auto scores = reader.scores(0, 3, 1);
    REQUIRE(scores.size() == 2 * n);
    CHECK(scores[5] == runs[3].scores_f64[2 * n + 5]);
    CHECK(reader.scores(0, 1, 1)[5] == static_cast<double>(runs[1].scores[2 * n + 5]));
    CHECK(reader.scores(0, 0, 1).empty());

    const auto kept = reader.kept(0, 1);
    CHECK(kept == reader.kept(0, 1));
    CHECK(kept->count(2, 1) == 16);
    const auto row = kept->row(2, 1);
    CHECK(std::equal(row.begin(), row.end(), runs[1].kept_indices.end() - 16));

    CHECK_THROWS_AS(reader.prompt(1), std::out_of_range);
    CHECK_THROWS_AS(reader.run(0, 7), std::out_of_range);
    CHECK_THROWS_AS(reader.kept(0, 6), DamagedTrace);  // that run failed
}

TEST_CASE("questions of one context store it once", "[trace]") {
    const sample::TemporaryFolder folder;
    sample::Options options;
    options.n_questions = 3;
    sample::write_anew(folder / "t.h5", options);
    std::size_t links = 0;
    for (const TreeNode& node : tree(folder / "t.h5")) {
        if (node.link_to.empty()) continue;
        ++links;
        CHECK(node.link_to.starts_with("/prompts/0/"));
        CHECK(node.path.find("last_logits") == std::string::npos);
    }
    // For each of two further prompts: 16 data sets of full; kept_* of 6 runs and scores of 3.
    CHECK(links == 2 * (16 + 6 * 2 + 3));
    CHECK(Reader(folder / "t.h5").prompt(2).context_of == 0);
}

TEST_CASE("text of any length and any bytes", "[trace]") {
    const sample::TemporaryFolder folder;
    const sample::Options options;
    PromptRecord prompt = sample::prompt(options);
    prompt.text.assign(3'000'000, 'x');  // far above an attribute's limit of 64 KiB
    prompt.question = "\u4f60\u597d \U0001F600";
    prompt.chat_template = "";
    prompt.token_text[0] = std::string("a\0b", 3);
    prompt.token_text[1] = "\xe2\x82";  // an incomplete character
    prompt.token_text[2] = "";
    {
        Writer writer(folder / "t.h5", sample::recipe);
        writer.write_model(sample::model(options));
        writer.write_prompt(0, prompt);
        writer.write_run(0, 0, sample::full_run(options, prompt));
        writer.finish();
    }
    const Reader reader(folder / "t.h5");
    CHECK(reader.prompt(0).text == prompt.text);
    CHECK(reader.prompt(0).question == prompt.question);
    CHECK(reader.prompt(0).chat_template.empty());
    const auto pieces = reader.token_text(0);
    CHECK(pieces[0] == "a\u2400b");
    CHECK(pieces[1] == "\uFFFD\uFFFD");
    CHECK(pieces[2].empty());
    CHECK(pieces[3] == prompt.token_text[3]);
}

TEST_CASE("a trace with only a task's results is valid", "[trace]") {
    const sample::TemporaryFolder folder;
    for (const bool has_results : {true, false}) {
        const auto path = folder / (has_results ? "results.h5" : "nothing.h5");
        Writer writer(path, sample::recipe);
        writer.write_model(sample::model());
        if (has_results) writer.write_results("niah", 0, sample::results());
        writer.finish();
        const auto problems = find_problems(path);
        const bool has_errors = std::any_of(problems.begin(), problems.end(), [](const Problem& problem) {
            return problem.severity == Problem::Severity::error;
        });
        CHECK(has_errors != has_results);
    }
}

TEST_CASE("a trace with only the model is valid if its recipe says so", "[trace]") {
    const sample::TemporaryFolder folder;
    for (const char* recipe : {R"({"spectra": true})", R"({"spectra": true, "prompts": []})", R"({})", "[]"}) {
        const auto path = folder / "model.h5";
        Writer writer(path, recipe, {.force = true});
        writer.write_model(sample::model());
        writer.finish();
        CAPTURE(recipe);
        CHECK(find_problems(path).empty() == (std::string(recipe) == R"({"spectra": true})"));
    }
}

TEST_CASE("a trace that is rewritten through a link replaces the link's target", "[trace]") {
    const sample::TemporaryFolder folder;
    std::filesystem::create_directory(folder / "store");
    sample::write_anew(folder / "store/real.h5");
    std::filesystem::create_symlink("store/real.h5", folder / "link.h5");
    {
        Writer writer(folder / "link.h5", R"({"spectra": true})", {.force = true});
        writer.write_model(sample::model());
        writer.finish();
    }
    CHECK(std::filesystem::is_symlink(folder / "link.h5"));
    CHECK(Reader(folder / "store/real.h5").n_prompts() == 0);
    CHECK(find_problems(folder / "link.h5").empty());
    CHECK(std::distance(std::filesystem::directory_iterator(folder / "store"), {}) == 1);
    CHECK(!std::filesystem::exists(folder / "link.h5.part"));
}

TEST_CASE("results are joined in the order of their batches", "[trace]") {
    const sample::TemporaryFolder folder;
    Writer writer(folder / "t.h5", sample::recipe);
    sample::write_parts(writer);
    const auto row = [](int i) {
        ResultRow r;
        r.sample_id = "sample " + std::to_string(i);
        r.policy = "snapkv";
        r.budget = i;
        r.depth = std::nan("");
        r.answers_json = "[\"\u00e9\"]";
        r.score = 0.5 * i;
        return r;
    };
    writer.write_results("niah", 1, {row(2)});
    writer.write_results("niah", 0, {row(0), row(1)});
    writer.write_results("empty", 0, {});
    CHECK(writer.has_results("niah", 1));
    CHECK_FALSE(writer.has_results("niah", 2));
    CHECK_THROWS_AS(writer.write_results("a/b", 0, {}), std::invalid_argument);
    const auto require_rows = [&] {
        const Reader reader(folder / "t.h5");
        CHECK(reader.result_tasks() == std::vector<std::string>{"empty", "niah"});
        const auto rows = reader.results("niah");
        REQUIRE(rows.size() == 3);
        CHECK(rows[2].sample_id == "sample 2");
        CHECK(rows[1].budget == 1);
        CHECK(std::isnan(rows[0].depth));
        CHECK(rows[0].answers_json == "[\"\u00e9\"]");
        CHECK(rows[2].score == 1.0);
        CHECK(reader.results("empty").empty());
        CHECK_THROWS_AS(reader.results("ruler"), std::out_of_range);
    };
    require_rows();
    writer.finish();
    require_rows();
    CHECK(find_problems(folder / "t.h5").empty());
}

TEST_CASE("a large data set is chunked by layers", "[trace]") {
    const sample::TemporaryFolder folder;
    sample::Options options;
    options.n_layers = 2;
    options.n_tokens = 100'000;
    const PromptRecord prompt = sample::prompt(options);
    Writer writer(folder / "t.h5", sample::recipe);
    writer.write_model(sample::model(options));
    writer.write_prompt(0, prompt);
    const Reader reader(folder / "t.h5");
    const std::size_t half = prompt.window_attention.size() / 2;
    const auto layer = reader.window_attention(0, 1);
    REQUIRE(layer.size() == half);
    CHECK(std::equal(layer.begin(), layer.end(), prompt.window_attention.begin() + static_cast<std::ptrdiff_t>(half)));
    CHECK(reader.token_text(0) == prompt.token_text);
}

TEST_CASE("one reader serves several threads", "[trace]") {
    const sample::TemporaryFolder folder;
    sample::Options options;
    options.n_questions = 2;
    Writer writer(folder / "t.h5", sample::recipe);
    sample::write_parts(writer, options);
    const Reader reader(folder / "t.h5");
    std::vector<std::thread> threads;
    std::vector<int> wrong(4, 0);
    for (int& count : wrong) {
        threads.emplace_back([&] {
            for (int repeat = 0; repeat < 10; ++repeat) {
                for (int i = 0; i < 2; ++i) {
                    for (int j = 0; j < 6; ++j) {
                        if (reader.kept(i, j)->indices.empty()) ++count;
                        if (reader.window_attention(i, 2).size() != 4U * 48U) ++count;
                    }
                }
            }
        });
    }
    for (auto& thread : threads) thread.join();
    CHECK(wrong == std::vector<int>(4, 0));
}

TEST_CASE("records that break the format are rejected before anything is written", "[trace]") {
    const sample::TemporaryFolder folder;
    const sample::Options options;
    Writer writer(folder / "t.h5", sample::recipe);
    const PromptRecord prompt = sample::prompt(options);
    CHECK_THROWS_AS(writer.write_prompt(0, prompt), std::invalid_argument);  // no model yet
    writer.write_model(sample::model(options));
    CHECK_THROWS_AS(writer.write_run(0, 0, sample::full_run(options, prompt)), std::invalid_argument);

    SECTION("a prompt's shapes") {
        PromptRecord bad = prompt;
        SECTION("token_ids") { bad.token_ids.pop_back(); }
        SECTION("token_text") { bad.token_text.pop_back(); }
        SECTION("window_attention") { bad.window_attention.pop_back(); }
        SECTION("query_similarity") { bad.window = 7; }
        SECTION("head_jsd") { bad.head_jsd.push_back(0); }
        SECTION("no tokens") { bad.n_tokens = 0; }
        SECTION("n_context") { bad.n_context = bad.n_tokens + 1; }
        SECTION("context_of itself") { bad.context_of = 0; }
        CHECK_THROWS_AS(writer.write_prompt(0, bad), std::invalid_argument);
        CHECK_FALSE(writer.has_prompt(0));
    }
    SECTION("a run's contents") {
        writer.write_prompt(0, prompt);
        RunRecord bad = sample::selecting_run(options, prompt, "snapkv", 16);
        SECTION("kept_offsets too short") { bad.kept_offsets.pop_back(); }
        SECTION("kept_offsets falling") { bad.kept_offsets[1] = bad.kept_offsets[2] + 1; }
        SECTION("kept_indices beyond N") { bad.kept_indices[15] = 48; }
        SECTION("kept_indices descending") { std::swap(bad.kept_indices[3], bad.kept_indices[4]); }
        SECTION("no kept entries") {
            bad.kept_offsets.clear();
            bad.kept_indices.clear();
        }
        SECTION("scores") { bad.scores.pop_back(); }
        SECTION("both kinds of scores") { bad.scores_f64.assign(bad.scores.begin(), bad.scores.end()); }
        SECTION("granularity") { bad.granularity = "query_head"; }
        SECTION("unknown granularity") { bad.granularity = "token"; }
        SECTION("status") { bad.status = "done"; }
        SECTION("mode") { bad.mode = ""; }
        SECTION("steps") { bad.step_kl.pop_back(); }
        SECTION("cache_bytes") { bad.cache_bytes.pop_back(); }
        CHECK_THROWS_AS(writer.write_run(0, 0, bad), std::invalid_argument);
        CHECK_FALSE(writer.has_run(0, 0));
        CHECK_FALSE(std::filesystem::exists(folder.path() / "t.h5.part" / "run-0-0.h5.tmp"));
    }
    CHECK_THROWS_AS(Writer(folder / "u.h5", "{"), std::invalid_argument);
}
