#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/ranking_definition.h"
#include "app/gui/session/session.h"

namespace kvscope::gui {

/// A ranking of an open trace, as the session's choice has it.
struct RankingRequest {
    const Document* document = nullptr;  ///< nullptr: there is nothing to rank
    std::string why_not;                 ///< then in one line
    const analysis::RankingDefinition* definition = nullptr;
    std::vector<RunKey> runs;  ///< that it is made from
    analysis::RankingOptions options;
};

/// Of two runs: A and B (Session::compared); of any: those that are shown, of the trace in focus.
/// A ranking of a range is of the selected tokens. @param threshold not set: the ranking's own
RankingRequest ranking_request(const Session& session, const analysis::RankingDefinition& definition,
                               std::optional<double> threshold);

/// A ranking as a person looks at it, each cell as text.
struct RankedRows {
    uint64_t number = 0;  ///< its own
    std::string nothing;  ///< why there is none; empty where there is one
    std::string ranking;  ///< its name
    analysis::Ranking made;
    std::vector<std::vector<std::string>> texts;  ///< (rows, columns); tokens with their white space made visible
    std::vector<RunId> runs;                      ///< by their place in the trace's prompt, when it was made
    int document = -1;
    int prompt = 0;
};

/// Rows of it in the order and with the filter that a person chose.
struct OrderedRows {
    std::shared_ptr<const RankedRows> of;
    std::vector<size_t> rows;
    analysis::Table table;  ///< the same
};

/// How rows are ordered; without a column as they are ranked.
struct RowOrder {
    std::optional<size_t> column;
    bool descending = false;
    std::string filter;  ///< rows that have it in one of their texts; upper and lower ASCII letters are alike
};

/// Empty cells and NaN come last in either direction, and equal rows as they are ranked.
OrderedRows order_rows(std::shared_ptr<const RankedRows> of, const RowOrder& order);

/// The newest finished rows; while others are computed those of the same ranking and trace, as they were.
TaskResult<OrderedRows> ask_ranked_rows(Session& session, const TaskSlot<RankedRows>& ranked,
                                        const TaskSlot<OrderedRows>& ordered, const RankingRequest& request,
                                        const RowOrder& order);

/// A cursor of the rows' prompt, moved to what a row is of.
Cursor cursor_of(const Cursor& from, const RankedRows& rows, size_t row);

/// Whether a cursor is at what the row is of: its layer, head, step and some of its tokens; a run alone where it is of
/// no tokens.
bool is_at(const Cursor& cursor, const RankedRows& rows, size_t row);

}  // namespace kvscope::gui
