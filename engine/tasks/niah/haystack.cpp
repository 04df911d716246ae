#include "engine/tasks/niah/haystack.h"

#include <array>
#include <string_view>
#include <utility>

#include "common/bounded_json.h"
#include "common/json.h"
#include "engine/common/engine_error.h"

namespace kvscope::engine::niah {
namespace {

constexpr std::array noise{"The grass is green.", "The sky is blue.", "The sun is yellow.", "Here we go.",
                           "There and back again."};

/// Splits a text after each . ! or ? that white space follows. Line breaks become spaces.
std::vector<std::string> sentences_of(std::string_view text) {
    std::vector<std::string> sentences;
    std::string sentence;
    for (size_t i = 0; i < text.size(); ++i) {
        const bool is_space = text[i] == ' ' || text[i] == '\n' || text[i] == '\r' || text[i] == '\t';
        if (!is_space) sentence += text[i];
        if (is_space && !sentence.empty() && sentence.back() != ' ') sentence += ' ';
        const bool ends = !is_space && (text[i] == '.' || text[i] == '!' || text[i] == '?') &&
                          (i + 1 == text.size() || text[i + 1] == ' ' || text[i + 1] == '\n' || text[i + 1] == '\r');
        if (ends) sentences.push_back(std::exchange(sentence, {}));
    }
    while (!sentence.empty() && sentence.back() == ' ') sentence.pop_back();
    if (!sentence.empty()) sentences.push_back(sentence);
    return sentences;
}

/// Returns the text of RULER's PaulGrahamEssays.json, or the text itself.
std::string plain_text(const std::string& file) {
    const size_t begin = file.find_first_not_of(" \t\r\n");
    if (begin == std::string::npos || file[begin] != '{') return file;
    const auto json = bounded_json::parse_or_discard(file);
    return json.is_object() && json.contains("text") && json["text"].is_string() ? json["text"].get<std::string>()
                                                                                 : file;
}

/// Returns the texts of the user's file, or of the files in the user's folder in the order of their names.
std::string text_of_user(const TaskOptions& options) {
    std::string text;
    for (const auto& [name, content] : options.files)
        if (name == "haystack" || name.starts_with("haystack/")) text += plain_text(content) + "\n";
    return text;
}

}  // namespace

Haystack::Haystack(const TaskOptions& options) {
    const std::string& name = options.values.text("haystack");
    const std::string text = text_of_user(options);
    if (name.empty() && text.empty()) {
        sentences_.assign(noise.begin(), noise.end());
        return;
    }
    sentences_ = sentences_of(text);
    is_shuffled_ = options.values.text("haystack_order") == "shuffled";
    if (sentences_.empty())
        throw UsageError(name +
                         ": the haystack is empty: give a text, RULER's PaulGrahamEssays.json or a folder with .txt "
                         "files, or omit --haystack for the built-in haystack");
}

NextSentence Haystack::sentences(policies::SeededRandom random) const {
    return [sentences = sentences_, is_shuffled = is_shuffled_, random, next = size_t{0}]() mutable {
        if (next == 0 && is_shuffled) {
            for (size_t i = sentences.size(); i > 1; --i)
                std::swap(sentences[i - 1], sentences[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
        }
        const std::string& sentence = sentences[next];
        next = (next + 1) % sentences.size();
        return sentence;
    };
}

}  // namespace kvscope::engine::niah
