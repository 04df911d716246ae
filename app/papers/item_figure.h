#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "analysis/drawing/figure_definition.h"
#include "app/papers/paper.h"
#include "trace/reader.h"

namespace kvscope::papers {

/// Returns the options of an item's figure. @throws std::invalid_argument for an option that figures do not have, or a
/// malformed value
[[nodiscard]] analysis::FigureOptions figure_options(const PaperItem& item);

/// Returns `given` with the item's values for all options that are not given.
[[nodiscard]] analysis::FigureOptions with_options_of_item(analysis::FigureOptions given, const PaperItem& item);

/// Returns the renames of the item for runs that at least one of the traces has.
[[nodiscard]] std::vector<std::string> known_renames(const PaperItem& item, const std::vector<trace::Reader>& readers);

/// A trace with the labels and options of an item.
struct ItemTrace {
    trace::Reader reader;
    analysis::FigureOptions options;
};

/// @throws as figure_options()
[[nodiscard]] ItemTrace trace_of_item(const trace::Reader& reader, const PaperItem& item);

/// Returns why the trace cannot have the item's figure, or an empty text.
[[nodiscard]] std::string why_no_item(const PaperItem& item, const trace::Reader& reader);

/// Returns the command that draws the item, for a POSIX shell.
[[nodiscard]] std::string command_of_item(const PaperItem& item, const std::filesystem::path& trace,
                                          const std::filesystem::path& output);

}  // namespace kvscope::papers
