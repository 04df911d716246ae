#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "app/figures/figure_format.h"
#include "app/gui/view/file_dialog.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

/// A figure with its data at the time of the export command.
struct FigureForFile {
    /// @param request without a request, an export throws analysis::NothingToShow with the message `nothing`
    FigureForFile(const Session& session, const analysis::FigureDefinition& definition,
                  const std::optional<FigureRequest>& request, const std::string& nothing, std::string file_name);

    std::string figure;
    std::string file_name;
    bool may_have_pages;  ///< see FigureDefinition
    std::function<figures::Exported(const std::stop_token&)> what;
};

/// Asks for the destination of figures and writes them in jobs, which may outlive this object.
class FigureExport {
 public:
    /// @param asker lifetime of the view that owns this object
    void ask_for_file(Tasks& tasks, FileDialog& files, const FigureForFile& figure,
                      const figures::ExportOptions& options, const Notice& notice, const LifetimeWatch& asker);
    /// Asks for a folder. Figures without data are omitted. @param suggestion name for a new folder
    void ask_for_folder(Tasks& tasks, FileDialog& files, const std::string& suggestion,
                        const std::vector<FigureForFile>& figures, const figures::ExportOptions& options,
                        const Notice& notice, const LifetimeWatch& asker);

    [[nodiscard]] bool is_running() const;
    void draw_progress();

 private:
    struct Job;
    struct Result;
    void start(Tasks& tasks, const std::filesystem::path& folder, std::vector<std::filesystem::path> paths,
               const std::vector<FigureForFile>& figures, const figures::ExportOptions& options, const Notice& notice);

    std::shared_ptr<Job> job_;  ///< shared with the running jobs
};

}  // namespace kvscope::gui
