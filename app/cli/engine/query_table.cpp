#include "app/cli/engine/query_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "analysis/five_numbers.h"
#include "engine/pseudo_tokens.h"
#include "engine/query_alignment.h"

namespace kvscope::cli {
namespace {

using analysis::Cell;
using analysis::ColumnType;
using engine::PseudoTokens;
using Content = engine::PseudoTokens::Content;

constexpr std::string_view phrase = "Sorry, I don't know. ";

struct Condition {
    PseudoTokens tokens;
    int n_tails = 1;
};

std::vector<Condition> conditions_of(int64_t n_prompt, const QueryTableOptions& options) {
    std::vector<Condition> conditions = {
        {{Content::answer, n_prompt}}, {{Content::phrase, n_prompt}}, {{Content::answer, 0}}, {{Content::phrase, 0}}};
    if (options.n_trials > 0) {
        const int64_t near = std::min<int64_t>(n_prompt, 100);
        conditions.push_back({{Content::vocabulary, n_prompt}, options.n_trials});
        for (const Content content : {Content::answer, Content::vocabulary}) {
            for (const int64_t range : {n_prompt, near})
                conditions.push_back({{.content = content, .drawn_below = range}, options.n_trials});
        }
    }
    for (int64_t i = 0; i < options.n_offsets; ++i) {
        const int64_t steps = std::max<int64_t>(options.n_offsets - 1, 1);
        conditions.push_back({{Content::answer, options.n_offsets == 1 ? n_prompt : n_prompt * i / steps}});
    }
    return conditions;
}

std::string text_of(Content content) {
    switch (content) {
        case Content::answer:
            return "the answer";
        case Content::phrase:
            return "phrase";
        case Content::vocabulary:
            return "vocabulary";
    }
    return "";
}

std::vector<Cell> cells_of(const engine::Prompt& prompt, const engine::QueryAlignment& alignment,
                           const Condition& condition, std::span<const engine::QuerySimilarity> similarities) {
    const PseudoTokens& tokens = condition.tokens;
    const auto length = static_cast<int64_t>(alignment.answer().size());
    const bool same_place = tokens.drawn_below == 0 && tokens.start == alignment.n_prompt();
    std::vector<Cell> cells = {
        prompt.name,
        alignment.n_prompt(),
        fmt::format("{} & {}", tokens.content == Content::answer ? "SC" : "DC", same_place ? "SP" : "DP"),
        text_of(tokens.content),
        tokens.drawn_below > 0 ? fmt::format("{} of 0–{}", length, std::max(tokens.drawn_below, length) - 1)
                               : fmt::format("{}–{}", tokens.start, tokens.start + length - 1),
        int64_t{condition.n_tails}};
    std::vector<Cell> boxes;
    for (const auto rope : {&engine::QuerySimilarity::after_rope, &engine::QuerySimilarity::before_rope}) {
        std::vector<double> values;
        double sum = 0;
        for (const auto& similarity : similarities) {
            values.push_back(similarity.*rope);
            sum += values.back();
        }
        cells.emplace_back(sum / static_cast<double>(values.size()));
        if (values.size() < 2) {
            boxes.resize(boxes.size() + 5);
            continue;
        }
        const auto five = analysis::five_numbers(values);
        boxes.insert(boxes.end(), {five.min, five.lower_quartile, five.median, five.upper_quartile, five.max});
    }
    cells.insert(cells.end(), boxes.begin(), boxes.end());
    return cells;
}

}  // namespace

analysis::Table query_table(const engine::Model& model, std::span<const engine::Prompt> prompts,
                            const QueryTableOptions& options, engine::Progress& progress) {
    analysis::Table table;
    table.name = "queries";
    table.title = "Cosine of pseudo tokens' queries with those of the true answer, mean over tokens, heads and layers";
    table.columns = {{"prompt", "Prompt", "", ColumnType::text},
                     {"n_tokens", "Tokens", "", ColumnType::integer},
                     {"condition", "Condition", "", ColumnType::text},
                     {"content", "Content", "", ColumnType::text},
                     {"positions", "Positions", "", ColumnType::text},
                     {"trials", "Trials", "", ColumnType::integer},
                     {"after_rope", "After RoPE", "", ColumnType::real, 4},
                     {"before_rope", "Before RoPE", "", ColumnType::real, 4}};
    for (const char* rope : {"after", "before"}) {
        for (const char* number : {"min", "q1", "median", "q3", "max"})
            table.columns.push_back(
                {fmt::format("{}_{}", rope, number), fmt::format("{} {}", rope, number), "", ColumnType::real, 4});
    }
    const auto phrase_ids = model.tokenizer().encode(phrase, false, false);
    for (const engine::Prompt& prompt : prompts) {
        engine::QueryAlignment alignment(model.transformer(), prompt.ids, model.end_ids(), options.n_answer, progress);
        progress.message(fmt::format("{}: {} tokens, answer of {}: {}", prompt.name, alignment.n_prompt(),
                                     alignment.answer().size(), model.answer_text(alignment.answer())));
        const engine::PseudoSource source{alignment.answer(), phrase_ids, model.transformer().config().vocab_size,
                                          options.seed};
        const auto conditions = conditions_of(alignment.n_prompt(), options);
        std::vector<engine::Tail> tails;
        for (const Condition& condition : conditions) {
            auto of_condition = engine::tails_of(condition.tokens, source, condition.n_tails);
            std::move(of_condition.begin(), of_condition.end(), std::back_inserter(tails));
        }
        const auto similarities = alignment.similarity(tails, progress);
        size_t first = 0;
        for (const Condition& condition : conditions) {
            const auto n = static_cast<size_t>(condition.n_tails);
            table.rows.push_back({cells_of(prompt, alignment, condition, std::span(similarities).subspan(first, n))});
            first += n;
        }
    }
    return table;
}

}  // namespace kvscope::cli
