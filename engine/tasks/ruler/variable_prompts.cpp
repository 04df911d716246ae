#include <algorithm>
#include <set>
#include <sstream>

#include "engine/tasks/ruler/numpy_random.h"
#include "engine/tasks/ruler/python_random.h"
#include "engine/tasks/ruler/subsets.h"

namespace kvscope::engine::ruler {
namespace {

constexpr std::string_view noise_line =
    "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again.";
constexpr std::string_view begin_text =
    "Memorize and track the chain(s) of variable assignment hidden in the following text.\n\n";
constexpr std::string_view question_text =
    "Question: Find all variables that are assigned the value {} in the text above. Answer: According to the chain(s) "
    "of variable assignment in the text above, 5 variables are assigned the value {}, they are: ";
constexpr std::string_view upper_letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr size_t n_variables = 5;
constexpr std::string_view example_value = "12345";
constexpr int64_t example_length = 500;  // tokens

/// Assignments to five variables, one from the next, among lines of noise.
class VariableTracking {
 public:
    explicit VariableTracking(uint32_t seed) : random_(seed), values_(seed) {}

    /// @returns nullopt if two variables have the same name, for which RULER's script raises an exception
    std::optional<RulerPrompt> draw(size_t n_lines, bool is_example) {
        const int n_letters = is_example ? 3 : 5;
        std::vector<std::string> names;
        for (size_t i = 0; i < n_variables; ++i) names.push_back(random_.letters(upper_letters, n_letters));
        size_t n_names = n_variables;
        for (std::set<std::string> distinct(names.begin(), names.end()); distinct.size() < n_variables; ++n_names)
            distinct.insert(random_.letters(upper_letters, n_letters));
        const std::string value = is_example ? std::string(example_value) : draw_value();
        if (n_names > n_variables) {
            if (!is_example) draw_value();
            return std::nullopt;
        }
        std::vector<std::string> chain{"VAR " + names[0] + " = " + value};
        for (size_t i = 1; i < n_variables; ++i) chain.push_back("VAR " + names[i] + " = VAR " + names[i - 1] + " ");
        auto places = random_.sample(n_lines, n_variables);
        if (!places) return std::nullopt;
        std::ranges::sort(*places);
        std::vector<std::string> lines(n_lines, std::string(noise_line));
        for (size_t i = 0; i < n_variables; ++i)
            lines.insert(lines.begin() + static_cast<std::ptrdiff_t>((*places)[i] + i), chain[i]);
        RulerPrompt prompt;
        prompt.context = begin_text;
        for (const std::string& line : lines) {
            const size_t begin = prompt.context.size();
            prompt.context += line;
            if (std::ranges::find(chain, line) != chain.end()) prompt.spans.emplace_back(begin, prompt.context.size());
            prompt.context += '\n';
        }
        prompt.question = filled(question_text, {value, value});
        prompt.answers = std::move(names);
        return prompt;
    }

    /// Replaces the variables of a solved example and its value by new ones.
    std::string draw_names_of(std::string example) {
        std::istringstream in(example);
        std::vector<std::string> words;
        for (std::string word; in >> word;) words.push_back(std::move(word));
        for (size_t i = words.size() - n_variables; i < words.size(); ++i)
            replace_all(example, words[i], random_.letters(upper_letters, static_cast<int>(words[i].size())));
        replace_all(example, example_value, draw_value());
        return example;
    }

 private:
    std::string draw_value() { return std::to_string(values_.randint(10000, 99999)); }

    static void replace_all(std::string& text, std::string_view old, const std::string& replacement) {
        for (size_t at = text.find(old); at != std::string::npos; at = text.find(old, at + replacement.size()))
            text.replace(at, old.size(), replacement);
    }

    PythonRandom random_;
    NumpyRandom values_;
};

std::vector<RulerPrompt> prompts_of_length(const SubsetRequest& request, int64_t length) {
    VariableTracking variables(request.seed);
    const auto draw_example = [&](int64_t size) { return variables.draw(static_cast<size_t>(size), true); };
    const SizeSearch of_example(request, example_length, 0, 5, SizeSearch::Text::example);
    const RulerPrompt solved = of_example.draw_fitting(
        of_example.greatest_fitting(of_example.upper_bound(draw_example), draw_example), draw_example);
    const std::string example = solved.text() + " " + joined(solved.answers, " ") + "\n";

    const auto draw = [&](int64_t size) { return variables.draw(static_cast<size_t>(size), false); };
    const auto draw_with_example = [&](int64_t size) {
        auto prompt = draw(size);
        if (!prompt) return prompt;
        const std::string before = variables.draw_names_of(example) + "\n";
        prompt->context.insert(0, before);
        for (auto& [begin, end] : prompt->spans) {
            begin += before.size();
            end += before.size();
        }
        return prompt;
    };
    const SizeSearch search(request, length, request.n_new, length < 4096 ? 5 : 10);
    const int64_t size = search.greatest_fitting(search.upper_bound(draw), draw, request.count_tokens(example));
    std::vector<RulerPrompt> all;
    for (int64_t i = 0; i < request.n_samples; ++i) all.push_back(search.draw_fitting(size, draw_with_example));
    return all;
}

}  // namespace

MakePrompts variable_prompts(const SubsetRequest& request) {
    return [&request](int64_t length) { return prompts_of_length(request, length); };
}

}  // namespace kvscope::engine::ruler
