#include "app/program/packaged_fonts.h"

#include <cstdlib>
#include <exception>
#include <filesystem>
#include <system_error>

#include "app/program/input_files.h"

namespace kvscope::program {

void use_packaged_fonts() {
    std::error_code error;
    if (std::filesystem::exists("/etc/fonts/fonts.conf", error)) return;
    try {
        constexpr int keep_existing = 0;
        setenv("FONTCONFIG_FILE", asset_path("fonts/fonts.conf").c_str(), keep_existing);
    } catch (const std::exception&) {
        // Commands that draw nothing work without fonts.
    }
}

}  // namespace kvscope::program
