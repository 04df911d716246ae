#include "app/gui/view/image_clipboard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

namespace kvscope::gui {
namespace {

struct ClipboardProgram {
    const char* package;
    std::vector<std::string> words;
};

ClipboardProgram program_for_clipboard() {
    const char* wayland = std::getenv("WAYLAND_DISPLAY");
    if (wayland && *wayland) return {"wl-clipboard", {"wl-copy", "--type", "image/png"}};
    return {"xclip", {"xclip", "-selection", "clipboard", "-target", "image/png"}};
}

}  // namespace

TemporaryPng::TemporaryPng() {
    std::string name = (std::filesystem::temp_directory_path() / "kvscope-XXXXXX.png").string();
    const int file = mkstemps(name.data(), 4);
    if (file < 0) throw std::runtime_error(name + " cannot be written, so the image was not copied");
    close(file);
    path_ = name;
}

TemporaryPng::~TemporaryPng() {
    std::error_code error;
    std::filesystem::remove(path_, error);
}

void copy_png_to_clipboard(const std::filesystem::path& png) {
    ClipboardProgram program = program_for_clipboard();
    std::vector<char*> words;
    for (auto& word : program.words) words.push_back(word.data());
    words.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, png.c_str(), O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    pid_t child = 0;
    const int error = posix_spawnp(&child, words.front(), &files, nullptr, words.data(), environ);
    posix_spawn_file_actions_destroy(&files);
    // Both programs read the image and fork a process that serves it, so that their parent exits immediately.
    int status = 0;
    const bool ended_well =
        error == 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (ended_well) return;
    const bool is_missing = error != 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 127);
    if (is_missing) {
        throw std::runtime_error(fmt::format(
            "copying images needs the program {}, which is missing: install the package {}, or export the view",
            program.words.front(), program.package));
    }
    throw std::runtime_error(
        fmt::format("{} could not copy the image; export the view instead", program.words.front()));
}

}  // namespace kvscope::gui
