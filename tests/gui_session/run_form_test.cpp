#include "app/gui/view_data/run_form.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <fstream>
#include <limits>

#include "app/gui/session/session.h"
#include "app/gui/view_data/runs_refused_by_policies.h"
#include "common/json.h"
#include "engine/tasks/api/task.h"
#include "tests/run_options.h"
#include "tests/trace/sample_trace.h"

namespace kvscope::gui {
namespace {

using engine::RunOption;

namespace fs = std::filesystem;

RunForm filled_form() {
    RunForm form;
    form.request.context = "A text of some words.";
    return form;
}

void write_file(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

std::string refusal(const fs::path& path) {
    RunForm form = filled_form();
    try {
        form.read_prompt(path);
    } catch (const PromptFileError& error) {
        CHECK(form.request.context == filled_form().request.context);
        return error.what();
    }
    return "";
}

/// Returns a form in which only these policies are ticked.
RunForm form_of(const std::vector<std::string>& policies, const std::string& budgets) {
    RunForm form = filled_form();
    form.rows.clear();
    for (const auto& policy : policies)
        form.rows.push_back({static_cast<int>(form.rows.size()), true, policies::parse_policy(policy)});
    form.request.budgets = budgets;
    return form;
}

/// Returns a count of 2,000 tokens for a model with two layers.
TokenCount counted() {
    TokenCount tokens{2000, 2000, 8192, ""};
    tokens.shape = policies::ModelShape{2, 4, 2, 64};
    tokens.model_fingerprint = "a model";
    tokens.token_bytes = 2048;
    return tokens;
}

std::vector<std::string> texts(const RunForm& form, BudgetNote::Kind kind) {
    std::vector<std::string> texts;
    for (const BudgetNote& note : budget_notes(form, counted(), find_refused_runs(form, counted())))
        if (note.kind == kind) texts.push_back(note.text);
    return texts;
}

}  // namespace

TEST_CASE("a budget not above a policy's window is refused, with the smallest budget it accepts") {
    const RunForm form = form_of({"snapkv:window=40", "h2o:recent=100", "streaming-llm"}, "40,256");
    const RefusedRuns check = find_refused_runs(form, counted());
    REQUIRE(check.rows[0].refused.size() == 1);
    CHECK(check.rows[0].refused[0].budget == "40");
    CHECK(check.rows[0].refused[0].least == 41);
    CHECK_THAT(check.rows[0].reasons(), Catch::Contains("not above the window of 40"));
    CHECK(check.rows[0].brief() == "not at 40: the policy needs at least 41 entries");
    CHECK(check.rows[1].refused.at(0).least == 101);
    CHECK(check.rows[2].refused.empty());
    CHECK(check.n_refused() == 2);
    CHECK(check.problem().empty());
    CHECK(texts(form, BudgetNote::Kind::error) ==
          std::vector<std::string>{"40 is too small for SnapKV (window=40), which needs at least 41 entries",
                                   "40 is too small for H2O (recent=100), which needs at least 101 entries"});
}

TEST_CASE("a run is refused only if no ticked policy can run at any budget") {
    RunForm form = form_of({"snapkv:window=40", "h2o:recent=40", "streaming-llm"}, "8,40");
    form.rows[2].ticked = false;
    const RefusedRuns check = find_refused_runs(form, counted());
    CHECK_FALSE(check.rows[0].can_run());
    CHECK(check.rows[2].can_run());
    CHECK(check.problem() ==
          "None of the 2 policies can run. SnapKV (window=40): not at any of the budgets: the policy needs at least 41 "
          "entries");
    form.rows[2].ticked = true;
    CHECK(find_refused_runs(form, counted()).problem().empty());
    CHECK(texts(form, BudgetNote::Kind::error)[0] ==
          "8 is too small for SnapKV (window=40) and H2O (recent=40), which need at least 41 entries");
}

TEST_CASE("a policy cannot run if its file is not set, does not exist or is invalid") {
    const trace::sample::TemporaryFolder folder;
    write_file(folder / "scores.json", "[]");
    const std::string missing = folder / "nothing.json", wrong = folder / "scores.json";
    const RefusedRuns check = find_refused_runs(
        form_of({"headkv", "headkv:importance=" + missing, "headkv:importance=" + wrong, "echokv:maps=" + wrong},
                "64,256"),
        counted());
    for (const RefusedRuns::Row& row : check.rows) {
        CAPTURE(row.policy, row.reasons());
        CHECK_FALSE(row.can_run());
        CHECK(row.refused.size() == 1);
        CHECK(row.refused[0].budget.empty());
        CHECK(row.reasons().find(" -") == std::string::npos);
    }
    CHECK_THAT(check.rows[0].brief(), Catch::StartsWith("The policy needs a file: set importance."));
    CHECK(check.rows[1].brief() == "importance: there is no file " + missing);
    CHECK_THAT(check.rows[2].brief(), Catch::Contains("expected a JSON object"));
    CHECK_THAT(check.rows[2].brief(), Catch::Contains("Create one with `kvscope profile-heads`"));
}

TEST_CASE("the stamp changes when a policy's file is added, changed or removed") {
    const trace::sample::TemporaryFolder folder;
    const fs::path file = folder / "scores.json";
    const RunForm form = form_of({"headkv:importance=" + file.string()}, "64");
    const std::string before = stamp_of_refused_runs(form, counted());
    CHECK(stamp_of_refused_runs(form, counted()) == before);
    write_file(file, "[]");
    const std::string there = stamp_of_refused_runs(form, counted());
    CHECK(there != before);
    fs::last_write_time(file, fs::last_write_time(file) + std::chrono::hours(1));
    CHECK(stamp_of_refused_runs(form, counted()) != there);
    CHECK(stamp_of_refused_runs(form_of({"headkv:importance=" + file.string()}, "65"), counted()) != there);
}

TEST_CASE("policies whose parameters contradict each other or the model cannot run at any budget") {
    const RefusedRuns check = find_refused_runs(
        form_of({"dapq:content=first-last,first=3,last=3", "gemfilter:layer=40"}, "64,256"), counted());
    for (const RefusedRuns::Row& row : check.rows) {
        CAPTURE(row.policy);
        CHECK_FALSE(row.can_run());
        CHECK(row.refused.size() == 1);
    }
    CHECK_THAT(check.rows[0].brief(), Catch::Contains("first=3 and last=3"));
    CHECK_THAT(check.rows[1].brief(), Catch::Contains("layer 40 does not exist. The model has layers 0 to 1"));
}

TEST_CASE("budgets that drop nothing cause a warning") {
    const RunForm form = form_of({"snapkv"}, "256,2000,4096");
    CHECK(texts(form, BudgetNote::Kind::warning) ==
          std::vector<std::string>{"2,000 covers all 2,000 tokens of the prompt, so nothing is dropped",
                                   "4,096 is more than the prompt's 2,000 tokens, so nothing is dropped"});
    CHECK(texts(form_of({"palu"}, "4096"), BudgetNote::Kind::warning).empty());
}

TEST_CASE("a budget of bytes is shown as a share and as bytes per token, and refused if too small") {
    const RunForm form = form_of({"think", "palu:whitening=prompt"}, "1000,0.01");
    const auto facts = texts(form, BudgetNote::Kind::fact);
    REQUIRE(facts.size() == 1);
    CHECK_THAT(facts[0],
               Catch::StartsWith(
                   "ThinK and Palu (whitening=prompt) keep every token; for them a budget is a share of the full "
                   "cache's bytes. 1,000: 50 % ("));
    CHECK_THAT(
        facts[0],
        Catch::Contains(" per token), 53.2 % including what Palu (whitening=prompt) stores in addition; 1 %: 1 % ("));
    const RefusedRuns check = find_refused_runs(form, counted());
    CHECK(check.rows[0].n_refused >= 1);
    CHECK_FALSE(check.rows[0].refused.back().least);
    CHECK_THAT(check.rows[0].reasons(), Catch::Contains("is too small"));
    CHECK_THAT(texts(form_of({"palu:rank_share=0.5"}, "64"), BudgetNote::Kind::fact).at(0),
               Catch::StartsWith("Palu (rank_share=0.5) keeps every token in 50 % ("));
}

TEST_CASE("a share of less than one entry is refused, with the smallest budget that the policy accepts") {
    const RefusedRuns check = find_refused_runs(form_of({"random", "snapkv:window=40"}, "0.0001"), counted());
    CHECK(check.rows[0].refused.at(0).least == 1);
    CHECK(check.rows[1].refused.at(0).least == 41);
}

TEST_CASE("before tokens are counted, only runs that fail with any prompt are refused") {
    const RefusedRuns check =
        find_refused_runs(form_of({"snapkv:window=64", "k-vec:window=64", "palu", "snapkv"}, "64,0.0001"), {});
    CHECK(check.rows[0].refused.at(0).least == 65);
    CHECK(check.rows[0].n_refused == 1);
    CHECK(check.rows[1].n_refused == 1);
    CHECK(check.rows[2].n_refused == 0);
    CHECK(texts(form_of({"snapkv:window=8"}, "64"), BudgetNote::Kind::warning).empty());
}

TEST_CASE("every policy that needs no file can run with its default parameters") {
    RunForm form = filled_form();
    form.request.budgets = "256,1999";
    for (const RefusedRuns::Row& row : find_refused_runs(form, counted()).rows) {
        CAPTURE(row.policy, row.reasons());
        const auto& spec = form.rows[static_cast<size_t>(row.id) - static_cast<size_t>(form.rows[0].id)].spec;
        CHECK((row.n_refused > 0) == (spec.definition->needs_file || spec.definition->name == "minicache" ||
                                      spec.definition->name == "think"));
    }
}

TEST_CASE("the message on a text that does not fit the context has numbers and says what to do") {
    RunForm form = form_of({"snapkv"}, "64");
    form.request.options.n_new = 64;
    CHECK(form.problem(TokenCount{2431, 2431, 2048, ""}).text ==
          "2,431 tokens and 64 new ones do not fit into the context of 2,048 tokens: shorten the text by 447 tokens");
    CHECK(form.problem(TokenCount{2000, 2000, 2048, ""}).text ==
          "2,000 tokens and 64 new ones do not fit into the context of 2,048 tokens: shorten the text by 16 tokens, or "
          "generate at "
          "most 48");
    form.request.options.n_new = 5000;
    CHECK(form.problem(TokenCount{2000, 2000, 2048, ""}).text ==
          "2,000 tokens and 5,000 new ones do not fit into the context of 2,048 tokens: generate at most 48");
    CHECK(form.length_problem({}).empty());
}

TEST_CASE("problems of options have the same words as in kvscope run") {
    RunForm form = filled_form();
    REQUIRE(form.problem({}).text.empty());
    const auto check = [&](auto option, const char* words) {
        CHECK(form.problem_with(option) == words);
        CHECK(form.problem({}).text == words);
        form.request.options = {};
        form.request.options.n_new = 4;
        CHECK(form.problem({}).text.empty());
    };
    form.request.options.temperature = -0.1;
    check(&RunOptions::temperature, "the temperature must be 0 (greedy) or more");
    form.request.options.temperature = std::numeric_limits<double>::quiet_NaN();
    check(&RunOptions::temperature, "the temperature must be 0 (greedy) or more");
    for (const double wrong : {0.0, 1.5}) {
        form.request.options.top_p = wrong;
        check(&RunOptions::top_p, "top-p must be above 0 and at most 1");
    }
    form.request.options.window = 0;
    check(&RunOptions::window, "the recorded window must be at least 1");
    form.request.options.dtype = "int4";
    check(&RunOptions::dtype, "unknown type 'int4': expected bf16, f32 or auto");
    form.request.options.n_new = 0;
    check(&RunOptions::n_new, "the number of tokens to generate must be at least 1");

    const trace::sample::TemporaryFolder folder;
    form.request.output = folder / "nowhere/run.h5";
    CHECK(form.problem({}).text.find("does not exist") != std::string::npos);
    form.request.output = folder.path();
    CHECK(form.problem({}).text.find("is a folder") != std::string::npos);
    form.request.output = folder / "run.h5";
    CHECK(form.problem({}).text.empty());
    CHECK(form.output_note() == "run.h5 is a new file");
    write_file(folder / "run.h5", "x");
    CHECK(form.output_note().find("missing runs are added, and existing runs stay") != std::string::npos);
    CHECK(form.output_note().find("refused") != std::string::npos);
    form.request.force = true;
    CHECK(form.output_note().find("replaced") != std::string::npos);
    form.request.output.clear();
    CHECK(!form.filled_in().force);
}

TEST_CASE("a deleted working directory is reported and does not cause errors") {
    const fs::path before = fs::current_path();
    const trace::sample::TemporaryFolder folder;
    trace::sample::write(folder / "t.h5");
    fs::create_directory(folder / "gone");
    fs::current_path(folder / "gone");
    fs::remove(folder / "gone");
    const RunForm form = filled_form();
    CHECK_NOTHROW(form.output_note());
    CHECK(form.output_note().find("no longer exists") != std::string::npos);
    CHECK_NOTHROW(form.command("model.gguf"));
    Tasks tasks{[] {}};
    Session session{tasks};
    CHECK_NOTHROW(session.open(folder / "t.h5"));
    fs::current_path(before);
}

TEST_CASE("every field of the form is saved, and states of earlier versions with one question load") {
    RunForm form = filled_form();
    form.request.name = "notes";
    form.prompt_file = "/somewhere/notes.md";
    form.request.questions = {"Who?", "", "When,\nand where?"};
    form.request.options = {0.7, 0.9, 18446744073709551615u, 5, "f32", "cuda:1", true, true, 64, true};
    form.request.options.query_aware = false;
    form.request.options.use_template = false;
    form.request.options.parse_special = false;
    form.request.options.n_new = 7;
    form.request.spectra = false;
    form.request.output = "run.h5";
    RunForm again;
    again.from_json(nlohmann::json::parse(form.to_json().dump()));
    CHECK(again.filled_in() == form.filled_in());
    CHECK(again.prompt_file == form.prompt_file);
    CHECK(again.filled_in().questions == std::vector<std::string>{"Who?", "When,\nand where?"});
    CHECK(changed_options_text(again.request.options) ==
          "temperature 0.7, top-p 0.9, sampling seed 18446744073709551615, policies' seed 5, f32, device cuda:1, "
          "isolated, "
          "ignore end of text, window 64, gradient alignment");
    CHECK(changed_options_text({}).empty());

    auto old = filled_form().to_json();
    for (const char* added : {"questions", "file", "temperature", "top_p", "sampling_seed", "seed", "dtype", "device",
                              "isolated", "ignore_eos", "window", "alignment"})
        REQUIRE(old.erase(added) == 1);
    old["question"] = "Who?";
    RunForm from_old;
    from_old.from_json(old);
    CHECK(from_old.request.questions == std::vector<std::string>{"Who?"});
    CHECK(from_old.request.options == RunOptions());
    CHECK(from_old.request.context == filled_form().request.context);
}

TEST_CASE("each declared option is saved with the form, listed if changed, and part of the command") {
    for (const RunOption& option : engine::run_options()) {
        CAPTURE(option.key);
        RunForm form = filled_form();
        form.request.options = engine::testing::with_another_value(option);
        const std::string changes = changed_options_text(form.request.options);
        const auto state = form.to_json();
        CHECK(state.contains(option.key) == (option.in_form != RunOption::InForm::no));
        CHECK(changes.empty() == (option.in_form != RunOption::InForm::row));
        RunForm again;
        again.from_json(state);
        if (option.in_form != RunOption::InForm::no) CHECK(again.request.options == form.request.options);
        reset_seldom_changed_options(form.request.options);
        CHECK((form.request.options == RunOptions()) == (option.in_form == RunOption::InForm::row));
        if (option.in_form == RunOption::InForm::no) continue;
        const auto& [flag, value] = engine::testing::words_of(option, again.request.options);
        CHECK_THAT(again.command({}), Catch::Contains(" " + flag + (value.empty() ? "" : " " + value)));
        CHECK(option.always_named == (RunForm().command({}).find(" " + flag + " ") != std::string::npos));
        CHECK(option.problem(again.request.options).empty());
    }
}

TEST_CASE("invalid members of a saved form are ignored") {
    RunForm form = filled_form();
    form.from_json({{"temperature", "hot"},
                    {"top_p", 0.5},
                    {"window", 5'000'000'000},
                    {"seed", -1},
                    {"sampling_seed", 1.5},
                    {"dtype", nullptr},
                    {"isolated", 1},
                    {"new_tokens", 9'000'000'000'000'000'000}});
    RunOptions expected;
    expected.top_p = 0.5;
    expected.n_new = 9'000'000'000'000'000'000;
    CHECK(form.request.options == expected);
    CHECK_THAT(form.problem(TokenCount{9, 9, 100, ""}).text,
               Catch::Contains("do not fit into the context of 100 tokens: generate at most 91"));
}

TEST_CASE("a prompt is read only from a text file in UTF-8") {
    const trace::sample::TemporaryFolder folder;
    write_file(folder / "notes.md", "Señor\r\n日本 👋\n");
    RunForm form = filled_form();
    form.read_prompt(folder / "notes.md");
    CHECK(form.request.context == "Señor\r\n日本 👋\n");
    CHECK(form.request.name == "notes");
    write_file(folder / "latin.txt", "one\nSe\xF1or");
    CHECK(refusal(folder / "latin.txt").find("latin.txt is not UTF-8: byte 6 in line 2 is F1") == 0);
    write_file(folder / "zero.txt", std::string("a\0b", 3));
    CHECK(refusal(folder / "zero.txt").find("byte 1 is zero") != std::string::npos);
    write_file(folder / "blank.txt", " \n\t\n");
    CHECK(refusal(folder / "blank.txt").find("empty") != std::string::npos);
    write_file(folder / "large.txt", std::string(most_prompt_bytes + 1, 'a'));
    CHECK(refusal(folder / "large.txt").find("large.txt has ") == 0);
    CHECK(refusal(folder.path()).find("is a folder") != std::string::npos);
    CHECK(refusal(folder / "missing.txt").ends_with("missing.txt does not exist"));
    CHECK(is_text_file("A.TXT"));
    CHECK(!is_text_file("a.h5"));
}

TEST_CASE("the command names the prompt's file if its text is unchanged, else it contains the text") {
    const trace::sample::TemporaryFolder folder;
    write_file(folder / "my notes.txt", "A text of some words.");
    RunForm form = filled_form();
    form.read_prompt(folder / "my notes.txt");
    form.request.output = "run.h5";
    const std::string file = "-f '" + (folder / "my notes.txt").string() + "'";
    CHECK(form.command({}).find(file) != std::string::npos);
    form.request.context += " And more.";
    CHECK(form.command({}).find(file) == std::string::npos);
    CHECK(form.command({}).find("--prompt 'A text of some words. And more.' --prompt-name 'my notes'") !=
          std::string::npos);
    form.request.context = std::string(200'000, 'a');
    CHECK_THROWS_AS(form.command({}), std::invalid_argument);
}

TEST_CASE("a chosen task replaces the prompt, and its default number of new tokens applies until changed") {
    RunForm form;
    const int64_t n_new = form.request.options.n_new;
    const auto place = [&](const std::string& name) {
        const auto found = std::find_if(form.tasks.begin(), form.tasks.end(),
                                        [&](const TaskSettings& settings) { return settings.task->name == name; });
        REQUIRE(found != form.tasks.end());
        return static_cast<size_t>(found - form.tasks.begin());
    };
    CHECK(form.tasks.size() == engine::tasks().size());
    CHECK(!form.task());
    CHECK(!form.filled_in().task);
    form.choose_task(place("niah"));
    REQUIRE(form.task());
    CHECK(form.request.options.n_new == engine::task_named("niah").n_new);
    CHECK(form.problem({}).text.empty());  // without a prompt
    CHECK(form.is_begun());
    CHECK(form.filled_in().task->task == &engine::task_named("niah"));
    form.request.questions = {"Who?", "When?"};
    CHECK(form.n_prompts() == 1);
    form.choose_task({});
    CHECK(form.request.options.n_new == n_new);
    CHECK(form.n_prompts() == 2);
    form.request.options.n_new = 7;
    form.choose_task(place("jsonl"));
    CHECK(form.request.options.n_new == 7);

    // The problem names the missing file.
    const trace::sample::TemporaryFolder folder;
    auto& values = form.tasks[place("jsonl")].values;
    CHECK(form.problem({}).text == "The task jsonl needs a file: set file.");
    CHECK(form.problem({}).section == FormProblem::Section::prompt);
    values.set("file", (folder / "none.jsonl").string());
    CHECK(form.problem({}).text == "file: there is no file " + (folder / "none.jsonl").string());
    values.set("file", folder.path().string());
    CHECK_THAT(form.problem({}).text, Catch::Contains("is a folder"));
    write_file(folder / "own.jsonl", "{}");
    values.set("file", (folder / "own.jsonl").string());
    CHECK(form.problem({}).text.empty());

    // A prompt's file chooses the prompt again.
    write_file(folder / "notes.txt", "A text.");
    form.read_prompt(folder / "notes.txt");
    CHECK(!form.task());
}

TEST_CASE("a task is saved with the form, and its command has only the options of kvscope eval") {
    const trace::sample::TemporaryFolder folder;
    RunForm form = form_of({"snapkv"}, "64");
    form.request.output = "t.h5";
    for (size_t i = 0; i < form.tasks.size(); ++i) {
        auto& [task, values] = form.tasks[i];
        if (task->name == "jsonl") values.set("file", (folder / "own samples.jsonl").string());
        if (task->name != "niah") continue;
        form.choose_task(i);
        values.set("lengths", "100,200");
        values.set("needle", "reasoning");
        values.set("seed", "18446744073709551615");
    }
    form.request.options.temperature = 0.7;
    form.request.options.isolated = true;
    form.request.options.query_aware = false;
    form.request.options.use_template = false;
    form.request.options.dtype = "f32";
    form.request.spectra = true;
    RunForm again;
    again.from_json(nlohmann::json::parse(form.to_json().dump()));
    CHECK(again.filled_in().task == form.filled_in().task);
    CHECK(again.filled_in().options == form.filled_in().options);
    CHECK(again.tasks == form.tasks);
    CHECK(again.request.options.temperature == 0.7);  // for the prompt
    CHECK(changed_options_text(again.applied_options()) == "f32");
    CHECK(form.command({}) ==
          "kvscope eval --task niah --lengths 100,200 --needle reasoning --seed 18446744073709551615 --policy snapkv "
          "--budget 64 --query-aware off --no-template --dtype f32 -n 24 --output t.h5");
    for (size_t i = 0; i < again.tasks.size(); ++i)
        if (again.tasks[i].task->name == "jsonl") again.choose_task(i);
    CHECK_THAT(again.command({}), Catch::StartsWith("kvscope eval --task jsonl --file '" +
                                                    (folder / "own samples.jsonl").string() + "' --policy snapkv"));

    auto wrong = form.to_json();
    wrong["task"] = "no such task";
    wrong["tasks"] = {{"niah", {{"lengths", "none"}, {"samples", 7}, {"depths", "0.5"}}}, {"jsonl", 3}};
    RunForm from_wrong;
    from_wrong.from_json(wrong);
    CHECK(!from_wrong.task());
    for (const auto& [task, values] : from_wrong.tasks)
        CHECK(values.text_of_changes() == (task->name == "niah" ? "depths=0.5" : ""));
    wrong["tasks"] = 3;
    from_wrong.from_json(wrong);
    CHECK(!from_wrong.task());
}

TEST_CASE("files and folders replace the text, and their prompts and problems are counted") {
    const trace::sample::TemporaryFolder folder;
    write_file(folder / "a.txt", "A text.");
    write_file(folder / "own.jsonl", "{}");
    RunForm form = form_of({"snapkv"}, "8");
    form.choose_task(0);
    form.add_sources({folder / "a.txt", folder / "own.jsonl", folder / "a.txt"});
    CHECK(!form.task());
    REQUIRE(form.request.sources == std::vector<fs::path>{folder / "a.txt", folder / "own.jsonl"});
    CHECK(form.problem({}).text.empty());  // the files are not read yet
    CHECK(form.n_prompts() == 0);
    const auto source = [](int n, int n_with_question, const std::vector<std::string>& problems) {
        return TaskResult<PromptSource>{
            std::make_shared<const PromptSource>(PromptSource{n, n_with_question, problems}), "", true};
    };
    form.contents = {source(1, 0, {}), source(5, 3, {"own.jsonl:3: expected the field \"context\""})};
    CHECK(form.n_prompts() == 6);
    CHECK(form.n_questions() == 1);  // of three prompts
    form.request.questions = {"Who?", "When?", " "};
    CHECK(form.n_prompts() == 3 + 2 * 3);
    CHECK(form.n_questions() == 2);
    CHECK(form.problem({}).text.empty());

    TokenCount tokens{5000, 5000, 4096, ""};
    tokens.lengths = {100, 5000, 4090};
    form.request.options.n_new = 16;
    CHECK(form.length_problem(tokens).empty());
    CHECK(form.n_too_long(tokens) == 2);
    tokens.lengths = {4090, 5000};
    CHECK(form.length_problem(tokens) ==
          "No prompt fits. In the shortest prompt, 4,090 tokens and 16 new ones do not fit into the context of 4,096 "
          "tokens: shorten the text by 10 tokens, or generate at most 6");

    form.contents = {source(0, 0, {}), source(0, 0, {"own.jsonl:3: expected the field \"context\""})};
    CHECK(form.problem({}).text == "There is no prompt. own.jsonl:3: expected the field \"context\"");
    CHECK(form.problem({}).section == FormProblem::Section::prompt);
    form.contents[0].error = "a.txt cannot be read";
    CHECK(form.problem({}).text == "a.txt cannot be read");
    fs::remove(folder / "a.txt");
    CHECK(form.problem({}).text ==
          (folder / "a.txt").string() + " does not exist: restore it, or remove it from the list");
    form.remove_source(0);
    CHECK(form.request.sources == std::vector<fs::path>{folder / "own.jsonl"});
    CHECK(form.contents.size() == 1);
    form.request.context.clear();
    CHECK(form.is_begun());
    form.remove_source(0);
    CHECK(form.problem({}).text == "Write a prompt or choose a sample.");

    fs::create_directory(folder / "model");
    write_file(folder / "model/config.json", "{}");
    CHECK(is_prompt_source("A.JSONL"));
    CHECK(is_prompt_source(folder.path()));
    CHECK(!is_prompt_source(folder / "model"));
    CHECK(!is_prompt_source("t.h5"));
}

TEST_CASE("the command and the saved form contain the sources and what the trace stores") {
    const trace::sample::TemporaryFolder folder;
    write_file(folder / "it's a.txt", "A text.");
    RunForm form = form_of({"snapkv"}, "64");
    form.add_sources({folder / "it's a.txt", folder.path() / ""});
    form.request.questions = {"Who?"};
    form.request.output = "t.h5";
    form.request.options.stored = "rows";
    form.request.spectra = true;  // of whole traces only
    const std::string command = form.command({});
    CHECK_THAT(command, Catch::StartsWith("kvscope run '" + folder.path().string() + "/it'\\''s a.txt' " +
                                          folder.path().string() + " --question 'Who?' --policy snapkv --budget 64"));
    CHECK_THAT(command, Catch::Contains(" --record rows --output t.h5"));
    CHECK_THAT(command, !Catch::Contains("--prompt") && !Catch::Contains("--analyze"));
    RunForm again;
    again.from_json(nlohmann::json::parse(form.to_json().dump()));
    CHECK(again.filled_in() == form.filled_in());
    CHECK(again.command({}) == command);
    CHECK(again.request.context == form.request.context);
    again.choose_task(0);
    CHECK(again.filled_in().options.stored == "full");  // tasks always store rows alone
    CHECK_THAT(again.command({}), !Catch::Contains("--record") && !Catch::Contains("it'"));
    auto old = form.to_json();
    REQUIRE(old.erase("sources") == 1);
    REQUIRE(old.erase("stored") == 1);
    again = RunForm();
    again.from_json(old);
    CHECK(again.request.sources.empty());
    CHECK(again.request.options.stored == "full");
}

TEST_CASE("trained maps are set in a row without maps, or in a new row if all rows have maps") {
    RunForm form;
    const auto rows = [&] {
        std::vector<std::pair<bool, std::string>> found;
        for (const PolicyRow& row : form.rows)
            if (row.spec.definition->name == "echokv") found.emplace_back(row.ticked, row.spec.values.text("maps"));
        return found;
    };
    using Rows = std::vector<std::pair<bool, std::string>>;
    CHECK(form.use({"echokv", "maps", "a.safetensors"}));
    CHECK(rows() == Rows{{true, "a.safetensors"}});
    CHECK(form.use({"echokv", "maps", "a.safetensors"}));
    CHECK(rows() == Rows{{true, "a.safetensors"}});
    CHECK(form.use({"echokv", "maps", "b.safetensors"}));
    CHECK(rows() == Rows{{true, "a.safetensors"}, {true, "b.safetensors"}});
    CHECK_FALSE(form.use({"no such policy", "maps", "a.safetensors"}));
    CHECK_FALSE(form.use({"echokv", "no such parameter", "a.safetensors"}));
}

}  // namespace kvscope::gui
