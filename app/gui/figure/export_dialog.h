#pragma once

#include <string>

#include "app/gui/view/file_dialog.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

inline constexpr const char* csv_safe_words =
    "In CSV and TSV, puts an apostrophe before texts that begin with =, +, -, @, a tab or a line break, so that no "
    "spreadsheet reads them as formulas. The setting is remembered.";

/// Exports a view's figure or copies its numbers, with the same results as `kvscope export`.
class ExportDialog {
 public:
    using Notice = std::function<void(const std::string&, bool is_error)>;

    /// Asks for a file, then writes the figure or table in a job.
    static void ask(Session& session, const FigureRequest& request, FileDialog& files, const Notice& notice);
    static void ask(Session& session, const analysis::Table& table, FileDialog& files, const Notice& notice);

    /// Copies the figure's first page to the clipboard as a PNG, made in a job.
    static void copy_image(Session& session, const FigureRequest& request, const Notice& notice);

    static void copy_numbers(Session& session, const FigureRequest& request, const std::string& format,
                             const std::string& name, const Notice& notice);
    static void copy_numbers(const Session& session, const analysis::Table& table, const std::string& format,
                             const std::string& name, const Notice& notice);

    /// Returns the figure's numbers as "csv", "md", "tex", "json" or "tsv". Throws like the figure's definition.
    [[nodiscard]] static std::string numbers(const Session& session, const FigureRequest& request,
                                             const std::string& format);
    [[nodiscard]] static std::string text(const analysis::Table& table, const std::string& format,
                                          bool csv_safe = false);
};

}  // namespace kvscope::gui
