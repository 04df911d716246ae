#include "common/file_text.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <vector>

namespace kvscope {

std::string file_text(const std::filesystem::path& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int error = file < 0 ? errno : 0;
    std::string text;
    std::vector<char> block(1 << 16);
    while (error == 0) {
        const ssize_t got = ::read(file, block.data(), block.size());
        if (got == 0) break;
        if (got > 0)
            text.append(block.data(), static_cast<size_t>(got));
        else if (errno != EINTR)
            error = errno;
    }
    if (file >= 0) ::close(file);
    if (error != 0) throw std::system_error(error, std::generic_category(), path.string());
    return text;
}

}  // namespace kvscope
