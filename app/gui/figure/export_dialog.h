#pragma once

#include <string>

#include "app/gui/view/file_dialog.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

/// What Session::csv_safe does, for a tooltip.
inline constexpr const char* csv_safe_words =
    "CSV and TSV files and copies have an apostrophe before texts that begin with =, +, -, @, a tab or a line break, "
    "so that no spreadsheet reads them as formulas. Remembered.";

/// Exports what a view shows, and copies its numbers; the same code and the same result as `kvscope export`.
class ExportDialog {
 public:
    using Notice = std::function<void(const std::string&, bool is_error)>;

    /// Where the exported file goes, in which form, is asked by the dialog. It is written beside the frames.
    static void ask(Session& session, const FigureRequest& request, FileDialog& files, const Notice& notice);
    /// The same for a table that is no figure.
    static void ask(Session& session, const analysis::Table& table, FileDialog& files, const Notice& notice);

    /// The figure as a PNG on the clipboard, as it is exported; of several pages the first. Made beside the frames.
    static void copy_image(Session& session, const FigureRequest& request, const Notice& notice);

    /// The figure's numbers on the clipboard. Made beside the frames.
    /// @param format as numbers() takes it @param name of the format, for a person
    static void copy_numbers(Session& session, const FigureRequest& request, const std::string& format,
                             const std::string& name, const Notice& notice);
    static void copy_numbers(const Session& session, const analysis::Table& table, const std::string& format,
                             const std::string& name, const Notice& notice);

    /// The figure's numbers, as text in a format of analysis::TableFormat ("csv", "md", "tex", "json", "tsv").
    /// @throws what the figure's definition throws
    static std::string numbers(const Session& session, const FigureRequest& request, const std::string& format);
    /// @param csv_safe as Session has it
    static std::string text(const analysis::Table& table, const std::string& format, bool csv_safe = false);
};

}  // namespace kvscope::gui
