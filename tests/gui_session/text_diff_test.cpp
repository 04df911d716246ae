#include "app/gui/view_data/text_diff.h"

#include <catch2/catch.hpp>

#include "app/gui/view_data/answer_comparison.h"
#include "tests/trace/sample_trace.h"

namespace kvscope::gui {
namespace {

std::vector<std::string> differing(std::string_view text, std::string_view reference) {
    const auto words = split_words(text);
    const Difference difference = word_difference(text, words, reference);
    std::vector<std::string> out;
    for (size_t i = 0; i < words.size(); ++i) {
        if (difference.differs[i]) out.emplace_back(text.substr(words[i].begin, words[i].end - words[i].begin));
    }
    return out;
}

using Strings = std::vector<std::string>;
using Ids = std::vector<int32_t>;
using Bits = std::vector<bool>;
using Counts = std::vector<size_t>;

/// A trace with two runs of one prompt and their answers.
struct TwoAnswers {
    trace::sample::TemporaryFolder folder;
    std::filesystem::path path = folder / "t.h5";

    TwoAnswers(const trace::RunRecord& first, const trace::RunRecord& second) {
        const trace::sample::Options options;
        trace::Writer writer(path, "{}", {.force = true, .generator = "test"});
        writer.write_model(trace::sample::model(options));
        const trace::PromptRecord prompt = trace::sample::prompt(options);
        writer.write_prompt(0, prompt);
        writer.write_run(0, 0, first);
        writer.write_run(0, 1, second);
        writer.finish();
    }

    AnswerOutput second_against_first() const {
        const auto reader = std::make_shared<const trace::Reader>(path);
        return read_and_compare_answer({reader, 0, 1}, RunAt{reader, 0, 0});
    }
};

trace::RunRecord wrote(const std::string& policy, const std::string& text, const Ids& ids) {
    const trace::sample::Options options;
    const trace::PromptRecord prompt = trace::sample::prompt(options);
    trace::RunRecord run = policy == "full" ? trace::sample::full_run(options, prompt)
                                            : trace::sample::selecting_run(options, prompt, policy, 16);
    run.output_text = text;
    run.output_ids = ids;
    return run;
}

/// Returns the texts of an answer's marks.
Strings marked(const AnswerOutput& answer) {
    Strings out;
    for (const StepPlace& mark : answer.marks) out.push_back(answer.text.substr(mark.begin, mark.end - mark.begin));
    return out;
}

TEST_CASE("words that are not in the reference are marked at any position") {
    CHECK(differing("signed in Paris by three", "signed in Paris by three").empty());
    CHECK(differing("signed in Rome by three", "signed in Paris by three") == Strings{"Rome"});
    CHECK(differing("it was signed in Paris", "signed in Paris") == Strings{"it", "was"});
    CHECK(differing("a b", "") == Strings{"a", "b"});
    CHECK(differing("", "a b").empty());
}

TEST_CASE("tokens are aligned by id, and added, replaced and missing tokens are distinguished") {
    const Ids reference{1, 2, 3, 4, 5};
    const Difference same = token_difference(reference, reference);
    CHECK(same.n_extra() + same.n_missing() == 0);

    const Difference replaced = token_difference(Ids{1, 2, 9, 4, 5}, reference);
    CHECK(replaced.differs == Bits{false, false, true, false, false});
    CHECK(replaced.left_out == Counts{0, 0, 0, 0, 0, 0});  // 9 replaces 3
    CHECK(replaced.n_missing() == 1);

    const Difference added = token_difference(Ids{1, 8, 2, 3, 4, 5, 9}, reference);
    CHECK(added.differs == Bits{false, true, false, false, false, false, true});
    CHECK(added.n_missing() == 0);

    const Difference shorter = token_difference(Ids{1, 2, 5}, reference);  // shorter, without tokens of its own
    CHECK(shorter.n_extra() == 0);
    CHECK(shorter.n_missing() == 2);
    const Difference other_way = token_difference(reference, Ids{1, 2, 5});
    CHECK(other_way.n_extra() == 2);
    CHECK(other_way.n_missing() == 0);
    CHECK(shorter.left_out == Counts{0, 0, 2, 0});
    CHECK(token_difference(Ids{1, 2}, reference).left_out == Counts{0, 0, 3});
    CHECK(token_difference(Ids{}, reference).left_out == Counts{5});
    CHECK(token_difference(reference, Ids{}).n_extra() == 5);
}

TEST_CASE("marks cover the differing tokens of an answer, not whole words") {
    // 3 and 10 are tokens of the sample's prompt; 2 is the end-of-text token.
    const TwoAnswers answers(wrote("full", " \u00e9t\u00e9 w1 58-21", {3, 10, 40, 41, 42, 2}),
                             wrote("snapkv", " \u00e9t\u00e9 w1 58-99", {3, 10, 40, 41, 43, 2}));
    const AnswerOutput answer = answers.second_against_first();
    REQUIRE(answer.has_reference);
    CHECK(answer.by_tokens);
    CHECK(answer.difference.n_extra() == 1);
    REQUIRE(answer.steps.size() == 6);
    CHECK(answer.steps[5].begin == answer.text.size());
    REQUIRE(answer.marks.size() == 1);
    CHECK(answer.marks[0] == answer.steps[4]);
    CHECK(answer.marks[0].begin > answer.words.back().begin);  // the first tokens of the word agree with the reference
    CHECK(answer.is_marked(4));
    CHECK_FALSE(answer.is_marked(3));
    CHECK(answer.kl_difference() == answer.kl);  // the divergence of the full run is 0
}

TEST_CASE("an answer without token ids is compared by words") {
    const TwoAnswers answers(wrote("full", "signed in Paris", {}), wrote("snapkv", "signed in Rome today", {7, 8, 9}));
    const AnswerOutput answer = answers.second_against_first();
    CHECK_FALSE(answer.by_tokens);
    CHECK(marked(answer) == Strings{"Rome", "today"});
    CHECK(answer.difference.differs.size() == 4);
}

TEST_CASE("an answer that stops early differs from the reference and shows where it continues") {
    const TwoAnswers answers(wrote("full", " \u00e9t\u00e9 w1", {3, 10, 2}), wrote("snapkv", " \u00e9t\u00e9", {3, 2}));
    const AnswerOutput answer = answers.second_against_first();
    CHECK(answer.difference.n_extra() == 0);
    CHECK_FALSE(answer.is_as_reference());
    CHECK(answer.difference_texts() ==
          Strings{"0 extra, 1 missing of 3 tokens", "0 extra, 1 missing of 3", "+0 −1 of 3", "+0 −1"});
    CHECK(answer.gaps == Counts{answer.text.size()});

    const TwoAnswers ended(wrote("full", " \u00e9t\u00e9 w1", {3, 10, 2}), wrote("snapkv", "", {2}));
    CHECK(ended.second_against_first().difference_texts().front() == "0 extra, 2 missing of 3 tokens");
}

TEST_CASE("adjacent marks are joined, and tokens without text have none") {
    const std::vector<StepPlace> places{{0, 2}, {2, 5}, {5, 6}, {6, 9}, {9, 9}};
    CHECK(join_differing_places(places, {true, true, false, true, true}) == std::vector<StepPlace>{{0, 5}, {6, 9}});
}

TEST_CASE("unknown tokens are placed at words if the numbers agree, and never within a character") {
    const std::string text = " signed by three";
    const auto places = step_byte_ranges(text, Ids{1, 2, 3}, {});
    Strings pieces;
    for (const StepPlace& place : places) pieces.push_back(text.substr(place.begin, place.end - place.begin));
    CHECK(pieces == Strings{" signed", " by", " three"});
    const std::string greek = "\u03b1\u03b2\u03b3";
    for (const StepPlace& place : step_byte_ranges(greek, Ids{1, 2, 3, 4}, {})) CHECK(place.begin % 2 == 0);
}

TEST_CASE("words count the line breaks before them") {
    const auto words = split_words("one\n\n two");
    REQUIRE(words.size() == 2);
    CHECK(words[1].line_breaks == 2);
    CHECK(words[1].begin == 6);
}

TEST_CASE("scripts without spaces have one word per character, but Korean has not") {
    const std::string_view text = "in 東京, 한국어";
    const auto words = split_words(text);
    std::vector<std::string> found;
    for (const Word& word : words) found.emplace_back(text.substr(word.begin, word.end - word.begin));
    CHECK(found == Strings{"in", "東", "京", ",", "한국어"});
    CHECK_FALSE(words[1].glued);
    CHECK(words[2].glued);
    CHECK(split_words(std::string(100, 'x')).size() == 4);
}

TEST_CASE("decode steps are placed at their tokens, and unknown tokens share the text between them") {
    const std::string text = " in Paris, now";
    const std::unordered_map<int32_t, std::string> pieces{{1, " in"}, {3, ","}, {4, " now"}};
    const auto places = step_byte_ranges(text, std::vector<int32_t>{1, 2, 3, 4, 0}, pieces);
    REQUIRE(places.size() == 5);
    CHECK(text.substr(places[0].begin, places[0].end - places[0].begin) == " in");
    CHECK(text.substr(places[1].begin, places[1].end - places[1].begin) == " Paris");
    CHECK(text.substr(places[2].begin, places[2].end - places[2].begin) == ",");
    CHECK(text.substr(places[3].begin, places[3].end - places[3].begin) == " now");
    CHECK(places[4].begin == text.size());  // the end-of-text token has no text
    CHECK(places[4].end == text.size());
}

}  // namespace
}  // namespace kvscope::gui
