#include "app/gui/session/run_form.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "app/gui/session/session.h"
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

}  // namespace

TEST_CASE("what is wrong with an option is said as kvscope run says it") {
    RunForm form = filled_form();
    REQUIRE(form.problem({}).empty());
    const auto check = [&](auto option, const char* words) {
        CHECK(form.problem_with(option) == words);
        CHECK(form.problem({}) == words);
        form.request.options = {};
        form.request.options.n_new = 4;
        CHECK(form.problem({}).empty());
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
    check(&RunOptions::window, "the window that is recorded must be at least 1");
    form.request.options.dtype = "int4";
    check(&RunOptions::dtype, "unknown type 'int4': expected bf16, f32 or auto");
    form.request.options.n_new = 0;
    check(&RunOptions::n_new, "the number of tokens to generate must be at least 1");

    const trace::sample::TemporaryFolder folder;
    form.request.output = folder / "nowhere/run.h5";
    CHECK(form.problem({}).find("there is no folder") != std::string::npos);
    form.request.output = folder.path();
    CHECK(form.problem({}).find("is a folder") != std::string::npos);
    form.request.output = folder / "run.h5";
    CHECK(form.problem({}).empty());
    CHECK(form.output_note() == "run.h5 is a new file");
    write_file(folder / "run.h5", "x");
    CHECK(form.output_note().find("refused") != std::string::npos);
    form.request.force = true;
    CHECK(form.output_note().find("replaced") != std::string::npos);
    form.request.output.clear();
    CHECK(!form.filled_in().force);
}

TEST_CASE("a working directory that is gone is said, and stops nothing") {
    const fs::path before = fs::current_path();
    const trace::sample::TemporaryFolder folder;
    trace::sample::write(folder / "t.h5");
    fs::create_directory(folder / "gone");
    fs::current_path(folder / "gone");
    fs::remove(folder / "gone");
    const RunForm form = filled_form();
    CHECK_NOTHROW(form.output_note());
    CHECK(form.output_note().find("is gone") != std::string::npos);
    CHECK_NOTHROW(form.command("model.gguf"));
    Tasks tasks{[] {}};
    Session session{tasks};
    CHECK_NOTHROW(session.open(folder / "t.h5"));
    fs::current_path(before);
}

TEST_CASE("every field of the form is remembered, and states from before there were several questions load") {
    RunForm form = filled_form();
    form.request.name = "notes";
    form.prompt_file = "/somewhere/notes.md";
    form.request.questions = {"Who?", "", "When,\nand where?"};
    form.request.options = {0.7, 0.9, 18446744073709551615u, 5, "f32", true, true, 64, true};
    form.request.options.query_aware = false;
    form.request.options.use_template = false;
    form.request.options.n_new = 7;
    form.request.spectra = false;
    form.request.output = "run.h5";
    RunForm again;
    again.from_json(nlohmann::json::parse(form.to_json().dump()));
    CHECK(again.filled_in() == form.filled_in());
    CHECK(again.prompt_file == form.prompt_file);
    CHECK(again.filled_in().questions == std::vector<std::string>{"Who?", "When,\nand where?"});
    CHECK(text_of_changes(again.request.options) ==
          "temperature 0.7, top-p 0.9, sampling seed 18446744073709551615, policies' seed 5, f32, isolated, "
          "ignore end of text, window 64, gradient alignment");
    CHECK(text_of_changes({}).empty());

    auto old = filled_form().to_json();
    for (const char* added : {"questions", "file", "temperature", "top_p", "sampling_seed", "seed", "dtype", "isolated",
                              "ignore_eos", "window", "alignment"})
        REQUIRE(old.erase(added) == 1);
    old["question"] = "Who?";
    RunForm from_old;
    from_old.from_json(old);
    CHECK(from_old.request.questions == std::vector<std::string>{"Who?"});
    CHECK(from_old.request.options == RunOptions());
    CHECK(from_old.request.context == filled_form().request.context);
}

TEST_CASE("each declared option has its place in the form: it is saved, told where it is changed, and copied") {
    for (const RunOption& option : engine::run_options()) {
        CAPTURE(option.key);
        RunForm form = filled_form();
        form.request.options = engine::testing::with_another_value(option);
        const std::string changes = text_of_changes(form.request.options);
        const auto state = form.to_json();
        CHECK(state.contains(option.key) == (option.in_form != RunOption::InForm::no));
        CHECK(changes.empty() == (option.in_form != RunOption::InForm::row));
        RunForm again;
        again.from_json(state);
        if (option.in_form != RunOption::InForm::no) CHECK(again.request.options == form.request.options);
        reset_seldom_changed(form.request.options);
        CHECK((form.request.options == RunOptions()) == (option.in_form == RunOption::InForm::row));
        if (option.in_form == RunOption::InForm::no) continue;
        const auto& [flag, value] = engine::testing::words_of(option, again.request.options);
        CHECK_THAT(again.command({}), Catch::Contains(" " + flag + (value.empty() ? "" : " " + value)));
        CHECK(option.always_named == (RunForm().command({}).find(" " + flag + " ") != std::string::npos));
        CHECK(option.problem(again.request.options).empty());
    }
}

TEST_CASE("a state that is not the form's changes what it can, and breaks nothing") {
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
    CHECK_THAT(form.problem(TokenCount{9, 9, 100, ""}),
               Catch::Contains("do not fit the context of 100: generate at most 91"));
}

TEST_CASE("a prompt is read from a text file in UTF-8, and from nothing else") {
    const trace::sample::TemporaryFolder folder;
    write_file(folder / "notes.md", "Señor\r\n日本 👋\n");
    RunForm form = filled_form();
    form.read_prompt(folder / "notes.md");
    CHECK(form.request.context == "Señor\r\n日本 👋\n");
    CHECK(form.request.name == "notes");
    write_file(folder / "latin.txt", "one\nSe\xF1or");
    CHECK(refusal(folder / "latin.txt").find("latin.txt is not UTF-8: byte 6, in line 2, is F1") == 0);
    write_file(folder / "zero.txt", std::string("a\0b", 3));
    CHECK(refusal(folder / "zero.txt").find("byte 1 is zero") != std::string::npos);
    write_file(folder / "blank.txt", " \n\t\n");
    CHECK(refusal(folder / "blank.txt").find("empty") != std::string::npos);
    write_file(folder / "large.txt", std::string(most_prompt_bytes + 1, 'a'));
    CHECK(refusal(folder / "large.txt").find("large.txt has ") == 0);
    CHECK(refusal(folder.path()).find("is a folder") != std::string::npos);
    CHECK(refusal(folder / "missing.txt").find("cannot be read") != std::string::npos);
    CHECK(is_text_file("A.TXT"));
    CHECK(!is_text_file("a.h5"));
}

TEST_CASE("the command line names a prompt's file while the text is that file's, else it carries the text") {
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

}  // namespace kvscope::gui
