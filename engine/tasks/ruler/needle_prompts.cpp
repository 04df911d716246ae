#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "common/bounded_json.h"
#include "common/json.h"
#include "common/utf8.h"
#include "engine/common/engine_error.h"
#include "engine/tasks/ruler/python_random.h"
#include "engine/tasks/ruler/sentence_splitter.h"
#include "engine/tasks/ruler/subsets.h"

namespace kvscope::engine::ruler {
namespace {

constexpr std::string_view noise =
    "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again.";
constexpr std::string_view needle = "One of the special magic {} for {} is: {}.";

/// Texts around the haystack. Placeholders: the kind of value, then the keys.
struct NeedleTemplate {
    std::string_view begin, question, answer_prefix;
};
constexpr NeedleTemplate several{
    "Some special magic {} are hidden within the following text. Make sure to memorize it. I will quiz you about the "
    "{} afterwards.\n",
    "What are all the special magic {} for {} mentioned in the provided text?",
    " The special magic {} for {} mentioned in the provided text are"};
constexpr NeedleTemplate one{
    "A special magic {} is hidden within the following text. Make sure to memorize it. I will quiz you about the {} "
    "afterwards.\n",
    "What is the special magic {} for {} mentioned in the provided text?",
    " The special magic {} for {} mentioned in the provided text is"};

enum class Haystack { noise, essay, needles };
enum class Kind { words, numbers, uuids };

std::string_view name_of(Kind kind) {
    return kind == Kind::words ? "words" : kind == Kind::numbers ? "numbers" : "uuids";
}

struct NeedleSetting {
    std::string_view name;
    Haystack haystack;
    Kind keys = Kind::words, values = Kind::numbers;
    size_t n_keys = 1, n_values = 1, n_queries = 1;
};
constexpr NeedleSetting settings[] = {
    {"niah_single_1", Haystack::noise},
    {"niah_single_2", Haystack::essay},
    {"niah_single_3", Haystack::essay, Kind::words, Kind::uuids},
    {"niah_multikey_1", Haystack::essay, Kind::words, Kind::numbers, 4},
    {"niah_multikey_2", Haystack::needles},
    {"niah_multikey_3", Haystack::needles, Kind::uuids, Kind::uuids},
    {"niah_multivalue", Haystack::essay, Kind::words, Kind::numbers, 1, 4},
    {"niah_multiquery", Haystack::essay, Kind::words, Kind::numbers, 4, 1, 4},
};

bool is_python_space(char32_t c) { return is_white_space(c) || (c >= 0x1C && c <= 0x1F); }

/// Splits the essays at white space. White space at the ends of the text gives empty words.
std::vector<std::string> essay_words(const SubsetRequest& request) {
    const auto json = bounded_json::parse_or_discard(request.files.at("essays"));
    if (!json.is_object() || !json.contains("text") || !json["text"].is_string())
        throw UsageError(
            fmt::format("{}: expected the JSON object {{\"text\": \"…\"}}, found {}: use the file "
                        "PaulGrahamEssays.json that RULER's "
                        "script download_paulgraham_essay.py writes",
                        request.file_name("essays"),
                        json.is_discarded() ? "text that is not JSON"
                        : json.is_object()  ? "no text"
                                            : json.type_name()));
    const auto& text = json["text"].get_ref<const std::string&>();
    std::vector<std::string> words{""};
    bool in_space = false;
    for (size_t at = 0; at < text.size();) {
        const auto character = decode_utf8_character(text, at);
        const bool is_space = is_python_space(character.code);
        if (is_space && !in_space) words.emplace_back();
        if (!is_space) words.back() += std::string_view(text).substr(at, character.bytes);
        in_space = is_space;
        at += character.bytes;
    }
    return words;
}

/// Returns 40 percentages at equal distances, rounded.
std::vector<int> depth_percentages() {
    std::vector<int> depths;
    for (int i = 0; i < 40; ++i) depths.push_back(static_cast<int>(std::lround(100.0 * i / 39)));
    return depths;
}

class NeedleMaker {
 public:
    explicit NeedleMaker(const SubsetRequest& request)
        : request_(request),
          setting_(*std::ranges::find(settings, request.name, &NeedleSetting::name)),
          words_(request.files) {
        if (setting_.haystack != Haystack::essay) return;
        essay_ = essay_words(request);
        splitter_.emplace(request.files.at("punkt"), request.file_name("punkt"));
    }

    std::vector<RulerPrompt> prompts(int64_t length) const {
        PythonRandom random(request_.seed);
        const auto draw = [&](int64_t size) { return std::optional(draw_prompt(random, static_cast<size_t>(size))); };
        const bool is_essay = setting_.haystack == Haystack::essay;
        const SizeSearch search(request_, length, request_.n_new, is_essay ? 500 : length < 4096 ? 5 : 25);
        const int64_t size = search.greatest_fitting(search.upper_bound(draw), draw);
        std::vector<RulerPrompt> all;
        for (int64_t i = 0; i < request_.n_samples; ++i) all.push_back(search.draw_fitting(size, draw));
        return all;
    }

 private:
    std::string draw_text(PythonRandom& random, Kind kind) const {
        if (kind == Kind::uuids) return random.uuid4();
        if (kind == Kind::numbers) return std::to_string(random.randint(1000000, 9999999));
        return words_.at(random.below(words_.size()));
    }

    [[nodiscard]] std::string needle_of(std::string_view key, std::string_view value) const {
        return filled(needle, {name_of(setting_.values), key, value});
    }

    /// Returns the needles and sentences of the essays between them, joined by spaces.
    std::string essay_with(PythonRandom& random, const std::vector<std::string>& needles, size_t n_words) const {
        static const std::vector<int> depths = depth_percentages();
        std::string text;
        for (size_t i = 0; i < n_words; ++i) {
            if (i > 0) text += ' ';
            text += essay_[i % essay_.size()];
        }
        text.erase(0, text.find_first_not_of(' '));
        text.resize(text.find_last_not_of(' ') + 1);
        const auto sentences = splitter_->split(text);
        std::vector<size_t> places;
        const auto chosen = random.sample(depths.size(), needles.size());
        for (const size_t i : *chosen)
            places.push_back(static_cast<size_t>(static_cast<double>(sentences.size()) * (depths[i] / 100.0)));
        std::ranges::sort(places);
        places.push_back(sentences.size());
        std::vector<std::string> parts;
        size_t last = 0;
        for (size_t i = 0; i < places.size(); ++i) {
            parts.push_back(
                fmt::format("{}", fmt::join(sentences.begin() + static_cast<std::ptrdiff_t>(last),
                                            sentences.begin() + static_cast<std::ptrdiff_t>(places[i]), " ")));
            if (i < needles.size()) parts.push_back(needles[i]);
            last = places[i];
        }
        return joined(parts, " ");
    }

    std::string lines_with(PythonRandom& random, const std::vector<std::string>& needles, size_t n) const {
        std::vector<std::string> lines(n, std::string(noise));
        if (setting_.haystack == Haystack::needles) {
            for (std::string& line : lines) {
                const std::string key = draw_text(random, setting_.keys);
                line = needle_of(key, draw_text(random, setting_.values));
            }
        }
        auto places = random.sample(n, needles.size()).value();
        std::ranges::sort(places, std::greater());
        for (size_t i = 0; i < places.size(); ++i)
            lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(places[i]), needles[i]);
        return joined(lines, "\n");
    }

    RulerPrompt draw_prompt(PythonRandom& random, size_t size) const {
        std::vector<std::string> keys, needles;
        std::vector<std::vector<std::string>> values;
        for (size_t i = 0; i < setting_.n_keys; ++i) {
            keys.push_back(draw_text(random, setting_.keys));
            auto& of_key = values.emplace_back();
            for (size_t j = 0; j < setting_.n_values; ++j) {
                of_key.push_back(draw_text(random, setting_.values));
                needles.push_back(needle_of(keys.back(), of_key.back()));
            }
        }
        PythonRandom(request_.seed).shuffle(needles);
        const std::string haystack = setting_.haystack == Haystack::essay ? essay_with(random, needles, size)
                                                                          : lines_with(random, needles, size);
        std::vector<std::string> queries;
        RulerPrompt prompt;
        const bool is_one = setting_.n_queries * setting_.n_values == 1;
        const NeedleTemplate& texts = is_one ? one : several;
        std::string_view kind = name_of(setting_.values);
        if (is_one) kind.remove_suffix(1);
        prompt.context = filled(texts.begin, {kind, kind});
        const size_t begin = prompt.context.size();
        prompt.context += haystack + "\n";
        const auto asked = random.sample(setting_.n_keys, setting_.n_queries).value();
        for (const size_t i : asked) {
            queries.push_back(keys[i]);
            for (const std::string& value : values[i]) {
                prompt.answers.push_back(value);
                const std::string text = needle_of(keys[i], value);
                const size_t at = prompt.context.find(text, begin);
                prompt.spans.emplace_back(at, at + text.size());
            }
        }
        std::string query = queries.back();
        queries.pop_back();
        if (!queries.empty()) query = joined(queries, ", ") + ", and " + query;
        prompt.question = filled(texts.question, {kind, query}) + filled(texts.answer_prefix, {kind, query});
        return prompt;
    }

    const SubsetRequest& request_;
    const NeedleSetting& setting_;
    AdjectiveNouns words_;
    std::vector<std::string> essay_;
    std::optional<SentenceSplitter> splitter_;
};

}  // namespace

MakePrompts needle_prompts(const SubsetRequest& request) {
    return [maker = std::make_shared<NeedleMaker>(request)](int64_t length) { return maker->prompts(length); };
}

}  // namespace kvscope::engine::ruler
