#include "app/gui/view_data/ranked_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "app/gui/view_data/cell_text.h"
#include "app/gui/view_data/prompt_text.h"
#include "common/lower_case.h"
#include "common/unique_id.h"

namespace kvscope::gui {
namespace {

using analysis::Cell;
using analysis::RankedSubject;

RankingRequest no_ranking(std::string why) {
    RankingRequest request;
    request.why_not = std::move(why);
    return request;
}

RankingRequest of_pair(const Session& session) {
    const auto [a, b] = session.compared();
    if (!a.valid() || !b.valid() || a == b)
        return no_ranking("Choose two runs as A and B, above or with the letters next to each run in Runs.");
    if (a.document != b.document || a.prompt != b.prompt)
        return no_ranking(
            "A and B belong to different prompts, but this ranking compares two runs of one prompt. Choose another A "
            "or B.");
    RankingRequest request;
    request.document = session.document(a);
    request.runs = {a, b};
    return request;
}

bool has_samples_or_prompts(const trace::Reader& reader) {
    return reader.n_prompts() > 0 || !reader.result_tasks().empty() ||
           reader.has_results(trace::schema::root::prompt_results);
}

RankingRequest of_samples(const Session& session, const analysis::FigureDefinition& definition,
                          const WantedSamples& samples) {
    RankingRequest request;
    request.definition = &definition;
    const auto has_samples = [](const Document* document) {
        return document && has_samples_or_prompts(*document->reader());
    };
    request.document = session.document(samples.document);
    if (!has_samples(request.document)) request.document = session.focus();
    for (const auto& document : session.documents())
        if (!has_samples(request.document)) request.document = document.get();
    if (!has_samples(request.document))
        return no_ranking("No open trace has samples or prompts. Start a run in the view Run, or with `kvscope eval`.");
    if (!samples.runs.empty()) request.options.runs.emplace_back(samples.runs);
    return request;
}

std::string shown_cell(const analysis::Column& column, const Cell& cell) {
    const auto* text = std::get_if<SharedText>(&cell);
    if (!text) return cell_text(column, cell);
    if (analysis::is_token_column(column)) return shown_token(*text);
    std::string line = text->string();
    std::ranges::replace_if(
        line, [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
    return line;
}

RankedRows ranked_rows(const trace::Reader& reader, const analysis::FigureDefinition& definition,
                       const analysis::FigureOptions& options) {
    RankedRows rows;
    rows.number = unique_id();
    rows.ranking = definition.name;
    rows.prompt = options.prompt;
    try {
        rows.made = analysis::make_ranking(definition, reader, options);
    } catch (const analysis::NothingToShow& why) {
        rows.nothing = why.what();
    } catch (const analysis::FigureError& why) {
        rows.nothing = why.what();
    }
    return rows;
}

/// Sets the places of rows that are sorted by `less`.
template <class Key, class Less>
void set_places(std::vector<Key>& keys, std::vector<std::uint32_t>& places, const Less& less) {
    std::ranges::sort(keys, less);
    std::uint32_t place = 0;
    for (size_t i = 0; i < keys.size(); ++i) {
        if (i > 0 && less(keys[i - 1], keys[i])) ++place;
        places[keys[i].second] = place;
    }
}

/// Returns the place of each row's cell in the ascending order of a column's texts. Equal texts, of which most columns
/// have many, are compared once.
ColumnOrder order_of_texts(const std::vector<analysis::Row>& rows, size_t column) {
    std::unordered_map<std::string_view, std::uint32_t> numbers;
    std::vector<std::uint32_t> number_of_row(rows.size(), ColumnOrder::unknown);
    std::vector<std::pair<std::string_view, size_t>> texts;
    for (size_t row = 0; row < rows.size(); ++row) {
        const auto* text = std::get_if<SharedText>(&rows[row].cells[column]);
        if (!text || text->empty()) continue;
        const auto [known, is_new] = numbers.try_emplace(*text, static_cast<std::uint32_t>(texts.size()));
        if (is_new) texts.emplace_back(*text, texts.size());
        number_of_row[row] = known->second;
    }
    std::vector<std::uint32_t> place_of_text(texts.size());
    set_places(texts, place_of_text, [](const auto& a, const auto& b) { return a.first < b.first; });
    ColumnOrder order{std::move(number_of_row)};
    for (std::uint32_t& place : order.places)
        if (place != ColumnOrder::unknown) place = place_of_text[place];
    return order;
}

ColumnOrder order_of_numbers(const std::vector<analysis::Row>& rows, size_t column) {
    ColumnOrder order{std::vector<std::uint32_t>(rows.size(), ColumnOrder::unknown)};
    std::vector<std::pair<double, size_t>> numbers;
    for (size_t row = 0; row < rows.size(); ++row)
        if (const auto number = number_in_cell(rows[row].cells[column])) numbers.emplace_back(*number, row);
    set_places(numbers, order.places, [](const auto& a, const auto& b) { return a.first < b.first; });
    return order;
}

/// Sorts rows by their places. Equal rows keep their order, and rows with unknown cells come last.
void sort_rows(std::vector<size_t>& rows, const ColumnOrder& order, bool descending) {
    size_t n_places = 0;
    for (const std::uint32_t place : order.places)
        if (place != ColumnOrder::unknown) n_places = std::max(n_places, size_t{place} + 1);
    const auto place_of = [&](size_t row) -> size_t {
        const std::uint32_t place = order.places[row];
        if (place == ColumnOrder::unknown) return n_places;
        return descending ? n_places - 1 - place : place;
    };
    std::vector<size_t> first(n_places + 2);  // number of rows with smaller places
    for (const size_t row : rows) ++first[place_of(row) + 1];
    std::partial_sum(first.begin(), first.end(), first.begin());
    std::vector<size_t> sorted(rows.size());
    for (const size_t row : rows) sorted[first[place_of(row)]++] = row;
    rows = std::move(sorted);
}

}  // namespace

RankingRequest ranking_request(const Session& session, const analysis::FigureDefinition& definition,
                               std::optional<double> threshold, const WantedSamples& samples) {
    RankingRequest request;
    if (definition.runs_are_settings) return of_samples(session, definition, samples);
    if (analysis::compares_two_runs(definition)) {
        request = of_pair(session);
    } else {
        request.document = session.focus();
        if (definition.shown_runs) {
            const auto shown = session.visible_runs();
            const auto is_of_it = [&](const RunKey& key) {
                return request.document && key.document == request.document->id();
            };
            // If the trace in focus has no shown run, uses the trace of the first shown run.
            if (!shown.empty() && std::ranges::none_of(shown, is_of_it))
                request.document = session.document(shown.front());
            std::ranges::copy_if(shown, std::back_inserter(request.runs), is_of_it);
        }
        if (request.document && definition.shown_runs && request.runs.empty())
            request = no_ranking("No compressed run is shown. Tick runs in Runs.");
    }
    request.definition = &definition;
    if (!request.document) return request;
    if (request.document->prompt >= request.document->reader()->n_prompts())
        return no_ranking("The trace has no prompt yet.");
    request.options.prompt = request.document->prompt;
    for (const RunKey& key : request.runs) request.options.runs.emplace_back(session.at(key).run);
    if (threshold && analysis::find_option(definition, "threshold"))
        request.options.own["threshold"] = fmt::format("{}", *threshold);
    if (analysis::find_option(definition, "mark")) {
        if (session.mark.empty())
            return no_ranking("Type a text into the field “mark” of the Prompt view to list its occurrences.");
        request.options.own["mark"] = session.mark;
    }
    const Cursor selected = session.cursor();
    const bool is_here =
        selected.run.document == request.document->id() && selected.run.prompt == request.options.prompt;
    const int64_t n_tokens = request.document->reader()->prompt(request.options.prompt).visible_tokens();
    if (analysis::find_option(definition, "tokens") && is_here && selected.has_tokens()) {
        if (selected.first_token >= n_tokens)
            return no_ranking(
                "The selected tokens belong to the question, which policies do not see. Select tokens of the context.");
        request.options.tokens = {selected.first_token, std::min(selected.last_token, n_tokens - 1)};
    }
    return request;
}

std::string RankedRows::text(size_t row, size_t column) const {
    return shown_cell(made.table.columns[column], made.table.rows[row].cells[column]);
}

analysis::Table OrderedRows::table() const {
    const analysis::Table& all = of->made.table;
    analysis::Table ordered{all.name, all.title, all.columns, {}};
    for (const size_t row : rows) ordered.rows.push_back(all.rows[row]);
    return ordered;
}

const ColumnOrder& RankedRows::order(size_t column) const {
    const std::lock_guard lock(orders->mutex);
    const auto [known, is_new] = orders->by_column.try_emplace(column);
    if (is_new) {
        const std::vector<analysis::Row>& rows = made.table.rows;
        const bool are_texts = std::ranges::any_of(
            rows, [&](const analysis::Row& row) { return std::holds_alternative<SharedText>(row.cells[column]); });
        known->second = are_texts ? order_of_texts(rows, column) : order_of_numbers(rows, column);
    }
    return known->second;
}

OrderedRows filter_and_sort_rows(std::shared_ptr<const RankedRows> of, const RowOrder& order) {
    OrderedRows out;
    const analysis::Table& all = of->made.table;
    const std::string wanted = lower_case(order.filter);
    for (size_t row = 0; row < all.rows.size(); ++row) {
        bool has_text = wanted.empty();
        for (size_t column = 0; !has_text && column < all.columns.size(); ++column)
            has_text = lower_case(of->text(row, column)).find(wanted) != std::string::npos;
        if (has_text) out.rows.push_back(row);
    }
    if (order.column && *order.column < all.columns.size())
        sort_rows(out.rows, of->order(*order.column), order.descending);
    out.of = std::move(of);
    return out;
}

TaskResult<OrderedRows> ask_ranked_rows(Session& session, const TaskSlot<RankedRows>& ranked,
                                        const TaskSlot<OrderedRows>& ordered, const RankingRequest& request,
                                        const RowOrder& order) {
    const Document& document = *request.document;
    std::string stamp = fmt::format("{} {} {} {} {}", request.definition->name, document.id(), document.stamp(),
                                    document.prompt, document.runs_stamp(document.prompt));
    if (const auto& tokens = request.options.tokens) stamp += fmt::format(" t{}-{}", tokens->first, tokens->last);
    for (const RunKey& key : request.runs) stamp += " " + key.text();
    for (const analysis::RunChoice& choice : request.options.runs)
        if (const auto* name = std::get_if<std::string>(&choice)) stamp += " run " + *name;
    for (const auto& [option, text] : request.options.own) stamp += fmt::format(" {}={}", option, text);
    const auto rows =
        session.tasks.ask(ranked, "", stamp,
                          [reader = document.reader(), definition = request.definition, options = request.options,
                           runs = document.runs(document.prompt), id = document.id()](const std::stop_token& stop) {
                              RankedRows made = ranked_rows(reader->with_stop(stop), *definition, options);
                              made.runs = runs;
                              made.document = id;
                              return made;
                          });
    if (!rows.value || !rows.error.empty()) return {nullptr, rows.error, rows.current};
    // Do not show rows of another ranking, trace or prompt while the new rows are computed.
    if (rows.value->ranking != request.definition->name || rows.value->document != document.id() ||
        rows.value->prompt != document.prompt)
        return {};
    const std::string order_stamp =
        fmt::format("{} {} {} {}", rows.value->number, order.column ? static_cast<int64_t>(*order.column) : -1,
                    order.descending, order.filter);
    auto answer = session.tasks.ask(ordered, "", order_stamp,
                                    [of = rows.value, order] { return filter_and_sort_rows(of, order); });
    if (answer.value && (answer.value->of->ranking != request.definition->name ||
                         answer.value->of->document != document.id() || answer.value->of->prompt != document.prompt))
        return {};
    answer.current = answer.current && rows.current;
    return answer;
}

Cursor cursor_at_row(const Cursor& from, const RankedRows& rows, size_t row) {
    const RankedSubject& of = rows.made.of.at(row);
    const analysis::Subject& subject = of.subject;
    Cursor cursor = from;
    if (subject.run >= 0 && static_cast<size_t>(subject.run) < rows.runs.size())
        cursor.run = {rows.document, rows.prompt, rows.runs[static_cast<size_t>(subject.run)]};
    if (subject.layer >= 0) cursor.layer = subject.layer;
    if (subject.head >= 0) {
        cursor.kv_head = subject.head;
        cursor.query_head = -1;
    }
    if (subject.token >= 0) {
        cursor.first_token = subject.token;
        cursor.last_token = std::max(of.last_token, subject.token);
    }
    if (subject.step >= 0) cursor.step = subject.step;
    return cursor;
}

bool is_cursor_at_row(const Cursor& cursor, const RankedRows& rows, size_t row) {
    const RankedSubject& of = rows.made.of.at(row);
    const analysis::Subject& subject = of.subject;
    if (cursor.run.document != rows.document || cursor.run.prompt != rows.prompt) return false;
    if (subject.layer >= 0 && cursor.layer != subject.layer) return false;
    if (subject.head >= 0 && cursor.kv_head != subject.head) return false;
    if (subject.step >= 0 && cursor.step != subject.step) return false;
    if (subject.token >= 0)
        return cursor.has_tokens() && cursor.first_token <= std::max(of.last_token, subject.token) &&
               cursor.last_token >= subject.token;
    const auto run = static_cast<size_t>(subject.run);
    return subject.run < 0 || (run < rows.runs.size() && cursor.run.run == rows.runs[run]);
}

}  // namespace kvscope::gui
