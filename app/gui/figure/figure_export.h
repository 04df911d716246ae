#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/figures/figure_format.h"
#include "app/gui/view/file_dialog.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

/// A figure as it is when a person asks for its file: what is selected or closed afterwards does not change it.
struct FigureForFile {
    /// Throws analysis::NothingToShow when it is made where the session has no such figure.
    /// @param request nullopt: there is none, for the reason `nothing`
    FigureForFile(const Session& session, const analysis::FigureDefinition& definition,
                  const std::optional<FigureRequest>& request, const std::string& nothing, std::string file_name);

    std::string figure;  ///< its name
    std::string file_name;
    bool may_have_pages;  ///< as FigureDefinition has it
    figures::Exported what;
};

/// Asks where figures go, and writes them beside the frames, one after the other. What was begun goes on to its end
/// when this is gone, and a notice says then what came of it.
class FigureExport {
 public:
    using Notice = std::function<void(const std::string&, bool is_error)>;

    /// @param asker of the view whose member this is
    void ask_for_file(Tasks& tasks, FileDialog& files, const FigureForFile& figure,
                      const figures::ExportOptions& options, const Notice& notice, const LifetimeWatch& asker);
    /// Figures that there is no data for are left out.
    /// @param suggestion name of a new folder
    void ask_for_folder(Tasks& tasks, FileDialog& files, const std::string& suggestion,
                        const std::vector<FigureForFile>& figures, const figures::ExportOptions& options,
                        const Notice& notice, const LifetimeWatch& asker);

    bool is_running() const;
    /// How far it is, with a button that cancels it; nothing where none is running.
    void draw_progress();

 private:
    struct Job;
    struct Result;
    void start(Tasks& tasks, const std::filesystem::path& folder, std::vector<std::filesystem::path> paths,
               const std::vector<FigureForFile>& figures, const figures::ExportOptions& options, const Notice& notice);

    std::shared_ptr<Job> job_;  ///< shared with what is to be done of it
};

}  // namespace kvscope::gui
