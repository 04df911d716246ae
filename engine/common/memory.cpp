#include "engine/common/memory.h"

#include <malloc.h>

#include <fstream>
#include <string>

namespace kvscope::engine {
namespace {

/// Of a file of lines "key:  number kB".
uint64_t bytes_of(const char* file, const std::string& key) {
    std::ifstream status(file);
    std::string line;
    while (std::getline(status, line)) {
        if (line.rfind(key + ":", 0) == 0) return std::stoull(line.substr(key.size() + 1)) * 1024;
    }
    return 0;
}

}  // namespace

uint64_t resident_bytes() { return bytes_of("/proc/self/status", "VmRSS"); }

uint64_t available_bytes() { return bytes_of("/proc/meminfo", "MemAvailable"); }

uint64_t peak_resident_bytes() { return bytes_of("/proc/self/status", "VmHWM"); }

bool reset_peak() {
    malloc_trim(0);
    std::ofstream file("/proc/self/clear_refs");
    file << "5" << std::flush;
    return file.good();
}

}  // namespace kvscope::engine
