#include "app/cli/reproduce/reproduction_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>

#include "common/whole_file.h"

namespace kvscope::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* marker_name = "reproduction";

}  // namespace

ReproductionFolder::ReproductionFolder(const fs::path& path) {
    std::error_code error;
    const fs::path marker = path / marker_name;
    if (fs::exists(path, error) && !fs::is_directory(path, error))
        throw std::invalid_argument(path.string() + " is a file: choose a folder with -o");
    if (fs::is_directory(path, error) && !fs::is_empty(path, error) && !fs::exists(marker, error))
        throw std::invalid_argument(path.string() +
                                    " contains other files: choose a new folder with -o, or the folder of an earlier "
                                    "reproduction");
    fs::create_directories(path, error);
    marker_ = ::open(marker.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (marker_ < 0)
        throw FileNotWritten(fmt::format("{} cannot be written: {}. Choose another folder with -o", marker.string(),
                                         std::generic_category().message(errno)),
                             errno);
    if (::flock(marker_, LOCK_EX | LOCK_NB) != 0) {
        ::close(marker_);
        throw std::runtime_error(path.string() +
                                 " is used by another process: wait until it ends, or choose another "
                                 "folder with -o");
    }
}

ReproductionFolder::~ReproductionFolder() { ::close(marker_); }

}  // namespace kvscope::cli
