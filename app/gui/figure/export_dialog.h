#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/figures/figure_format.h"
#include "app/gui/view/file_dialog.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

inline constexpr const char* csv_safe_words =
    "In CSV and TSV, puts an apostrophe before texts that begin with =, +, -, @, a tab or a line break, so that no "
    "spreadsheet reads them as formulas. The setting is remembered.";

/// Exports a view's figure or copies its numbers, with the same results as `kvscope export`.
class ExportDialog {
 public:
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

/// Returns the question whether these existing files may be replaced, or an empty text if there are none.
[[nodiscard]] std::string overwrite_question(const std::vector<std::filesystem::path>& there);

/// Returns why the extension cannot be used, or an empty text. @param is_picture false if the output is only a table
[[nodiscard]] std::string problem_with_ending(const std::filesystem::path& path, bool is_picture);

/// Writes a figure or its numbers. The extension sets the format and may also be .tsv. @returns the written files
/// @throws std::runtime_error if a file exists that is not in `confirmed`; also throws like figures::export_figure
std::vector<std::filesystem::path> write_exported(const figures::Exported& what, const std::filesystem::path& path,
                                                  const figures::ExportOptions& options,
                                                  const std::vector<std::filesystem::path>& confirmed);

/// Returns "x.pdf written", or the number of pages with the first and last file. @param files must not be empty
[[nodiscard]] std::string describe_written_files(const std::vector<std::filesystem::path>& files);

/// Returns the table with tabs between cells. Tabs and line breaks in cells become spaces.
[[nodiscard]] std::string tab_separated(const analysis::Table& table);

}  // namespace kvscope::gui
