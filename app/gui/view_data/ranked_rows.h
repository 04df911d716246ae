#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "analysis/ranking.h"
#include "app/gui/session/session.h"

namespace kvscope::gui {

struct RankingRequest {
    const Document* document = nullptr;  ///< nullptr if nothing can be ranked
    std::string why_not;                 ///< one line that says why nothing can be ranked
    const analysis::FigureDefinition* definition = nullptr;
    std::vector<RunKey> runs;  ///< the runs that are ranked or compared
    analysis::FigureOptions options;
};

/// Builds the request for a ranking of A and B (Session::compared) or of the shown runs of the trace in focus.
/// A ranking of task results ranks those of `samples.document`, or of the first trace with results.
/// @param threshold unset for the ranking's default
[[nodiscard]] RankingRequest ranking_request(const Session& session, const analysis::FigureDefinition& definition,
                                             std::optional<double> threshold, const WantedSamples& samples = {});

/// The ascending order of a column. Equal cells have equal places.
struct ColumnOrder {
    static constexpr std::uint32_t unknown = 0xFFFFFFFF;  ///< place of an empty or unknown cell
    std::vector<std::uint32_t> places;                    ///< by row
};

struct RankedRows {
    uint64_t number = 0;  ///< unique id, for use in stamps
    std::string nothing;  ///< why there is no ranking; empty if there is one
    std::string ranking;  ///< name of the ranking
    analysis::Ranking made;
    std::vector<RunId> runs;  ///< ids of the runs by index in the trace's prompt
    int document = -1;
    int prompt = 0;

    /// Returns a cell as one line of text, with visible white space in tokens.
    [[nodiscard]] std::string text(size_t row, size_t column) const;

    /// Returns the order of a column, which is computed only once. Several threads may call this.
    [[nodiscard]] const ColumnOrder& order(size_t column) const;

    struct Orders {
        std::mutex mutex;
        std::map<size_t, ColumnOrder> by_column;
    };
    std::shared_ptr<Orders> orders = std::make_shared<Orders>();
};

struct OrderedRows {
    std::shared_ptr<const RankedRows> of;
    std::vector<size_t> rows;

    /// Returns the rows in this order.
    [[nodiscard]] analysis::Table table() const;
};

/// Order and filter of rows. Without `column`, rows keep the order of the ranking.
struct RowOrder {
    std::optional<size_t> column;
    bool descending = false;
    std::string filter;  ///< keeps rows in which a cell contains this text; ignores ASCII case
};

/// Filters and sorts rows. Empty cells and NaN come last in both directions.
[[nodiscard]] OrderedRows filter_and_sort_rows(std::shared_ptr<const RankedRows> of, const RowOrder& order);

[[nodiscard]] TaskResult<OrderedRows> ask_ranked_rows(Session& session, const TaskSlot<RankedRows>& ranked,
                                                      const TaskSlot<OrderedRows>& ordered,
                                                      const RankingRequest& request, const RowOrder& order);

[[nodiscard]] Cursor cursor_at_row(const Cursor& from, const RankedRows& rows, size_t row);

/// Whether a cursor is at the place that a row describes. The run must be the same only if the row has no tokens.
[[nodiscard]] bool is_cursor_at_row(const Cursor& cursor, const RankedRows& rows, size_t row);

}  // namespace kvscope::gui
