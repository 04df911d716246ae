#include "app/gui/window/crash_log.h"

#include <cxxabi.h>
#include <elf.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>

#include "app/program/version.h"

namespace kvscope::gui {

namespace {

/// Symbol table of the running program, with static functions. After open(), it neither allocates nor locks, so that
/// signal handlers can use it.
class ProgramSymbols {
 public:
    struct Found {
        const char* name = nullptr;  ///< mangled name; nullptr: unknown
        size_t offset = 0;           ///< distance of the address from the start of the function, bytes
    };

    /// Maps the executable into memory. If this fails or the file is stripped, find() finds nothing.
    void open();
    [[nodiscard]] Found find(const void* address) const;

 private:
    const unsigned char* file_ = nullptr;
    size_t size_ = 0;
    uintptr_t bias_ = 0;  ///< address in memory minus address in the file
    size_t symbols_ = 0;  ///< offset in the file
    size_t n_symbols_ = 0;
    size_t names_ = 0;  ///< offset in the file
};

/// Stores the load address of the first entry, which is the program itself, and ends the iteration.
int take_bias(dl_phdr_info* info, size_t, void* bias) {
    *static_cast<uintptr_t*>(bias) = info->dlpi_addr;
    return 1;
}

template <class T>
T read_at(const unsigned char* file, size_t place) {
    T value{};
    std::memcpy(&value, file + place, sizeof(T));
    return value;
}

void ProgramSymbols::open() {
    dl_iterate_phdr(take_bias, &bias_);
    const int file = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct stat status {};
    if (file < 0) return;
    if (fstat(file, &status) == 0) size_ = static_cast<size_t>(status.st_size);
    void* mapped = size_ > sizeof(ElfW(Ehdr)) ? mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
    close(file);
    if (mapped == MAP_FAILED) return;
    file_ = static_cast<const unsigned char*>(mapped);
    const auto header = read_at<ElfW(Ehdr)>(file_, 0);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return;
    const auto section = [&](size_t i) { return read_at<ElfW(Shdr)>(file_, header.e_shoff + i * sizeof(ElfW(Shdr))); };
    if (header.e_shoff + header.e_shnum * sizeof(ElfW(Shdr)) > size_) return;
    for (size_t i = 0; i < header.e_shnum; ++i) {
        const auto table = section(i);
        if (table.sh_type != SHT_SYMTAB || table.sh_link >= header.e_shnum) continue;
        const auto names = section(table.sh_link);
        if (table.sh_offset + table.sh_size > size_ || names.sh_offset + names.sh_size > size_) continue;
        symbols_ = table.sh_offset;
        n_symbols_ = table.sh_size / sizeof(ElfW(Sym));
        names_ = names.sh_offset;
    }
}

ProgramSymbols::Found ProgramSymbols::find(const void* address) const {
    const uintptr_t wanted = reinterpret_cast<uintptr_t>(address) - bias_;
    for (size_t i = 0; i < n_symbols_; ++i) {
        const auto symbol = read_at<ElfW(Sym)>(file_, symbols_ + i * sizeof(ElfW(Sym)));
        const bool is_function = (symbol.st_info & 0xf) == STT_FUNC;
        if (!is_function || wanted < symbol.st_value || wanted - symbol.st_value >= symbol.st_size) continue;
        if (names_ + symbol.st_name >= size_) continue;
        return {reinterpret_cast<const char*>(file_ + names_ + symbol.st_name), wanted - symbol.st_value};
    }
    return {};
}

// Fixed memory, because the signal handler must not allocate.
std::array<char, 4096> log_path{};
std::array<char, 256> last_action{};
std::array<char, 128> program_version{};
ProgramSymbols symbols;

void put(int file, const char* text) {
    const size_t length = std::strlen(text);
    if (write(file, text, length) < 0) return;
}

constexpr std::array crashes = {SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGBUS};
constexpr unsigned patience = 5;  // seconds for steps that may hang after a crash

void put_hex(int file, size_t value) {
    std::array<char, 20> digits{};
    auto at = digits.size();
    do digits[--at] = "0123456789abcdef"[value % 16];
    while ((value /= 16) != 0);
    if (write(file, digits.data() + at, digits.size() - at) < 0) return;
}

/// Writes the linker names of the program's functions. Functions of libraries are written by backtrace_symbols_fd.
void put_stack(int file, std::span<void* const> frames) {
    for (void* const& frame : frames) {
        const auto [name, offset] = symbols.find(frame);
        if (!name) {
            backtrace_symbols_fd(&frame, 1, file);
            continue;
        }
        put(file, name);
        put(file, "+0x");
        put_hex(file, offset);
        put(file, "\n");
    }
}

/// Writes the demangled names of the program's functions. Allocates memory, so it must be the last step.
void put_stack_in_words(int file, std::span<void* const> frames) {
    put(file, "\nthe program's functions:\n");
    for (void* const frame : frames) {
        const char* name = symbols.find(frame).name;
        if (!name) continue;
        char* words = abi::__cxa_demangle(name, nullptr, nullptr, nullptr);
        put(file, words ? words : name);
        put(file, "\n");
        std::free(words);  // NOLINT(cppcoreguidelines-no-malloc): __cxa_demangle() allocates with malloc()
    }
}

void crashed(int signal) {
    for (const int each : crashes) std::signal(each, SIG_DFL);
    const int file = open(log_path.data(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (file >= 0) {
        put(file, "kvscope ");
        put(file, program_version.data());
        put(file, "\nstopped by: ");
        put(file, sigabbrev_np(signal));
        put(file, "\nlast action: ");
        put(file, last_action.data());
        put(file, "\n");
        std::array<void*, 64> frames{};
        const std::span<void* const> stack(frames.data(), static_cast<size_t>(backtrace(frames.data(), frames.size())));
        put_stack(file, stack);
        put(STDERR_FILENO, "kvscope crashed. Details are in ");
        put(STDERR_FILENO, log_path.data());
        put(STDERR_FILENO, "\n");
        alarm(patience);
        put_stack_in_words(file, stack);
        close(file);
    }
    raise(signal);
}

template <size_t n>
void copy(std::array<char, n>& to, std::string_view from) {
    const size_t length = std::min(from.size(), n - 1);
    std::copy_n(from.begin(), length, to.begin());
    to[length] = 0;
}

}  // namespace

std::filesystem::path state_folder() {
    if (const char* state = std::getenv("XDG_STATE_HOME"); state && *state)
        return std::filesystem::path(state) / "kvscope";
    const char* home = std::getenv("HOME");
    return std::filesystem::path(home ? home : ".") / ".local" / "state" / "kvscope";
}

void install_crash_log() {
    std::error_code error;
    std::filesystem::create_directories(state_folder(), error);
    copy(log_path, (state_folder() / "crash.log").string());
    copy(program_version, std::string(program::version()) + " (commit " + program::commit() + ")");
    std::array<void*, 1> frame{};
    backtrace(frame.data(), 1);  // loads the library of backtrace() before the signal handler needs it
    symbols.open();
    for (const int signal : crashes) std::signal(signal, crashed);
}

void note_last_action(std::string_view action) { copy(last_action, action); }

std::string_view last_noted_action() { return last_action.data(); }

}  // namespace kvscope::gui
