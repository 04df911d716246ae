#include "kernels/cuda_library.h"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include "kernels/cuda/abi.h"

namespace kvscope::kernels::cuda {

namespace {

constexpr const char* library_file = "libkvscope_cuda.so";

std::vector<std::string> candidates() {
    if (const char* folder = std::getenv("KVSCOPE_CUDA_LIBRARY_DIR"); folder && *folder)
        return {std::string(folder) + "/" + library_file};
    std::vector<std::string> paths;
    std::error_code error;
    const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
    if (!error)
        for (const char* folder : {"", "../lib/kvscope", "../lib"})
            paths.push_back((program.parent_path() / folder / library_file).lexically_normal());
    paths.emplace_back(library_file);  // searched in the program's run path and the system folders
    return paths;
}

struct Library {
    void* handle = nullptr;
    std::string reason;

    Library() {
        if (!dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)) {
            reason = "no NVIDIA driver: libcuda.so.1 was not found; install the driver";
            return;
        }
        open();
        if (handle) reason = probe();
    }

    void open() {
        std::string tried;
        for (const std::string& path : candidates()) {
            std::error_code error;
            const bool is_path = path.find('/') != std::string::npos;
            if (is_path && !std::filesystem::exists(path, error)) {
                tried += "\n  " + path;
                continue;
            }
            handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
            if (handle) return;
            const char* why = dlerror();
            if (is_path) {
                reason = path + " could not be loaded: " + (why ? why : "unknown error");
                return;
            }
            tried += "\n  " + path + " in the dynamic linker's search path";
        }
        reason = std::string(library_file) +
                 " was not found. Build it with nvcc (cmake preset cuda), or, if it is in another folder, set "
                 "KVSCOPE_CUDA_LIBRARY_DIR to that folder. Searched for:" +
                 tried;
    }

    std::string probe() const {
        const auto version = reinterpret_cast<abi::Version*>(dlsym(handle, abi::version_symbol));
        const auto probe = reinterpret_cast<abi::Probe*>(dlsym(handle, abi::probe_symbol));
        if (!version || !probe || version() != abi::abi_version)
            return std::string(library_file) + " belongs to another version of kvscope; build it again";
        std::array<char, 512> message{};
        if (!probe(message.data(), message.size()))
            return std::string("no usable GPU: ") + message.data() + ". Check nvidia-smi";
        return {};
    }
};

const Library& library() {
    static const Library opened;
    return opened;
}

}  // namespace

const std::string& unavailable_reason() { return library().reason; }

void* find_library_function(const char* name) {
    if (!available()) throw Unavailable("the device cuda is not available: " + unavailable_reason());
    void* found = dlsym(library().handle, name);
    if (!found)
        throw Unavailable(std::string("the device cuda is not available: ") + library_file + " has no " + name +
                          "; build it again");
    return found;
}

}  // namespace kvscope::kernels::cuda
