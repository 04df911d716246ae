#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace kvscope::gui {

/// Asks for a file or folder in the window itself: a path to type, and the folder's contents to click.
class FileDialog {
 public:
    enum class Kind { open, open_folder_or_file, save };
    struct Question {
        Kind kind = Kind::open;
        std::string title;
        std::vector<std::string> extensions;  ///< ".h5"; empty: all files
        std::filesystem::path suggestion;     ///< a file name for `save`
        std::function<void(const std::filesystem::path&)> answer;
    };

    void ask(Question question);
    /// Once a frame.
    void draw();

 private:
    struct Entry {
        std::string name;
        bool is_folder;
        uintmax_t bytes;
    };
    void list_folder();

    Question question_;
    std::filesystem::path folder_;
    std::string typed_;
    std::string error_;
    std::vector<Entry> entries_;
    bool wanted_ = false;
    bool overwrite_confirmed_ = false;
};

/// "12.3 MB"
std::string bytes_text(double bytes);

}  // namespace kvscope::gui
