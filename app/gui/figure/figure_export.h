#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/figures/export_figure.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

/// Writes figures into files beside the window, one at a time on a worker, and says by notices what came of it.
class FigureExport {
 public:
    /// @param figure by name
    void start_one(const std::filesystem::path& file, const std::string& figure);
    /// Those of them that there is data for.
    void start_all(const std::filesystem::path& folder, std::vector<std::string> figures);
    bool is_running() const { return job_.has_value(); }

    /// Once a frame. @param request of a figure by name; @param file_name in the folder
    void go_on(Context& context, const figures::ExportOptions& options,
               const std::function<std::optional<FigureRequest>(const std::string& figure)>& request,
               const std::function<std::string(const std::string& figure)>& file_name);
    void draw_progress() const;

 private:
    struct Job {
        std::filesystem::path folder;   ///< of all figures; empty: `file`
        std::filesystem::path file;     ///< of one figure
        std::vector<std::string> left;  ///< figures yet to be written, the first is under way
        size_t n_all = 1;
        size_t n_written = 0;
        std::vector<std::string> problems;
        std::vector<std::string> left_out;  ///< that the trace cannot have, with the reason
    };
    /// What came of writing a figure.
    struct Written {
        std::string nothing;
    };
    void finish(Context& context);

    std::optional<Job> job_;
    int n_jobs_ = 0;
    TaskSlot<Written> written_;
};

}  // namespace kvscope::gui
