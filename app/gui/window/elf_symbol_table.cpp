#include "app/gui/window/elf_symbol_table.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

namespace kvscope::gui {
namespace {

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

}  // namespace

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

}  // namespace kvscope::gui
