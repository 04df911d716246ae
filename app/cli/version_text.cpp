#include "app/cli/version_text.h"

#include <cairo.h>
#include <fmt/format.h>
#include <hdf5.h>

#include <fstream>

#include "app/program/version.h"
#include "kernels/cpu_features.h"

namespace kvscope::cli {
namespace {

std::string processor_name() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);)
        if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
    return "unknown processor";
}

}  // namespace

std::string version_text() {
    unsigned major = 0;
    unsigned minor = 0;
    unsigned release = 0;
    H5get_libversion(&major, &minor, &release);
    const std::string libraries =
        fmt::format("{}, HDF5 {}.{}.{}, cairo {}", KVSCOPE_LIBRARIES, major, minor, release, cairo_version_string());
    return fmt::format("kvscope {} (commit {})\n{}\n{}: {} kernels", program::version(), program::commit(), libraries,
                       processor_name(), kernels::name_of(kernels::simd_level()));
}

}  // namespace kvscope::cli
