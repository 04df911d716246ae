#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <unordered_map>

#include "common/bounded_json.h"
#include "common/json.h"
#include "engine/common/engine_error.h"
#include "engine/tasks/ruler/python_random.h"
#include "engine/tasks/ruler/subsets.h"

namespace kvscope::engine::ruler {
namespace {

constexpr std::string_view list_begin =
    "Below is a numbered list of words. In these words, some appear more often than others. Memorize the ones that "
    "appear most often.\n";
constexpr std::string_view list_question =
    "Question: What are the 10 most common words in the above list? Answer: The top 10 words that appear most often in "
    "the list are:";
constexpr size_t n_common = 10;
constexpr int64_t step = 10;
constexpr int64_t n_words_of_estimate = 4096;

/// Collects the texts of a JSON object in the order of their keys. nlohmann's ordered objects take quadratic time.
struct TextsInOrder : nlohmann::json_sax<nlohmann::json> {
    std::vector<std::string> texts;
    std::unordered_map<std::string, size_t> places;
    size_t place = 0;
    int depth = 0;

    bool string(string_t& text) override {
        if (depth != 1) return false;
        texts[place] = std::move(text);
        return true;
    }
    bool key(string_t& name) override {
        const auto [found, is_new] = places.try_emplace(name, texts.size());
        if (is_new) texts.emplace_back();
        place = found->second;
        return true;
    }
    bool start_object(std::size_t) override { return ++depth == 1; }
    bool end_object() override { return --depth == 0; }
    bool null() override { return false; }
    bool boolean(bool) override { return false; }
    bool number_integer(number_integer_t) override { return false; }
    bool number_unsigned(number_unsigned_t) override { return false; }
    bool number_float(number_float_t, const string_t&) override { return false; }
    bool binary(binary_t&) override { return false; }
    bool start_array(std::size_t) override { return false; }
    bool end_array() override { return false; }
    bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }
};

/// Python's a // b for positive numbers.
double floor_divided(double a, double b) {
    const double quotient = (a - std::fmod(a, b)) / b;
    const double whole = std::floor(quotient);
    return quotient - whole > 0.5 ? whole + 1 : whole;
}

std::string numbered(const std::vector<std::string>& words) {
    std::string text;
    for (size_t i = 0; i < words.size(); ++i) text += fmt::format("{}{}. {}", i > 0 ? " " : "", i + 1, words[i]);
    return text;
}

class WordLists {
 public:
    explicit WordLists(const SubsetRequest& request) : request_(request), words_(sorted_words(request.files)) {
        PythonRandom(request.seed).shuffle(words_);
        if (!request.files.contains("words")) return;
        TextsInOrder read;
        if (!nlohmann::json::sax_parse(request.files.at("words"), &read))
            throw UsageError(fmt::format(
                "{}: expected a JSON object of words, such as {{\"0\": \"word\"}}, found another text: use the file "
                "scripts/data/synthetic/json/english_words.json of RULER, which is stored in Git LFS",
                request.file_name("words")));
        more_words_ = std::move(read.texts);
    }

    std::vector<RulerPrompt> prompts(int64_t length) const {
        PythonRandom random(request_.seed);
        const auto draw = [&](int64_t size) { return draw_prompt(random, length, static_cast<size_t>(size)); };
        const SizeSearch search(request_, length, request_.n_new, step);
        const double tokens_of_word =
            static_cast<double>(search.tokens_at(n_words_of_estimate, draw)) / n_words_of_estimate;
        const auto fitting = static_cast<int64_t>(floor_divided(static_cast<double>(length), tokens_of_word));
        const int64_t size = search.greatest_fitting(std::max(2 * fitting, 2 * step), draw);
        std::vector<RulerPrompt> all;
        for (int64_t i = 0; i < request_.n_samples; ++i) all.push_back(search.draw_fitting(size, draw));
        return all;
    }

 private:
    struct Example {
        std::string list;
        std::vector<std::string> common;
    };

    std::optional<Example> draw_example(PythonRandom& random, size_t n, size_t repeats,
                                        size_t repeats_of_others) const {
        if (n > words_.size() && !request_.files.contains("words"))
            throw UsageError(fmt::format(
                "--subsets: cwe needs more than the {} words of wonderwords at this length: fetch "
                "scripts/data/synthetic/json/english_words.json (Git LFS) from https://github.com/NVIDIA/RULER, put it "
                "anywhere, and name it with --words",
                words_.size()));
        const auto& words = n <= words_.size() ? words_ : more_words_;
        const auto chosen = random.sample(words.size(), n);
        if (!chosen) return std::nullopt;
        Example example;
        const size_t n_first = std::min(n, n_common);
        std::vector<std::string> list;
        const auto repeat = [&](size_t begin, size_t end, size_t times) {
            for (size_t time = 0; time < times; ++time)
                for (size_t i = begin; i < end; ++i) list.push_back(words[(*chosen)[i]]);
        };
        repeat(0, n_first, repeats);
        repeat(n_first, n, repeats_of_others);
        for (size_t i = 0; i < n_first; ++i) example.common.push_back(words[(*chosen)[i]]);
        PythonRandom(request_.seed).shuffle(list);
        example.list = numbered(list);
        return example;
    }

    std::optional<RulerPrompt> draw_prompt(PythonRandom& random, int64_t length, size_t n_words) const {
        const bool is_short = length < 4096;
        const auto solved = is_short ? draw_example(random, 20, 3, 1) : draw_example(random, 40, 10, 3);
        auto asked = is_short ? draw_example(random, n_words, 6, 1) : draw_example(random, n_words, 30, 3);
        if (!solved || !asked) return std::nullopt;
        RulerPrompt prompt;
        prompt.context = fmt::format("{}{}\n{} {}\n{}{}\n", list_begin, solved->list, list_question,
                                     numbered(solved->common), list_begin, asked->list);
        prompt.question = list_question;
        prompt.answers = std::move(asked->common);
        return prompt;
    }

    const SubsetRequest& request_;
    std::vector<std::string> words_;
    std::vector<std::string> more_words_;
};

}  // namespace

MakePrompts common_word_prompts(const SubsetRequest& request) {
    return [lists = std::make_shared<WordLists>(request)](int64_t length) { return lists->prompts(length); };
}

}  // namespace kvscope::engine::ruler
