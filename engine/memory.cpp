#include "engine/memory.h"

#include <malloc.h>

#include <fstream>
#include <string>

namespace kvscope::engine {
namespace {

uint64_t status_bytes(const std::string& key) {
    std::ifstream status("/proc/self/status");
    std::string line;
    while (std::getline(status, line)) {
        if (line.rfind(key + ":", 0) == 0) return std::stoull(line.substr(key.size() + 1)) * 1024;
    }
    return 0;
}

}  // namespace

uint64_t resident_bytes() { return status_bytes("VmRSS"); }

uint64_t peak_resident_bytes() { return status_bytes("VmHWM"); }

bool reset_peak() {
    malloc_trim(0);
    std::ofstream file("/proc/self/clear_refs");
    file << "5" << std::flush;
    return file.good();
}

}  // namespace kvscope::engine
