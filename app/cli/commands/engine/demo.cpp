#include <filesystem>
#include <memory>

#include "app/cli/command.h"
#include "app/cli/engine/run_in_terminal.h"

namespace kvscope::cli::demo_file {
namespace {

std::function<int()> declare(CLI::App& app) {
    const auto folder = std::make_shared<std::filesystem::path>("kvscope-demo");
    const auto force = std::make_shared<bool>(false);
    app.add_option("folder", *folder, "Folder for the trace and the figures")
        ->type_name("FOLDER")
        ->capture_default_str();
    app.add_flag("--force", *force, "Replace a trace made with other settings");
    return [folder, force] { return run_demo_in_terminal(*folder, *force); };
}

}  // namespace
}  // namespace kvscope::cli::demo_file

namespace kvscope::cli {

Command demo_command() {
    using namespace demo_file;
    Command command{"demo", "Run twelve policies on the demo prompt, then draw figures and print a table",
                    "  kvscope demo", declare};
    command.hidden = true;
#ifndef KVSCOPE_WITH_GUI
    command.by_default = true;
#endif
    return command;
}

}  // namespace kvscope::cli
